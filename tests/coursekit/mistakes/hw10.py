"""Wrong answers to homework 10, and what its checks must say about them."""

FILL = "    np.fill_diagonal(d2, np.inf)\n"
SORT = 'return np.argsort(d2, axis=1, kind="stable")[:, :k]'
ONE = "np.maximum(x[i] @ A.T + (x[j] - x[i]) @ B.T, 0)"
POOL = "return segment_mean(y, jet, jets) @ w"
CONV = "y = edge_conv_segments(x, src, dst, A, B)"
MAX = "np.max(messages, axis=0)"
ALL = "messages = np.maximum(mine @ A.T + (theirs - mine) @ B.T, 0)"
COLLECT = "return segment_max(messages, dst, len(x))"
SPLIT = "p, q = times(x, A - B), times(x, B)"
LAST = "return np.maximum(p + segment_max(q[src], dst, len(x)), 0)"
NEAREST = 'return np.mean(h[np.argsort(np.abs(places - t), kind="stable")[:k]])'
QUOTIENT = "(f(t + epsilon) - f(t - epsilon)) / (2 * epsilon)"
WEIGHT = "np.exp(-((t - places[chosen]) ** 2))"
MEAN = "np.sum(weight * h[chosen]) / np.sum(weight)"

MISTAKES = [  # right, wrong, what the check must say about it
    (FILL, "", "among its own neighbours"),
    (
        FILL + "    " + SORT,
        "    return np.argsort(d2, axis=1, kind='stable')[:, 1 : k + 1]",
        "Dropping the first column is not enough",
    ),
    (SORT, SORT.replace("return ", ""), "Is the `return` missing?"),
    (SORT, SORT.replace("[:, :k]", "[:k]"), "expected shape"),
    (SORT, SORT.replace("[:, :k]", "[:, -k:]"), "the farthest points"),
    (SORT, SORT.replace("axis=1", "axis=0"), "sorted along the wrong axis"),
    (SORT, 'return np.argsort(d2, axis=1, kind="stable")[:, :k][:, ::-1]', "not the nearest first"),
    (
        "np.sum((x[:, None] - x) ** 2, axis=-1)",
        "np.sum(np.abs(x[:, None] - x), axis=-1)",
        "Manhattan",
    ),
    (SORT, "return np.sort(d2, axis=1)[:, :k]", "expected the indices of points"),
    (ONE, ONE.replace("x[j] - x[i]", "x[i] - x[j]"), "the opposite sign"),
    (ONE, ONE.replace("(x[j] - x[i])", "x[j]"), "not to the difference"),
    (ONE, ONE.replace("x[i] @ A.T", "x[j] @ A.T"), "belongs to the centre"),
    (ONE, "x[i] @ A.T + (x[j] - x[i]) @ B.T", "ReLU is missing"),
    (ONE, "np.maximum(x[i] @ B.T + (x[j] - x[i]) @ A.T, 0)", "A and B are exchanged"),
    (MAX, "np.mean(messages, axis=0)", "took the mean"),
    (MAX, "np.sum(messages, axis=0)", "took the sum"),
    (MAX, "messages[-1]", "only the last neighbour is left"),
    (MAX, "np.max(messages)", "all features of a point are equal"),
    ("mine, theirs = x[dst], x[src]", "mine, theirs = x[src], x[dst]", "x_i and x_j are exchanged"),
    (COLLECT, "return segment_max(messages, src, len(x))", "collected at their senders"),
    (COLLECT, "return array(segment_max(messages, dst, len(x)))", "the gradient does not reach"),
    (
        "mine, theirs = x[dst], x[src]",
        "mine, theirs = array(x)[dst], array(x)[src]",
        "no gradient arrives at x",
    ),
    (COLLECT, "return segment_max(messages, dst, dst.max() + 1)", "Expected shape"),
    (SPLIT, "p, q = times(x, A), times(x, B)", "where did -x_i Bᵀ go?"),
    (SPLIT, "p, q = x @ (A - B).T, x @ B.T", "multiply with times"),
    (LAST, "return np.maximum(times(x[dst], A - B) + times(x[src], B), 0)", "Expected shape"),
    (
        LAST,
        "return segment_max(np.maximum(times(x[dst], A - B) + times(x[src], B), 0), dst, 12)",
        "Multiply before you select",
    ),
    (
        LAST,
        "return p + np.maximum(segment_max(q[src], dst, len(x)), 0)",
        "ReLU is applied before p_i",
    ),
    (NEAREST, NEAREST.replace("np.mean", "np.sum"), "from the sum instead of the mean"),
    (NEAREST, NEAREST.replace("[:k]", "[-k:]"), "from the farthest positions"),
    (QUOTIENT, "(f(t + epsilon) - f(t - epsilon)) / epsilon", "divide by 2ε"),
    (QUOTIENT, "(f(t + epsilon) - f(t)) / epsilon", "from (f(t + ε)"),
    (MEAN, "np.sum(weight * h[chosen])", "without the division by the sum"),
    (WEIGHT, "np.exp(-np.abs(t - places[chosen]))", "not squared"),
    (WEIGHT, "np.exp((t - places[chosen]) ** 2)", "must get smaller weights"),
    (WEIGHT, "np.ones(k)", "the weights are missing"),
    (WEIGHT, WEIGHT.replace("(t -", "(array(t) -"), "from t itself"),
    (
        "np.sum((x[:, None] - x) ** 2, axis=-1)",
        "np.max(np.abs(x[:, None] - x), axis=-1)",
        "the largest difference",
    ),
    (
        "np.sum((x[:, None] - x) ** 2, axis=-1)",
        "np.sum(x[:, None] - x, axis=-1)",
        "without a square",
    ),
    (
        "np.sum((x[:, None] - x) ** 2, axis=-1)",
        "np.sum(x[:, None] * x, axis=-1)",
        "the scalar product",
    ),
    (
        "np.sum((x[:, None] - x) ** 2, axis=-1)",
        "(x[:, None] - x)[:, :, 0] ** 2",
        "the first feature alone",
    ),
    (
        SORT,
        "return np.array([sorted(range(len(x)), key=lambda i: (d[i], -i))[:k] for d in d2])",
        "in ascending order of index",
    ),
    ("for j in index[i]", "for j in range(len(x))", "j runs over index[i] only"),
    ("for j in index[i]", "for j in range(index.shape[1])", "the points in index"),
    ("for j in index[i]", "for j in [i, *index[i]]", "its own neighbour, too"),
    (ONE, "np.maximum(x[i] @ A.T, 0) + np.maximum((x[j] - x[i]) @ B.T, 0)", "add them first"),
    (NEAREST, NEAREST.replace("np.abs(places - t)", "places - t"), "without the absolute value"),
    (NEAREST, NEAREST.replace("h[", "places[", 1), "from the positions themselves"),
    (QUOTIENT, "(f(t) - f(t - epsilon)) / epsilon", "from (f(t) - f(t - ε))"),
    (QUOTIENT, "(f(t + epsilon) - f(t - epsilon)) / 2 * epsilon", "write (2 * epsilon)"),
    (MEAN, "np.mean(weight * h[chosen])", "with a division by k"),
    (POOL, "return (segment_mean(y, jet, jets) * np.bincount(jet)[:, None]) @ w", "from the sum"),
    (POOL, "return segment_max(y, jet, jets) @ w", "from the maximum"),
    (POOL, "return segment_mean(array(y), jet, jets) @ array(w)", "gradient"),
    (CONV, "y = edge_conv_segments(x, dst, src, A, B)", "sender and receiver are exchanged"),
    (CONV, "y = edge_conv_segments(x, src, dst, B, A)", "A and B are exchanged"),
    (CONV, "y = np.maximum(segment_mean(x, jet, jets) @ A.T, 0)[jet]", "EdgeConv is missing"),
]

RIGHT = [  # the sample's way, another one that is right too
    ("np.sum((x[:, None] - x) ** 2, axis=-1)", "np.linalg.norm(x[:, None] - x, axis=-1)"),
    (FILL, "    d2[np.arange(len(x)), np.arange(len(x))] = 1e300\n"),
    (ALL, "messages = np.maximum(mine @ (A - B).T + theirs @ B.T, 0)"),
    (SPLIT, "p, q = times(x, A) - (qq := times(x, B)), qq"),
    (MEAN, "np.sum(weight / np.sum(weight) * h[chosen])"),
]

LIBRARY = [  # right, the library's function in its place
    (SORT, "from tinyattn.graph import knn_graph\n    return knn_graph(x, k).src.reshape(-1, k)"),
    (COLLECT, "from tinyattn import graph\n    return graph.EdgeConv(x)"),
]
