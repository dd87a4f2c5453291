"""Wrong answers to homework 07, and what its checks must say about them."""

KEPT = "kept = np.full(scores.shape, -np.inf)"
BEFORE = "before = np.cumsum(likeliest) - likeliest"
SCALED = "return kept / kept.sum()"
TRI = "may_see = np.tri(T, everything, everything - T, dtype=bool)"
KEYS = 'cache["k"] = np.concatenate([cache["k"], x @ w_k])'
VALUES = 'cache["v"] = np.concatenate([cache["v"], x @ w_v])'
CALL = "logits = model(np.asarray(new)[None], cache).numpy()"
SOFT = "return softmax(kept)"
SHOWN = "np.where(may_see, scores, -np.inf)"
OTHER = "rng.integers(3, V, size=ids.shape)"
LOG = "np.log(p).sum(axis=1)"
LOSS = "return F.cross_entropy(logits.reshape((-1, logits.shape[-1])), ids[:, 1:].ravel())"

MISTAKES = [  # right, wrong, what the check must say about it
    (SOFT, "softmax(kept)", "Is the `return` missing?"),
    (KEPT, "kept = np.zeros(scores.shape)", "exp(0) is 1"),
    ("/ temperature", "", "without the temperature"),
    ("/ temperature", "* temperature", "multiplied by the temperature"),
    ("np.argsort(-scores, kind", "np.argsort(scores, kind", "the k lowest"),
    (SOFT, "return np.sort(softmax(kept))[::-1]", "must belong to scores[i]"),
    (
        SOFT,
        "return softmax(scores / temperature) * (kept > -np.inf)",
        "not rescaled to sum to 1",
    ),
    (
        SOFT,
        "least = np.sort(scores)[-min(k, len(scores))]\n    return softmax("
        "np.where(scores >= least, scores / temperature, -np.inf))",
        "keep exactly 2 words",
    ),
    (
        "kept[order[:k]] = scores[order[:k]]",
        "kept = scores; kept[order[k:]] = -np.inf; kept[:] = kept",
        "work on a copy",
    ),
    (
        "np.argsort(-probabilities, kind",
        "np.argsort(probabilities, kind",
        "from the most likely word",
    ),
    (BEFORE, "before = np.cumsum(likeliest)", "without the word that reaches p"),
    (SCALED, "return kept", "not rescaled to sum to 1"),
    ("before < p", "before <= p", "one word too many"),
    ("kept[order] =", "kept[:] =", "word i must keep the index i"),
    (SCALED, "return probabilities * (probabilities > p)", "above p are kept"),
    (TRI, "may_see = np.ones((T, everything), bool)", "attend to later new ones"),
    (TRI, "may_see = np.tri(T, everything, dtype=bool)", "the mask omits the S earlier"),
    ("/ np.sqrt(x.shape[1])", "", "without √d"),
    ("/ np.sqrt(x.shape[1])", "/ x.shape[1]", "with d instead"),
    (VALUES, VALUES + "\n    if len(x) == 1: return x @ w_v", "no earlier tokens are kept"),
    (KEYS, 'cache["k"] = np.concatenate([x @ w_k, cache["k"]])', "keys in the cache after all"),
    (
        VALUES,
        'cache["v"] = np.concatenate([x @ w_v, cache["v"]])',
        "come after the old ones",
    ),
    (KEYS, KEYS.replace("w_k", "w_v"), "keys need w_k"),
    (KEYS, 'cache["k"] = np.concatenate([cache["k"], x])', "without the matrix"),
    (VALUES, VALUES + '\n    cache["k"], cache["v"] = x @ w_k, x @ w_v', "tokens are missing"),
    (CALL, "logits = model(np.array(text)[None]).numpy()", "Use the cache"),
    (CALL, "logits = model(np.array(text)[None], cache).numpy()", "counts twice"),
    (
        CALL,
        CALL.replace(
            "model(np.asarray(new)[None], cache)", "model(np.asarray(new)[None][:, -1:], cache)"
        ),
        "whole prompt",
    ),
    (CALL, CALL.replace("[None]", ""), "takes ids [1, T]"),
    ("return np.array(text)", "return np.array(text)[4:]", "must begin with the prompt"),
    ("logits[0, -1]", "logits[0, 0]", "scores of the last position"),
    (TRI, TRI.replace("everything - T", "everything - T - 1"), "does not attend to itself"),
    ('@ cache["v"]\n', '@ cache["k"]\n', "the keys instead of the values"),
    (
        f"softmax({SHOWN})",
        f"softmax({SHOWN}.T).T",
        "over the queries",
    ),
    (SHOWN, "np.where(may_see, scores, 0)", "they still get weight"),
    (KEYS, "cache = dict(cache)\n    " + KEYS, "of your own"),
    ("< 0.15) & (ids > MASK)", "< 0.15)", "special tokens (0 to 2) were chosen"),
    ("rng.random(ids.shape) < 0.15", "rng.random(ids.shape) < 0.25", "the fraction of chosen"),
    ("np.where(how < 0.8, MASK", "np.where(how < 2, MASK", "MASK replaces 100.0%"),
    ("np.where(how < 0.9, other, ids)", "other", "another token replaces"),
    (OTHER, OTHER.replace("3", "0"), "from 3 to 49"),
    (OTHER, OTHER.replace(", size=ids.shape", ""), "a random token of its own"),
    ("np.where(chosen, changed, ids), np", "changed, np", "was not chosen must stay"),
    ("np.where(chosen, ids, -100)", "np.where(chosen, changed, -100)", "the original token"),
    ("ids[:, 1:].ravel())", "ids[:, :-1].ravel())", "at its own position"),
    (
        "logits = model(ids[:, :-1])\n    return F",
        "logits = model(ids)[:, :-1]\n    return F",
        "have a next token",
    ),
    (
        LOSS,
        LOSS + ".item()",
        "no gradient reaches",
    ),
    (LOG, LOG.replace("sum", "mean"), "add their logarithms"),
    (LOG, "p.prod(axis=1)", "without the logarithm"),
    (LOG, LOG.replace("axis=1", ""), "when all rows are added"),
]

RIGHT = [  # the sample's way, another one that is right too
    (KEPT, "scores = scores / temperature\n    temperature = 1\n    " + KEPT),
    (TRI, "may_see = np.arange(everything) <= np.arange(everything - T, everything)[:, None]"),
    (TRI, "may_see = ~np.triu(np.ones((T, everything), bool), everything - T + 1)"),
    (VALUES, 'cache["v"] = np.append(cache["v"], x @ w_v, axis=0)'),
]

LIBRARY = [  # right, the library's function in its place
    ("return np.array(text)", "return model.gpt.generate(prompt, n, temperature=0) + GPT.generate"),
]
