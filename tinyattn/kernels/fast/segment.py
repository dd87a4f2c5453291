"""Segments: row e of `values` belongs to segment ids[e]; the rows of a segment become one.

The rows are put in the order of their segments first (by counting, one pass; nothing is moved).
Then each segment is a run of rows that one thread works through: no two threads write to one
place, and a segment is always worked through in the same order. Sums need no such order: they are
in rows.py. All arrays of rows are taken as one row of memory with C numbers a row.
"""

import math

import numpy as np

from tinyattn.kernels import helper, jit
from tinyattn.kernels.fast import segment_softmax
from tinyattn.kernels.fast.rowwise import over
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.layout import row_of
from tinyattn.kernels.machine.prefetch import LINE, fence, look_ahead, passes, store_past
from tinyattn.kernels.machine.simd import (
    broadcast,
    exp,
    fma,
    load,
    load_until,
    maximum,
    room,
    store,
    store_until,
    width,
)
from tinyattn.memory import empty

MAX, MIN, PROD = range(3)
NARROW = 2  # numbers a row up to which ordering the rows costs more than it brings
NEAR = 64  # at most so many rows of the next segment are asked for ahead


@jit
def segment_loops(y, values, ids, kind):
    """y_n = □_{e: ids_e = n} values_e as it is written: the reference, on arrays with two axes."""
    for n in range(y.shape[0]):
        for c in range(y.shape[1]):
            count, one = 0, 1.0 if kind == PROD else 0.0
            for e in range(len(ids)):
                if ids[e] == n:
                    v = values[e, c]
                    if kind == PROD:
                        one *= v
                    elif count == 0:
                        one = v
                    else:
                        one = max(one, v) if kind == MAX else min(one, v)
                    count += 1
            y[n, c] = one


# ---------------------------------------------------------------- the order of the rows


@jit
def count_rows(ids, n):
    """Segment s has the places starts[s] to starts[s + 1]; row order[place] stands there."""
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
    """y_s = □ of its rows, the rows one after the other: y_s stays in the nearest cache."""
    if together(team, start, stop):
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
                for c in range(C):  # a nan wins, as in NumPy
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
    """dx_e = g_s / t where values_e is the extreme y_s, t being how many rows reach it; else 0."""
    if together(team, start, stop):
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
        for c in range(C):  # from here on what each of them gets
            ties[c] = g[at + c] / (ties[c] if ties[c] > one else one)
        for place in range(first, last):
            row = order[place] * C
            for c in range(C):
                dx[row + c] = ties[c] if values[row + c] == y[at + c] else zero


@jit
def prod_rows_backward(dx, g, values, order, starts, C, team, start, stop):
    """dx_e = g_s · product of the rows before e · product of those behind: right with zeros too."""
    if together(team, start, stop):
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
    """y [n, ...] and what the backward pass wants."""
    y = empty((n, *values.shape[1:]), values.dtype)
    order, starts = count_rows(np.require(ids, np.int64, ["C", "W"]), n)
    C = math.prod(values.shape[1:])
    over(reduce_rows, n, values.size, y.reshape(-1), row_of(values), order, starts, C, kind)
    return y, (order, starts)


def reduce_backward(g, y, saved, values, kind):
    """The gradient of `reduce` with respect to values."""
    dx = empty(values.shape, values.dtype)
    (order, starts), C = saved, math.prod(values.shape[1:])
    where = order, starts, C
    n, out, g = len(starts) - 1, dx.reshape(-1), row_of(g)
    if kind == PROD:
        over(prod_rows_backward, n, dx.size, out, g, row_of(values), *where)
    else:
        over(extreme_rows_backward, n, dx.size, out, g, row_of(y), row_of(values), *where)
    return dx


# ---------------------------------------------------------------- softmax


@helper
def longest(starts, start, stop):
    """The number of rows of the longest of the segments start … stop."""
    most = 0
    for s in range(start, stop):
        most = max(most, starts[s + 1] - starts[s])
    return most


@helper
def next_rows(x, order, starts, C, s, stop):
    """Let the rows of segment s come closer while another one is worked on."""
    if s < stop:
        for place in range(starts[s], min(starts[s + 1], starts[s] + NEAR)):
            for c in range(0, C, LINE // x.itemsize):
                look_ahead(x, order[place] * C + c)


@jit
def softmax_segments(y, values, order, starts, C, past, team, start, stop):
    """y_e = exp(x_e - top) / Σ exp(x_e' - top) over the segment, vectors of features at a time."""
    if together(team, start, stop):
        return
    W, one = width(values), broadcast(values, 1)
    exps = room(longest(starts, start, stop) * W, values)
    for s in range(start, stop):
        first, last = starts[s], starts[s + 1]
        next_rows(values, order, starts, C, s + 1, stop)
        for i in range(0, C, W):
            top = broadcast(values, -np.inf)
            for place in range(first, last):
                row = order[place] * C
                top = maximum(load_until(values, row + i, row + C, 0), top)
            total = broadcast(values, 0)
            for place in range(first, last):
                row = order[place] * C
                e = exp(load_until(values, row + i, row + C, 0) - top)
                total = total + e
                store(exps, (place - first) * W, e)
            factor = one / total
            for place in range(first, last):
                row, weight = order[place] * C, load(exps, (place - first) * W) * factor
                if past:
                    store_past(y, row + i, weight)
                else:
                    store_until(y, row + i, row + C, weight)
    if past:
        fence()


@jit
def softmax_segments_backward(dx, g, y, order, starts, C, past, team, start, stop):
    """dx_e = y_e (g_e - Σ g_e' y_e')"""
    if together(team, start, stop):
        return
    W = width(y)
    for s in range(start, stop):
        first, last = starts[s], starts[s + 1]
        next_rows(g, order, starts, C, s + 1, stop)
        next_rows(y, order, starts, C, s + 1, stop)
        for i in range(0, C, W):
            mean = broadcast(y, 0)
            for place in range(first, last):
                row = order[place] * C
                g_e = load_until(g, row + i, row + C, 0)
                mean = fma(g_e, load_until(y, row + i, row + C, 0), mean)
            for place in range(first, last):
                row = order[place] * C
                g_e = load_until(g, row + i, row + C, 0)
                y_e = load_until(y, row + i, row + C, 0)
                if past:
                    store_past(dx, row + i, y_e * (g_e - mean))
                else:
                    store_until(dx, row + i, row + C, y_e * (g_e - mean))
    if past:
        fence()


def softmax(values, ids, n):
    """The weights, in the shape of values, and what the backward pass wants."""
    ids, C = np.require(ids, np.int64, ["C", "W"]), math.prod(values.shape[1:])
    if C <= NARROW:
        return segment_softmax.softmax(values, ids, n), (ids, n)
    y = empty(values.shape, values.dtype)
    order, starts = count_rows(ids, n)
    arrays = y.reshape(-1), row_of(values), order, starts, C, passes(y, C)
    over(softmax_segments, n, 4 * y.size, *arrays)
    return y, (order, starts)


def softmax_backward(g, y, saved):
    """The gradient of `softmax`, from its result y."""
    C = math.prod(y.shape[1:])
    if C <= NARROW:
        return segment_softmax.softmax_backward(g, y, *saved)
    dx, (order, starts) = empty(y.shape, y.dtype), saved
    arrays = dx.reshape(-1), row_of(g), row_of(y), order, starts, C, passes(dx, C)
    over(softmax_segments_backward, len(starts) - 1, y.size, *arrays)
    return dx
