"""Wrong answers to homework 02, and what its checks must say about them."""

SCORE = "return np.tanh(query[:, None] + keys) @ v"
PAST = "return np.tanh(past[:, :, None] * w + b + z @ U) @ v"
LARGE = "large = np.exp(e - np.max(e, axis=1, keepdims=True))"
SHARE = "return large / np.sum(large, axis=1, keepdims=True)"
LOOK = 'return gate[:, None] * np.einsum("br,brd->bd", a, z), a'
SEEN = "seen = np.sum(np.where(keep[:, :, None], a, 0), axis=1)"
PENALTY = "return np.mean((1 - seen) ** 2)"
NAMED = "n, t = np.nonzero(cells >= 0)"
PICKED = "return a[n, t, cells[n, t]].mean()"

MISTAKES = [  # right, wrong, what the check must say about it
    (SCORE, SCORE.replace("return ", ""), "Is the `return` missing?"),
    (SCORE, SCORE.replace("query[:, None]", "query"), "Give the first an axis for the regions"),
    (SCORE, SCORE.replace("query[:, None] + keys", "keys + b"), "without the state"),
    (SCORE, SCORE.replace("np.tanh", ""), "without tanh"),
    (SCORE, "return np.tanh(query[:, None] + keys)", "before the product with v"),
    (
        SCORE,
        SCORE.replace("query[:, None] +", "np.tanh(query)[:, None] + 0 *"),
        "largest difference",
    ),
    ("h @ W + b", "h @ W", "without the bias b"),
    (LARGE, "large = np.exp(e)", "Subtract the largest score of each image"),
    (LARGE, LARGE.replace("axis=1, ", ""), "of each image, not of all"),
    (LARGE, LARGE.replace(", keepdims=True", ""), "keepdims=True"),
    (LARGE, "large = e", "without exp"),
    (LARGE, "return 1 / (1 + np.exp(-e))", "from a sigmoid"),
    (SHARE, "return large", "without dividing by the sum"),
    (SHARE, SHARE.replace("axis=1", "axis=0"), "over the images (axis 0)"),
    (SHARE, "return np.exp(e) / np.sum(np.exp(e), axis=0)", "over the images (axis 0)"),
    (SHARE, "return large / np.sum(large)", "over everything"),
    (LOOK, LOOK.removesuffix(", a"), "return two things"),
    (LOOK, 'return a, gate[:, None] * np.einsum("br,brd->bd", a, z)', "return the context first"),
    (LOOK, 'return np.einsum("br,brd->brd", a, z), a', "before the sum over the regions"),
    (LOOK, "return gate[:, None] * np.mean(z, axis=1), a", "as the mean of the regions"),
    (
        LOOK,
        "return gate[:, None] * np.mean(a[:, :, None] * z, axis=1), a",
        "by the number of regions",
    ),
    (LOOK, LOOK.replace("a, z)", "array(a), array(z))"), "gradient"),
    (
        LOOK,
        "return array(gate)[:, None] * np.einsum('br,brd->bd', array(a), array(z)), a",
        "the gradient does not reach",
    ),
    (LOOK, "return a @ z, a", "a @ z combines all pairs"),
    (LOOK, 'return np.einsum("br,brd->bd", a, z), a', "without the gate"),
    ("gate = 1 / (1 + np.exp(-(h @ g)))", "gate = h @ g", "has no sigmoid"),
    (LOOK, LOOK.replace("z), a", "z), a * gate[:, None]"), "with the gate in them"),
    (SEEN, "seen = np.sum(a, axis=1)", "when padding is counted"),
    (SEEN, "seen = np.sum(keep[:, :, None] * a, axis=1)", "Select the words with np.where"),
    (SEEN, SEEN.replace("axis=1", "axis=2"), "Sum over the words"),
    (SEEN, SEEN.replace("[:, :, None]", ""), "Give keep an axis for the regions"),
    (PENALTY, "return np.sum((1 - seen) ** 2)", "without dividing by B R"),
    (PENALTY, "return np.mean(1 - seen)", "without the square"),
    (PENALTY, "return (1 - seen) ** 2", "return one number"),
    (NAMED, "n, t = np.nonzero(cells >= -1)", "silently selects the last region"),
    (PICKED, "return a[n, t].max(axis=1).mean()", "from the largest weight"),
    (PICKED, "return a[n, t, cells[n, t]].sum()", "as a sum"),
    (PICKED, "return a[n, t, cells[n, t]]", "for each word separately"),
    (PICKED, "return a[n, t, cells[n, t]].sum() / cells.size", "with 0 for the other words"),
    (SCORE, SCORE.replace(" + keys", " * keys"), "instead of their sum"),
    (
        SCORE,
        "return np.tanh((query[:, None] + keys) @ v)",
        "with the tanh after the product",
    ),
    (SCORE, "return np.sum(np.tanh(query[:, None] + keys), axis=-1)", "without v"),
    (LARGE, LARGE.replace("np.max", "np.min"), "exp can still overflow"),
    (LARGE, LARGE.replace("np.max", "np.mean"), "exp can still overflow"),
    ("gate = 1 / (1 + np.exp(-(h @ g)))", "gate = np.tanh(h @ g)", "σ is the sigmoid"),
    ("gate = 1 / (1 + np.exp(-(h @ g)))", "gate = 1 / (1 + np.exp(h @ g))", "the wrong sign"),
    (PENALTY, "return np.mean(1 - seen) ** 2", "first the square, then the mean"),
    (PENALTY, "return np.mean(np.abs(1 - seen))", "square the difference from 1"),
    (NAMED, "n, t = np.nonzero(cells > 0)", "it is a region, too"),
    (NAMED, "n, t = np.nonzero(cells)", "and -1 is not"),
    (PICKED, "return (a[n, t].argmax(-1) == cells[n, t]).mean()", "the weight itself is needed"),
    (PAST, "return np.tanh(b + z @ U) @ v", "without the past weights"),
    (PAST, PAST.replace("past[:, :, None]", "past"), "Give past an axis for the K units"),
    (PAST, PAST.replace("np.tanh", ""), "without tanh"),
    (PAST, PAST.replace(" @ v", ""), "before the product with v"),
    (PAST, PAST.replace(" + b +", " +"), "without the bias b"),
    (PAST, PAST.replace("past[:, :, None] * w +", "").replace(" @ v", " @ v + past"), "outside"),
    (PAST, "return np.tanh(np.sum(past, axis=1)[:, None, None] * w + b + z @ U) @ v", "its own"),
    (PAST, PAST.replace("z @ U)", "array(z) @ U)"), "gradient"),
]

RIGHT = [  # the sample's way, another one that is right too
    (SCORE, 'return np.einsum("k,brk->br", v, np.tanh(np.expand_dims(query, 1) + keys))'),
    (PAST, 'return np.tanh(np.einsum("br,k->brk", past, w) + (b + z @ U)) @ v'),
    (LOOK, "return (a[:, None, :] @ z)[:, 0] * np.reshape(gate, (-1, 1)), a"),
    (PENALTY, "return np.sum((seen - 1) ** 2) / seen.size"),
]

LIBRARY = [  # right, the library's function in its place
    (SHARE, "import tinyattn.functional as F\n    return F.softmax(e, axis=1)"),
]
