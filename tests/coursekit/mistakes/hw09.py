"""Wrong answers to homework 09, and what its checks must say about them."""

SCORES = "return z, F.leaky_relu((h @ R.T)[:, None] + z[None, :], 0.2) @ a"
MASKED = "e = np.where(adj, e, -1e30)"
EXP = "p = adj * np.exp(e - np.max(e, axis=1, keepdims=True))"
TOTAL = "total = np.sum(p, axis=1, keepdims=True)"
DIVIDED = "return p / np.where(total > 0, total, 1)"
HAT = "alpha = attention(e, adj | np.eye(len(adj), dtype=bool))"
LAYER = "return np.tanh(alpha @ z)"
LOOPS = "graph = graph.with_self_loops()"
PAIRS = "e = F.leaky_relu((h @ R.T)[graph.dst] + z[graph.src], 0.2) @ a"
SOFTMAX = "segment_softmax(e, graph.dst, graph.num_nodes)"
MESSAGE = "return np.tanh(propagate(z, graph, lambda z_i, z_j: alpha * z_j))"
SIDE_BY_SIDE = "return np.concatenate(ys, axis=1)"

MISTAKES = [  # right, wrong, what the check must say about it
    (SCORES, SCORES.replace("return z, ", "return "), "return z and e"),
    (SCORES, "return z, ((h @ R.T)[:, None] + z[None, :]) @ a", "LeakyReLU is missing"),
    (SCORES, SCORES.replace("leaky_relu", "relu").replace(", 0.2", ""), "from a ReLU"),
    (SCORES, SCORES.replace(", 0.2", ""), "not 0.2 but 0.01"),
    (SCORES, "return z, F.leaky_relu(z[:, None] + (h @ R.T)[None, :], 0.2) @ a", "are swapped"),
    (SCORES, "return z, F.leaky_relu(((h @ R.T)[:, None] + z[None, :]) @ a, 0.2)", "as in GAT"),
    (
        SCORES,
        "return z, (F.leaky_relu(h @ R.T, 0.2)[:, None] + F.leaky_relu(z, 0.2)) @ a",
        "add them first",
    ),
    (SCORES, SCORES.replace(" @ a", ""), "one number for each pair"),
    (SCORES, SCORES.replace("[:, None]", "[:, None] * 2"), "largest difference is at index"),
    ("z = h @ S.T\n    return", "z = h @ R.T\n    return", "although z is what"),
    ("z = h @ S.T\n    return", "z = h @ S\n    return", "Should one of them be transposed"),
    (SCORES, SCORES.replace("(h @ R.T)[:, None]", "h @ R.T"), "for each node paired with itself"),
    (TOTAL, TOTAL.replace(", keepdims=True", ""), "without keepdims in the sum"),
    (EXP, EXP.replace(", keepdims=True", ""), "without keepdims in the maximum"),
    (DIVIDED, "pass", "Is the `return` missing?"),
    (EXP, "p = np.exp(e - np.max(e, axis=1, keepdims=True))", "receives equally from all nodes"),
    (
        MASKED,
        "e = e * (adj > 0); adj = np.ones((5, 5), bool)",
        "with scores of 0 outside the edges",
    ),
    (MASKED, "e = e; adj = np.ones((5, 5), bool)", "adj is not used"),
    (MASKED, "pass", "over the neighbours only"),
    (EXP, "p = adj * np.exp(e)", "Subtract the largest"),
    (
        EXP,
        "s = np.where(adj > 0, e, -np.inf)\n    p = adj * np.exp(s - s.max(axis=1, keepdims=True))",
        "only the row of a node without neighbours is NaN",
    ),
    (EXP, "p = adj * np.where(adj, e, 0)", "the exp is missing"),
    (DIVIDED, "return p / np.sum(p, axis=1, keepdims=True)", "weights are 0 / 0"),
    (TOTAL, TOTAL.replace("axis=1", "axis=0"), "by the sum of a column"),
    (DIVIDED, "return p / np.sum(p)", "by the sum of all"),
    (HAT, "alpha = attention(e, adj)", "do not receive from themselves"),
    (HAT, "np.fill_diagonal(adj, 1)\n    alpha = attention(e, adj)", "work on a copy"),
    (HAT, "alpha = attention(e, adj + np.eye(len(adj)))", "Set the diagonal to True"),
    (DIVIDED, "return p / np.maximum(total, 1e-300)", "1e-300 are 0 in float32"),
    (
        LOOPS,
        "N = np.arange(graph.num_nodes)\n    graph = Graph(np.concatenate([graph.src, N]), "
        "np.concatenate([graph.dst, N]), graph.num_nodes)",
        "added to existing ones",
    ),
    (MESSAGE, MESSAGE.replace("z_j)", 'z_j, "mean")'), "with the mean of the messages"),
    (
        MESSAGE,
        MESSAGE.replace("(propagate", "(array(propagate").replace("z_j)", "z_j))"),
        "gat_on_edges: the gradient does not reach",
    ),
    (
        SIDE_BY_SIDE,
        "return np.concatenate([array(y) for y in ys], axis=1)",
        "heads: the gradient does not reach",
    ),
    (LAYER, "return alpha @ z", "tanh is missing"),
    (LAYER, "return np.tanh(alpha.T @ z)", "transposed"),
    (LAYER, "return alpha @ np.tanh(z)", "instead of after it"),
    (LAYER, "return np.tanh(np.where(np.eye(5), 1, adj) @ z)", "weights are not used"),
    (LAYER, "return np.tanh(alpha @ h)", "Expected shape (5, 4)"),
    (LAYER, "return np.tanh(array(alpha) @ array(z))", "the gradient does not reach"),
    (LOOPS, "pass", "do not receive from themselves"),
    (PAIRS, PAIRS.replace("dst]", "x]").replace("src]", "dst]").replace("x]", "src]"), "swapped"),
    (SOFTMAX, SOFTMAX.replace("dst", "src"), "edges of one sender"),
    (SOFTMAX, "F.softmax(e, axis=0)", "one softmax over all edges"),
    (MESSAGE, MESSAGE.replace("* z_j", "* z_i"), "the receiver's own z"),
    (MESSAGE, MESSAGE.replace("alpha * ", ""), "weights are not used"),
    (MESSAGE, MESSAGE.replace("np.tanh(", "("), "tanh is missing"),
    (
        PAIRS,
        "e = (F.leaky_relu((h @ R.T)[:, None] + z[None], 0.2) @ a)[graph.dst, graph.src]",
        "an entry for each pair of nodes",
    ),
    (SIDE_BY_SIDE, "return sum(ys) / len(ys)", "averaged"),
    (SIDE_BY_SIDE, "return sum(ys)", "added up"),
    (SIDE_BY_SIDE, "return np.concatenate(ys)", "along the nodes"),
    (SIDE_BY_SIDE, "return np.stack(ys)", "a new axis"),
    (SIDE_BY_SIDE, "return ys[0]", "only the first head"),
    ("S, a) for R, S, a in zip", "S, vectors[0]) for R, S, a in zip", "all heads use the first a"),
    (SCORES, SCORES.replace("(h @ R.T)", "z"), "the receiver has R"),
    (SCORES, SCORES.replace(" + z[None", " * z[None"), "from the product of the two"),
    (SCORES, SCORES.replace(" + z[None", " - z[None"), "from the difference of the two"),
    (
        EXP,
        EXP.replace("np.max(e, axis=1, keepdims=True)", "np.max(e)"),
        "largest score of each row separately",
    ),
    (SIDE_BY_SIDE, "return np.stack(ys, axis=-1).reshape(len(h), -1)", "interleaved"),
    (
        "gat_on_edges(h, graph, R, S, a) for R",
        "gat_on_edges(h, graph, Rs[0], S, a) for R",
        "all heads use the first R",
    ),
    (
        "gat_on_edges(h, graph, R, S, a) for R",
        "gat_on_edges(h, graph, S, R, a) for R",
        "with R and S swapped",
    ),
    (HAT, "alpha = attention(e, adj + 1)", "when 1 is added everywhere"),
    (HAT, "alpha = attention(e, adj | True)", "when all nodes are neighbours"),
]

RIGHT = [  # the sample's way, another one that is right too
    (SCORES, "s = np.expand_dims(h @ R.T, 1) + z\n    return z, np.where(s > 0, s, 0.2 * s) @ a"),
    (HAT, "hat = adj.copy()\n    np.fill_diagonal(hat, 1)\n    alpha = attention(e, hat)"),
    (SIDE_BY_SIDE, "return np.stack(ys, axis=1).reshape(len(h), -1)"),
    (EXP, "p = np.where(adj, np.exp(e - np.max(e, axis=1, keepdims=True)), 0)"),
]

LIBRARY = [  # right, the library's function in its place
    (LAYER, "from tinyattn.graph import GATConv\n    return GATConv(3, 4)(h, adj)"),
]
