"""The checks of homework 10: point clouds."""

import itertools

import numpy as np

from tinyattn.course.checks.judging import (
    Homework,
    array_of,
    expect,
    judge,
    judge_gradients,
    number_of,
    without_loops,
)

homework = Homework("hw10")
homework.allow(3, "tinyattn.graph.segment_max")
homework.allow(7, "tinyattn.graph.segment_mean")
homework.build_on(7, "edge_conv_segments")


def squares(a, b):
    return np.sum((a - b) ** 2)


def neighbours(x, k, distance=squares):
    """[N, k] by loops: sorted by (distance, number)."""
    found = []
    for j in range(len(x)):
        others = [i for i in range(len(x)) if i != j]
        d = {i: distance(x[i], x[j]) for i in others}
        found.append(sorted(others, key=lambda i, d=d: (d[i], i))[:k])
    return np.array(found)


# --- task 1


@homework.part(1, "points in space")
def in_space(student, case):
    x = case.normal(case.size(12, 6, 20), case.size(3, 2, 5))
    _nearest(student, x, case.size(3, 2, 5), "random points")


@homework.part(1, "points on a line, and points at the same position", hidden=(1,))
def at_the_same_place(student, case):
    line = np.array([[0.0], [1.0], [2.0], [10.0]]) + case.number
    same = np.array([[0.0, 0], [0, 0], [0, 0], [1, 0]])
    _nearest(student, line, 2, "the points 0, 1, 2, 10 on a line")
    _nearest(student, same, 2, "three points at the same position and one next to them")
    grid = np.stack(np.indices((8, 6)), axis=-1).reshape(-1, 2) + 0.0
    _nearest(
        student, case.rng.permutation(grid), 5, ("the points of a grid, many at equal distances")
    )


def _nearest(student, x, k, what):
    N, right = len(x), neighbours(x, k)
    yours = array_of(student.nearest(x, k, hint="x[:, None] - x is [N, N, F]; k neighbours each."))
    expect(
        yours.shape == (N, k),
        f"nearest: expected shape {(N, k)}, yours is {yours.shape}",
        "with another shape than asked for",
    )
    expect(
        yours.dtype.kind in "iu",
        (f"nearest: expected the indices of points (integers), got {yours.dtype}"),
    )
    if np.array_equal(yours, right):
        return
    _explain(x, k, yours, right, what)


OTHER_DISTANCES = {
    "the sum of the absolute differences (Manhattan distance)": lambda a, b: np.sum(np.abs(a - b)),
    "the largest difference": lambda a, b: np.max(np.abs(a - b)),
    "the sum of the differences without a square": lambda a, b: np.sum(b - a),
    "the scalar product, where the smallest is not the nearest": lambda a, b: a @ b,
    "the first feature alone": lambda a, b: np.abs(a[0] - b[0]),
}


def _explain(x, k, yours, right, what):
    """Raise the Diagnosis of neighbours that are not the right ones."""
    N = len(x)
    d2 = np.square(x[:, None] - x).sum(axis=-1) + np.diag(np.full(N, np.inf))
    expect(
        not np.array_equal(yours, np.argsort(d2, axis=0, kind="stable")[:, :k]),
        "nearest: sorted along the wrong axis. Row j of the distances belongs to point j, so "
        "sort each row, with axis=1",
        "sorted along the wrong axis",
    )
    far = np.argsort(-np.where(np.isinf(d2), -1, d2), axis=1, kind="stable")[:, :k]
    last = np.argsort(d2, axis=1, kind="stable")[:, -k:]
    expect(
        not any(np.array_equal(yours, wrong) for wrong in (far, last)),
        "nearest: these are the farthest points. Sort in ascending order and take the first k",
        "the farthest points",
    )
    own = np.flatnonzero((yours == np.arange(N)[:, None]).any(axis=1))
    expect(
        not own.size,
        f"nearest, {what}: point {own[:1]} is among its own neighbours. Its distance to itself "
        "is 0, the smallest of all, so set it to infinity. Dropping the first column is not "
        "enough, because a different point at the same position may come first",
        "a point among its own neighbours",
    )
    j = np.flatnonzero((yours != right).any(axis=1))[0]
    for why, distance in OTHER_DISTANCES.items():
        expect(
            not np.array_equal(yours, neighbours(x, k, distance)),
            f"nearest, {what}: these are the nearest points according to {why}. Use the sum of "
            "the squared differences over all features",
            f"the nearest in {why}",
        )
    rows = np.arange(N)[:, None]
    expect(
        (yours < 0).any() or (yours >= N).any() or (d2[rows, yours] != d2[rows, right]).any(),
        f"nearest, {what}: your points are as near as the expected ones, but points at the same "
        f'distance must be in ascending order of index, kind="stable": point {j} has {right[j]}, '
        f"yours are {yours[j]}",
        "another order of points at the same distance",
    )
    expect(
        not np.array_equal(np.sort(yours), np.sort(right)),
        f"nearest, {what}: the neighbours are correct, but not the nearest first. Point {j} has "
        f"{right[j]}, yours are {yours[j]}",
        "not the nearest first",
    )
    expect(
        False,
        f"nearest, {what}: point {j} has {right[j]}, yours are {yours[j]}. Do you sum the "
        "squares over the features (the last axis)?",
        "other neighbours",
    )


# --- tasks 2 to 4


def cloud(case):
    """x, index, A and B; every point is a neighbour of few others."""
    N, F, new, k = case.size(12, 6, 15), case.size(3, 2, 4), case.size(4, 3, 5), case.size(3, 2, 4)
    x, A, B = case.normal(N, F), case.normal(new, F), case.normal(new, F)
    return x, neighbours(x, k), A, B


def messages_of(x, src, dst, A, B, sign=1):
    return np.maximum(x[dst] @ A.T + sign * (x[src] - x[dst]) @ B.T, 0)


def edge_conv(x, index, A, B):
    """By loops, the independent reference."""
    rows = [
        np.max([np.maximum(A @ x[i] + B @ (x[j] - x[i]), 0) for j in index[i]], axis=0)
        for i in range(len(x))
    ]
    return np.array(rows)


def usual(x, index, A, B):
    """What is computed in place of EdgeConv by usual slips."""
    N, K = index.shape
    src, dst = index.ravel(), np.repeat(np.arange(N), K)

    def pooled(messages, how=np.max):
        return how(messages.reshape(N, K, -1), axis=1)

    m, mine, step = messages_of(x, src, dst, A, B), x[dst] @ A.T, x[src] - x[dst]
    q = pooled(x[src] @ B.T)
    return {
        "with the opposite sign: the message contains neighbour minus centre, x_j - x_i": pooled(
            messages_of(x, src, dst, A, B, sign=-1)
        ),
        "when you took the mean of the messages instead of the maximum": pooled(m, np.mean),
        "when you took the sum of the messages instead of the maximum": pooled(m, np.sum),
        "when A and B are exchanged: A belongs to x_i, B to the difference": pooled(
            messages_of(x, src, dst, B, A)
        ),
        "when B is applied to x_j itself, not to the difference x_j - x_i: where did -x_i Bᵀ "
        "go?": pooled(np.maximum(mine + x[src] @ B.T, 0)),
        "when A is applied to the neighbour x_j: A belongs to the centre x_i": pooled(
            np.maximum(x[src] @ A.T + step @ B.T, 0)
        ),
        "when x_i and x_j are exchanged: i receives (dst), its neighbour j sends (src)": pooled(
            np.maximum(x[src] @ A.T - step @ B.T, 0)
        ),
        "when the ReLU is missing: no number may be negative": pooled(mine + step @ B.T),
        "when all points are neighbours: j runs over index[i] only": np.array(
            [messages_of(x, np.arange(N), np.full(N, j), A, B).max(axis=0) for j in range(N)]
        ),
        "when j runs over 0, 1, 2, ...: the neighbours are the points in index[i]": (
            np.array(
                [messages_of(x, np.arange(K), np.full(K, j), A, B).max(axis=0) for j in range(N)]
            )
        ),
        "when a point is its own neighbour, too": np.maximum(pooled(m), np.maximum(x @ A.T, 0)),
        "from the minimum of the messages instead of the maximum": pooled(m, np.min),
        "with a ReLU of each of the two terms: add them first, then apply the ReLU": pooled(
            np.maximum(mine, 0) + np.maximum(step @ B.T, 0)
        ),
        "when only the last neighbour is left: keep all messages, then take their maximum": (
            m.reshape(N, K, -1)[:, -1]
        ),
        "when the maximum is taken over everything, so that all features of a "
        "point are equal: take it over the neighbours, separately for each "
        "feature": np.broadcast_to(m.reshape(N, -1).max(axis=1, keepdims=True), (N, len(A))),
        "when the ReLU is applied before p_i is added: apply it afterwards": x @ (A - B).T
        + np.maximum(q, 0),
        "when the messages are collected at their senders: they must be "
        "collected at dst": _collected(m, src, N),
        "when sender and receiver are exchanged: messages run from src to dst": _collected(
            messages_of(x, dst, src, A, B), src, N
        ),
    }


def _collected(messages, at, N):
    found = np.zeros((N, messages.shape[1]))
    for n in np.unique(at):
        found[n] = messages[at == n].max(axis=0)
    return found


LETTERS = "x[i] has F numbers, A and B are [F', F]: x[i] @ A.T, or for all rows at once x @ A.T."


@homework.part(2, "one message after the other")
def loops(student, case):
    x, index, A, B = cloud(case)
    came = student.edge_conv_loops(x, index, A, B, hint=LETTERS)
    judge(came, edge_conv(x, index, A, B), usual(x, index, A, B))


def edges(index):
    return index.ravel(), np.repeat(np.arange(len(index)), index.shape[1])


@homework.part(3, "all messages at once")
def segments(student, case):
    x, index, A, B = cloud(case)
    turn = case.rng.permutation(index.size)  # the edges need not be sorted
    src, dst = (ids[turn] for ids in edges(index))
    came = student.edge_conv_segments(x, src, dst, A, B, hint=LETTERS)
    judge(came, edge_conv(x, index, A, B), usual(x, index, A, B))
    more = np.concatenate([x, x]), *(np.append(i, i + len(x)) for i in (src, dst))
    without_loops(student, "edge_conv_segments", (x, src, dst, A, B), (*more, A, B))


@homework.part(3, "points that receive no message")
def lonely(student, case):
    x, _, A, B = cloud(case)
    src, dst = np.array([1, 2]), np.array([5, 0])
    came = student.edge_conv_segments(x, src, dst, A, B, hint=LETTERS)
    right = np.zeros((len(x), len(A)))
    right[dst] = messages_of(x, src, dst, A, B)
    judge(
        came, right, what=("with only the edges 1 → 5 and 2 → 0, where all other points must get 0")
    )


@homework.part(3, "gradient")
def segments_gradient(student, case):
    x, index, A, B = cloud(case)
    src, dst = edges(index)

    def reference(x, src, dst, A, B):
        return _collected(messages_of(x, src, dst, A, B), dst, len(x))

    judge_gradients(
        student,
        "edge_conv_segments",
        reference,
        x,
        src,
        dst,
        A,
        B,
        of=[0, 3, 4],
        letters="xAB",
        hint=LETTERS,
        case=case,
    )


def split_and_count(its, x, src, dst, A, B, noise):
    """The result, how many rows `times` multiplied, and what it returned.

    It counts here, not in the notebook, and adds noise: who uses its products has the noise too.
    """
    rows, products = [], []

    def times(a, W):
        rows.append(len(a))
        product = a @ W.T
        product = product + noise[: len(a), : product.shape[1]] * (1 + len(products))
        products.append(product)
        return product

    names = its.edge_conv_split.__globals__
    kept = names.get("times")
    names["times"] = times
    try:
        return its.edge_conv_split(x, src, dst, A, B), list(rows), [p.copy() for p in products]
    finally:
        names["times"] = kept


def split_by_hand(products, index, width):
    """What the products of `times` have to lead to, whichever of them is p, A x or q."""
    pieces = [p[:, i : i + width] for p in products for i in range(0, p.shape[1], width)]
    found = []
    for p, q in itertools.permutations(pieces, 2):
        best = q[index].max(axis=1)
        found += [np.maximum(y + best, 0) for y in (p, -p, p - q)]
    return found


@homework.part(4, "few products")
def split(student, case):
    x, index, A, B = cloud(case)
    src, dst = edges(index)
    nothing = np.zeros((index.size, 4 * len(A)))
    came, *_ = student.ask(split_and_count, x, src, dst, A, B, nothing, hint=LETTERS)
    judge(came, edge_conv(x, index, A, B), usual(x, index, A, B))
    noise = case.normal(*nothing.shape)
    came, rows, products = student.ask(split_and_count, x, src, dst, A, B, noise, hint=LETTERS)
    expect(
        isinstance(rows, list) and len(rows) > 0,
        "multiply with times(rows, W), so that the check can count the multiplied rows",
        "times is not used",
    )
    expect(
        sum(rows) <= 2 * len(x),
        f"right, but {sum(rows)} rows were multiplied; 2 · {len(x)} are enough. Multiply before "
        "you select the rows of the edges: times(x, B)[src], not times(x[src], B)",
        "multiplied for every edge",
    )
    expect(
        set(rows) == {len(x)}
        and any(np.allclose(came, y) for y in split_by_hand(products, index, len(A))),
        "right, but the result does not come from the two products of times(rows, W)",
        "times is called for show",
    )


# --- task 5


def line(case):
    if case.number == 0:
        return np.array([0.0, 1.0, 2.5, 4.0, 5.5]), np.array([1.0, 4.0, 2.0, 5.5, -1.0])
    return np.cumsum(case.rng.uniform(0.8, 1.6, 6)), case.normal(6)


@homework.part(5, "the mean over the nearest positions")
def nearest_mean(student, case):
    places, h = line(case)
    for t in (0.2, 2.0, 5.0):
        k = 2 + (case.number > 0)
        chosen = np.argsort(np.abs(places - t), kind="stable")
        mistakes = {
            "from the sum instead of the mean": h[chosen[:k]].sum(),
            "from the farthest positions": h[chosen[-k:]].mean(),
            "without the absolute value: the distance is |place - t|": h[
                np.argsort(places - t, kind="stable")[:k]
            ].mean(),
            "from the positions themselves: take the mean of their values h": places[
                chosen[:k]
            ].mean(),
            "from the distances: take the mean of the values h": np.mean(
                np.abs(places - t)[chosen[:k]]
            ),
            "without the nearest position: t is not one of the positions, so none of them has "
            "to be excluded": (h[chosen[1 : k + 1]].mean()),
            "from the nearest position only": h[chosen[0]],
            "from all positions": h.mean(),
        }
        came = number_of(student.nearest_mean(t, places, h, k), "nearest_mean")
        judge(came, h[chosen[:k]].mean(), mistakes, what=f"nearest_mean, at t = {t}")


def quotient_of(its, which, t, epsilon):
    import numpy as np

    return its.quotient({"square": lambda t: t**2, "exp": np.exp}[which], t, epsilon)


@homework.part(5, "the difference quotient")
def quotient(student, case):
    t, e = (3.0, 0.1) if case.number == 0 else case.rng.uniform([-1, 0.05], [3, 0.3]).tolist()
    for which, f in (("square", np.square), ("exp", np.exp)):
        both = f(t + e) - f(t - e)
        mistakes = {
            "without the factor 2: divide by 2ε, the distance between the two points": both / e,
            "from (f(t + ε) - f(t)) / ε, which uses one side only: use both": (f(t + e) - f(t)) / e,
            "from (f(t) - f(t - ε)) / ε, which uses one side only: use both": (f(t) - f(t - e)) / e,
            "by dividing by 2 and multiplying with ε: write (2 * epsilon)": both / 2 * e,
            "without the division by 2ε": both,
            "with the opposite sign": -both / (2 * e),
        }
        came = number_of(student.ask(quotient_of, which, t, e), "quotient")
        judge(came, both / (2 * e), mistakes, what="quotient")


# --- task 6


def soft_mean(t, places, h, k=2):
    """By sorting the pairs (distance, number), one after the other."""
    near = sorted(
        (abs(float(place - t[0])), number) for place, number in zip(places, h, strict=True)
    )
    above = below = 0.0
    for distance, number in near[:k]:
        above += np.exp(-(distance**2)) * number
        below += np.exp(-(distance**2))
    return above / below


@homework.part(6, "the weighted mean")
def softly(student, case):
    places, h = line(case)
    for t in (0.2, 2.0, 5.0):
        chosen = np.argsort(np.abs(places - t))[:2]
        d, everyone = t - places[chosen], np.exp(-((t - places) ** 2))

        def mean(w, chosen=chosen):
            return np.sum(w * h[chosen]) / np.sum(w)

        mistakes = {
            "without the division by the sum of the weights": np.sum(np.exp(-(d**2)) * h[chosen]),
            "when the distance is not squared": mean(np.exp(-np.abs(d))),
            "with the opposite sign in the exponent: positions far from t "
            "must get smaller weights": mean(np.exp(d**2)),
            "when the weights are missing, so that all k positions count equally": h[chosen].mean(),
            "with a division by k instead of by the sum of the weights": np.mean(
                np.exp(-(d**2)) * h[chosen]
            ),
            "when the weights are computed from the values h instead of the positions": mean(
                np.exp(-((t - h[chosen]) ** 2))
            ),
            "with a factor 1/2 in the exponent": mean(np.exp(-(d**2) / 2)),
            "with the weights 1/d² instead of exp(-d²)": mean(1 / d**2),
            "when all positions get a weight: use only the k nearest": np.sum(everyone * h)
            / np.sum(everyone),
        }
        came = number_of(student.weighted_mean(np.array([t]), places, h), "weighted_mean")
        judge(came, mean(np.exp(-(d**2))), mistakes, what=f"weighted_mean, at t = {t}")


@homework.part(6, "gradient")
def softly_gradient(student, case):
    places, h = line(case)
    t = np.array([2.1 + 0.1 * case.number])
    hint = "Compute the distances of the chosen positions from t itself, not from array(t)."
    judge_gradients(
        student, "weighted_mean", soft_mean, t, places, h, of=[0], letters="t", hint=hint, case=case
    )


# --- task 7


def few_jets(case):
    """Particles of three jets with 4, 2 and 5 particles, and edges within each."""
    x, _, A, B = cloud(case)
    F, new = A.shape[1], len(A)
    jet = np.repeat([0, 1, 2], (4, 2, 5))
    x = case.normal(len(jet), F)
    pairs = [(j, i) for i in range(len(jet)) for j in range(len(jet)) if jet[i] == jet[j]]
    src, dst = np.array([(j, i) for j, i in pairs if j > i or (i > j and (i + j) % 2)]).T
    return x, src, dst, jet, 3, A, B, case.normal(new)


def scores_by_loops(x, src, dst, jet, jets, A, B, w):
    y = _collected(messages_of(x, src, dst, A, B), dst, len(x))
    return np.array([y[jet == n].mean(axis=0) @ w for n in range(jets)])


@homework.part(7, "the scores")
def tagger(student, case):
    x, src, dst, jet, jets, A, B, w = few_jets(case)
    y = _collected(messages_of(x, src, dst, A, B), dst, len(x))
    of_jets = [y[jet == n] for n in range(jets)]
    raw = [x[jet == n].mean(axis=0) for n in range(jets)]
    mistakes = {
        "from the sum over the particles: take the mean, because otherwise jets with more "
        "particles get larger scores": np.array([part.sum(axis=0) @ w for part in of_jets]),
        "from the maximum over the particles instead of the mean": np.array(
            [part.max(axis=0) @ w for part in of_jets]
        ),
        "when sender and receiver are exchanged: the arguments are (x, src, dst, A, B)": np.array(
            [
                _collected(messages_of(x, dst, src, A, B), src, len(x))[jet == n].mean(axis=0) @ w
                for n in range(jets)
            ]
        ),
        "when A and B are exchanged": scores_by_loops(x, src, dst, jet, jets, B, A, w),
        "when the EdgeConv is missing": np.array([np.maximum(mean @ A.T, 0) @ w for mean in raw]),
    }
    came = student.scores(x, src, dst, jet, jets, A, B, w, hint="EdgeConv gives [M, F'].")
    judge(came, scores_by_loops(x, src, dst, jet, jets, A, B, w), mistakes)


@homework.part(7, "gradient")
def tagger_gradient(student, case):
    judge_gradients(
        student,
        "scores",
        scores_by_loops,
        *few_jets(case),
        of=[0, 5, 6, 7],
        letters="xABw",
        hint=(
            "Use your edge_conv_segments, segment_mean and @, and no function that returns "
            "plain arrays."
        ),
        case=case,
    )
