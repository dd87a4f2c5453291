"""Rows taken by their numbers, and added up again: by the kernel as by NumPy."""

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.kernels import numba
from tinyattn.ops.backends import IMPLEMENTATIONS

CASES = {
    "repeated": np.array([3, 0, 3, 3, 5]),
    "from the end": np.array([-1, 2, -6]),
    "small integers": np.array([1, 4, -2], np.int8),
    "two axes": np.array([[0, 5], [5, 5], [1, -3]]),
    "a view": np.arange(6)[::-2],
    "none": np.zeros(0, int),
}
SHAPES = {"matrix": (6, 3), "three axes": (6, 2, 3), "one column": (6, 1)}


@pytest.fixture(params=["kernel", "numpy"])
def impl(request, monkeypatch):
    """Every number of elements counts as large enough for the kernel, or none does."""
    if request.param == "kernel" and numba is None:
        pytest.skip("without Numba there is no kernel")
    for name in ("take_rows", "add_rows"):
        least = 0 if request.param == "kernel" else np.inf
        monkeypatch.setitem(IMPLEMENTATIONS, name, IMPLEMENTATIONS[name]._replace(least=least))
    return request.param


def numbers(shape, dtype, turned=False):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    return np.asfortranarray(x) if turned else x


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("index", CASES.values(), ids=CASES)
def test_value_and_gradient_are_those_of_numpy(impl, index, shape, dtype, turned):
    x = ta.tensor(numbers(shape, dtype, turned), requires_grad=True)
    y = x[index]
    np.testing.assert_array_equal(y.numpy(), x.numpy()[index])
    g = numbers(y.shape, dtype)
    y.backward(g)
    expected = np.zeros(shape, dtype)
    np.add.at(expected, index, g)
    # sums of up to three numbers near 1 in another order: a few roundings
    np.testing.assert_allclose(x.grad, expected, rtol=0, atol=8 * np.finfo(dtype).eps)


def test_the_kernel_is_what_ran(impl, monkeypatch):
    if impl == "numpy":
        pytest.skip("the kernel does not run here")
    from tinyattn.kernels.fast import gather_scatter as kernel

    called = []
    for name in ("take_rows", "add_rows"):
        f = getattr(kernel, name)
        monkeypatch.setattr(kernel, name, lambda *a, f=f, n=name: (called.append(n), f(*a))[1])
    x = ta.tensor(numbers((6, 3), np.float32), requires_grad=True)
    np.sum(x[np.array([1, 1, 2])]).backward()
    assert called == ["take_rows", "add_rows"]


@pytest.mark.parametrize(("index", "wrong"), [([0, 6], 6), ([-7, 0], -7)])
def test_a_row_that_is_not_there_is_named(impl, index, wrong):
    x = ta.tensor(numbers((6, 3), np.float32), requires_grad=True)
    with pytest.raises(IndexError, match=f"index {wrong} .*size 6"):
        x[np.array(index)]
