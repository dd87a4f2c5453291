"""A layer on plain arrays, for a model that reads or writes: nobody wants a gradient.

Between two products of some milliseconds Python's own code has left the caches, and every tensor,
module and check costs ten times what it costs in a loop of nothing else. None of them is needed
when nothing is recorded. So a layer of its usual parts comes here, and calls its operations one
after the other. The formulas are those of `nn.transformer`, line by line; tests hold both to the
same bits (of GELU of a few numbers, to rounding). x is [N, D]: N tokens, D features.
"""

import numpy as np

import tinyattn.functional as F
from tinyattn.autograd import Tensor, from_numpy, is_grad_enabled
from tinyattn.nn.attention import MultiheadAttention
from tinyattn.nn.layers import Dropout, Linear
from tinyattn.nn.norms import LayerNorm
from tinyattn.ops.backends import FLOATS, have_numba, kernel_is_faster
from tinyattn.ops.elementwise import unwrap
from tinyattn.ops.matmul import dot
from tinyattn.ops.rowwise import norm_of_arrays


def usual(parts, kinds):
    """Whether parts of a layer are of these kinds, and nobody watches or replaced their forward.

    Others compute something else, or are looked at: they must be called.
    """
    if [*map(type, parts)] != kinds:
        return False
    for part in parts:  # asked for each token of a text: every tenth of a microsecond counts
        if "forward" in part.__dict__:
            return False
    return True


KINDS = [MultiheadAttention, *[Linear] * 3, *[LayerNorm] * 2, *[Dropout] * 3]


def usual_layer(layer):
    """Whether all parts are those the layer was made of, and none of them drops anything now."""
    heads, d, d1, d2 = layer.self_attn, layer.dropout, layer.dropout1, layer.dropout2
    if type(heads) is not MultiheadAttention:
        return False  # it need not have these parts
    maps, norms = (heads.out_proj, layer.linear1, layer.linear2), (layer.norm1, layer.norm2)
    return usual((heads, *maps, *norms, d, d1, d2), KINDS) and not (
        (heads.dropout and heads.training) or (d.p and d.training)
        or (d1.p and d1.training) or (d2.p and d2.training)
    )  # fmt: skip


def reads(layer, x):
    """Whether x [B, T, D] is only read, and fits a usual layer; the layer itself refuses others."""
    heads = layer.self_attn
    return (
        not is_grad_enabled() and isinstance(x, Tensor)
        and x.dtype in (np.float32, np.float64) and x.ndim == 3 and x.shape[-1] == heads.embed_dim
        and heads.in_proj_weight is not None
    )  # fmt: skip


def read(layer, x, mask, causal):
    """`nn.TransformerEncoderLayer` for all tokens at once;   x [B, T, D], mask as there."""
    (B, T, D), heads = x.shape, layer.self_attn
    mask = heads.with_heads(mask, (B, heads.num_heads, T, T), "mask")

    def attend(qkv):
        qkv = from_numpy(qkv.reshape(B, T, 3 * D))
        return F.self_attention(qkv, heads.num_heads, mask, None, causal).data.reshape(B * T, D)

    return from_numpy(encoder_layer(layer, x.data.reshape(B * T, D), attend).reshape(B, T, D))


def encoder_layer(layer, x, attend):
    """`nn.TransformerEncoderLayer` without dropout;   x [N, D], and so is the result.

    attend: queries, keys and values of all heads [N, 3 D] -> what they see [N, D].
    """
    heads = layer.self_attn
    z = layer_norm(x, layer.norm1) if layer.norm_first else x
    z = attend(linear(z, heads.in_proj_weight, heads.in_proj_bias))
    x = add(linear(z, heads.out_proj.weight, heads.out_proj.bias), x)
    x = x if layer.norm_first else layer_norm(x, layer.norm1)
    z = layer_norm(x, layer.norm2) if layer.norm_first else x
    z = activated(layer.activation, linear(z, layer.linear1.weight, layer.linear1.bias))
    x = add(linear(z, layer.linear2.weight, layer.linear2.bias), x)
    return x if layer.norm_first else layer_norm(x, layer.norm2)


def linear(x, weight, bias):
    """x Wᵀ + b"""
    return dot(x, weight.data.T, None if bias is None else bias.data)


def add(y, x):
    """y + x, in the place of y if it fits there."""
    if y.dtype != x.dtype:
        return y + x
    if kernel_is_faster("add", y.dtype, y.size):
        from tinyattn.kernels.fast import rowwise

        rowwise.add(y, x)
        return y
    y += x
    return y


def activated(f, x):
    """f(x); the kernel of GELU needs no size to pay here, as its composition has many steps."""
    if f is F.gelu and x.dtype in FLOATS and have_numba("gelu"):
        from tinyattn.kernels.fast.rowwise import gelu

        return gelu(x, False)
    return unwrap(f(from_numpy(x)))


def layer_norm(x, norm):
    """(x - mean) / √(var + ε) · weight + bias"""
    weight, bias = (None if p is None else p.data for p in (norm.weight, norm.bias))
    return norm_of_arrays(x, weight, bias, norm.eps, True)
