"""Matrix products, which use the kernels where these are faster, and linear maps based on them.

NumPy's own product uses its own threads. After a product, these threads keep the processor busy
with waiting for a while and slow down the kernels that follow. Therefore, large products run in the
kernels' threads.
"""

import math

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.kernels import fast
from tinyattn.ops.backends import IMPLEMENTATIONS, MATVEC_ROWS, MATVEC_TERMS, operation


def gemm(a, b, bias=None):
    """Return the product of the matrices a [M, K] and b [K, N], plus bias [N] in each row.

    The bias may be None. For plain arrays, the result is a plain array. In a derivative rule that
    is recorded, the operands and the result are Tensors.
    """
    if not (type(a) is type(b) is np.ndarray):
        y = np.matmul(a, b)
        return y if bias is None else y + bias
    # cheap to check: the product of the sizes is K times the work, so never below it
    if a.size * b.size < IMPLEMENTATIONS["matvec"].least:
        return _product(a, b, bias)
    few = a.shape[0] <= MATVEC_ROWS and a.shape[1] >= MATVEC_TERMS
    # the kernel would have to copy any other array
    as_it_lies = b.flags.f_contiguous and b.flags.writeable
    return (_few_rows if few and as_it_lies else _many_rows)(a, b, bias)


def _product(a, b, bias):
    y = a.dot(b)
    return y if bias is None else y + bias


def _multiplications(a, b, bias):
    """Return the number of multiplications, or 0 if NumPy must run, or must raise the error."""
    if a.dtype != b.dtype or a.shape[1] != b.shape[0]:
        return 0
    if bias is not None and (bias.dtype != a.dtype or bias.shape != b.shape[1:]):
        return 0
    return a.shape[0] * b.size


def _multiplications_of_many(a, b, bias):
    return _multiplications(a, b, bias) if len(a) > 1 else 0


_few_rows = operation("matvec", work=_multiplications)(_product)
_few_rows.implement("kernel", lambda a, b, bias: fast.matvec.product(a, b, bias))
_many_rows = operation("matmul", work=_multiplications_of_many)(_product)
_many_rows.implement("kernel", lambda a, b, bias: fast.matmul.matmul(a, b, bias))


@primitive
def linear(x, weight, bias=None):
    """Return Y = X Wᵀ + b, with the gradients X̄ = Ȳ W, W̄ = Ȳᵀ X and b̄ = Σ Ȳ.

    X̄ is dL/dX, and Σ Ȳ is the sum of the rows of Ȳ. All leading axes of X are merged into rows,
    because one product of two matrices is faster than one product for each leading index.

    Args:
        x        X [..., in]
        weight   W [out, in]
        bias     b [out], or None

    Returns:
        Y [..., out]

    Raises:
        ValueError: the shapes do not fit
    """
    if weight.ndim != 2:
        raise ValueError(
            f"linear: weight must be [out, in], got shape {weight.shape}. To multiply by a vector, "
            "write x @ w"
        )
    if x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        flat = x.ndim > 2 and x[0].size == weight.shape[1]
        raise ValueError(
            f"linear: x has shape {x.shape}, but the weight {weight.shape} [out, in] needs "
            f"{weight.shape[1]} features in the last axis"
            f"{'. Write x.reshape(len(x), -1), or put nn.Flatten() before it' if flat else ''}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"linear: the bias has shape {bias.shape}, but the weight {weight.shape} [out, in] "
            f"needs one of shape {weight.shape[:1]}"
        )
    if x.ndim == 2:
        return gemm(x, weight.T, bias)
    return gemm(rows_of(x), weight.T, bias).reshape(*x.shape[:-1], len(weight))


linear.defvjp(
    lambda g, y, x, weight, bias=None: gemm(rows_of(g), weight).reshape(x.shape),
    lambda g, y, x, weight, bias=None: gemm(rows_of(g).T, rows_of(x)),
    lambda g, y, x, weight, bias=None: sum_rows(rows_of(g)),
)
linear.operation.fresh = True


def rows_of(x):
    """Return x [..., n] as a matrix [N, n], with all leading axes merged."""
    # N is not -1, because NumPy cannot infer it when n is 0
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@operation("sum_rows", work=lambda g: _is_contiguous(g) and g.size)
def sum_rows(g):
    """Return the sum of the rows of g [N, out], an array or, in a recorded rule, a Tensor."""
    return g.sum(axis=0)


sum_rows.implement("kernel", lambda g: fast.gather_scatter.sum_rows(g))


def _is_contiguous(g):
    return type(g) is np.ndarray and g.flags.c_contiguous
