"""Wrong answers to homework 04, and what its checks must say about them."""

LOOP_EXP = "e = np.array([np.exp(Q[i] @ K[j] / np.sqrt(dk) - m * abs(i - j)) for j in range(S)])"
LOOP_SUM = "Y[i] += e[j] / e.sum() * V[j]"
EXP = "e = np.exp(s - s.max(axis=-1, keepdims=True))\n    return"
SHARE = "return e / e.sum(axis=-1, keepdims=True)\n    # END"
SCORES = (
    "scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])\n    return softmax(scores) @ V"
)
PART = "part = slice(h * dk, (h + 1) * dk)"
HEAD = "Z = attention(X @ WQ[:, part], X @ WK[:, part], X @ WV[:, part])"
TOTAL = "total = total + Z @ WO[part]"
HIDDEN = "scores = np.where(mask, scores, -1e30)  # finite, so that an empty row gives no nan"
NOTHING = "return np.where(mask, softmax(scores), 0) @ V"
GS = "gS = A * (gA - (gA * A).sum(axis=-1, keepdims=True))"
BACK = "return gS @ K / root, gS.T @ Q / root, A.T @ G"
BEFORE = "before = np.asarray(layer(X[:, p]).detach())"
AFTER = "after = np.asarray(layer(X).detach())[:, p]"
GAP = "return np.abs(before - after).max()"
MERGE = "return z.transpose(0, 2, 1, 3).reshape(B, T, H * dk)"
POSITIONS = "return self.attend(x + self.positions)"

MISTAKES = [  # right, wrong, what the check must say about it
    (LOOP_EXP, LOOP_EXP.replace(" / np.sqrt(dk)", ""), "without the division by √d_k"),
    (LOOP_EXP, LOOP_EXP.replace("np.sqrt(dk)", "dk"), "not by its square root"),
    (LOOP_EXP, LOOP_EXP.replace("/ np.sqrt(dk)", "* np.sqrt(dk)"), "by multiplying with √d_k"),
    (LOOP_EXP, LOOP_EXP.replace("np.sqrt(dk)", "np.sqrt(S)"), "square root of the number of keys"),
    (LOOP_EXP, LOOP_EXP.replace(" - m * abs(i - j)", ""), "the slope is not used"),
    (LOOP_EXP, LOOP_EXP.replace("- m *", "+ m *"), "distant keys must get lower scores"),
    (LOOP_EXP, LOOP_EXP.replace("abs(i - j)", "(i - j)"), "i - j instead of |i - j|"),
    (LOOP_SUM, LOOP_SUM.replace("+=", "="), "only the last key remains"),
    (LOOP_SUM, "Y[i] += e[j] * V[j]", "without dividing by the sum of the row"),
    (LOOP_EXP, LOOP_EXP.replace("np.exp(", "("), "without the exponential"),
    (LOOP_SUM, LOOP_SUM.replace("V[j]", "V[i]"), "largest difference is at index"),
    (EXP, "e = np.exp(s)\n    return", "Perhaps exp overflows"),
    (SHARE, SHARE.replace("axis=-1, keepdims=True", ""), "the sum of all numbers"),
    (SHARE, SHARE.replace("axis=-1", "axis=0"), "along the first axis"),
    (SHARE, "return e\n    # END", "without dividing by the sum"),
    (SHARE, "e / e.sum(axis=-1, keepdims=True)\n    # END", "Is the `return` missing?"),
    (SCORES, SCORES.replace("np.swapaxes(K, -1, -2)", "K.T"), "not only the last two"),
    (SCORES, SCORES.replace(" / np.sqrt(Q.shape[-1])", ""), "without the division by √d_k"),
    (SCORES, SCORES.replace("np.swapaxes(K, -1, -2)", "K"), "K [2, 5, 4]"),
    (SCORES, SCORES.replace("softmax(scores) @", "scores @"), "without the softmax"),
    (SCORES, SCORES.replace("Q.shape[-1]", "Q.shape[-2]"), "largest difference is at index"),
    (
        SCORES,
        SCORES.replace("Q @", "ta.tensor(Q.numpy() if isinstance(Q, ta.Tensor) else Q) @"),
        "no gradient arrives at Q",
    ),
    (PART, "part = slice(h, None, H)", "with every H-th column for a head"),
    (PART, "part = slice(0, dk)", "where all heads use the first columns"),
    (HEAD, HEAD.replace("[:, part]", "[part]"), "Head h uses columns of WQ"),
    (TOTAL, "total = total + Z", "Expected shape"),
    (TOTAL, TOTAL.replace("WO[part]", "WO[:, part].T"), "columns of WO"),
    (TOTAL, TOTAL + " / H", "from the mean over the heads"),
    (TOTAL, "total = Z @ WO[part]", "only the last head remains"),
    (HIDDEN, HIDDEN.replace("mask, scores", "~mask, scores"), "the mask inverted"),
    (HIDDEN, HIDDEN.replace("-1e30", "0"), "largest difference is at index"),
    (HIDDEN, "pass", "only after the softmax"),
    (NOTHING, "return softmax(scores) @ V", "the mean of all values"),
    (GS, "gS = A * (1 - A) * gA", "with the diagonal of the softmax only"),
    (GS, "gS = A * gA", "without the sum in the softmax's rule"),
    (GS, "gS = A * (gA - (gA * A).sum())", "each row is its own softmax"),
    (GS, GS.replace("axis=-1", "axis=0"), "the wrong axis"),
    (GS, "gS = gA", "without the softmax's rule"),
    (GS, GS.replace("A * (gA -", "(gA -"), "without the factor A in front"),
    (GS, GS.replace(", keepdims=True", ""), "needs keepdims=True"),
    (BACK, BACK.replace(" / root", ""), "without the factor 1/√d_k"),
    (BACK, BACK.replace("A.T @ G", "A @ G"), "Should one of them be transposed"),
    (SHARE, SHARE.replace(", keepdims=True", ""), "keepdims=True"),
    (LOOP_EXP, LOOP_EXP.replace("Q[i] @ K[j]", "Q @ K"), "a @ b sums over the last axis"),
    (BACK, "return gS @ K / root, gS.T @ Q / root", "return three arrays"),
    (AFTER, AFTER.replace("[:, p]", ""), "that has none"),
    (AFTER, AFTER.replace("[:, p]", "[:, np.argsort(p)]"), "that has none"),
    (BEFORE, "before = np.asarray(layer(X).detach())[:, p]", "does not notice a layer"),
    (BEFORE, BEFORE.replace("X[:, p]", "X[p]"), "p numbers the tokens"),
    (GAP, "np.abs(before - after).max()", "Is the `return` missing?"),
    (MERGE, "return z.reshape(B, T, H * dk)", "by a reshape alone"),
    (MERGE, MERGE.replace("0, 2, 1, 3", "0, 2, 3, 1"), "the last two axes swapped too"),
    (POSITIONS, "return self.attend(x)", "without the positions"),
    (POSITIONS, "return self.attend(x) + self.positions", "adding the positions after the layer"),
    (
        LOOP_EXP,
        LOOP_EXP.replace(
            "np.exp(Q[i] @ K[j] / np.sqrt(dk) - m * abs(i - j))",
            "np.exp(Q[i] @ K[j] / np.sqrt(dk)) - m * abs(i - j)",
        ),
        "outside of the exponential",
    ),
    (LOOP_EXP, LOOP_EXP.replace("abs(i - j)", "(i - j) ** 2"), "the square of the distance"),
    (EXP, EXP.replace("s.max(axis=-1, keepdims=True)", "s.max()"), "the largest score of each row"),
    (GS, "gS = A * (gA - gA.sum(axis=-1, keepdims=True))", "their weighted sum"),
    ("A = softmax(Q @ K.T / root)", "A = softmax(Q @ K.T)", "not divided by √d_k"),
    (BACK, "return A.T @ G, gS.T @ Q / root, gS @ K / root", "in another order"),
    (GAP, "return np.abs(before - after).mean()", "from the mean"),
    (GAP, "return (before - after).max()", "without the absolute value"),
    (POSITIONS, POSITIONS + " + x", "with x added again"),
    (POSITIONS, "return self.attend(x + np.arange(x.shape[1])[:, None])", "add self.positions"),
]

RIGHT = [  # the sample's way, another one that is right too
    (LOOP_SUM, "Y[i] = Y[i] + np.exp(np.log(e[j]) - np.log(np.sum(e))) * V[j]"),
    (TOTAL, "total = np.add(np.dot(Z, WO[part]), total)"),
    (SCORES, SCORES.replace("np.swapaxes(K, -1, -2)", "K.swapaxes(-1, -2)")),
    (HIDDEN, "scores = scores + np.where(mask, 0, -np.inf)"),
    (GS, "gS = A * gA - A * (A * gA).sum(axis=1)[:, None]"),
    (MERGE, "return np.swapaxes(z, 1, 2).reshape(B, T, -1)"),
]

LIBRARY = [  # right, the library's function in its place
    (LOOP_SUM, "Y[t] = F.scaled_dot_product_attention(Q, K, V).numpy()[i]"),
    (SHARE, "return F.softmax(s, axis=-1)\n    # END"),
    (NOTHING, "return F.scaled_dot_product_attention(Q, K, V, mask=mask)"),
]
