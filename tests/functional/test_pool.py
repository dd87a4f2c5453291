"""Pooling: every implementation against PyTorch and against the others, at any shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyattn as ta
import tinyattn.functional as F
from tests.machine import same_bits_on_any_threads
from tests.parity import both, torch
from tinyattn import check
from tinyattn.kernels.fast import thresholds

TF = torch.nn.functional
IMPLS = ("sums", "numpy", "kernel")
POOLS = ["max_pool1d", "avg_pool1d", "max_pool2d", "avg_pool2d"]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def implementations(pool, *args, **options):
    return {i: lambda x, i=i: pool(x, *args, **options, impl=i) for i in IMPLS}


@pytest.mark.parametrize(("size", "stride", "padding"), [(2, None, 0), (3, 2, 1), (3, 1, 1)])
@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("impl", [*IMPLS, "auto"])
def test_like_pytorch(impl, name, size, stride, padding):
    both(
        lambda x: getattr(F, name)(x, size, stride, padding, impl=impl),
        lambda x: getattr(TF, name)(x, size, stride, padding),
        normal(2, 3, 9) if name.endswith("1d") else normal(2, 3, 9, 8),
    )


@pytest.mark.parametrize("impl", IMPLS)
def test_dilation_like_pytorch(impl):
    both(
        lambda x: F.max_pool2d(x, (2, 3), 1, dilation=(3, 2), impl=impl),
        lambda x: TF.max_pool2d(x, (2, 3), 1, dilation=(3, 2)),
        normal(2, 3, 9, 8),
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_shape(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    axes, largest = draw(1, 2), data.draw(st.booleans())
    size = [draw(1, 4) for _ in range(axes)]
    dilation = [draw(1, 3) if largest else 1 for _ in range(axes)]
    lengths = [d * (k - 1) + draw(1, 12) for d, k in zip(dilation, size, strict=True)]
    options = {
        "stride": [draw(1, 4) for _ in range(axes)],
        "padding": [draw(0, k // 2) for k in size],
    }
    if largest:
        options["dilation"] = dilation
    # few different numbers: many ties
    x = np.random.default_rng(draw(0, 9)).integers(0, 4, (draw(0, 3), draw(1, 3), *lengths)) / 2
    pool = getattr(F, f"{'max' if largest else 'avg'}_pool{axes}d")
    check.same(implementations(pool, size, **options), (x,)).expect()


@pytest.mark.parametrize("impl", IMPLS)
def test_tied_maxima_share_the_gradient(impl):
    x = ta.tensor(np.ones((1, 1, 4)), requires_grad=True)
    F.max_pool1d(x, 2, impl=impl).sum().backward()
    assert x.grad.tolist() == [[[0.5, 0.5, 0.5, 0.5]]]


@pytest.mark.parametrize("impl", IMPLS)
def test_what_is_no_number_stays_so(impl):
    x = np.array([[[1.0, np.nan, 5.0, 3.0, np.nan, np.nan, -np.inf, -np.inf]]])
    y = F.max_pool1d(ta.tensor(x), 2, impl=impl).data
    np.testing.assert_array_equal(y, [[[np.nan, 5.0, np.nan, -np.inf]]])


@pytest.mark.parametrize("wrong", [np.nan, -np.inf, np.inf])
def test_gradients_at_nan_and_infinity_are_pytorchs_on_every_implementation(wrong):
    """One wrong number a window: PyTorch's result. Several share, as all that is tied does."""
    single, several = np.array([[[1.0, wrong, 5, 3, 2, 9]]]), np.array([[[wrong, wrong, wrong, 1]]])
    theirs = torch.tensor(single, requires_grad=True)
    y = torch.nn.functional.max_pool1d(theirs, 2)
    y.sum().backward()
    for impl in IMPLS:
        mine = ta.tensor(single, requires_grad=True)
        found = F.max_pool1d(mine, 2, impl=impl)
        found.sum().backward()
        np.testing.assert_array_equal(found.data, y.detach().numpy(), err_msg=impl)
        np.testing.assert_array_equal(mine.grad, theirs.grad.numpy(), err_msg=impl)
        mine = ta.tensor(several, requires_grad=True)
        F.max_pool1d(mine, 2, impl=impl).sum().backward()
        last = [0, 1] if wrong == -np.inf else [1, 0]
        np.testing.assert_array_equal(mine.grad, [[[0.5, 0.5, *last]]], err_msg=impl)
        mine = ta.tensor(several[..., :2], requires_grad=True)
        F.max_pool1d(mine, 2, 2, 1, impl=impl).sum().backward()
        np.testing.assert_array_equal(mine.grad, [[[1, 1]]], err_msg=f"{impl}, beside the edge")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_the_same_bits_on_every_number_of_threads(name, dtype):
    # from so many numbers on the work is shared; every second one: not contiguous
    x = normal(4, 9, 120, 62).astype(dtype)[..., ::2]
    assert x.size * 9 > thresholds.POOL

    def run():
        t = ta.tensor(x, requires_grad=True)
        y = getattr(F, name)(t, 3, 2, 1, impl="kernel")
        (y * y).sum().backward()
        assert y.dtype == t.grad.dtype == dtype
        return y.data, t.grad

    same_bits_on_any_threads(run)


def test_whole_numbers_have_a_implementation():
    x = ta.tensor(np.arange(8).reshape(1, 1, 8))
    assert F.max_pool1d(x, 2).data.tolist() == [[[1, 3, 5, 7]]]
    with pytest.raises(TypeError, match='impl="kernel"'):
        F.max_pool1d(x, 2, impl="kernel")
