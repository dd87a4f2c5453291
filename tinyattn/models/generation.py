"""Text generation: a language model continues one or more prompts of any length, with a cache.

The model must have:

    model.features(ids [B, T], cache=None) -> [B, T, d_model]
    model.head(features) -> logits [..., V]
    model.empty_cache() -> list of nn.KeyValueCache
    model.max_len       number of tokens in its context
"""

import itertools

import numpy as np

from tinyattn import inference
from tinyattn.engine.autograd import Tensor, no_grad
from tinyattn.engine.ranges import is_number
from tinyattn.models.decoding import decode_tokens
from tinyattn.nn.module import eval_mode

# number of steps between two comparisons; with a large model, a comparison takes as long as a few
# steps
LOOK_EVERY = 16


def generate(
    model,
    ids,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    rng=None,
    cache=True,
    stop=None,
    compiled=True,
):
    """Return the prompt and up to max_new_tokens further tokens, generated in evaluation mode.

    If a sequence is longer than model.max_len, the model uses only its last max_len tokens.

    Args:
        model            a language model, such as `GPT` or `Llama`
        ids              one prompt [T], prompts [B, T], or a list of prompts of different length
        max_new_tokens   largest number of new tokens
        temperature      as in `decoding.probabilities`, where 0 always selects the likeliest token,
                         and 1 draws from the model's probabilities
        top_k            number of the likeliest tokens to draw from. If None, all are possible
        top_p            total probability of the likeliest tokens to draw from. If None, all are
                         possible
        rng              seed or numpy.random.Generator, or None for the default generator
        cache            True: keep the keys and values of earlier tokens. False: recompute them for
                         each token, which gives the same result but takes longer
        stop             token id, or several token ids, that end a sequence. If None, no sequence
                         ends early
        compiled         True: run the model that `inference.compile` returns, or the modules if the
                         model cannot be compiled or cache is False. False: run the modules

    Returns:
        for one prompt an array of token ids, and for a list of prompts a list of arrays, all
        without the stop token. For prompts [B, T] an array [B, T + n] with n <= max_new_tokens, in
        which a row that has ended is filled with its stop token

    Raises:
        TypeError: ids are not a list or an array
        ValueError: a prompt is empty or does not consist of integers, stop is not integers or
            not in the vocabulary, or max_new_tokens, temperature, top_k or top_p is out of range
        IndexError: a prompt contains a token that the model does not have
    """
    prompts = _prompts(ids)
    if not is_number(max_new_tokens, whole=True) or max_new_tokens < 0:
        raise ValueError(
            "generate: expected a whole number max_new_tokens >= 0, got "
            f"max_new_tokens={max_new_tokens!r}"
        )
    with eval_mode(model), no_grad():
        new, length = decode_tokens(
            *prefill(model, prompts, cache, compiled),
            stop,
            max_new_tokens,
            temperature,
            top_k,
            top_p,
            rng,
        )
    if not isinstance(ids, list | tuple) and np.ndim(ids) == 2:
        for row, n in zip(new, length, strict=True):
            row[n:] = row[n] if n < len(row) else 0
        return np.concatenate([np.reshape(prompts, np.shape(ids)), new], axis=1)
    texts = [np.concatenate([p, y[:n]]) for p, y, n in zip(prompts, new, length, strict=True)]
    return texts[0] if _is_one(ids) else texts


def prefill(model, prompts, cache=True, compiled=True):
    """Read the prompts with a model, and return (step, state, start) for `models.decoding`.

        step, state, start = prefill(model, prompts)
        answers = beam_search(step, state, start, stop, beams=4)

    Call it in evaluation mode and under `no_grad`. The last token of each prompt becomes `start`,
    because the logits after this token are not computed yet. Once every LOOK_EVERY steps, `step`
    compares the compiled model with the model, and raises `inference.CannotCompile` if a layer has
    changed.

    Args:
        model      as in `generate`
        prompts    list of B integer arrays, each with at least one token
        cache      as in `generate`
        compiled   as in `generate`

    Returns:
        (step, state, start), the first three arguments of `decoding.decode` and `beam_search`
    """
    current = compiled_or_itself(model) if compiled and cache else lambda: model
    lengths = np.array([len(p) for p in prompts], np.int64)
    seen = np.zeros((len(prompts), max(lengths, default=1) - 1), np.int64)
    for row, p in zip(seen, prompts, strict=True):
        # prompts are aligned on the right, where the new tokens follow
        row[len(row) - len(p) + 1 :] = p[:-1]
    state = {"seen": seen, "lengths": lengths - 1, "cache": None}
    if cache and lengths.max(initial=0) <= model.max_len:
        state["cache"] = model.empty_cache()
        if seen.size:  # read all prompts together, then remove the padding from the cache
            current().features(_to_the_left(seen, lengths - 1), state["cache"])
            for layer in state["cache"]:
                layer.truncate(lengths - 1)

    count, compiled_model = itertools.count(), None

    def step(tokens, state):
        nonlocal compiled_model
        if next(count) % LOOK_EVERY == 0:
            compiled_model = current()
        model = compiled_model
        seen = np.concatenate([state["seen"], tokens[:, None]], axis=1)
        lengths, cache = state["lengths"] + 1, state["cache"]
        if cache is not None and lengths.max(initial=0) <= model.max_len:
            features = model.features(tokens[:, None], cache)[:, -1]
        else:
            cache, n = None, np.minimum(lengths, model.max_len)
            everything = model.features(_to_the_left(seen[:, -n.max(initial=1) :], n))
            features = everything[np.arange(len(n)), n - 1]
        return model.head(features), {"seen": seen, "lengths": lengths, "cache": cache}

    return step, state, np.array([p[-1] for p in prompts], np.int64)


def compiled_or_itself(model):
    """Return a function without arguments that returns the compiled model.

    If the model cannot be compiled because a layer was changed, the function returns the model.
    """
    try:
        return inference.compile(model).module
    except inference.CannotCompile:
        return lambda: model


def _to_the_left(seen, lengths):
    """Move the last lengths[b] tokens of row b to its beginning. The other tokens are arbitrary."""
    T = seen.shape[1]
    index = np.arange(T) + (T - lengths)[:, None]
    return np.take_along_axis(seen, np.minimum(index, T - 1), axis=1)


def _is_one(ids):
    """Return whether ids is a single prompt."""
    if isinstance(ids, list | tuple):
        return not ids or np.ndim(ids[0]) == 0
    return np.ndim(ids) == 1


def _prompts(ids):
    """Return a list of integer arrays, one for each sequence."""
    ids = ids.data if isinstance(ids, Tensor) else ids
    if not hasattr(ids, "__iter__") or getattr(ids, "ndim", 1) == 0:
        raise TypeError(
            f"generate: ids must be a prompt [T] or several prompts, got {ids!r}. Pass, for "
            "example, [start] or tokenizer.encode(text)"
        )
    prompts = [np.asarray(p) for p in ([ids] if _is_one(ids) else ids)]
    for p in prompts:
        if p.dtype.kind in "US":
            raise ValueError(
                "generate: ids must be token ids, got a text. Pass tokenizer.encode(text)"
            )
        if p.ndim == 1 and not p.size:
            raise ValueError(
                "generate: each prompt in ids must contain at least one token, got an empty "
                "prompt. Begin each prompt with a start token"
            )
        if p.ndim != 1 or p.dtype.kind not in "iu":
            advice = "Pass one prompt, prompts [B, T] or a list of prompts"
            if p.ndim == 1 and p.dtype.kind in "fb":
                advice = "Convert each prompt with np.asarray(prompt, int)"
            raise ValueError(
                "generate: each prompt in ids must consist of token ids, which are integers [T], "
                f"got {p.dtype} of shape {p.shape}. {advice}"
            )
    return prompts
