"""The compiled convolution against the array algebra, the index sums and PyTorch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyattn.functional as F
from tests.machine import fresh_python, same_bits_on_any_threads
from tests.parity import both, torch
from tinyattn import Tensor
from tinyattn.kernels.fast import conv as kernel
from tinyattn.ops import conv

IMPLS = ("kernel", "numpy")
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}  # sums of some hundred products of size 1


def everything(impl, x, w, bias, **options):
    """y and all gradients of one implementation."""
    leaves = [None if a is None else Tensor(a, requires_grad=True) for a in (x, w, bias)]
    y = getattr(F, f"conv{x.ndim - 2}d")(*leaves, **options, impl=impl)
    y.backward(np.random.default_rng(1).normal(size=y.shape).astype(y.dtype))
    return [y.data, *[p.grad for p in leaves if p is not None]]


def compare(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        size = max(1.0, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[a.dtype.name] * size)


# x, w, options: less and more than a vector, a panel of 64 positions, a block of 128 terms
CASES = {
    "one of everything": ((1, 1, 1), (1, 1, 1), {}),
    "one axis": ((3, 5, 70), (6, 5, 3), {"padding": 1}),
    "many terms": ((2, 50, 9, 9), (19, 50, 3, 3), {"padding": 1}),
    "one row of positions": ((2, 3, 3, 150), (5, 3, 3, 2), {}),
    "stride": ((2, 3, 17, 18), (4, 3, 3, 3), {"stride": (2, 3), "padding": (1, 2)}),
    "stride alone": ((2, 3, 33), (4, 3, 2), {"stride": 5}),
    "stride skips the end": ((1, 1, 8), (1, 1, 1), {"stride": 3}),
    "dilation": ((2, 3, 13, 12), (4, 3, 3, 2), {"dilation": (2, 4), "padding": 3}),
    "both": ((2, 3, 29), (4, 3, 3), {"dilation": 3, "stride": 2, "padding": 2}),
    "groups": ((2, 6, 8, 8), (9, 2, 3, 3), {"groups": 3, "padding": 1}),
    "a group per channel": ((2, 4, 20), (4, 1, 3), {"groups": 4}),
    "same": ((2, 3, 8, 8), (4, 3, 4, 2), {"padding": "same"}),
    "window of the whole picture": ((2, 3, 5, 5), (7, 3, 5, 5), {}),
    "no batch": ((0, 3, 5, 5), (7, 3, 2, 2), {}),
    "no channels out": ((2, 3, 5), (0, 3, 2), {}),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_all_implementations_agree(name, dtype):
    shape, weight, options = CASES[name]
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(dtype) for s in (shape, weight))
    for bias in (None, rng.normal(size=len(w)).astype(dtype)):
        expected = everything("numpy", x, w, bias, **options)
        for impl in ("sums", "kernel"):
            compare(everything(impl, x, w, bias, **options), expected)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_shape(data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    groups, axes = draw(1, 2), draw(1, 2)
    kernel_size = [draw(1, 3) for _ in range(axes)]
    dilation = [draw(1, 3) for _ in range(axes)]
    lengths = [d * (k - 1) + draw(1, 20) for d, k in zip(dilation, kernel_size, strict=True)]
    options = {
        "stride": [draw(1, 3) for _ in range(axes)],
        "dilation": dilation,
        "padding": [draw(0, 2) for _ in range(axes)],
        "groups": groups,
    }
    channels = draw(1, 4)
    rng = np.random.default_rng(draw(0, 9))
    x = rng.normal(size=(draw(0, 3), channels * groups, *lengths))
    w = rng.normal(size=(draw(1, 20) * groups, channels, *kernel_size))
    compare(*(everything(impl, x, w, None, **options) for impl in IMPLS))


def test_like_pytorch(monkeypatch):
    """At a size where the kernel is taken by itself."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s) for s in ((4, 6, 12, 12), (8, 6, 3, 3), (8,)))
    monkeypatch.setattr(conv, "unfold", None)  # nobody may call it
    both(
        lambda *a: F.conv2d(*a, padding=1, stride=2),
        lambda *a: torch.nn.functional.conv2d(*a, padding=1, stride=2),
        x,
        w,
        b,
    )
    x, w = rng.normal(size=(4, 6, 90)), rng.normal(size=(8, 3, 5))
    both(
        lambda *a: F.conv1d(*a, dilation=2, groups=2),
        lambda *a: torch.nn.functional.conv1d(*a, dilation=2, groups=2),
        x,
        w,
    )


def test_a_picture_without_gradient_costs_none(monkeypatch):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 8, 8)), Tensor(rng.normal(size=(4, 3, 3, 3)), requires_grad=True)
    monkeypatch.setattr(kernel, "backward_x", lambda *_: pytest.fail("not wanted"))
    F.conv2d(x, w, impl="kernel").sum().backward()
    assert w.grad is not None


def test_views_and_read_only_arrays():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(9, 9, 3, 2)).T, rng.normal(size=(3, 3, 3, 8)).T
    x.flags.writeable = False
    found, expected = (everything(impl, x, w, None) for impl in IMPLS)
    compare(found, expected)


def test_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((9, 16, 24, 24), (32, 16, 3, 3)))
    same_bits_on_any_threads(lambda: everything("kernel", x, w, None, padding=1))


def test_second_derivative_goes_through_the_array_algebra():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 8)), rng.normal(size=(4, 3, 3))
    found = []
    for impl in IMPLS:
        a, b = (Tensor(z, requires_grad=True) for z in (x, w))
        (F.conv1d(a, b, impl=impl) ** 2).sum().backward(create_graph=True)
        a_grad, a.grad, b.grad = a.grad, None, None
        (a_grad**2).sum().backward()
        found.append([a.grad, b.grad])
    compare(*found)


def test_the_kernel_without_numba_is_python():
    fresh_python("""
        import sys
        sys.modules["numba"] = None
        import numpy as np
        from tinyattn.kernels import conv as loops
        from tinyattn.kernels.fast import conv as kernel
        from tinyattn.ops.conv import one_axis, table_and_places
        rng = np.random.default_rng(0)
        x, w, b = (rng.normal(size=s) for s in ((2, 2, 4, 5), (3, 2, 2, 2), (3,)))
        n = kernel.shape_of(x, w, (2, 2), (1, 1), (1, 1), (1, 1), 1)
        I, _ = table_and_places((4, 5), (2, 2), (2, 2), (1, 1), (1, 1), (1, 1))
        y, by_sums = kernel.convolution(x, w, b, n), np.empty((2, 3, len(I)))
        loops.conv_loops(by_sums, one_axis(x), one_axis(w), b, I, 1)
        np.testing.assert_allclose(one_axis(y), by_sums, atol=1e-12)
        gradients = [np.zeros_like(a) for a in (one_axis(x), one_axis(w), b)]
        loops.conv_loops_backward(*gradients, by_sums, one_axis(x), one_axis(w), I, 1)
        for a, e in zip(kernel.convolution_backward(y, x, w, n, True), gradients):
            np.testing.assert_allclose(a.reshape(e.shape), e, atol=1e-12)
    """)
