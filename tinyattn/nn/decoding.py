"""One new token for each sequence, on plain arrays: what a model does when it writes.

There is so little to compute for one token that remembering each operation for a gradient, or even
asking whether to, would take longer than the operation. So the blocks come here when a cache is
given and one token is new. The formulas are theirs, line by line; tests hold both to the same
numbers. For a few texts the most common layers are one compiled function each, in
`kernels.writing`. D features, H heads with queries, G with keys and values, d for each head.
"""

import math
from operator import is_

import numpy as np

import tinyattn.functional as F
from tinyattn.autograd import Tensor, from_numpy
from tinyattn.nn import plain
from tinyattn.nn.cache import KeyValueCache
from tinyattn.nn.grouped import GroupedQueryAttention, SwiGLU
from tinyattn.nn.layers import Linear
from tinyattn.nn.norms import RMSNorm
from tinyattn.nn.plain import linear, usual
from tinyattn.nn.positions import RotaryPositions
from tinyattn.ops.backends import MATVEC_ROWS, have_numba
from tinyattn.ops.rowwise import norm_of_arrays


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
            return from_numpy(y[:, None])

    def seen(qkv):
        return attend(*np.swapaxes(qkv.reshape(len(x), 3, H, -1), 0, 1), cache)  # [B, H, d] each

    return from_numpy(plain.encoder_layer(layer, x, seen)[:, None])


def llama_block(block, x, cache):
    """`LlamaBlock` with `nn.RotaryPositions`;   x [B, 1, D]."""
    x = x.data[:, 0]  # [B, D]
    if few(x, cache):
        y = compiled_llama_block(block, x, cache)
        if y is not None:
            return from_numpy(y[:, None])
    x = x + llama_attention(block.self_attn, rms_norm(x, block.input_layernorm), cache)
    x = x + swiglu(block.mlp, rms_norm(x, block.post_attention_layernorm))
    return from_numpy(x[:, None])


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
    eps = float(np.finfo(x.dtype).eps) if norm.eps is None else norm.eps
    return norm_of_arrays(x, None if norm.weight is None else norm.weight.data, None, eps, False)


# ---------------------------------------------------------------- as one compiled function


def few(x, cache):
    """Whether a kernel does the layer for x [B, D], and faster than one operation at a time."""
    fits = 0 < len(x) <= MATVEC_ROWS and x.dtype == np.float32 and _fits(cache)
    return fits and have_numba("generate")


def _fits(cache):
    """Whether kernels can write what a cache keeps in place: float32, in one piece."""
    for kept in (cache.k, cache.v):
        if kept is not None and not (kept.dtype == np.float32 and kept.flags.c_contiguous):
            return False
    return True


def compiled_encoder_layer(layer, x, cache):
    """The same as `encoder_layer`, y [B, D]; None if the weights do not fit x."""
    from tinyattn.kernels.fast import decode as writing

    heads, norm1, norm2 = layer.self_attn, layer.norm1, layer.norm2
    one, two, out, H = layer.linear1, layer.linear2, heads.out_proj, heads.num_heads
    D, hidden = x.shape[1], one.weight.shape[0]
    weights = _rows(cache, (
        norm1.weight, norm1.bias, heads.in_proj_weight, heads.in_proj_bias, out.weight, out.bias,
        norm2.weight, norm2.bias, one.weight, one.bias, two.weight, two.bias,
    ), (
        (D,), (D,), (3 * D, D), (3 * D,), (D, D), (D,),
        (D,), (D,), (hidden, D), (hidden,), (D, hidden), (D,),
    ))  # fmt: skip
    if weights is None:
        return None
    kept = cache.make_room((len(x), H, 1, D // H), x.dtype)
    return writing.encoder_layer(x, kept, H, _eps(norm1, norm2), weights)


def compiled_llama_block(block, x, cache):
    """The same as `llama_block`, y [B, D]; None if the weights do not fit x."""
    from tinyattn.kernels.fast import decode as writing

    attention, mlp, D = block.self_attn, block.mlp, x.shape[1]
    norm1, norm2 = block.input_layernorm, block.post_attention_layernorm
    q, k, v, o = attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj
    gate, up, down = mlp.gate_proj, mlp.up_proj, mlp.down_proj
    H, G, d = attention.num_heads, attention.num_kv_heads, attention.d
    hidden, Hd, Gd = up.weight.shape[0], H * d, G * d
    weights = _rows(cache, (
        norm1.weight, q.weight, q.bias, k.weight, k.bias, v.weight, v.bias, o.weight, o.bias,
        norm2.weight, gate.weight, gate.bias, up.weight, up.bias, down.weight, down.bias,
    ), (
        (D,), (Hd, D), (Hd,), (Gd, D), (Gd,), (Gd, D), (Gd,), (D, Hd), (D,),
        (D,), (hidden, D), (hidden,), (hidden, D), (hidden,), (D, hidden), (D,),
    ))  # fmt: skip
    if weights is None:
        return None
    turns = attention.rotary.turns(cache.positions(1)[..., 0], x.dtype)  # [d/2] or [B, d/2] each
    kept = cache.make_room((len(x), G, 1, d), x.dtype)
    return writing.llama_block(x, kept, H, G, *turns, _eps(norm1, norm2), weights)


NOTHING = np.empty(0, np.float32)


def _rows(cache, parameters, shapes):
    """The memory of each parameter as one row, empty for None; None if a kernel cannot use one.

    They are looked at once for a text: the cache of a layer keeps what was found, as long as the
    parameters hold the same arrays and must have the same shapes.
    """
    arrays = [NOTHING if p is None else p.data for p in parameters]
    before, fitting, found = cache.weights
    if shapes != fitting or not all(map(is_, before, arrays)):
        usable = all(map(_usable, arrays, shapes))
        found = tuple([a.reshape(-1) for a in arrays]) if usable else None
        cache.weights = arrays, shapes, found
    return found


def _usable(array, shape):
    """Whether it is float32, of this shape, and lies in memory as Numba wants it without a copy."""
    flags = array.flags
    return array is NOTHING or (
        array.dtype == np.float32 and array.shape == shape
        and flags.c_contiguous and flags.writeable
    )  # fmt: skip


def _eps(*norms):
    """ε of each norm; torch.nn.RMSNorm's None is the smallest step of the dtype."""
    eps = [np.finfo(np.float32).eps if norm.eps is None else norm.eps for norm in norms]
    return tuple([np.float32(e) for e in eps])
