"""The checks of homework 02: attention in a captioner."""

import numpy as np

from tinyattn.course.checks.judging import (
    Homework,
    array_of,
    expect,
    judge,
    judge_gradients,
    slopes,
)

homework = Homework("hw02")
homework.build_on(3, "score", "weights")


def given(case):
    """h [B, H], z [B, R, D], W, b, U, v of the score, and g [H] of the gate."""
    B, R, D = case.size(2, 1, 3), case.size(5, 2, 6), case.size(3, 2, 4)
    H, K = case.size(4, 2, 5), case.size(6, 3, 6)
    return (
        case.normal(B, H),
        case.normal(B, R, D),
        case.normal(H, K),
        case.normal(K),
        case.normal(D, K),
        case.normal(K),
        case.normal(H),
    )


def soft(e, axis=1):
    p = np.exp(e - e.max(axis=axis, keepdims=True))
    return p / p.sum(axis=axis, keepdims=True)


def score_of(h, z, W, b, U, v):
    """By loops over images and regions."""
    rows = [
        [np.tanh(h[n] @ W + b + z[n, j] @ U) @ v for j in range(z.shape[1])] for n in range(len(h))
    ]
    return np.array(rows)


# --- task 1

STATE = "h @ W is [B, K] and z @ U is [B, R, K]. Give the first an axis for the regions, [:, None]."


@homework.part(1, "the score")
def score(student, case):
    h, z, W, b, U, v, _ = given(case)
    state, region = (h @ W)[:, None], z @ U
    mistakes = {
        "without the bias b": np.tanh(state + region) @ v,
        "without tanh": (state + b + region) @ v,
        "without the state: the score depends on the regions only": (
            np.broadcast_to(np.tanh(b + region) @ v, region.shape[:2])
        ),
        "without the state and with b twice: the score depends on the regions only": np.tanh(
            2 * b + region
        )
        @ v,
        "with a tanh around each of the two parts instead of around their sum": (
            np.tanh(state + b) + np.tanh(region)
        )
        @ v,
        "before the product with v: return one number for each region": np.tanh(state + b + region),
        "with the product of state and region instead of their sum": np.tanh((state + b) * region)
        @ v,
        "with the tanh after the product with v: apply it before": np.tanh(
            (state + b + region) @ v
        ),
        "without v: it is a weighted sum with the weights v, not a plain sum": np.tanh(
            state + b + region
        ).sum(axis=2),
        "with b added twice: add it once": np.tanh(state + 2 * b + region) @ v,
        "with v inside the tanh": np.tanh((state + b + region) * v).sum(axis=2),
    }
    right = score_of(h, z, W, b, U, v)
    judge(student.score(h, z, W, b, U, v, hint=STATE), right, mistakes, what="score")


@homework.part(1, "gradient")
def score_gradient(student, case):
    inputs = given(case)[:6]
    judge_gradients(student, "score", score_of, *inputs, letters="hzWbUv", hint=STATE, case=case)


# --- task 2

KEEP = "Keep the axis of the regions in the sum: keepdims=True."


@homework.part(2, "the weights")
def weights(student, case):
    e = case.normal(case.size(2, 2, 4), case.size(5, 2, 6))
    p, top = np.exp(e), np.exp(e - e.max(axis=1, keepdims=True))
    mistakes = {
        "over the images (axis 0): the weights of each image must sum to 1": p / p.sum(axis=0),
        "with a softmax over all images and regions: the weights of each image must sum to 1": p
        / p.sum(),
        "over the images (axis 0), after the largest of each image was subtracted": top
        / top.sum(axis=0),
        "over everything, after the largest of each image was subtracted": top / top.sum(),
        "from a sigmoid of each score: they need not sum to 1": 1 / (1 + np.exp(-e)),
        "without dividing by the sum": p,
        "without dividing by the sum, after the largest was subtracted": top,
        "from the scores themselves, without exp": e / e.sum(axis=1, keepdims=True),
    }
    judge(student.weights(e, hint=KEEP), soft(e), mistakes, what="weights")


@homework.part(2, "large scores")
def large_scores(student, case):
    e = case.normal(2, case.size(5, 2, 6))
    apart = e + np.array([[0.0], [-2000.0]])
    wide = 1500.0 * np.arange(e.shape[1]) + e
    for shifted, why in (
        (e + 1000, "with 1000 added to all scores. Subtract the largest score of each image"),
        (e - 1000, "with 1000 subtracted from all. Subtract the largest score of each image"),
        (
            apart,
            "with a second image whose scores are near -2000. Subtract the largest score of "
            "each image, not of all images",
        ),
        (
            wide,
            "with scores of one image that are 1500 apart. Subtract the largest: with any "
            "smaller number exp can still overflow",
        ),
    ):
        came = array_of(student.weights(shifted, hint=KEEP))
        expect(
            np.isfinite(came.astype(float)),
            f"weights: there is NaN or infinity {why}",
            "large scores overflow",
        )
        judge(came, soft(shifted), what=f"weights, {why}")


# --- task 3


def gate_of(h, g):
    return 1 / (1 + np.exp(-(h @ g)))


def context(h, z, W, b, U, v, g):
    a = soft(score_of(h, z, W, b, U, v))
    return gate_of(h, g)[:, None] * np.einsum("br,brd->bd", a, z)


LOOK = "Weights are [B, R] and regions [B, R, D]. The gate is one number for each image, [B]."


def _look(student, *inputs):
    found = student.look(*inputs, hint=LOOK)
    expect(
        isinstance(found, tuple) and len(found) == 2,
        "look: return two things, the context and the weights",
        "not two things",
    )
    return found


@homework.part(3, "the context")
def look(student, case):
    inputs = h, z, W, b, U, v, g = given(case)
    e = score_of(h, z, W, b, U, v)
    a, gate = soft(e), gate_of(h, g)[:, None]
    weighted = a[:, :, None] * z
    mistakes = {
        "without the gate": weighted.sum(axis=1),
        "with a tanh as the gate: σ is the sigmoid": np.tanh(h @ g)[:, None] * weighted.sum(axis=1),
        "with the wrong sign in the gate: σ(s) = 1 / (1 + exp(-s))": (1 - gate)
        * weighted.sum(axis=1),
        "with only the region of the largest weight: sum over all regions, with their weights": gate
        * z[np.arange(len(z)), a.argmax(axis=1)],
        "with a gate that has no sigmoid": (h @ g)[:, None] * weighted.sum(axis=1),
        "before the sum over the regions": gate[:, :, None] * weighted,
        "before the sum over the regions, without the gate": weighted,
        "with the weights of every image applied to every image: a @ z combines all pairs": a @ z,
        "with a mean instead of a sum: do not divide by the number of regions": gate
        * weighted.mean(axis=1),
        "without the weights, as the plain sum of the regions": gate * z.sum(axis=1),
        "without the weights, as the mean of the regions": gate * z.mean(axis=1),
        "with the scores instead of the weights": gate * np.einsum("br,brd->bd", e, z),
        "with the weights of the first image for all": gate * np.einsum("r,brd->bd", a[0], z),
        "with the weights first: return the context first, then the weights": a,
    }
    judge(_look(student, *inputs)[0], context(*inputs), mistakes, what="look")


@homework.part(3, "the weights")
def look_weights(student, case):
    inputs = given(case)
    a, gate = soft(score_of(*inputs[:6])), gate_of(inputs[0], inputs[6])[:, None]
    mistakes = {"with the gate in them: the weights sum to 1": gate * a}
    judge(_look(student, *inputs)[1], a, mistakes, what="the weights")


def look_gradients(its, inputs, arriving):
    import numpy as np

    import tinyattn as ta

    tensors = [ta.tensor(np.array(x), requires_grad=True) for x in inputs]
    c = its.look(*tensors)[0]
    if not isinstance(c, ta.Tensor) or not c.requires_grad:
        return None
    c.backward(arriving)
    return [t.grad for t in tensors]


@homework.part(3, "gradient")
def look_gradient(student, case):
    inputs = given(case)
    arriving = case.normal(*context(*inputs).shape)
    grads = student.ask(look_gradients, list(inputs), arriving, hint=LOOK)
    expect(
        grads is not None,
        "look: the gradient does not reach the inputs. Use NumPy functions on the arguments "
        "themselves, not .numpy() or np.asarray",
        "when the gradient is lost on the way",
    )
    for i, (letter, came) in enumerate(zip("hzWbUvg", grads, strict=True)):
        expect(came is not None, f"look: no gradient arrives at {letter}")
        right = slopes(context, inputs, i, arriving)
        judge(
            came, right, what=f"look, the gradient with respect to {letter}", rtol=1e-4, atol=1e-6
        )


# --- task 4


@homework.part(4, "the penalty")
def doubly_stochastic(student, case):
    a, keep = _captions(case)
    B = len(a)
    there = a * keep[:, :, None]
    seen, other, n = there.sum(axis=1), there.sum(axis=2), keep.sum(axis=1)[:, None]
    mistakes = {
        "when padding is counted as well": np.mean((1 - a.sum(axis=1)) ** 2),
        "with a sum over the regions: for each word they sum to 1 anyway. Sum over the words": (
            np.mean((1 - other) ** 2)
        ),
        "without dividing by B R": np.sum((1 - seen) ** 2),
        "without the square": np.mean(1 - seen),
        "with the square of the sum, which is not subtracted from 1": np.mean(seen**2),
        "dividing by B only": np.sum((1 - seen) ** 2) / B,
        "with the mean over the words instead of the sum": np.mean((1 - seen / n) ** 2),
        "before the last mean: return one number": (1 - seen) ** 2,
        "as one number for each image: take the mean over the images, too": np.mean(
            (1 - seen) ** 2, axis=1
        ),
        "with the square of the mean: first the square, then the mean": np.mean(1 - seen) ** 2,
        "with absolute values: square the difference from 1": np.mean(np.abs(1 - seen)),
        "with `keep` inverted: True marks a word": np.mean(
            (1 - (a * ~keep[:, :, None]).sum(axis=1)) ** 2
        ),
        "with a mean over all T words instead of the sum": np.mean((1 - seen / a.shape[1]) ** 2),
    }
    judge(_penalty(student, a, keep), np.mean((1 - seen) ** 2), mistakes, what="doubly_stochastic")


@homework.part(4, "padding that is nan")
def nan_in_the_padding(student, case):
    a, keep = _captions(case)
    seen = (a * keep[:, :, None]).sum(axis=1)
    a[~keep] = np.nan
    came = array_of(_penalty(student, a, keep))
    expect(
        np.isfinite(came.astype(float)),
        "doubly_stochastic: NaN in the padding reaches the result, because NaN · 0 is NaN. "
        "Select the words with np.where",
        "NaN in the padding reaches the result",
    )
    judge(came, np.mean((1 - seen) ** 2), what="doubly_stochastic")


def _penalty(student, a, keep):
    hint = "keep is [B, T] and a is [B, T, R]. Give keep an axis for the regions, [:, :, None]."
    return student.doubly_stochastic(a, keep, hint=hint)


def _captions(case):
    T, R = case.size(4, 3, 6), case.size(3, 2, 5)
    keep = np.arange(T) < np.array([[T], [T // 2]])
    return case.rng.uniform(size=(2, T, R)), keep


# --- task 5


@homework.part(5, "the weight on the named region")
def named(student, case):
    a = case.rng.dirichlet(np.ones(4), size=(2, 3))
    cells = np.array([[0, 2, -1], [3, -1, -1]])
    if case.number:
        cells = case.rng.integers(-1, 4, (2, 3))
        cells[0, 0], cells[1] = case.rng.integers(0, 4), [-1, 2, -1]
    hint = "np.nonzero(cells >= 0) returns the indices n, t of all words that name a region."
    picked = np.take_along_axis(a, cells[:, :, None], axis=2)[:, :, 0]
    there = cells >= 0
    zeroed = np.where(there, picked, 0)
    right = [a[n, t, cells[n, t]] for n in range(2) for t in range(3) if there[n, t]]
    mistakes = {
        "with -1 as a region: as an index, -1 silently selects the last region": picked.mean(),
        "with 0 for the other words: divide only by the number of words that name a region": (
            zeroed.mean()
        ),
        "as a sum instead of a mean": zeroed.sum(),
        "as the mean of the means of the captions: every word counts once": np.mean(
            zeroed.sum(axis=1) / there.sum(axis=1)
        ),
        "from the largest weight, regardless of its region": a.max(axis=2)[there].mean(),
        "for each word separately: return one number": picked[there],
        "without the words that name region 0: it is a region, too, and -1 is not": picked[
            cells > 0
        ].mean(),
        "with cells != 0: region 0 is a region, and -1 is not": picked[cells != 0].mean(),
        "as the fraction of words with the largest weight there: the weight itself is needed": (
            (a.argmax(axis=2) == cells)[there].mean()
        ),
    }
    came = student.weight_on_the_named(a, cells, hint=hint)
    judge(came, np.mean(right), mistakes, what="weight_on_the_named")


# --- task 6

PAST = "past is [B, R] and w is [K]. Give past an axis for the K units, [:, :, None]."


def score_from_past(past, z, w, b, U, v):
    """By loops over images and regions."""
    B, R = past.shape
    rows = [[np.tanh(past[n, j] * w + b + z[n, j] @ U) @ v for j in range(R)] for n in range(B)]
    return np.array(rows)


def given_past(case):
    """past [B, R], z [B, R, D], w, b, U, v of the score without the state."""
    _, z, _, b, U, v, _ = given(case)
    return case.rng.uniform(0, 2, z.shape[:2]), z, case.normal(len(b)), b, U, v


@homework.part(6, "the score without the state")
def score_by_past(student, case):
    inputs = past, z, w, b, U, v = given_past(case)
    own, region = past[:, :, None] * w, z @ U
    total = past.sum(axis=1)[:, None, None] * w
    mistakes = {
        "without the past weights: the score depends on the features only": np.tanh(b + region) @ v,
        "without the features of the regions": np.tanh(own + b) @ v,
        "without the bias b": np.tanh(own + region) @ v,
        "without tanh": (own + b + region) @ v,
        "with the sum over all regions: each region has its own past weight": np.tanh(
            total + b + region
        )
        @ v,
        "with the past weights outside the tanh": np.tanh(b + region) @ v + past,
        "with the product of past weights and features instead of their sum": np.tanh(
            own * region + b
        )
        @ v,
        "before the product with v: return one number for each region": np.tanh(own + b + region),
        "without v: it is a weighted sum with the weights v, not a plain sum": np.tanh(
            own + b + region
        ).sum(axis=2),
    }
    right = score_from_past(*inputs)
    judge(student.score_by_past(*inputs, hint=PAST), right, mistakes, what="score_by_past")


@homework.part(6, "gradient")
def score_by_past_gradient(student, case):
    judge_gradients(
        student,
        "score_by_past",
        score_from_past,
        *given_past(case),
        letters=("past", "z", "w", "b", "U", "v"),
        hint=PAST,
        case=case,
    )
