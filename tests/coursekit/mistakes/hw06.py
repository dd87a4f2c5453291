"""Wrong answers to homework 06, and what its checks must say about them."""

PADDING = "return (ids != PAD)[:, None, :]"
CAUSAL = "return np.tri(T, dtype=bool)"
BOTH = "return padding_mask(ids) & causal_mask(ids.shape[1])"
QKV = "Q, K, V = X @ W_q, M @ W_k, M @ W_v"
SCORES = "np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])"
WEIGHTS = "F.softmax(np.where(keep, scores, -np.inf), axis=-1) @ V"
SHIFTED = "return target[:, :-1], target[:, 1:]"
LOSS = "return F.cross_entropy(logits[real], answers[real])"
REAL = "real = answers != PAD"
TOKEN = "token = int(model(src, np.array([said])).numpy()[0, -1].argmax())"
STOPPED = "if token == STOP:\n                break\n            said.append(token)"
FUTURE = "return np.abs(y_changed - y)[:, :-1].max()"
CHANGED = "changed = tgt.copy()"
LONGER = "longer = np.concatenate([src, np.full((len(src), 2), PAD)], axis=1)"
ALONE = "model, src[b : b + 1], tgt[b : b + 1]"
NEIGHBOURS = "return np.abs(y - np.array(alone)).max()"
SELF = "x = self.norm1(x + self.attention(x, x, x, mask)[0])"
CROSS = "x = self.norm2(x + self.cross(x, memory, memory, keep)[0])"
LAST = "return self.norm3(x + self.ffn(x))"

MISTAKES = [  # right, wrong, what the check must say about it
    (PADDING, "return (ids == PAD)[:, None, :]", "the mask inverted"),
    (PADDING, "return ids != PAD", "without the axis in the middle"),
    (PADDING, "return (ids != PAD)[:, :, None]", "hides queries"),
    (PADDING, PADDING + " * 1", "should be a boolean array"),
    (PADDING, "(ids != PAD)[:, None, :]", "Is the `return` missing?"),
    (CAUSAL, "return np.tri(T, dtype=bool).T", "only the future"),
    (CAUSAL, "return np.tri(T, k=-1, dtype=bool)", "without the diagonal"),
    (CAUSAL, "return np.tri(T, k=1, dtype=bool)", "the token to be predicted"),
    (CAUSAL, "return np.tri(T)", "should be a boolean array"),
    (BOTH, BOTH.replace("&", "|"), "only if both masks allow it"),
    (BOTH, "return causal_mask(ids.shape[1]) | np.zeros((len(ids), 1, 1), bool)", "the padding"),
    (QKV, "Q, K, V = X @ W_q, X @ W_k, X @ W_v", "it stops with"),
    (QKV, "Q, K, V = X @ W_k, M @ W_q, M @ W_v", "W_q and W_k swapped"),
    (QKV, "Q, K, V = (M @ W_q)[:, :2], M @ W_k, M @ W_v", "must be computed from X"),
    (SCORES, "np.swapaxes(K, -1, -2)", "without the division"),
    (SCORES, "K.T / np.sqrt(K.shape[-1])", "`.T` reverses the order of all axes"),
    (SCORES, "K / np.sqrt(K.shape[-1])", "Should one of them be transposed"),
    (WEIGHTS, WEIGHTS.replace("axis=-1", "axis=-2"), "over the wrong axis"),
    (WEIGHTS, WEIGHTS.replace("axis=-1", "axis=0"), "over the wrong axis"),
    (
        "return " + WEIGHTS,
        "e = np.exp(np.where(keep, scores, -np.inf))\n    return e / e.sum(axis=-1) @ V",
        "With keepdims=True it stays",
    ),
    (WEIGHTS, "F.softmax(scores, axis=-1) @ V", "without using the mask"),
    (WEIGHTS, WEIGHTS.replace("-np.inf", "0"), "exp(0) is 1"),
    (WEIGHTS, "(F.softmax(scores, axis=-1) * keep) @ V", "hiding after the softmax"),
    (WEIGHTS, WEIGHTS.replace("keep,", "~keep,"), "the mask inverted"),
    (SHIFTED, "return target[:, 1:], target[:, :-1]", "the token to predict"),
    (SHIFTED, "return target[:, :-1], target[:, :-1]", "without a shift"),
    (SHIFTED, "return target, target[:, 1:]", "with all columns"),
    (SHIFTED, "return target[:, :-1]", "must return two arrays"),
    (REAL, "real = answers != -1", "with padding counted"),
    (LOSS, LOSS + " * real.sum()", "as a sum"),
    (LOSS, LOSS + " * real.sum() / real.size", "the number of all positions"),
    (LOSS, "return F.cross_entropy(logits, answers)", "it stops with"),
    (TOKEN, TOKEN.replace("[0, -1]", "[0, 0]"), "LAST position"),
    (TOKEN, TOKEN.replace("[said]", "[said[-1:]]"), "begin with START"),
    (
        STOPPED,
        "said.append(token)\n            if token == STOP:\n                break",
        "STOP must",
    ),
    ("while len(said) <= max_len", "while len(said) < max_len", "expected 2 tokens"),
    (STOPPED, "if token == STOP:\n                break", "never ends"),
    (FUTURE, "return np.abs(y_changed - y).max()", "Leave out the last position"),
    (FUTURE, "return np.abs(y_changed - y)[:, :-1]", "expected one number"),
    (CHANGED, "changed = tgt", "read-only"),
    (LONGER, "longer = src", "does not detect a model that sees padding"),
    (ALONE, "model, src, tgt", "for a model without a fault"),
    (NEIGHBOURS, "return (y - np.array(alone)).min() * 0", "does not detect"),
    (
        "return (ids != PAD)[:, None, :]",
        "return (ids > START)[:, None, :]",
        "only padding is forbidden",
    ),
    (
        "Q, K, V = X @ W_q, M @ W_k, M @ W_v",
        "Q, K, V = X @ W_q, M @ W_v, M @ W_k",
        "with W_k and W_v swapped",
    ),
    ("np.sqrt(K.shape[-1])  # [B, T, S]", "np.sqrt(M.shape[-1])", "the width of X"),
    ("real = answers != PAD", "real = answers > STOP", "learn where a sentence ends"),
    (
        "return F.cross_entropy(logits[real],",
        "return F.cross_entropy(F.softmax(logits[real]),",
        "which contains one already",
    ),
    ("np.where(tgt[:, -1] == 3, 4, 3)", "3", "if the last token is 3"),
    (
        "return np.abs(y_changed - y)[:, :-1].max()",
        "return (y_changed - y)[:, :-1].max()",
        "count logits that decrease",
    ),
    (
        "np.concatenate([src, np.full((len(src), 2), PAD)], axis=1)",
        "np.concatenate([np.full((len(src), 2), PAD), src], axis=1)",
        "Append the padding at the end",
    ),
    (
        "logits_of(model, src, tgt)).max()\n    # END",
        "logits_of(model, src, tgt)).mean()\n    # END",
        "the largest change",
    ),
    (SELF, "x = self.norm1(self.attention(x, x, x, mask)[0])", "the skip path of self-attention"),
    (SELF, SELF.replace(", mask", ""), "the decoder sees the future"),
    (CROSS, CROSS.replace(", keep", ""), "padding gets weight"),
    (CROSS, CROSS.replace("x, memory, memory", "x, x, x"), "it stops with"),
    (LAST, "return x + self.ffn(x)", "the norm of the feed-forward network"),
    (LAST, "return self.norm3(self.ffn(x))", "the skip path of the feed-forward network"),
    (
        f"{SELF}\n        {CROSS}",
        f"{CROSS}\n        {SELF}".replace("norm2", "norm9")
        .replace("norm1", "norm2")
        .replace("norm9", "norm1"),
        "cross-attention before self-attention",
    ),
    (
        f"{SELF}\n        {CROSS}\n        {LAST}",
        "z = self.norm1(x)\n        x = x + self.attention(z, z, z, mask)[0]\n"
        "        x = x + self.cross(self.norm2(x), memory, memory, keep)[0]\n"
        "        return x + self.ffn(self.norm3(x))",
        "with the norm before each sublayer",
    ),
    ("x = self.places(self.embed(tgt))", "x = self.embed(tgt)", "positions in the target"),
    (
        "self.encoder(self.places(self.embed(src)), keep)",
        "self.encoder(self.embed(src), keep)",
        "positions in the source",
    ),
    (
        "return self.head(self.decoder(x, memory, self.target_mask(tgt), keep))",
        "return self.decoder(x, memory, self.target_mask(tgt), keep)",
        "without the head",
    ),
]

RIGHT = [  # the sample's way, another one that is right too
    (CAUSAL, "return np.arange(T)[:, None] >= np.arange(T)"),
    (WEIGHTS, WEIGHTS.replace("-np.inf", "-1e9")),
    (WEIGHTS, "F.softmax(scores + np.where(keep, 0, -np.inf), axis=-1) @ V"),
    (
        LOSS,
        "flat = answers.ravel() != PAD\n    rows = logits.reshape(flat.size, -1)\n"
        "    return F.cross_entropy(rows[flat], answers.ravel()[flat])",
    ),
    (FUTURE, "return float(np.max(np.abs((y_changed - y)[:, :-1])))"),
]

LIBRARY = [  # right, the library's function in its place
    (WEIGHTS, "F.scaled_dot_product_attention(Q, K, V, mask=keep)"),
]
