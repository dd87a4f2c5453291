"""Gather rows by their indices, add rows to the rows with given indices (scatter), sum all rows.

Arrays of rows have one axis, with C numbers per row. `segment_sum` in kernels/segment.py scatters
rows as a loop, and its backward function gathers them.
"""

import numpy as np

from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.fast.rowwise import parallel_rows
from tinyattn.kernels.machine import thread_pool
from tinyattn.kernels.machine.compile import jit
from tinyattn.kernels.machine.fork_join import chunk_start, fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load, store
from tinyattn.kernels.machine.prefetch import fence, store_nontemporal, use_nontemporal
from tinyattn.kernels.machine.simd import width
from tinyattn.kernels.machine.thread_pool import parallel_for


@jit
def add_columns(y, rows, ids, C, parts, team, start, stop):
    """Add rows_e to y[ids_e] in the columns of parts start … stop - 1.

    One thread computes each sum, in the order of e. The rows are read once from front to back,
    which is fast. Only y, which is usually smaller, is accessed in random order.
    """
    if fork_join(team, start, stop):
        return
    W = width(y)
    low, high = chunk_start(C, W, start, parts), chunk_start(C, W, stop, parts)
    whole = low + (high - low) // W * W
    for e in range(len(ids)):
        at, row = ids[e] * C, e * C
        for i in range(low, whole, W):
            store(y, at + i, load(y, at + i) + load(rows, row + i))
        for i in range(whole, high):
            y[at + i] += rows[row + i]


@jit
def take(y, rows, ids, C, stream, team, start, stop):
    """Compute y_e = rows[ids_e] for e = start … stop - 1."""
    if fork_join(team, start, stop):
        return
    W = width(y)
    for e in range(start, stop):
        at, row = e * C, ids[e] * C
        for i in range(0, C // W * W, W):
            if stream:
                store_nontemporal(y, at + i, load(rows, row + i))
            else:
                store(y, at + i, load(rows, row + i))
        for i in range(C // W * W, C):
            y[at + i] = rows[row + i]
    if stream:
        fence()


@jit
def sum_columns(y, rows, n, C, parts, team, start, stop):
    """Add Σ_e rows_e, the sum of n rows, to y in the columns of parts start … stop - 1."""
    if fork_join(team, start, stop):
        return
    W = width(y)
    low, high = chunk_start(C, W, start, parts), chunk_start(C, W, stop, parts)
    whole, fours = low + (high - low) // W * W, n // 4 * 4
    # four rows at a time, so that y is read and written less often
    for e in range(0, fours * C, 4 * C):
        for i in range(low, whole, W):
            two = load(y, i) + load(rows, e + i) + load(rows, e + C + i)
            store(y, i, two + load(rows, e + 2 * C + i) + load(rows, e + 3 * C + i))
    for e in range(fours * C, n * C, C):
        for i in range(low, whole, W):
            store(y, i, load(y, i) + load(rows, e + i))
    for i in range(whole, high):
        for e in range(0, n * C, C):
            y[i] += rows[e + i]


def sum_rows(rows):
    """Return Σ_e rows_e of rows [n, C]."""
    n, C = rows.shape
    y = np.zeros(C, rows.dtype)
    parts = max(1, min(thread_pool.num_threads(), C // width(y)))
    parallel_for(
        sum_columns, parts, y, ravel(rows), n, C, parts, serial=rows.size < thresholds.ROWWISE
    )
    return y


def add_rows(y, rows, ids):
    """Add rows_e to y[ids_e], for contiguous y [n, ...], rows [E, ...] and ids [E] int64 < n."""
    C = rows.size // max(len(ids), 1)
    parts = max(1, min(thread_pool.num_threads(), C // width(y)))
    arrays = y.reshape(-1), ravel(rows), ids
    parallel_for(add_columns, parts, *arrays, C, parts, serial=rows.size < thresholds.ROWWISE)


def take_rows(y, rows, ids):
    """Write rows[ids_e] to y_e, for y [E, ...], rows [n, ...] and ids [E] int64 < n."""
    C = y.size // max(len(ids), 1)
    parallel_rows(take, len(ids), y.size, y.reshape(-1), ravel(rows), ids, C, use_nontemporal(y, C))
