"""The checks of homework 04: self-attention."""

import numpy as np

from tinyattn.course.checks.judging import (
    EXACT,
    NO_RETURN,
    Diagnosis,
    Homework,
    by_formula,
    expect,
    judge,
    judge_gradients,
    number_of,
    without_loops,
)

homework = Homework("hw04")
homework.build_on(3, "softmax")
homework.build_on(4, "softmax")
homework.derive_by_hand(4)
homework.allow(6, "tinyattn.nn.Module")

WORDS = np.array([[1.0, 0, 1, 0], [0, 2, 0, 1]])  # Thinking, Machines
THINKING_MACHINES = (
    WORDS @ [[1, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 0]],
    WORDS @ [[1, 1, 0], [0, 1, 1], [2, 0, 1], [1, 1, 0]],
    WORDS @ [[2, 0, 0], [0, 1, 0], [2, 1, 1], [1, 1, 1]],
)


def soft(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def distances(T, S):
    return np.abs(np.arange(T)[:, None] - np.arange(S))


def reference(Q, K, V, slope=0.0):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    return soft(scores - slope * distances(*scores.shape[-2:])) @ V


def wrong_attentions(Q, K, V, slope=0.0):
    """What frequent slips give, by name."""
    plain = Q @ np.swapaxes(K, -1, -2)
    root, far = np.sqrt(Q.shape[-1]), slope * distances(*plain.shape[-2:])
    scores = plain / root - far
    e = np.exp(scores)
    with np.errstate(all="ignore"):
        found = {
            "without the division by √d_k": soft(plain - far) @ V,
            "by dividing by d_k, not by its square root": soft(plain / root**2 - far) @ V,
            "by multiplying with √d_k instead of dividing": soft(plain * root - far) @ V,
            "with the softmax over the wrong axis: the weights of one query must sum to 1, "
            "so normalize along the keys": soft(scores, -2) @ V,
            "with one softmax over the whole matrix: each query's row needs its own": soft(
                scores, (-2, -1)
            )
            @ V,
            "without the softmax": scores @ V,
            "without the exponential: scores divided by their sum": scores
            / scores.sum(axis=-1, keepdims=True)
            @ V,
            "with = instead of +=, so that only the last key remains": soft(scores)[..., -1:]
            * V[..., -1:, :],
            "with exp, but without dividing by the sum of the row": e @ V,
            "with the square root of the number of keys: √d_k is about the length of a key": soft(
                plain / np.sqrt(K.shape[-2]) - far
            )
            @ V,
        }
    if slope:
        found |= wrong_penalties(plain, far, root, V)
    if scores.shape[-1] == scores.shape[-2]:
        found[
            "with the weights transposed: the row is the query (receiver), the column the key"
        ] = np.swapaxes(soft(scores), -1, -2) @ V
        turned = np.swapaxes(plain, -1, -2) / root - far
        found["with the scores transposed: compute Q Kᵀ, not K Qᵀ"] = soft(turned) @ V
    return found


def _shares(e):
    return e / e.sum(axis=-1, keepdims=True)


def wrong_penalties(plain, far, root, V):
    """Slips with the distance."""
    T, S = plain.shape
    signed = far * np.sign(np.arange(T)[:, None] - np.arange(S))
    return {
        "without the distance: the slope is not used": soft(plain / root) @ V,
        "with the distance added: subtract it, because distant keys must get lower scores": soft(
            plain / root + far
        )
        @ V,
        "with the penalty inside the division by √d_k": soft((plain - far) / root) @ V,
        "with i - j instead of |i - j|: keys to the right would get higher scores": soft(
            plain / root - signed
        )
        @ V,
        "with the penalty outside of the exponential: it belongs to the scores": _shares(
            np.exp(plain / root) - far
        )
        @ V,
        "with the square of the distance instead of |i - j|": soft(
            plain / root - far * distances(T, S)
        )
        @ V,
        "with the penalty after the softmax: it belongs to the scores": (soft(plain / root) - far)
        @ V,
    }


# --- task 1

SHAPES = "Q[i] and K[j] have d_k numbers, and V[j] and Y[i] have d_v. T and S may differ."


def queries(case, T=3, S=5, dk=4, dv=2):
    T, S = case.size(T, 1, 6), case.size(S, 2, 7)
    dk, dv = case.size(dk, 2, 6), case.size(dv, 3, 6)
    return case.normal(T, dk), case.normal(S, dk), case.normal(S, dv)


@homework.part(1, "without a distance")
def loops(student, case):
    Q, K, V = queries(case) if case.number else THINKING_MACHINES
    came = student.attention_loops(Q, K, V, 0.0, hint=SHAPES)
    judge(came, reference(Q, K, V), wrong_attentions(Q, K, V))


@homework.part(1, "distant keys get less weight")
def loops_with_distance(student, case):
    Q, K, V = queries(case)
    slope = 0.5 + case.number
    came = student.attention_loops(Q, K, V, slope, hint=SHAPES)
    judge(came, reference(Q, K, V, slope), wrong_attentions(Q, K, V, slope))


# --- task 2


@homework.part(2, "softmax")
def softmax_rows(student, case):
    s = np.array([[1.0, 2, 3], [3, 0, 0]]) if case.number == 0 else case.normal(2, 5, 3)
    e = np.exp(s)
    mistakes = {
        "by dividing by the sum of all numbers, not of the row": e / e.sum(),
        "along the first axis instead of the last": e / e.sum(axis=0),
        "without dividing by the sum": np.exp(s - s.max(axis=-1, keepdims=True)),
        "without dividing by the sum of the row": e,
    }
    hint = (
        "A sum along the row must keep its axis (keepdims=True), so that it can be broadcast "
        "to the shape of s."
    )
    judge(student.softmax(s, hint=hint), soft(s), mistakes, what="softmax")


@homework.part(2, "softmax of large scores")
def softmax_of_large_scores(student, case):
    s = np.array([[1000.0, 0.0], [-1000.0, -1001.0]])
    if case.number:  # exact in float32, too
        far = np.array([[1000.0], [0.0], [-1000.0]]) * (1 + case.number)
        s = far + np.round(64 * case.normal(3, case.size(3, 2, 6))) / 64
    hint = (
        "A sum along the row must keep its axis (keepdims=True), so that it can be broadcast "
        "to the shape of s."
    )
    came = np.asarray(student.softmax(s, hint=hint))
    expect(came.dtype.kind == "f", f"softmax: floating-point numbers expected, got {came.dtype}")
    expect(
        came.dtype.kind == "f" and np.isfinite(came).all(),
        "softmax: not all numbers are finite for scores of 1000. Perhaps exp overflows, or a sum "
        "is 0: subtract the largest score of each row first",
        "without subtracting the largest score: 1000 overflows",
    )
    judge(came, soft(s), what="softmax of scores near 1000")


def leading(case, *rest):
    """Q [..., T, d_k], K [..., S, d_k], V [..., S, d_v]."""
    T, S, dk, dv = case.size(3, 2, 4), case.size(5, 2, 6), case.size(4, 2, 5), case.size(2, 2, 5)
    return [case.normal(*rest, *shape) for shape in ((T, dk), (S, dk), (S, dv))]


@homework.part(2, "attention with leading axes")
def leading_axes(student, case):
    Q, K, V = leading(case, 2) if case.number % 2 == 0 else leading(case, 2, 3)
    hint = (
        f"Q was {list(Q.shape)}, K {list(K.shape)}, V {list(V.shape)}. Perhaps K.T reverses all "
        "axes, not only the last two."
    )
    came = student.attention(Q, K, V, hint=hint)
    judge(came, reference(Q, K, V), wrong_attentions(Q, K, V))
    longer = [np.concatenate([x, x], axis=-2) for x in (Q, K, V)]
    without_loops(student, "attention", (Q, K, V), longer)


def heads_of(X, WQ, WK, WV, H):
    """The results of the heads, H times [T, D / H], and their columns."""
    dk = X.shape[1] // H
    columns = [slice(h * dk, (h + 1) * dk) for h in range(H)]
    return [reference(X @ WQ[:, c], X @ WK[:, c], X @ WV[:, c]) for c in columns], columns


def combined(X, WQ, WK, WV, WO, H):
    Z, rows = heads_of(X, WQ, WK, WV, H)
    return sum(z @ WO[r] for z, r in zip(Z, rows, strict=True))


def wrong_heads(X, WQ, WK, WV, WO, H):
    """What frequent slips give, by name."""
    Z, columns = heads_of(X, WQ, WK, WV, H)
    wide, right = np.concatenate(Z, axis=1), combined(X, WQ, WK, WV, WO, H)
    dk, turn = X.shape[1] // H, np.arange(X.shape[1]).reshape(-1, H).T.ravel()
    first = columns[0]
    alone = reference(X @ WQ[:, first], X @ WK[:, first], X @ WV[:, first]) @ WO[first]
    return {
        "without WO: multiply the concatenated heads by it": wide,
        "with every H-th column for a head: the columns of a head are adjacent": combined(
            X, WQ[:, turn], WK[:, turn], WV[:, turn], WO[turn], H
        ),
        "with the columns of WO: head h uses the same rows of WO": sum(
            z @ WO[:, c].T for z, c in zip(Z, columns, strict=True)
        ),
        "with WO transposed: its rows belong to the heads": wide @ WO.T,
        "from the mean over the heads: add their products": right / H,
        "without +=, so that only the last head remains": Z[-1] @ WO[columns[-1]],
        "from the first head only": alone,
        "where all heads use the first columns": H * alone,
        "with one head as wide as X": reference(X @ WQ, X @ WK, X @ WV) @ WO,
        "with √D instead of √d_k: a head has only D / H columns": combined(
            X, WQ / np.sqrt(X.shape[1] / dk), WK, WV, WO, H
        ),
    }


@homework.part(2, "several heads")
def several_heads(student, case):
    H, dk = (2, 2) if case.number == 0 else (case.size(2, 2, 4), case.size(2, 2, 4))
    T, D = case.size(3, 2, 5), H * dk
    given = [case.normal(T, D), *(case.normal(D, D) for _ in range(4)), H]
    hint = (
        f"X was {[T, D]}, the matrices {[D, D]}, H {H}. Head h uses columns of WQ, WK and WV, and "
        "the same rows of WO: W[:, a:b] and W[a:b]"
    )
    came = student.multi_head(*given, hint=hint)
    judge(came, combined(*given), wrong_heads(*given))


@homework.part(2, "gradient")
def gradient(student, case):
    judge_gradients(student, "attention", reference, *leading(case, 2), letters="QKV", case=case)


# --- task 3


def hidden_reference(Q, K, V, mask):
    scores = np.where(mask, Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1]), -1e30)
    weights = np.where(mask, soft(scores), 0)
    return weights @ V


def a_mask(case, T, S):
    """Every query sees at least one key, and not all."""
    if case.number == 0:
        return np.array([[1, 1, 0, 0, 0], [1, 0, 1, 0, 1], [0, 0, 0, 1, 0]], dtype=bool)
    mask = case.rng.random((T, S)) < 0.5
    mask[np.arange(T), case.rng.integers(0, S, T)] = True
    mask[0] = np.arange(S) == S - 1
    return mask


MASK_HINT = "mask is [T, S], as the scores are. A query may see any number of keys."


@homework.part(3, "mask")
def masked(student, case):
    Q, K, V = queries(case)
    some = a_mask(case, len(Q), len(K))
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    inverted = hidden_reference(Q, K, V, ~some)
    with np.errstate(all="ignore"):
        infinite = soft(np.where(~some, scores, -np.inf)) @ V
    mistakes = {
        "without using the mask": reference(Q, K, V),
        "with the mask inverted: True means that a key may be attended to": inverted,
        "with the mask inverted, and -inf: True means that a key may be attended to": infinite,
        "with the mask inverted in one of the two steps, so that no key remains": 0 * inverted,
        "by setting hidden scores to 0: exp(0) is 1, so they still get weight": soft(
            np.where(some, scores, 0)
        )
        @ V,
        "by setting hidden scores to 0 before the softmax and the weights after it: the "
        "remaining weights do not sum to 1": (soft(np.where(some, scores, 0)) * some) @ V,
        "with the mask applied only after the softmax: the remaining weights do not sum to 1": (
            soft(scores) * some
        )
        @ V,
    }
    came = student.masked_attention(Q, K, V, some, hint=MASK_HINT)
    judge(came, hidden_reference(Q, K, V, some), mistakes)


@homework.part(3, "a query without keys")
def empty_row(student, case):
    Q, K, V = queries(case)
    none = a_mask(case, len(Q), len(K))
    none[len(Q) // 2] = False
    y = np.asarray(student.masked_attention(Q, K, V, none, hint=MASK_HINT))
    expect(
        y.dtype.kind != "f" or not np.isnan(y).any(),
        "a row without keys gives nan. A softmax of only -inf is 0/0: use a large negative number "
        "that is finite, and set the weights to 0 afterwards",
        "nan in a row without keys",
    )
    right = hidden_reference(Q, K, V, none)
    mean = np.where(none.any(axis=1, keepdims=True), right, V.mean(axis=0))
    judge(y, right, {"when an empty row becomes the mean of all values instead of 0": mean})


@homework.part(3, "gradient")
def masked_gradient(student, case):
    Q, K, V = queries(case)
    none = a_mask(case, len(Q), len(K))
    none[len(Q) // 2] = False
    _, grads = student.gradients(
        "masked_attention", Q, K, V, none, of=[0, 1, 2], arriving=case.normal(len(Q), V.shape[1])
    )
    for letter, came in zip("QKV", grads, strict=True):
        expect(
            came is not None and np.isfinite(np.asarray(came, float)).all(),
            f"the gradient of {letter} has nan. A softmax of only -inf is 0/0: hide scores with a "
            "large negative number before the softmax, then np.where gives the 0 after it",
            "nan in the gradient",
        )
    judge_gradients(
        student,
        "masked_attention",
        hidden_reference,
        Q,
        K,
        V,
        none,
        of=[0, 1, 2],
        letters="QKV",
        case=case,
    )


# --- task 4


def backward(g, Q, K, V, case=None):
    """The three gradients, and those of frequent slips: {name: (gQ, gK, gV)}."""
    root = np.sqrt(Q.shape[1])
    A = soft(Q @ K.T / root)
    gA = g @ V.T
    gS = A * (gA - (gA * A).sum(axis=1, keepdims=True))

    def all_three(gS, gV=A.T @ g, root=root):
        return gS @ K / root, gS.T @ Q / root, gV

    slips = {
        "without the factor 1/√d_k: the scores are Q Kᵀ/√d_k": all_three(gS, root=1.0),
        "with the diagonal of the softmax only: every weight depends on every score of its row": (
            all_three(A * (1 - A) * gA)
        ),
        "without the sum in the softmax's rule": all_three(A * gA),
        "with the softmax's sum over the wrong axis: it runs along the row, over the keys": (
            all_three(A * (gA - (gA * A).sum(axis=0, keepdims=True)))
        ),
        "with the sum of the gradients instead of their weighted sum: Σ a_i g_i": all_three(
            A * (gA - gA.sum(axis=1, keepdims=True))
        ),
        "with the softmax's sum over all rows, although each row is its own softmax": all_three(
            A * (gA - (gA * A).sum())
        ),
        "without the factor A in front of the bracket of the softmax's rule": all_three(
            gA - (gA * A).sum(axis=1, keepdims=True)
        ),
        "without the softmax's rule: the gradient still has to pass from the weights to the "
        "scores": (all_three(gA)),
        "with the opposite sign": all_three(-gS, -A.T @ g),
        "from the scores instead of the weights": all_three(gS, (Q @ K.T / root).T @ g),
    }
    slips["with weights from scores that are not divided by √d_k"] = _unscaled(g, Q, K, V)
    return all_three(gS), slips


def _unscaled(g, Q, K, V):
    """The gradients where √d_k was forgotten inside of the softmax alone."""
    root, A = np.sqrt(Q.shape[1]), soft(Q @ K.T)
    gA = g @ V.T
    gS = A * (gA - (gA * A).sum(axis=1, keepdims=True))
    return gS @ K / root, gS.T @ Q / root, A.T @ g


def backward_part(place, letter, more):
    def part(student, case):
        Q, K, V = queries(case)
        g = case.normal(len(Q), V.shape[1])
        V = V + (1e3 if case.number else 0.0)  # it cancels in a formula, not in differences
        came = student.attention_backward(
            g, Q, K, V, hint=f"{SHAPES} A sum along the row needs keepdims=True."
        )
        expect(
            isinstance(came, tuple) and len(came) == 3,
            "return three arrays, the gradients with respect to Q, K and V, separated by commas",
        )
        right, slips = backward(g, Q, K, V)
        slips["in another order: first the gradient for Q, then for K, then for V"] = right[::-1]
        mistakes = {name: all_three[place] for name, all_three in slips.items()}
        mistakes |= more(g, Q, K, V)
        judge(came[place], right[place], mistakes, what=f"the gradient for {letter}", **EXACT)
        by_formula(student, 3 * len(Q) * len(K))

    return part


def with_V(g, Q, K, V):
    A = soft(Q @ K.T / np.sqrt(Q.shape[1]))
    wrong = {
        "for an unweighted sum: each value counts with its attention weights": np.ones_like(A).T @ g
    }
    return wrong | ({"with A instead of Aᵀ": A @ g} if len(Q) == len(K) else {})


homework.part(4, "the values")(backward_part(2, "V", with_V))
homework.part(4, "the queries")(backward_part(0, "Q", lambda *_: {}))
homework.part(4, "the keys")(backward_part(1, "K", lambda *_: {}))


# --- task 5


def gap_of(its, kind, M, X, p):
    """What equivariance_gap says about one of four layers."""
    import numpy as np

    import tinyattn as ta

    numbers = np.arange(1, X.shape[1] + 1)[:, None]
    layers = {
        "right": lambda x: ta.tensor(np.tanh(x @ M) + np.mean(x, 1, keepdims=True)),
        "numbers": lambda x: ta.tensor(np.asarray(x) * numbers),
        "turned": lambda x: ta.tensor(np.asarray(x)[:, ::-1]),
        "minus": lambda x: ta.tensor(-np.exp(np.asarray(x)) * (numbers == 1)),
    }
    return its.equivariance_gap(layers[kind], X, p)


@homework.part(5, "the test")
def gap(student, case):
    B, T, D = 2, case.size(6, 3, 8), 4
    X, M = case.normal(B, T, D), case.normal(D, D)
    p = np.array([3, 0, 5, 1, 4, 2]) if case.number == 0 else np.roll(np.arange(T), 1)
    hint = f"X is [B, T, D] = [{B}, {T}, {D}], and p numbers the tokens: axis 1."

    def ask(kind):
        came = student.ask(gap_of, kind, M, X, p, hint=hint)
        expect(
            came is not None, "equivariance_gap returned None. Is the `return` missing?", NO_RETURN
        )
        return float(number_of(came, "equivariance_gap"))

    came = ask("right")
    expect(
        came < 1e-12,
        f"your test finds a gap of {came:.1e} in a layer that has none. Do both sides use the same "
        "p, along axis 1 (the tokens, not the batch)?",
        "a test that rejects a right layer",
    )
    numbers = np.arange(1, T + 1)[:, None]
    wrong = {
        "multiplies each position by its number": ("numbers", lambda x: x * numbers),
        "reverses the sentence": ("turned", lambda x: x[:, ::-1]),
        "depends on the first position only": ("minus", lambda x: -np.exp(x) * (numbers == 1)),
    }
    for what, (kind, layer) in wrong.items():
        came, right = ask(kind), np.abs(layer(X[:, p]) - layer(X)[:, p]).max()
        expect(
            came > 1e-3,
            f"your test does not notice a layer that {what}. Compare each number of SA(PX) with "
            "P SA(X), the output of the unpermuted X, permuted afterwards",
            "a test that notices nothing",
        )
        differences = layer(X[:, p]) - layer(X)[:, p]
        mistakes = {
            "from the mean instead of the largest difference": np.abs(differences).mean(),
            "from the sum instead of the largest difference": np.abs(differences).sum(),
            "without the absolute value": differences.max(),
            "from the largest numbers of the two sides: compare them element by element "
            "first": np.abs(layer(X[:, p]).max() - layer(X).max()),
        }
        judge(came, right, mistakes, what=f"the gap of a layer that {what}")


def merged(its, z, D, heads):
    import tinyattn as ta

    return its.MendedMultiHead(D, heads, rng=1).merge(ta.tensor(z))


@homework.part(5, "merge")
def merge(student, case):
    B, H, T, dk = 2, case.size(4, 2, 5), case.size(6, 2, 5), case.size(4, 2, 5)
    z = np.arange(1.0 * B * H * T * dk).reshape(B, H, T, dk)
    came = student.ask(
        merged, z, H * dk, H, hint="z is [B, H, T, D/H], and the result is [B, T, D]."
    )
    mistakes = {
        "by a reshape alone: the first tokens then hold the tokens of head 0": z.reshape(
            B, T, H * dk
        ),
        "with the last two axes swapped too, which mixes the features of the heads": z.transpose(
            0, 2, 3, 1
        ).reshape(B, T, H * dk),
        "with the first two axes swapped, which mixes sentences and tokens": z.transpose(
            1, 0, 2, 3
        ).reshape(B, T, H * dk),
    }
    judge(came, np.concatenate([z[:, h] for h in range(H)], axis=-1), mistakes, what="merge")


# --- task 6


def placed(its, X, M, positions):
    import numpy as np

    import tinyattn as ta

    attend = lambda x: ta.tensor(np.tanh(np.asarray(x) @ M) + np.mean(np.asarray(x), 1)[:, None])
    return its.WithPositions(attend, positions)(X)


@homework.part(6, "positions")
def positions(student, case):
    T, D = case.size(6, 2, 7), 4
    X, M, vectors = case.normal(2, T, D), case.normal(D, D), case.normal(T, D)

    def attend(x):
        return np.tanh(x @ M) + x.mean(axis=1)[:, None]

    came = student.ask(placed, X, M, vectors, hint="x is [B, T, D], the positions are [T, D].")
    if came is None:
        raise Diagnosis("forward returned None. Is the `return` missing?", NO_RETURN)
    mistakes = {
        "without the positions": attend(X),
        "by adding the positions after the layer": attend(X) + vectors,
        "by adding the positions before and after the layer": attend(X + vectors) + vectors,
        "without the layer": X + vectors,
        "by multiplying with the positions": attend(X * vectors),
        "with x added again at the end: return only the result of the layer": attend(X + vectors)
        + X,
        "with the numbers 0, 1, 2, ... for the positions: add self.positions": attend(
            X + np.arange(T)[:, None]
        ),
    }
    judge(came, attend(X + vectors), mistakes)
