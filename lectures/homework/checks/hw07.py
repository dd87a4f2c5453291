"""The checks of homework 07: sampling, the cache, and the two objectives of the lecture."""

import numpy as np

from tinyattn.course.checks.judging import Homework, array_of, expect, judge

homework = Homework("hw07")
homework.allow(6, "tinyattn.functional.cross_entropy")


def softmax(s):
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)


def kept(its, name, numbers, *options):
    """The result, and whether the input is unchanged."""
    before = numbers.copy()
    result = getattr(its, name)(numbers, *options)
    return result, bool((numbers == before).all())


def _call(student, name, numbers, *options):
    result, unchanged = student.ask(kept, name, numbers, *options)
    expect(unchanged, f"{name}: it changed its input. Work on a copy", "changes its input")
    return result


# --- task 1


@homework.part(1, "k words remain possible")
def k_words(student, case):
    s, k, T = np.array([0.5, 2.0, -1.0, 1.0, 0.0]), 2, 0.5
    if case.number:
        s, k, T = case.normal(case.size(5, 6, 9)), case.size(2, 3, 4), 0.7
    stay = np.isin(np.arange(len(s)), np.argsort(-s)[:k])
    low = np.isin(np.arange(len(s)), np.argsort(s)[:k])
    right = softmax(np.where(stay, s / T, -np.inf))
    order = np.argsort(-s)
    mistakes = {
        "when the remaining probabilities are not rescaled to sum to 1": softmax(s / T) * stay,
        "when unlikely scores become 0: exp(0) is 1, so these words remain possible": softmax(
            np.where(stay, s / T, 0)
        ),
        "without the temperature": softmax(np.where(stay, s, -np.inf)),
        "when the scores are multiplied by the temperature": softmax(
            np.where(stay, s * T, -np.inf)
        ),
        "when the k lowest scores are kept": softmax(np.where(low, s / T, -np.inf)),
        "when all words are kept": softmax(s / T),
        "when the order is sorted: p[i] must belong to scores[i]": right[order],
    }
    judge(_call(student, "top_k", s, k, T), right, mistakes, what="top_k")


@homework.part(1, "equal scores, and large k")
def equal_scores(student, case):
    ties = np.array([1.0, 3.0, 3.0, 3.0])
    if case.number:
        ties = np.repeat([1.0, 3.0], [case.size(1, 1, 4), case.size(3, 3, 5)]) + case.normal(1)
        ties = case.rng.permutation(ties)
    came = array_of(_call(student, "top_k", ties, 2, 1.0))
    same = np.flatnonzero(ties == ties.max())

    def alike(*stay):
        return np.isin(np.arange(len(ties)), stay) / len(stay)

    mistakes = {
        "when words with higher indices are kept: among equal scores, keep the lower "
        "indices": alike(*same[-2:]),
        "when the first and the last of them are kept": alike(same[0], same[-1]),
        "when all equal scores are kept: keep exactly 2 words, although a "
        "comparison with the k-th score keeps more": alike(*same),
    }
    judge(came, alike(*same[:2]), mistakes, what="top_k of scores of which many are equal")
    s = case.normal(5)
    judge(_call(student, "top_k", s, 9, 1.0), softmax(s), what="top_k with k larger than V")


# --- task 2


def likely_words(case):
    """Probabilities that are exact in binary numbers, and how many words should stay."""
    if case.number == 0:
        return np.array([0.125, 0.5, 0.25, 0.0625, 0.0625]), 2
    while True:
        parts = case.rng.choice(np.arange(1, 30), 4, replace=False)
        last = 64 - parts.sum()
        if last > 0 and last not in parts:
            return np.append(parts, last) / 64, case.size(2, 2, 3)


def largest_of(q, n):
    """q with only the n largest, scaled to sum to 1."""
    stay = np.isin(np.arange(len(q)), np.argsort(-q)[:n])
    return np.where(stay, q, 0) / q[stay].sum()


@homework.part(2, "the smallest set")
def smallest_set(student, case):
    q, n = likely_words(case)
    reached = np.cumsum(np.sort(q)[::-1])
    p = 0.6 if case.number == 0 else reached[n - 2 : n].mean()
    right = largest_of(q, n)
    up = np.sort(q)
    unlikely = np.where(q <= up[np.searchsorted(np.cumsum(up), p)], q, 0)
    # first mistakes in the order of the words, then mistakes in the numbers
    mistakes = {
        "when the order is sorted: word i must keep the index i": np.sort(right)[::-1],
        "without the word that reaches p: 0.5 alone is less than 0.6": largest_of(q, n - 1),
        "when the remaining probabilities are not rescaled to sum to 1": np.where(right > 0, q, 0),
        "when only words with a probability above p are kept": np.where(q > p, q, 0),
        "when the unlikely words are kept: sort from the most likely word down": unlikely
        / unlikely.sum(),
        "when all words are kept. Do you sort from the most likely word down?": q,
    }
    judge(_call(student, "top_p", q, p), right, mistakes, what=f"top_p with p = {p:.3g}")


@homework.part(2, "at the border")
def at_the_border(student, case):
    q, n = likely_words(case)
    border = np.cumsum(np.sort(q)[::-1])[n - 1]
    mistakes = {
        "with one word too many: 0.5 + 0.25 already reaches p": largest_of(q, n + 1),
        "with one word too few: the word that reaches p belongs to the set": largest_of(q, n - 1),
    }
    came = _call(student, "top_p", q, border)
    judge(came, largest_of(q, n), mistakes, what="top_p at the border")
    word = case.size(1, 0, 2)
    sure, one = np.where(np.arange(3) == word, 0.9, 0.05), np.eye(3)[word]
    judge(
        _call(student, "top_p", sure, 0.3),
        one,
        what=("top_p of one word with probability 1, p = 0.3"),
    )
    judge(_call(student, "top_p", q, 1.0), q, what="top_p with p = 1")


# --- task 3


def read_in_pieces(its, pieces, w_q, w_k, w_v):
    """The outputs of all pieces, and the cache at the end."""
    import numpy as np

    d = w_k.shape[1]
    cache = {"k": np.zeros((0, d)), "v": np.zeros((0, d))}
    parts = [its.cached_head(piece, w_q, w_k, w_v, cache) for piece in pieces]
    return parts, cache["k"], cache["v"]


def whole(x, w_q, w_k, w_v, mask=None, scale=None, axis=-1):
    """Causal attention over all tokens in a single call."""
    mask = np.tri(len(x), dtype=bool) if mask is None else mask
    s = (x @ w_q) @ (x @ w_k).T / (np.sqrt(x.shape[1]) if scale is None else scale)
    return softmax(np.where(mask, s, -np.inf)) @ (x @ w_v)


def _scores(x, w_q, w_k):
    return (x @ w_q) @ (x @ w_k).T / np.sqrt(x.shape[1])


def _by_columns(x, w_q, w_k, w_v):
    """The softmax over the wrong axis."""
    scores = np.where(np.tri(len(x), dtype=bool), _scores(x, w_q, w_k), -np.inf)
    return softmax(scores.T).T @ (x @ w_v)


def tokens(case):
    T, d = case.size(6, 5, 8), 4 if case.number == 0 else 2 * case.size(2, 2, 3)
    return case.normal(T, d), *case.normal(3, d, d)


CACHE = "x is [T, d] and the cache [S, d]: the scores of the new tokens are [T, S + T]."


def _read(student, cuts, x, *weights):
    pieces = np.split(x, cuts)
    parts, keys, values = student.ask(read_in_pieces, pieces, *weights, hint=CACHE)
    for part, piece in zip(parts, pieces, strict=True):
        expect(part is not None, "cached_head: is the `return` missing?", "without return")
        expect(
            array_of(part).shape == piece.shape,
            f"cached_head: {len(piece)} new tokens need outputs of shape {piece.shape}, yours is "
            f"{array_of(part).shape}. Compute queries for the new tokens only",
            "with another shape than asked for",
        )
    return np.concatenate([array_of(part) for part in parts]), keys, values


def _in_order(keys, values, x, w_k, w_v, cut):
    """Judge the order of the tokens in the cache: first the earlier ones, then the new ones.

    This is judged before the outputs, because with another order all outputs differ.
    """
    order = np.arange(len(x))
    if cut == 1:  # one token at a time
        turned = order[::-1]
    else:
        turned = np.roll(order, -cut)
    wrong = "in the wrong order: new keys and values come after the old ones"
    for name, came, weights in (("keys", keys, w_k), ("values", values, w_v)):
        expect(
            np.shape(came)[:1] != (0,),
            f"cached_head: the {name} in the given cache are still empty. Extend that "
            'cache, cache["k"] = ..., not a dictionary of your own',
            "the cache stays empty",
        )
        other = w_v if name == "keys" else w_k
        mistakes = {
            wrong: (x @ weights)[turned],
            "from the other matrix: keys need w_k, values need w_v": x @ other,
            "from x itself, without the matrix": x,
            "from the newest piece only: the earlier tokens are missing": (x @ weights)[-1:]
            if cut == 1
            else (x @ weights)[cut:],
        }
        judge(came, x @ weights, mistakes, what=f"the {name} in the cache after all tokens")


@homework.part(3, "an empty cache")
def empty_cache(student, case):
    given = tokens(case)
    x, T = given[0], len(given[0])
    mistakes = {
        "without the mask: new tokens attend to later new ones": whole(
            *given, mask=np.ones((T, T), bool)
        ),
        "without √d": whole(*given, scale=1.0),
        "with d instead of √d": whole(*given, scale=x.shape[1]),
        "with the mask inverted": whole(*given, mask=np.tri(T, dtype=bool).T),
        "when a new token does not attend to itself": whole(
            *given, mask=np.tri(T, k=-1, dtype=bool)
        ),
        "with the keys instead of the values": whole(*given[:3], given[2]),
        "with the softmax over the queries: the weights of one query must sum to 1": _by_columns(
            *given
        ),
        "with future scores set to 0: exp(0) is 1, so they still get weight": softmax(
            np.where(np.tri(T, dtype=bool), _scores(*given[:3]), 0)
        )
        @ (x @ given[3]),
    }
    judge(_read(student, [], *given)[0], whole(*given), mistakes, what="all tokens at once")


@homework.part(3, "one token at a time")
def one_at_a_time(student, case):
    given = tokens(case)
    x, T = given[0], len(given[0])
    first = np.arange(T) < np.ones((T, 1))
    mistakes = {
        "when no earlier tokens are kept: does the cache grow?": x @ given[3],
        "when the mask omits the S earlier tokens: new token t attends to the first S + t + 1": (
            whole(*given, mask=first)
        ),
    }
    came, keys, values = _read(student, list(range(1, T)), *given)
    _in_order(keys, values, x, *given[2:], cut=1)
    judge(came, whole(*given), mistakes, what="one token at a time")


@homework.part(3, "one piece after another")
def pieces(student, case):
    given = tokens(case)
    x, T = given[0], len(given[0])
    cut = T // 2
    blind, greedy = np.tri(T, dtype=bool), np.tri(T, dtype=bool)
    blind[cut:] = np.tri(T - cut, T, dtype=bool)  # the mask begins at the first token again
    greedy[cut:] = True
    mistakes = {
        "when the mask omits the S earlier tokens: new token t attends to the first S + t + 1": (
            whole(*given, mask=blind)
        ),
        "when new tokens attend to later new ones": whole(*given, mask=greedy),
    }
    came, keys, values = _read(student, [cut], *given)
    _in_order(keys, values, x, *given[2:], cut=cut)
    judge(came, whole(*given), mistakes, what="one piece after another")


# --- task 4


def written(its, prompt, n, table):
    """The text, and the number of tokens that a model without a network read.

    table[i, token] is what a token at position i adds to the number of the next one.
    """
    import numpy as np

    import tinyattn as ta

    read = []  # outside the model, so that a student cannot reset the count

    class Model:
        """The next token depends on all tokens in the cache and in the input."""

        def empty_cache(self):
            return []

        def __call__(self, ids, cache=None):
            ids = np.asarray(ids)
            if ids.ndim != 2 or len(ids) != 1:
                raise ValueError(f"the model takes ids [1, T], yours are {ids.shape}")
            seen = [] if cache is None else cache
            V = table.shape[1]
            logits = np.zeros((1, ids.shape[1], V))
            for t, token in enumerate(ids[0].tolist()):
                seen.append(token)
                numbers = [table[i % len(table), s] for i, s in enumerate(seen)]
                logits[0, t, sum(numbers) % V] = 1
            read.append(ids.shape[1])
            return ta.tensor(logits)

    model = Model()
    return its.write(model, prompt, n), sum(read)


def continued(prompt, n, table):
    text = [int(token) for token in prompt]
    for _ in range(n):
        text.append(int(table[np.arange(len(text)), text].sum()) % table.shape[1])
    return np.array(text)


def a_prompt(case):
    V = case.size(11, 7, 13)
    prompt, n = case.rng.integers(0, V, case.size(4, 2, 6)), case.size(8, 5, 9)
    table = np.outer(np.arange(1, 41), np.arange(V)) + 1
    return prompt, n, case.rng.integers(0, V, table.shape) if case.number else table


def _write(student, prompt, n, table):
    hint = "The model takes ids [1, T] and a cache."
    came, read = student.ask(written, prompt, n, table, hint=hint)
    right = continued(prompt, n, table)
    expect(came is not None, "write: your function returned None. Is the `return` missing?")
    came = array_of(came)
    expect(
        not np.array_equal(came, right[len(prompt) :]) or n == 0,
        "write: the result must begin with the prompt",
        "the prompt is missing in the answer",
    )
    more = (
        f" The model read {read} tokens. With a cache, pass each token to it only once, "
        "because a token that is passed again counts twice"
        if read > len(prompt) + n
        else " Read the whole prompt first, pass the cache in each call, and take "
        "the likeliest token from the scores of the last position"
    )
    expect(
        came.shape == right.shape and np.array_equal(came, right),
        f"write: expected {right}, yours is {came}.{more}",
        "other words",
    )
    return read


@homework.part(4, "the right words")
def write(student, case):
    prompt, n, table = a_prompt(case)
    _write(student, prompt, n, table)
    _write(student, prompt, 0, table)


@homework.part(4, "each token is read once")
def read_once(student, case):
    prompt, n, table = a_prompt(case)
    read, most = _write(student, prompt, n, table), len(prompt) + n
    expect(
        isinstance(read, int) and read >= most - 1,
        f"write: the words are correct, but the model read only {read} tokens of {most - 1}",
        "words that the model has not read",
    )
    expect(
        isinstance(read, int) and read <= most,
        f"write: the words are correct, but the model read {read} tokens. If it reads each token "
        f"once, there are at most {most}. Use the cache",
        "tokens are read again and again",
    )


# --- task 5

MASK, WORDS = 2, 50


def hidden(its, ids, seed):
    """Inputs and targets, and whether ids are unchanged."""
    import numpy as np

    before = ids.copy()
    came = its.hide(ids, np.random.default_rng(seed))
    return came, bool((ids == before).all())


def _hide(student, case):
    ids = case.rng.integers(0, WORDS, (200, 300))
    came, unchanged = student.ask(hidden, ids, case.number, hint="Return (inputs, targets).")
    expect(came is not None, "hide: your function returned None. Is the `return` missing?")
    expect(unchanged, "hide: it changed `ids`. Work on a copy", "changes its input")
    expect(
        isinstance(came, tuple | list) and len(came) == 2,
        "hide: expected two arrays, return inputs, targets",
        "not two arrays",
    )
    inputs, targets = (array_of(part) for part in came)
    for name, part in (("inputs", inputs), ("targets", targets)):
        expect(
            part.shape == ids.shape,
            f"hide: the {name} must have the shape of ids, {ids.shape}, yours have {part.shape}",
            "with another shape than asked for",
        )
    return ids, inputs, targets


def _about(came, right, n, text, mistake):
    """A frequency among n independent draws; 5 standard errors."""
    error = 5 * np.sqrt(right * (1 - right) / n)
    expect(abs(came - right) < error, f"hide: {text} {came:.1%}, expected {right:.0%}", mistake)


@homework.part(5, "which tokens are chosen")
def chosen_tokens(student, case):
    ids, _, targets = _hide(student, case)
    chosen = targets != -100
    expect(
        (targets[chosen] == ids[chosen]).all(),
        "hide: the target of a chosen token must be the original token",
        "other targets",
    )
    expect(
        not chosen[ids <= MASK].any(),
        "hide: special tokens (0 to 2) were chosen. They must never be hidden",
        "special tokens are chosen",
    )
    words = ids > MASK
    _about(chosen[words].mean(), 0.15, words.sum(), "the fraction of chosen tokens is", "not 15%")
    rows = chosen.sum(axis=1) / words.sum(axis=1)
    expect(
        rows.std() > 0.01 and chosen.mean(axis=0).std() > 0.01,
        "hide: choose each token independently, not the same number or index in each row",
        "the same tokens in each row",
    )


@homework.part(5, "80, 10 and 10%")
def what_they_become(student, case):
    ids, inputs, targets = _hide(student, case)
    chosen = targets != -100
    expect(chosen.any(), "hide: no token was chosen", "no token is chosen")
    expect(
        (inputs[~chosen] == ids[~chosen]).all(),
        "hide: a token that was not chosen must stay as it is",
        "other tokens change too",
    )
    n, now, old = chosen.sum(), inputs[chosen], ids[chosen]
    other = now[(now != MASK) & (now != old)]
    _about((now == MASK).mean(), 0.8, n, "of the chosen tokens, MASK replaces", "not 80% MASK")
    # one of 47 random tokens is the token itself
    _about(other.size / n, 0.1 * 46 / 47, n, "another token replaces", "not 10% random")
    expect(
        other.size == 0 or (other.min() >= 3 and other.max() < WORDS),
        f"hide: a random token must be from 3 to {WORDS - 1}",
        "random tokens of another range",
    )
    expect(
        len(np.unique(other)) == WORDS - 3,
        "hide: each chosen token needs a random token of its own, and all must be possible",
        "the same random token",
    )


# --- task 6


def read_by(its, name, table, ids):
    """The result for a model that looks up logits, the gradient of its table, the length read."""
    import numpy as np

    import tinyattn as ta

    weight, read = ta.tensor(np.array(table), requires_grad=True), []

    def model(ids):
        ids = np.asarray(ids)
        if ids.ndim != 2:
            raise ValueError(f"the model takes ids [B, T], yours are {ids.shape}")
        read.append(ids.shape[1])
        return weight[ids]

    found = getattr(its, name)(model, ids)
    grad = None
    if name == "language_loss" and isinstance(found, ta.Tensor) and found.requires_grad:
        found.backward()
        grad = weight.grad
    return found, grad, max(read, default=0)


def a_table(case):
    V, B, T = case.size(6, 5, 9), case.size(4, 2, 5), case.size(7, 5, 8)
    return case.normal(V, V), case.rng.integers(0, V, (B, T))


def _log_p(table, ids, target):
    return np.take_along_axis(np.log(softmax(table))[ids], target[..., None], axis=-1)[..., 0]


@homework.part(6, "the loss")
def the_loss(student, case):
    table, ids = a_table(case)
    found, grad, read = student.ask(read_by, "language_loss", table, ids)
    expect(found is not None, "language_loss: it returned None. Is the `return` missing?")
    right = _log_p(table, ids[:, :-1], ids[:, 1:])
    mistakes = {
        "when the output is compared with the token at its own position": -_log_p(
            table, ids[:, :-1], ids[:, :-1]
        ).mean(),
        "when the model predicts the token before": -_log_p(table, ids[:, 1:], ids[:, :-1]).mean(),
        "when the losses are summed: return their mean": -right.sum(),
        "when the last row of tokens is left out": -right[:-1].mean(),
        "without the minus": right.mean(),
        "when it is measured in bits: use the natural logarithm": -right.mean() / np.log(2),
    }
    judge(found, -right.mean(), mistakes, what="language_loss")
    expect(
        read == ids.shape[1] - 1,
        f"language_loss: the model read {read} tokens of each row, but only {ids.shape[1] - 1} "
        "have a next token",
        "the last token is read too",
    )
    expect(
        grad is not None and np.abs(array_of(grad)).max() > 0,
        "language_loss: no gradient reaches the model. Return the Tensor, without no_grad, "
        ".numpy() or .item()",
        "without a gradient",
    )
    before = ids[:, :-1]
    slope = np.zeros_like(table)
    np.add.at(
        slope, before, (softmax(table)[before] - np.eye(len(table))[ids[:, 1:]]) / before.size
    )
    judge(grad, slope, what="language_loss, the gradient with respect to the logits")


@homework.part(6, "the chain rule")
def chain_rule(student, case):
    table, ids = a_table(case)
    found, *_ = student.ask(read_by, "log_probability", table, ids)
    right = _log_p(table, ids[:, :-1], ids[:, 1:])
    mistakes = {
        "when the mean is taken: the factors are multiplied, so add their logarithms": right.mean(
            axis=1
        ),
        "when the probabilities are multiplied without the logarithm": np.exp(right.sum(axis=1)),
        "when the probabilities are added: add their logarithms": np.exp(right).sum(axis=1),
        "when all rows are added": right.sum(),
        "with the minus: a log probability is at most 0": -right.sum(axis=1),
    }
    judge(found, right.sum(axis=1), mistakes, what="log_probability")
