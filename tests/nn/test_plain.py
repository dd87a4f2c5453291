"""A layer that only reads, on plain arrays, against the same layer operation by operation."""

from itertools import product

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.machine import same_bits_on_any_threads
from tinyattn import nn
from tinyattn.nn import plain
from tinyattn.ops.backends import TABLE

D, H = 24, 3


def layer(**options):
    """A layer whose weights and biases all matter."""
    part = nn.TransformerEncoderLayer(D, H, 40, **{"dropout": 0.0, "rng": 0} | options).eval()
    rng = np.random.default_rng(1)
    for p in part.parameters():
        p.data = p.data + rng.normal(0, 0.3, p.shape).astype(p.dtype)
    return part


def tokens(B, T, dtype=np.float32):
    return ta.tensor(np.random.default_rng(2).standard_normal((B, T, D)).astype(dtype))


@pytest.fixture
def read(monkeypatch):
    """The layers that were read on plain arrays, one by one."""
    layers, run = [], plain.read
    monkeypatch.setattr(plain, "read", lambda part, *a: layers.append(part) or run(part, *a))
    return layers


def mask_of(shape):
    mask = np.random.default_rng(3).random(shape) < 0.7
    mask[..., 1, :] = False  # somebody sees nobody
    return mask


CASES = {
    "post-norm": {},
    "pre-norm": {"norm_first": True},
    "GELU": {"activation": "gelu"},
    "another activation": {"activation": np.tanh},
    "no bias": {"bias": False},
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("B", "T"), [(1, 1), (2, 7), (70, 41)])  # the last for the kernels
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_reading_gives_the_same(options, B, T, dtype, read):
    part, x = layer(**options).astype(dtype), tokens(B, T, dtype)
    masks = [None] if T == 1 else [None, mask_of((T, T)), mask_of((B, 1, T, T))[:, 0],
                                   mask_of((B, H, T, T)), mask_of((B, 2, T))[:, :1]]  # fmt: skip
    for mask in masks:
        for causal in (False, True):
            expected = part(x, mask, causal).data
            assert read == []
            with ta.no_grad():
                found = part(x, mask, causal)
            assert read.pop() is part
            assert not found.requires_grad
            assert found.dtype == dtype
            if x.size >= TABLE["gelu"].least:
                assert np.array_equal(found.data, expected)
            else:  # there GELU is a kernel in the one and a composition in the other
                close = 20 * np.finfo(dtype).eps * np.abs(expected).max()
                np.testing.assert_allclose(found.data, expected, rtol=0, atol=close)


def test_same_bits_on_any_threads():
    part, x = layer(activation="gelu"), tokens(70, 41)

    def run():
        with ta.no_grad():
            return [part(x).data]

    same_bits_on_any_threads(run)


def test_what_was_given_stays():
    part, x = layer(), tokens(70, 41)
    before = x.data.copy()
    with ta.no_grad():
        part(x)
    assert np.array_equal(x.data, before)


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Halved(nn.Module):
    def forward(self, x):
        return 0.5 * x


class OwnLayer(nn.TransformerEncoderLayer):
    def _feed_forward(self, x):
        return 3 * super()._feed_forward(x)


@pytest.mark.parametrize("name", ["linear1", "linear2", "norm1", "dropout", "dropout1", "dropout2"])
def test_parts_of_ones_own_are_used(name, read):
    part, x = layer(), tokens(2, 7)
    own = Doubled(*getattr(part, name).weight.shape[::-1], rng=1) if "linear" in name else Halved()
    setattr(part, name, own)
    expected = part(x).data
    with ta.no_grad():
        assert np.array_equal(part(x).data, expected)
    assert read == []


@pytest.mark.parametrize(
    "name", ["self_attn", "linear1", "norm2", "dropout1", "self_attn.out_proj"]
)
def test_a_part_that_is_watched_is_called(name, read):
    part, x, seen = layer(), tokens(2, 7), []
    watched = part
    for step in name.split("."):
        watched = getattr(watched, step)
    inner = watched.forward
    watched.forward = lambda *a, **options: seen.append(a) or inner(*a, **options)
    with ta.no_grad():
        part(x)
    assert len(seen) == 1
    assert read == []


def test_a_summary_sees_all_parts():
    rows = layer().summary(tokens(2, 7)).rows
    assert [label for label, shape, _ in rows if not shape] == []


class Mean(nn.Module):
    """In the place of attention: everybody sees the mean."""

    def forward(self, q, k, v, mask=None, causal=False, need_weights=True, cache=None):
        return v.mean(axis=1, keepdims=True) + 0 * q, None


def test_an_attention_of_ones_own_is_used(read):
    part, x = layer(), tokens(2, 7)
    usual = part(x).data
    part.self_attn = Mean()
    expected = part(x).data
    assert not np.allclose(expected, usual)
    with ta.no_grad():
        assert np.array_equal(part(x).data, expected)
    assert read == []


def test_a_layer_of_ones_own_is_used(read):
    part, x = OwnLayer(D, H, 40, 0.0, rng=0), tokens(2, 7)
    expected = part(x).data
    with ta.no_grad():
        assert np.array_equal(part(x).data, expected)
    assert read == []


def test_a_norm_without_weights(read):
    part, x = layer(), tokens(2, 7)
    part.norm1 = nn.LayerNorm(D, elementwise_affine=False)
    expected = part(x).data
    with ta.no_grad():
        assert np.array_equal(part(x).data, expected)
    assert read == [part]


@pytest.mark.parametrize("norm", [F.layer_norm, F.rms_norm])
@pytest.mark.parametrize("shape", [(1, 3), (5, 3), (2, 3, 40), (70, 90)])  # the last for the kernel
def test_a_norm_alone_gives_the_same_bits(norm, shape):
    rng = np.random.default_rng(0)
    numbers = rng.normal(1, 2, shape)
    axes = [shape[-1:]] if norm is F.rms_norm else [shape[-1:], shape[-2:]]
    for dtype, of_weight in product((np.float32, np.float64, np.int64), (np.float32, np.float64)):
        x = ta.tensor(numbers.astype(dtype))
        for last in axes:
            weight = ta.tensor(rng.normal(size=last).astype(of_weight))
            expected = norm(x, last, weight, eps=1e-5), norm(x, last, eps=1e-5)
            with ta.no_grad():
                found = norm(x, last, weight, eps=1e-5), norm(x, last, eps=1e-5)
            for y, z in zip(found, expected, strict=True):
                assert y.dtype == z.dtype
                assert np.array_equal(y.data, z.data)


@pytest.mark.parametrize("where", ["dropout", "dropout1", "dropout2", "self_attn"])
def test_what_drops_still_drops(where, read):
    part, x = layer().train(), tokens(2, 7)
    with ta.no_grad():
        kept = part(x).data
        assert read.pop() is part
        dropping = getattr(part, where)
        setattr(dropping, "dropout" if where == "self_attn" else "p", 0.5)
        assert not np.array_equal(part(x).data, kept)
        part.eval()
        assert np.array_equal(part(x).data, kept)
    assert read == [part]


def test_gradients_are_recorded_when_wanted(read):
    part, x = layer().train(), tokens(2, 7)
    part(x).sum().backward()
    assert read == []
    assert all(p.grad is not None for p in part.parameters())


@pytest.mark.parametrize("name", ["linear1.weight", "linear2.bias", "norm1.weight", "norm2.bias"])
@pytest.mark.parametrize("T", [7, 200])
def test_mixed_precision_is_that_of_the_operations(name, T, read):
    part, x = layer(norm_first="norm" in name), tokens(2, T)
    p = dict(part.named_parameters())[name]
    p.data = p.data.astype(np.float64)
    expected = part(x).data
    with ta.no_grad():
        found = part(x).data
    assert read == [part]
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("what", ["width", "mask"])
def test_what_does_not_fit_is_refused_as_ever(what):
    x = tokens(2, 7) if what == "mask" else ta.tensor(np.ones((2, 7, D + 1), np.float32))
    part, mask, messages = layer(), np.ones((2, 5), bool) if what == "mask" else None, []
    for enabled in (True, False):
        with (
            ta.autograd.set_grad_enabled(enabled),
            pytest.raises(ValueError, match="2, ") as caught,
        ):
            part(x, mask)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
