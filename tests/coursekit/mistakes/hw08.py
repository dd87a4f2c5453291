"""Wrong answers to homework 08, and what its checks must say about them."""

DPHI = "dphi = (phi[:, None] - phi + np.pi) % (2 * np.pi) - np.pi"
DISTANCE = "distance = np.sqrt(deta**2 + dphi**2)"
SOFTER = "softer = np.minimum(pt[:, None], pt)"
Z = "z = softer / (pt[:, None] + pt)"
M2 = "m2 = 2 * pt[:, None] * pt * (np.cosh(deta) - np.cos(dphi))"
COLUMNS = "columns = np.stack([softer * distance, z, distance, m2], axis=-1)"
LOG = "return np.log(np.maximum(columns, SMALLEST))"
SCORES = "scores = q @ k.T / np.sqrt(q.shape[-1]) + U"
MASKED = "scores = np.where(mask, scores, -np.inf)"
BIASED = "return softmax(scores) @ v"
TOKENS = "z = np.concatenate([c, x])"
THERE = "there = np.concatenate([[True], mask])"
HEARD = "a = softmax(np.where(there, scores, -np.inf))"
STEP = "return c + a @ (z @ W_v)"
COPY = "changed = magnitudes.copy()"
CHANGE = "changed[t] += 1"
FOUND = "found[t] = np.abs(array(model(times, changed, visible)) - before).max() > 1e-9"
HIDDEN = "for t in np.flatnonzero(~visible):"
MEAN = "mean = m[visible].mean()"
ATTEND = "may_attend = np.broadcast_to(visible, (len(m), len(m)))"
ROLL = "return np.roll(features, 1, axis=0)"
NEAR = "return near_in_time(times, np.where(visible, m - mean, 0), may_attend) + mean"

MISTAKES = [  # right, wrong, what the check must say about it
    (DPHI, "dphi = phi[:, None] - phi", "from a Δ whose"),
    (DPHI, "dphi = phi[:, None] - phi", "map Δφ to"),
    (DISTANCE, DISTANCE.replace("np.sqrt", ""), "the square root is missing"),
    (DISTANCE, "distance = np.abs(deta)", "from Δη only"),
    (LOG, "return np.maximum(columns, SMALLEST)", "without the logarithm"),
    (LOG, LOG.replace("return ", ""), "Is the `return` missing?"),
    (LOG, "return np.log(columns)", "pairs: the result is infinite"),
    (LOG, "return np.log(columns + SMALLEST)", "when SMALLEST is added"),
    (
        LOG,
        "return np.maximum(np.log(columns), SMALLEST)",
        "instead of the value before the logarithm",
    ),
    (COLUMNS, COLUMNS.replace("axis=-1", "axis=0"), "pairs: expected shape"),
    (
        COLUMNS,
        "distance = np.maximum(distance, SMALLEST)\n    " + COLUMNS,
        "instead of raising kT itself",
    ),
    (COLUMNS, COLUMNS.replace("softer * distance", "softer"), "without the factor Δ"),
    (COLUMNS, COLUMNS.replace("softer * ", "np.maximum(pt[:, None], pt) * "), "the softer one"),
    (Z, "z = softer", "divide by the sum of both"),
    (Z, "z = softer / np.maximum(pt[:, None], pt)", "dividing the softer pT by the harder one"),
    (M2, M2.replace("2 * pt", "pt"), "without the factor 2"),
    (M2, M2.replace("(np.cosh(deta) - np.cos(dphi))", "distance**2 / 2"), "small distances only"),
    (M2, M2.replace(" - np.cos", " + np.cos"), "use the difference"),
    (M2, M2.replace("cosh(deta) - np.cos(dphi)", "cosh(dphi) - np.cos(deta)"), "swap the two"),
    (COLUMNS, "columns = np.stack([distance, softer * distance, z, m2], axis=-1)", "another order"),
    (M2, M2 + "\n    m2 = np.sqrt(np.maximum(m2, 0))", "ln m² is twice as large"),
    (SCORES, SCORES.replace(" + U", ""), "without U"),
    (SCORES, SCORES.replace("+ U", "* U"), "multiplied by U instead of adding it"),
    (SCORES, SCORES.replace("+ U", "+ U.T"), "U transposed"),
    (SCORES, "scores = (q @ k.T + U) / np.sqrt(q.shape[-1])", "not only QKᵀ"),
    (SCORES, "scores = q @ k.T + U", "without the square root of d"),
    (SCORES, SCORES.replace("np.sqrt(q.shape[-1])", "q.shape[-1]"), "instead of its square root"),
    (BIASED, "return softmax(scores, axis=0) @ v", "so that a row does not sum to 1"),
    (BIASED, "return (softmax(scores - U) + U) @ v", "instead of the scores before the softmax"),
    (MASKED, "", "it still sends"),
    (MASKED, MASKED.replace("mask,", "mask[:, None],"), "you masked the rows, which receive"),
    (MASKED, "scores = scores + np.where(mask, 0, -np.inf)", "NaN in U at the padding"),
    (MASKED, MASKED.replace("-np.inf", "0"), "exp(0) is 1"),
    (MASKED + "\n    " + BIASED, "return (softmax(scores) * mask) @ v", "no longer sum to 1"),
    (TOKENS, "z, mask = x, mask[1:]", "the token does not attend to itself"),
    (THERE, "there = np.concatenate([mask, [True]])", "shifted by one"),
    (TOKENS, "z = np.concatenate([x, c])", "the token is last in z"),
    (HEARD, "a = softmax(scores)", "the token attends to padding"),
    (STEP, STEP.replace("c + ", ""), "the old token is not added"),
    (STEP, "return c + a @ z", "instead of z W_V"),
    (ROLL, "return features", "keeps its own features"),
    (ROLL, "return np.roll(features, 1, axis=1)", "the numbers of the same jet"),
    (ROLL, "return np.repeat(features[:1], len(features), axis=0)", "keeps its own features"),
    (ROLL, "return np.roll(features, 1)", "not those of one other jet"),
    (ROLL, "return features[[1, 0] + [0] * (len(features) - 2)]", "Use each once"),
    (ROLL, "return np.roll(features, 1, axis=0)[..., 0]", "of_another_jet: expected shape"),
    ("optimizer.zero_grad()", "pass", "optimizer.zero_grad() clears them"),
    ("optimizer.step()", "pass", "is optimizer.step() missing"),
    ("loss.backward()", "(-loss).backward()", "the step increases the loss"),
    ("return loss", "return loss.item()", "not a number"),
    ("    return loss", "", "train_step returned None"),
    (COPY, "changed = magnitudes", "read-only"),
    (HIDDEN, "for t in range(len(times)):", "visible magnitudes may be used"),
    (HIDDEN, "for t in np.flatnonzero(~visible)[:1]:", "go through all of them"),
    (CHANGE, "changed[~visible] += 1", "Change one"),
    (
        FOUND,
        "found |= np.abs(array(model(times, changed, visible)) - before) > 1e-9",
        "you marked the prediction that changes",
    ),
    (FOUND, FOUND.replace("1e-9", "0.1"), "with a small tolerance"),
    (
        FOUND,
        "gap = np.abs(array(model(times, changed, visible)) - before)\n        gap[t] = 0\n"
        "        found[t] = gap.max() > 1e-9",
        "also the one at the index that you changed",
    ),
    ("return found", "return found.astype(int)", "expected True and False"),
    (MEAN, "mean = m.mean()", "the mean still counts the hidden ones"),
    (MEAN, "mean = np.where(visible, m, 0).mean()", "the number of all"),
    (ATTEND, ATTEND.replace("visible,", "True,"), "0 is a magnitude, too"),
    (
        NEAR,
        "may_attend = may_attend.T | np.eye(len(m), dtype=bool)\n"
        "    return near_in_time(times, m - mean, may_attend) + mean",
        "only the mean is repaired",
    ),
    (
        NEAR,
        "may_attend = may_attend | np.eye(len(m), dtype=bool)\n"
        "    return near_in_time(times, m - mean, may_attend) + mean",
        "each observation still attends to itself",
    ),
    (NEAR, NEAR.replace(" + mean", ""), "without the mean that is added"),
    (NEAR, NEAR.replace("m - mean", "m"), "the mean is not subtracted first"),
    (NEAR, "return colleague(times, m, visible)", "for the unrepaired function"),
    (NEAR, "return np.full(len(m), mean)", "largest difference is at index"),
    ("changed[t] += 1", "changed[t] = 1", "add something to it"),
    ("changed[t] += 1", "changed[t] = 0", "add something to it"),
    ("changed[t] += 1", "changed[t] *= 2", "add something to it"),
    (
        "np.abs(array(model(times, changed, visible)) - before).max() > 1e-9",
        "np.abs(np.sum(array(model(times, changed, visible)) - before)) > 1e-9",
        "Look at the largest change",
    ),
    ("mean = m[visible].mean()", "mean = 0.0", "without the mean"),
]

RIGHT = [  # the sample's way, another one that is right too
    (DPHI, "dphi = np.arctan2(np.sin(phi[:, None] - phi), np.cos(phi[:, None] - phi))"),
    (SCORES, 'scores = np.einsum("nd,md->nm", q, k) / q.shape[1] ** 0.5 + U'),
    (HEARD, "a = softmax(np.where(there, scores, -1e30))"),
    (CHANGE, "changed[t] = -7.5 - 2 * changed[t]"),
]

PAIRS = "ta.models.particle_transformer.pair_features"
ATTENTION = "ta.functional.scaled_dot_product_attention"
LIBRARY = [  # right, the library's function in its place
    (LOG, f"return {PAIRS}(deta, dphi)"),
    (BIASED, f"return {ATTENTION}(q, k, v, mask=U)"),
    (STEP, f"return c + {ATTENTION}(c @ W_q, z @ W_k, z @ W_v)"),
]
