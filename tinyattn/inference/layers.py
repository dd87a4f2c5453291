"""The layers that have a compiled form, and the conditions under which it runs.

A compiled form is a module that replaces the layer. It calls one kernel for the inputs that the
kernel supports, and the layer for all others. It reads the arrays of the layer's parameters in
place, so numbers that an optimizer writes into them take effect from the next call on.

In shapes, there are B texts of T tokens with D features each. There are H heads with queries and G
heads with keys and values, each with d features.
"""

from functools import reduce

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.autograd import Tensor, from_numpy
from tinyattn.engine.memory import address
from tinyattn.inference.quantized import QuantizedLinear
from tinyattn.kernels import fast
from tinyattn.nn import (
    Dropout,
    GroupedQueryAttention,
    InterleavedRotaryEmbedding,
    KeyValueCache,
    LayerNorm,
    Linear,
    LlamaBlock,
    LlamaBlocks,
    Module,
    MultiheadAttention,
    RMSNorm,
    RotaryEmbedding,
    SwiGLU,
    TransformerEncoderLayer,
)
from tinyattn.nn.cache import reserve_in_all
from tinyattn.ops.backends import have_numba

# These limits were measured with 64 to 384 features. With more rows, the modules are as fast,
# because their matrix products then fill the tiles of `kernels.fast.matmul`.
MOST_TEXTS = 64  # largest number of texts with one new token each
MOST_TOKENS = 64  # largest number of tokens in all texts together
NOTHING = np.empty(0, np.float32)


class OneTokenEncoderLayer(Module):
    """A compiled `nn.TransformerEncoderLayer` with norm_first, for one new token of each text.

    `weights` contains the arrays of the layer in the order of `encoder_form`.
    """

    runs = f"compiled for one new token of up to {MOST_TEXTS} texts with a cache, else module"

    def __init__(self, layer, weights):
        self.layer, self.weights = layer, weights
        self.eps = epsilons(layer.norm1, layer.norm2)

    def forward(self, x, mask=None, causal=False, cache=None):
        """Return layer(x, mask, causal, cache) for x [B, T, D], by the kernel if possible."""
        heads = self.layer.self_attn
        if mask is not None or not is_one_token(x, heads.embed_dim, cache):
            return self.layer(x, mask, causal, cache)
        x, H = x.data[:, 0], heads.num_heads  # [B, D]
        room = cache.reserve((len(x), H, 1, x.shape[1] // H), x.dtype)
        return from_numpy(fast.decode.encoder_layer(x, room, H, self.eps, self.weights)[:, None])


class OneTokenLlamaBlocks(Module):
    """A compiled `nn.LlamaBlocks`, for one new token of each text and all blocks in one call.

    Args:
        layer       the `nn.LlamaBlocks`, which is called if the compiled call is not possible
        quantized   list of the blocks in `layer`
        arrays      list of the arrays of each block, the first result of `llama_arrays`. The kernel
                    receives their addresses, and this list keeps them alive
    """

    runs = OneTokenEncoderLayer.runs

    def __init__(self, layer, quantized, arrays):
        self.layer, self.heads, self.arrays = layer, quantized[0].self_attn, arrays
        heads, mlp = self.heads, quantized[0].mlp
        self.width, self.wide = quantized[0].input_layernorm.weight.size, width_of(mlp.up_proj)
        self.eps = np.array(
            [epsilons(b.input_layernorm, b.post_attention_layernorm) for b in quantized]
        )
        self.norms = np.array([[address(a) for a in norms] for norms, _ in arrays])
        self.maps = np.array(
            [
                [(address(w), kind, address(b) if b.size else 0) for w, kind, b in maps]
                for _, maps in arrays
            ]
        )
        self.sizes = heads.num_heads, heads.num_kv_heads, heads.d
        self.pairs = PAIRS[type(heads.rotary)](heads.d)

    def forward(self, x, cache=None):
        """Return the output for x [B, T, D]. `cache` is None, or a list of the blocks' caches."""
        if (
            cache is None
            or len(cache) != len(self.maps)
            or not is_one_token(x, self.width, cache[0])
        ):
            return self.layer(x, cache)
        x, (H, G, d) = x.data[:, 0], self.sizes  # [B, D]
        position = cache[0].positions(1)[..., 0]
        lengths = reserve_in_all(cache, (len(x), G, 1, d), x.dtype)
        if lengths is None:
            return self.layer(from_numpy(x[:, None]), cache)
        turns = self.heads.rotary.turns(position, x.dtype)  # [d/2] or [B, d/2] each
        past, places = np.array([c.addresses() for c in cache]), cache[0].k.shape[2]
        y = fast.decode.llama_blocks(
            x,
            past,
            lengths,
            places,
            H,
            G,
            d,
            self.wide,
            self.pairs,
            *turns,
            self.eps,
            self.norms,
            self.maps,
        )
        return from_numpy(y[:, None])

    def __iter__(self):
        return iter(self.layer)  # the model creates one cache for each block


class OneTokenLlamaBlock(OneTokenLlamaBlocks):
    """A compiled `nn.LlamaBlock`, for one new token of each text."""

    def forward(self, x, cache=None):
        """Return the output for x [B, T, D] and the cache of the block."""
        if cache is None or not is_one_token(x, self.width, cache):
            return self.layer(x, cache)
        return super().forward(x, [cache])


class FewRowsNorm(Module):
    """A compiled `nn.RMSNorm` with little Python code around its kernel, for few rows."""

    runs = "compiled for float32 without a gradient, else module"

    def __init__(self, layer):
        self.layer, self.eps = layer, epsilons(layer)[0]

    def forward(self, x):
        """Return the output of the layer for x [B, T, D]."""
        weight = self.layer.weight.data
        if not is_array_of(x, weight.size):
            return self.layer(x)
        return from_numpy(fast.rowwise.norm(x.data, weight, None, self.eps, False)[0])


class FewRowsQuantizedLinear(Module):
    """A compiled `QuantizedLinear` with little Python code around its kernel, for few rows."""

    runs = FewRowsNorm.runs

    def __init__(self, layer):
        self.layer, self.columns = layer, layer.blocks.shape[1]

    def forward(self, x):
        """Return the output of the layer for x [..., in]."""
        if not (
            isinstance(x, Tensor)
            and x.dtype == np.float32
            and not x.requires_grad
            and x.ndim == 2
            and x.shape[1] == self.columns
        ):
            return self.layer(x)
        return from_numpy(fast.quantized.product(x.data, self.layer.weight.data))


class FewTokensEncoderLayer(Module):
    """A compiled `nn.TransformerEncoderLayer` without norm_first, for a few short texts.

    `weights` contains the arrays of the layer in the order of `encoder_form`.
    """

    runs = f"compiled for up to {MOST_TOKENS} tokens in all, else module"

    def __init__(self, layer, weights):
        self.layer, self.weights = layer, weights
        self.eps = epsilons(layer.norm1, layer.norm2)

    def forward(self, x, mask=None, causal=False, cache=None):
        """Return layer(x, mask, causal, cache) for x [B, T, D], by the kernel if possible.

        The kernel supports only masks [B, 1, T] and None, without causal and cache.
        """
        heads = self.layer.self_attn
        if causal or cache is not None or not self._fits(x, heads.embed_dim, mask):
            return self.layer(x, mask, causal, cache)
        keep = None if mask is None else mask[:, 0]
        y = fast.decode.post_norm_layer(x.data, keep, heads.num_heads, self.eps, self.weights)
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
    """Return whether x is a Tensor [B, T, D] in float32 that does not require a gradient."""
    return (
        isinstance(x, Tensor)
        and x.ndim == 3
        and x.shape[2] == D
        and x.dtype == np.float32
        and not x.requires_grad
    )


def is_one_token(x, D, cache):
    """Return whether x is [B, 1, D] for a few texts, and the kernel can use x and the cache."""
    return (
        type(cache) is KeyValueCache
        and is_array_of(x, D)
        and x.shape[1] == 1
        and 0 < len(x) <= MOST_TEXTS
        and (cache.k is None or (is_float32(cache.k) and is_float32(cache.v)))
    )


def is_float32(array):
    """Return whether a kernel can use the array in place: float32, contiguous, writeable."""
    flags = array.flags
    return array.dtype == np.float32 and flags.c_contiguous and flags.writeable


# ---------------------------------------------------------------- which layers


def encoder_form(layer):
    """Return the module that runs an `nn.TransformerEncoderLayer`, and a note for the user.

    If `layer` cannot be compiled, the module is the layer itself, and the note gives the reason.
    """
    reason = unsupported_reason(
        layer,
        {
            "self_attn": MultiheadAttention,
            "self_attn.out_proj": Linear,
            "linear1": Linear,
            "linear2": Linear,
            "norm1": LayerNorm,
            "norm2": LayerNorm,
            "dropout": Dropout,
            "dropout1": Dropout,
            "dropout2": Dropout,
        },
    )
    if reason is None and layer.activation is not F.gelu:
        reason = f"its activation is {getattr(layer.activation, '__name__', 'another')}, not gelu"
    if reason is not None:
        return layer, f"module: {reason}"
    D, hidden = layer.self_attn.embed_dim, layer.linear1.out_features
    weights, reason = rows(
        layer,
        {
            "norm1.weight": (D,),
            "norm1.bias": (D,),
            "self_attn.in_proj_weight": (3 * D, D),
            "self_attn.in_proj_bias": (3 * D,),
            "self_attn.out_proj.weight": (D, D),
            "self_attn.out_proj.bias": (D,),
            "norm2.weight": (D,),
            "norm2.bias": (D,),
            "linear1.weight": (hidden, D),
            "linear1.bias": (hidden,),
            "linear2.weight": (D, hidden),
            "linear2.bias": (D,),
        },
    )
    if reason is not None:
        return layer, f"module: {reason}"
    form = OneTokenEncoderLayer if layer.norm_first else FewTokensEncoderLayer
    return form(layer, weights), form.runs


# class -> d -> (step from one pair of rotated features to the next, step within a pair)
PAIRS = {RotaryEmbedding: lambda d: (1, d // 2), InterleavedRotaryEmbedding: lambda d: (2, 1)}
MAPS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


def llama_form(layer):
    """Return the module that runs `layer`, an `nn.LlamaBlock`, and a note (see `encoder_form`)."""
    arrays, reason = llama_arrays(layer)
    if reason is not None:
        return layer, f"module: {reason}"
    return OneTokenLlamaBlock(layer, [layer], [arrays]), OneTokenLlamaBlock.runs


def llama_blocks_form(layer):
    """Return the module that runs `layer`, an `nn.LlamaBlocks`, and a note, or None.

    If the result is None, the blocks cannot be run in one call, and each is compiled separately.
    """
    quantized = list(layer)
    if not quantized or any(type(block) is not LlamaBlock for block in quantized):
        return None
    found = [llama_arrays(block) for block in quantized]
    if any(reason is not None for _, reason in found) or len(set(map(llama_sizes, quantized))) > 1:
        return None
    arrays = [a for a, _ in found]
    return OneTokenLlamaBlocks(layer, quantized, arrays), OneTokenLlamaBlocks.runs


def llama_sizes(block):
    """Return the sizes D, H, G and d, the kind of rotation and the hidden size of a block.

    Blocks can be run in one call only if these agree.
    """
    heads, D = block.self_attn, block.input_layernorm.weight.size
    hidden, rotary = width_of(block.mlp.up_proj), (type(heads.rotary), heads.rotary.base)
    return D, heads.num_heads, heads.num_kv_heads, heads.d, rotary, hidden


def llama_arrays(layer):
    """Return the arrays of a block, and the reason why it cannot be compiled, or None.

    Args:
        layer   an `nn.LlamaBlock`

    Returns:
        ((weights of the norms, maps), reason), where maps contains (matrix, bytes of a quantized
        block or 0, bias) for each linear map. The arrays can be used only if the reason is None
    """
    reason = unsupported_reason(
        layer,
        {
            "self_attn": GroupedQueryAttention,
            "self_attn.rotary": tuple(PAIRS),
            "mlp": SwiGLU,
            "input_layernorm": RMSNorm,
            "post_attention_layernorm": RMSNorm,
            **dict.fromkeys(MAPS, (Linear, QuantizedLinear)),
        },
    )
    if reason is not None:
        return None, reason
    D, H, G, d, _, hidden = llama_sizes(layer)
    names = ["input_layernorm.weight", "post_attention_layernorm.weight"]
    norms, reason = rows(layer, dict.fromkeys(names, (D,)))
    shapes = [
        (H * d, D),
        (G * d, D),
        (G * d, D),
        (D, H * d),
        (hidden, D),
        (hidden, D),
        (D, hidden),
    ]
    maps = []
    for name, shape in zip(MAPS, shapes, strict=True):
        if reason is not None:
            break
        part = part_of(layer, name)
        if type(part) is QuantizedLinear:
            matrix, reason = block_rows(name, part, shape)
            maps.append((matrix, part.kind.nbytes, NOTHING))
        else:
            found, reason = rows(layer, {f"{name}.weight": shape, f"{name}.bias": shape[:1]})
            maps.append((found[0], 0, found[1]) if reason is None else None)
    return (norms, maps), reason


def block_rows(name, part, shape):
    """Return (bytes of a quantized matrix, None), or (None, why a kernel cannot use them).

    Args:
        name    name of the part, for the reason
        part    a `QuantizedLinear`
        shape   shape that the kernel expects
    """
    quantized = part.blocks
    if quantized.shape != shape or not quantized.raw.flags.c_contiguous:
        return None, f"its {name} is {quantized}, expected {shape} in one piece"
    return quantized.raw, None


def width_of(part):
    """Return the number of output features of `part`, a `Linear` or `QuantizedLinear`."""
    return part.blocks.shape[0] if type(part) is QuantizedLinear else part.out_features


def norm_form(layer):
    """Return the module that runs `layer`, an `nn.RMSNorm`, and a note (see `encoder_form`)."""
    reason = unsupported_reason(layer, {})
    if reason is None and (layer.weight is None or layer.weight.ndim != 1):
        reason = "its weight is not one number for each feature"
    if reason is None:
        _, reason = rows(layer, {"weight": layer.weight.shape})
    if reason is not None:
        return layer, f"module: {reason}"
    return FewRowsNorm(layer), FewRowsNorm.runs


def quantized_linear_form(layer):
    """Return the module that runs `layer`, a `QuantizedLinear`, and a note (see `encoder_form`)."""
    raw, reason = layer.weight.data, unsupported_reason(layer, {})
    if reason is None and not (raw.flags.c_contiguous and raw.flags.writeable):
        reason = "its weight is not in one piece that can be written to"
    if reason is not None:
        return layer, f"module: {reason}"
    return FewRowsQuantizedLinear(layer), FewRowsQuantizedLinear.runs


COMPILED = {
    TransformerEncoderLayer: encoder_form,
    LlamaBlock: llama_form,
    LlamaBlocks: llama_blocks_form,
    RMSNorm: norm_form,
    QuantizedLinear: quantized_linear_form,
}


def unsupported_reason(layer, kinds):
    """Return the reason why a layer cannot be compiled, or None if it can.

    Args:
        layer   the layer
        kinds   {name of a part: class or classes that the kernel supports}
    """
    if not have_numba("inference.compile"):
        return "Numba is missing"
    for name, kind in kinds.items():
        part = part_of(layer, name)
        if type(part) not in (kind if isinstance(kind, tuple) else (kind,)):
            return f"its {name} is of type {type(part).__name__}"
        if part.training and (getattr(part, "dropout", 0) or getattr(part, "p", 0)):
            return f"its {name} has dropout in training mode; call .eval() first"
    return None


def rows(layer, shapes):
    """Return (arrays of the parameters, None), or (None, why a kernel cannot use them).

    Args:
        layer    the layer
        shapes   {name of a parameter: shape that the kernel expects}. Each array has one axis, and
                 is empty for a bias or the weight of a norm that is None
    """
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
    """Return the part of a layer that is called `name`, such as "self_attn.out_proj"."""
    return reduce(getattr, name.split("."), layer)


def epsilons(*norms):
    """Return ε of each of the `norms` in float32, the machine precision if it is None."""
    eps = [np.finfo(np.float32).eps if norm.eps is None else norm.eps for norm in norms]
    return tuple([np.float32(e) for e in eps])
