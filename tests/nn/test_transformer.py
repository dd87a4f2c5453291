"""Transformer layers equal PyTorch's with its weights, and masks hide what they should."""

from contextlib import nullcontext

import numpy as np
import pytest

import tinyattn as ta
from tests.parity import modules, torch
from tinyattn import check, nn

TN = torch.nn
rng = np.random.default_rng(0)
D, H, FF, B, T, S = 6, 2, 10, 3, 5, 4
SMALL = {"dim_feedforward": FF, "dropout": 0.0}
FIRST = {"batch_first": True}
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


random = rng.random((T, T)) < 0.6
random |= np.eye(T, dtype=bool)
by_head = rng.random((B, H, T, T)) < 0.6
by_head |= np.eye(T, dtype=bool)
# ours: arguments of the layer; theirs: mask [T, T] or [B·H, T, T], key padding
MASKS = {
    "none": ({}, None, None),
    "causal": ({"causal": True}, hidden(causal), None),
    "matrix": ({"mask": random}, hidden(random), None),
    "matrix, causal": ({"mask": random, "causal": True}, hidden(random & causal), None),
    "padding": ({"mask": padding[:, None, :]}, None, hidden(padding)),
    "padding, causal": (
        {"mask": padding[:, None, :], "causal": True},
        hidden(causal),
        hidden(padding),
    ),
    "by sequence": ({"mask": by_head[:, 0]}, hidden(np.repeat(by_head[:, 0], H, 0)), None),
    "by head": ({"mask": by_head}, hidden(by_head.reshape(B * H, T, T)), None),
}


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("name", MASKS)
def test_encoder_under_every_mask(name, norm_first):
    ours, mask, keys = MASKS[name]
    layers = [
        kind(D, H, norm_first=norm_first, **SMALL, **more)
        for kind, more in ((nn.TransformerEncoderLayer, {}), (TN.TransformerEncoderLayer, FIRST))
    ]
    modules(
        Same(nn.TransformerEncoder(layers[0], 2), lambda m, x: m(x, **ours)),
        Call(
            TN.TransformerEncoder(layers[1], 2, enable_nested_tensor=False),
            lambda m, x: m(x, mask, keys),
        ),
        normal(B, T, D),
    )


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("name", MASKS)
def test_decoder_under_every_mask(name, norm_first):
    """The mask of the target as named, and of the memory: some pairs, and padding."""
    ours, mask, keys = MASKS[name]
    seen = np.arange(S) < np.array([4, 2, 1])[:, None]
    pairs = rng.random((T, S)) < 0.5
    pairs[:, 0] = True
    layers = [
        kind(D, H, norm_first=norm_first, **SMALL, **more)
        for kind, more in ((nn.TransformerDecoderLayer, {}), (TN.TransformerDecoderLayer, FIRST))
    ]
    modules(
        Same(
            nn.TransformerDecoder(layers[0], 2),
            lambda m, x, memory: m(x, memory, memory_mask=pairs & seen[:, None, :], **ours),
        ),
        Call(
            TN.TransformerDecoder(layers[1], 2),
            lambda m, x, memory: m(
                x,
                memory,
                mask,
                hidden(pairs),
                tgt_key_padding_mask=keys,
                memory_key_padding_mask=hidden(seen),
            ),
        ),
        normal(B, T, D),
        normal(B, S, D),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("norm_first", [False, True])
def test_later_tokens_change_no_bit(norm_first, dtype):
    layer = nn.TransformerDecoderLayer(8, 2, 16, 0.0, norm_first=norm_first, rng=0)
    model, memory = nn.TransformerDecoder(layer, 2).astype(dtype), normal(2, 6, 8).astype(dtype)
    for n in (7, 90):  # matrix products, and the kernel
        x = normal(2, n, 8).astype(dtype)
        before = model(ta.tensor(x), ta.tensor(memory), causal=True).data
        for t in (0, n // 2):
            changed = x.copy()
            changed[:, t + 1 :] = normal(2, n - t - 1, 8)
            after = model(ta.tensor(changed), ta.tensor(memory), causal=True).data
            assert (before[:, : t + 1] == after[:, : t + 1]).all()


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


def test_layers_of_a_stack_drop_different_features():
    for rng in (None, 0):
        stack = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, dropout=0.5, rng=rng), 2)
        ones = ta.tensor(np.ones((1, 50, D)))
        first, second = (layer.dropout1(ones).data for layer in stack.layers)
        assert (first != second).any()


def test_dropout_follows_the_seed_of_the_moment():
    layer = nn.TransformerEncoderLayer(D, H, dropout=0.5)
    x = ta.tensor(normal(2, T, D))
    found = []
    for _ in range(2):
        ta.seed(7)
        found.append(layer(x).data)
    assert (found[0] == found[1]).all()


# ---------------------------------------------------------------- one token after the other


@pytest.mark.parametrize(
    "options",
    [{}, {"norm_first": True}, {"activation": "gelu"}, {"activation": np.tanh, "bias": False}],
    ids=str,
)
def test_one_token_at_a_time_is_the_whole_at_once(options):
    layer = nn.TransformerEncoderLayer(D, H, FF, dropout=0.0, rng=0, **options)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(D)).astype(np.float64)
    x, cache = ta.tensor(normal(B, T, D)), encoder.empty_cache()
    with ta.no_grad():
        whole = encoder(x, causal=True).data
        found = [encoder(x[:, t : t + 1], causal=True, cache=cache).data for t in range(T)]
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=1e-12)


def test_one_token_with_a_mask_or_dropout():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, FF, dropout=0.5, rng=0), 1)
    x, seen = ta.tensor(normal(1, 3, D).astype(np.float32)), np.array([True, False, True])
    with ta.no_grad():
        cache = encoder.empty_cache()
        dropped = [encoder(x[:, :1], causal=True, cache=encoder.empty_cache()).data for _ in "ab"]
        assert (dropped[0] != dropped[1]).any()
        encoder.eval()
        encoder(x[:, :2], causal=True, cache=cache)
        found = encoder(x[:, 2:], seen[None], causal=True, cache=cache).data
        whole = encoder(x, np.broadcast_to(seen, (3, 3)), causal=True).data[:, 2:]
    np.testing.assert_allclose(found, whole, atol=1e-6)


def test_the_decoder_keeps_what_it_saw_of_the_memory():
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, H, FF, 0.0, rng=0), 2)
    x, memory = (ta.tensor(normal(B, n, D).astype(np.float32)) for n in (T, S))
    seen = np.arange(S) < np.array([4, 2, 1])[:, None]
    cache = decoder.empty_cache()
    with ta.no_grad():
        whole = decoder(x, memory, None, seen[:, None], causal=True).data
        for t in range(T):  # after the first call the memory may be anything
            other = memory if t == 0 else memory * 0
            y = decoder(x[:, t : t + 1], other, None, seen[:, None], causal=True, cache=cache).data
            np.testing.assert_allclose(y[:, 0], whole[:, t], atol=1e-6)


# ---------------------------------------------------------------- without gradients


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (2, 7), (70, 41)])  # the last for kernels
@pytest.mark.parametrize(
    "options",
    [{}, {"norm_first": True}, {"activation": "gelu"}, {"activation": np.tanh}, {"bias": False}],
    ids=str,
)
def test_without_gradients_it_gives_the_same(options, batch, length, dtype):
    layer = nn.TransformerEncoderLayer(24, 3, 40, 0.0, rng=0, **options).astype(dtype)
    x, masks = ta.tensor(normal(batch, length, 24).astype(dtype)), [None]
    before = x.data.copy()
    if length > 1:
        masks += [
            rng.random(shape) < 0.7
            for shape in ((length, length), (batch, 1, length), (batch, 3, length, length))
        ]
    for mask in masks:
        for causal in (False, True):
            expected = layer(x, mask, causal)
            with ta.no_grad():
                found = layer(x, mask, causal)
            assert expected.requires_grad
            assert not found.requires_grad
            close = 20 * np.finfo(dtype).eps * np.abs(expected.data).max()
            np.testing.assert_allclose(found.data, expected.data, rtol=0, atol=close)
    assert np.array_equal(x.data, before)


@pytest.mark.parametrize("what", ["width", "mask"])
def test_without_gradients_the_errors_are_the_same(what):
    layer, mask, messages = nn.TransformerEncoderLayer(24, 3, 40), None, []
    x = ta.tensor(np.ones((2, 7, 25 if what == "width" else 24), np.float32))
    mask = np.ones((2, 5), bool) if what == "mask" else None
    for context in (nullcontext(), ta.no_grad()):
        with context, pytest.raises(ValueError, match="2, ") as caught:
            layer(x, mask)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
