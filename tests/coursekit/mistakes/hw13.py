"""Wrong answers to homework 13, and what its checks must say about them."""

START = "m, total = -np.inf, 0.0\n    for s in blocks:"
NOTHING = (
    "if new == -np.inf:\n            "
    "continue  # only masked scores so far, and -inf - (-inf) is nan"
)
TOTAL = "total = total * np.exp(m - new) + np.exp(s - new).sum()"
LOG = "return m + np.log(total)"
BLOCKS = "for start in range(0, N, block):"
READ = "k, v = read(start, min(start + block, N))"
SCORES = "s = q @ k.T"
RISES = "new = np.maximum(m, s.max(axis=1, keepdims=True))"
SUM = "total = total * shrink + a.sum(axis=1, keepdims=True)"
Y = "y = y * shrink + a @ v"
DIVIDED = "return y / total"
HALVES = "qx = (packed[:, b] & 15) @ first + (packed[:, b] >> 4) @ second"
ADDED = "y = y + d[:, b] * qx + m[:, b] * x[b].sum()"
LOOP = "for b, (first, second) in enumerate(x):"
SPLIT = "y, x = 0.0, x.reshape(-1, 2, 16)"
COUNT = "blocks = -(-N // T)"
BYTES = "return 4 * (2 * N * d + blocks * 2 * M * d)"
LEAST = "return max(operations / P, moved / B)"

MISTAKES = [  # right, wrong, what the check must say about it
    (TOTAL, TOTAL.replace(" * np.exp(m - new)", ""), "the old sum is not corrected"),
    (TOTAL, "total += np.exp(s - s.max()).sum()", "a maximum of its own"),
    (TOTAL, "total += np.exp(s).sum()\n        new = 0", "exp overflows"),
    (TOTAL, TOTAL.replace("total * np.exp(m - new) + ", ""), "from the last block only"),
    (LOG, "return np.log(total)", "not added again"),
    (LOG, "return total", "without the logarithm"),
    (LOG, "m + np.log(total)", "Is the `return` missing?"),
    (LOG, "return m", "for the maximum only"),
    (NOTHING, "", "you computed -inf - (-inf)"),
    (START, "blocks = [np.concatenate(list(blocks))]\n    " + START, "collect the blocks before"),
    (START, "blocks = list(blocks)\n    " + START, "collect the blocks before"),
    (START, "highest = max(s.max() for s in blocks)\n    " + START, "is available only once"),
    (SUM, SUM.replace(" * shrink", ""), "the sum is not corrected"),
    (Y, Y.replace(" * shrink", ""), "y is not corrected"),
    (
        SUM + "\n        " + Y,
        SUM.replace(" * shrink", "") + "\n        y = y + a @ v",
        "neither y nor the sum",
    ),
    (DIVIDED, "return y", "without the division"),
    (Y, "y = a @ v / total", "largest difference is at index"),
    (RISES, "new = 0 * m[:, :1]\n        m = new = np.zeros((len(q), 1))", "exp overflows"),
    (SCORES, "s = q @ k.T / np.sqrt(q.shape[1])", "this task does not divide them"),
    (BLOCKS, "for start in range(0, N - block + 1, block):", "shorter block is left out"),
    (BLOCKS, "block = N\n    " + BLOCKS, "rows were fetched at once"),
    (
        BLOCKS,
        f"kept = []\n    {BLOCKS}\n        kept.append(q @ read(start, start + block)[0].T)",
        "The whole score matrix takes",
    ),
    (READ, READ + "\n        k, v = read(start, min(start + block, N))", "2 times each"),
    (READ, READ + "\n        for _ in q:\n            read(start, start + 1)", "were fetched"),
    (READ, "k, v = read(start, start + block)\n        k = k[:, None]", "it stops with"),
    (HALVES, "qx = (packed[:, b] >> 4) @ first + (packed[:, b] & 15) @ second", "swapped"),
    (SPLIT, "y, x = 0.0, x.reshape(-1, 16, 2).transpose(0, 2, 1)", "next to each other"),
    (HALVES, HALVES.replace(" >> 4", " & 240"), "shifted right by four bits"),
    (HALVES, HALVES.replace("(packed[:, b] & 15)", "packed[:, b]"), "is not extracted"),
    (ADDED, ADDED.replace(" * x[b].sum()", ""), "multiply it by the sum of x"),
    (ADDED, ADDED.replace("x[b].sum()", "x.sum()"), "the whole x"),
    (ADDED, ADDED.replace("x[b].sum()", "first.sum()"), "over the first 16 numbers only"),
    (ADDED, ADDED.replace("d[:, b] * ", ""), "without d"),
    (ADDED, ADDED.replace(" + m[:, b] * x[b].sum()", ""), "without m"),
    (ADDED, "y = y + d[:, b] * (qx + m[:, b] * x[b].sum())", "multiplied by d, too"),
    (
        SPLIT,
        "q = np.concatenate([packed & 15, packed >> 4], axis=2)\n"
        "    return ((d[..., None] * q + m[..., None]) * x.reshape(-1, 32)).sum(axis=(1, 2))",
        "Process one block or one row",
    ),
    (LOOP, "q = packed & 15, packed >> 4\n    " + LOOP, "Process one block or one row"),
    (COUNT, "blocks = N // T", "smaller block is forgotten"),
    (COUNT, "blocks = N // T + 1", "one block too many"),
    (LOOP, "packed &= 15\n    " + LOOP, "writes into one of its inputs"),
    (COUNT, "blocks = N / T", "also reads all keys and values"),
    (COUNT, "blocks = N", "of a block share them"),
    (COUNT, "blocks = 1", "are read only once"),
    (BYTES, BYTES.replace("4 * ", ""), "float32 takes 4"),
    (BYTES, BYTES.replace("2 * N * d + ", ""), "without the queries and the result"),
    (BYTES, BYTES.replace("(2 * N", "(N"), "without the result"),
    (BYTES, BYTES.replace("2 * M", "M"), "without the values"),
    (LEAST, "return operations / P + moved / B", "at the same time"),
    (LEAST, "return min(operations / P, moved / B)", "the shorter of the two"),
    (LEAST, "return max(P / operations, B / moved)", "fractions inverted"),
    (
        RISES,
        "new = np.full((len(q), 1), max(np.max(m), s.max()))",
        "separately for each query",
    ),
    (LEAST, "return min(P, operations / moved * B)", "instead of the time"),
]

RIGHT = [  # the sample's way, another one that is right too
    (SPLIT, "d = d.astype(np.float32)\n    " + SPLIT),
    (
        SPLIT + "\n    " + LOOP,
        "y = np.zeros(len(d))\n    for r in range(len(d)):\n"
        "        q = np.concatenate([packed[r] & 15, packed[r] >> 4], axis=1)\n"
        "        y[r] = (d[r][:, None] * q + m[r][:, None]).ravel() @ x\n    return y\n"
        "    for b, (first, second) in []:",
    ),
    (TOTAL, "total = np.exp(m + np.log(total) - new) + sum(np.exp(e - new) for e in s)"),
    (COUNT, "blocks = (N + T - 1) // T"),
]

LIBRARY = [  # right, the library's function in its place
    (LOG, "import tinyattn.functional as F\n    return F.logsumexp(np.concatenate(list(blocks)))"),
    (
        DIVIDED,
        "import tinyattn as ta\n    return ta.functional.scaled_dot_product_attention(q, k, v)",
    ),
]
