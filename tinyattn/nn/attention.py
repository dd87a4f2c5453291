"""Multi-head attention with learned projections, within one set of tokens or between two sets."""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import as_tensor, as_tensors
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.nn.cache import CrossAttentionCache, KeyValueCache
from tinyattn.nn.init import xavier_parameter
from tinyattn.nn.layers import Linear
from tinyattn.nn.module import Module, Parameter
from tinyattn.nn.validation import check_heads, check_sizes

IMPLEMENTATIONS = ("auto", "sums", "numpy", "kernel")


class MultiheadAttention(Module):
    """Multi-head attention with H heads of d = embed_dim/H features each, and an output projection.

        Q = q W_qᵀ + b_q,   K = k W_kᵀ + b_k,   V = v W_vᵀ + b_v
        head_h = softmax(Q_h K_hᵀ / √d) V_h   on the features of head h
        out = [head_1, …, head_H] W_oᵀ + b_o

    W_q, W_k and W_v are the three blocks of in_proj_weight [3·embed_dim, embed_dim], and b_q, b_k
    and b_v those of in_proj_bias [3·embed_dim]. W_o and b_o belong to the linear layer out_proj. If
    kdim or vdim differs from embed_dim, W_q, W_k and W_v are q_proj_weight, k_proj_weight and
    v_proj_weight. Names, layouts and initial values are the same as in
    torch.nn.MultiheadAttention, so its state_dict can be loaded.

    Args:
        embed_dim   number of features of the queries and of the output, a multiple of num_heads
        num_heads   number H of heads
        dropout     probability with which an attention weight becomes 0 in training
        bias        False: the projections have no bias
        kdim        number of features of the input `k`, or None for embed_dim
        vdim        number of features of the input `v`, or None for embed_dim
        rng         seed or numpy.random.Generator for the initial values and the dropout, or None
                    for the default generator

    Raises:
        ValueError: num_heads does not divide embed_dim, a size is not a whole number of at least 1,
            or dropout is not from 0 to 1
        TypeError: dropout is not a number

    Source: Vaswani et al. 2017, section 3.2.2, and slides N17, S13.
    """

    def __init__(
        self, embed_dim, num_heads, dropout=0.0, bias=True, kdim=None, vdim=None, rng=None
    ):
        check_heads(self, embed_dim=embed_dim, num_heads=num_heads)
        check_sizes(self, kdim=kdim, vdim=vdim, optional=("kdim", "vdim"), single=True)
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        # generator for dropout, or None for the default generator
        self.rng = None if rng is None else generator(rng)
        rng = generator(rng if self.rng is None else self.rng)
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = xavier_parameter((3 * embed_dim, embed_dim), rng)
        else:
            self.in_proj_weight = None
            self.q_proj_weight = xavier_parameter((embed_dim, embed_dim), rng)
            self.k_proj_weight = xavier_parameter((embed_dim, self.kdim), rng)
            self.v_proj_weight = xavier_parameter((embed_dim, self.vdim), rng)
        self.in_proj_bias = Parameter(np.zeros(3 * embed_dim, np.float32)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, rng)
        if bias:
            self.out_proj.bias.data = np.zeros(embed_dim, np.float32)

    def forward(
        self,
        q,
        k,
        v,
        mask=None,
        causal=False,
        need_weights=True,
        average_attn_weights=True,
        bias=None,
        impl="auto",
        cache=None,
    ):
        """Apply the layer. Without a cache, the axis B may be missing from all shapes.

        Args:
            q                      tokens from which the queries are computed, [B, T, embed_dim]
            k                      tokens from which the keys are computed, [B, S, kdim]
            v                      tokens from which the values are computed, [B, S, vdim]
            mask                   bool [T, S], [B, T, S] or [B, H, T, S], where any axis may have
                                   length 1, True where query t may attend to key s. None: all may
                                   attend to all. To hide padding, pass keep[:, None, :], where
                                   keep [B, S] is False for padding. A query that may attend to no
                                   key gets the weights 0
            causal                 True: query t attends only to the keys s ≤ t, in addition to the
                                   mask
            need_weights           True: also return the weights, so impl="auto" means "numpy".
                                   False: return None instead of the weights, which is faster
            average_attn_weights   False: return the weights of each head instead of their mean over
                                   the heads
            bias                   floating-point numbers added to the scores, in one of the shapes
                                   of the mask, or None for 0
            impl                   "sums" (loops), "numpy" (array algebra),
                                   "kernel" (compiled) or "auto" (the faster of "numpy" and
                                   "kernel")
            cache                  keys and values of earlier calls, or None. With an
                                   `nn.KeyValueCache`, q, k and v are the next T tokens. Each of
                                   them attends to itself and to all earlier tokens, whether or not
                                   `causal` is set, and S in the shape of the mask counts all
                                   tokens. An `nn.CrossAttentionCache` keeps the keys and values of
                                   the first call, so later calls ignore k and v

        Returns:
            (out [B, T, embed_dim], weights). The weights are None if need_weights is False.
            Otherwise they are the mean over the heads [B, T, S], or the weights of each head
            [B, H, T, S]. In training, the weights include the dropout

        Raises:
            ValueError: q, k, v, the mask or the bias has a different shape, the cache belongs to
                another batch or layer, impl is unknown, or dropout is used in training with the
                impl "sums" or "kernel"
            TypeError: the mask is not bool, the bias is not floating point, or cache is not a cache
                of a single layer
            RuntimeError: a cache is used while gradients are recorded
        """
        q, k, v = as_tensors(q, k, v)
        self._check_shapes(q, k, v)
        if impl not in IMPLEMENTATIONS:
            raise ValueError(
                f"{type(self).__name__}: impl must be one of {', '.join(IMPLEMENTATIONS)}, got "
                f"impl={impl!r}"
            )
        if self._is_self_attention(q, k, v, need_weights, impl, cache):
            scores = (*q.shape[:-2], self.num_heads, q.shape[-2], q.shape[-2])
            mask = self.with_heads(mask, scores, "mask")
            bias = self.with_heads(bias, scores, "bias")
            x = F.linear(q, self.in_proj_weight, self.in_proj_bias)  # [B, T, 3·embed_dim]
            return self.out_proj(
                F.packed_self_attention(x, self.num_heads, mask=mask, bias=bias, causal=causal)
            ), None
        if not (cache is None or isinstance(cache, KeyValueCache | CrossAttentionCache)):
            raise TypeError(
                f"{type(self).__name__}: cache must be an nn.KeyValueCache, an "
                f"nn.CrossAttentionCache or None, got {type(cache).__name__}. "
                + (
                    "Pass the cache of this layer alone, not those of all layers"
                    if isinstance(cache, list | tuple)
                    else "Make one with nn.KeyValueCache()"
                )
            )
        q, k, v, past, causal = self._heads(q, k, v, cache, causal)  # [B, H, T or S, d]
        grows = isinstance(cache, KeyValueCache)
        scores = (*q.shape[:-1], k.shape[-2] + (cache.longest if grows else 0))
        mask, bias = self.with_heads(mask, scores, "mask"), self.with_heads(bias, scores, "bias")
        if past is not None:
            mask = past if mask is None else mask & past
        drop = self.dropout > 0 and self.training
        if drop and impl in ("sums", "kernel"):
            raise ValueError(
                f'{type(self).__name__}: impl="{impl}" does not store the weights that dropout '
                'acts on. Use impl="numpy", dropout=0, or .eval()'
            )
        if grows:  # after the checks, so that a refused call leaves the cache as it was
            k, v = cache.append(k, v)
        a = None
        if need_weights or drop:
            a = F.attention_weights(q, k, mask=mask, bias=bias, causal=causal)  # [B, H, T, S]
        if drop:
            a = F.dropout(a, self.dropout, True, self.rng)
        if a is not None and impl in ("auto", "numpy"):
            # the weights exist already, so a kernel would only compute them again
            y = np.matmul(a, v)
        else:
            y = F.scaled_dot_product_attention(
                q, k, v, mask=mask, bias=bias, causal=causal, impl=impl
            )
        out = self.out_proj(self._join(y))
        if not need_weights:
            return out, None
        return out, a.mean(axis=-3) if average_attn_weights else a

    def _is_self_attention(self, q, k, v, need_weights, impl, cache):
        """Return whether `F.packed_self_attention` can be used.

        That function needs q = k = v, and it neither returns weights nor supports dropout or a
        cache. Only the operation is selected here. Its implementation is chosen in
        ops/attention.py.
        """
        drop = self.dropout > 0 and self.training
        one = self.in_proj_weight is not None and q is k and k is v
        return one and not (need_weights or drop) and impl == "auto" and cache is None

    def _heads(self, q, k, v, cache, causal):
        """Return (q, k, v, past, causal) with q, k, v of each head [B, H, T or S, d].

        k and v do not contain the tokens in a KeyValueCache. `past` is the mask with which new
        tokens attend to these tokens, or None.
        """
        if cache is None:
            return *(self._split(x) for x in self._project(q, k, v)), None, causal
        if q.ndim != 3:
            raise ValueError(
                f"{type(self).__name__}: with a cache, q must be [B, T, {self.embed_dim}], got "
                f"shape {q.shape}. For a single sequence, pass q[None], k[None] and v[None]"
            )
        if isinstance(cache, CrossAttentionCache):
            of_q, *of_kv = self._maps()
            make = lambda: [
                self._split(F.linear(x, *m)) for x, m in zip((k, v), of_kv, strict=True)
            ]
            keys, values = cache.get_or_compute(make)
            held = keys.shape[1], keys.shape[-1]
            own = self.num_heads, self.embed_dim // self.num_heads
            if held != own:
                raise ValueError(
                    f"{type(self).__name__}: (heads, features of a key) is {held} in the cache, "
                    f"but {own} in this layer. Give each attention layer its own cache"
                )
            if len(keys) not in (1, len(q)) and len(q) != 1:
                raise ValueError(
                    f"{type(self).__name__}: the cache holds B={len(keys)} sequences, but q has "
                    f"B={len(q)}. Start a new cache for each batch, or select rows with .rows(...)"
                )
            return self._split(F.linear(q, *of_q)), keys, values, None, causal
        if q.shape[-2] != k.shape[-2]:
            raise ValueError(
                f"{type(self).__name__}: with an nn.KeyValueCache, q, k and v must have the same "
                f"number T of tokens, got q {q.shape}, k {k.shape}, v {v.shape}. For keys and "
                "values that do not change, use an nn.CrossAttentionCache"
            )
        q, k, v = (self._split(x) for x in self._project(q, k, v))
        return q, k, v, *cache.past(q.shape[-2])

    def _project(self, q, k, v):
        """Return queries, keys and values with concatenated heads, [B, T or S, embed_dim] each."""
        if self.in_proj_weight is not None and q is k and k is v:  # one product instead of three
            return np.split(F.linear(q, self.in_proj_weight, self.in_proj_bias), 3, axis=-1)
        return [F.linear(x, *m) for x, m in zip((q, k, v), self._maps(), strict=True)]

    def _maps(self):
        """Return (weight, bias) for queries, for keys and for values."""
        W, b = self.in_proj_weight, self.in_proj_bias
        if W is None:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        else:
            weights = np.split(W, 3)
        biases = (None, None, None) if b is None else np.split(b, 3)
        return list(zip(weights, biases, strict=True))

    def _split(self, x):
        """Split the features among the heads, [B, T, H·d] → [B, H, T, d]."""
        d = self.embed_dim // self.num_heads
        return np.swapaxes(np.reshape(x, (*x.shape[:-1], self.num_heads, d)), -3, -2)

    def _join(self, y):
        """Concatenate the features of the heads, [B, H, T, d] → [B, T, H·d]."""
        y = np.swapaxes(y, -3, -2)
        return np.reshape(y, (*y.shape[:-2], self.embed_dim))

    def _check_shapes(self, q, k, v):
        name = type(self).__name__
        for letter, x, d in zip(
            "qkv", (q, k, v), (self.embed_dim, self.kdim, self.vdim), strict=True
        ):
            if x.ndim not in (2, 3) or x.shape[-1] != d or x.ndim != q.ndim:
                raise ValueError(
                    f"{name}: {letter} must be [B, {'T' if letter == 'q' else 'S'}, {d}], or all "
                    f"three without B; got q {q.shape}, k {k.shape}, v {v.shape}"
                )
        if k.shape[-2] != v.shape[-2]:
            raise ValueError(
                f"{name}: k and v must have the same number S of tokens, got q {q.shape}, k "
                f"{k.shape}, v {v.shape}"
            )
        sizes = {len(q), len(k), len(v)} - {1} if q.ndim == 3 else ()
        if len(sizes) > 1:
            raise ValueError(
                f"{name}: q, k and v must have the same batch size B, got q {q.shape}, k "
                f"{k.shape}, v {v.shape}"
            )

    def with_heads(self, x, scores, name, owner=None):
        """Add an axis for the heads to a mask or bias [B, T, S], so that it fits the scores.

        Args:
            x        the mask or bias [T, S], [B, T, S] or [B, H, T, S], where any axis may have
                     length 1, or None. Without B, it is [T, S] or [H, T, S]
            scores   shape (B, H, T, S) of the scores, or (H, T, S) without B
            name     name of x for the error message, such as "mask" or "bias"
            owner    name of the layer for the error message, or None for the name of this class

        Returns:
            x as an array or a Tensor that broadcasts to `scores`, or None if x is None

        Raises:
            ValueError: x does not broadcast to `scores`
            TypeError: a mask is not bool, or a bias is not floating point
        """
        if x is None:
            return None
        owner = owner or type(self).__name__
        x = x if isinstance(x, Tensor) else np.asarray(x)
        self._check_dtype(x, name, owner)
        given = x.shape
        x = np.expand_dims(x, -3) if x.ndim == len(scores) - 1 else x
        fits = 2 <= x.ndim <= len(scores) and all(
            n in (1, m) for n, m in zip(x.shape[::-1], scores[::-1], strict=False)
        )
        if fits:
            return x
        batched = len(scores) == 4
        shapes = "[T, S], [B, T, S] or [B, H, T, S]" if batched else "[T, S] or [H, T, S]"
        keep = "keep [B, S], pass keep[:, None, :]" if batched else "keep [S], pass keep[None, :]"
        padding = f". To hide padding with {keep}" if name != "bias" else ""
        raise ValueError(
            f"{owner}: {name} must be {shapes} with "
            f"[{'B, ' if batched else ''}H, T, S] = {scores} (any axis may have length 1), got "
            f"shape {given}{padding}"
        )

    def _check_dtype(self, x, name, owner):
        """Raise TypeError for a mask that is not bool, or a bias that is not floating point."""
        if x.dtype.kind == ("f" if name == "bias" else "b"):
            return
        advice = "Convert it with .astype(np.float32)"
        if name != "bias":
            advice = (
                f"Compare first ({name} != 0), or pass numbers that are added to the scores as the "
                "bias of an attention layer"
            )
        elif x.dtype == bool:
            advice = "If True means that a query may attend to a key, pass it as mask="
        kind = (
            "floating point" if name == "bias" else "bool (True where a query may attend to a key)"
        )
        raise TypeError(f"{owner}: {name} must be {kind}, got {x.dtype}. {advice}")

    def extra_repr(self):
        own = self.kdim == self.vdim == self.embed_dim
        sizes = "" if own else f", kdim={self.kdim}, vdim={self.vdim}"
        return f"{self.embed_dim}, {self.num_heads}{sizes}"


class SelfAttention(MultiheadAttention):
    """Attention within one set of tokens x, from which queries, keys and values are computed.

    The parameters of the layer are the same as in `MultiheadAttention`.

    Args:
        d         number of features
        heads     number of heads, which divides d
        dropout   probability with which an attention weight becomes 0 in training
        bias      False: the projections have no bias
        rng       seed or numpy.random.Generator for the initial values and the dropout, or None for
                  the default generator

    Raises:
        ValueError: heads does not divide d, a size is not a whole number of at least 1, or dropout
            is not from 0 to 1
        TypeError: dropout is not a number
    """

    def __init__(self, d, heads=1, dropout=0.0, bias=True, rng=None):
        check_heads(self, d=d, heads=heads)
        super().__init__(d, heads, dropout, bias, rng=rng)

    def forward(
        self,
        x,
        mask=None,
        causal=False,
        need_weights=False,
        average_attn_weights=True,
        bias=None,
        impl="auto",
    ):
        """Apply the layer. Shape: x [B, N, d] → [B, N, d].

        The axis B may be missing from all shapes.

        Args:
            x                      the tokens [B, N, d]
            mask                   bool [N, N], [B, N, N] or [B, H, N, N], where any axis may have
                                   length 1, True where token t may attend to token s. To hide
                                   padding, pass keep[:, None, :], where keep [B, N] is False for
                                   padding. None: all may attend to all
            causal                 True: token t attends only to the tokens s ≤ t, in addition to
                                   the mask
            need_weights           True: also return the weights, which is slower
            average_attn_weights   False: return the weights of each head instead of their mean over
                                   the heads
            bias                   floating-point numbers added to the scores, in one of the shapes
                                   of the mask, or None for 0
            impl                   "sums" (loops), "numpy" (array algebra),
                                   "kernel" (compiled) or "auto" (the faster of "numpy" and
                                   "kernel")

        Returns:
            out [B, N, d], or (out, weights) with need_weights, where the weights are the mean over
            the heads [B, N, N] or those of each head [B, H, N, N]. In training, they include the
            dropout

        Raises:
            ValueError: x, the mask or the bias has a different shape, impl is unknown, or dropout
                is used in training with the impl "sums" or "kernel"
            TypeError: the mask is not bool, or the bias is not floating point
        """
        if mask is x:
            raise TypeError(
                f"{type(self).__name__}: x must be passed only once, because queries, keys and "
                "values are all computed from it. Write layer(x)"
            )
        x = as_tensor(x)
        if x.ndim not in (2, 3) or x.shape[-1] != self.embed_dim:
            raise ValueError(
                f"{type(self).__name__}: x must be [B, N, {self.embed_dim}] or "
                f"[N, {self.embed_dim}], got shape {x.shape}"
            )
        out, weights = super().forward(
            x, x, x, mask, causal, need_weights, average_attn_weights, bias, impl
        )
        return (out, weights) if need_weights else out


class CrossAttention(MultiheadAttention):
    """Attention of x to a context, a second set of tokens that gives the keys and values.

    The parameters of the layer are the same as in `MultiheadAttention`.

    Args:
        d           number of features of x
        heads       number of heads, which divides d
        d_context   number of features of the context, or None for d
        dropout     probability with which an attention weight becomes 0 in training
        bias        False: the projections have no bias
        rng         seed or numpy.random.Generator for the initial values and the dropout, or None
                    for the default generator

    Raises:
        ValueError: heads does not divide d, a size is not a whole number of at least 1, or dropout
            is not from 0 to 1
        TypeError: dropout is not a number
    """

    def __init__(self, d, heads=1, d_context=None, dropout=0.0, bias=True, rng=None):
        check_heads(self, d=d, heads=heads)
        check_sizes(self, d_context=d_context, optional=("d_context",), single=True)
        super().__init__(d, heads, dropout, bias, d_context, d_context, rng)

    def forward(
        self,
        x,
        context,
        mask=None,
        causal=False,
        need_weights=False,
        average_attn_weights=True,
        bias=None,
        impl="auto",
    ):
        """Apply the layer. Shape: x [B, T, d], context [B, S, d_context] → [B, T, d].

        The axis B may be missing from all shapes.

        Args:
            x                      tokens [B, T, d] that attend to the context
            context                tokens [B, S, d_context] that x attends to
            mask                   bool [T, S], [B, T, S] or [B, H, T, S], where any axis may have
                                   length 1, True where token t may attend to context token s. To
                                   hide padding of the context, pass keep[:, None, :], where
                                   keep [B, S] is False for padding. None: all may attend to all
            causal                 True: token t attends only to the context tokens s ≤ t, in
                                   addition to the mask
            need_weights           True: also return the weights, which is slower
            average_attn_weights   False: return the weights of each head instead of their mean over
                                   the heads
            bias                   floating-point numbers added to the scores, in one of the shapes
                                   of the mask, or None for 0
            impl                   "sums" (loops), "numpy" (array algebra),
                                   "kernel" (compiled) or "auto" (the faster of "numpy" and
                                   "kernel")

        Returns:
            out [B, T, d], or (out, weights) with need_weights, where the weights are the mean over
            the heads [B, T, S] or those of each head [B, H, T, S]. In training, they include the
            dropout

        Raises:
            ValueError: x, context, the mask or the bias has a different shape, impl is unknown, or
                dropout is used in training with the impl "sums" or "kernel"
            TypeError: the mask is not bool, or the bias is not floating point
        """
        x, context = as_tensors(x, context)
        self._check_context(x, context)
        out, weights = super().forward(
            x, context, context, mask, causal, need_weights, average_attn_weights, bias, impl
        )
        return (out, weights) if need_weights else out

    def _check_context(self, x, context):
        sizes = {len(x), len(context)} - {1} if x.ndim == 3 else ()
        fits = x.ndim == context.ndim and x.ndim in (2, 3) and len(sizes) < 2
        if not fits or (x.shape[-1], context.shape[-1]) != (self.embed_dim, self.kdim):
            raise ValueError(
                f"{type(self).__name__}: x must be [B, T, {self.embed_dim}] and context "
                f"[B, S, {self.kdim}] with the same B, or both without B, got x {x.shape} and "
                f"context {context.shape}"
            )
