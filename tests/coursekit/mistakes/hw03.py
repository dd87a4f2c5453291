"""Wrong answers to homework 03, and what its checks must say about them."""

PLACE = "n = i * stride + j * dilation - padding"
INSIDE = "I[i, j] = n if 0 <= n < N else -1"
GUARD = "if I[i, j] >= 0:"
TERM = "y[i, alpha] += w[j, alpha, beta] * x[I[i, j], first + beta]"
FIRST = "first = alpha // (N_out // G) * size"
BIAS = "y[i, alpha] = b[alpha]"
WINDOWS = "windows = np.where(I[..., None] >= 0, x[I], 0.0)  # [P, k, N_F]"
RESHAPE = "filters = w.reshape(k, windows.shape[2], -1, size)"
EINSUM = 'return np.einsum("jgab,ijgb->iga", filters, windows).reshape(len(I), N_out) + b'
DISTANCE = "d = R + min(max(j - i, -R), R)"
KEY = "for beta in range(N_F)) + r[d, alpha]"
QUERY = "query = sum(wt[alpha, gamma] * x[i, gamma] for gamma in range(N_F))"
SCORE = "s[i, j] += key * query / np.sqrt(dk)"
WEIGHTS = "return soft(s, axis=1)"
CLIP = "d = R + np.clip(j - i, -R, R)"
PLACES = 'places = np.einsum("ija,ac,ic->ij", r[d], wt, x)'
SOFTMAX = "a = F.softmax((words + places) / np.sqrt(len(w)), axis=1)"
OUTPUT = 'return np.einsum("ij,ab,jb->ia", a, wh, x)'
SHIFT = "place = j - i + k // 2"
KERNEL = "return w[place] if 0 <= place < k else np.zeros((N_out, N_F))"
PAIR = "return a[i, j] * wh"

MISTAKES = [  # right, wrong, what the check must say about it
    (PLACE, "n = i * stride + j * dilation", "without the padding"),
    (PLACE, "n = i * stride + j * dilation + padding", "moves the first window to the left"),
    (PLACE, "n = i + j * dilation - padding", "without the stride"),
    (PLACE, "n = i + j * stride - padding", "a dilation"),
    (PLACE, "n = i * stride + j - padding", "without the dilation"),
    (INSIDE, "I[i, j] = n", "outside by -1"),
    (INSIDE, "I[i, j] = max(n, -1)", "outside by -1"),
    (GUARD, "if True:", "-1 reads the last word"),
    (BIAS, "y[i, alpha] = 0", "without the bias"),
    (BIAS, "y[i, alpha] = -b[alpha]", "threshold"),
    (TERM, TERM.replace("+=", "="), "only the last term remains"),
    (TERM, TERM + " + b[alpha]", "not correct yet"),
    (TERM, TERM.replace("w[j,", "w[k - 1 - j,"), "kernel reversed"),
    (TERM, TERM.replace("w[j, alpha, beta]", "w[alpha, beta, j]"), "w[j, alpha, beta]"),
    (TERM, TERM.replace("first + ", ""), "the features of the first group"),
    (
        TERM,
        TERM.replace("first + beta", "beta * G + first // size"),
        "the features assigned to the groups",
    ),
    (TERM, TERM.replace("first + beta", "first // size + beta"), "with group + beta"),
    (FIRST, "first = alpha % G * size", "the outputs assigned to the groups in turn"),
    (FIRST, "first = alpha // G * size", "with alpha // G for the group"),
    (FIRST, "first = alpha * size", "Each of the G groups has N_F / G features"),
    (WINDOWS, "windows = x[I]", "-1 reads the last word"),
    (EINSUM, EINSUM.removesuffix(" + b"), "without the bias"),
    (EINSUM, EINSUM.replace("jgab", "jgba"), "have the letters j g a b"),
    (EINSUM, EINSUM.replace(".reshape(len(I), N_out)", ""), "the result is [P, G, N_out / G]"),
    (EINSUM, 'return np.einsum("jab,ijb->ia", w, x[I]) + b', "an axis for the groups"),
    (
        RESHAPE,
        RESHAPE.replace("shape[2], -1", "shape[2], size") + "[:, :, :, :-1]",
        "have the letters",
    ),
    (DISTANCE, "d = R + min(max(i - j, -R), R)", "with i - j"),
    (DISTANCE, "d = min(max(j - i, -R), R)", "without the shift by R"),
    (DISTANCE, "d = R + j - i", "a distance beyond R counts as R"),
    (DISTANCE, "d = min(R + abs(j - i), 2 * R)", "have different rows"),
    (KEY, "for beta in range(N_F))", "r is not used"),
    (KEY, "for beta in range(N_F)) + r[d, alpha] * (abs(j - i) <= R)", "with 0 for senders"),
    (KEY, "for beta in range(N_F)) * r[d, alpha]", "with the product of the key and r"),
    (QUERY, QUERY + " + r[d, alpha]", "with r added to key and query"),
    (QUERY, QUERY.replace("wt[", "w["), "for both key and query"),
    (QUERY, QUERY.replace("x[i,", "x[j,"), "the query is that of x_i"),
    (SCORE, "s[i, j] += key * query", "without the division"),
    (SCORE, "s[i, j] += key * query / dk", "by dividing by d_k"),
    (SCORE, "s[i, j] += key * query / np.sqrt(N)", "number of words"),
    (SCORE, SCORE.replace("s[i, j]", "s[j, i]"), "swapped"),
    (SCORE, SCORE.replace("+=", "="), "only the last alpha"),
    (WEIGHTS, "return soft(s, axis=0)", "over the receivers"),
    (WEIGHTS, "return soft(s, axis=(0, 1))", "all pairs"),
    (WEIGHTS, "return s", "without the softmax"),
    (WEIGHTS, "soft(s, axis=1)", "Is the `return` missing?"),
    (CLIP, "d = R + j - i", "A distance beyond R counts as R"),
    (CLIP, "d = R + np.clip(i - j, -R, R)", "with i - j"),
    (CLIP, "d = np.clip(j - i, -R, R)", "without the shift by R"),
    (PLACES, "places = 0", "r is not used"),
    (PLACES, "places = r[d].sum(axis=-1)", "with r added to the score"),
    (
        PLACES,
        PLACES.replace("r[d]", "ta.tensor(r[d].numpy() if isinstance(r, ta.Tensor) else r[d])"),
        "no gradient arrives at r",
    ),
    (SOFTMAX, SOFTMAX.replace(" / np.sqrt(len(w))", ""), "without the division"),
    (SOFTMAX, SOFTMAX.replace("axis=1", "axis=0"), "over the receivers"),
    (OUTPUT, OUTPUT.replace("ij,", "ji,"), "the receiver i stays"),
    (OUTPUT, 'return np.einsum("ab,jb->a", wh, x)', "Expected shape (6, 2)"),
    (SHIFT, "place = i - j + k // 2", "with i - j"),
    (SHIFT, "place = j - i", "without the shift"),
    (
        KERNEL,
        "return w[place] if place < k else np.zeros((N_out, N_F))",
        "words outside the window must give zeros",
    ),
    (PAIR, "return a[j, i] * wh", "the receiver is the first index"),
    (PAIR, "return wh", "without the weight"),
    (INSIDE, "I[i, j] = min(max(n, 0), N - 1)", "the nearest word at positions outside"),
    (INSIDE, "I[i, j] = n % N", "the words of the other end"),
    (GUARD, "if I[i, j] > 0:", "0 is a word"),
    (WINDOWS, "windows = x[np.maximum(I, 0)]", "-1 reads the first word"),
    (SCORE, "s[i, j] += (key + query) / np.sqrt(dk)", "instead of their product"),
    (DISTANCE, "d = (j - i) % len(r)", "the distance modulo"),
    (SOFTMAX, "a = F.softmax(words / np.sqrt(len(w)) + places, axis=1)", "divide both terms"),
    (SHIFT, "place = abs(j - i)", "have different matrices"),
    (
        KERNEL,
        KERNEL.replace("np.zeros((N_out, N_F))", "0"),
        "all matrices must have the same shape",
    ),
]

RIGHT = [  # the sample's way, another one that is right too
    (FIRST, "first = (alpha * G // N_out) * size"),
    (EINSUM, 'return np.einsum("jgab,ijgb->iga", filters, windows).reshape(len(I), -1) + b'),
    (
        EINSUM,
        "return np.concatenate([\n        np.einsum('jab,ijb->ia', filters[:, g], windows[:, :, g])"
        "\n        for g in range(windows.shape[2])], axis=1) + b",
    ),
    (DISTANCE, "d = int(np.clip(j - i + R, 0, 2 * R))"),
    (PLACES, 'places = np.einsum("ija,ia->ij", r[d], x @ wt.T)'),
    (SHIFT, "place = (j - i) + (k - 1) // 2"),
]

LIBRARY = [  # right, the library's function in its place
    (TERM, "return F.conv1d(x.T, w.transpose(1, 2, 0), b, padding=1).numpy().T"),
    (EINSUM, "return F.conv1d(x.T, w.transpose(1, 2, 0), b, padding=1).T"),
    (OUTPUT, "return F.scaled_dot_product_attention(x @ wt.T, x @ w.T, x @ wh.T)"),
    (INSIDE, "I = F.neighbour_table((N,), k, stride, padding)"),
]
