"""The checks of homework 08: pair features, a trained tagger, and a mask that leaks."""

import numpy as np

from tinyattn.course.checks.judging import (
    NO_RETURN,
    Homework,
    array_of,
    expect,
    judge,
    number_of,
)

homework = Homework("hw08")
SMALLEST = 1e-8
homework.allow(4, "tinyattn.functional.binary_cross_entropy_with_logits")


def soft(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# --- task 1


def jet(case):
    """pT, η, φ [N] of a jet that lies across φ = ±π."""
    if case.number == 0:
        pt, eta = np.array([120.0, 60, 31, 8, 2]), np.array([0.10, 0.15, -0.30, 0.42, 0.25])
        return pt, eta, np.array([3.10, -3.05, 2.90, -3.10, 3.10])
    N = case.size(5, 4, 8)
    away = np.sign(np.arange(N) % 2 - 0.5) * case.rng.uniform(0.05, 0.6, N)  # from φ = π
    return case.rng.uniform(1, 200, N), case.normal(N), np.angle(-np.exp(1j * away))


def four_columns(pt, eta, phi):
    """Return k_T, z, Δ, m² of all pairs [N, N, 4], and the parts of typical mistakes."""
    turn = np.exp(1j * phi)
    dphi, deta = np.angle(turn[:, None] / turn), eta[:, None] - eta
    distance, softer = np.hypot(deta, dphi), np.minimum(pt[:, None], pt)
    # cosh x - cos y = 2 sinh²(x/2) + 2 sin²(y/2)
    m2 = 4 * np.outer(pt, pt) * (np.sinh(deta / 2) ** 2 + np.sin(dphi / 2) ** 2)
    return np.stack([softer * distance, softer / (pt[:, None] + pt), distance, m2], axis=-1)


def ask_pairs(student, case):
    """The jet, and the columns of its pairs [N, N, 4]: the student's and the right ones.

    The diagonal (a particle with itself) is not compared here, because it is 0 in both.
    """
    pt, eta, phi = jet(case)
    y = array_of(student.pairs(pt, eta, phi, hint="pt[:, None] with pt gives all pairs, [N, N]."))
    N = len(pt)
    expect(
        y.shape == (N, N, 4),
        f"pairs: expected shape {(N, N, 4)}, but yours has shape {y.shape}",
        "with another shape than asked for",
    )
    right = of_pairs(np.log(four_columns(pt, eta, phi)))
    y = of_pairs(y)
    same = [[np.allclose(y[..., i], right[..., j], atol=1e-6) for j in range(4)] for i in range(4)]
    places = [row.index(True) for row in same if any(row)]  # of each column among the right ones
    expect(
        places == [0, 1, 2, 3] or sorted(places) != [0, 1, 2, 3],
        "pairs: all four are right, but in another order. Return ln kT, ln z, ln Δ, ln m²",
        "the columns are in another order",
    )
    return (pt, eta, phi), y, right


def of_pairs(values):
    """Values [N, N] or [N, N, 4] of the pairs of different particles, else 0."""
    itself = np.eye(len(values), dtype=bool)
    return np.where(itself if values.ndim == 2 else itself[..., None], 0, values)


@homework.part(1, "distance")
def pair_distance(student, case):
    (_, eta, phi), y, right = ask_pairs(student, case)
    deta, dphi = eta[:, None] - eta, phi[:, None] - phi
    with np.errstate(all="ignore"):
        mistakes = {
            "when the angles 3.10 and -3.05 count as far apart: map Δφ to -π … π first": (
                of_pairs(np.log(np.hypot(deta, dphi)))
            ),
            "from ln Δ²: the square root is missing": 2 * right[..., 2],
            "from Δη only": of_pairs(np.log(np.abs(deta))),
            "without the logarithm": of_pairs(np.exp(right[..., 2])),
        }
    judge(y[..., 2], right[..., 2], mistakes, atol=1e-6, what="ln Δ")


@homework.part(1, "kT and z")
def pair_momenta(student, case):
    (pt, eta, phi), y, right = ask_pairs(student, case)
    unwrapped = np.hypot(eta[:, None] - eta, phi[:, None] - phi)
    softer = of_pairs(np.log(np.minimum(pt[:, None], pt)))
    harder = of_pairs(np.log(np.maximum(pt[:, None], pt)))
    mistakes = {
        "from the harder of the two instead of the softer one": harder + right[..., 2],
        "from the softer pT only, without the factor Δ": softer,
        "with Δ² instead of Δ": softer + 2 * right[..., 2],
        "from a Δ whose Δφ is not in -π … π": softer + of_pairs(np.log(unwrapped)),
    }
    judge(y[..., 0], right[..., 0], mistakes, atol=1e-6, what="ln kT")
    mistakes = {
        "from the softer pT only: z is its fraction, so divide by the sum of both": softer,
        "by dividing the softer pT by the harder one instead of the sum": softer - harder,
        "for the fraction of the harder one, not of the softer one": right[..., 1]
        + harder
        - softer,
    }
    judge(y[..., 1], right[..., 1], mistakes, atol=1e-6, what="ln z")


@homework.part(1, "mass")
def pair_mass(student, case):
    (pt, eta, phi), y, right = ask_pairs(student, case)
    deta, dphi = eta[:, None] - eta, np.angle(np.exp(1j * (phi[:, None] - phi)))
    from_pt = np.log(2 * np.outer(pt, pt))
    exchanged = np.cosh(dphi) - np.cos(deta)
    with np.errstate(all="ignore"):
        mistakes = {
            "for ln m, while ln m² is twice as large": right[..., 3] / 2,
            "without the factor 2": of_pairs(right[..., 3] - np.log(2)),
            "with Δ² instead of 2 (cosh Δη - cos Δφ), which holds for small distances only": (
                of_pairs(from_pt - np.log(2) + 2 * right[..., 2])
            ),
            "with cosh Δη + cos Δφ: use the difference": (
                of_pairs(from_pt + np.log(np.cosh(deta) + np.cos(dphi)))
            ),
            "with cosh of Δφ and cos of Δη: swap the two": (
                of_pairs(np.log(np.maximum(np.exp(from_pt) * exchanged, SMALLEST)))
            ),
        }
    judge(y[..., 3], right[..., 3], mistakes, atol=1e-6, what="ln m²")


def same_direction(case):
    """A jet whose first two particles fly in the same direction."""
    pt, eta, phi = jet(case)
    eta[1], phi[1] = eta[0], phi[0]
    return pt, eta, phi


@homework.part(1, "distance 0")
def pair_of_itself(student, case):
    pt, eta, phi = same_direction(case)
    y = array_of(student.pairs(pt, eta, phi))
    expect(
        not np.isnan(y).any(),
        "pairs: the result has NaN. Did you take a root or a logarithm of a negative number?",
        "nan",
    )
    expect(
        np.isfinite(y),
        "pairs: the result is infinite. The distance of a particle from itself is 0, so take "
        "the larger of the value and SMALLEST before the logarithm",
        "infinite at distance 0",
    )
    columns = four_columns(pt, eta, phi)
    raised = np.maximum(columns, SMALLEST)
    right, softer = np.log(raised), np.minimum(pt[:, None], pt)
    early = np.log(np.maximum(softer * raised[..., 2], SMALLEST))
    for k, name in enumerate(("ln kT", "ln z", "ln Δ", "ln m²")):
        mistakes = {
            "when SMALLEST is added: that changes the others too": np.log(columns + SMALLEST)[
                ..., k
            ],
            "when the logarithm is raised to SMALLEST instead of the value before "
            "the logarithm": np.maximum(right[..., k], SMALLEST),
        }
        if k == 0:
            mistakes["from a Δ that was already raised, instead of raising kT itself"] = early
        judge(y[..., k], right[..., k], mistakes, rtol=1e-10, atol=1e-9, what=name)


# --- task 2


def one_head(case, N=5, d=4):
    """q, k, v [N, d], U [N, N], and a mask whose last one or two are padding."""
    N, d = case.size(N, 4, 8), case.size(d, 2, 6)
    mask = np.arange(N) < N - (1 if case.number == 0 else case.number % 2 + 1)
    return case.normal(3, N, d), 2 * case.normal(N, N), mask


HEAD_HINT = "q @ k.T is [N, N]: row i receives, column j sends."


@homework.part(2, "U and the scores")
def biased(student, case):
    (q, k, v), U, _ = one_head(case)
    s, root = q @ k.T, np.sqrt(q.shape[1])
    mistakes = {
        "when U is added to the weights instead of the scores before the softmax": (
            (soft(s / root) + U) @ v
        ),
        "when the scores are multiplied by U instead of adding it": soft(s / root * U) @ v,
        "when U is divided by √d, too, not only QKᵀ": soft((s + U) / root) @ v,
        "without the square root of d": soft(s + U) @ v,
        "by dividing by d instead of its square root": soft(s / root**2 + U) @ v,
        "when the softmax runs over the rows, which receive, so that a row does not sum to 1": (
            soft(s / root + U, axis=0) @ v
        ),
        "without U": soft(s / root) @ v,
        "when U is subtracted": soft(s / root - U) @ v,
        "with U transposed: row i receives": soft(s / root + U.T) @ v,
        "without the softmax": (s / root + U) @ v,
    }
    everybody = np.ones(len(q), bool)
    came = student.biased_attention(q, k, v, U, everybody, hint=HEAD_HINT)
    judge(came, soft(s / root + U) @ v, mistakes, what="without padding")


@homework.part(2, "padding")
def biased_padding(student, case):
    (q, k, v), U, mask = one_head(case)
    s = q @ k.T / np.sqrt(q.shape[1]) + U
    right, heard = soft(s[:, mask]) @ v[mask], soft(s) @ v
    y = array_of(student.biased_attention(q, k, v, U, mask, hint=HEAD_HINT))
    expect(y.shape == right.shape, f"expected shape {right.shape}, but yours has shape {y.shape}")
    same = np.allclose(y[mask], heard[mask])
    expect(
        not same or np.allclose(y[~mask], heard[~mask]),
        "with padding: you masked the rows, which receive. Mask the columns, which send",
        "rows masked instead of columns",
    )
    expect(
        not same,
        "with padding: it still sends, as if all rows were particles",
        "mask without effect",
    )
    mistakes = {
        "when the weights of padding are set to 0 after the softmax, so the rows no longer sum "
        "to 1. Mask the scores with -inf": (soft(s) * mask) @ v,
        "when the scores of padding are set to 0: exp(0) is 1, so padding still sends": (
            soft(np.where(mask, s, 0)) @ v
        ),
        "when the mask is inverted: True marks a particle": soft(s[:, ~mask]) @ v[~mask],
    }
    mistakes = {name: wrong[mask] for name, wrong in mistakes.items()}
    judge(y[mask], right[mask], mistakes, what="with padding")


@homework.part(2, "nan in U")
def biased_nan(student, case):
    (q, k, v), U, mask = one_head(case)
    right = soft((q @ k.T / np.sqrt(q.shape[1]) + U)[:, mask]) @ v[mask]
    U[:, ~mask] = np.nan
    y = array_of(student.biased_attention(q, k, v, U, mask))
    expect(y.shape == right.shape, f"expected shape {right.shape}, but yours has shape {y.shape}")
    expect(
        not np.isnan(y[mask]).any(),
        "NaN in U at the padding reaches the output, because nan - inf is nan. Choose with "
        "np.where instead of adding",
        "nan in the padding reaches the output",
    )
    judge(y[mask], right[mask], what="with nan in U of the padding")


# --- task 3


def token_and_particles(case):
    """c [1, d], x [N, d], mask [N] (the last ones are padding), and three weights [d, d]."""
    N, d = case.size(6, 4, 9), case.size(4, 2, 6)
    mask = np.arange(N) < N - 1 - case.number % 2
    return case.normal(1, d), case.normal(N, d), mask, case.normal(3, d, d)


def step(asks, heard, there, add, W):
    s = (asks @ W[0]) @ (heard @ W[1]).T / np.sqrt(asks.shape[1])
    return add + soft(np.where(there, s, -np.inf)) @ (heard @ W[2])


@homework.part(3, "the token's step")
def class_step(student, case):
    c, x, mask, W = token_and_particles(case)
    z, there = np.concatenate([c, x]), np.append(True, mask)
    everybody = np.ones(len(z), bool)
    mistakes = {
        "when the token does not attend to itself: keys and values come from [c, x]": step(
            c, x, mask, c, W
        ),
        "when the mask is shifted by one: the token comes first, so its True must also "
        "come first": step(c, z, np.append(mask, True), c, W),
        "when the token attends to padding": step(c, z, everybody, c, W),
        "when the old token is not added": step(c, z, there, 0, W),
        "when the token is last in z, although its True is first in the mask": step(
            c, np.concatenate([x, c]), there, c, W
        ),
        "without the square root of d": step(c * np.sqrt(c.shape[1]), z, there, c, W),
        "with W_q and W_k swapped": step(c, z, there, c, W[[1, 0, 2]]),
        "with z instead of z W_V": step(c, z, there, c, [*W[:2], np.eye(len(c.T))]),
        "with the keys z, without W_K": step(c, z, there, c, [W[0], np.eye(len(c.T)), W[2]]),
    }
    hint = "c is [1, d]: there is one query, so the scores are [1, N + 1]."
    judge(student.class_step(c, x, mask, *W, hint=hint), step(c, z, there, c, W), mistakes)


@homework.part(3, "no particle")
def class_step_alone(student, case):
    c, x, mask, W = token_and_particles(case)
    mistakes = {
        "when the token receives nothing: without particles it still attends to itself": c,
        "when the token attends to padding": step(
            c, np.concatenate([c, x]), np.ones(len(x) + 1, bool), c, W
        ),
    }
    came = student.class_step(c, x, mask & False, *W)
    judge(came, c + c @ W[2], mistakes, what="without any particle")


# --- task 4


def whose(y, x):
    """For each jet of y [B, ...] the jet of x with the same numbers in the same places, else -1."""
    same = [[np.array_equal(a, b) for b in x] for a in y]
    return np.array([row.index(True) if any(row) else -1 for row in same])


@homework.part(4, "the control")
def another_jet(student, case):
    B, N = case.size(5, 4, 8), case.size(3, 2, 5)
    x = case.normal(B, N, N, 4)
    y = array_of(
        student.of_another_jet(x, hint="features is [B, N, N, 4]: the first axis counts jets.")
    )
    expect(
        y.shape == x.shape,
        f"of_another_jet: expected shape {x.shape}, but yours has shape {y.shape}",
        "with another shape than asked for",
    )
    came = whose(y, x)
    expect(
        (came != np.arange(B)).all(),
        f"of_another_jet: jet {int(np.argmax(came == np.arange(B)))} keeps its own features",
        "a jet keeps its own features",
    )
    within = [
        np.array_equal(np.sort(a, axis=None), np.sort(b, axis=None))
        for a, b in zip(y, x, strict=True)
    ]
    expect(
        not any(within),
        "of_another_jet: these are the numbers of the same jet, at other particles. They still "
        "show how large the jet is and how many sprays it has, so exchange whole jets (axis 0)",
        "shuffled within the jet",
    )
    expect(
        (came >= 0).all(),
        "of_another_jet: your numbers are not those of one other jet. Keep each jet's [N, N, 4] as "
        "it is, and only give it to another jet",
        "not the features of one jet",
    )
    expect(
        len(set(came.tolist())) == B,
        "of_another_jet: some jets' features are used more than once, others never. Use each once",
        "not each jet's features once",
    )


def one_step(its, W, x, labels, lr):
    """A step of a linear layer with old gradients: the loss, and the weights after it."""
    import numpy as np

    import tinyattn.functional as F
    from tinyattn import nn, optim

    class Linear(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(len(W), 1, rng=0)

        def forward(self, x):
            return self.layer(x)[:, 0]

    model = Linear().astype(np.float64)
    model.layer.weight.data, model.layer.bias.data = W[None], np.zeros(1)
    optimizer = optim.SGD(model.parameters(), lr=lr)
    F.binary_cross_entropy_with_logits(model(x), labels).backward()
    loss = its.train_step(model, optimizer, x, labels)
    return loss, hasattr(loss, "item"), model.layer.weight.data[0], model.layer.bias.data


@homework.part(4, "the training step")
def the_step(student, case):
    B, d = case.size(6, 4, 8), case.size(3, 2, 5)
    W, x, lr = case.normal(d), case.normal(B, d), 0.1 + 0.1 * case.number
    labels = (case.rng.random(B) < 0.5).astype(float)
    value, has_item, after, bias = student.ask(one_step, W, x, labels, lr)
    expect(value is not None, "train_step returned None. Is the `return` missing?", NO_RETURN)
    expect(
        has_item,
        "train_step: return the loss itself, a Tensor, not a number",
        "a number instead of the loss",
    )
    p = 1 / (1 + np.exp(-(x @ W)))
    slope = (p - labels) @ x / B
    mistakes = {
        "when the weights did not move: is optimizer.step() missing?": W,
        "from the gradients of this step plus those of the previous step: gradients add up until "
        "optimizer.zero_grad() clears them": W - 2 * lr * slope,
        "when the step increases the loss": W + lr * slope,
    }
    judge(after, W - lr * slope, mistakes, what="train_step, the weights")
    judge(bias, -lr * np.array([(p - labels).mean()]), what="train_step, the bias")
    right = -np.log(np.where(labels > 0, p, 1 - p)).mean()
    judge(number_of(value, "the loss"), right, what="the loss that train_step returns")


# --- task 5


def light_curve(case):
    """Return times, magnitudes and which are visible, [T]. At least two are hidden."""
    if case.number == 0:
        times, m = np.array([0.0, 1, 3, 4, 8, 9]), np.array([1.0, 1.2, 0.7, 2.0, 1.1, 0.4])
        return times, m, np.array([True, False, True, True, False, True])
    T = case.size(6, 6, 10)
    visible = np.ones(T, bool)
    visible[case.rng.permutation(T)[: T // 3]] = False
    return np.cumsum(case.rng.uniform(0.3, 3, T)), 1 + case.normal(T) ** 2, visible


def leaks_of(its, kind, times, m, visible, width, gain):
    """What the student's test says of a model of this kind, and the magnitudes afterwards."""
    import numpy as np

    hidden = np.flatnonzero(~visible)

    def fair(times, m, visible):
        far = np.abs(times[:, None] - times[visible]) / width
        return gain * np.exp(-far) @ m[visible] / np.exp(-far).sum(axis=1)

    def leaking(times, m, visible):
        y = fair(times, m, visible)
        if kind == "itself":
            y[hidden] += gain * m[hidden]
        if kind == "one":
            y[hidden[1]] += m[hidden[0]]
        if kind == "a little":
            y[hidden[1]] += 1e-3 * m[hidden[0]]
        if kind == "difference":
            y[0] += m[hidden[0]] - m[hidden[1]]
        if kind == "two":
            y[hidden[0]] += m[hidden[0]]
            y[hidden[1]] -= m[hidden[0]]
        return y

    return its.leaks(leaking, times, m, visible), m


def ask_leaks(student, kind, case):
    times, m, visible = light_curve(case)
    m[np.flatnonzero(~visible)[:2]] = [(1, 0), (0, 1)][case.number % 2]
    width, gain = case.rng.uniform(0.5, 2, 2) if case.number else (1.0, 1.0)
    found, after = student.ask(leaks_of, kind, times, m, visible, width, gain)
    expect(found is not None, "leaks returned None. Is the `return` missing?", NO_RETURN)
    found = array_of(found)
    expect(
        found.shape == m.shape,
        f"leaks: expected shape {m.shape}, but yours has shape {found.shape}",
        "with another shape than asked for",
    )
    expect(
        found.dtype == bool,
        f"leaks: expected True and False, but yours has {found.dtype}",
        "not True and False",
    )
    expect(
        np.array_equal(after, m),
        "leaks: your test changed the magnitudes that it was given. Work on a copy",
        "the magnitudes are changed",
    )
    expect(
        not found[visible].any(),
        "leaks: visible magnitudes may be used. Only hidden ones can leak",
        "visible magnitudes count as leaks",
    )
    return found, np.flatnonzero(~visible)


@homework.part(5, "its own magnitude")
def leak_of_itself(student, case):
    found, hidden = ask_leaks(student, "itself", case)
    expect(
        found.any(),
        "leaks: a prediction that depends on its own hidden magnitude is not found. Compare all "
        "predictions, also the one at the index that you changed",
        "a prediction from its own magnitude is not found",
    )
    expect(
        found[hidden].all(),
        f"leaks: the hidden magnitudes {hidden.tolist()} all leak, but you found only "
        f"{np.flatnonzero(found).tolist()}. Does the loop go through all of them, and does each "
        "really change? It may be 0 or 1 already, so add something to it",
        "not all leaks are found",
    )


@homework.part(5, "another magnitude")
def leak_of_another(student, case):
    for kind, sort in (("one", "is copied"), ("a little", "is added times 0.001")):
        found, hidden = ask_leaks(student, kind, case)
        expect(
            not found[hidden[1]] or found[hidden[0]],
            "leaks: you marked the prediction that changes. Mark the magnitude that you changed",
            "marked where the prediction changes",
        )
        expect(
            found[hidden[0]],
            f"leaks: the hidden magnitude {hidden[0]} {sort} in another prediction, which is "
            "not found. Compare all predictions, without sign, and with a small tolerance",
            "a leak into another prediction is not found",
        )
        expect(
            not found[hidden[1]],
            f"leaks: only magnitude {hidden[0]} leaks, but {hidden[1]} is marked, too. Change one "
            "magnitude at a time, starting from the original ones",
            "marked although it does not leak",
        )


@homework.part(5, "both, or neither")
def leak_of_a_difference(student, case):
    found, hidden = ask_leaks(student, "two", case)
    expect(
        found[hidden[0]],
        "leaks: one prediction rises with a hidden magnitude and another falls by the same amount, "
        "so the sum of the changes is 0. Look at the largest change",
        "changes cancel",
    )
    found, hidden = ask_leaks(student, "difference", case)
    expect(
        found[hidden[:2]].all(),
        "leaks: a prediction uses the difference of two hidden magnitudes, which stays the same "
        "when both are changed equally. Change one at a time",
        "a difference is not found",
    )
    found, _ = ask_leaks(student, "none", case)
    expect(
        not found.any(),
        "leaks: for a model that uses visible magnitudes only, your test reports leaks at "
        f"{np.flatnonzero(found).tolist()}",
        "a fair model is reported to leak",
    )


# --- task 6


def near(times, m, may_attend):
    far = np.abs(times[:, None] - times)
    return 0.8 * soft(np.where(may_attend, -far, -np.inf)) @ m


@homework.part(6, "no leak")
def no_leak(student, case):
    times, m, visible = light_curve(case)
    y = array_of(student.repaired(times, m, visible))
    expect(
        y.shape == m.shape,
        f"repaired: expected shape {m.shape}, but yours has shape {y.shape}",
        "with another shape than asked for",
    )
    for t in range(len(m)):
        changed = m + (np.arange(len(m)) == t)
        gap = np.abs(array_of(student.repaired(times, changed, visible)) - y).max()
        if visible[t]:
            expect(
                gap > 1e-9,
                f"repaired: no prediction depends on the visible magnitude {t}",
                "a visible magnitude is not used",
            )
        else:
            expect(
                gap <= 1e-9,
                f"repaired: the hidden magnitude {t} still changes a prediction",
                "still leaks",
            )
    everything = np.ones(len(m), bool)
    came = student.repaired(times, m, everything)
    right = near(times, m - m.mean(), True) + m.mean()
    judge(came, right, what="repaired, where all magnitudes are visible and nothing was wrong")


@homework.part(6, "the same formula")
def same_formula(student, case):
    times, m, visible = light_curve(case)
    mean, seen = m.mean(), m[visible].mean()
    columns, itself = np.tile(visible, (len(m), 1)), np.eye(len(m), dtype=bool)
    rows = columns.T | itself
    mistakes = {
        "when the mean still counts the hidden ones": near(times, m - mean, columns) + mean,
        "when only the mean is repaired: the mask still hides rows, which receive, and must hide "
        "columns, which send": near(times, m - seen, rows) + seen,
        "when each observation still attends to itself, also if it is hidden": (
            near(times, m - seen, columns | itself) + seen
        ),
        "when hidden magnitudes are set to 0, but still send: 0 is a magnitude, too": (
            near(times, np.where(visible, m - seen, 0), True) + seen
        ),
        "without the mean that is added at the end": near(times, m - seen, columns),
        "when the mean is not subtracted first": near(times, m, columns) + seen,
        "without the mean: subtract it first, and add it at the end": near(times, m, columns),
        "when no observation attends to itself: a visible one may": near(
            times, m - seen, columns & ~itself
        )
        + seen,
        "when the mean divides by the number of all": near(
            times, m - np.where(visible, m, 0).mean(), columns
        )
        + np.where(visible, m, 0).mean(),
        "for the unrepaired function": near(times, m - mean, rows) + mean,
    }
    came = student.repaired(times, m, visible)
    judge(came, near(times, m - seen, columns) + seen, mistakes, what="repaired")
