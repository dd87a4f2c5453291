"""The transformer of Vaswani et al. 2017, with its encoder and decoder.

x is [B, T, d_model]. Masks are bool [T, S], [B, T, S] or, for each of H heads, [B, H, T, S], where
True means that query t may attend to key s. To hide padding, pass keep[:, None, :], where
keep [B, S] is False for padding. Arguments, parameter names and initial values are the same as in
PyTorch, with the batch first. With norm_first=True, the layer norm comes before each sublayer
(Xiong et al. 2020) instead of after the residual sum as in the paper.
"""

import math
from copy import deepcopy

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range, type_with_article
from tinyattn.nn.attention import MultiheadAttention
from tinyattn.nn.cache import CrossAttentionCache, KeyValueCache
from tinyattn.nn.containers import ModuleList
from tinyattn.nn.init import xavier_uniform_
from tinyattn.nn.layers import Dropout, Linear
from tinyattn.nn.module import Module
from tinyattn.nn.norms import LayerNorm
from tinyattn.nn.validation import check_heads, check_sizes

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class _Layer(Module):
    """The base class of encoder and decoder layers: one or two attentions and a two-layer network.

    Each part has a residual sum, a norm and a dropout. The last norm and dropout belong to the
    network, which acts on each position separately.
    """

    attentions = ()  # names of the attention layers, in order

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        norm_first=False,
        bias=True,
        rng=None,
    ):
        check_heads(self, d_model=d_model, nhead=nhead)
        check_sizes(self, single=True, dim_feedforward=dim_feedforward)
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        check_range(type(self).__name__, 0, below=math.inf, layer_norm_eps=layer_norm_eps)
        if isinstance(activation, type):
            raise ValueError(
                f"{type(self).__name__}: activation is the class {activation.__name__}. Write "
                f"{activation.__name__}(), with ()"
            )
        if not (callable(activation) or activation in tuple(ACTIVATIONS)):
            raise ValueError(
                f"{type(self).__name__}: activation must be a function or one of "
                f"{', '.join(ACTIVATIONS)}, got {activation!r}"
                + (". Pass a function, such as F.silu" if isinstance(activation, str) else "")
            )
        # None means that the default generator is used at run time
        of_dropout = None if rng is None else generator(rng)
        rng, parts = of_dropout or generator(), range(1, len(self.attentions) + 2)
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, rng=of_dropout))
        self.d_model, self.norm_first = d_model, norm_first
        self.activation = activation if callable(activation) else ACTIVATIONS[activation]
        self.linear1 = Linear(d_model, dim_feedforward, bias, rng)
        self.dropout = Dropout(dropout, of_dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, rng)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout, of_dropout))

    def _checked(self, name, x):
        """Return x as a Tensor, after a check that it is [B, T, d_model] or [T, d_model]."""
        x, d = as_tensor(x), self.d_model
        if x.ndim not in (2, 3) or x.shape[-1] != d:
            length = "S" if name == "memory" else "T"
            raise ValueError(
                f"{type(self).__name__}: {name} must be [B, {length}, {d}] or [{length}, {d}], got "
                f"shape {x.shape}"
            )
        return x

    def _self_attention(self, x, mask, causal, cache):
        return self.self_attn(x, x, x, mask, causal, need_weights=False, cache=cache)[0]

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x, norm, dropout, part, *options):
        """Return x + part(x), with the norm before the part (norm_first) or after the sum."""
        if self.norm_first:
            return x + dropout(part(norm(x), *options))
        return norm(x + dropout(part(x, *options)))


class TransformerEncoderLayer(_Layer):
    """An encoder layer, x ← x + SelfAttention(x) and then x ← x + FeedForward(x).

    FeedForward(x) is W₂ dropout(activation(W₁ x + b₁)) + b₂, for each token separately. Each of the
    two steps has a dropout and a layer norm, x ← norm(x + dropout(SelfAttention(x))).

    Args:
        d_model           number of features
        nhead             number of heads, which divides d_model
        dim_feedforward   number of hidden features of the feed-forward network
        dropout           probability with which a number becomes 0 in training
        activation        "relu", "gelu", or a function from a Tensor to one of the same shape
        layer_norm_eps    ε >= 0 of the norms, which keeps the divisor away from 0
        norm_first        True: x ← x + dropout(SelfAttention(norm(x))) and so on, instead of the
                          norm after the sum as in the paper
        bias              False: linear layers and norms have no bias
        rng               seed or numpy.random.Generator for the initial values and the dropout, or
                          None for the default generator

    Raises:
        ValueError: nhead does not divide d_model, a number is outside of its range, or activation
            is neither a function nor one of these names
        TypeError: dropout or layer_norm_eps is not a number

    Source: Vaswani et al. 2017, section 3.1.
    """

    attentions = ("self_attn",)

    def forward(self, x, mask=None, causal=False, cache=None):
        """Apply the layer. Shape: x [B, T, d_model] → the same. Without a cache, B may be missing.

        Args:
            x        the tokens
            mask     bool [T, S], [B, T, S] or [B, H, T, S], where any axis may have length 1, True
                     where token t may attend to token s. To hide padding, pass keep[:, None, :],
                     where keep [B, S] is False for padding. None: all may attend to all
            causal   True: token t attends only to the tokens s ≤ t, in addition to the mask
            cache    an `nn.KeyValueCache` of all earlier tokens, so x contains only the T next
                     tokens, which attend to no later ones, and S counts all tokens. Without a
                     cache, S = T

        Raises:
            ValueError: x or the mask has a different shape, or the cache belongs to another batch
                or layer
            TypeError: the mask is not bool, or cache is not an `nn.KeyValueCache`
            RuntimeError: a cache is used while gradients are recorded
        """
        x = self._checked("x", x)
        if not (cache is None or isinstance(cache, KeyValueCache)):
            raise TypeError(
                f"{type(self).__name__}: cache must be an nn.KeyValueCache or None, got "
                f"{type(cache).__name__}"
                + (
                    ". Pass the cache of this layer alone"
                    if isinstance(cache, list | tuple)
                    else ""
                )
            )
        x = self._residual(x, self.norm1, self.dropout1, self._self_attention, mask, causal, cache)
        return self._residual(x, self.norm2, self.dropout2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """A decoder layer, with self-attention, attention to the memory and a feed-forward network.

        x ← norm(x + dropout(SelfAttention(x)))
        x ← norm(x + dropout(CrossAttention(x, memory)))
        x ← norm(x + dropout(FeedForward(x)))

    FeedForward(x) is W₂ dropout(activation(W₁ x + b₁)) + b₂, for each token separately.

    Args:
        d_model           number of features
        nhead             number of heads, which divides d_model
        dim_feedforward   number of hidden features of the feed-forward network
        dropout           probability with which a number becomes 0 in training
        activation        "relu", "gelu", or a function from a Tensor to one of the same shape
        layer_norm_eps    ε >= 0 of the norms, which keeps the divisor away from 0
        norm_first        True: x ← x + dropout(SelfAttention(norm(x))) and so on, instead of the
                          norm after the sum as in the paper
        bias              False: linear layers and norms have no bias
        rng               seed or numpy.random.Generator for the initial values and the dropout, or
                          None for the default generator

    Raises:
        ValueError: nhead does not divide d_model, a number is outside of its range, or activation
            is neither a function nor one of these names
        TypeError: dropout or layer_norm_eps is not a number

    Source: Vaswani et al. 2017, section 3.1.
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(self, x, memory, mask=None, memory_mask=None, causal=False, cache=None):
        """Apply the layer. Shape: x [B, T, d_model], memory [B, S, d_model] → [B, T, d_model].

        Without a cache, the axis B may be missing from all shapes.

        Args:
            x             the tokens
            memory        output of the encoder
            mask          bool [T, T'], [B, T, T'] or [B, H, T, T'], where any axis may have length
                          1, True where token t may attend to token s. T' counts all tokens,
                          including those in the cache, and is T without a cache. None: all may
                          attend to all
            memory_mask   bool [T, S], [B, T, S] or [B, H, T, S], where any axis may have length 1,
                          True where token t may attend to token s of the memory. To hide padding
                          of the memory, pass keep[:, None, :], where keep [B, S] is False for
                          padding. None: all may attend to all
            causal        True: token t attends only to the tokens s ≤ t of x, in addition to the
                          mask
            cache         a pair of an `nn.KeyValueCache` of all earlier tokens and an
                          `nn.CrossAttentionCache` of the memory, so x contains only the next
                          tokens, which attend to no later ones

        Raises:
            ValueError: x, memory or a mask has a different shape, or a cache belongs to another
                batch or layer
            TypeError: a mask is not bool, or cache is not such a pair
            RuntimeError: a cache is used while gradients are recorded
        """
        own, of_memory = (None, None) if cache is None else self._pair(cache)
        x, memory = self._checked("x", x), self._checked("memory", memory)
        if x.ndim != memory.ndim or (x.ndim == 3 and len({len(x), len(memory)} - {1}) > 1):
            raise ValueError(
                f"{type(self).__name__}: x and memory must have the same batch size B, or both no "
                f"axis B, got x {x.shape} and memory {memory.shape}"
            )
        x = self._residual(x, self.norm1, self.dropout1, self._self_attention, mask, causal, own)
        x = self._residual(
            x, self.norm2, self.dropout2, self._cross_attention, memory, memory_mask, of_memory
        )
        return self._residual(x, self.norm3, self.dropout3, self._feed_forward)

    def _pair(self, cache):
        """Return (own cache, cache of the memory), or raise TypeError."""
        found = type(cache).__name__
        if isinstance(cache, tuple | list):
            found = f"({', '.join(type(c).__name__ for c in cache)})"
            if len(cache) == 2:
                own, of_memory = cache
                if (own is None or isinstance(own, KeyValueCache)) and (
                    of_memory is None or isinstance(of_memory, CrossAttentionCache)
                ):
                    return own, of_memory
        raise TypeError(
            f"{type(self).__name__}: cache must be a pair (nn.KeyValueCache, "
            f"nn.CrossAttentionCache) or None, got {found}"
        )

    def _cross_attention(self, x, memory, mask, cache):
        mask = _checked_mask(self.multihead_attn, "memory_mask", mask, x, memory)
        return self.multihead_attn(x, memory, memory, mask, need_weights=False, cache=cache)[0]


def _checked_mask(attention, name, mask, x, context):
    """Return the mask of the attention of x to context. Errors call the mask `name`."""
    if mask is None or not isinstance(attention, MultiheadAttention):
        return mask
    batch = np.broadcast_shapes(x.shape[:-2], context.shape[:-2])
    scores = (*batch, attention.num_heads, x.shape[-2], context.shape[-2])
    return attention.with_heads(mask, scores, name)


def _clones(layer, n):
    """Return n copies of a layer that share its generator, so that they drop different features."""
    shared = [m.rng for m in layer.modules() if getattr(m, "rng", None) is not None]
    return ModuleList([deepcopy(layer, {id(x): x for x in shared}) for _ in range(n)])


def _weights(attention, x, context, mask, causal):
    """Return the weights with which x attends to context in `attention`, an array [B, H, T, S]."""
    options = {"need_weights": True, "average_attn_weights": False}
    return attention(x, context, context, mask, causal, **options)[1].data


def _check_layer(stack, name, layer, norm):
    if not isinstance(layer, Module):
        kind = name.partition("_")[0].capitalize()
        raise TypeError(
            f"{type(stack).__name__}: {name} must be a layer, got {_found(layer)}. Write for "
            f"example nn.Transformer{kind}Layer(d_model, nhead)"
        )
    wrong = TransformerDecoderLayer if name == "encoder_layer" else TransformerEncoderLayer
    if isinstance(layer, wrong):
        raise TypeError(
            f"{type(stack).__name__}: {name} must not be an nn.{wrong.__name__}, because its call "
            f"has other arguments. Pass an nn.Transformer{name.partition('_')[0].capitalize()}Layer"
        )
    if not (norm is None or isinstance(norm, Module)):
        raise TypeError(
            f"{type(stack).__name__}: norm must be a module or None, got {_found(norm)}. Write for "
            "example nn.LayerNorm(d_model)"
        )


def _found(value):
    return f"the class {value.__name__}" if isinstance(value, type) else repr(value)


def _check_caches(stack, cache):
    """Raise TypeError unless the cache is None or has the form of the stack's `empty_cache()`."""
    pairs = isinstance(stack, TransformerDecoder)
    fits = cache is None or (isinstance(cache, list | tuple) and len(cache) == len(stack.layers))
    if not fits or (cache and any(isinstance(c, tuple | list) is not pairs for c in cache)):
        each, found = "a pair of caches" if pairs else "one cache", ""
        if isinstance(cache, list | tuple):
            found = f" of length {len(cache)}"
            if fits:  # the length is right, so an entry is wrong
                wrong = next(c for c in cache if isinstance(c, tuple | list) is not pairs)
                found = f" that contains {type_with_article(wrong)}"
        raise TypeError(
            f"{type(stack).__name__}: cache must be a list with {each} for each layer, of length "
            f"{len(stack.layers)}, got {type_with_article(cache)}{found}. Make it with "
            ".empty_cache()"
        )


class TransformerEncoder(Module):
    """The encoder, several copies of a layer with an optional norm at the end.

    Args:
        encoder_layer   an `nn.TransformerEncoderLayer`, which is copied num_layers times, together
                        with its initial values
        num_layers      number of copies
        norm            module at the end, or None

    Raises:
        ValueError: num_layers is not a whole number of at least 1
        TypeError: encoder_layer is not a module or is a layer for the decoder, or norm is not a
            module
    """

    def __init__(self, encoder_layer, num_layers, norm=None):
        check_sizes(self, single=True, num_layers=num_layers)
        _check_layer(self, "encoder_layer", encoder_layer, norm)
        self.layers = _clones(encoder_layer, num_layers)
        self.norm = norm

    def forward(self, x, mask=None, causal=False, cache=None):
        """Apply all layers. Shape: x [B, T, d_model] → the same. Without a cache, B may be missing.

        Args:
            x        the tokens
            mask     bool [T, S], [B, T, S] or [B, H, T, S], where any axis may have length 1, True
                     where token t may attend to token s. To hide padding, pass keep[:, None, :],
                     where keep [B, S] is False for padding. None: all may attend to all
            causal   True: token t attends only to the tokens s ≤ t, in addition to the mask
            cache    the result of `empty_cache`, a list with an `nn.KeyValueCache` for each layer.
                     Then x contains only the T next tokens, which attend to no later ones, and S
                     counts all tokens. Without a cache, S = T

        Raises:
            ValueError: x or the mask has a different shape, or the cache belongs to another batch
            TypeError: the mask is not bool, or cache is not such a list
            RuntimeError: a cache is used while gradients are recorded
        """
        _check_caches(self, cache)
        for i, layer in enumerate(self.layers):
            x = layer(x, mask, causal, None if cache is None else cache[i])
        return x if self.norm is None else self.norm(x)

    def attention_maps(self, x, mask=None, causal=False):
        """Return the attention weights of each layer. In training, they include the dropout.

        Args:
            x        the tokens [B, T, d_model]
            mask     bool [T, T], [B, T, T] or [B, H, T, T], where any axis may have length 1, True
                     where token t may attend to token s. None: all may attend to all
            causal   True: token t attends only to the tokens s ≤ t, in addition to the mask

        Returns:
            a list with an array [B, H, T, T] for each layer. Its element [b, h, t, s] is the weight
            of token s for token t in head h

        Raises:
            ValueError: x or the mask has a different shape
            TypeError: the mask is not bool
        """
        maps = []
        for layer in self.layers:
            y = layer(x, mask, causal)  # first, because its errors name the arguments
            z = layer.norm1(x) if layer.norm_first else x
            maps.append(_weights(layer.self_attn, z, z, mask, causal))
            x = y
        return maps

    def empty_cache(self):
        """Return a list with an empty `nn.KeyValueCache` for each layer."""
        return [KeyValueCache() for _ in self.layers]


class TransformerDecoder(Module):
    """The decoder, several copies of a layer that all attend to the same memory.

    Args:
        decoder_layer   an `nn.TransformerDecoderLayer`, which is copied num_layers times, together
                        with its initial values
        num_layers      number of copies
        norm            module at the end, or None

    Raises:
        ValueError: num_layers is not a whole number of at least 1
        TypeError: decoder_layer is not a module or is a layer for the encoder, or norm is not a
            module
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        check_sizes(self, single=True, num_layers=num_layers)
        _check_layer(self, "decoder_layer", decoder_layer, norm)
        self.layers = _clones(decoder_layer, num_layers)
        self.norm = norm

    def forward(self, x, memory, mask=None, memory_mask=None, causal=False, cache=None):
        """Apply all layers. Shape: x [B, T, d_model], memory [B, S, d_model] → [B, T, d_model].

        Without a cache, the axis B may be missing from all shapes.

        Args:
            x             the tokens
            memory        output of the encoder
            mask          bool [T, T'], [B, T, T'] or [B, H, T, T'], where any axis may have length
                          1, True where token t may attend to token s. T' counts all tokens,
                          including those in the cache, and is T without a cache. None: all may
                          attend to all
            memory_mask   bool [T, S], [B, T, S] or [B, H, T, S], where any axis may have length 1,
                          True where token t may attend to token s of the memory. To hide padding
                          of the memory, pass keep[:, None, :], where keep [B, S] is False for
                          padding. None: all may attend to all
            causal        True: token t attends only to the tokens s ≤ t of x, in addition to the
                          mask
            cache         the result of `empty_cache`, a list with a pair of caches for each layer.
                          Then x contains only the next tokens, which attend to no later ones

        Raises:
            ValueError: x, memory or a mask has a different shape, or the cache belongs to another
                batch
            TypeError: a mask is not bool, or cache is not such a list
            RuntimeError: a cache is used while gradients are recorded
        """
        _check_caches(self, cache)
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, mask, memory_mask, causal, None if cache is None else cache[i])
        return x if self.norm is None else self.norm(x)

    def attention_maps(self, x, memory, mask=None, memory_mask=None, causal=False):
        """Return the weights of each layer's attention to the memory.

        In training, they include the dropout.

        Args:
            x             the tokens [B, T, d_model]
            memory        output of the encoder [B, S, d_model]
            mask          bool [T, T], [B, T, T] or [B, H, T, T], where any axis may have length 1,
                          True where token t may attend to token s. None: all may attend to all
            memory_mask   bool [T, S], [B, T, S] or [B, H, T, S], where any axis may have length 1,
                          True where token t may attend to token s of the memory. None: all may
                          attend to all
            causal        True: token t attends only to the tokens s ≤ t of x, in addition to the
                          mask

        Returns:
            a list with an array [B, H, T, S] for each layer. Its element [b, h, t, s] is the weight
            of token s of the memory for token t in head h

        Raises:
            ValueError: x, memory or a mask has a different shape
            TypeError: a mask is not bool
        """
        maps = []
        for layer in self.layers:
            # first, because its errors name the arguments
            y = layer(x, memory, mask, memory_mask, causal)
            z = layer._residual(
                x, layer.norm1, layer.dropout1, layer._self_attention, mask, causal, None
            )
            z = layer.norm2(z) if layer.norm_first else z
            maps.append(_weights(layer.multihead_attn, z, memory, memory_mask, False))
            x = y
        return maps

    def empty_cache(self):
        """Return a list with an empty pair of caches for each layer.

        A pair is an `nn.KeyValueCache` of the tokens and an `nn.CrossAttentionCache` of the memory.
        """
        return [(KeyValueCache(), CrossAttentionCache()) for _ in self.layers]


class Transformer(Module):
    """A transformer with an encoder and a decoder.

    Encoder and decoder each end with a layer norm. The embeddings, the positional encodings and the
    output head are not part of the transformer.

    Args:
        d_model              number of features
        nhead                number of heads, which divides d_model
        num_encoder_layers   number of layers of the encoder
        num_decoder_layers   number of layers of the decoder
        dim_feedforward      number of hidden features of the feed-forward networks
        dropout              probability with which a number becomes 0 in training
        activation           "relu", "gelu", or a function from a Tensor to one of the same shape
        layer_norm_eps       ε >= 0 of the norms, which keeps the divisor away from 0
        norm_first           True: the norm comes before each part instead of after the residual sum
        bias                 False: linear layers and norms have no bias
        rng                  seed or numpy.random.Generator for the initial values and the dropout,
                             or None for the default generator

    Raises:
        ValueError: nhead does not divide d_model, a number is outside of its range, or activation
            is neither a function nor one of these names
        TypeError: dropout or layer_norm_eps is not a number

    Source: Vaswani et al. 2017.
    """

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        norm_first=False,
        bias=True,
        rng=None,
    ):
        check_heads(self, d_model=d_model, nhead=nhead)
        check_sizes(
            self,
            num_encoder_layers=num_encoder_layers,
            num_decoder_layers=num_decoder_layers,
            dim_feedforward=dim_feedforward,
            single=True,
        )
        check_range("Transformer", 0, 1, dropout=dropout)
        self.d_model = d_model
        rng = None if rng is None else generator(rng)
        options = (dim_feedforward, dropout, activation, layer_norm_eps, norm_first, bias, rng)
        self.encoder = TransformerEncoder(
            TransformerEncoderLayer(d_model, nhead, *options),
            num_encoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias),
        )
        self.decoder = TransformerDecoder(
            TransformerDecoderLayer(d_model, nhead, *options),
            num_decoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias),
        )
        rng = generator(rng)
        # initialize all matrices again, because the copies of a layer have equal weights
        for p in self.parameters():
            if p.ndim > 1:
                xavier_uniform_(p, rng=rng)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, causal=False):
        """Apply the network. Shape: src [B, S, d_model], tgt [B, T, d_model] → [B, T, d_model].

        The axis B may be missing from all shapes, and any axis of a mask may have length 1. To hide
        padding of the source, pass keep[:, None, :] as src_mask and as memory_mask, where
        keep [B, S] is False for padding.

        Args:
            src           tokens of the source
            tgt           tokens of the target
            src_mask      bool [S, S], [B, S, S] or [B, H, S, S], True where source token t may
                          attend to source token s. None: all may attend to all
            tgt_mask      bool [T, T], [B, T, T] or [B, H, T, T], in the same way for the target
                          tokens
            memory_mask   bool [T, S], [B, T, S] or [B, H, T, S], True where target token t may
                          attend to source token s. None: all may attend to all
            causal        True: target token t attends only to the target tokens s ≤ t, in addition
                          to tgt_mask

        Raises:
            ValueError: src, tgt or a mask has a different shape
            TypeError: a mask is not bool
        """
        src, tgt, d = as_tensor(src), as_tensor(tgt), self.d_model
        axes = {src.ndim, tgt.ndim}
        if axes not in ({2}, {3}) or not src.shape[-1] == tgt.shape[-1] == d:
            raise ValueError(
                f"Transformer: src must be [B, S, {d}] and tgt [B, T, {d}], or both without B, got "
                f"src {src.shape} and tgt {tgt.shape}"
            )
        if axes == {3} and len({len(src), len(tgt)} - {1}) > 1:
            raise ValueError(
                f"Transformer: src and tgt must have the same batch size B, got src {src.shape} "
                f"and tgt {tgt.shape}"
            )
        of_encoder, of_decoder = (
            getattr(stack.layers[0], "self_attn", None) for stack in (self.encoder, self.decoder)
        )
        src_mask = _checked_mask(of_encoder, "src_mask", src_mask, src, src)
        tgt_mask = _checked_mask(of_decoder, "tgt_mask", tgt_mask, tgt, tgt)
        memory = self.encoder(src, src_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, causal)
