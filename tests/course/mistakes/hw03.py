"""Wrong answers to homework 03, and what its checks must say about them."""

PLACE = "n = j * stride + i * dilation - padding"
INSIDE = "I[j, i] = n if 0 <= n < N else -1"
GUARD = "if I[j, i] >= 0:"
TERM = "y[j, alpha] += w[i, alpha, beta] * x[I[j, i], beta]"
BIAS = "y[j, alpha] = b[alpha]"
WINDOWS = "windows = np.where(I[..., None] >= 0, x[I], 0.0)  # [P, k, N_F]"
EINSUM = 'return np.einsum("iab,jib->ja", w, windows) + b'
QUERY = "query = sum(wt[alpha, gamma] * x[j, gamma] for gamma in range(N_F))"
SCORE = "s[i, j] += key * query / np.sqrt(dk)"
WEIGHTS = "return soft(s, axis=0)"
ROOT_DK = 's = np.einsum("ab,ib,ac,jc->ij", w, x, wt, x) / np.sqrt(len(w))'
SOFTMAX = "a = F.softmax(s, axis=0)"
OUTPUT = 'return np.einsum("ij,ab,ib->ja", a, wh, x)'
SHIFT = "place = i - j + k // 2"
KERNEL = "return w[place] if 0 <= place < k else np.zeros((N_out, N_F))"
PAIR = "return a[i, j] * wh"

MISTAKES = [  # right, wrong, what the check must say about it
    (PLACE, "n = j * stride + i * dilation", "without the padding"),
    (PLACE, "n = j * stride + i * dilation + padding", "moves the first window to the left"),
    (PLACE, "n = j + i * dilation - padding", "without the stride"),
    (PLACE, "n = j + i * stride - padding", "a dilation"),
    (PLACE, "n = j * stride + i - padding", "without the dilation"),
    (INSIDE, "I[j, i] = n", "outside by -1"),
    (INSIDE, "I[j, i] = max(n, -1)", "outside by -1"),
    (GUARD, "if True:", "-1 reads the last word"),
    (BIAS, "y[j, alpha] = 0", "without the bias"),
    (BIAS, "y[j, alpha] = -b[alpha]", "threshold"),
    (TERM, TERM.replace("+=", "="), "only the last term is left"),
    (TERM, TERM + " + b[alpha]", "not yet"),
    (TERM, TERM.replace("w[i,", "w[k - 1 - i,"), "turned round"),
    (TERM, TERM.replace("w[i, alpha, beta]", "w[alpha, beta, i]"), "w[i, alpha, beta]"),
    (WINDOWS, "windows = x[I]", "-1 reads the last word"),
    (EINSUM, EINSUM.removesuffix(" + b"), "without the bias"),
    (EINSUM, EINSUM.replace("iab", "iba"), "the letters i a b"),
    (QUERY, QUERY.replace("wt[", "w["), "in both places"),
    (QUERY, QUERY.replace("x[j,", "x[i,"), "the query is that of x_j"),
    (SCORE, "s[i, j] += key * query", "without the division"),
    (SCORE, "s[i, j] += key * query / dk", "by dividing by d_k"),
    (SCORE, "s[i, j] += key * query / np.sqrt(N)", "number of words"),
    (SCORE, SCORE.replace("s[i, j]", "s[j, i]"), "exchanged"),
    (SCORE, SCORE.replace("+=", "="), "only the last alpha"),
    (WEIGHTS, "return soft(s, axis=1)", "over the receivers"),
    (WEIGHTS, "return soft(s, axis=(0, 1))", "all pairs"),
    (WEIGHTS, "return s", "without the softmax"),
    (WEIGHTS, "soft(s, axis=0)", "Is the `return` missing?"),
    (ROOT_DK, ROOT_DK.removesuffix(" / np.sqrt(len(w))"), "without the division"),
    (SOFTMAX, "a = F.softmax(s, axis=1)", "over the receivers"),
    (OUTPUT, OUTPUT.replace("ij,", "ji,"), "the receiver j stays"),
    (OUTPUT, 'return np.einsum("ab,ib->a", wh, x)', "expected shape (6, 2)"),
    (SHIFT, "place = j - i + k // 2", "with j - i"),
    (SHIFT, "place = i - j", "without the shift"),
    (KERNEL, "return w[place] if place < k else np.zeros((N_out, N_F))", "too far means zeros"),
    (PAIR, "return a[j, i] * wh", "the sender is the first index"),
    (PAIR, "return wh", "without the weight"),
]

LIBRARY = [  # right, the library's function in its place
    (TERM, "return F.conv1d(x.T, w.transpose(1, 2, 0), b, padding=1).numpy().T"),
    (EINSUM, "return F.conv1d(x.T, w.transpose(1, 2, 0), b, padding=1).T"),
    (OUTPUT, "return F.scaled_dot_product_attention(x @ wt.T, x @ w.T, x @ wh.T)"),
    (INSIDE, "I = F.neighbour_table((N,), k, stride, padding)"),
]
