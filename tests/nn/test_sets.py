"""Set layers do not see the order, nor what is not an element; positions bring the order back."""

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import check, nn
from tinyattn.nn.positional_encoding import sinusoids

B, N, D, H = 2, 5, 4, 2
SIZES = np.array([5, 2])
MASK = np.arange(N) < SIZES[:, None]  # [B, N]


def x(n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(B, n, D))


def deep_sets(pool):
    return nn.DeepSets(nn.MLP([D, 6, 3], rng=0), nn.MLP([3, 4, 2], rng=1), pool)


POOLING = {
    "DeepSets sum": lambda: deep_sets("sum"),
    "DeepSets mean": lambda: deep_sets("mean"),
    "DeepSets max": lambda: deep_sets("max"),
    "PMA": lambda: nn.PMA(D, H, 3, rng=0),
    "SetTransformer": lambda: nn.SetTransformer(D, 3, d=8, heads=2, m=3, rng=0),
    "SetTransformer with seeds": lambda: nn.SetTransformer(D, 3, d=8, heads=2, m=3, k=2, rng=0),
}
EQUIVARIANT = {"SAB": lambda: nn.SAB(D, H, rng=0), "ISAB": lambda: nn.ISAB(D, H, 3, rng=0)}


@pytest.mark.parametrize("name", POOLING)
def test_pooling_layers_are_invariant(name):
    model = POOLING[name]().astype(np.float64)
    check.invariant(model, x(), axis=1, rng=np.random.default_rng(1)).expect()


@pytest.mark.parametrize("name", EQUIVARIANT)
def test_others_are_equivariant(name):
    model = EQUIVARIANT[name]().astype(np.float64)
    check.equivariant(model, x(), axis=1, rng=np.random.default_rng(1)).expect()


@pytest.mark.parametrize("name", [*POOLING, *EQUIVARIANT])
def test_what_is_masked_is_not_there(name):
    pooling = name in POOLING
    model = {**POOLING, **EQUIVARIANT}[name]().astype(np.float64)
    data = x()
    found = model(ta.tensor(data), MASK if pooling else MASK[:, None, :]).data
    data[~MASK] = 1e6  # whatever stands there
    other = model(ta.tensor(data), MASK if pooling else MASK[:, None, :]).data
    for b, size in enumerate(SIZES):
        alone = model(ta.tensor(data[b : b + 1, :size])).data[0]
        rows = slice(None) if pooling else slice(size)
        np.testing.assert_allclose(found[b][rows], alone, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(other[b][rows], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_an_empty_set_is_pooled_to_zero(pool):
    model = nn.DeepSets(lambda v: v, lambda v: v, pool)
    data = ta.tensor(x(), requires_grad=True)
    y = model(data, np.zeros((B, N), bool))
    assert not y.data.any()
    y.sum().backward()
    assert not data.grad.any()
    assert not model(ta.tensor(x(0))).data.any()


def test_masked_max_hides_neither_nan_nor_infinity():
    data = x()
    data[0, 0, 0], data[1, 1, 0] = np.nan, np.inf  # both are elements of their sets
    mask = np.ones((B, N), bool)
    y = nn.DeepSets(lambda v: v, lambda v: v, "max")(ta.tensor(data), mask).data
    np.testing.assert_array_equal(y, data.max(1))


def test_poolings_are_what_they_are_called():
    data = x()
    for pool, expected in [("sum", data.sum(1)), ("mean", data.mean(1)), ("max", data.max(1))]:
        found = nn.DeepSets(lambda v: v, lambda v: v, pool)(ta.tensor(data)).data
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_the_attention_of_a_block_can_be_replaced():
    class Mean(nn.Module):
        def forward(self, x, y, mask=None):
            return np.broadcast_to(np.mean(y, axis=1, keepdims=True), x.shape)

    block = nn.MAB(D, 2, rng=0)
    block.attention = Mean()
    y = block(x(), x(seed=1), np.ones((1, N), bool))
    assert y.shape == x().shape


def test_class_attention_sees_the_set_and_itself():
    model = nn.ClassAttention(D, H, rng=0).astype(np.float64)
    c = ta.tensor(x(1, seed=2))
    check.invariant(lambda v: model(c, v), x(), axis=1, rng=np.random.default_rng(1)).expect()
    found = model(c, ta.tensor(x()), MASK).data
    alone = model(c[1:], ta.tensor(x()[1:, :2])).data
    np.testing.assert_allclose(found[1:], alone, rtol=1e-12)
    nothing = model(c, ta.tensor(x()), np.zeros((B, N), bool)).data
    np.testing.assert_allclose(nothing, model(c, ta.tensor(x(0))).data, rtol=1e-12)


# ---------------------------------------------------------------- positions


def test_a_shift_of_sinusoids_is_a_rotation():
    p, shift = sinusoids(50, 6), 7
    for i in range(3):
        angle = shift / 10000 ** (2 * i / 6)
        R = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        pair = p[:, 2 * i : 2 * i + 2]
        np.testing.assert_allclose(pair[shift:], pair[:-shift] @ R.T, atol=1e-12)
    assert len(np.unique(p.round(12), axis=0)) == 50


def test_positions_break_the_symmetry():
    add, layer = nn.PositionalEncoding(D), nn.SAB(D, H, rng=0).astype(np.float64)
    rng = np.random.default_rng(1)
    assert not check.equivariant(lambda v: layer(add(v)), x(), axis=1, rng=rng)
    assert add(ta.tensor(np.zeros((1, 3, D), np.float32))).dtype == np.float32
    assert not add.state_dict()
