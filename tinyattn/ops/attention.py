"""Scaled dot-product attention: every query receives a weighted mean of the values.

The kernel never stores the weights, T×S numbers for T queries and S keys. `packed_self_attention`
computes the same for queries, keys and values in a single array, which one projection has computed.
In the docstrings, x̄ is dL/dx.
"""

import math

import numpy as np

from tinyattn import kernels
from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import to_array
from tinyattn.kernels import fast
from tinyattn.ops.backends import LEAST_QUERIES, operation
from tinyattn.ops.elementwise import multiply
from tinyattn.ops.linalg import matmul
from tinyattn.ops.shape import swapaxes


@primitive
def attention_softmax(scores):
    """Return the softmax of scores s [..., T, S] over the keys, a_ts = exp s_ts / Σ_r exp s_tr.

    The gradient is s̄_ts = a_ts (ā_ts - Σ_r ā_tr a_tr).

    A query whose scores are all -inf attends to no key, so all its weights are 0. A weight of 0 and
    its gradient stay 0 even if another score of the query is NaN.
    """
    # Subtracting the largest score of each query changes nothing, but keeps exp from overflowing.
    # If this score is -inf, 0 is subtracted instead, because -inf - -inf would be NaN.
    highest = np.fmax.reduce(scores, axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(highest == -np.inf, 0, highest))
    total = e.sum(axis=-1, keepdims=True)
    if np.isnan(total).any():
        return np.where(e == 0, 0, e / total)
    return e / np.where(total == 0, 1, total)


attention_softmax.defvjp(
    lambda g, a, scores: np.where(a == 0, 0, a * (g - np.sum(g * a, axis=-1, keepdims=True)))
)


def attention_weights(q, k, mask, bias, causal, scale):
    """Return the weights a = softmax(scale q·k + bias) of the keys for each query, [..., T, S].

    Args:
        q        queries [..., T, D]
        k        keys [..., S, D]
        mask     bool array, True where query t may attend to key s, or None for everywhere
        bias     numbers that are added to the scores, or None
        causal   True: query t attends only to the keys s ≤ t
        scale    factor of the products q·k
    """
    scores = matmul(multiply(q, scale), swapaxes(k, -1, -2))
    if bias is not None:
        scores = scores + bias
    if causal:
        past = np.tri(*scores.shape[-2:], dtype=bool)
        mask = past if mask is None else mask & past
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return attention_softmax(scores)


def _number_of_scores(q, k, v, mask, bias, causal, scale):
    """Return T·S summed over heads, or 0 for few queries, as the kernel computes 64 together."""
    (*lead, T, _), S = q.shape, k.shape[-2]
    if T < LEAST_QUERIES:
        return 0
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    return math.prod(lead) * T * S


@operation("attention", work=_number_of_scores)
def attention(q, k, v, mask, bias, causal, scale):
    """Return y_t = Σ_s a_ts v_s [..., T, E], with a = softmax(scale q·k + bias).

    v [..., S, E] are the values. The other arguments are those of `attention_weights`.
    """
    return matmul(attention_weights(q, k, mask, bias, causal, scale), v)


def _loops_backward(g, y, residuals, needs_grad, q, k, v, mask, bias, causal, scale):
    dq, dk, dv, dbias = kernels.attention.heads_by_loops_backward(g, residuals, q, k, v, scale)
    return dq, dk, dv, None, dbias


def _kernel_backward(g, y, residuals, needs_grad, q, k, v, mask, bias, causal, scale):
    inputs = q, k, v, mask, bias, causal, scale
    dq, dk, dv, dbias = fast.attention.attention_backward(g, y, residuals, *inputs, needs_grad[4])
    return dq, dk, dv, None, dbias


attention.implement(
    "sums", lambda *inputs: kernels.attention.heads_by_loops(*inputs), _loops_backward
)
attention.implement("kernel", lambda *inputs: fast.attention.attention(*inputs), _kernel_backward)


# ---------------------------------------------------------------- keys that are never attended to


def crop_future_keys(T, k, v, mask, bias):
    """Return k, v, mask and bias without the keys s ≥ T, for attention that is causal.

    T is the number of queries, and query t attends only to the keys s ≤ t, so no query attends to
    the removed keys.
    """
    mask, bias = (
        x if x is None or x.shape[-1:] in ((), (1,)) else x[..., :T] for x in (mask, bias)
    )
    return k[..., :T, :], v[..., :T, :], mask, bias


def zero_masked_keys(k, v, mask):
    """Return k and v with zeros for the keys to which no query may attend (`mask` is False).

    If all numbers are finite, such keys have no influence, and k and v are returned unchanged.
    """
    unseen = ~np.any(to_array(mask), axis=-2 if mask.ndim > 1 else ())  # [..., S]
    if not unseen.any() or np.isfinite(np.sum(to_array(k)) + np.sum(to_array(v))):
        return k, v
    unseen = np.broadcast_to(unseen, (*unseen.shape[:-1], k.shape[-2]))[..., None]
    return np.where(unseen, 0, k), np.where(unseen, 0, v)


# ---------------------------------------------------------------- all heads in one array


@primitive
def heads_of(x, part, heads):
    """Return a view [..., H, T, d] of the queries, keys or values in x [..., T, 3·H·d].

    `part` is 0 for the queries, 1 for the keys and 2 for the values, and `heads` is H.
    """
    return _heads(x, heads)[part]


@primitive
def packed(y, part, heads):
    """Return an array [..., T, 3·H·d] with y [..., H, T, d] as one part and zeros in the others.

    This is the derivative rule of `heads_of`, which explains `part` and `heads`.
    """
    *lead, H, T, d = y.shape
    x = np.zeros((*lead, T, 3 * H * d), y.dtype)
    _heads(x, heads)[part][...] = y
    return x


heads_of.defvjp(lambda g, y, x, part, heads: packed(g, part, heads))
packed.defvjp(lambda g, x, y, part, heads: heads_of(g, part, heads))


@primitive
def join_heads(y):
    """Return y [..., H, T, d] as [..., T, H·d], with the heads concatenated."""
    return _side_by_side(y)


join_heads.defvjp(lambda g, x, y: split_heads(g, y.shape[-3]))


@primitive
def split_heads(x, heads):
    """Return x [..., T, H·d] as a view [..., H, T, d], with a separate axis for the heads."""
    return np.swapaxes(x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads), -3, -2)


split_heads.defvjp(lambda g, y, x, heads: join_heads(g))


def _packed_scores(x, mask, bias, causal, heads):
    """Return the number of scores, or 0 where the kernel cannot run, as for NaN in x and a mask."""
    *lead, T, features = x.shape
    one_dtype = bias is None or bias.dtype == x.dtype
    plain = mask is None or np.isfinite(np.sum(to_array(x)))
    enough = features and one_dtype and plain and T >= LEAST_QUERIES
    return math.prod(lead) * heads * T * T if enough else 0


@operation("packed_self_attention", work=_packed_scores)
def packed_self_attention(x, mask, bias, causal, heads):
    """Return the attention y [..., T, H·d] of queries, keys and values in one x [..., T, 3·H·d].

    y contains the concatenated heads, and `heads` is their number H. mask, bias and causal are
    those of `attention_weights`, and the scale is 1/√d. The kernel returns the three gradients in
    one array, which is the form that the preceding projection needs.
    """
    q, k, v = heads_of(x, 0, heads), heads_of(x, 1, heads), heads_of(x, 2, heads)
    if mask is not None:
        k, v = zero_masked_keys(k, v, mask)
    scale = 1 / math.sqrt(max(q.shape[-1], 1))
    return join_heads(attention(q, k, v, mask, bias, causal, scale))


def _packed_kernel(x, mask, bias, causal, heads):
    q, k, v = _heads(x, heads)
    y, residuals = fast.attention.attention(q, k, v, mask, bias, causal, q.shape[-1] ** -0.5)
    return _side_by_side(y), (y, residuals)


def _packed_kernel_backward(g, _, residuals, needs_grad, x, mask, bias, causal, heads):
    y, residuals = residuals
    dx = np.empty(x.shape, x.dtype)
    q, k, v = _heads(x, heads)
    g = np.swapaxes(g.reshape(*g.shape[:-1], heads, -1), -3, -2)
    inputs = q, k, v, mask, bias, causal, q.shape[-1] ** -0.5
    *_, db = fast.attention.attention_backward(
        g, y, residuals, *inputs, needs_grad[2], _heads(dx, heads)
    )
    return dx, None, db, None, None


packed_self_attention.implement("kernel", _packed_kernel, _packed_kernel_backward)


def _heads(x, heads):
    """Return views [..., H, T, d] of the three thirds of x [..., T, 3·H·d]."""
    *lead, T, wide = x.shape
    x = x.reshape(*lead, T, 3, heads, wide // 3 // heads)
    return [np.swapaxes(x[..., i, :, :], -3, -2) for i in range(3)]


def _side_by_side(y):
    """Return y [..., H, T, d] as [..., T, H·d], with the heads concatenated."""
    y = np.swapaxes(y, -3, -2)
    return y.reshape(*y.shape[:-2], y.shape[-2] * y.shape[-1])
