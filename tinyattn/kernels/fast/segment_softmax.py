"""Softmax over segments for rows of few numbers, such as one score for each edge.

With few numbers per row, ordering the rows by segment costs more than the softmax itself. The rows
are therefore processed in their given order, and each segment has one number for its maximum and
one for its sum. There are far fewer of these than rows, so they stay in the cache.

Rows are split into parts, whose number depends only on the shapes. Each part has its own maxima and
sums, which are then combined in order. Several threads can therefore work, and the result does not
depend on their number. Arrays of rows have one axis, with C numbers per row.
"""

import math

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast.rowwise import parallel_rows
from tinyattn.kernels.machine.compile import jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import exp, width

BLOCK = 1024  # numbers that stay in the L1 cache while several loops process them
MAX_PARTS = 8
SERIAL_ROWS = 2**16  # from this many rows on, there are at least two parts


@jit
def segment_maxima(tops, x, ids, C, team, start, stop):
    """Write the maximum of the rows of segment s in each part to tops[part, s], or -inf."""
    if fork_join(team, start, stop):
        return
    E, parts = len(ids), tops.shape[0]
    for part in range(start, stop):
        top = tops[part]
        for e in range(part * E // parts, (part + 1) * E // parts):
            at = ids[e] * C
            for c in range(C):
                v = x[e * C + c]
                if v > top[at + c]:
                    top[at + c] = v


@jit
def segment_exponentials(y, sums, x, top, ids, C, team, start, stop):
    """Compute y_e = exp(x_e - top_s) and, for each part, sums[part, s] = Σ y_e, with s = ids_e."""
    if fork_join(team, start, stop):
        return
    E, parts, W = len(ids), sums.shape[0], width(x)
    step = max(1, BLOCK // C)
    for part in range(start, stop):
        total, end = sums[part], (part + 1) * E // parts
        for first in range(part * E // parts, end, step):
            last = min(first + step, end)
            for e in range(first, last):
                at = ids[e] * C
                for c in range(C):
                    y[e * C + c] = x[e * C + c] - top[at + c]
            for i in range(first * C, last * C, W):
                store_partial(y, i, last * C, exp(load_partial(y, i, last * C, 0)))
            for e in range(first, last):
                at = ids[e] * C
                for c in range(C):
                    total[at + c] += y[e * C + c]


@jit
def divide_rows(y, sums, ids, C, team, start, stop):
    """Divide y_e by the sum of its segment."""
    if fork_join(team, start, stop):
        return
    for e in range(start, stop):
        at = ids[e] * C
        for c in range(C):
            y[e * C + c] /= sums[at + c]


@jit
def segment_products(sums, g, y, ids, C, team, start, stop):
    """Write Σ g_e y_e over the rows of segment s in each part to sums[part, s]."""
    if fork_join(team, start, stop):
        return
    E, parts = len(ids), sums.shape[0]
    for part in range(start, stop):
        total = sums[part]
        for e in range(part * E // parts, (part + 1) * E // parts):
            at = ids[e] * C
            for c in range(C):
                total[at + c] += g[e * C + c] * y[e * C + c]


@jit
def gradient_rows(dx, g, y, mean, ids, C, team, start, stop):
    """Compute dx_e = y_e (g_e - mean_s), where s is the segment of e."""
    if fork_join(team, start, stop):
        return
    for e in range(start, stop):
        at = ids[e] * C
        for c in range(C):
            dx[e * C + c] = y[e * C + c] * (g[e * C + c] - mean[at + c])


def number_of_parts(E, n):
    """Return the number of parts for E rows: more if n, the number of segments, is small."""
    least = 2 if E >= SERIAL_ROWS else 1
    return max(least, min(MAX_PARTS, E // max(2 * n, 1)))


def softmax(values, ids, n):
    """Return y_e = exp(x_e - top) / Σ exp(x_e' - top) over the segment, in the shape of values.

    If all values of a segment are -inf, y is 0.
    """
    y, x = empty_pooled(values.shape, values.dtype), ravel(values)
    E, C = len(ids), math.prod(values.shape[1:])
    parts = number_of_parts(E, n)
    flat, work = y.reshape(-1), 4 * y.size
    tops = np.full((parts, n * C), -np.inf, values.dtype)
    parallel_rows(segment_maxima, parts, work, tops, x, ids, C)
    top, sums = tops.max(axis=0), np.zeros((parts, n * C), values.dtype)
    top[np.isneginf(top)] = 0  # where all are -inf, exp gives 0, and so does 0 / 1
    parallel_rows(segment_exponentials, parts, work, flat, sums, x, top, ids, C)
    total = sums.sum(axis=0)
    total[total == 0] = 1
    parallel_rows(divide_rows, E, work, flat, total, ids, C)
    return y


def softmax_backward(g, y, ids, n):
    """Return the gradient of `softmax`, from its result y."""
    dx, C = empty_pooled(y.shape, y.dtype), math.prod(y.shape[1:])
    parts, g, flat = number_of_parts(len(ids), n), ravel(g), ravel(y)
    sums = np.zeros((parts, n * C), y.dtype)
    parallel_rows(segment_products, parts, y.size, sums, g, flat, ids, C)
    mean = sums.sum(axis=0)
    parallel_rows(gradient_rows, len(ids), y.size, dx.reshape(-1), g, flat, mean, ids, C)
    return dx
