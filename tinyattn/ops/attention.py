"""The softmax of attention, and attention as one operation over a kernel: sums, blocks, heads."""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.ops.fused import fused


@primitive
def weights_of(scores):
    """a_ts = exp s_ts / Σ_r exp s_tr;   s̄_ts = a_ts (ā_ts - Σ_r ā_tr a_tr).   s, a [..., T, S]

    A query with nothing but -inf may see no key: all its weights are 0. A weight of 0 stays 0, and
    so does its gradient, if another score of the query is nan.
    """
    # the largest score of each query is taken off, which changes nothing but keeps exp from
    # overflowing; where it is -inf too, 0 avoids -inf - -inf = nan
    highest = np.fmax.reduce(scores, axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(highest == -np.inf, 0, highest))
    total = e.sum(axis=-1, keepdims=True)
    if np.isnan(total).any():
        return np.where(e == 0, 0, e / total)
    return e / np.where(total == 0, 1, total)


weights_of.defvjp(
    lambda g, a, scores: np.where(a == 0, 0, a * (g - np.sum(g * a, axis=-1, keepdims=True)))
)


@fused()
def attention(q, k, v, bias, mask, causal, scale):
    """y_t = Σ_s a_ts v_s with a = softmax(scale q·k + bias), block by block. [..., T, E]"""
    from tinyattn.kernels.fast import attention as kernel

    return kernel.attention(q, k, v, bias, mask, causal, scale)


@attention.defvjp
def _attention_rule(g, y, saved, wanted, q, k, v, bias, mask, causal, scale):
    from tinyattn.kernels.fast import attention as kernel

    return kernel.attention_backward(g, y, saved, q, k, v, bias, mask, causal, scale, wanted[3])


@fused()
def attention_sums(q, k, v, bias, mask, causal, scale):
    """The same as index sums in loops."""
    from tinyattn.kernels import attention as loops

    return loops.attention_sums(q, k, v, bias, mask, causal, scale)


@attention_sums.defvjp
def _attention_sums_rule(g, y, saved, wanted, q, k, v, bias, mask, causal, scale):
    from tinyattn.kernels import attention as loops

    return loops.attention_sums_backward(g, saved, q, k, v, scale)


@fused()
def self_attention(x, bias, mask, causal, heads):
    """Attention of queries, keys and values that lie side by side: x [..., T, 3·H·d].

    y [..., T, H·d] is the heads side by side. The same as `attention` on views of x, but the
    gradients of the three come back in one array: that is the form in which the projection that
    made x needs them.
    """
    from tinyattn.kernels.fast import attention as kernel

    q, k, v = _heads(x, heads)
    y, saved = kernel.attention(q, k, v, bias, mask, causal, q.shape[-1] ** -0.5)
    return _side_by_side(y), (y, saved)


@self_attention.defvjp
def _self_attention_rule(g, _, saved, wanted, x, bias, mask, causal, heads):
    from tinyattn.kernels.fast import attention as kernel

    y, saved = saved
    dx = np.empty(x.shape, x.dtype)
    q, k, v = _heads(x, heads)
    g = np.swapaxes(g.reshape(*g.shape[:-1], heads, -1), -3, -2)
    scale = q.shape[-1] ** -0.5
    *_, db = kernel.attention_backward(
        g, y, saved, q, k, v, bias, mask, causal, scale, wanted[1], _heads(dx, heads)
    )
    return dx, db, None, None, None


def _heads(x, heads):
    """Views [..., H, T, d] of the three thirds of x [..., T, 3·H·d]."""
    *lead, T, wide = x.shape
    x = x.reshape(*lead, T, 3, heads, wide // 3 // heads)
    return [np.swapaxes(x[..., i, :, :], -3, -2) for i in range(3)]


def _side_by_side(y):
    """[..., H, T, d] -> [..., T, H·d]"""
    y = np.swapaxes(y, -3, -2)
    return y.reshape(*y.shape[:-2], -1)
