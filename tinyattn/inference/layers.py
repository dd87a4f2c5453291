"""The layers that have a compiled form, and when it runs.

A compiled form is a module in the place of the layer. For the inputs that it is made for it calls
one kernel; for all others it calls the layer. It reads the arrays of the layer's parameters where
they are, so numbers that an optimizer writes into them count from the next call on.

B texts of T tokens, D features, H heads with queries, G with keys and values, d for each head.
"""

from functools import reduce

import numpy as np

import tinyattn.functional as F
from tinyattn.autograd import Tensor, from_numpy
from tinyattn.nn import (
    Dropout,
    GroupedQueryAttention,
    KeyValueCache,
    LayerNorm,
    Linear,
    LlamaBlock,
    Module,
    MultiheadAttention,
    RMSNorm,
    RotaryPositions,
    SwiGLU,
    TransformerEncoderLayer,
)
from tinyattn.ops.backends import have_numba

# Measured at 64 to 384 features. With more rows the modules are as fast: their products of matrices
# then fill the tiles of `kernels.fast.matmul`.
MOST_TEXTS = 64  # with one new token each
MOST_TOKENS = 64  # of all texts together
NOTHING = np.empty(0, np.float32)


class OneTokenEncoderLayer(Module):
    """`nn.TransformerEncoderLayer` with norm_first: one new token of each text, behind a cache."""

    runs = f"compiled for one new token of up to {MOST_TEXTS} texts with a cache, else module"

    def __init__(self, layer, weights):
        self.layer, self.weights = layer, weights
        self.eps = epsilons(layer.norm1, layer.norm2)

    def forward(self, x, mask=None, causal=False, cache=None):
        """What the layer gives;   x [B, T, D]."""
        heads = self.layer.self_attn
        if mask is not None or not is_one_token(x, heads.embed_dim, cache):
            return self.layer(x, mask, causal, cache)
        from tinyattn.kernels.fast import decode

        x, H = x.data[:, 0], heads.num_heads  # [B, D]
        room = cache.reserve((len(x), H, 1, x.shape[1] // H), x.dtype)
        return from_numpy(decode.encoder_layer(x, room, H, self.eps, self.weights)[:, None])


class OneTokenLlamaBlock(Module):
    """`nn.LlamaBlock`: one new token of each text, behind a cache."""

    runs = OneTokenEncoderLayer.runs

    def __init__(self, layer, weights):
        self.layer, self.weights = layer, weights
        self.width = layer.self_attn.q_proj.in_features
        self.eps = epsilons(layer.input_layernorm, layer.post_attention_layernorm)

    def forward(self, x, cache=None):
        """What the layer gives;   x [B, T, D]."""
        if not is_one_token(x, self.width, cache):
            return self.layer(x, cache)
        from tinyattn.kernels.fast import decode

        x, heads = x.data[:, 0], self.layer.self_attn  # [B, D]
        H, G, d = heads.num_heads, heads.num_kv_heads, heads.d
        turns = heads.rotary.turns(cache.positions(1)[..., 0], x.dtype)  # [d/2] or [B, d/2] each
        room = cache.reserve((len(x), G, 1, d), x.dtype)
        return from_numpy(
            decode.llama_block(x, room, H, G, *turns, self.eps, self.weights)[:, None]
        )


class FewTokensEncoderLayer(Module):
    """`nn.TransformerEncoderLayer` with the norms behind the sums: a few short texts."""

    runs = f"compiled for up to {MOST_TOKENS} tokens in all, else module"

    def __init__(self, layer, weights):
        self.layer, self.weights = layer, weights
        self.eps = epsilons(layer.norm1, layer.norm2)

    def forward(self, x, mask=None, causal=False, cache=None):
        """What the layer gives;   x [B, T, D], mask as there; compiled are [B, 1, T] and None."""
        heads = self.layer.self_attn
        if causal or cache is not None or not self._fits(x, heads.embed_dim, mask):
            return self.layer(x, mask, causal, cache)
        from tinyattn.kernels.fast import decode

        keep = None if mask is None else mask[:, 0]
        y = decode.post_norm_layer(x.data, keep, heads.num_heads, self.eps, self.weights)
        return from_numpy(y)

    @staticmethod
    def _fits(x, D, mask):
        if not is_array_of(x, D) or not 0 < x.shape[0] * x.shape[1] <= MOST_TOKENS:
            return False
        if mask is None:
            return True
        B, T, _ = x.shape
        return isinstance(mask, np.ndarray) and mask.dtype == bool and mask.shape == (B, 1, T)


# ---------------------------------------------------------------- which inputs


def is_array_of(x, D):
    """Whether x is a Tensor [B, T, D] of float32 through which no gradient is wanted."""
    return (
        isinstance(x, Tensor) and x.ndim == 3 and x.shape[2] == D and x.dtype == np.float32
        and not x.requires_grad
    )  # fmt: skip


def is_one_token(x, D, cache):
    """Whether x [B, 1, D] is one new token of a few texts, and the cache fits the kernel."""
    return (
        type(cache) is KeyValueCache and is_array_of(x, D) and x.shape[1] == 1
        and 0 < len(x) <= MOST_TEXTS
        and (cache.k is None or (is_float32(cache.k) and is_float32(cache.v)))
    )  # fmt: skip


def is_float32(array):
    """Whether a kernel can use the array where it is: float32, in one piece, writeable."""
    flags = array.flags
    return array.dtype == np.float32 and flags.c_contiguous and flags.writeable


# ---------------------------------------------------------------- which layers


def encoder_form(layer):
    """(what runs an `nn.TransformerEncoderLayer`, a word about it)"""
    reason = why_not(layer, {
        "self_attn": MultiheadAttention, "self_attn.out_proj": Linear,
        "linear1": Linear, "linear2": Linear, "norm1": LayerNorm, "norm2": LayerNorm,
        "dropout": Dropout, "dropout1": Dropout, "dropout2": Dropout,
    })  # fmt: skip
    if reason is None and layer.activation is not F.gelu:
        reason = f"its activation is {getattr(layer.activation, '__name__', 'another')}, not gelu"
    if reason is not None:
        return layer, f"module: {reason}"
    D, hidden = layer.self_attn.embed_dim, layer.linear1.out_features
    weights, reason = rows(layer, {
        "norm1.weight": (D,), "norm1.bias": (D,),
        "self_attn.in_proj_weight": (3 * D, D), "self_attn.in_proj_bias": (3 * D,),
        "self_attn.out_proj.weight": (D, D), "self_attn.out_proj.bias": (D,),
        "norm2.weight": (D,), "norm2.bias": (D,),
        "linear1.weight": (hidden, D), "linear1.bias": (hidden,),
        "linear2.weight": (D, hidden), "linear2.bias": (D,),
    })  # fmt: skip
    if reason is not None:
        return layer, f"module: {reason}"
    form = OneTokenEncoderLayer if layer.norm_first else FewTokensEncoderLayer
    return form(layer, weights), form.runs


def llama_form(layer):
    """(what runs an `nn.LlamaBlock`, a word about it)"""
    maps = {
        "self_attn.q_proj": Linear, "self_attn.k_proj": Linear, "self_attn.v_proj": Linear,
        "self_attn.o_proj": Linear, "mlp.gate_proj": Linear, "mlp.up_proj": Linear,
        "mlp.down_proj": Linear,
    }  # fmt: skip
    reason = why_not(layer, {
        "self_attn": GroupedQueryAttention, "self_attn.rotary": RotaryPositions, "mlp": SwiGLU,
        "input_layernorm": RMSNorm, "post_attention_layernorm": RMSNorm, **maps,
    })  # fmt: skip
    if reason is not None:
        return layer, f"module: {reason}"
    heads, hidden = layer.self_attn, layer.mlp.up_proj.out_features
    D, Hd, Gd = heads.q_proj.in_features, heads.num_heads * heads.d, heads.num_kv_heads * heads.d
    shapes = [(Hd, D), (Gd, D), (Gd, D), (D, Hd), (hidden, D), (hidden, D), (D, hidden)]
    of_maps = {}
    for name, shape in zip(maps, shapes, strict=True):
        of_maps |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    names = ["input_layernorm.weight", *list(of_maps)[:8], "post_attention_layernorm.weight",
             *list(of_maps)[8:]]  # fmt: skip
    weights, reason = rows(layer, {name: of_maps.get(name, (D,)) for name in names})
    if reason is not None:
        return layer, f"module: {reason}"
    return OneTokenLlamaBlock(layer, weights), OneTokenLlamaBlock.runs


FORMS = {TransformerEncoderLayer: encoder_form, LlamaBlock: llama_form}


def why_not(layer, kinds):
    """Why a layer has no compiled form: a part of another kind, or one that drops; None if it has.

    kinds: the class of each part that the kernel computes.
    """
    if not have_numba("inference.compile"):
        return "Numba is missing"
    for name, kind in kinds.items():
        part = part_of(layer, name)
        if type(part) is not kind:
            return f"its {name} is a {type(part).__name__}"
        if part.training and (getattr(part, "dropout", 0) or getattr(part, "p", 0)):
            return f"its {name} drops numbers, as in training; call .eval() first"
    return None


def rows(layer, shapes):
    """The memory of each parameter as one row, empty for None, or why a kernel cannot use one."""
    found = []
    for name, shape in shapes.items():
        p = part_of(layer, name)
        if p is None and not name.endswith(("in_proj_weight", "_proj.weight")):
            found.append(NOTHING)
            continue
        if p is None or p.shape != shape or not is_float32(p.data):
            what = "None" if p is None else f"{p.dtype} {p.shape}"
            return None, f"its {name} is {what}, expected float32 {shape} in one piece"
        found.append(p.data.reshape(-1))
    return tuple(found), None


def part_of(layer, name):
    """layer.self_attn.out_proj for "self_attn.out_proj"."""
    return reduce(getattr, name.split("."), layer)


def epsilons(*norms):
    """ε of each norm; None of an RMSNorm is the smallest step of the dtype."""
    eps = [np.finfo(np.float32).eps if norm.eps is None else norm.eps for norm in norms]
    return tuple([np.float32(e) for e in eps])
