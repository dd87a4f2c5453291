"""Sampling, greedy decoding and beam search for every language model.

All of these algorithms call the model once for each new token, through a function

    step(tokens [N] int, state) -> (logits [N, V], state)

The logits predict the token that follows. The state is the model's memory, which consists of arrays
in tuples, lists or dicts. The N sequences are on axis 0, so that indexing can copy, drop and
reorder them. An object with a method `rows(index)`, such as `nn.KeyValueCache`, is also allowed.

Letters: B sequences, K beams, N rows of a call (B, or B·K in a beam search), V tokens of the
vocabulary.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.engine.autograd import no_grad
from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range, is_number
from tinyattn.functional.sampling import multinomial


def index_state(state, index):
    """Return the state of the sequences with these indices, in the order of `index`.

    Args:
        state   memory of N sequences: arrays with the sequences on axis 0, or objects with a method
                `rows(index)`, in tuples, lists or dicts. None stays None
        index   indices [M] of sequences. A sequence may be omitted or repeated

    Raises:
        TypeError: the state contains an object that cannot be indexed by sequence
        IndexError: there is no sequence with one of these indices
    """
    if state is None:
        return None
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(index_state(part, index) for part in state))
    if isinstance(state, tuple | list):
        return type(state)(index_state(part, index) for part in state)
    if isinstance(state, dict):
        return {name: index_state(part, index) for name, part in state.items()}
    if hasattr(state, "rows"):
        return state.rows(index)
    if not hasattr(state, "shape") or not state.shape:
        raise TypeError(
            f"decoding: the state contains an object of type {type(state).__name__}, but must "
            "consist of arrays with the sequences on axis 0, in tuples, lists or dicts. Pass such "
            "a state, and return one from step"
        )
    return state[index]


# ---------------------------------------------------------------- one token


def probabilities(logits, temperature=1.0, top_k=None, top_p=None):
    """Return softmax(logits / temperature), restricted to the likeliest tokens, in float64.

    The temperature is applied first, then top_k, then top_p, and the remaining probabilities are
    scaled to sum to 1. Among equally likely tokens, those with lower indices are preferred, so
    top_k keeps exactly k tokens.

    Args:
        logits        scores of the V tokens [..., V]
        temperature   divisor of the logits. A value below 1 sharpens the distribution, a value
                      above 1 flattens it, and 0 selects the largest logit
        top_k         number of the likeliest tokens to keep. If None, all are kept
        top_p         total probability p. The smallest set of the likeliest tokens with a total of
                      at least p is kept. If None, all are kept

    Returns:
        probabilities [..., V], an array in float64

    Raises:
        ValueError: temperature, top_k or top_p is out of range, there are no logits, or the largest
            logit of a row is not finite

    Source: Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p).
    """
    z = np.array(to_array(logits), np.float64)
    _check_logits(z, temperature, top_k, top_p)
    if temperature == 0:
        return (np.arange(z.shape[-1]) == z.argmax(axis=-1)[..., None]).astype(np.float64)
    z = (z - z.max(axis=-1, keepdims=True)) / temperature
    if top_k is not None and top_k < z.shape[-1]:
        least = np.partition(z, -top_k, axis=-1)[..., -top_k, None]  # the k-th largest logit
        tied = z == least
        room = top_k - np.sum(z > least, axis=-1, keepdims=True)
        z[(z < least) | (tied & (np.cumsum(tied, axis=-1) > room))] = -np.inf
    p = np.exp(z)
    p /= p.sum(axis=-1, keepdims=True)
    if top_p is not None and top_p < 1:
        order = np.argsort(-p, axis=-1, kind="stable")
        likeliest = np.take_along_axis(p, order, axis=-1)
        # total probability of all likelier tokens
        before = np.cumsum(likeliest, axis=-1) - likeliest
        np.put_along_axis(p, order, np.where(before < top_p, likeliest, 0), axis=-1)
        p /= p.sum(axis=-1, keepdims=True)
    return p


def sample(logits, temperature=1.0, top_k=None, top_p=None, rng=None):
    """Draw a random token from `probabilities(...)` for each row of logits.

    Args:
        logits        scores of the V tokens [..., V]
        temperature   as in `probabilities`
        top_k         as in `probabilities`
        top_p         as in `probabilities`
        rng           seed or numpy.random.Generator, or None for the default generator

    Returns:
        tokens [...], integers from 0 to V - 1

    Raises:
        ValueError: as in `probabilities`
    """
    if temperature == 0:
        z = np.asarray(to_array(logits))
        _check_logits(z, temperature, top_k, top_p)
        return z.argmax(axis=-1)
    return multinomial(probabilities(logits, temperature, top_k, top_p), rng=rng)


def _check_logits(z, temperature, top_k, top_p):
    if not is_number(temperature) or not 0 <= temperature < np.inf:
        raise ValueError(
            "decoding: temperature must be finite and >= 0 (0: the highest score), got "
            f"temperature={temperature!r}"
        )
    if top_k is not None and not (is_number(top_k, whole=True) and top_k >= 1):
        raise ValueError(
            f"decoding: top_k must be a whole number of tokens >= 1, got top_k={top_k!r}"
        )
    if top_p is not None and not (is_number(top_p) and 0 < top_p <= 1):
        raise ValueError(f"decoding: expected 0 < top_p <= 1 (a probability), got top_p={top_p!r}")
    if z.ndim == 0 or z.shape[-1] == 0:
        raise ValueError(f"decoding: logits must be [..., V] with V >= 1, got shape {z.shape}")
    highest = z.max(axis=-1)
    if not highest.min(initial=np.inf) > -np.inf or (highest == np.inf).any():
        raise ValueError(
            "decoding: the largest logit of each row must be finite, but a row contains NaN or "
            "+inf, or only -inf. Look for a training that diverged, or a mask that hides all tokens"
        )


# ---------------------------------------------------------------- one sequence after the other


def decode(
    step, state, start, stop=None, max_len=50, temperature=1.0, top_k=None, top_p=None, rng=None
):
    """Draw random tokens one by one until the stop token, and return B arrays of new tokens.

    Args:
        step          function (tokens [B] int, state) -> (logits [B, V], state). The logits predict
                      the token that follows
        state         the model's memory of B sequences: arrays with the sequences on axis 0, in
                      tuples, lists or dicts, or None
        start         token id before the first new token (then B = 1), or token ids [B]
        stop          token id, or several token ids, that end a sequence and are not part of the
                      answer. If None, every sequence gets max_len tokens
        max_len       largest number of new tokens
        temperature   as in `probabilities`, where 0 always selects the likeliest token
        top_k         as in `probabilities`
        top_p         as in `probabilities`
        rng           seed or numpy.random.Generator, or None for the default generator

    Returns:
        a list of B integer arrays, each with up to max_len tokens

    Raises:
        ValueError: start or stop does not consist of token ids, no stop token is in the vocabulary,
            or another argument is out of range
        ValueError: the logits are not [B, V], or the largest logit of a row is not finite
        TypeError: step does not return (logits, state), or max_len is not a whole number
    """
    out, length = decode_tokens(step, state, start, stop, max_len, temperature, top_k, top_p, rng)
    return [row[:n] for row, n in zip(out, length, strict=True)]


def decode_tokens(step, state, start, stop, max_len, temperature, top_k, top_p, rng):
    """Return the tokens [B, T] of T steps, and the number of tokens before the stop token [B].

    The arguments are those of `decode`.
    """
    check_range("decode", 0, whole=True, max_len=max_len)
    tokens, rng = _start(start), generator(rng)
    ends, out = _stop(stop), np.empty((len(tokens), max_len), np.int64)
    length, t = np.full(len(tokens), max_len), 0
    with no_grad():
        while t < max_len and (length == max_len).any():
            logits, state = _called(step, tokens, state)
            _check_stop(ends, logits.shape[-1])
            tokens = sample(logits, temperature, top_k, top_p, rng)
            out[:, t] = tokens
            length[(length == max_len) & (tokens[:, None] == ends).any(axis=1)] = t
            t += 1
    return out[:, :t], length


def greedy(step, state, start, stop=None, max_len=50):
    """Take the likeliest token at each step, and return B arrays of new tokens.

    Args:
        step      as in `decode`
        state     as in `decode`
        start     as in `decode`
        stop      as in `decode`
        max_len   as in `decode`

    Returns:
        a list of B integer arrays, each with up to max_len tokens

    Raises:
        TypeError: as in `decode`
        ValueError: as in `decode`
    """
    return decode(step, state, start, stop, max_len, temperature=0)


class Hypothesis(NamedTuple):
    """A sequence that a beam search found.

    Attributes:
        tokens            new tokens, without start and stop tokens
        score             log_probability / ((5 + T) / 6)^length_penalty for T tokens, including
                          the stop token. The best answer has the highest score
        log_probability   sum of the log probabilities of all tokens, including the stop token
        finished          True if the sequence ended with a stop token, False if it was cut at
                          max_len
    """

    tokens: np.ndarray
    score: float
    log_probability: float
    finished: bool


def beam_search(step, state, start, stop=None, beams=4, max_len=50, length_penalty=0.6):
    """Find likely sequences by extending the K likeliest partial sequences step by step.

        score(y) = Σ_t log p(y_t | y_<t) / ((5 + |y|) / 6)^length_penalty

    y_t is token t of a sequence y with |y| tokens, including the stop token. Each step extends all
    partial sequences by each of the V tokens. Of the K likeliest results, those that end with a
    stop token become answers. The K likeliest without a stop token are extended further. A search
    ends when it has K answers, or when no partial sequence can still beat its best answer. After
    max_len tokens, the partial sequences become answers, too. With one beam, the search is the same
    as `greedy`, and with one beam for each possible sequence, it is exhaustive.

    Args:
        step             as in `decode`, called with B tokens in the first step and with B·K in
                         later steps
        state            as in `decode`
        start            as in `decode`
        stop             as in `decode`
        beams            number K of partial sequences
        max_len          largest number of new tokens
        length_penalty   exponent in the divisor. With 0, plain probabilities are compared, which
                         favours short answers

    Returns:
        a list with one entry for each sequence, a list of up to K `Hypothesis`, the best first

    Raises:
        ValueError: beams or max_len is below 1, start or stop does not consist of token ids, or no
            stop token is in the vocabulary
        ValueError: the logits are not [N, V], or the largest logit of a row is not finite
        TypeError: step does not return (logits, state), the state cannot be indexed, or beams,
            max_len or length_penalty is not a number of the right kind

    Source: Wu et al. 2016, eq. 14 (without the coverage term).
    """
    check_range("beam_search", 1, whole=True, beams=beams, max_len=max_len)
    check_range("beam_search", length_penalty=length_penalty)
    tokens = _start(start)
    B, K, ends = len(tokens), beams, _stop(stop)
    total = np.zeros((B, 1))  # log-probabilities [B, K] of the sequences; -inf: an unused beam
    history = np.empty((B, 1, 0), np.int64)
    answers = [[] for _ in range(B)]
    searching = np.ones(B, bool)
    with no_grad():
        for t in range(1, max_len + 1 if B else 1):
            logits, state = _called(step, tokens, state)
            V = logits.shape[-1]
            _check_stop(ends, V)
            scores = total[..., None] + log_softmax(logits).reshape(*total.shape, V)  # [B, K, V]
            found = _Candidates(scores, ends, K)
            penalty = ((5 + t) / 6) ** length_penalty
            for b, beam, token in found.ending:
                if searching[b]:
                    p = float(scores[b, beam, token])
                    answers[b].append(Hypothesis(history[b, beam], p / penalty, p, True))
            total, parent, tokens = found.total, found.parent, found.token  # [B, K]
            history = np.take_along_axis(history, parent[..., None], axis=1)
            history = np.concatenate([history, tokens[..., None]], axis=-1)  # [B, K, t]
            searching &= [
                _may_improve(a, p, K, t, max_len, length_penalty)
                for a, p in zip(answers, total, strict=True)
            ]
            if not searching.any() or t == max_len:
                break
            # parent is a beam of sequence b, so its state is in row b·(beams before) + parent
            state = index_state(state, (np.arange(B)[:, None] * scores.shape[1] + parent).ravel())
            tokens = tokens.ravel()
        for b in np.flatnonzero(searching):
            cut = [(y, float(p)) for y, p in zip(history[b], total[b], strict=True) if p > -np.inf]
            answers[b] += [Hypothesis(y, p / penalty, p, False) for y, p in cut]
    return [sorted(a, key=lambda h: -h.score)[:K] for a in answers]


class _Candidates:
    """The best continuations in scores [B, K, V], where `ends` are the stop tokens.

    `ending` contains (sequence, beam, token) for those of the K likeliest that end with a stop
    token. `total`, `parent` and `token` [B, K] are the log-probability, the beam and the new token
    of the K likeliest continuations that do not end.
    """

    def __init__(self, scores, ends, K):
        B, before, V = scores.shape
        flat = scores.reshape(B, -1)
        likeliest = _highest(flat, K)
        ending = np.isin(likeliest % V, ends)
        ending &= np.take_along_axis(flat, likeliest, axis=-1) > -np.inf
        self.ending = [(b, *divmod(int(likeliest[b, k]), V)) for b, k in np.argwhere(ending)]
        going_on = np.where(np.isin(np.arange(V), ends), -np.inf, scores).reshape(B, -1)
        order = _highest(going_on, K)
        # there are fewer continuations than beams, so the other beams stay unused
        if order.shape[1] < K:
            order = np.pad(order, ((0, 0), (0, K - order.shape[1])))
        self.total = np.take_along_axis(going_on, order, axis=-1)
        self.total[:, before * V :] = -np.inf
        self.parent, self.token = order // V, order % V


def _highest(scores, K):
    """Return the indices of the K highest scores in each row [B, N], in descending order."""
    if K == 1:
        return scores.argmax(axis=-1)[:, None]  # many times faster than sorting
    return np.argsort(-scores, axis=-1, kind="stable")[:, :K]


def _may_improve(answers, total, K, t, max_len, length_penalty):
    """Return whether the search of one sequence can still find a better answer after t steps.

    `total` contains the log-probabilities of its partial sequences [K], which can only fall.
    """
    if len(answers) >= K or total.max() == -np.inf:
        return False
    longest = max_len if length_penalty > 0 else t + 1
    bound = total.max() / ((5 + longest) / 6) ** length_penalty
    return not answers or max(h.score for h in answers) < bound


def log_softmax(logits):
    """Return log p = z - log Σ exp z as an array in float64.

    Args:
        logits   scores z of the V tokens [..., V]. A score of -inf stays -inf

    Raises:
        ValueError: the largest logit of a row is not finite
    """
    z = np.asarray(to_array(logits), np.float64)
    _check_logits(z, 1.0, None, None)
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def _called(step, tokens, state):
    """Call step(tokens, state), and return its logits [N, V] and its state, after a check."""
    answer = step(tokens, state)
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise TypeError(
            "decoding: step(tokens, state) must return a tuple (logits, state), got "
            + (f"a tuple of {len(answer)}" if isinstance(answer, tuple) else type(answer).__name__)
        )
    logits = np.asarray(to_array(answer[0]))
    if logits.ndim != 2 or len(logits) != len(tokens):
        raise ValueError(
            f"decoding: step was given tokens [{len(tokens)}] and must return logits "
            f"[{len(tokens)}, V], got shape {logits.shape}"
        )
    return logits, answer[1]


def _start(start):
    tokens = np.atleast_1d(np.asarray(to_array(start)))
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
        raise ValueError(
            "decoding: start must be a token id or token ids [B], which are integers, got "
            f"{tokens.dtype} of shape {tokens.shape}"
        )
    return tokens


def _check_stop(ends, V):
    """Raise ValueError if there are stop tokens, but none of them is in the vocabulary."""
    if ends.size and not ((ends >= 0) & (ends < V)).any():
        raise ValueError(
            f"decoding: stop must be a token id from 0 to {V - 1}, got {ends[0]}, with which no "
            "sequence could end. Pass the id of the token that ends a sequence"
        )


def _stop(stop):
    """Return the stop tokens as an array."""
    stop = np.atleast_1d(np.asarray([] if stop is None else to_array(stop)))
    if stop.ndim != 1 or (stop.size and stop.dtype.kind not in "iu"):
        raise ValueError(
            "decoding: stop must be a token id or a list of token ids, which are integers, got "
            f"{stop.dtype} of shape {stop.shape}"
        )
    return stop.astype(np.int64)
