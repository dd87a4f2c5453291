"""Products of two matrices by the kernels, where that is faster, and the linear map made of them.

NumPy's own product brings threads of its own, which keep spinning for a while and slow down the
kernels that follow. So the products of training run in the threads of the kernels.
"""

import numpy as np

from tinyattn.autograd import primitive
from tinyattn.ops.fused import have_numba, worth

ENOUGH = 2**18  # multiplications; below, NumPy takes one thread as well, and starts sooner
MANY = 2**13  # numbers from which a kernel sums rows faster than NumPy


def dot(a, b):
    """A B of plain arrays [M, K] and [K, N]."""
    if pays(a, b):
        from tinyattn.kernels import matmul as kernel

        return kernel.matmul(a, b)
    return a.dot(b)


def pays(a, b):
    """Whether the kernel should do this product; one row times a matrix is done best by NumPy."""
    return (
        a.shape[0] * b.size >= ENOUGH
        and a.shape[0] > 1
        and a.dtype == b.dtype
        and a.dtype in (np.float32, np.float64)
        and a.shape[1] == b.shape[0]
        and have_numba()
    )


@primitive
def linear(x, weight, bias):
    """Y = X Wᵀ + b;   X̄ = Ȳ W,  W̄ = Ȳᵀ X,  b̄ = Σ Ȳ;   X [N, in], W [out, in], b [out]."""
    if pays(x, weight.T) and bias.dtype == x.dtype:
        from tinyattn.kernels import matmul as kernel

        return kernel.matmul(x, weight.T, bias)
    return x.dot(weight.T) + bias


linear.defvjp(
    lambda g, y, x, weight, bias: np.matmul(g, weight) if _recorded(g) else dot(g, weight),
    lambda g, y, x, weight, bias: np.matmul(g.T, x) if _recorded(g) else dot(g.T, x),
    lambda g, y, x, weight, bias: np.sum(g, axis=0) if _recorded(g) else sum_rows(g),
)


def sum_rows(g):
    """Σ_n g_n of a plain array [N, out]."""
    if not (g.flags.c_contiguous and worth(g, MANY)):
        return np.add.reduce(g, 0)
    from tinyattn.kernels import rows as kernel

    return kernel.sum_rows(g)


def _recorded(g):
    return type(g) is not np.ndarray
