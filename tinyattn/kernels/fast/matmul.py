"""The product of two matrices, C = A B, in the same threads as all other kernels.

NumPy's product uses its own threads. These threads keep spinning for a while after each call, so
the processors are still busy when the next kernel begins.

kernels/matmul.py has the formula as loops. In this file, B is first packed into column panels, as
wide as a tile (see machine/packing.py). Then blocks of A are packed into row panels, as high as a
tile, and multiplied by some of the panels of B. A panel stays in the L2 cache until all row panels
have been multiplied by it, and each number that is read is used for a whole tile.

Where B is wide, each thread begins with its own group of panels, which it packs and multiplies by
all rows of A, because numbers that another thread has just written take long to read. When its
group is done, it helps with the next one. `counters` contains the remaining work of each group.

Source: Goto and van de Geijn, Anatomy of high-performance matrix multiplication (2008).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.atomics import fetch_add, wait_for
from tinyattn.kernels.machine.compile import helper, jit, noinline
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import alloc_aligned
from tinyattn.kernels.machine.packing import (
    pack,
    packed_product,
    packed_size,
    round_up_to_tile,
)
from tinyattn.kernels.machine.simd import width
from tinyattn.kernels.machine.thread_pool import num_threads, parallel_for
from tinyattn.kernels.machine.tiles import TILE_ROWS, TILES, copy, fill, transpose

MAX_GROUP_COLUMNS = 2048  # columns of B and C that are multiplied by one block of A
MIN_GROUP_COLUMNS = 512  # fewest columns of a group if the threads share the columns
MAX_BLOCK_ROWS, MAX_BLOCK_DEPTH = 192, 1024  # rows and columns of a block of A
MAX_BLOCK_SIZE = 147_456  # largest number of elements in a block of A
# about this many tasks for each group of columns, so that a faster thread can take more of them
MAX_TASKS = 16
# fewest multiplications per task, unless that leaves fewer than two tasks per thread
MIN_TASK_WORK = 2**20
MIN_TASK_ROWS = 4 * TILE_ROWS  # fewest rows of a task
FEW_ROWS = 128  # with up to this many rows, Bᵀ Aᵀ is computed instead if B is much larger than A

# Counters of a group, each in its own cache line.
NEXT_PANEL = 0  # index of the next panel to pack
PANELS_READY = 8  # number of panels that are packed
NEXT_ROWS = 16  # index of the next rows to multiply
COUNTERS = 24


class Blocking(NamedTuple):
    """How a product C [M, N] over K terms is divided into tasks and blocks."""

    M: int
    N: int
    K: int
    panel: int  # columns of a panel
    group: int  # columns of a task
    step: int  # rows of a task
    height: int  # rows and columns of a block of A
    depth: int


class Operand(NamedTuple):
    """A matrix and its memory layout."""

    numbers: np.ndarray
    row: int  # stride from row to row
    column: int  # stride from column to column, where one of the two strides is 1


def matmul(a, b, bias=None):
    """Return A B, plus bias_j in each row, for a [M, K] and b [K, N]."""
    (M, K), N = a.shape, b.shape[1]
    upright = a.flags.c_contiguous or not b.flags.c_contiguous
    if M <= FEW_ROWS and 2 * M < N < K and not upright and bias is None:
        return transposed(matmul(b.T, a.T))  # with few rows, packing B would take too long
    dtype, a, b = a.dtype, _operand(a), _operand(b)
    bias = np.empty(0, dtype) if bias is None else ravel(bias)
    threads = 1 if M * N * K <= thresholds.MATMUL else num_threads()
    n, groups, size = plan(M, N, K, width(bias), threads)
    counters, c = np.zeros(COUNTERS * groups, np.int64), empty_pooled((M, N), dtype)
    arrays = c.reshape(-1), a, b, bias, np.empty(size, dtype), counters
    parallel_for(run_tasks, threads, *arrays, n, threads)
    return c


@lru_cache(4096)
def plan(M, N, K, W, threads):
    """Return (the `Blocking` as a tuple, number of groups, size of the packed panels) of a product.

    W is the number of numbers in a vector.
    """
    n = choose_blocking(M, N, K, W, threads)
    # 16 more, so that the start can be aligned to a cache line
    size = -(-N // n.panel) * n.panel * K + 16
    return tuple(n), -(-N // n.group), size


def choose_blocking(M, N, K, W, threads):
    """Return the `Blocking`, with a group for each thread, or more if there would be few tasks.

    If groups would be narrow, all threads share one, because each thread packs A for itself, which
    is worthwhile only for many columns. W is the number of numbers in a vector.
    """
    panel = TILES[0][0] * W
    pieces = max(2 * threads, min(MAX_TASKS, M * N * K // MIN_TASK_WORK)) if threads > 1 else 1
    panels, row_blocks = max(1, -(-N // panel)), max(1, min(pieces, M // MIN_TASK_ROWS))
    groups = max(
        -(-N // MAX_GROUP_COLUMNS),
        min(N // MIN_GROUP_COLUMNS, threads),
        min(panels, -(-pieces // row_blocks)),
    )
    row_blocks = min(row_blocks, -(-pieces * threads // groups))
    group, step = (
        -(-panels // groups) * panel,
        max(1, -(-M // (row_blocks * TILE_ROWS))) * TILE_ROWS,
    )
    return Blocking(M, N, K, panel, group, step, *block_of_a(step, K))


def block_of_a(rows, K):
    """Return (height, depth) of the blocks into which some rows of A are divided about equally."""
    depth = -(-K // max(1, -(-K // MAX_BLOCK_DEPTH)))
    height = min(MAX_BLOCK_ROWS, MAX_BLOCK_SIZE // max(depth, 1) // TILE_ROWS * TILE_ROWS)
    return -(-rows // (-(-rows // height) * TILE_ROWS)) * TILE_ROWS, depth


def transposed(x):
    """Return a contiguous copy of xᵀ."""
    out = np.empty(x.shape[::-1], x.dtype)
    transpose_matrix(out.reshape(-1), x.reshape(-1), *x.shape)
    return out


def _operand(x):
    """Return the `Operand` of x, as a tuple."""
    if x.flags.writeable and x.flags.c_contiguous:
        return x.reshape(-1), x.shape[1], 1
    if x.flags.writeable and x.flags.f_contiguous:
        return x.T.reshape(-1), 1, x.shape[0]
    x = np.require(x, None, ["C", "W"])
    return x.reshape(-1), x.shape[1], 1


@jit
def transpose_matrix(out, x, rows, columns):
    """Write xᵀ [columns, rows] to `out`."""
    transpose(out, 0, rows, x, 0, columns, rows, columns, x.dtype.type(1))


@jit
def run_tasks(c, a, b, bias, packed, counters, n, threads, team, start, stop):
    """Do the work of one thread. In each group, pack panels first, then multiply rows by them.

    An item is a thread, and the counters decide which panels and rows it takes.
    """
    if fork_join(team, start, stop):
        return
    a, b, n, groups = Operand(*a), Operand(*b), Blocking(*n), counters.size // COUNTERS
    packed = packed[-packed.ctypes.data % 64 // packed.itemsize :]  # a cache line has 64 bytes
    packed_a = alloc_aligned(packed_size(n.height, n.depth, width(c)), c)
    tile = alloc_aligned(n.height * n.panel, c)
    for later in range(groups):  # each thread starts with a different group
        group = (start * groups // threads + later) % groups
        j0, j1, at = group * n.group, min((group + 1) * n.group, n.N), group * COUNTERS
        first, panels = j0 // n.panel, (j1 - j0 + n.panel - 1) // n.panel
        p = fetch_add(counters, at + NEXT_PANEL, 1)
        while p < panels:
            pack_panel(packed, b, n, first + p)
            fetch_add(counters, at + PANELS_READY, 1)
            p = fetch_add(counters, at + NEXT_PANEL, 1)
        i0 = fetch_add(counters, at + NEXT_ROWS, n.step)
        while i0 < n.M:
            wait_for(counters, at + PANELS_READY, panels)
            i1 = min(i0 + n.step, n.M)
            multiply_block(c, a, packed, bias, packed_a, tile, n, i0, i1, j0, j1)
            i0 = fetch_add(counters, at + NEXT_ROWS, n.step)


@helper
def pack_panel(packed, b, n, p):
    """Copy panel p of B, so that its element (k, j) is at packed[(p · K + k) · panel + j]."""
    noinline()
    if n.K == 0:
        return
    j, one = p * n.panel, packed.dtype.type(1)
    columns = min(n.panel, n.N - j)
    if columns < n.panel:  # zeros after the last column
        fill(packed[j * n.K : (j + n.panel) * n.K], 0)
    if b.column == 1:
        copy(packed, j * n.K, n.panel, b.numbers, j, b.row, n.K, columns, one)
    else:
        at = j * b.column
        transpose(packed, j * n.K, n.panel, b.numbers, at, b.column, columns, n.K, one)


@helper
def multiply_block(c, a, packed, bias, packed_a, tile, n, i0, i1, j0, j1):
    """Compute rows i0 … i1 - 1 of C in the columns j0 … j1 - 1, from A and the packed B."""
    noinline()
    one, W, N = c.dtype.type(1), width(c), n.N
    for k0 in range(0, max(n.K, 1), max(n.depth, 1)):
        depth, add = min(n.depth, n.K - k0), k0 > 0 or bias.size > 0
        for i in range(i0, i1, n.height):
            rows = min(n.height, i1 - i)
            at = i * a.row + k0 * a.column
            pack(packed_a, a.numbers, at, a.row, a.column, rows, depth)
            high = round_up_to_tile(rows)
            for j in range(j0, j1, n.panel):
                columns, at = min(n.panel, j1 - j), i * N + j
                wide = (columns + W - 1) // W * W
                out, at_out, out_row = c, at, N
                onto, at_onto, onto_row = (c, at, N) if k0 > 0 else (bias, j, 0)
                ragged = high > rows or wide > columns
                # C has no room for whole panels or vectors, so they are written to a tile first
                if ragged:
                    out, at_out, out_row = tile, 0, n.panel
                    if add:
                        copy(tile, 0, n.panel, onto, at_onto, onto_row, rows, columns, one)
                    onto, at_onto, onto_row = out, at_out, out_row
                packed_product(
                    out,
                    at_out,
                    out_row,
                    onto,
                    at_onto,
                    onto_row,
                    packed_a,
                    packed,
                    j * n.K + k0 * n.panel,
                    high,
                    wide,
                    depth,
                    add,
                )
                if ragged:
                    copy(c, at, N, tile, 0, n.panel, rows, columns, one)
