"""The checks of homework 03: from convolution to attention."""

import numpy as np

from tinyattn.course.checks.judging import (
    Diagnosis,
    Homework,
    judge,
    judge_gradients,
    without_loops,
)

homework = Homework("hw03")
homework.allow(5, "tinyattn.functional.softmax")


def soft(s, axis):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def table(N, k, stride=1, padding=0, dilation=1):
    """I(i, j), by going through the padded input."""
    padded = [-1] * padding + list(range(N)) + [-1] * padding
    starts = range(0, len(padded) - dilation * (k - 1), stride)
    return np.array([[padded[start + j * dilation] for j in range(k)] for start in starts])


# --- task 1

SHOWN = [(5, 3, 1, 0, 1), (5, 3, 1, 1, 1), (9, 3, 2, 1, 1), (6, 2, 2, 0, 1), (9, 3, 1, 2, 2)]
SECRET = [(8, 3, 3, 1, 2), (10, 4, 2, 3, 2), (7, 1, 1, 0, 1), (6, 2, 1, 0, 3)]


def some_sizes(case):
    """Four more sizes, in which at least one window fits."""
    sizes = [tuple(int(n) for n in case.rng.integers(1, 4, 4)) for _ in range(4)]
    return [(d * (k - 1) + case.size(0, 2, 6), k, s, p, d) for k, s, p, d in sizes]


def wrong_tables(N, k, stride, padding, dilation):
    i, j = np.indices(table(N, k, stride, padding, dilation).shape)

    def clean(t):
        return np.where((t >= 0) & (t < N), t, -1)

    return {
        "with the padding added: padding moves the first window to the left": clean(
            i * stride + j * dilation + padding
        ),
        "without the padding": clean(i * stride + j * dilation),
        "without the stride: from one output to the next the window moves by `stride`": clean(
            i + j * dilation - padding
        ),
        "without the dilation: neighbouring positions of the kernel are `dilation` words apart": (
            clean(i * stride + j - padding)
        ),
        "with the stride as a factor of the kernel position j, which would be a dilation": clean(
            i + j * stride - padding
        ),
        "with stride and dilation swapped": clean(i * dilation + j * stride - padding),
        "with a step of k instead of `stride` from window to window": clean(
            i * k + j * dilation - padding
        ),
        "with the nearest word at positions outside the sentence: there is no word, so "
        "write -1": np.clip(i * stride + j * dilation - padding, 0, N - 1),
        "with the words of the other end at positions outside the sentence: there is no word, "
        "so write -1": (i * stride + j * dilation - padding) % N,
        "without replacing positions outside by -1": i * stride + j * dilation - padding,
        "without replacing positions after the end by -1: write -1 on both sides": np.maximum(
            i * stride + j * dilation - padding, -1
        ),
        "with the table still full of zeros": 0 * i,
    }


@homework.part(1, "the table", hidden=(1,))
def neighbours(student, case):
    for sizes in SHOWN if case.number == 0 else SECRET + some_sizes(case):
        what = "N={}, k={}, stride={}, padding={}, dilation={}".format(*sizes)
        came = student.neighbours(*sizes, hint="I is [P, k]: row i is the window of output i.")
        judge(came, table(*sizes), wrong_tables(*sizes), what=what)


# --- tasks 2 and 3


def words(case):
    """x [N, N_F], w [k, N_out, N_F / G], b [N_out] and a table."""
    N, k, groups = case.size(7, 5, 9), 3, case.size(3, 1, 3)
    size, out = case.size(3, 2, 4), case.size(2, 2, 3)
    stride = 1 if case.number == 0 else case.size(2, 1, 2)
    I = table(N, k, stride, 1, 1 + case.number % 2)
    x, w = case.normal(N, groups * size), case.normal(k, groups * out, size)
    return x, w, case.normal(groups * out), I


def features(x, w):
    """The feature of x that w[:, alpha, beta] reads, [N_out, N_F / G], group after group."""
    groups, size = x.shape[1] // w.shape[2], w.shape[2]
    of_group = np.arange(x.shape[1]).reshape(groups, size)
    return np.repeat(of_group, w.shape[1] // groups, axis=0)


def convolution(x, w, b, I):
    """By loops over outputs and the places of the kernel."""
    y, read = np.tile(b, (len(I), 1)), features(x, w)
    for i, row in enumerate(I):
        for j, n in enumerate(row):
            if n >= 0:
                y[i] += (w[j] * x[n][read]).sum(axis=1)
    return y


def wrong_convolutions(x, w, b, I):
    there, read = I[..., None] >= 0, features(x, w)
    seen = np.where(there, x[I], 0)  # [P, k, N_F]

    def summed(seen, w=w, read=read):
        return np.einsum("jab,ijab->ia", w, seen[..., read])

    plain = summed(seen)
    k, _, size = w.shape
    terms = there.sum(axis=1) * size  # of each output
    last = [max(j for j in range(k) if row[j] >= 0) for row in I]
    only = [w[j, :, -1] * x[row[j]][read[:, -1]] for j, row in zip(last, I, strict=True)]
    found = {
        "where -1 reads the last word: a term without a neighbour is 0": summed(x[I]) + b,
        "without the bias b": plain,
        "with the bias subtracted: here it is +b (the threshold on the slide is -T)": plain - b,
        "with b added once for every term of the sum instead of once": plain + terms * b,
        "with b added once more for every term of the sum instead of once": (
            plain + (terms + 1) * b
        ),
        "with the kernel reversed (its last position first)": summed(seen, w[::-1]) + b,
        "with = instead of +=, so that only the last term remains": np.array(only),
        "where the first word is omitted: 0 is a word, and only -1 means that there is "
        "none": summed(np.where(I[..., None] > 0, x[I], 0)) + b,
        "where -1 reads the first word: a term without a neighbour is 0": summed(
            x[np.maximum(I, 0)]
        )
        + b,
        "that consist of the bias only. Is anything added to y?": np.broadcast_to(b, plain.shape),
    }
    return found | {why: summed(seen, w, r) + b for why, r in wrong_groups(x, w).items()}


def wrong_groups(x, w):
    """Features that are read by mistake, as in `features`."""
    _, out, size = w.shape
    groups = x.shape[1] // size
    alpha, beta = np.indices((out, size))
    group = alpha // (out // groups)
    found = {
        "where all outputs read the features of the first group": beta,
        "with the outputs assigned to the groups in turn: the "
        "outputs of one group are adjacent, so the group of alpha "
        "is alpha // (N_out / G)": alpha % groups * size + beta,
        "with alpha // G for the group: a group has N_out / G outputs": alpha // groups * size
        + beta,
        "with the features assigned to the groups in turn: the features of one group are "
        "adjacent": (beta * groups + group),
        "with group + beta as the feature: each earlier group has N_F / G features": (group + beta),
        "with the group's first feature only, for all beta": group * size + 0 * beta,
    }
    return {why: read for why, read in found.items() if read.max() < x.shape[1]}


INDICES = (
    "w is [k, N_out, N_F / G], as in w[j, alpha, beta], and x is [N, N_F]. Each of the G groups "
    "has N_F / G features and N_out / G outputs."
)
LETTERS = (
    "With an axis for the groups, filters [k, G, N_out / G, N_F / G] have the letters j g a b, "
    "windows [P, k, G, N_F / G] have i j g b, and the result is [P, G, N_out / G]."
)


@homework.part(2, "index by index")
def conv_loops(student, case):
    given = words(case)
    came = student.conv_loops(*given, hint=INDICES)
    judge(came, convolution(*given), wrong_convolutions(*given))


@homework.part(2, "one group and a stride")
def conv_strided(student, case):
    x, _, b, _ = words(case)
    w = case.normal(3, len(b), x.shape[1])
    I = table(len(x), len(w), stride=2)
    came = student.conv_loops(x, w, b, I, hint="Take the number of outputs from I.")
    judge(came, convolution(x, w, b, I), wrong_convolutions(x, w, b, I))


@homework.part(3, "without loops")
def conv_einsum(student, case):
    given = words(case)
    came = student.conv_einsum(*given, hint=LETTERS)
    judge(came, convolution(*given), wrong_convolutions(*given))
    x, w, b, I = given
    twice = np.concatenate([x, x]), w, b, np.concatenate([I, I])
    without_loops(student, "conv_einsum", given, twice)


@homework.part(3, "gradient")
def conv_gradient(student, case):
    judge_gradients(
        student,
        "conv_einsum",
        convolution,
        *words(case),
        of=[0, 1, 2],
        letters="xwb",
        hint=LETTERS,
        case=case,
    )


# --- tasks 4 and 5


def sentence(case):
    """x [N, N_F], w and wt [d_k, N_F], r [2R + 1, d_k], wh [d_v, N_F]."""
    N, F, dk, dv = case.size(6, 4, 7), case.size(5, 3, 6), case.size(3, 2, 4), case.size(2, 2, 4)
    x, w, wt, wh = (case.normal(*s) for s in ((N, F), (dk, F), (dk, F), (dv, F)))
    return x, w, wt, case.normal(2 * case.size(2, 1, 3) + 1, dk), wh


def rows(N, R, sign=1):
    """The row of r for each pair [N, N]: receiver i, sender j."""
    distance = np.arange(N) - np.arange(N)[:, None]
    return R + np.clip(sign * distance, -R, R)


def weights_of(x, w, wt, r):
    """a[i, j]: the weight with which i receives from j."""
    keys = x @ w.T + r[rows(len(x), len(r) // 2)]  # [N, N, d_k]
    return soft((keys * (x @ wt.T)[:, None]).sum(axis=-1) / np.sqrt(len(w)), 1)


def scores_of(x, w, wt, added):
    """Scores [N, N] with this added to the keys [N, N, d_k]."""
    return ((x @ w.T + added) * (x @ wt.T)[:, None]).sum(axis=-1)


def wrong_weights(x, w, wt, r):
    N, F = x.shape
    R, root = len(r) // 2, np.sqrt(len(w))
    there = r[rows(N, R)]
    s = scores_of(x, w, wt, there)
    alone = (x @ w[-1] + there[..., -1]) * (x @ wt[-1])[:, None]
    own = x @ w.T + there  # the key of each pair
    found = {
        "with the softmax over the receivers i: the weights of one receiver must sum to 1": soft(
            s / root, 0
        ),
        "with one softmax over all pairs: each receiver needs its own": soft(s / root, (0, 1)),
        "with sender and receiver swapped: w belongs to x_j, and wt to x_i": soft(s.T / root, 1),
        "with both swapped, so that your result is the transpose": soft(s / root, 1).T,
        "without the division by √d_k": soft(s, 1),
        "by dividing by d_k, not by its root": soft(s / len(w), 1),
        "by dividing by the root of the number of features, not of d_k = len(w)": soft(
            s / np.sqrt(F), 1
        ),
        "by dividing by the root of the number of words, not of d_k = len(w)": soft(
            s / np.sqrt(N), 1
        ),
        "without the softmax": s / root,
        "with w for both key and query: the query has its own map wt": soft(
            scores_of(x, w, w, there) / root, 1
        ),
        "with the query of the sender: the query is that of x_i, the receiver": soft(
            (own * (x @ wt.T)).sum(axis=-1) / root, 1
        ),
        "with = instead of +=, so that only the last alpha remains": soft(alone / root, 1),
        "with the same index in both brackets (beta = gamma): each bracket has its own sum": soft(
            (np.einsum("ab,jb,ab,ib->ij", w, x, wt, x) + (there * (x @ wt.T)[:, None]).sum(axis=-1))
            / root,
            1,
        ),
    }
    return found | wrong_distances(x, w, wt, r)


def wrong_distances(x, w, wt, r):
    """Slips with the distance."""
    N, R, root = len(x), len(r) // 2, np.sqrt(len(w))
    there, words = r[rows(N, R)], scores_of(x, w, wt, 0)
    distance = rows(N, N) - N  # j - i
    keys, queries = x @ w.T, x @ wt.T
    found = {
        "without the distance: r is not used": words,
        "with i - j instead of j - i: the rows before "
        "the middle belong to senders to the left of i, "
        "where j - i < 0": scores_of(x, w, wt, r[rows(N, R, -1)]),
        "without the shift by R: the middle row of r belongs to j = i": scores_of(
            x, w, wt, r[np.clip(distance, -R, R)]
        ),
        "with |j - i|: senders to the left and to the right have different rows": scores_of(
            x, w, wt, r[np.minimum(R + abs(distance), 2 * R)]
        ),
        "with r added to the query: it belongs in the bracket of the key": (
            keys * (queries[:, None] + there)
        ).sum(axis=-1),
        "with r added to key and query": ((keys + there) * (queries[:, None] + there)).sum(axis=-1),
        "with r added to the score: it belongs in the bracket of "
        "the key, before the product with the query": words + there.sum(axis=-1),
        "with r added once for every feature: add it outside the sum over beta": scores_of(
            x, w, wt, there * x.shape[1]
        ),
        "with the sum of key and query instead of their product": (
            keys + there + queries[:, None]
        ).sum(axis=-1),
        "with the distance modulo the rows of r: distant senders get the first or last row": (
            scores_of(x, w, wt, r[distance % len(r)])
        ),
        "with the product of the key and r instead of their sum": (
            keys * there * queries[:, None]
        ).sum(axis=-1),
    }
    found["with only the scores of the words divided by the root: divide both terms"] = (
        words + root * (scores_of(x, w, wt, there) - words)
    )
    found = {why: soft(s / root, 1) for why, s in found.items()}
    if (abs(distance) > R).any():
        near = np.where(abs(distance)[..., None] <= R, there, 0)
        why = (
            "with 0 for senders farther away than R: these senders get the first or the last "
            "row of r"
        )
        found[why] = soft(scores_of(x, w, wt, near) / root, 1)
    return found


PAIR = (
    "w and wt are [d_k, N_F], as in w[alpha, beta] and wt[alpha, gamma], x is [N, N_F], and r is "
    "[2R + 1, d_k]. The rows of r end at 2R, so a distance beyond R counts as R."
)


@homework.part(4, "index by index")
def weights_loops(student, case):
    given = sentence(case)[:4]
    judge(student.weights_loops(*given, hint=PAIR), weights_of(*given), wrong_weights(*given))


def attention(x, w, wt, r, wh):
    return weights_of(x, w, wt, r) @ x @ wh.T


EINSUM = (
    'Letters: w "ab", x "jb", wt "ac", x again "ic", r[d] "ija". Then the weights "ij", wh "ab". '
    "A distance beyond R counts as R."
)


@homework.part(5, "the layer")
def attention_einsum(student, case):
    *given, wh = sentence(case)
    v, a = given[0] @ wh.T, weights_of(*given)
    mistakes = {
        why: weights @ v for why, weights in wrong_weights(*given).items() if "transpose" not in why
    }
    mistakes["with a_ij summed over i: the receiver i stays, the sender j is summed"] = a.T @ v
    mistakes["without the weights, so that every word receives equally from all words"] = (
        np.broadcast_to(v.sum(axis=0), v.shape)
    )
    judge(student.attention_einsum(*given, wh, hint=EINSUM), a @ v, mistakes)
    x, *others = given
    without_loops(
        student, "attention_einsum", (x, *others, wh), (np.concatenate([x, x]), *others, wh)
    )


@homework.part(5, "gradient")
def attention_gradient(student, case):
    judge_gradients(
        student,
        "attention_einsum",
        attention,
        *sentence(case),
        letters=["x", "w", "wt", "r", "wh"],
        hint=EINSUM,
        case=case,
    )


# --- task 6


def pair_matrices(its, which, x, w, wt, r, wh, kernel, a):
    """A(i, j) of the student's for all pairs: [N, N, N_out, N_F]."""
    import numpy as np

    N = len(x)
    if which == "convolution":
        A = its.as_convolution(kernel)
    else:
        names = its.as_attention.__globals__
        kept = names.get("weights_loops")
        names["weights_loops"] = lambda *_: a  # task 4 is another task
        try:
            A = its.as_attention(x, w, wt, r, wh)
        finally:
            names["weights_loops"] = kept
    found = [[A(i, j) for j in range(N)] for i in range(N)]
    if any(matrix is None for row in found for matrix in row):
        return None
    shapes = {
        np.shape(matrix): (i, j) for i, row in enumerate(found) for j, matrix in enumerate(row)
    }
    if len(shapes) > 1:
        different = ", ".join(f"A{pair} has shape {shape}" for shape, pair in shapes.items())
        raise ValueError(f"all matrices must have the same shape, but {different}")
    return np.array([[np.asarray(matrix, float) for matrix in row] for row in found])


PAIRS = "A(i, j) must be a matrix [N_out, N_F] for every pair. w[...] has only the rows 0 … k - 1."


def _summed(student, which, given):
    came = student.ask(pair_matrices, which, *given, hint=PAIRS)
    if came is None:
        raise Diagnosis("A returned None. Is the `return` missing?", "without return")
    return came


def kernels(kernel, N, place_of):
    """A(i, j) from a kernel whose place is place_of(i, j)."""
    k, out, F = kernel.shape
    A = np.zeros((N, N, out, F))
    for i in range(N):
        for j in range(N):
            place = place_of(i, j)
            if place is not None and -k <= place < k:
                A[i, j] = kernel[place]
    return A


@homework.part(6, "a convolution")
def as_convolution(student, case):
    x, w, wt, r, wh = sentence(case)
    k = 5 if case.number == 0 else (3, 1, 5)[case.number % 3]
    kernel, N = case.normal(k, 2, x.shape[1]), len(x)
    inside = lambda place: place if 0 <= place < k else None
    right = kernels(kernel, N, lambda i, j: inside(j - i + k // 2))
    ways = {
        "with i - j instead of j - i: the kernel's first position is the word to the LEFT of "
        "i, where j - i < 0": (lambda i, j: inside(i - j + k // 2)),
        "without the shift by k // 2: the middle of the kernel belongs to j = i": (
            lambda i, j: inside(j - i)
        ),
        "where a negative index reads from the end of the kernel: words outside the window "
        "must give zeros": (lambda i, j: j - i + k // 2),
        "with |j - i|: words to the left and to the right have different matrices": lambda i, j: (
            inside(abs(j - i))
        ),
        "with j - i - k // 2: the middle of the kernel belongs to j = i": (
            lambda i, j: inside(j - i - k // 2)
        ),
    }
    mistakes = {why: kernels(kernel, N, way) for why, way in ways.items()}
    given = x, w, wt, r, wh, kernel, weights_of(x, w, wt, r)
    judge(_summed(student, "convolution", given), right, mistakes, what="as_convolution")


@homework.part(6, "attention")
def as_attention(student, case):
    x, w, wt, r, wh = sentence(case)
    a, N = weights_of(x, w, wt, r), len(x)

    def of(weights):
        return weights[:, :, None, None] * wh

    mistakes = {
        "with a[j, i]: the receiver is the first index": of(a.T),
        "without the weight a_ij": of(np.ones((N, N))),
        "with the square of the weight": of(a**2),
    }
    given = x, w, wt, r, wh, case.normal(3, 2, x.shape[1]), a
    judge(_summed(student, "attention", given), of(a), mistakes, what="as_attention")
