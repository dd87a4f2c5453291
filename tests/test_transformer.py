"""Transformer layers equal PyTorch's with its weights, and masks hide what they should."""

import numpy as np
import pytest

import tinyattn as ta
from tests.parity import modules, torch
from tinyattn import check, nn

TN = torch.nn
rng = np.random.default_rng(0)
D, H, FF, B, T, S = 6, 2, 10, 3, 5, 4
SMALL = {"dim_feedforward": FF, "dropout": 0.0}
OPTIONS = [{}, {"norm_first": True}, {"activation": "gelu", "bias": False, "layer_norm_eps": 1e-3}]


def normal(*shape):
    return rng.normal(size=shape)


class Call(torch.nn.Module):
    """A PyTorch module that is called with some arguments fixed, under its own names."""

    def __init__(self, module, call):
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *x):
        return self.call(self.module, *x)


class Same(nn.Module):
    def __init__(self, module, call):
        self.module, self.call = module, call

    def forward(self, *x):
        return self.call(self.module, *x)


def hidden(mask):
    return torch.tensor(~mask)  # PyTorch: True means hidden


causal = np.tri(T, T, dtype=bool)
padding = np.arange(T) < np.array([5, 3, 1])[:, None]  # [B, T]


@pytest.mark.parametrize("options", OPTIONS)
def test_encoder_layer(options):
    theirs = TN.TransformerEncoderLayer(D, H, batch_first=True, **SMALL, **options)
    modules(nn.TransformerEncoderLayer(D, H, **SMALL, **options), theirs, normal(B, T, D))


def test_encoder_with_masks():
    modules(
        Same(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, **SMALL), 2, nn.LayerNorm(D)),
            lambda m, x: m(x, padding[:, None, :], causal=True),
        ),
        Call(
            TN.TransformerEncoder(
                TN.TransformerEncoderLayer(D, H, batch_first=True, **SMALL), 2, TN.LayerNorm(D)
            ),
            lambda m, x: m(x, hidden(causal), hidden(padding)),
        ),
        normal(B, T, D),
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_decoder(options):
    seen = np.arange(S) < np.array([4, 2, 1])[:, None]
    modules(
        Same(
            nn.TransformerDecoder(nn.TransformerDecoderLayer(D, H, **SMALL, **options), 2),
            lambda m, x, memory: m(x, memory, memory_mask=seen[:, None, :], causal=True),
        ),
        Call(
            TN.TransformerDecoder(
                TN.TransformerDecoderLayer(D, H, batch_first=True, **SMALL, **options), 2
            ),
            lambda m, x, memory: m(x, memory, hidden(causal), memory_key_padding_mask=hidden(seen)),
        ),
        normal(B, T, D),
        normal(B, S, D),
    )


def test_transformer():
    sizes = {"num_encoder_layers": 2, "num_decoder_layers": 1, **SMALL}
    mask = rng.random((T, T)) < 0.8
    mask |= np.eye(T, dtype=bool)
    modules(
        Same(
            nn.Transformer(D, H, **sizes),
            lambda m, src, tgt: m(src, tgt, None, mask, causal=True),
        ),
        Call(
            TN.Transformer(D, H, batch_first=True, **sizes),
            lambda m, src, tgt: m(src, tgt, tgt_mask=hidden(mask & causal)),
        ),
        normal(B, S, D),
        normal(B, T, D),
    )


def test_padding_changes_nothing():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, **SMALL), 2).astype(np.float64)
    x = normal(1, T, D)
    padded = np.concatenate([x, normal(1, 3, D)], axis=1)
    keep = np.arange(T + 3)[None, :] < T
    found = model(ta.tensor(padded), keep[:, None, :]).data[:, :T]
    np.testing.assert_allclose(found, model(ta.tensor(x)).data, rtol=1e-12, atol=1e-12)


def test_without_positions_it_is_equivariant():
    model = nn.TransformerEncoderLayer(D, H, **SMALL).astype(np.float64)
    check.equivariant(model, normal(B, T, D), axis=1, rng=np.random.default_rng(1)).expect()
    found = check.equivariant(
        lambda x: model(x, causal=True), normal(B, T, D), axis=1, rng=np.random.default_rng(1)
    )
    assert not found


def test_copies_of_a_layer_differ_in_a_whole_transformer_and_seeds_repeat():
    a, b = (nn.Transformer(D, H, 2, 2, **SMALL, rng=3).state_dict() for _ in range(2))
    assert all((a[name] == b[name]).all() for name in a)
    first, second = (a[f"encoder.layers.{i}.linear1.weight"] for i in (0, 1))
    assert (first != second).all()


def test_an_unknown_activation_is_explained():
    with pytest.raises(ValueError, match="activation is a function or one of relu, gelu"):
        nn.TransformerEncoderLayer(D, H, activation="swish")
