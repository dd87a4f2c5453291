"""Products of two matrices by the kernels, where that is faster, and the linear map made of them.

NumPy's own product brings threads of its own, which keep spinning for a while and slow down the
kernels that follow. So the products of training run in the threads of the kernels.
"""

import numpy as np

from tinyattn.autograd import primitive
from tinyattn.ops.fused import have_numba, worth

ENOUGH = 2**18  # multiplications; below, NumPy takes one thread as well, and starts sooner
FEW = 24  # up to so many rows the matrix is better left where it is
LITTLE = 2**17  # multiplications below which NumPy starts sooner for those
LONG = 16  # terms of a sum from which vectors are worth it
MANY = 2**13  # numbers from which a kernel sums rows faster than NumPy


def dot(a, b, bias=None):
    """A B of plain arrays [M, K] and [K, N], plus bias [N] in each row."""
    if a.size * b.size >= LITTLE:  # more than there are multiplications
        kernel = _kernel(a.shape[0] * b.size, a, b, bias)
        if kernel is not None:
            return kernel(a, b, bias)
    y = a.dot(b)
    return y if bias is None else y + bias


def _kernel(work, a, b, bias):
    """What makes this product of so many multiplications faster than NumPy, or None."""
    if work < LITTLE:
        return None
    same = a.dtype == b.dtype and a.dtype in (np.float32, np.float64)
    if not same or a.shape[1] != b.shape[0] or not have_numba():
        return None
    if bias is not None and (bias.dtype != a.dtype or bias.shape != b.shape[1:]):
        return None
    few = a.shape[0] <= FEW and a.shape[1] >= LONG
    if few and b.flags.f_contiguous and b.flags.writeable:  # Numba wants a copy otherwise
        from tinyattn.kernels.fast import matvec as dots

        return dots.product
    if a.shape[0] > 1 and work >= ENOUGH:
        from tinyattn.kernels.fast import matmul

        return matmul.matmul
    return None


@primitive
def linear(x, weight, bias):
    """Y = X Wᵀ + b;   X̄ = Ȳ W,  W̄ = Ȳᵀ X,  b̄ = Σ Ȳ;   X [N, in], W [out, in], b [out]."""
    return dot(x, weight.T, bias)


linear.defvjp(
    lambda g, y, x, weight, bias: np.matmul(g, weight) if _recorded(g) else dot(g, weight),
    lambda g, y, x, weight, bias: np.matmul(g.T, x) if _recorded(g) else dot(g.T, x),
    lambda g, y, x, weight, bias: np.sum(g, axis=0) if _recorded(g) else sum_rows(g),
)


def sum_rows(g):
    """Σ_n g_n of a plain array [N, out]."""
    if not (g.flags.c_contiguous and worth(g, MANY)):
        return np.add.reduce(g, 0)
    from tinyattn.kernels.fast import gather_scatter as kernel

    return kernel.sum_rows(g)


def _recorded(g):
    return type(g) is not np.ndarray
