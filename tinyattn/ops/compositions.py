"""NumPy functions that are composed of other operations, so that they need no derivative rule.

No lecture, homework or layer uses 25 of these 44 functions. They complete the set of functions for
which a student gets a gradient instead of an error, and the file is not meant to grow: add a
function only if a lecture, a homework or a layer calls it.
"""

import builtins
import math

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import nondifferentiable, to_array
from tinyattn.engine.dispatch import implements
from tinyattn.engine.ranges import is_number
from tinyattn.ops import elementwise, linalg, reduce, shape
from tinyattn.ops.elementwise import where
from tinyattn.ops.index import scatter_add, take

# ---------------------------------------------------------------- elementwise


@implements(np.radians, np.deg2rad)
def radians(x):
    """Return y = π x / 180."""
    return x * (math.pi / 180)


@implements(np.degrees, np.rad2deg)
def degrees(x):
    """Return y = 180 x / π."""
    return x * (180 / math.pi)


@implements(np.logaddexp2)
def logaddexp2(a, b):
    """Return y = log₂(2ᵃ + 2ᵇ)."""
    ln2 = elementwise.LN2
    return np.logaddexp(a * ln2, b * ln2) / ln2


@implements(np.copysign)
def copysign(a, b):
    """Return y = |a| with the sign of b. Only a gets a gradient."""
    return np.absolute(a) * np.copysign(1, to_array(b))


@implements(np.fmax)
def fmax(a, b):
    """Return y = max(a, b), where NaN is ignored if the other number is not NaN."""
    return where(np.isnan(to_array(a)), b, where(np.isnan(to_array(b)), a, np.maximum(a, b)))


@implements(np.fmin)
def fmin(a, b):
    """Return y = min(a, b), where NaN is ignored if the other number is not NaN."""
    return where(np.isnan(to_array(a)), b, where(np.isnan(to_array(b)), a, np.minimum(a, b)))


@implements(np.sinc)
def sinc(x):
    """Return y = sin(πx) / πx, which is 1 with slope 0 at x = 0."""
    zero = np.equal(to_array(x), 0)
    z = where(zero, 1, x) * math.pi
    return where(zero, 1, np.sin(z) / z)


@implements(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """Return x with NaN, ∞ and -∞ replaced by the numbers nan, posinf and neginf.

    If posinf or neginf is None, it is the largest or smallest finite number of the dtype. Replaced
    elements get no gradient.
    """
    if not copy:
        raise NotImplementedError(
            "np.nan_to_num of Tensors: copy=False would write into x. Leave it out"
        )
    return where(np.isfinite(to_array(x)), x, np.nan_to_num(to_array(x), True, nan, posinf, neginf))


def _real_part(function):
    def of_tensor(x, **options):
        if x.dtype.kind == "c":
            return Tensor(function(to_array(x), **options))
        return elementwise.positive(x)  # Tensors with a gradient are real

    return of_tensor


for _f in (np.conjugate, np.real, np.real_if_close):
    implements(_f)(_real_part(_f))


@implements(np.select)
def select(condlist, choicelist, default=0):
    """Return, for each element, the choice that belongs to the first condition that holds.

    condlist and choicelist are the conditions and the choices. If no condition holds, the element
    is `default`. The chosen elements receive the gradient.
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"select: condlist has length {len(condlist)}, but choicelist has length "
            f"{len(choicelist)}. Pass one choice for each condition"
        )
    y = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        y = where(condition, choice, y)
    return y


# ---------------------------------------------------------------- reductions


def _without_nan(x, value):
    return where(np.isnan(to_array(x)), value, x)


@implements(np.nansum)
def nansum(a, axis=None, *, keepdims=False):
    """Return the sum of the elements that are not NaN."""
    return reduce.sum(_without_nan(a, 0), axis, keepdims)


@implements(np.nanmean)
def nanmean(a, axis=None, *, keepdims=False):
    """Return the mean of the elements that are not NaN, or NaN if there are none."""
    count = np.sum(~np.isnan(to_array(a)), axis=axis, keepdims=keepdims, dtype=a.dtype)
    return reduce.sum(_without_nan(a, 0), axis, keepdims) / count


@implements(np.nanmax)
def nanmax(a, axis=None, *, keepdims=False):
    """Return the largest element that is not NaN, or NaN if all elements are NaN."""
    y = reduce.max(_without_nan(a, -np.inf), axis, keepdims)
    return where(np.isnan(np.nanmax(to_array(a), axis=axis, keepdims=keepdims)), np.nan, y)


@implements(np.nanmin)
def nanmin(a, axis=None, *, keepdims=False):
    """Return the smallest element that is not NaN, or NaN if all elements are NaN."""
    y = reduce.min(_without_nan(a, np.inf), axis, keepdims)
    return where(np.isnan(np.nanmin(to_array(a), axis=axis, keepdims=keepdims)), np.nan, y)


def _is_between(q, most):
    """Return whether q is a single number from 0 to `most`."""
    q = np.asarray(to_array(q))
    return q.ndim == 0 and q.dtype.kind in "iuf" and bool(0 <= q <= most)


def _check_quantile(name, q, most):
    """Raise ValueError if q is not one number from 0 to `most`."""
    if _is_between(q, most):
        return
    advice = ". Call it once for each number" if np.ndim(to_array(q)) else ""
    if not advice and most == 1 and _is_between(q, 100):
        advice = ". For a percentage, call np.percentile"
    raise ValueError(
        f"{name} of Tensors: q must be one number with 0 <= q <= {most}, got q={q}{advice}"
    )


@implements(np.quantile)
def quantile(a, q, axis=None, *, keepdims=False):
    """Return the q-quantile along `axis`, which is larger than a fraction q of the n numbers.

    For the sorted numbers x₍₀₎ ≤ … ≤ x₍ₙ₋₁₎, it is y = (1 - w) x₍ᵢ₎ + w x₍ᵢ₊₁₎, where i is the
    whole part of q (n - 1) and w is the rest. The result is NaN if any of the numbers is NaN.

    Raises ValueError if q is not one number in [0, 1], or if a has no numbers.
    """
    _check_quantile("np.quantile", q, 1)
    x, q = a if isinstance(a, Tensor) else Tensor(a), to_array(q)
    if x.size == 0:
        raise ValueError(f"np.quantile of Tensors: a must not be empty, got shape {x.shape}")
    axes = reduce.axes_of(x, axis)
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    rows = np.moveaxis(x, axes, range(-len(axes), 0)) if axes else x
    rows = np.sort(np.reshape(rows, (*kept, -1)), axis=-1)  # NaN comes last
    i, w = divmod(q * (rows.shape[-1] - 1), 1)
    y = rows[..., int(i)]
    if w > 0:
        y = (1 - w) * y + w * rows[..., int(i) + 1]
    y = np.where(np.isnan(to_array(rows)[..., -1]), np.nan, y)
    return np.expand_dims(y, axes) if keepdims else y


@implements(np.percentile)
def percentile(a, q, axis=None, *, keepdims=False):
    """Return the `quantile` for q / 100, where q is one number in [0, 100]."""
    _check_quantile("np.percentile", q, 100)
    return quantile(a, q / 100, axis, keepdims=keepdims)


@implements(np.median)
def median(a, axis=None, *, keepdims=False):
    """Return the middle one of the sorted numbers, or the mean of the two in the middle."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


@implements(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Return the integral of y over x along `axis` by the trapezoidal rule.

    x has the shape of y, or is a vector along this axis. If x is None, neighbouring points have the
    distance dx. Raises ValueError if the length of a vector x does not fit.
    """
    axis = np.lib.array_utils.normalize_axis_index(axis, np.ndim(y))
    n = np.shape(y)[axis]
    if x is not None and np.ndim(x) == 1 and len(x) != n:
        raise ValueError(
            f"trapezoid: axis {axis} of y has length {n}, so x must have {n} numbers, got {len(x)}"
        )
    middle = (take(y, np.arange(1, n), axis) + take(y, np.arange(n - 1), axis)) / 2
    if x is None:
        return reduce.sum(middle, axis) * dx
    if np.ndim(x) == 1:
        x = np.reshape(x, [n if i == axis % np.ndim(y) else 1 for i in range(np.ndim(y))])
    return reduce.sum(middle * np.diff(x, axis=axis), axis)


@implements(np.cov)
def cov(m, *, rowvar=True, ddof=1):
    """Return the covariances Cᵢⱼ = Σ (xᵢ - x̄ᵢ)(xⱼ - x̄ⱼ) / (n - ddof) of the rows xᵢ of m.

    x̄ᵢ is the mean of the n numbers of a row. If `rowvar` is False, the xᵢ are the columns of m.
    Raises ValueError if m has more than two axes.
    """
    if m.ndim > 2:
        raise ValueError(f"np.cov of Tensors: m must be a vector or a matrix, got shape {m.shape}")
    rows = shape.atleast_2d(m if rowvar or m.ndim == 1 else shape.transpose(m))
    rows = rows - reduce.mean(rows, 1, True)
    y = linalg.matmul(rows, shape.transpose(rows)) / (rows.shape[1] - ddof)
    return shape.squeeze(y) if y.size == 1 else y


@implements(np.trace)
def trace(x, offset=0, axis1=0, axis2=1):
    """Return Σᵢ x[i, i + offset], the sum of a diagonal, with the indices on axis1 and axis2."""
    return reduce.sum(shape.diagonal(x, offset, axis1, axis2), -1)


# ---------------------------------------------------------------- products


@implements(np.vecdot, np.linalg.vecdot)
def vecdot(a, b, axis=-1):
    """Return y = Σᵢ aᵢ bᵢ along `axis`, where the other axes of a and b broadcast."""
    return np.sum(a * b, axis=axis)


@implements(np.matvec)
def matvec(a, b):
    """Return yᵢ = Σₖ aᵢₖ bₖ for matrices a [..., I, K] and vectors b [..., K]."""
    return np.sum(a * np.expand_dims(b, -2), axis=-1)


@implements(np.vecmat)
def vecmat(a, b):
    """Return yⱼ = Σₖ aₖ bₖⱼ for vectors a [..., K] and matrices b [..., K, J]."""
    return np.sum(np.expand_dims(a, -1) * b, axis=-2)


@implements(np.cross, np.linalg.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Return the cross product y of vectors with 3 elements.

    The vectors are along axisa of a, axisb of b and axisc of y. An `axis` that is not None replaces
    all three. Raises ValueError for vectors of a different length.
    """
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    if np.shape(a)[axisa:][:1] != (3,) or np.shape(b)[axisb:][:1] != (3,):
        raise ValueError(
            "cross: expected vectors with 3 elements, got arrays of shapes "
            f"{np.shape(a)} and {np.shape(b)} with the vectors along the axes {axisa} and {axisb}"
        )
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    parts = [a[..., i - 2] * b[..., i - 1] - a[..., i - 1] * b[..., i - 2] for i in range(3)]
    return np.moveaxis(np.stack(parts, axis=-1), -1, axisc)


@implements(np.bincount)
def bincount(x, weights=None, minlength=0):
    """Return, for each n, the number of elements of x that equal n, or the sum of their weights.

    The result has at least minlength elements. Only weights get a gradient.
    """
    ids = to_array(x)
    if weights is None:
        return Tensor(np.bincount(ids, minlength=minlength))
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iub" or (ids < 0).any():
        found = ids.min() if ids.dtype.kind in "iub" else f"an array of dtype {ids.dtype}"
        raise ValueError(f"bincount: x must contain whole numbers >= 0, got {found}")
    n = builtins.max(int(np.max(ids, initial=-1)) + 1, minlength)
    if np.shape(weights) != np.shape(ids):
        raise ValueError(
            f"bincount: weights must have the shape {np.shape(ids)} of x, got {np.shape(weights)}"
        )
    return scatter_add(weights, np.asarray(ids), (n,))


@implements(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """Return the number of elements (or the sum of weights) in each bin, and the edges of the bins.

    The arguments are those of np.histogram. The results have no gradient. Raises TypeError for
    weights that require a gradient. For these, write np.bincount(np.digitize(x, bins), weights).
    """
    if isinstance(weights, Tensor) and weights.requires_grad:
        raise TypeError(
            "np.histogram of Tensors: weights that require a gradient would lose it. Write "
            "np.bincount(np.digitize(x, bins), weights), or weights.detach()"
        )
    y = np.histogram(*to_array([a, bins]), range, density, to_array(weights))
    return Tensor(y[0]), Tensor(y[1])


@implements(np.unique)
def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True
):
    """Return the distinct numbers in ascending order. The first of equal numbers gets the gradient.

    The arguments are those of np.unique. If return_index, return_inverse or return_counts is True,
    the result is a tuple with these arrays too, which have no gradient.
    """
    _, index, *more = np.unique(
        to_array(ar), True, return_inverse, return_counts, axis, equal_nan=equal_nan
    )
    y = take(ar, index, axis)
    found = [y, *[Tensor(v) for v in ([index] if return_index else []) + more]]
    return found[0] if len(found) == 1 else tuple(found)


@implements(np.convolve)
def convolve(a, v, mode="full"):
    """Return the convolution of two vectors, yₖ = Σᵢ aᵢ vₖ₋ᵢ.

    `mode` is "full" (all k for which a and v overlap), "same" (the middle part, as long as the
    longer vector) or "valid" (only the k for which they overlap completely). Raises ValueError for
    other modes, and if a or v is empty or not a vector.
    """
    if np.ndim(a) != 1 or np.ndim(v) != 1 or len(a) == 0 or len(v) == 0:
        raise ValueError(
            "convolve: a and v must be vectors with at least one number, got shapes "
            f"{np.shape(a)} and {np.shape(v)}. Use F.conv1d for several vectors"
        )
    n, m = len(a), len(v)
    if mode not in ("full", "same", "valid"):
        raise ValueError(f'convolve: mode must be "full", "same" or "valid", got {mode!r}')
    products = np.reshape(a, (-1, 1)) * np.reshape(v, (1, -1))
    place = np.add.outer(np.arange(n), np.arange(m))  # aᵢ vⱼ belongs to yᵢ₊ⱼ
    y = scatter_add(products, place, (n + m - 1,))
    short, long = sorted((n, m))
    lengths = {"full": n + m - 1, "same": long, "valid": long - short + 1}
    start = (n + m - 1 - lengths[mode]) // 2
    return y[start : start + lengths[mode]]


@implements(np.correlate)
def correlate(a, v, mode="valid"):
    """Return the correlation of two vectors, yₖ = Σᵢ aᵢ₊ₖ vᵢ.

    `mode` and the errors are those of `convolve`.
    """
    if np.ndim(a) == np.ndim(v) == 1 and len(v) > len(a):
        return np.flip(correlate(v, a, mode))
    return convolve(a, np.flip(v), mode)


@implements(np.polyval)
def polyval(p, x):
    """Return the polynomial p₀ xⁿ⁻¹ + … + pₙ₋₁ at x, where p are its n coefficients."""
    y = 0 * x
    for i in range(len(p)):
        y = y * x + p[i]
    return y


@implements(np.linalg.multi_dot)
def multi_dot(arrays):
    """Return the product A B C … of a list of matrices, computed from left to right."""
    y = arrays[0]
    for a in arrays[1:]:
        y = linalg.matmul(y, a)
    return y


@implements(np.linalg.matrix_power)
def matrix_power(a, n):
    """Return Aⁿ by repeated products, or (A⁻¹)⁻ⁿ for a negative n.

    Raises TypeError if n is not a whole number, and ValueError if the matrices are not square.
    """
    if not is_number(n, whole=True):
        raise TypeError(f"matrix_power: n must be a whole number, got n={n!r}")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"matrix_power: a must be square matrices [..., N, N], got shape {a.shape}"
        )
    if n == 0:
        return Tensor(np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))
    if n < 0:
        a, n = linalg.inv(a), -n
    half = matrix_power(a, n // 2) if n > 1 else None
    if half is None:
        return a
    return linalg.matmul(linalg.matmul(half, half), a) if n % 2 else linalg.matmul(half, half)


@implements(np.linalg.vector_norm)
def vector_norm(x, axis=None, keepdims=False, ord=2):
    """Return the norm of all elements, or of the vectors along `axis`. `ord` is that of `norm`."""
    if axis is None and x.ndim != 1:
        y = linalg.norm(np.reshape(x, -1), ord)
        return np.reshape(y, (1,) * x.ndim) if keepdims else y
    return linalg.norm(x, ord, axis, keepdims)


implements(np.linalg.matmul)(linalg.matmul)
implements(np.linalg.outer)(linalg.outer)
implements(np.linalg.tensordot)(linalg.tensordot)


# ---------------------------------------------------------------- shapes


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x):
    """Return x with the last two axes exchanged."""
    return shape.swapaxes(x, -1, -2)


@implements(np.linalg.diagonal)
def matrix_diagonal(x, offset=0):
    """Return the diagonals x[..., i, i + offset], with i as the last axis."""
    return shape.diagonal(x, offset, -2, -1)


@implements(np.linalg.trace)
def matrix_trace(x, offset=0):
    """Return the sums Σᵢ x[..., i, i + offset]."""
    return reduce.sum(matrix_diagonal(x, offset), -1)


@implements(np.rollaxis)
def rollaxis(a, axis, start=0):
    """Return a with one axis moved to the position before the axis `start`."""
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return shape.moveaxis(a, axis, start - (axis < start))


@implements(np.full_like)
def full_like(a, fill_value, dtype=None, *, shape=None):
    """Return an array y filled with fill_value, a number or an array that broadcasts.

    y has the shape and dtype of a, unless `shape` or `dtype` is given. The gradient of a number
    fill_value is Σᵢ dL/dyᵢ, and a gets none.
    """
    like = np.empty_like(to_array(a), dtype=dtype, shape=shape)
    if not isinstance(fill_value, Tensor):
        return Tensor(np.full_like(like, to_array(fill_value)))
    return np.broadcast_to(fill_value, like.shape).astype(like.dtype).copy()


@implements(np.dstack)
def dstack(tup):
    """Concatenate the arrays of a list along the third axis, which is added if it is missing."""
    return shape.concatenate([atleast_3d(x) for x in tup], axis=2)


@implements(np.atleast_3d)
def atleast_3d(x):
    """Return a number as [1, 1, 1], a vector [N] as [1, N, 1], and a matrix [N, M] as [N, M, 1]."""
    x = x if isinstance(x, Tensor) else Tensor(x)
    if x.ndim >= 3:
        return x
    return np.reshape(x, {0: (1, 1, 1), 1: (1, -1, 1), 2: (*x.shape, 1)}[x.ndim])


@implements(np.dsplit)
def dsplit(x, indices_or_sections):
    """Split x along the third axis, as `split` does."""
    return shape.split(x, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x, axis=0):
    """Return a tuple of the slices along an axis, the reverse of stack."""
    return tuple(np.moveaxis(x, axis, 0))


@implements(np.meshgrid)
def meshgrid(*xi, indexing="xy"):
    """Return the coordinates of the points of a grid, as one array for each of the vectors xi.

    With `indexing="ij"`, axis i of the results belongs to vector i. With "xy", the first two axes
    are exchanged, so the first vector runs from left to right in an image. Raises ValueError for
    other values of `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing must be "xy" or "ij", got indexing={indexing!r}')
    n = len(xi)
    lined_up = [np.reshape(x, [-1 if i == j else 1 for j in range(n)]) for i, x in enumerate(xi)]
    grids = shape.broadcast_arrays(*lined_up)
    return tuple(np.swapaxes(g, 0, 1) if indexing == "xy" and n > 1 else g for g in grids)


@implements(np.delete)
def delete(x, obj, axis=None):
    """Return a copy of x without the slices along `axis` at the indices `obj`.

    If `axis` is None, x is flattened, and its elements with these indices are left out.
    """
    n = x.size if axis is None else x.shape[np.lib.array_utils.normalize_axis_index(axis, x.ndim)]
    return take(x, np.delete(np.arange(n), to_array(obj)), axis)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x, window_shape, axis=None):
    """Return all windows of x, with the positions inside a window as new last axes.

    window_shape has a length for each of the given axes, or for each axis of x if `axis` is None.
    Raises ValueError if the number of lengths does not fit, or if a window is longer than its axis.
    """
    lengths = (window_shape,) if np.ndim(window_shape) == 0 else tuple(window_shape)
    axes = reduce.axes_of(x, axis)
    if len(lengths) != len(axes):
        raise ValueError(
            f"sliding_window_view: window_shape must have {len(axes)} lengths, one for each axis, "
            f"got {window_shape}. Choose some of the axes with axis="
        )
    if not all(is_number(n, whole=True) and n >= 0 for n in lengths):
        raise ValueError(
            f"sliding_window_view: window_shape must be whole numbers >= 0, got {window_shape!r}"
        )
    if any(n > x.shape[i] for n, i in zip(lengths, axes, strict=True)):
        raise ValueError(
            f"sliding_window_view: windows of shape {lengths} do not fit into the axes {axes} of "
            f"an array of shape {x.shape}. Choose shorter windows"
        )
    for length, i in zip(lengths, axes, strict=True):
        starts = np.arange(x.shape[i] - length + 1)
        x = np.moveaxis(take(x, np.add.outer(starts, np.arange(length)), i), i + 1, -1)
    return x


nondifferentiable(
    np.flatnonzero,
    np.isin,
    np.digitize,
    np.nanargmax,
    np.nanargmin,
    np.isreal,
    np.isposinf,
    np.isneginf,
    np.iscomplex,
    np.array_equiv,
    np.argpartition,
    np.tril_indices_from,
    np.triu_indices_from,
    np.diag_indices_from,
    np.left_shift,
    np.right_shift,
    np.linalg.matrix_rank,
)
