"""Wrong answers to homework 05, and what its checks must say about them."""

INVARIANCE = "return np.abs(array(F(X[p])) - array(F(X))).max()"
EQUIVARIANCE = "return np.abs(array(F(X[p])) - array(F(X))[p]).max()"
MASKED = "z = np.where(mask[:, :, None], phi(x), 0)"
COUNT = "np.maximum(mask.sum(axis=1, keepdims=True), 1)"
MEAN = "mean = (np.sum(x, axis=0) - x) / (N - 1)"
CENTRED = "return y - np.mean(y, axis=1, keepdims=True)"

OWN = "return X * distance.max(axis=1, keepdims=True)"
LOSS = "loss = np.mean((model(x, mask) - y) ** 2)"
STEP = "    optimizer.step()\n"
TWICE = "return np.concatenate([x, x], axis=1), np.concatenate([mask, mask], axis=1)"

MISTAKES = [  # right, wrong, what the check must say about it
    (INVARIANCE, INVARIANCE.replace("return ", ""), "Is the `return` missing?"),
    (INVARIANCE, INVARIANCE.replace(".max()", ""), "expected one number"),
    (INVARIANCE, "return (array(F(X[p])) - array(F(X))).max()", "largest of the absolute"),
    (INVARIANCE, "return np.abs(array(F(X)) - array(F(X))).max()", "Is F called on the permuted"),
    (INVARIANCE, INVARIANCE.replace("max()", "sum()"), "not their sum"),
    (EQUIVARIANCE, EQUIVARIANCE.replace("[p]).max", ").max"), "F(X) must be permuted, too"),
    (EQUIVARIANCE, EQUIVARIANCE.replace("(X))[p]", "(X))[np.argsort(p)]"), "inverse permutation"),
    ('"running sum": "neither"', '"running sum": "equivariant"', "disagree about: running sum"),
    ('        "running sum": "neither",\n', "", "no prediction yet for ['running sum']"),
    (MASKED, "z = phi(np.where(mask[:, :, None], x, 0))", "φ(0) is not 0"),
    (MASKED, "z = phi(x)", "padding is summed, too"),
    (MASKED, "z = mask[:, :, None] * phi(x)", "Choose with np.where"),
    (MASKED, MASKED.replace("phi(x)", "phi(array(x))"), "the gradient does not reach x"),
    ("/ " + "count", "/ x.shape[1]", "padding included"),
    ("/ " + "count", "/ 1", "match what you get from a sum"),
    (COUNT, "mask.sum(axis=1, keepdims=True)", "divided by 0"),
    (COUNT, COUNT.replace(", keepdims=True", ""), "(3,) is (3, 2) without one axis"),
    (MASKED, MASKED.replace("[:, :, None]", ""), "without one axis"),
    (MEAN, "mean = np.sum(x, axis=0) / N", "i included"),
    (MEAN, "mean = (np.sum(x, axis=0) - x[0]) / (N - 1)", "excluded for all elements"),
    (CENTRED, "return y", "without subtracting the mean"),
    (CENTRED, "return y - np.mean(y, axis=1)", "With keepdims=True it stays"),
    (CENTRED, "return y - np.mean(y)", "each element has its own"),
    (CENTRED, "return y - np.mean(y, axis=0)", "over the features"),
    (LOSS, LOSS.replace("np.mean", "np.sum"), "from the sum of the squares"),
    (LOSS, LOSS.replace("** 2)", "** 2) / 2"), "from half the squares"),
    (STEP, "", "is optimizer.step() missing"),
    ("    optimizer.zero_grad()\n", "", "zero_grad() clears"),
    ("return loss", "return loss.item()", "a Tensor, not a number"),
    ("    return loss\n", "", "train_step returned None"),
    (TWICE, TWICE.replace("axis=1", "axis=0"), "twice: expected shapes"),
    (
        TWICE,
        "return np.concatenate([x, x], axis=1), np.repeat(mask, 2, axis=1)",
        "does not contain each of its elements twice",
    ),
    (TWICE, TWICE.replace("[mask, mask]", "[mask, mask | True]"), "Does padding count"),
    (TWICE, TWICE.replace("return np", "return 2 * x, mask; np"), "twice: expected shapes"),
    (OWN, "return X", "each row must depend on the other elements"),
    (OWN, "return X - X.mean(axis=0)", "only through their mean"),
    (OWN, "return np.cumsum(X, axis=0)", "it is not equivariant"),
    (OWN, "return distance", "expected shape"),
    (
        EQUIVARIANCE,
        "return np.abs(np.sort(array(F(X[p])), 0) - np.sort(array(F(X)), 0)).max()",
        "Compare row with row",
    ),
    ('"running sum": "neither"', '"running sum": "Neither"', "must be one of"),
    (COUNT, "np.maximum(mask.sum(), 1)", "divide each set by its own number"),
    (
        "return rho(np.sum(z, axis=1) / count)",
        "return rho(np.sum(z, axis=1)) / count",
        "dividing after ρ",
    ),
    ("return rho(np.sum(z, axis=1) / count)", "return rho(np.max(z, axis=1))", "from the maximum"),
    (
        "(np.sum(x, axis=0) - x) / (N - 1)",
        "(np.sum(x, axis=0) - x[0]) / (N - 1)",
        "the first element excluded for all elements",
    ),
]

RIGHT = [  # the sample's way, another one that is right too
    (TWICE, "return np.repeat(x, 2, axis=1), np.repeat(mask, 2, axis=1)"),
    (LOSS, "loss = (np.square(y - model(x, mask))).mean()"),
    (INVARIANCE, "return np.max(np.abs(array(F(X)) - array(F(X[p]))))"),
    (COUNT, "np.where(mask.any(axis=1, keepdims=True), mask.sum(axis=1, keepdims=True), 1)"),
    (MEAN, "mean = ((1 - np.eye(N)) @ x) / (N - 1)"),
    (OWN, "return np.sort(np.abs(X[:, None] - X).sum(axis=-1), axis=1)[:, 1:2] + 0 * X"),
]

LIBRARY = [  # right, the library's function in its place
    (MASKED, "return nn.DeepSets(phi, rho)(x, mask)"),
    (INVARIANCE, "return check.invariant(F, X).error"),
]
