"""Scaled dot-product attention: every query receives a weighted mean of the values."""

import math

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.boxes import one_box
from tinyattn.engine.convert import as_tensor, of_one_dtype, to_array
from tinyattn.engine.ranges import check_range
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.ops import attention


@with_torch_hints
@one_box
def scaled_dot_product_attention(
    q, k, v, mask=None, bias=None, causal=False, scale=None, impl="auto"
):
    """Return the weighted mean of the values for each query, y_t = Σ_s a_ts v_s.

        a_ts = softmax_s(scale q_t·k_s + bias_ts)

    A query that may not attend to any key gives y = 0 and gets no gradient. A key to which no query
    may attend is treated as zeros, so NaN or infinity in it has no effect. If some queries may
    attend to it, its NaN can reach the other queries too, because 0 · NaN is NaN.

    Args:
        q        queries (receivers) [..., T, D], whose leading axes (batch, heads) broadcast
        k        keys (senders) [..., S, D]
        v        values [..., S, E]
        mask     bool, broadcast to [..., T, S], True where query t may attend to key s, or None for
                 everywhere
        bias     numbers added to the scores, broadcast to [..., T, S], or None for 0. With -inf,
                 the weight of a key is 0, but unlike with the mask, NaN in this key or its value
                 has an effect
        causal   True: query t attends only to the keys s ≤ t, where t and s both count from 0
        scale    factor of the products q·k, a number, or None for 1/√D
        impl     which implementation to use. All give the same result and gradients up to rounding
                 "sums"    the index sums as loops (compiled if Numba is installed)
                 "numpy"   array algebra: two matrix products and a softmax
                 "kernel"  compiled code that computes block by block and never stores the T×S
                           weights
                 "auto"    "kernel" where it is faster, otherwise "numpy"

    Returns:
        y [..., T, E]

    Raises:
        ValueError: q, k or v has fewer than two axes, q and k differ in D, k and v differ in S, or
            the leading axes do not broadcast
        ValueError: the mask or the bias does not broadcast, scale is NaN, or impl is unknown
        TypeError: the mask is not bool, q, k, v or bias is not floating point, scale is not a
            number, or impl is "sums" or "kernel" and the dtype is float16

    Source: Vaswani et al. 2017, eq. 1, and slides N09, N10.
    """
    q, k, v, mask, bias, scale = _check_inputs(q, k, v, mask, bias, scale)
    if causal and k.shape[-2] > q.shape[-2]:
        k, v, mask, bias = attention.crop_future_keys(q.shape[-2], k, v, mask, bias)
    if mask is not None:
        k, v = attention.zero_masked_keys(k, v, mask)
    return attention.attention(q, k, v, mask, bias, bool(causal), scale, impl=impl)


@with_torch_hints
def packed_self_attention(x, num_heads, mask=None, bias=None, causal=False):
    """Return the self-attention of H heads whose queries, keys and values are packed in one array.

    The result is the same as if you split x into queries, keys and values, split each of these into
    heads, call `scaled_dot_product_attention`, and concatenate the heads of its result. This
    function copies nothing and computes the gradient of x as one array.

    Args:
        x           [..., T, 3·H·d]: all queries of a token, then all its keys, then all its values.
                    Each of these thirds consists of H heads of d numbers, one after the other
        num_heads   number H of heads
        mask        bool, broadcast to [..., H, T, T], True where query t may attend to key s, or
                    None for everywhere. A mask [B, T, T] needs an axis for the heads, mask[:, None]
        bias        numbers added to the scores, broadcast to [..., H, T, T], or None for 0
        causal      True: token t attends only to the tokens ≤ t

    Returns:
        [..., T, H·d], with the heads concatenated

    Raises:
        ValueError: x has fewer than two axes, its features cannot be divided among queries, keys,
            values and heads, num_heads < 1, or the mask or the bias does not broadcast
        TypeError: the mask is not bool, x or bias is not floating point, or num_heads is not a
            whole number
    """
    x = _tensor("packed_self_attention", x, "x")
    check_range("packed_self_attention", 1, whole=True, num_heads=num_heads)
    if x.ndim < 2:
        raise ValueError(
            f"packed_self_attention: x must be [..., T, 3 * num_heads * d], got shape {x.shape}"
        )
    *lead, T, wide = x.shape
    if wide % (3 * num_heads):
        raise ValueError(
            f"packed_self_attention: x has {wide} feature{'' if wide == 1 else 's'}, which cannot "
            f"be divided among queries, keys and values of {num_heads} "
            f"head{'' if num_heads == 1 else 's'}. Use a multiple of 3 * num_heads features"
        )
    mask = None if mask is None else to_array(_bool_mask("packed_self_attention", mask))
    if bias is not None:
        x, bias = of_one_dtype(x, _tensor("packed_self_attention", bias, "bias"))
    for name, a in (("mask", mask), ("bias", bias)):
        if a is not None:
            shape = *lead, num_heads, T, T
            fact = _not_broadcast(name, a.shape, shape, "..., H, T, T")
            if fact:
                advice = _advice_on_axes(name, a.shape, shape)
                raise ValueError(f"packed_self_attention: {fact}{advice}")
    return attention.packed_self_attention(x, mask, bias, bool(causal), num_heads)


@with_torch_hints
def attention_weights(q, k, mask=None, bias=None, causal=False, scale=None):
    """Return the attention weight of each key for each query.

        a_ts = softmax_s(scale q_t·k_s + bias_ts)

    Args:
        q        queries [..., T, D], whose leading axes (batch, heads) broadcast
        k        keys [..., S, D]
        mask     bool, broadcast to [..., T, S], True where query t may attend to key s, or None for
                 everywhere
        bias     numbers added to the scores, broadcast to [..., T, S], or None for 0
        causal   True: query t attends only to the keys s ≤ t, where t and s both count from 0
        scale    factor of the products q·k, a number, or None for 1/√D

    Returns:
        weights [..., T, S]. Each row sums to 1, or to 0 if its query may not attend to any key

    Raises:
        ValueError: q or k has fewer than two axes, they differ in D, their leading axes do not
            broadcast, the mask or the bias does not broadcast, or scale is NaN
        TypeError: the mask is not bool, q, k or bias is not floating point, or scale is not a
            number
    """
    q, k, _, mask, bias, scale = _check_inputs(q, k, None, mask, bias, scale)
    return attention.attention_weights(q, k, mask, bias, causal, scale)


# ---------------------------------------------------------------- arguments


def _check_inputs(q, k, v, mask, bias, scale):
    """Return (q, k, v, mask, bias, scale) with arrays of one dtype, after a check of all shapes.

    Without values, v is None.
    """
    owner = "attention_weights" if v is None else "scaled_dot_product_attention"
    q, k = _tensor(owner, q, "q"), _tensor(owner, k, "k")
    v = None if v is None else _tensor(owner, v, "v")
    bias = None if bias is None else _tensor(owner, bias, "bias")
    mask = None if mask is None else _bool_mask(owner, mask)
    advice = ""
    try:
        shape = _shape_of_scores(q.shape, k.shape, k.shape if v is None else v.shape)
        for name, x in (("mask", mask), ("bias", bias)):
            fact = None if x is None else _not_broadcast(name, x.shape, shape, "..., T, S")
            if fact:
                advice = _advice_on_axes(name, x.shape, shape)
                raise ValueError(fact)
    except ValueError as fact:
        named = [("q", q), ("k", k), *([] if v is None else [("v", v)])]
        shapes = ", ".join(f"{name} {x.shape}" for name, x in named)
        raise ValueError(f"{owner}: {fact} ({shapes}){advice}") from None
    q, k, v, bias = of_one_dtype(q, k, v, bias)
    if scale is not None and (isinstance(scale, Tensor) or np.ndim(scale)):
        raise TypeError(
            f"{owner}: scale must be a number, got {type(scale).__name__}. Multiply q by it, and "
            "pass scale=1"
        )
    if scale is not None:
        check_range(owner, scale=scale[()] if isinstance(scale, np.ndarray) else scale)
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else float(scale)
    return q, k, v, mask, bias, scale


def _tensor(owner, x, name):
    x = as_tensor(x)
    if x.dtype.kind != "f":
        advice = "Convert it with .astype(np.float32)"
        if name == "bias" and x.dtype == bool:
            advice = "If True means that a query may attend to a key, pass it as mask="
        raise TypeError(f"{owner}: {name} must be floating point, got {x.dtype}. {advice}")
    return x


def _bool_mask(owner, mask):
    mask = mask if isinstance(mask, Tensor) else np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(
            f"{owner}: mask must be bool (True where a query may attend to a key), got "
            f"{mask.dtype}. Compare first (mask != 0), or pass numbers that are added to the "
            "scores as bias="
        )
    return mask


def _shape_of_scores(q, k, v):
    """Return the shape [..., T, S] of the scores, for q, k and v of these shapes."""
    for name, axes, x in (("q", "T, D", q), ("k", "S, D", k), ("v", "S, E", v)):
        if len(x) < 2:
            raise ValueError(f"{name} must be [..., {axes}]")
    if q[-1] != k[-1]:
        features = "1 feature" if q[-1] == 1 else f"{q[-1]} features"
        raise ValueError(f"q has {features} and k has {k[-1]}, but they need the same number")
    if k[-2] != v[-2]:
        keys = "is 1 key" if k[-2] == 1 else f"are {k[-2]} keys"
        values = "1 value" if v[-2] == 1 else f"{v[-2]} values"
        raise ValueError(f"there {keys} and {values}, but each key needs one value")
    if q[:-2] == k[:-2] == v[:-2]:
        return (*q[:-1], k[-2])
    try:
        return (*np.broadcast_shapes(q[:-2], k[:-2], v[:-2]), q[-2], k[-2])
    except ValueError:
        raise ValueError("the leading axes do not broadcast") from None


def _broadcasts(own, shape):
    return len(own) <= len(shape) and all(
        n in (1, m) for n, m in zip(own, shape[len(shape) - len(own) :], strict=True)
    )


def _not_broadcast(name, own, shape, axes):
    """Return None if the shape `own` broadcasts to `shape`, and a sentence for an error if not."""
    if not _broadcasts(own, shape):
        return f"{name} {own} does not broadcast to [{axes}] = {shape}"


def _advice_on_axes(name, own, shape):
    """Return advice for a mask or bias with an axis for the batch, but without the next axes."""
    missing = len(shape) - len(own)
    if len(own) < 2 or missing < 1 or not _broadcasts((own[0], *[1] * missing, *own[1:]), shape):
        return ""
    return f". If axis 0 of {name} is the batch, write {name}[:{', None' * missing}]"
