"""One new token for each sequence, on plain arrays: what a model does when it writes.

There is so little to compute for one token that remembering each operation for a gradient, or even
asking whether to, would take longer than the operation. So the blocks come here when a cache is
given and one token is new. The formulas are theirs, line by line; tests hold both to the same
numbers. For a few texts the most common layers are one compiled function each, in
`kernels.writing`. D features, H heads with queries, G with keys and values, d for each head.
"""

import math

import numpy as np

import tinyattn.functional as F
from tinyattn.autograd import Tensor, taken_over
from tinyattn.nn import plain
from tinyattn.nn.cache import KeyValueCache
from tinyattn.nn.grouped import GroupedQueryAttention, SwiGLU
from tinyattn.nn.layers import Linear
from tinyattn.nn.norms import RMSNorm
from tinyattn.nn.plain import linear, usual
from tinyattn.nn.positions import RotaryPositions
from tinyattn.ops.fused import have_numba
from tinyattn.ops.matmul import FEW


def one_token(x, cache):
    """Whether x [B, 1, D] is one new token without a gradient, and the cache one for writing."""
    return (
        type(cache) is KeyValueCache and x.ndim == 3 and x.shape[1] == 1
        and isinstance(x, Tensor) and not x.requires_grad
    )  # fmt: skip


KINDS = [GroupedQueryAttention, RotaryPositions, SwiGLU, *[RMSNorm] * 2, *[Linear] * 7]


def usual_block(block):
    """Whether all parts of a `LlamaBlock` are those it was made of."""
    heads, mlp = block.self_attn, block.mlp
    if type(heads) is not GroupedQueryAttention or type(mlp) is not SwiGLU:
        return False  # they need not have these parts
    norms = block.input_layernorm, block.post_attention_layernorm
    maps = (
        heads.q_proj, heads.k_proj, heads.v_proj, heads.o_proj,
        mlp.gate_proj, mlp.up_proj, mlp.down_proj,
    )  # fmt: skip
    return usual((heads, heads.rotary, mlp, *norms, *maps), KINDS)


def encoder_layer(layer, x, cache):
    """`nn.TransformerEncoderLayer` of its usual parts;   x [B, 1, D]."""
    x, H = x.data[:, 0], layer.self_attn.num_heads  # [B, D]
    if layer.norm_first and layer.activation is F.gelu and few(x, cache):
        y = compiled_encoder_layer(layer, x, cache)
        if y is not None:
            return taken_over(y[:, None])

    def seen(qkv):
        return attend(*np.swapaxes(qkv.reshape(len(x), 3, H, -1), 0, 1), cache)  # [B, H, d] each

    return taken_over(plain.encoder_layer(layer, x, seen)[:, None])


def llama_block(block, x, cache):
    """`LlamaBlock` with `nn.RotaryPositions`;   x [B, 1, D]."""
    x = x.data[:, 0]  # [B, D]
    if few(x, cache):
        y = compiled_llama_block(block, x, cache)
        if y is not None:
            return taken_over(y[:, None])
    x = x + llama_attention(block.self_attn, rms_norm(x, block.input_layernorm), cache)
    x = x + swiglu(block.mlp, rms_norm(x, block.post_attention_layernorm))
    return taken_over(x[:, None])


def llama_attention(attention, x, cache):
    """`nn.GroupedQueryAttention` with `nn.RotaryPositions`;   x [B, D]."""
    B, H, d = len(x), attention.num_heads, attention.d
    maps = attention.q_proj, attention.k_proj, attention.v_proj
    q, k, v = (linear(x, m.weight, m.bias).reshape(B, -1, d) for m in maps)
    cos, sin = attention.rotary.turns(cache.positions(1)[..., 0], x.dtype)  # [d/2] or [B, d/2]
    if cos.ndim == 2:
        cos, sin = cos[:, None], sin[:, None]  # the same for all heads
    both, half = np.concatenate([q, k], axis=1), d // 2  # [B, H+G, d]
    turned = np.empty_like(both)
    for one, other, out, s in (
        (0, half, turned[..., :half], -sin),
        (half, 0, turned[..., half:], sin),
    ):
        np.multiply(both[..., one : one + half], cos, out)
        out += both[..., other : other + half] * s
    y = attend(turned[:, :H], turned[:, H:], v, cache)
    return linear(y, attention.o_proj.weight, attention.o_proj.bias)


def swiglu(network, x):
    """`nn.SwiGLU`;   x [B, D]."""
    gate = linear(x, network.gate_proj.weight, network.gate_proj.bias)
    up = linear(x, network.up_proj.weight, network.up_proj.bias)
    up *= gate
    np.negative(gate, gate)
    np.minimum(
        gate, 80, out=gate
    )  # beyond, exp is too large for float32, and silu is 0 at any rate
    np.exp(gate, gate)
    gate += 1
    up /= gate
    return linear(up, network.down_proj.weight, network.down_proj.bias)


def attend(q, k, v, cache):
    """Σ_s a_s v_s over all tokens so far and the new one;   q [B, H, d], k, v [B, G, d]: [B, D]."""
    (B, H, d), G = q.shape, k.shape[1]
    mask, _ = cache.past(1)
    k, v = cache.append(k[:, :, None], v[:, :, None])  # [B, G, S, d]
    q = (q * q.dtype.type(1 / math.sqrt(d))).reshape(B, G, H // G, d)
    a = q @ np.swapaxes(k, -1, -2)  # [B, G, H/G, S]
    if mask is not None:
        a = np.where(mask, a, a.dtype.type(-np.inf))
    a -= np.maximum.reduce(a, -1, keepdims=True)
    np.exp(a, a)
    a /= np.add.reduce(a, -1, keepdims=True)
    return (a @ v).reshape(B, H * d)


def rms_norm(x, norm):
    """x / √(mean(x²) + ε) · weight;   x [B, D]."""
    eps = np.finfo(x.dtype).eps if norm.eps is None else norm.eps
    y = x / np.sqrt(np.vecdot(x, x) / x.dtype.type(x.shape[-1]) + x.dtype.type(eps))[:, None]
    y *= norm.weight.data
    return y


# ---------------------------------------------------------------- as one compiled function


def few(x, cache):
    """Whether a kernel does the layer for x [B, D], and faster than one operation at a time."""
    return 0 < len(x) <= FEW and x.dtype == np.float32 and _fits(cache) and have_numba()


def _fits(cache):
    """Whether kernels can write what a cache keeps in place: float32, in one piece."""
    for kept in (cache.k, cache.v):
        if kept is not None and not (kept.dtype == np.float32 and kept.flags.c_contiguous):
            return False
    return True


def compiled_encoder_layer(layer, x, cache):
    """The same as `encoder_layer`, y [B, D]; None if the weights do not fit x."""
    from tinyattn.kernels import writing

    heads, hidden, D = layer.self_attn, layer.linear1.weight.shape[0], x.shape[1]
    weights = _rows(
        *_norm(layer.norm1, D), (heads.in_proj_weight, (3 * D, D)), (heads.in_proj_bias, (3 * D,)),
        *_map(heads.out_proj, D, D), *_norm(layer.norm2, D), *_map(layer.linear1, D, hidden),
        *_map(layer.linear2, hidden, D),
    )  # fmt: skip
    if weights is None:
        return None
    H = heads.num_heads
    kept = cache.make_room((len(x), H, 1, D // H), x.dtype)
    return writing.encoder_layer(x, kept, H, _eps(layer.norm1, layer.norm2), weights)


def compiled_llama_block(block, x, cache):
    """The same as `llama_block`, y [B, D]; None if the weights do not fit x."""
    from tinyattn.kernels import writing

    attention, mlp, D = block.self_attn, block.mlp, x.shape[1]
    norm1, norm2 = block.input_layernorm, block.post_attention_layernorm
    H, G, d = attention.num_heads, attention.num_kv_heads, attention.d
    hidden = mlp.up_proj.weight.shape[0]
    weights = _rows(
        (norm1.weight, (D,)), *_map(attention.q_proj, D, H * d), *_map(attention.k_proj, D, G * d),
        *_map(attention.v_proj, D, G * d), *_map(attention.o_proj, H * d, D), (norm2.weight, (D,)),
        *_map(mlp.gate_proj, D, hidden), *_map(mlp.up_proj, D, hidden),
        *_map(mlp.down_proj, hidden, D),
    )  # fmt: skip
    if weights is None:
        return None
    turns = attention.rotary.turns(cache.positions(1)[..., 0], x.dtype)  # [d/2] or [B, d/2] each
    kept = cache.make_room((len(x), G, 1, d), x.dtype)
    return writing.llama_block(x, kept, H, G, *turns, _eps(norm1, norm2), weights)


def _map(linear, features, out):
    """The parameters of a linear map, each with the shape that it must have."""
    return (linear.weight, (out, features)), (linear.bias, (out,))


def _norm(norm, D):
    return (norm.weight, (D,)), (norm.bias, (D,))


NOTHING = np.empty(0, np.float32)


def _rows(*parameters):
    """The memory of each parameter as one row, empty for None; None if a kernel cannot use one."""
    rows = []
    for parameter, shape in parameters:
        array = NOTHING if parameter is None else parameter.data
        if parameter is not None and (array.dtype != np.float32 or array.shape != shape):
            return None
        if not (array.flags.c_contiguous and array.flags.writeable):  # Numba wants a copy otherwise
            return None
        rows.append(array.reshape(-1))
    return tuple(rows)


def _eps(*norms):
    """ε of each norm; torch.nn.RMSNorm's None is the smallest step of the dtype."""
    eps = [np.finfo(np.float32).eps if norm.eps is None else norm.eps for norm in norms]
    return tuple([np.float32(e) for e in eps])
