"""Reductions over segments, where row e of `values` belongs to segment ids[e].

    y_i = □_{e: ids_e = i} values_e        □ = sum, mean, max, min, prod

The arguments have been checked (see `graph/segment.py`), so ids [E] contains whole numbers from 0
to n - 1. An empty segment gives 0, or 1 for prod.
"""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import to_array
from tinyattn.kernels import fast
from tinyattn.ops.backends import operation
from tinyattn.ops.index import scatter_add


def segment_sum(values, ids, n):
    """Return the sum of each segment, y_i = Σ values_e over all e with ids_e = i.

    values is [E, ...], ids [E] contains whole numbers from 0 to n - 1, and the result is [n, ...].
    An empty segment gives 0.
    """
    return scatter_add(values, ids, (n, *values.shape[1:]))


def segment_mean(values, ids, n):
    """Return the mean of each segment, its `segment_sum` divided by the number of its rows.

    The arguments are those of `segment_sum`. An empty segment gives 0.
    """
    total = segment_sum(values, ids, n)
    return total / _per_segment(np.maximum(np.bincount(ids, minlength=n), 1), total)


def _size(values, ids, n):
    return values.size


def _extreme(values, ids, n, larger):
    """Return the maximum or minimum of each segment. `larger` is np.maximum or np.minimum."""
    order, starts, present = _runs(ids)
    y = np.zeros((n, *values.shape[1:]), values.dtype)
    if ids.size:
        y[present] = larger.reduceat(values[order], starts, axis=0)
    return y


def _extremum_vjp(g, y, values, ids, n):
    hit = np.equal(to_array(values), to_array(y)[ids]).astype(values.dtype)  # [E, ...]
    return g[ids] * (hit / np.maximum(scatter_add(hit, ids, y.shape), 1)[ids])


@operation("segment_max", work=_size)
@primitive
def segment_max(values, ids, n):
    """Return the maximum of each segment, y_i = max values_e. Equal maxima share the gradient.

    The arguments are those of `segment_sum`. An empty segment gives 0.
    """
    return _extreme(values, ids, n, np.maximum)


@operation("segment_min", work=_size)
@primitive
def segment_min(values, ids, n):
    """Return the minimum of each segment, y_i = min values_e. Equal minima share the gradient.

    The arguments are those of `segment_sum`. An empty segment gives 0.
    """
    return _extreme(values, ids, n, np.minimum)


segment_max.defvjp(_extremum_vjp)
segment_min.defvjp(_extremum_vjp)


@operation("segment_prod", work=_size)
def segment_prod(values, ids, n):
    """Return the product of each segment, y_i = Π values_e.

    The arguments are those of `segment_sum`. An empty segment gives 1. The rows of each segment are
    collected in a table, which is padded with 1.
    """
    one = np.ones((1, *values.shape[1:]), values.dtype)
    return np.prod(np.concatenate([values, one])[_table(ids, n)], axis=1)


@operation("segment_softmax", work=_size)
def segment_softmax(values, ids, n):
    """Return the softmax within each segment, a_e = exp(values_e) / Σ_e' exp(values_e').

    The sum is over the rows e' in the segment of e. If all these values are -inf, a_e is 0. The
    arguments are those of `segment_sum`, and the result has the shape of values.
    """
    top = _extreme(values.data, ids, n, np.maximum)  # the maximum cancels, so it needs no gradient
    top = np.where(np.isneginf(top), 0, top)  # for segments that contain only -inf
    e = np.exp(values - top[ids])
    total = scatter_add(e, ids, (n, *values.shape[1:]))
    return e / np.where(np.equal(to_array(total), 0), 1, total)[ids]


def _runs(ids):
    """Return an order of rows with contiguous segments, the segments' starts, and their ids."""
    order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.diff(ids[order], prepend=-1))
    return order, starts, ids[order][starts]


def _table(ids, n):
    """Return the rows of each segment [n, longest], with shorter ones padded with E."""
    count = np.bincount(ids, minlength=n)
    order = np.argsort(ids, kind="stable")
    place = np.arange(len(ids)) - np.repeat(np.cumsum(count) - count, count)
    table = np.full((n, count.max(initial=0)), len(ids))
    table[ids[order], place] = order
    return table


def _per_segment(count, like):
    return count.reshape(-1, *(1,) * (like.ndim - 1)).astype(like.dtype)


# ---------------------------------------------------------------- compiled


def _implement(operation, kind):
    """Add the kernel of a reduction, where `kind` is the name of one of the kernel's constants."""

    def forward(values, ids, n):
        return fast.segment.reduce(values, ids, n, getattr(fast.segment, kind))

    def backward(g, y, residuals, needs_grad, values, ids, n):
        kernel = fast.segment
        return kernel.reduce_backward(g, y, residuals, values, getattr(kernel, kind)), None, None

    operation.implement("kernel", forward, backward)


_implement(segment_max, "MAX")
_implement(segment_min, "MIN")
_implement(segment_prod, "PROD")
segment_softmax.implement(
    "kernel",
    lambda values, ids, n: fast.segment.softmax(values, ids, n),
    lambda g, y, residuals, needs_grad, values, ids, n: (
        fast.segment.softmax_backward(g, y, residuals),
        None,
        None,
    ),
)
