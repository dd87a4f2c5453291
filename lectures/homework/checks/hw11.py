"""The checks of homework 11: GravNet."""

import numpy as np

from tinyattn.course.checks.judging import (
    NO_RETURN,
    Homework,
    array_of,
    expect,
    judge,
    judge_gradients,
    number_of,
)

homework = Homework("hw11")
homework.allow(3, "tinyattn.graph.knn", "tinyattn.nn.Linear", "tinyattn.nn.Module")
homework.build_on(3, "weights", "gather")


def nearest(s, k, event=None):
    """The k nearest points of each, itself among them, of the same event; by sorting."""
    d2 = np.square(s[:, None] - s).sum(axis=-1)
    if event is not None:
        d2 = np.where(event[:, None] == event, d2, np.inf)
    return np.argsort(d2, axis=1, kind="stable")[:, :k]


def points(case):
    """Three points on a line with their two nearest, or more in space."""
    if case.number == 0:
        s = np.array([[0.0, 0.0], [0.6, -0.8], [1.8, 2.4]])  # d² = 1, and 11.68
        return s, np.array([[0, 1], [1, 0], [2, 1]]), np.log(2)
    s = case.normal(case.size(7, 5, 9), case.size(3, 2, 4))
    return s, nearest(s, 3), 0.5 + case.number / 4


# --- task 1


def weights_of(s, index, c):
    return np.exp(-c * np.square(s[:, None] - s[index]).sum(axis=-1))


SPACE = "s is [N, S] and s[index] is [N, K, S]: s[:, None] - s[index] are all differences."


@homework.part(1, "the weights")
def weights(student, case):
    s, index, c = points(case)
    d = np.sqrt(np.square(s[:, None] - s[index]).sum(axis=-1))
    right = np.exp(-c * d**2)
    mistakes = {
        "from the distance itself: use the squared distance": np.exp(-c * d),
        "when the weights grow with the distance, because a minus is missing": np.exp(c * d**2),
        "when the weights sum to 1: GravNet has no softmax": right
        / right.sum(axis=1, keepdims=True),
        "without the constant c": np.exp(-(d**2)),
        "by dividing by c: d² is multiplied by it": np.exp(-(d**2) / c),
        "without the exponential": -c * d**2,
        "from the square of a sum: each difference is squared first, then they are summed": np.exp(
            -c * (s[:, None] - s[index]).sum(axis=-1) ** 2
        ),
        "from the mean over the dimensions of S: d² is their sum": np.exp(-c * d**2 / s.shape[1]),
        "from a sum over the neighbours (axis 1 of [N, K, S]): the sum runs over the dimensions, "
        "the last axis": np.exp(-c * np.square(s[:, None] - s[index]).sum(axis=1)),
        "from a sum over the points (axis 0 of [N, K, S]): the sum runs over the dimensions, the "
        "last axis": np.exp(-c * np.square(s[:, None] - s[index]).sum(axis=0)),
        "when c is squared too": np.exp(-((c * d) ** 2)),
        "from the sum of absolute differences: d² is the sum of the squared differences": np.exp(
            -c * np.abs(s[:, None] - s[index]).sum(axis=-1)
        ),
        "before the sum over the dimensions (the last axis)": np.exp(
            -c * np.square(s[:, None] - s[index])
        ),
    }
    judge(student.weights(s, index, c, hint=SPACE), right, mistakes, what="weights")


@homework.part(1, "gradient")
def weights_gradient(student, case):
    s, index, c = points(case)
    hint = f"{SPACE} If you use plain numbers, no gradient reaches s."
    judge_gradients(
        student, "weights", weights_of, s, index, c, of=[0], letters="s", hint=hint, case=case
    )


# --- task 2


def gathered(a, h, index):
    m = a[:, :, None] * h[index]
    return np.concatenate([m.mean(axis=1), m.max(axis=1)], axis=-1)


def messages(case):
    """a [N, K], h [N, P] and index [N, K]."""
    _, index, _ = points(case)
    if case.number == 0:
        h = np.array([[8.0, -1.0], [4.0, -3.0], [2.0, 5.0]])
        return np.array([[1, 1 / 2], [1 / 2, 1 / 4], [1, 1 / 16]]), h, index
    return case.rng.uniform(0.1, 1, index.shape), case.normal(len(index), 3), index


GATHER = "h[index] is [N, K, P] and a is [N, K]: give a an axis for the features, a[:, :, None]."


@homework.part(2, "mean and maximum")
def gather(student, case):
    a, h, index = messages(case)
    m, raw = a[:, :, None] * h[index], h[index].max(axis=1)
    mean, top = m.mean(axis=1), m.max(axis=1)
    largest = np.take_along_axis(m, np.abs(m).argmax(1)[:, None], 1)[:, 0]
    features = m.mean(axis=2)[:, : h.shape[1]]
    side = lambda x, y: np.concatenate([x, y], axis=1)
    mistakes = {
        "when the maxima come first: the means come first, then the maxima": side(top, mean),
        "from the sum over the neighbours: divide it by K to get the mean": side(
            m.sum(axis=1), top
        ),
        "by dividing by the sum of the weights. GravNet divides by K, so that far neighbours make "
        "a small message": side(m.sum(axis=1) / a.sum(axis=1)[:, None], top),
        "when the maximum is that of the messages without their weights": side(mean, raw),
        "when the weights are not used at all": side(h[index].mean(axis=1), raw),
        "from the product of the maxima: the maximum of products is not the product of the "
        "maxima": side(mean, raw * a.max(axis=1)[:, None]),
        "from the largest absolute value: the maximum of -1 and -1.5 is -1": side(mean, largest),
        "when the mean runs over the features: the neighbours are axis 1 of [N, K, P]": side(
            features, top
        ),
        "when mean and maximum run over the features: the neighbours are axis 1": side(
            m.mean(axis=2), m.max(axis=2)
        ),
        "from the message of the point itself: use the messages of its neighbours, h[index]": side(
            (a[:, :, None] * h[:, None]).mean(axis=1), (a[:, :, None] * h[:, None]).max(axis=1)
        ),
        "when the weights are added to the messages: multiply by them": side(
            (a[:, :, None] + h[index]).mean(axis=1), (a[:, :, None] + h[index]).max(axis=1)
        ),
        "when means and maxima alternate: first all means, then all maxima": np.stack(
            [mean, top], axis=-1
        ).reshape(len(a), -1),
        "from the means only": mean,
        "from the maxima only": top,
    }
    judge(student.gather(a, h, index, hint=GATHER), side(mean, top), mistakes, what="gather")


@homework.part(2, "gradient")
def gather_gradient(student, case):
    a, h, index = messages(case)
    h = h + 0.01 * np.arange(h.size).reshape(h.shape)
    judge_gradients(
        student, "gather", gathered, a, h, index, of=[0, 1], letters="ah", hint=GATHER, case=case
    )


# --- task 3


def gravnet(its, sizes, state, x, event, arriving):
    """The layer's answer with these weights, and the gradients of all of them."""
    import numpy as np

    d_in, d_out, space, P, k, c = sizes
    layer = its.GravNet(d_in, d_out, space, P, k=k, c=c).astype(np.float64)
    for name, parameter in layer.named_parameters():
        parameter.data = np.array(state[name])
    y = layer(x) if event is None else layer(x, event)
    if y is None:
        return None, None
    if arriving is None:
        return y, None
    np.sum(y * arriving).backward()
    return y, {name: p.grad for name, p in layer.named_parameters()}


SIZES = 6, 3, 2, 4, 5, 3.0  # features in and out, dimensions of space and messages, k, c


def some_weights(case):
    d_in, d_out, space, P, *_ = SIZES
    shapes = {
        "lin_s.weight": (space, d_in),
        "lin_s.bias": (space,),
        "lin_h.weight": (P, d_in),
        "lin_h.bias": (P,),
        "lin_out1.weight": (d_out, d_in),
        "lin_out2.weight": (d_out, 2 * P),
        "lin_out2.bias": (d_out,),
    }
    return {name: 0.4 * case.normal(*shape) for name, shape in shapes.items()}


def layer_of(
    x, event, state, *, places="s", first=True, c=SIZES[5], k=SIZES[4], itself=True, turned=False
):
    """The layer, and with a usual slip in it."""
    w = state
    s = x @ w["lin_s.weight"].T + w["lin_s.bias"]
    h = x @ w["lin_h.weight"].T + w["lin_h.bias"]
    index = nearest({"s": s, "x": x, "h": h}[places], k + (not itself), event)
    index = index if itself else index[:, 1:]
    received = gathered(weights_of(h if turned else s, index, c), h, index)
    y = received @ w["lin_out2.weight"].T + w["lin_out2.bias"]
    return y + first * (x @ w["lin_out1.weight"].T)


def _layer(student, x, event, state, arriving=None):
    hint = (
        "knn gives two things: index, _ = knn(points, self.k, event). weights, gather and the four "
        "layers help."
    )
    y, grads = student.ask(gravnet, SIZES, state, x, event, arriving, hint=hint)
    expect(y is not None, "forward returned None. Is the `return` missing?", NO_RETURN)
    return y, grads


@homework.part(3, "one event")
def one_event(student, case):
    x, state = case.normal(case.size(30, 12, 30), SIZES[0]), some_weights(case)
    mistakes = wrong_layers(x, None, state)
    judge(_layer(student, x, None, state)[0], layer_of(x, None, state), mistakes, what="GravNet")


def wrong_layers(x, event, state):
    def layer(**slip):
        return layer_of(x, event, state, **slip)

    return {
        "when the neighbours are the nearest in x: they should be the nearest in s": layer(
            places="x"
        ),
        "when the neighbours are the nearest in h: they should be the nearest in s": layer(
            places="h"
        ),
        "without the point's own features: x W₁ᵀ is missing": layer(first=False),
        "with the constant 1 in the weights: use self.c": layer(c=1.0),
        "with the constant 10 in all cases: use self.c": layer(c=10.0),
        "with one neighbour too many: knn(points, self.k, event)": layer(k=SIZES[4] + 1),
        "when a point does not receive from itself: use all neighbours that knn returns, and the "
        "point is one of them": layer(itself=False),
        "when neighbours and weights both come from h: the space is s, the messages are h": layer(
            places="h", turned=True
        ),
        "when the weights come from h: the distances are those in s": layer(turned=True),
        "with one neighbour too few: the point itself counts in knn": layer(k=SIZES[4] - 1),
    }


@homework.part(3, "several events")
def several_events(student, case):
    x, state = case.normal(30, SIZES[0]), some_weights(case)
    event = np.repeat([0, 1, 2], 10)
    alone = layer_of(x, None, state)
    mistakes = wrong_layers(x, event, state)
    mistakes["when points of different events receive from each other. Pass event to knn"] = alone
    judge(_layer(student, x, event, state)[0], layer_of(x, event, state), mistakes, what="GravNet")


@homework.part(3, "gradient")
def layer_gradient(student, case):
    x, state = case.normal(12, SIZES[0]), some_weights(case)
    arriving = case.normal(12, SIZES[1])
    _, grads = _layer(student, x, None, state, arriving)
    came = grads.get("lin_s.weight") if isinstance(grads, dict) else None
    expect(
        came is not None and np.any(array_of(came) != 0),
        "GravNet: no gradient reaches lin_s, so the network cannot learn the space. The d² that "
        "knn returns are plain numbers, so pass s to weights(s, ...) as a Tensor",
        "no gradient reaches the space",
    )
    for name in state:

        def loss(values, name=name):
            return np.sum(arriving * layer_of(x, None, {**state, name: values}))

        right = _slopes(loss, state[name])
        what = f"GravNet, the gradient of {name}"
        expect(
            grads.get(name) is not None,
            f"GravNet: no gradient reaches {name}. Is it used, and do all steps compute with "
            "Tensors?",
            "no gradient reaches a weight",
        )
        judge(grads.get(name), right, rtol=1e-3, atol=1e-5, what=what)


def _slopes(f, x, epsilon=1e-6):
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = epsilon
        found[place] = (f(x + step) - f(x - step)) / (2 * epsilon)
    return found


# --- task 4


@homework.part(4, "the same weights")
def same_weights(student, case):
    c, r = (10.0, 3.0) if case.number == 0 else case.rng.uniform(0.5, 5, 2)
    mistakes = {
        "for the inverse factor: the distances grew, so the constant must be smaller": c * r**2,
        "from r itself: d² grows with r squared, not with r": c / r,
        "without r": c,
        "from the root of r": c / np.sqrt(r),
    }
    judge(number_of(student.same_weights(c, r)), c / r**2, mistakes, what="same_weights")


@homework.part(4, "how much larger")
def stretch(student, case):
    shown = [(10.0, 0.1), (0.5, 8.0)]
    for one, other in case.rng.uniform(1, 5, (2, 2)) if case.number else shown:
        mistakes = {
            "for the inverse ratio: a smaller constant needs a larger space": np.sqrt(other / one),
            "from the ratio itself: c multiplies d², so take the root of the ratio": (one / other),
            "for the inverse ratio, without the root": other / one,
            "from the square of the ratio": (one / other) ** 2,
            "for 10 and 0.1 in all cases: use c_from and c_to": 10.0,
        }
        came = number_of(student.stretch(one, other))
        judge(came, np.sqrt(one / other), mistakes, what=f"stretch({one:.3g}, {other:.3g})")


# --- task 5


def sizes(case, shown):
    return (
        shown if case.number == 0 else tuple(int(n) for n in case.rng.integers(3, 30, len(shown)))
    )


@homework.part(5, "EdgeConv on every edge")
def edgeconv_on_edges(student, case):
    N, K, F = sizes(case, (7, 5, 3))
    mistakes = {
        "with F input features: the dense layer gets 2F features": N * K * F * F,
        "once for each point: the layer runs on every edge, N·K times": N * 2 * F * F,
        "with 2F features out: the output has F": N * K * 4 * F * F,
    }
    came = number_of(student.edgeconv_on_edges(N, K, F))
    what = f"edgeconv_on_edges({N}, {K}, {F})"
    judge(came, N * K * 2 * F * F, mistakes, what=what, atol=0.1)


@homework.part(5, "EdgeConv, split")
def edgeconv_split(student, case):
    N, F = sizes(case, (7, 3))
    mistakes = {
        "with one product: two are needed for each point, one for the receiver and one for the "
        "sender": N * F * F,
        "with four products of F·F: each of the two products gets F features": N * 4 * F * F,
        "for a single point: there are N": 2 * F * F,
    }
    came = number_of(student.edgeconv_split(N, F))
    judge(came, N * 2 * F * F, mistakes, what=f"edgeconv_split({N}, {F})", atol=0.1)


def gravnet_count(N, K, F, S, P):
    return N * (F * S + F * P + F * F + 2 * P * F) + N * K * P


@homework.part(5, "GravNet")
def gravnet_products(student, case):
    N, K, F, S, P = sizes(case, (7, 5, 3, 2, 4))
    right, edges = gravnet_count(N, K, F, S, P), N * K * P
    mistakes = {
        "when the weights times the messages are missing, N·K·P": right - edges,
        "when W₂ gets P features: it gets mean and maximum, 2P features": right - N * P * F,
        "when W₁ is missing, F·F for each point": right - N * F * F,
        "when each weighted message is counted twice: it is computed once and "
        "used for both mean and maximum": right + edges,
        "when the matrices are applied once for each edge: apply them once for each point": (
            K * (right - edges) + edges
        ),
    }
    came = number_of(student.gravnet_products(N, K, F, S, P))
    what = f"gravnet_products({N}, {K}, {F}, {S}, {P})"
    judge(came, right, mistakes, what=what, atol=0.1)


def crossing(linear, constant):
    """The positive F with F² = linear F + constant, by bisection."""
    low, high = 0.0, 1.0 + linear + constant
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**2 < linear * middle + constant else (low, middle)
    return low


@homework.part(5, "the turning point")
def turning_point(student, case):
    for K, S, P in (sizes(case, (40, 4, 22)), sizes(case, (10, 3, 5))):
        root = np.sqrt((S + 3 * P) ** 2 + 4 * K * P)
        mistakes = {
            "the negative solution: a number of features is positive": (S + 3 * P - root) / 2,
            "without the weights times the messages, K·P": S + 3 * P,
            "without dividing by 2: F = (b + √(b² + 4KP)) / 2 with b = S + 3P": S + 3 * P + root,
            "when W₂ gets P features: it gets 2P": crossing(S + 2 * P, K * P),
            "for EdgeConv on every edge: compare GravNet with the split EdgeConv": (
                S + 3 * P + np.sqrt((S + 3 * P) ** 2 + 4 * K * P * (2 * K - 1))
            )
            / (2 * (2 * K - 1)),
            "when GravNet's own F² is missing: W₁ multiplies F features by F features": (
                S + 3 * P + np.sqrt((S + 3 * P) ** 2 + 8 * K * P)
            )
            / 4,
            "for the sizes in the notebook only: use K, S and P": crossing(70, 880),
        }
        came = number_of(student.turning_point(K, S, P))
        judge(came, crossing(S + 3 * P, K * P), mistakes, what=f"turning_point({K}, {S}, {P})")
