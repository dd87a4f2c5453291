"""A Llama block and its parts: grouped-query attention and a gated feed-forward network."""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import type_with_article
from tinyattn.nn.cache import KeyValueCache
from tinyattn.nn.containers import ModuleList
from tinyattn.nn.layers import Linear
from tinyattn.nn.module import Module
from tinyattn.nn.norms import RMSNorm
from tinyattn.nn.positional_encoding import RotaryEmbedding
from tinyattn.nn.validation import check_heads, check_sizes


class GroupedQueryAttention(Module):
    """Causal attention of H heads that share the keys and values of G heads, with rotary positions.

        Q = x W_qᵀ [B, T, H·d],   K = x W_kᵀ,   V = x W_vᵀ [B, T, G·d]
        head_h = softmax(R Q_h (R K_g)ᵀ / √d) V_g,   g = ⌊h G / H⌋,   h = 0, …, H - 1
        out = [head_0, …, head_(H-1)] W_oᵀ

    A head has d = d_model / H features, R is the rotation by an `nn.RotaryEmbedding`, and the
    matrices are the weights of q_proj, k_proj, v_proj and o_proj. num_kv_heads = num_heads gives
    ordinary attention, and 1 gives multi-query attention. The cache of keys and values is smaller
    by the factor H/G than in ordinary attention. Parameter names are the same as in Llama in the
    Transformers library.

    Args:
        d_model        number of features
        num_heads      number H of query heads, which divides d_model
        num_kv_heads   number G of heads with keys and values, which divides H, or None for H
        rotary         an `nn.RotaryEmbedding` of d features, which several layers may share, or
                       None for a new one
        bias           True: the projections have a bias
        rng            seed or numpy.random.Generator for the initial values, or None for the
                       default generator

    Raises:
        ValueError: a size is not a whole number of at least 1, num_heads does not divide d_model,
            num_kv_heads does not divide num_heads, d is odd, or rotary has a different number of
            features
        TypeError: rotary is not a module

    Source: Ainslie et al. 2023, and Touvron et al. 2023.
    """

    def __init__(self, d_model, num_heads, num_kv_heads=None, rotary=None, bias=False, rng=None):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        check_sizes(self, num_kv_heads=num_kv_heads, optional=("num_kv_heads",), single=True)
        num_kv_heads = num_kv_heads or num_heads
        if num_heads % num_kv_heads:
            raise ValueError(
                f"GroupedQueryAttention: num_kv_heads={num_kv_heads} must divide "
                f"num_heads={num_heads}"
            )
        d = d_model // num_heads
        if rotary is None and d % 2:
            raise ValueError(
                "GroupedQueryAttention: d_model / num_heads must be even, because features are "
                f"rotated in pairs, got {d_model} / {num_heads} = {d}"
            )
        if not (rotary is None or isinstance(rotary, Module)):
            found = f"the class {rotary.__name__}" if isinstance(rotary, type) else repr(rotary)
            raise TypeError(
                f"GroupedQueryAttention: rotary must be a module or None, got {found}. Write "
                f"nn.RotaryEmbedding({d})"
            )
        if getattr(rotary, "d", d) != d:
            raise ValueError(
                f"GroupedQueryAttention: rotary must have d_model / num_heads = {d} features, got "
                f"d={rotary.d}. Write nn.RotaryEmbedding({d})"
            )
        rng = generator(rng)
        self.num_heads, self.num_kv_heads, self.d = num_heads, num_kv_heads, d
        self.rotary = RotaryEmbedding(self.d) if rotary is None else rotary
        self.q_proj = Linear(d_model, d_model, bias, rng)
        self.k_proj = Linear(d_model, num_kv_heads * self.d, bias, rng)
        self.v_proj = Linear(d_model, num_kv_heads * self.d, bias, rng)
        self.o_proj = Linear(d_model, d_model, bias, rng)

    def forward(self, x, mask=None, cache=None, impl="auto"):
        """Apply the layer. Shape: x [B, T, d_model] → [B, T, d_model].

        Args:
            x       the tokens
            mask    bool [T, S] or [B, T, S], where any axis may have length 1, True where token t
                    may attend to token s, in addition to the causal mask (s ≤ t). To hide padding,
                    pass keep[:, None, :], where keep [B, S] is False for padding. None: only the
                    causal mask applies
            cache   an `nn.KeyValueCache` of all earlier tokens, so x contains only the T next
                    tokens, and S counts all tokens. Without a cache, S = T
            impl    "sums" (loops), "numpy" (array algebra), "kernel"
                    (compiled) or "auto" (the faster of "numpy" and "kernel")

        Raises:
            ValueError: x or the mask has a different shape, the cache belongs to another batch or
                layer, or impl is unknown
            TypeError: the mask is not bool, or cache is not an `nn.KeyValueCache`
            RuntimeError: a cache is used while gradients are recorded
        """
        x = as_tensor(x)
        if x.ndim != 3 or x.shape[-1] != self.num_heads * self.d:
            raise ValueError(
                f"GroupedQueryAttention: x must be [B, T, {self.num_heads * self.d}], got shape "
                f"{x.shape}"
                + (
                    ". For a single sequence, pass x[None]"
                    if x.shape[1:] == (self.num_heads * self.d,)
                    else ""
                )
            )
        if not (cache is None or isinstance(cache, KeyValueCache)):
            raise TypeError(
                "GroupedQueryAttention: cache must be an nn.KeyValueCache or None, got "
                f"{type(cache).__name__}"
                + (
                    ". Pass the cache of this layer alone"
                    if isinstance(cache, list | tuple)
                    else ""
                )
            )
        B, T, _ = x.shape
        G, share = self.num_kv_heads, self.num_heads // self.num_kv_heads
        positions = None if cache is None else cache.positions(T)
        q = self.rotary(self._split(self.q_proj(x)), positions)  # [B, H, T, d]
        k = self.rotary(self._split(self.k_proj(x)), positions)  # [B, G, T, d]
        v = self._split(self.v_proj(x))
        past, causal = (None, True) if cache is None else cache.past(T)
        if mask is not None:
            mask = self._with_heads(mask, B, T, T if cache is None else cache.longest + T)
            past = mask if past is None else mask & past
        if cache is not None:  # after the checks, so that a refused call leaves the cache as it was
            k, v = cache.append(k, v)  # [B, G, S, d]
        # the queries that share keys get their own axis: [B, G, share, T, d]
        q, k, v = np.reshape(q, (B, G, share, T, self.d)), k[:, :, None], v[:, :, None]
        if past is not None and past.ndim == 4:
            past = past[:, :, None]
        if T == 1:  # with one query each, a single matrix product serves all heads of a group
            q = np.swapaxes(q, 2, 3)
        y = F.scaled_dot_product_attention(q, k, v, past, causal=causal and T > 1, impl=impl)
        y = np.reshape(y, (B, self.num_heads, T, self.d))
        return self.o_proj(np.reshape(np.swapaxes(y, 1, 2), (B, T, self.num_heads * self.d)))

    def _with_heads(self, mask, B, T, S):
        """Return the mask [T, S] or [B, T, S] as an array, with an axis for the heads after B."""
        mask = np.asarray(to_array(mask))
        if mask.dtype != bool:
            raise TypeError(
                "GroupedQueryAttention: mask must be bool (True where a token may attend to "
                f"another), got {mask.dtype}. Compare first (mask != 0)"
            )
        lengths = zip(mask.shape[::-1], (S, T, B), strict=False)
        if mask.ndim not in (2, 3) or not all(n in (1, m) for n, m in lengths):
            raise ValueError(
                "GroupedQueryAttention: mask must be [T, S] or [B, T, S] with [B, T, S] = "
                f"{(B, T, S)} (any axis may have length 1), got shape {mask.shape}. To hide "
                "padding with keep [B, S], pass keep[:, None, :]"
            )
        return mask[:, None] if mask.ndim == 3 else mask

    def _split(self, x):
        """Split the features among the heads, [B, T, heads·d] → [B, heads, T, d]."""
        heads = x.shape[-1] // self.d  # -1 is ambiguous without tokens
        return np.swapaxes(np.reshape(x, (*x.shape[:-1], heads, self.d)), 1, 2)

    def extra_repr(self):
        return f"{self.num_heads} heads, {self.num_kv_heads} with keys"


class SwiGLU(Module):
    """A feed-forward network with a gate, y = W_down (silu(W_gate x) ⊙ W_up x).

    Here ⊙ multiplies element by element, and the matrices are the weights of gate_proj, up_proj and
    down_proj. Source: Shazeer 2020.

    Args:
        d_model    number of features of x and y
        d_hidden   number of hidden features, the number of rows of W_gate and W_up
        bias       True: the projections have a bias
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: d_model or d_hidden is not a whole number of at least 1
    """

    def __init__(self, d_model, d_hidden, bias=False, rng=None):
        check_sizes(self, single=True, d_model=d_model, d_hidden=d_hidden)
        rng = generator(rng)
        self.gate_proj = Linear(d_model, d_hidden, bias, rng)
        self.up_proj = Linear(d_model, d_hidden, bias, rng)
        self.down_proj = Linear(d_hidden, d_model, bias, rng)

    def forward(self, x):
        """Apply the network. Shape: x [..., d_model] → [..., d_model].

        Raises:
            ValueError: the last axis of x does not have d_model numbers
        """
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(Module):
    """A layer of `models.Llama`, x ← x + Attention(norm x) and then x ← x + SwiGLU(norm x).

    The attention is an `nn.GroupedQueryAttention`, and both norms are an `nn.RMSNorm`. Parameter
    names are the same as in Llama in the Transformers library. Source: Touvron et al. 2023.

    Args:
        d_model        number of features
        num_heads      number of query heads, which divides d_model
        num_kv_heads   number of heads with keys and values, which divides num_heads, or None for
                       num_heads
        d_hidden       number of hidden features of the feed-forward network
        rotary         an `nn.RotaryEmbedding` of d_model / num_heads features, which several layers
                       may share, or None for a new one
        eps            ε >= 0 of the norms, which keeps the divisor away from 0, or None for the
                       machine precision of the dtype of x
        rng            seed or numpy.random.Generator for the initial values, or None for the
                       default generator

    Raises:
        ValueError: a number is outside of its range, num_heads does not divide d_model,
            num_kv_heads does not divide num_heads, d_model / num_heads is odd, or rotary has a
            different number of features
        TypeError: eps is not a number, or rotary is not a module
    """

    def __init__(self, d_model, num_heads, num_kv_heads, d_hidden, rotary=None, eps=1e-5, rng=None):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        sizes = {"num_kv_heads": num_kv_heads, "d_hidden": d_hidden}
        check_sizes(self, optional=("num_kv_heads",), single=True, **sizes)
        rng = generator(rng)
        self.self_attn = GroupedQueryAttention(d_model, num_heads, num_kv_heads, rotary, rng=rng)
        self.mlp = SwiGLU(d_model, d_hidden, rng=rng)
        self.input_layernorm = RMSNorm(d_model, eps)
        self.post_attention_layernorm = RMSNorm(d_model, eps)

    def forward(self, x, cache=None):
        """Apply the layer. Shape: x [B, T, d_model] → [B, T, d_model].

        Args:
            x       the tokens. Each of them attends to itself and to all earlier tokens
            cache   an `nn.KeyValueCache` of all earlier tokens, so x contains only the T next
                    tokens, or None

        Raises:
            ValueError: x has a different shape, or the cache belongs to another batch or layer
            TypeError: cache is not an `nn.KeyValueCache`
            RuntimeError: a cache is used while gradients are recorded
        """
        x = x + self.self_attn(self.input_layernorm(x), cache=cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaBlocks(ModuleList):
    """The layers of `models.Llama`, several instances of `LlamaBlock` applied one after the other.

    Args:
        modules   list of the blocks, in the order in which they are applied

    Raises:
        TypeError: modules are not a list of modules
    """

    def forward(self, x, cache=None):
        """Apply the blocks. Shape: x [B, T, d_model] → [B, T, d_model].

        Args:
            x       the tokens. Each of them attends to itself and to all earlier tokens
            cache   a list with an `nn.KeyValueCache` of all earlier tokens for each block, so x
                    contains only the T next tokens, or None

        Raises:
            ValueError: x has a different shape, or a cache belongs to another batch or layer
            TypeError: cache is not a list with a cache for each block
            RuntimeError: a cache is used while gradients are recorded
        """
        if cache is not None and (not isinstance(cache, list | tuple) or len(cache) != len(self)):
            raise TypeError(
                f"LlamaBlocks: cache must be a list of length {len(self)} with an nn.KeyValueCache "
                f"for each block, got {type_with_article(cache)}"
                + (f" of length {len(cache)}" if isinstance(cache, list | tuple) else "")
            )
        for i, block in enumerate(self):
            x = block(x, None if cache is None else cache[i])
        return x
