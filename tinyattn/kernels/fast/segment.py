"""Reductions over segments, where row e of `values` belongs to segment ids[e].

First, the row indices are sorted by segment with a counting sort, without moving the rows. Then one
thread processes all rows of a segment, so two threads never write to the same number, and the rows
of a segment are always processed in the same order. Sums do not need this sorting and are in
gather_scatter.py. Arrays of rows have one axis, with C numbers per row. kernels/segment.py has the
same reductions as loops.
"""

import math

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import segment_softmax
from tinyattn.kernels.fast.rowwise import parallel_rows
from tinyattn.kernels.machine.compile import helper, jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import (
    alloc_aligned,
    load,
    load_partial,
    store,
    store_partial,
)
from tinyattn.kernels.machine.prefetch import (
    LINE,
    fence,
    prefetch,
    store_nontemporal,
    use_nontemporal,
)
from tinyattn.kernels.machine.simd import broadcast, exp, fma, maximum, select_equal, width

MAX, MIN, PROD = range(3)
NARROW = 2  # with up to this many numbers per row, ordering the rows costs more than it saves
MAX_PREFETCHED_ROWS = 64  # largest number of prefetched rows of the next segment

# ---------------------------------------------------------------- the order of the rows


@jit
def count_rows(ids, n):
    """Return (order, starts): rows order[starts[s] : starts[s + 1]] belong to segment s."""
    starts, order = np.zeros(n + 1, np.int64), np.empty(len(ids), np.int64)
    for e in range(len(ids)):
        starts[ids[e] + 1] += 1
    for s in range(n):
        starts[s + 1] += starts[s]
    free = starts[:n].copy()
    for e in range(len(ids)):
        order[free[ids[e]]] = e
        free[ids[e]] += 1
    return order, starts


# ---------------------------------------------------------------- max, min, prod


@jit
def reduce_rows(y, values, order, starts, C, kind, team, start, stop):
    """Reduce the rows of each segment to y_s, row by row, so that y_s stays in the cache."""
    if fork_join(team, start, stop):
        return
    for s in range(start, stop):
        first, last, at = starts[s], starts[s + 1], s * C
        if first == last:
            for c in range(C):
                y[at + c] = kind == PROD
            continue
        row = order[first] * C
        for c in range(C):
            y[at + c] = values[row + c]
        for place in range(first + 1, last):
            row = order[place] * C
            if kind == MAX:
                for c in range(C):  # nan counts as the largest, as in NumPy
                    v, top = values[row + c], y[at + c]
                    y[at + c] = v if v > top or v != v else top
            elif kind == MIN:
                for c in range(C):
                    v, low = values[row + c], y[at + c]
                    y[at + c] = v if v < low or v != v else low
            else:
                for c in range(C):
                    y[at + c] *= values[row + c]


@jit
def extreme_rows_backward(dx, g, y, values, order, starts, C, team, start, stop):
    """Compute dx_e = g_s / t if row e is one of the t rows with the extreme y_s, 0 otherwise."""
    if fork_join(team, start, stop):
        return
    zero, one = g.dtype.type(0), g.dtype.type(1)
    ties = np.empty(C, g.dtype)
    for s in range(start, stop):
        first, last, at = starts[s], starts[s + 1], s * C
        for c in range(C):
            ties[c] = zero
        for place in range(first, last):
            row = order[place] * C
            for c in range(C):
                ties[c] += one if values[row + c] == y[at + c] else zero
        for c in range(C):  # from here on, the gradient of each of the tied numbers
            ties[c] = g[at + c] / (ties[c] if ties[c] > one else one)
        for place in range(first, last):
            row = order[place] * C
            for c in range(C):
                dx[row + c] = ties[c] if values[row + c] == y[at + c] else zero


@jit
def prod_rows_backward(dx, g, values, order, starts, C, team, start, stop):
    """Compute dx_e = g_s · product of the rows of segment s before e · product of those after e."""
    if fork_join(team, start, stop):
        return
    product = np.empty(C, g.dtype)
    for s in range(start, stop):
        first, last, at = starts[s], starts[s + 1], s * C
        for c in range(C):
            product[c] = g.dtype.type(1)
        for place in range(first, last):
            row = order[place] * C
            for c in range(C):
                dx[row + c] = product[c]
                product[c] *= values[row + c]
        for c in range(C):
            product[c] = g[at + c]
        for place in range(last - 1, first - 1, -1):
            row = order[place] * C
            for c in range(C):
                dx[row + c] *= product[c]
                product[c] *= values[row + c]


def reduce(values, ids, n, kind):
    """Return the MAX, MIN or PROD (`kind`) of n segments, and arrays for the backward pass."""
    y = empty_pooled((n, *values.shape[1:]), values.dtype)
    order, starts = count_rows(np.require(ids, np.int64, ["C", "W"]), n)
    C = math.prod(values.shape[1:])
    parallel_rows(reduce_rows, n, values.size, y.reshape(-1), ravel(values), order, starts, C, kind)
    return y, (order, starts)


def reduce_backward(g, y, residuals, values, kind):
    """Return the gradient of `reduce` with respect to values, for the gradient g of its result y.

    `residuals` is the second result of `reduce`, and values and kind are its arguments.
    """
    dx = empty_pooled(values.shape, values.dtype)
    (order, starts), C = residuals, math.prod(values.shape[1:])
    where = order, starts, C
    n, out, g = len(starts) - 1, dx.reshape(-1), ravel(g)
    if kind == PROD:
        parallel_rows(prod_rows_backward, n, dx.size, out, g, ravel(values), *where)
    else:
        parallel_rows(extreme_rows_backward, n, dx.size, out, g, ravel(y), ravel(values), *where)
    return dx


# ---------------------------------------------------------------- softmax


@helper
def longest_segment(starts, start, stop):
    """Return the number of rows of the longest of the segments start … stop - 1."""
    most = 0
    for s in range(start, stop):
        most = max(most, starts[s + 1] - starts[s])
    return most


@helper
def prefetch_segment(x, order, starts, C, s, stop):
    """Prefetch the first rows of x in segment s < stop while a different segment is processed.

    Rows have C numbers. `order` sorts them by segment, and segment s begins at starts[s].
    """
    if s < stop:
        for place in range(starts[s], min(starts[s + 1], starts[s] + MAX_PREFETCHED_ROWS)):
            for c in range(0, C, LINE // x.itemsize):
                prefetch(x, order[place] * C + c)


@jit
def softmax_segments(y, values, order, starts, C, stream, team, start, stop):
    """Compute y_e = exp(x_e - top) / Σ exp(x_e' - top) for e' in the same segment, x = values.

    top is the maximum of the segment. If all values of a segment are -inf, y is 0.
    """
    if fork_join(team, start, stop):
        return
    W, one, zero = width(values), broadcast(values, 1), broadcast(values, 0)
    lowest = broadcast(values, -np.inf)
    exps = alloc_aligned(longest_segment(starts, start, stop) * W, values)
    for s in range(start, stop):
        first, last = starts[s], starts[s + 1]
        prefetch_segment(values, order, starts, C, s + 1, stop)
        for i in range(0, C, W):
            top = lowest
            for place in range(first, last):
                row = order[place] * C
                top = maximum(load_partial(values, row + i, row + C, 0), top)
            top = select_equal(top, lowest, zero, top)  # if all are -inf, subtract 0: exp gives 0
            total = zero
            for place in range(first, last):
                row = order[place] * C
                e = exp(load_partial(values, row + i, row + C, 0) - top)
                total = total + e
                store(exps, (place - first) * W, e)
            factor = one / maximum(one, total)  # the largest term alone is 1
            for place in range(first, last):
                row, weight = order[place] * C, load(exps, (place - first) * W) * factor
                if stream:
                    store_nontemporal(y, row + i, weight)
                else:
                    store_partial(y, row + i, row + C, weight)
    if stream:
        fence()


@jit
def softmax_segments_backward(dx, g, y, order, starts, C, stream, team, start, stop):
    """Compute dx_e = y_e (g_e - Σ g_e' y_e') with the sum over the segment of e."""
    if fork_join(team, start, stop):
        return
    W = width(y)
    for s in range(start, stop):
        first, last = starts[s], starts[s + 1]
        prefetch_segment(g, order, starts, C, s + 1, stop)
        prefetch_segment(y, order, starts, C, s + 1, stop)
        for i in range(0, C, W):
            mean = broadcast(y, 0)
            for place in range(first, last):
                row = order[place] * C
                g_e = load_partial(g, row + i, row + C, 0)
                mean = fma(g_e, load_partial(y, row + i, row + C, 0), mean)
            for place in range(first, last):
                row = order[place] * C
                g_e = load_partial(g, row + i, row + C, 0)
                y_e = load_partial(y, row + i, row + C, 0)
                if stream:
                    store_nontemporal(dx, row + i, y_e * (g_e - mean))
                else:
                    store_partial(dx, row + i, row + C, y_e * (g_e - mean))
    if stream:
        fence()


def softmax(values, ids, n):
    """Return the softmax of `values` in each of n segments, and arrays for the backward pass."""
    ids, C = np.require(ids, np.int64, ["C", "W"]), math.prod(values.shape[1:])
    if C <= NARROW:
        return segment_softmax.softmax(values, ids, n), (ids, n)
    y = empty_pooled(values.shape, values.dtype)
    order, starts = count_rows(ids, n)
    arrays = y.reshape(-1), ravel(values), order, starts, C, use_nontemporal(y, C)
    parallel_rows(softmax_segments, n, 4 * y.size, *arrays)
    return y, (order, starts)


def softmax_backward(g, y, residuals):
    """Return the gradient of `softmax`, from its result y."""
    C = math.prod(y.shape[1:])
    if C <= NARROW:
        return segment_softmax.softmax_backward(g, y, *residuals)
    dx, (order, starts) = empty_pooled(y.shape, y.dtype), residuals
    arrays = dx.reshape(-1), ravel(g), ravel(y), order, starts, C, use_nontemporal(dx, C)
    parallel_rows(softmax_segments_backward, len(starts) - 1, y.size, *arrays)
    return dx
