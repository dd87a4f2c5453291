"""Wrong answers to homework 12, and what its checks must say about them."""

CHARGE = "return np.square(np.arctanh(np.clip(beta, 0, HIGHEST))) + q_min"
BOWL = "return q * np.sum(np.square(x - c), axis=1)"
APART = "apart = array(d2) > 0"
CONE = "return q * np.maximum(0, 1 - d)"
ALPHA = "alpha = np.flatnonzero(mine)[np.argmax(array(q)[mine])]"
V = "V = np.where(mine, attraction(x, x[alpha], q[alpha]), repulsion(x, x[alpha], q[alpha]))"
SUM = "total = total + np.sum(q * V)"
MEAN = "return total / len(truth)"
AFTER = "after = terms(*(np.concatenate([a, a[which]]) for a in (beta, x, truth, L)))"
FACTORS = "return {name: after[name] / before[name] for name in before}"
POTENTIALS = '"potentials": float(array(potential_loss(beta, x, truth))),\n        "objects"'
NOISE = "np.sum(beta[noise]) / max(np.sum(noise), 1)"
PROPERTIES = "/ max(np.sum(weight[~noise]), 1e-12)"

ORDER = 'for i in np.argsort(-beta, kind="stable"):'
CLAIM = "if beta[i] > t_beta and found[i] < 0:"
NEAR = "near = np.linalg.norm(x - x[i], axis=1) <= t_d"
FREE = "found[near & (found < 0)] = number"
EMPTY = "found, number = np.full(len(beta), -1), 0"
WEIGHT = "weight = charge(beta, 0)[hits]"
L_BETA = "L_beta = np.mean(1 - beta[np.array(alpha)]) + np.mean(beta[noise])"
WHOLE = "return potential_loss(beta, x, truth) + L_beta + np.sum(weight * L[hits]) / np.sum(weight)"
L_P = " + np.sum(weight * L[hits]) / np.sum(weight)"

MISTAKES = [  # right, wrong, what the check must say about it
    (CHARGE, CHARGE.replace("return ", ""), "Is the `return` missing?"),
    (CHARGE, CHARGE.replace("np.square(", "("), "arctanh without the square"),
    (CHARGE, CHARGE.replace("arctanh", "arctan"), "the formula has arctanh"),
    (CHARGE, CHARGE.replace("arctanh", "tanh"), "its inverse, arctanh"),
    (CHARGE, CHARGE.replace(" + q_min", ""), "without q_min"),
    (CHARGE, CHARGE.replace("q_min", "0.1"), "instead of the argument q_min"),
    (CHARGE, "return np.square(np.arctanh(beta)) + q_min", "Limit β to at most HIGHEST"),
    (CHARGE, CHARGE.replace("beta,", "array(beta),"), "the gradient does not reach"),
    (BOWL, "return q * np.sqrt(np.sum(np.square(x - c), axis=1))", "square it"),
    (BOWL, "return np.sum(np.square(x - c), axis=1)", "the charge q is missing"),
    (BOWL, "return q * np.sum(np.square(x - c))", "one number for each point"),
    (CONE, "return q * (1 - d)", "without the maximum"),
    (CONE, "return q * np.maximum(0, 1 - d2)", "the cone is linear"),
    (CONE, "return q * np.maximum(0, 1 - d) ** 2", "the cone is linear"),
    (CONE, "return np.maximum(0, 1 - d)", "without the charge q"),
    (APART, "apart = array(d2) > -1", "The square root has no"),
    (CONE, "return q * np.maximum(0, 1 - array(d))", "the gradient does not reach"),
    (MEAN, "return total", "without dividing by N"),
    (MEAN, "return total / np.sum(truth >= 0)", "N counts the noise too"),
    (MEAN, "return total / len(truth) / len(np.unique(truth[truth >= 0]))", "instead of a sum"),
    (MEAN, "return total / len(np.unique(truth[truth >= 0]))", "by dividing by K"),
    (ALPHA, ALPHA.replace("argmax", "argmin"), "the point with the lowest charge"),
    (SUM, "total = total + np.sum(V)", "proportional to its own charge"),
    (SUM, "total = total + np.sum((q * V)[truth >= 0])", "when noise is not repelled"),
    (
        V,
        "V = repulsion(x, x[alpha], q[alpha]) + mine * attraction(x, x[alpha], q[alpha])",
        "repel their own points",
    ),
    (ALPHA, "alpha = np.argmax(array(q)[mine])", "used as a row of the event"),
    (ALPHA, "alpha = np.argmax(array(q))", "one condensation point for all objects"),
    (ALPHA, "alpha = np.flatnonzero(mine)[0]", "the first point of each object"),
    (SUM, "total = total + np.sum(array(q * V))", "the gradient does not reach"),
    (SUM, "total = total + np.sum(array(q) * V)", "when the charges q_j of the points"),
    (V, V.replace("q[alpha]", "array(q)[alpha]"), "when the charges of the condensation points"),
    (V, V.replace("x[alpha]", "np.mean(x[mine], axis=0)"), "the mean position of an object"),
    ("q, total = charge(beta, q_min), 0.0", "q, total = charge(beta, 0.0), 0.0", "without q_min"),
    ("q, total = charge(beta, q_min), 0.0", "q, total = charge(beta), 0.0", "pass q_min to charge"),
    (
        "truth == k\n        alpha",
        "truth == k\n        q = array(q)\n        alpha",
        "the gradient does not reach",
    ),
    (
        "np.unique(truth[truth >= 0]):\n        mine",
        "np.unique(truth):\n        mine",
        "noise is treated as an object",
    ),
    (
        FACTORS,
        FACTORS.replace("after[name] / before[name]", "before[name] / after[name]"),
        "not before / after",
    ),
    (AFTER, "after = terms(beta, x, truth, L)", "did not grow"),
    (AFTER, AFTER.replace("a[which]", "a"), "Is `which` used?"),
    (
        POTENTIALS,
        POTENTIALS.replace(",\n", " * N / K,\n").replace(" * N / K", " * len(truth) / 3"),
        "L_V is a mean over the N points",
    ),
    (NOISE, "np.sum(beta[noise]) / len(truth)", "N_B counts the noise only"),
    (NOISE, "np.sum(beta[noise]) / np.sum(noise)", "0 / 0 should give 0"),
    (PROPERTIES, "/ np.sum(weight)", "both are without noise"),
    (PROPERTIES, "/ np.sum(~noise)", "both are without noise"),
    (CHARGE, CHARGE.replace("+ q_min", "* q_min"), "with a product with q_min"),
    (
        CHARGE,
        CHARGE.replace("return ", "return np.maximum(").replace(" + q_min", ", q_min)"),
        "add the two instead",
    ),
    (BOWL, BOWL.replace("np.sum(", "np.mean("), "d² is their sum"),
    (BOWL, BOWL.replace("np.square(", "np.abs("), "each is squared first"),
    (BOWL, "return q * np.square(np.sum(x - c, axis=1))", "the square of a sum"),
    (CONE, "return q * np.maximum(0, d - 1)", "from distance - 1"),
    (CONE, "return np.maximum(0, q - d)", "multiply 1 - distance by q"),
    (
        "np.unique(truth[truth >= 0]):\n        mine",
        "np.unique(truth)[1:]:\n        mine",
        "an event may have no noise",
    ),
    (SUM, "total = np.sum(q * V)", "from the last object only"),
    (V, V.replace("mine,", "~mine,"), "with the two potentials swapped"),
    (V, V.replace("x[alpha]", "array(x)[alpha]"), "points x_αk are plain numbers"),
    (ORDER, "for i in np.argsort(beta, kind='stable'):", "go from the highest β down"),
    (ORDER, "for i in range(len(beta)):", "in the order of the points"),
    (FREE, "found[near] = number", "claims points of another object"),
    (CLAIM, "if beta[i] > t_beta:", "only unclaimed points may"),
    (
        FREE,
        "found[near & (found < 0) & (beta > t_beta)] = number",
        "points below t_β can be claimed",
    ),
    (NEAR, "near = np.sum((x - x[i]) ** 2, axis=1) <= t_d", "the squared distance"),
    (NEAR, NEAR.replace("t_d", "0.7"), "use the argument t_d"),
    (CLAIM, CLAIM.replace("t_beta", "0.1"), "use the argument t_beta"),
    (EMPTY, "found, number = np.full(len(beta), -1), 1", "the first object is 0"),
    (FREE, "found[near & (found < 0)] = i", "number the objects 0, 1, 2"),
    (WHOLE, WHOLE.replace("potential_loss(beta, x, truth) + ", ""), "without L_V"),
    (L_BETA, "L_beta = np.mean(beta[noise])", "the term of the condensation points"),
    (L_BETA, "L_beta = np.mean(1 - beta[np.array(alpha)])", "without the noise term"),
    (L_BETA, L_BETA.replace("np.array(alpha)", "hits"), "only the condensation points"),
    (L_BETA, L_BETA.replace("1 - beta", "beta"), "with β instead of 1 - β"),
    (WHOLE, WHOLE.replace(L_P, ""), "without L_p"),
    (WHOLE, WHOLE.replace(L_P, " + np.mean(L[hits])"), "with an unweighted mean as L_p"),
    (WHOLE, WHOLE.replace("np.sum(weight)", "np.sum(charge(beta, 0))"), "in the denominator"),
    (WEIGHT, "weight = charge(beta)[hits]", "with q_min in the weights"),
    (WEIGHT, "weight = np.arctanh(beta)[hits]", "the weights are arctanh² β"),
    (WEIGHT, "weight = array(charge(beta, 0))[hits]", "β also needs a gradient"),
    (
        WHOLE,
        WHOLE.replace("potential_loss(beta", "potential_loss(array(beta)"),
        "no gradient from L_V",
    ),
    (WHOLE, WHOLE.replace("L[hits]", "array(L)[hits]"), "no gradient arrives at L"),
]

RIGHT = [  # the sample's way, another one that is right too
    (CHARGE, "return np.arctanh(np.minimum(beta, HIGHEST)) ** 2 + q_min"),
    (CHARGE, "return np.minimum(np.square(np.arctanh(beta)), np.arctanh(HIGHEST) ** 2) + q_min"),
    (BOWL, "return np.sum((x - c) ** 2 * q, axis=-1)"),
    (V, "V = attraction(x, x[alpha], q[alpha]) * mine + repulsion(x, x[alpha], q[alpha]) * ~mine"),
    (ALPHA, "alpha = np.argmax(np.where(mine, array(beta), -1))"),
]

RIGHT += [
    (ORDER, "for i in sorted(range(len(beta)), key=lambda i: -beta[i]):"),
    (WEIGHT, "weight = np.square(np.arctanh(beta[hits]))"),
]

LIBRARY = [  # right, the library's function in its place
    (MEAN, "return sum(ta.graph.condensation_terms(beta, x, truth)[:2])"),
    (EMPTY, "return graph.condense(beta, x, t_beta, t_d)[0]"),
    (WHOLE, "return graph.condensation_loss(beta, x, truth, L)"),
]
