"""The transformer of Vaswani et al. 2017: encoder, decoder, and both together.

x is [B, T, d_model]. Masks are bool, True means "may take part": [T, S], [B, T, S] or
[B, H, T, S]; padding is hidden with keep[:, None, :]. Arguments, parameter names and start values
are PyTorch's, batch first. `norm_first` puts the layer norm in front of each part (Xiong et al.
2020) instead of behind the sum as in the paper.
"""

from copy import deepcopy

import numpy as np

import tinyattn.functional as F
from tinyattn.guards import DEFAULT_DTYPE
from tinyattn.nn.attention import MultiheadAttention
from tinyattn.nn.layers import Dropout, Linear
from tinyattn.nn.module import Module, ModuleList
from tinyattn.nn.norms import LayerNorm
from tinyattn.random import generator

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class _Layer(Module):
    """What encoder and decoder layers share: the feed-forward part and the residual sums."""

    def _make_feed_forward(self, d_model, dim_feedforward, dropout, activation, bias, rng):
        if not callable(activation) and activation not in ACTIVATIONS:
            raise ValueError(
                f"{type(self).__name__}: activation is a function or one of "
                f"{', '.join(ACTIVATIONS)}, got {activation!r}"
            )
        self.activation = ACTIVATIONS.get(activation, activation)
        self.linear1 = Linear(d_model, dim_feedforward, bias, rng)
        self.dropout = Dropout(dropout, rng)
        self.linear2 = Linear(dim_feedforward, d_model, bias, rng)

    def _feed_forward(self, x):
        """The same two-layer network for every position."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x, norm, dropout, part):
        """x + part(x), normalised before (norm_first) or after."""
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))


class TransformerEncoderLayer(_Layer):
    """x ← x + SelfAttention(x), x ← x + FeedForward(x), each with dropout and layer norm."""

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
        rng = generator(rng)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, rng=rng)
        self._make_feed_forward(d_model, dim_feedforward, dropout, activation, bias, rng)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout1, self.dropout2 = Dropout(dropout, rng), Dropout(dropout, rng)
        self.norm_first = norm_first

    def forward(self, x, mask=None, causal=False):
        def attend(z):
            return self.self_attn(z, z, z, mask, causal, need_weights=False)[0]

        x = self._residual(x, self.norm1, self.dropout1, attend)
        return self._residual(x, self.norm2, self.dropout2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, then cross-attention over the memory of the encoder, then feed-forward."""

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
        rng = generator(rng)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, rng=rng)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, rng=rng)
        self._make_feed_forward(d_model, dim_feedforward, dropout, activation, bias, rng)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout1, self.dropout2 = Dropout(dropout, rng), Dropout(dropout, rng)
        self.dropout3 = Dropout(dropout, rng)
        self.norm_first = norm_first

    def forward(self, x, memory, mask=None, memory_mask=None, causal=False):
        def attend(z):
            return self.self_attn(z, z, z, mask, causal, need_weights=False)[0]

        def look_up(z):
            return self.multihead_attn(z, memory, memory, memory_mask, need_weights=False)[0]

        x = self._residual(x, self.norm1, self.dropout1, attend)
        x = self._residual(x, self.norm2, self.dropout2, look_up)
        return self._residual(x, self.norm3, self.dropout3, self._feed_forward)


class TransformerEncoder(Module):
    """num_layers copies of a layer, one behind the other, and a norm at the end if given."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, x, mask=None, causal=False):
        for layer in self.layers:
            x = layer(x, mask, causal)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """num_layers copies of a decoder layer, all looking at the same memory."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        self.layers = ModuleList([deepcopy(decoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, x, memory, mask=None, memory_mask=None, causal=False):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, causal)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Encoder and decoder: src [B, S, d_model] and tgt [B, T, d_model] give [B, T, d_model].

    Embeddings, positions and the output head stay outside. `causal` applies to the target.
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
        rng = generator(rng)
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
        for p in self.parameters():  # every matrix anew: the copies of a layer shall differ
            if p.ndim > 1:
                bound = np.sqrt(6 / sum(p.shape))
                p.data = rng.uniform(-bound, bound, p.shape).astype(DEFAULT_DTYPE)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, causal=False):
        memory = self.encoder(src, src_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, causal)
