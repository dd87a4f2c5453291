"""Wrong answers to homework 11, and what its checks must say about them."""

WEIGHTS = "return np.exp(-c * np.sum(difference * difference, axis=-1))"
GATHER = "return np.concatenate([np.mean(messages, axis=1), np.max(messages, axis=1)], axis=-1)"
MEAN, MAX = "np.mean(messages, axis=1)", "np.max(messages, axis=1)"
INDEX = "index, _ = knn(s, self.k, event)"
A = "a = weights(s, index, self.c)"
Y = "return self.lin_out1(x) + self.lin_out2(gather(a, h, index))"
EDGE = "return N * K * 2 * F * F"
SPLIT = "return N * 2 * F * F"
TURN = "return half + np.sqrt(half**2 + K * P)"
GRAV = "return N * (F * S + F * P + F * F + 2 * P * F) + N * K * P"

MISTAKES = [  # right, wrong, what the check must say about it
    (WEIGHTS, WEIGHTS.replace("return ", ""), "Is the `return` missing?"),
    (WEIGHTS, WEIGHTS.replace(", axis=-1", ""), "Expected shape (3, 2)"),
    (WEIGHTS, WEIGHTS.replace("-c", "c"), "a minus is missing"),
    (
        WEIGHTS,
        WEIGHTS.replace("difference * difference", "np.abs(difference)"),
        "d² is the sum of the squared differences",
    ),
    (
        WEIGHTS,
        "w" + WEIGHTS[6:].replace(" np", "= np", 1) + "; return w / np.sum(w, 1)[:, None]",
        "GravNet has no softmax",
    ),
    (WEIGHTS, WEIGHTS.replace("difference", "array(difference)"), "no gradient reaches s"),
    (GATHER, f"return np.concatenate([{MAX}, {MEAN}], axis=-1)", "the means come first"),
    (GATHER, GATHER.replace("np.mean", "np.sum"), "divide it by K"),
    (
        GATHER,
        GATHER.replace(MEAN, "np.sum(messages, axis=1) / np.sum(a, axis=1)[:, None]"),
        "GravNet divides by K",
    ),
    (GATHER, GATHER.replace("np.max(messages", "np.max(h[index]"), "without their weights"),
    (
        GATHER,
        GATHER.replace(MAX, "np.max(h[index], axis=1) * np.max(a, axis=1)[:, None]"),
        "not the product of the maxima",
    ),
    (
        GATHER,
        GATHER.replace("messages, axis=1", "messages, axis=2"),
        "mean and maximum run over the features",
    ),
    (INDEX, INDEX.replace("(s,", "(x,"), "nearest in x"),
    (INDEX, INDEX.replace("(s,", "(h,"), "nearest in h"),
    (INDEX, INDEX.replace(", event", ""), "Pass event to knn"),
    (A, "a = np.exp(-self.c * knn(s, self.k, event)[1])", "no gradient reaches lin_s"),
    (A, A.replace("self.c", "1.0"), "use self.c"),
    (Y, Y.replace("self.lin_out1(x) + ", ""), "x W₁ᵀ is missing"),
    (Y, Y.replace("self.lin_out1(x) + ", ""), "no gradient reaches lin_out1.weight"),
    (INDEX, INDEX.replace("index, _", "index"), "knn gives two things"),
    (
        WEIGHTS,
        "a = np.zeros(index.shape)\n    for j, k in np.ndindex(*index.shape):\n"
        "        a[j, k] = np.exp(-c * np.sum(difference[j, k] ** 2))\n    return a",
        "np.stack",
    ),
    ("return c / r**2", "return c * r**2", "the constant must be smaller"),
    ("return c / r**2", "return c / r", "d² grows with r squared"),
    ("return np.sqrt(c_from / c_to)", "return c_from / c_to", "the root of the ratio"),
    ("return np.sqrt(c_from / c_to)", "return np.sqrt(c_to / c_from)", "for the inverse ratio"),
    (EDGE, "return N * K * F * F", "gets 2F features"),
    (EDGE, "return N * 2 * F * F", "on every edge"),
    (EDGE, "return N * K * 4 * F * F", "the output has F"),
    (SPLIT, "return N * F * F", "with one product"),
    (SPLIT, "return N * 4 * F * F", "each of the two products gets F features"),
    (SPLIT, "return 2 * F * F", "there are N"),
    (TURN, TURN.replace("half + np", "half - np"), "the negative solution"),
    (TURN, "return S + 3 * P", "without the weights times the messages"),
    (TURN, "b = S + 3 * P\n    return b + np.sqrt(b**2 + 4 * K * P)", "without dividing by 2"),
    ("half = (S + 3 * P) / 2", "half = (S + 2 * P) / 2", "it gets 2P"),
    (
        TURN,
        "half, more = half / (2 * K - 1), K * P / (2 * K - 1)\n"
        "    return half + np.sqrt(half**2 + more)",
        "with the split EdgeConv",
    ),
    (TURN, "return half / 2 + np.sqrt(half**2 / 4 + K * P / 2)", "GravNet's own F²"),
    (TURN, "return 35 + np.sqrt(35**2 + 880)", "use K, S and P"),
    (GRAV, GRAV.replace(" + N * K * P", ""), "N·K·P"),
    (GRAV, GRAV.replace("2 * P * F", "P * F"), "it gets mean and maximum"),
    (GRAV, GRAV.replace(" + F * F +", " +"), "W₁ is missing"),
    (GRAV, GRAV.replace("K * P", "K * 2 * P"), "computed once"),
    (GRAV, GRAV.replace("N * (", "N * K * (", 1), "once for each point"),
    (WEIGHTS, "return np.exp(-c * np.sum(difference, axis=-1) ** 2)", "each difference is squared"),
    (WEIGHTS, WEIGHTS.replace("np.sum", "np.mean"), "d² is their sum"),
    (WEIGHTS, "return np.exp(-np.sum(difference * difference, axis=-1) / c)", "by dividing by c"),
    (
        "messages = a[:, :, None] * h[index]",
        "messages = a[:, :, None] * h[:, None]",
        "the messages of its neighbours",
    ),
    (
        "messages = a[:, :, None] * h[index]",
        "messages = a[:, :, None] + h[index]",
        "multiply by them",
    ),
    (
        GATHER,
        f"return np.stack([{MEAN}, {MAX}], axis=-1).reshape(len(a), -1)",
        "means and maxima alternate",
    ),
    (A, A.replace("self.c", "10.0"), "in all cases: use self.c"),
    (INDEX, INDEX.replace("self.k", "self.k + 1"), "one neighbour too many"),
    ("return np.sqrt(c_from / c_to)", "return 10.0", "use c_from and c_to"),
    (WEIGHTS, WEIGHTS.replace("axis=-1", "axis=1"), "from a sum over the neighbours"),
    (INDEX, "index = knn(s, self.k + 1, event)[0][:, 1:]", "does not receive from itself"),
    (A, A.replace("(s,", "(h,"), "when the weights come from h"),
    (
        INDEX + "\n        " + A,
        INDEX.replace("(s,", "(h,") + "; " + A.replace("(s,", "(h,"),
        "neighbours and weights both come from h",
    ),
]

RIGHT = [  # the sample's way, another one that is right too
    (WEIGHTS, "d = np.linalg.norm(difference, axis=2)\n    return np.exp(-c * d**2)"),
    (GATHER, "return np.concatenate([np.sum(messages, 1) / index.shape[1], messages.max(1)], 1)"),
    (GRAV, "return N * F * (S + P + F + 2 * P) + N * K * P"),
    (TURN, "return np.roots([1, -S - 3 * P, -K * P]).max()"),
]

LIBRARY = [  # right, the library's function in its place
    (GATHER, "from tinyattn.graph import mean_max\n    return mean_max(a, h, index)"),
    (Y, "return ta.graph.GravNetConv(6, 3, 2, 4, k=5)(x, event)"),
]
