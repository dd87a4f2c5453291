"""Operations that reduce axes: sums, means, extremes and products, and running sums and products.

`axis` is None (all axes), a number or a tuple, as in NumPy. `keepdims` keeps reduced axes with
length 1. A rule first restores the reduced axes in the gradient (`expand_reduced`). In the
docstrings, x̄ is dL/dx.
"""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import nondifferentiable, to_array
from tinyattn.engine.dispatch import implements
from tinyattn.ops.marks import of_whole_numbers


def expand_reduced(g, x, axis, keepdims):
    """Return g with the axes of x that a reduction over `axis` removed, as axes of length 1.

    If `keepdims` is True, the reduction kept them, and g is returned unchanged.
    """
    if keepdims:
        return g
    if axis is None:
        return np.reshape(g, (1,) * x.ndim)
    return np.expand_dims(g, axes_of(x, axis))


def axes_of(x, axis):
    """Return `axis` as a tuple of non-negative numbers, with all axes of x for None."""
    if axis is None:
        return tuple(range(x.ndim))
    return np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)


def count_of(x, axis):
    """Return the number of elements of x that a reduction over `axis` combines in one element."""
    return int(np.prod([x.shape[i] for i in axes_of(x, axis)], dtype=np.int64))


@of_whole_numbers
@primitive
def sum(x, axis=None, keepdims=False):
    """Return y = Σ x, with the gradient x̄ᵢ = ȳ for every summand."""
    return np.sum(x, axis=axis, keepdims=keepdims)


sum.defvjp(
    lambda g, y, x, axis=None, keepdims=False: np.broadcast_to(
        expand_reduced(g, x, axis, keepdims), x.shape
    )
)


@primitive
def mean(x, axis=None, keepdims=False):
    """Return y = Σ x / n, with the gradient x̄ᵢ = ȳ / n."""
    return np.mean(x, axis=axis, keepdims=keepdims)


mean.defvjp(
    lambda g, y, x, axis=None, keepdims=False: np.broadcast_to(
        expand_reduced(g, x, axis, keepdims) / count_of(x, axis), x.shape
    )
)


def _extremum_vjp(g, y, x, axis=None, keepdims=False):
    """Divide ȳ by the number of equal extremes, so that their gradients sum to ȳ.

    If an element is NaN, y is NaN too, and all elements that are NaN share the gradient.
    """
    x_, y_ = to_array(x), to_array(expand_reduced(y, x, axis, keepdims))
    chosen = (x_ == y_) | ((x_ != x_) & (y_ != y_))
    share = chosen / chosen.sum(axis=axis, keepdims=True, dtype=x.dtype)
    return expand_reduced(g, x, axis, keepdims) * share


@primitive
def max(x, axis=None, keepdims=False):
    """Return y = max x. The gradient ȳ is shared equally by all maxima, and all other x̄ᵢ are 0."""
    return np.max(x, axis=axis, keepdims=keepdims)


max.defvjp(_extremum_vjp)


@primitive
def min(x, axis=None, keepdims=False):
    """Return y = min x. The gradient ȳ is shared equally by all minima, and all other x̄ᵢ are 0."""
    return np.min(x, axis=axis, keepdims=keepdims)


min.defvjp(_extremum_vjp)


@of_whole_numbers
@primitive
def prod(x, axis=None, keepdims=False):
    """Return y = Π x, with the gradient x̄ᵢ = ȳ Π_{j≠i} xⱼ, which unlike y / xᵢ allows zeros."""
    return np.prod(x, axis=axis, keepdims=keepdims)


def _prod_rule(g, y, x, axis=None, keepdims=False):
    axes = axes_of(x, axis)
    kept = [i for i in range(x.ndim) if i not in axes]
    order = [*kept, *axes]
    rows = np.transpose(x, order)  # the reduced axes come last, merged into one
    shape = rows.shape
    rows = np.reshape(rows, (*shape[: len(kept)], count_of(x, axis)))
    others = products_of_others(rows)
    others = np.transpose(np.reshape(others, shape), [order.index(i) for i in range(x.ndim)])
    return expand_reduced(g, x, axis, keepdims) * others


prod.defvjp(_prod_rule)


def products_of_others(rows):
    """Return, for each element, the product of all others in its row [..., n], without division."""
    before = np.roll(rows, 1, axis=-1)
    first = np.arange(rows.shape[-1]) == 0
    before = np.cumprod(np.where(first, 1, before), axis=-1)  # product of all elements to the left
    after = np.flip(np.where(first, 1, np.roll(np.flip(rows, -1), 1, axis=-1)), -1)
    # product of all elements to the right
    after = np.flip(np.cumprod(np.flip(after, -1), axis=-1), -1)
    return before * after


@of_whole_numbers
@primitive
def cumsum(x, axis=None):
    """Return the running sums yᵢ = Σ_{j≤i} xⱼ, with the gradient x̄ⱼ = Σ_{i≥j} ȳᵢ."""
    return np.cumsum(x, axis=axis)


def _cumsum_rule(g, y, x, axis=None):
    if axis is None:  # y is flat in this case
        return np.reshape(np.flip(np.cumsum(np.flip(g))), x.shape)
    return np.flip(np.cumsum(np.flip(g, axis), axis=axis), axis)


cumsum.defvjp(_cumsum_rule)


@of_whole_numbers
@primitive
def cumprod(x, axis=None):
    """Return yᵢ = Π_{j≤i} xⱼ, with the gradient x̄ⱼ = Σ_{i≥j} ȳᵢ Π_{k≤i, k≠j} xₖ."""
    return np.cumprod(x, axis=axis)


def _cumprod_rule(g, y, x, axis=None):
    if axis is None:
        return np.reshape(_cumprod_rule(g, y, np.reshape(x, -1), 0), x.shape)
    rows, g = np.moveaxis(x, axis, -1), np.moveaxis(g, axis, -1)
    n = rows.shape[-1]
    # Row i of the triangle [..., i, k] holds x₀ … xᵢ and then ones. All n² products are needed,
    # because the short form Σ ȳᵢyᵢ / xⱼ divides by zero.
    lower = np.tril(np.ones((n, n), bool))
    triangle = np.where(lower, np.expand_dims(rows, -2), 1)
    others = np.where(lower, products_of_others(triangle), 0)
    return np.moveaxis(np.sum(np.expand_dims(g, -1) * others, axis=-2), -1, axis)


cumprod.defvjp(_cumprod_rule)


def var(x, axis=None, keepdims=False, ddof=0):
    """Return the variance y = Σ (x - m)² / (n - ddof) over `axis`, with the mean m of n numbers.

    ddof = 1 gives the unbiased estimate.
    """
    if x.dtype == np.float16:  # float16 squares overflow from 256 on
        return var(np.astype(x, np.float32), axis, keepdims, ddof).astype(x.dtype)
    centred = x - mean(x, axis, True)
    total = sum(centred * centred, axis, keepdims)
    n = count_of(x, axis) - ddof
    return total / (n if n > 0 else 0)  # NaN or infinite if there are too few numbers, as in NumPy


def std(x, axis=None, keepdims=False, ddof=0):
    """Return √`var`. If all x are equal, where the slope is infinite, the gradient is 0."""
    if x.dtype == np.float16:
        return std(np.astype(x, np.float32), axis, keepdims, ddof).astype(x.dtype)
    v = var(x, axis, keepdims, ddof)
    equal = np.equal(to_array(v), 0)
    return np.where(equal, 0, np.sqrt(np.where(equal, 1, v)))


def _like_numpy(function, neutral=None, join=None):
    """Return the operation as a function with all of NumPy's arguments.

    The value `neutral` replaces elements excluded by where=, and `join` combines the result with
    initial=. In NumPy's own signatures, the third positional argument is a dtype or an output
    array.
    """

    def reduce(a, axis=None, *, dtype=None, keepdims=False, initial=None, where=None):
        if where is not None:
            if neutral is None and initial is None:
                raise ValueError(
                    f"np.{function.__name__} of Tensors: where= may leave no element. Pass "
                    "initial=, the result for no elements"
                )
            a = np.where(where, a, initial if neutral is None else neutral)
        y = function(a if dtype is None else a.astype(dtype), axis, keepdims)
        return y if initial is None else join(y, initial)

    reduce.__name__ = function.__name__
    return reduce


for _numpy, _ours, _neutral, _join in [
    (np.sum, sum, 0, np.add),
    (np.prod, prod, 1, np.multiply),
    (np.max, max, None, np.maximum),
    (np.min, min, None, np.minimum),
    (np.amax, max, None, np.maximum),
    (np.amin, min, None, np.minimum),
]:
    implements(_numpy)(_like_numpy(_ours, _neutral, _join))


@implements(np.mean)
def _np_mean(a, axis=None, *, dtype=None, keepdims=False, where=None):
    a = a if dtype is None else a.astype(dtype)
    if where is None:
        return mean(a, axis, keepdims)
    where = np.broadcast_to(to_array(where), a.shape)
    count = np.sum(where, axis=axis, keepdims=keepdims)
    return sum(np.where(where, a, 0), axis, keepdims) / count


@implements(np.var)
def _np_var(a, axis=None, *, dtype=None, keepdims=False, ddof=0, correction=None):
    a, ddof = a if dtype is None else a.astype(dtype), ddof if correction is None else correction
    return var(a, axis, keepdims, ddof)


@implements(np.std)
def _np_std(a, axis=None, *, dtype=None, keepdims=False, ddof=0, correction=None):
    a, ddof = a if dtype is None else a.astype(dtype), ddof if correction is None else correction
    return std(a, axis, keepdims, ddof)


@implements(np.cumsum)
def _np_cumsum(a, axis=None, *, dtype=None):
    return cumsum(a if dtype is None else a.astype(dtype), axis=axis)


@implements(np.cumprod)
def _np_cumprod(a, axis=None, *, dtype=None):
    return cumprod(a if dtype is None else a.astype(dtype), axis=axis)


@implements(np.ptp)
def ptp(a, axis=None, *, keepdims=False):
    """Return y = max x - min x."""
    return max(a, axis, keepdims) - min(a, axis, keepdims)


@implements(np.average)
def average(a, axis=None, weights=None):
    """Return the weighted mean y = Σ w a / Σ w over `axis`, or the mean if weights is None.

    The weights w have the shape of a or, with a single axis, are a vector along this axis.
    """
    if weights is None:
        return mean(a, axis)
    along = np.ndim(weights) == 1 and np.ndim(axis) == 0 and axis is not None
    if along and np.shape(weights) == np.shape(a)[axis:][:1]:
        weights = np.reshape(weights, [-1 if i == axis % a.ndim else 1 for i in range(a.ndim)])
        weights = np.broadcast_to(weights, a.shape)
    if np.shape(weights) != np.shape(a):
        raise ValueError(
            f"average: weights must have the shape {np.shape(a)} of a, or be a vector along a "
            f"single axis=, got shape {np.shape(weights)}"
        )
    return sum(a * weights, axis) / np.sum(weights, axis=axis)


nondifferentiable(
    np.argmax,
    np.argmin,
    np.argsort,
    np.count_nonzero,
    np.nonzero,
    np.argwhere,
    np.searchsorted,
    np.lexsort,
)
