"""Products of two matrices by the kernels, where that is faster, and the linear map made of them.

NumPy's own product has threads of its own. They keep waiting in a loop for a while when they are
done, and slow down the kernels that follow. So large products run in the threads of the kernels.
"""

import math

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.ops.backends import IMPLEMENTATIONS, MATVEC_ROWS, MATVEC_TERMS, kernel_is_faster


def dot(a, b, bias=None):
    """A B of matrices [M, K] and [K, N], plus bias [N] in each row.

    Plain arrays give a plain array. In a rule that is recorded there are Tensors, without a bias.
    """
    if not (type(a) is type(b) is np.ndarray):
        return np.matmul(a, b)
    if (
        a.size * b.size >= IMPLEMENTATIONS["matvec"].least
    ):  # cheap to ask: more than the multiplications
        kernel = _kernel(a.shape[0] * b.size, a, b, bias)
        if kernel is not None:
            return kernel(a, b, bias)
    y = a.dot(b)
    return y if bias is None else y + bias


def _kernel(work, a, b, bias):
    """The kernel that does this product of so many multiplications faster than NumPy, or None."""
    if a.dtype != b.dtype or a.shape[1] != b.shape[0]:
        return None
    if bias is not None and (bias.dtype != a.dtype or bias.shape != b.shape[1:]):
        return None
    few = a.shape[0] <= MATVEC_ROWS and a.shape[1] >= MATVEC_TERMS
    # Numba wants an array that can be written to, else it makes a copy
    as_it_lies = b.flags.f_contiguous and b.flags.writeable
    if few and as_it_lies and kernel_is_faster("matvec", a.dtype, work):
        from tinyattn.kernels.fast import matvec

        return matvec.product
    if a.shape[0] > 1 and kernel_is_faster("matmul", a.dtype, work):
        from tinyattn.kernels.fast import matmul

        return matmul.matmul
    return None


@primitive
def linear(x, weight, bias=None):
    """Y = X Wᵀ + b;   X̄ = Ȳ W,  W̄ = Ȳᵀ X,  b̄ = Σ Ȳ;   X [..., in], W [out, in], b [out].

    All leading axes of X count as rows: one product of two matrices is faster than one for each
    leading index.
    """
    return dot(rows_of(x), weight.T, bias).reshape(*x.shape[:-1], len(weight))


linear.defvjp(
    lambda g, y, x, weight, bias=None: dot(rows_of(g), weight).reshape(x.shape),
    lambda g, y, x, weight, bias=None: dot(rows_of(g).T, rows_of(x)),
    lambda g, y, x, weight, bias=None: sum_rows(rows_of(g)),
)


def rows_of(x):
    """x [..., n] as a matrix [N, n]."""
    # N is not -1: that cannot be found out where n is 0
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def sum_rows(g):
    """Σ_n g_n of a matrix [N, out]."""
    plain = type(g) is np.ndarray and g.flags.c_contiguous
    if not (plain and kernel_is_faster("sum_rows", g.dtype, g.size)):
        return g.sum(axis=0)
    from tinyattn.kernels.fast import gather_scatter as kernel

    return kernel.sum_rows(g)
