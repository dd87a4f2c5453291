"""Wrong answers to homework 04, and what its checks must say about them."""

LOOP_EXP = "e = np.array([np.exp(Q[t] @ K[s] / np.sqrt(dk) - m * abs(t - s)) for s in range(S)])"
LOOP_SUM = "Y[t] += e[s] / e.sum() * V[s]"
EXP = "e = np.exp(s - s.max(axis=-1, keepdims=True))\n    return"
SHARE = "return e / e.sum(axis=-1, keepdims=True)\n    # END"
SHARED = "Q = Q.reshape(*rest, G, H // G, T, dk)"
AXES = "K, V = K[..., None, :, :], V[..., None, :, :]  # [..., G, 1, S, d]"
SCORES = "scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(dk)  # [..., G, H / G, T, S]"
ALL = "return (softmax(scores) @ V).reshape(*rest, H, T, V.shape[-1])"
HIDDEN = "scores = np.where(mask, scores, -1e30)  # finite, so that an empty row gives no nan"
NOTHING = "return np.where(mask, softmax(scores), 0) @ V"
GS = "gS = A * (gA - (gA * A).sum(axis=-1, keepdims=True))"
BACK = "return gS @ K / root, gS.T @ Q / root, A.T @ G"
BEFORE = "before = np.asarray(layer(X[:, p]).detach())"
AFTER = "after = np.asarray(layer(X).detach())[:, p]"
GAP = "return np.abs(before - after).max()"
MERGE = "return z.transpose(0, 2, 1, 3).reshape(B, T, H * dk)"
PLACES = "return self.attend(x + self.places)"

MISTAKES = [  # right, wrong, what the check must say about it
    (LOOP_EXP, LOOP_EXP.replace(" / np.sqrt(dk)", ""), "without the division by √d_k"),
    (LOOP_EXP, LOOP_EXP.replace("np.sqrt(dk)", "dk"), "not by its square root"),
    (LOOP_EXP, LOOP_EXP.replace("/ np.sqrt(dk)", "* np.sqrt(dk)"), "by multiplying with √d_k"),
    (LOOP_EXP, LOOP_EXP.replace("np.sqrt(dk)", "np.sqrt(S)"), "square root of the number of keys"),
    (LOOP_EXP, LOOP_EXP.replace(" - m * abs(t - s)", ""), "the slope is not used"),
    (LOOP_EXP, LOOP_EXP.replace("- m *", "+ m *"), "a far key must lose"),
    (LOOP_EXP, LOOP_EXP.replace("abs(t - s)", "(t - s)"), "t - s in place of |t - s|"),
    (LOOP_SUM, LOOP_SUM.replace("+=", "="), "only the last key is left"),
    (LOOP_SUM, "Y[t] += e[s] * V[s]", "without dividing by the sum of the row"),
    (LOOP_EXP, LOOP_EXP.replace("np.exp(", "("), "without the exponential"),
    (LOOP_SUM, LOOP_SUM.replace("V[s]", "V[t]"), "Most different at index"),
    (EXP, "e = np.exp(s)\n    return", "Perhaps exp overflows"),
    (SHARE, SHARE.replace("axis=-1, keepdims=True", ""), "the sum of all numbers"),
    (SHARE, SHARE.replace("axis=-1", "axis=0"), "along the first axis"),
    (SHARE, "return e\n    # END", "without dividing by the sum"),
    (SHARE, "e / e.sum(axis=-1, keepdims=True)\n    # END", "Is the `return` missing?"),
    (SCORES, SCORES.replace("np.swapaxes(K, -1, -2)", "K.T"), "more axes than the last two"),
    (SCORES, SCORES.replace(" / np.sqrt(dk)", ""), "without the division by √d_k"),
    (SCORES, SCORES.replace("np.swapaxes(K, -1, -2)", "K"), "K [2, 5, 4]"),
    (ALL, ALL.replace("softmax(scores)", "scores"), "without the softmax"),
    (ALL, "return softmax(scores) @ V", "the result is [..., H, T, d_v]"),
    (AXES, "pass", "the axes fit"),
    (AXES, "K, V = K[..., None, :, :, :], V[..., None, :, :, :]", "the axes fit"),
    (
        SHARED,
        "K, V = (np.concatenate([x] * (H // G), axis=-3) for x in (K, V))\n    G = H\n    "
        + SHARED,
        "with the heads dealt out in turn",
    ),
    (
        AXES,
        "K, V = K[..., :1, None, :, :], V[..., :1, None, :, :]",
        "where all heads use the first keys",
    ),
    (
        SCORES,
        SCORES.replace("Q @", "ta.tensor(Q.numpy() if isinstance(Q, ta.Tensor) else Q) @"),
        "no gradient arrives at Q",
    ),
    (HIDDEN, HIDDEN.replace("mask, scores", "~mask, scores"), "the wrong way round"),
    (HIDDEN, HIDDEN.replace("-1e30", "0"), "Most different at index"),
    (HIDDEN, "pass", "hiding after the softmax"),
    (NOTHING, "return softmax(scores) @ V", "the mean of all values"),
    (GS, "gS = A * (1 - A) * gA", "with the diagonal of the softmax only"),
    (GS, "gS = A * gA", "without the sum in the softmax's rule"),
    (GS, "gS = A * (gA - (gA * A).sum())", "each row is its own softmax"),
    (GS, GS.replace("axis=-1", "axis=0"), "the wrong axis"),
    (GS, "gS = gA", "by leaving out the softmax"),
    (GS, GS.replace("A * (gA -", "(gA -"), "without the factor A in front"),
    (GS, GS.replace(", keepdims=True", ""), "needs keepdims=True"),
    (BACK, BACK.replace(" / root", ""), "without the factor 1/√d_k"),
    (BACK, BACK.replace("A.T @ G", "A @ G"), "Is one of them to be transposed"),
    (SHARE, SHARE.replace(", keepdims=True", ""), "keepdims=True"),
    (LOOP_EXP, LOOP_EXP.replace("Q[t] @ K[s]", "Q @ K"), "a @ b sums over the last axis"),
    (BACK, "return gS @ K / root, gS.T @ Q / root", "return three arrays"),
    (AFTER, AFTER.replace("[:, p]", ""), "that has none"),
    (AFTER, AFTER.replace("[:, p]", "[:, np.argsort(p)]"), "that has none"),
    (BEFORE, "before = np.asarray(layer(X).detach())[:, p]", "does not notice a layer"),
    (BEFORE, BEFORE.replace("X[:, p]", "X[p]"), "p numbers the tokens"),
    (GAP, "np.abs(before - after).max()", "Is the `return` missing?"),
    (MERGE, "return z.reshape(B, T, H * dk)", "by a reshape alone"),
    (MERGE, MERGE.replace("0, 2, 1, 3", "0, 2, 3, 1"), "the last two axes swapped too"),
    (PLACES, "return self.attend(x)", "without the places"),
    (PLACES, "return self.attend(x) + self.places", "adding the places after the layer"),
    (
        LOOP_EXP,
        LOOP_EXP.replace(
            "np.exp(Q[t] @ K[s] / np.sqrt(dk) - m * abs(t - s))",
            "np.exp(Q[t] @ K[s] / np.sqrt(dk)) - m * abs(t - s)",
        ),
        "outside of the exponential",
    ),
    (LOOP_EXP, LOOP_EXP.replace("abs(t - s)", "(t - s) ** 2"), "the square of the distance"),
    (EXP, EXP.replace("s.max(axis=-1, keepdims=True)", "s.max()"), "the largest of each row"),
    (GS, "gS = A * (gA - gA.sum(axis=-1, keepdims=True))", "their weighted sum"),
    ("A = softmax(Q @ K.T / root)", "A = softmax(Q @ K.T)", "not divided by √d_k"),
    (BACK, "return A.T @ G, gS.T @ Q / root, gS @ K / root", "in another order"),
    (GAP, "return np.abs(before - after).mean()", "from the mean"),
    (GAP, "return (before - after).max()", "without the absolute value"),
    (PLACES, PLACES + " + x", "by adding x once more"),
    (PLACES, "return self.attend(x + np.arange(x.shape[1])[:, None])", "add self.places"),
]

RIGHT = [  # the sample's way, another one that is right too
    (LOOP_SUM, "Y[t] = Y[t] + np.exp(np.log(e[s]) - np.log(np.sum(e))) * V[s]"),
    (SHARED, "K, V = (np.repeat(x, H // G, axis=-3) for x in (K, V))\n    G = H\n    " + SHARED),
    (SCORES, SCORES.replace("np.swapaxes(K, -1, -2)", "K.swapaxes(-1, -2)")),
    (HIDDEN, "scores = scores + np.where(mask, 0, -np.inf)"),
    (GS, "gS = A * gA - A * (A * gA).sum(axis=1)[:, None]"),
    (MERGE, "return np.swapaxes(z, 1, 2).reshape(B, T, -1)"),
]

LIBRARY = [  # right, the library's function in its place
    (LOOP_SUM, "Y[t] = F.scaled_dot_product_attention(Q, K, V).numpy()[t]"),
    (SHARE, "return F.softmax(s, axis=-1)\n    # END"),
    (NOTHING, "return F.scaled_dot_product_attention(Q, K, V, mask=mask)"),
]
