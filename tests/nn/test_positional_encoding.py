"""Positions: learned, appended, rotary; attention with shared keys and a gated network."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyattn as ta
from tests.parity import both, torch
from tinyattn import check, nn
from tinyattn.nn.positional_encoding import sinusoids

rng = np.random.default_rng(0)
ROTARY = [nn.RotaryEmbedding, nn.InterleavedRotaryEmbedding]


def normal(*shape):
    return rng.normal(size=shape)


def unwrap(module, *x):
    with ta.no_grad():
        return module(*(ta.tensor(a) for a in x)).data


# ---------------------------------------------------------------- added, appended


def test_sinusoids_shift_by_a_rotation():
    p = sinusoids(50, 8)
    assert len(np.unique(p.round(9), axis=0)) == 50
    angle = 3 / 10000 ** (np.arange(0, 8, 2) / 8)
    turned = p[:-3, 0::2] * np.cos(angle) + p[:-3, 1::2] * np.sin(angle)
    np.testing.assert_allclose(p[3:, 0::2], turned, atol=1e-12)


@pytest.mark.parametrize(
    "module",
    [
        nn.PositionalEncoding(4, 9),
        nn.LearnedPositionalEmbedding(9, 4, rng=0),
        nn.ConcatPositionalEncoding(2, 9),
    ],
    ids=repr,
)
def test_positions_are_counted_from_zero_or_given(module):
    x = normal(2, 5, 4)
    y = unwrap(module, x)
    assert y.shape[:2] == (2, 5)
    assert (y == module(ta.tensor(x), np.arange(5)).data).all()
    later = module(ta.tensor(x), np.array([np.arange(5), np.arange(5) + 4])).data
    assert (later[0] == y[0]).all() and (later[1] != y[1]).any()
    one = module(ta.tensor(x[1:, 2:3]), np.array([[6]])).data  # row 2 of member 1 stands at 6
    assert (one[0, 0] == later[1, 2]).all()
    with pytest.raises(ValueError, match=type(module).__name__):
        module(ta.tensor(normal(1, 10, 4)))


def test_positions_of_several_sequences_with_heads():
    x, t = normal(2, 2, 5, 4), np.array([np.arange(5), np.arange(5) + 3])
    for module in (nn.PositionalEncoding(4), nn.ConcatPositionalEncoding(4), nn.RotaryEmbedding(4)):
        y = module(ta.tensor(x), t).data
        for b in range(2):
            assert (y[b] == module(ta.tensor(x[b]), t[b]).data).all()


def test_appended_positions_leave_the_features_alone():
    x = normal(2, 5, 4)
    y = unwrap(nn.ConcatPositionalEncoding(6), x)
    assert y.shape == (2, 5, 10) and (y[..., :4] == x).all()
    np.testing.assert_allclose(y[1, :, 4:], sinusoids(5, 6))


def test_learned_positions_get_a_gradient():
    module = nn.LearnedPositionalEmbedding(7, 3, rng=0)
    module(ta.tensor(np.zeros((2, 4, 3), np.float32)), np.array([0, 1, 1, 6])).sum().backward()
    assert module.weight.grad[:, 0].tolist() == [2, 4, 0, 0, 0, 0, 2]


# ---------------------------------------------------------------- rotary


def rotary_by_torch(x, positions, base, interleaved):
    """The paper's complex numbers: feature pairs times e^(i t θ)."""
    d = x.shape[-1]
    theta = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    turn = torch.polar(torch.tensor(1.0, dtype=torch.float64), positions[:, None] * theta)
    pairs = x.unflatten(-1, (d // 2, 2)) if interleaved else x.unflatten(-1, (2, d // 2)).mT
    y = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    return y.flatten(-2) if interleaved else y.mT.flatten(-2)


@pytest.mark.parametrize("kind", ROTARY)
@pytest.mark.parametrize("start", [0, 130])
def test_rotary_is_a_product_of_complex_numbers(kind, start):
    positions, module = np.arange(start, start + 5), kind(6, base=500.0)
    interleaved = kind is nn.InterleavedRotaryEmbedding
    both(
        lambda x: module(x, positions),
        lambda x: rotary_by_torch(x, torch.tensor(positions), 500.0, interleaved),
        normal(2, 3, 5, 6),
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
def test_products_see_the_distance_only(t, s, shift):
    q, k = (np.random.default_rng(i).normal(size=(1, 8)) for i in (1, 2))
    for kind in ROTARY:
        turn = kind(8)
        found = [float((turn(q, [t + d]) * turn(k, [s + d])).sum()) for d in (0, shift)]
        np.testing.assert_allclose(*found, atol=1e-10)


def test_both_orders_of_features_are_the_same_turn():
    x, order = normal(4, 5, 8), np.array([0, 4, 1, 5, 2, 6, 3, 7])
    half = unwrap(nn.RotaryEmbedding(8), x)
    pairs = unwrap(nn.InterleavedRotaryEmbedding(8), x[..., order])
    np.testing.assert_allclose(pairs, half[..., order], rtol=1e-12)


def test_rotary_keeps_lengths_and_the_dtype():
    x = normal(2, 5, 8).astype(np.float32)
    y = unwrap(nn.RotaryEmbedding(8), x)
    assert y.dtype == np.float32 and (y[:, 0] == x[:, 0]).all()
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-5)
    by_row = nn.RotaryEmbedding(8)(ta.tensor(x[:, None]), np.array([np.arange(5), [3] * 5]))
    assert (by_row.data[0, 0] == y[0]).all() and by_row.shape == (2, 1, 5, 8)


# ---------------------------------------------------------------- the parts of a Llama block


def test_grouped_queries_are_attention_with_repeated_keys():
    attention = nn.GroupedQueryAttention(8, 4, 2, rng=0).astype(np.float64)
    full = nn.GroupedQueryAttention(8, 4, rng=0).astype(np.float64)
    state = attention.state_dict()
    for name in ("k_proj.weight", "v_proj.weight"):  # each head of keys for two of queries
        heads = state[name].reshape(2, 2, 8)
        state[name] = np.repeat(heads, 2, axis=0).reshape(8, 8)
    full.load_state_dict(state)
    x = normal(3, 5, 8)
    np.testing.assert_allclose(unwrap(attention, x), unwrap(full, x), rtol=1e-12, atol=1e-14)
    check.causal(attention, x).expect()
    check.isolated(attention, x).expect()


@pytest.mark.parametrize("impl", ["sums", "numpy", "kernel"])
def test_grouped_queries_on_every_implementation(impl):
    attention = nn.GroupedQueryAttention(8, 4, 1, rng=0).astype(np.float64)
    x = normal(2, 70, 8)
    mask = np.arange(70) != 3
    found = [attention(ta.tensor(x), mask[None], impl=i).data for i in ("numpy", impl)]
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-12)


def test_swiglu_is_pytorch_by_hand():
    module = nn.SwiGLU(4, 6, rng=0).astype(np.float64)
    w = [torch.tensor(a) for a in module.state_dict().values()]
    both(
        module,
        lambda x: (torch.nn.functional.silu(x @ w[0].T) * (x @ w[1].T)) @ w[2].T,
        normal(2, 3, 4),
    )
