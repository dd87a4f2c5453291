"""The linear map by the kernels as by NumPy, whatever the size."""

import numpy as np
import pytest

from tinyattn.engine.autograd import tensor
from tinyattn.kernels import numba
from tinyattn.ops import matmul
from tinyattn.ops.backends import IMPLEMENTATIONS, MATVEC_ROWS, MATVEC_TERMS

# X [N, in], out: one row and few rows go to the product with a vector, many to that of matrices
SIZES = {
    "one row": (1, 300, 7),
    "few rows": (3, 520, 9),
    "many rows": (33, 5, 17),
    "one output": (40, 3, 1),
}


@pytest.fixture(params=["kernel", "numpy"])
def called(request, monkeypatch):
    """Every product counts as large enough for a kernel, or none; which kernels were called."""
    names = []
    if request.param == "kernel":
        if numba is None:
            pytest.skip("without Numba there is no kernel")
        from tinyattn.kernels.fast import gather_scatter, matvec
        from tinyattn.kernels.fast import matmul as product

        for module, name in (
            (matvec, "product"),
            (product, "matmul"),
            (gather_scatter, "sum_rows"),
        ):
            f = getattr(module, name)
            spy = lambda *a, f=f, name=name: (names.append(name), f(*a))[1]
            monkeypatch.setattr(module, name, spy)
    for name in ("matvec", "matmul", "sum_rows"):
        least = 0 if request.param == "kernel" else np.inf
        monkeypatch.setitem(IMPLEMENTATIONS, name, IMPLEMENTATIONS[name]._replace(least=least))
    return names if request.param == "kernel" else None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("lead", [(), (1,)], ids=["matrix", "more axes"])
def test_value_and_gradients_are_those_of_numpy(called, size, dtype, lead):
    rng = np.random.default_rng(0)
    N, D, out = size
    x, w, b = (rng.normal(size=s).astype(dtype) for s in ((N, D), (out, D), out))
    g = rng.normal(size=(N, out)).astype(dtype)
    tensors = [tensor(a, requires_grad=True) for a in (x.reshape(*lead, N, D), w, b)]
    y = matmul.linear(*tensors)
    assert y.shape == (*lead, N, out)
    y.backward(g.reshape(y.shape))
    X, W, G = (a.astype(np.float64) for a in (x, w, g))
    # a sum of n products near 1, rounded: sqrt(n) roundings, and some room
    close = {"rtol": 0, "atol": 20 * np.sqrt(max(size)) * np.finfo(dtype).eps}
    np.testing.assert_allclose(y.numpy().reshape(N, out), X @ W.T + b, **close)
    for t, expected in zip(tensors, (G @ W, G.T @ X, G.sum(axis=0)), strict=True):
        np.testing.assert_allclose(t.grad.reshape(expected.shape), expected, **close)
    if called is not None:
        # Y = X Wᵀ comes first; the kernel for few rows wants 16 terms in each sum at least
        few = N <= MATVEC_ROWS and D >= MATVEC_TERMS
        assert called[0] == ("product" if few else "matmul") and "sum_rows" in called


def test_the_bias_of_a_product_of_tensors():
    a, b, bias = np.ones((2, 3)), np.ones((3, 4)), np.arange(4.0)
    y = matmul.gemm(tensor(a, requires_grad=True), tensor(b), bias)
    np.testing.assert_array_equal(y.numpy(), a @ b + bias)
