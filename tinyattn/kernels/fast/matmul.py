"""The product of two matrices, C = A B, in the same threads as all other kernels.

NumPy's product has threads of its own, which go on spinning for a while after each call and keep
the processors from the kernels that come next. Hence this one.

kernels/matmul.py has the formula as loops. Here B is first copied into panels, as wide as a tile,
with their rows one behind the other. Then slices of A are copied into strips, as high as a tile,
and multiplied with slices of some panels: a panel stays in the second cache until all strips have
met it, and each number that is read serves a whole tile.

Where B is wide, each thread begins with a group of panels of its own, which it copies and
multiplies with all rows of A: what another thread has just written takes long to read. When its
group is done it helps with the next one. `signals` says what is left to do in each group.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tinyattn.kernels import helper, jit
from tinyattn.kernels.machine.atomics import fetch_add, wait_for
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.layout import row_of
from tinyattn.kernels.machine.packing import product_of_strips, size_of_strips, strips, whole_strips
from tinyattn.kernels.machine.simd import once, room, width
from tinyattn.kernels.machine.thread_pool import number, share
from tinyattn.kernels.machine.tiles import TALL, TILES, copy, fill, transpose
from tinyattn.memory import empty

GROUP = 2048  # at most so many columns of B and C are multiplied with a slice of A in turn
WIDE = 512  # columns of a group, at least, for a thread to have one of its own
HIGH, DEEP = 192, 1024  # rows and columns of a slice of A, at most
SLICE = 147_456  # numbers of a slice, at most
PIECES = 16  # about so many pieces of work for all threads
LEAST = 8 * TALL  # rows of a piece, at least
FEW = 128  # up to so many rows A is copied into panels instead, where B is much larger
ALONE = 3e6  # multiplications below which a second thread costs more than it brings

# counters of a group, each in a line of memory of its own
PANEL, READY, BAND = 0, 8, 16  # the next panel to copy, panels that can be used, the next rows
COUNTERS = 24


class Cut(NamedTuple):
    """How a product C [M, N] over K terms is cut into pieces."""

    M: int
    N: int
    K: int
    panel: int  # columns of C
    group: int  # columns of a task
    step: int  # rows of a task
    height: int  # rows and columns of a slice of A
    depth: int


def matmul(a, b, bias=None):
    """A B, plus bias_j in each row; a [M, K], b [K, N], each with rows or columns in one piece."""
    (M, K), N = a.shape, b.shape[1]
    upright = a.flags.c_contiguous or not b.flags.c_contiguous
    if M <= FEW and 2 * M < N < K and not upright and bias is None:
        return turned(matmul(b.T, a.T))  # panels of B would be copied for few rows
    a, *a_steps = _in_one_piece(a)
    b, *b_steps = _in_one_piece(b)
    bias = np.empty(0, a.dtype) if bias is None else row_of(bias)
    threads = 1 if M * N * K <= ALONE else number()
    n, groups, size = plan(M, N, K, width(a), threads)
    signals, c = np.zeros(COUNTERS * groups, np.int64), empty((M, N), a.dtype)
    arrays = c.reshape(-1), a, *a_steps, b, *b_steps, bias, np.empty(size, a.dtype), signals
    share(tasks_in_turn, threads, *arrays, n, threads)
    return c


@lru_cache(4096)
def plan(M, N, K, W, threads):
    """(the numbers of the `Cut`, groups, numbers of the panels) of a product."""
    n = cut(M, N, K, W, threads)
    size = -(-N // n.panel) * n.panel * K + 16  # 16 more: to begin with a line
    return tuple(n), -(-N // n.group), size


def cut(M, N, K, W, threads):
    """The `Cut` of a product: a group for each thread, more if the rows make too few tasks.

    All threads share a group where it would be narrow: each copies A for itself, and the copy
    must serve many columns.
    """
    panel, pieces = TILES[0][0] * W, PIECES if threads > 1 else 1
    panels, bands = max(1, -(-N // panel)), max(1, min(pieces, M // LEAST))
    groups = max(-(-N // GROUP), min(N // WIDE, threads), min(panels, -(-pieces // bands)))
    bands = min(bands, -(-pieces * threads // groups))
    group, step = -(-panels // groups) * panel, max(1, -(-M // (bands * TALL))) * TALL
    return Cut(M, N, K, panel, group, step, *slice_of(step, K))


def slice_of(rows, K):
    """(height, depth) of the slices of some rows of A, all about alike."""
    depth = -(-K // max(1, -(-K // DEEP)))
    height = min(HIGH, SLICE // max(depth, 1) // TALL * TALL)
    return -(-rows // (-(-rows // height) * TALL)) * TALL, depth


def turned(x):
    """x^T in one piece."""
    out = np.empty(x.shape[::-1], x.dtype)
    turn(out.reshape(-1), x.reshape(-1), *x.shape)
    return out


def _in_one_piece(x):
    """(memory as one row, step from row to row, step from column to column); one of them is 1."""
    if x.flags.writeable and x.flags.c_contiguous:
        return x.reshape(-1), x.shape[1], 1
    if x.flags.writeable and x.flags.f_contiguous:
        return x.T.reshape(-1), 1, x.shape[0]
    x = np.require(x, None, ["C", "W"])
    return x.reshape(-1), x.shape[1], 1


@jit
def turn(out, x, rows, columns):
    """out [columns, rows] = x^T"""
    transpose(out, 0, rows, x, 0, columns, rows, columns, x.dtype.type(1))


@jit
def tasks_in_turn(
    c, a, a_row, a_col, b, b_row, b_col, bias, packed, signals, n, threads, team, start, stop
):
    """What one thread does: in each group first panels are packed, then `step` rows multiplied.

    An item is a thread; which tasks it does shows only here.
    """
    if together(team, start, stop):
        return
    n, groups = Cut(*n), signals.size // COUNTERS
    packed = packed[-packed.ctypes.data % 64 // packed.itemsize :]  # lines have 64 bytes
    slice_of_a = room(size_of_strips(n.height, n.depth, width(c)), c)
    tile = room(n.height * n.panel, c)
    for later in range(groups):  # each thread begins with another one
        group = (start * groups // threads + later) % groups
        j0, j1, at = group * n.group, min((group + 1) * n.group, n.N), group * COUNTERS
        first, panels = j0 // n.panel, (j1 - j0 + n.panel - 1) // n.panel
        p = fetch_add(signals, at + PANEL, 1)
        while p < panels:
            pack(packed, b, b_row, b_col, n, first + p)
            fetch_add(signals, at + READY, 1)
            p = fetch_add(signals, at + PANEL, 1)
        i0 = fetch_add(signals, at + BAND, n.step)
        while i0 < n.M:
            wait_for(signals, at + READY, panels)
            i1 = min(i0 + n.step, n.M)
            block(c, a, a_row, a_col, packed, bias, slice_of_a, tile, n, i0, i1, j0, j1)
            i0 = fetch_add(signals, at + BAND, n.step)


@helper
def pack(packed, b, b_row, b_col, n, p):
    """Copies the columns of panel p: its (k, j) is at packed[(p K + k) · panel + j]."""
    once()
    if n.K == 0:
        return
    j, one = p * n.panel, packed.dtype.type(1)
    columns = min(n.panel, n.N - j)
    if columns < n.panel:  # what lies behind the last column
        fill(packed[j * n.K : (j + n.panel) * n.K], 0)
    if b_col == 1:
        copy(packed, j * n.K, n.panel, b, j, b_row, n.K, columns, one)
    else:
        transpose(packed, j * n.K, n.panel, b, j * b_col, b_col, columns, n.K, one)


@helper
def block(c, a, a_row, a_col, packed, bias, slice_of_a, tile, n, i0, i1, j0, j1):
    """Rows i0 … i1, columns j0 … j1 of C."""
    once()
    one, W, N = c.dtype.type(1), width(c), n.N
    for k0 in range(0, max(n.K, 1), max(n.depth, 1)):
        depth, add = min(n.depth, n.K - k0), k0 > 0 or bias.size > 0
        for i in range(i0, i1, n.height):
            rows = min(n.height, i1 - i)
            strips(slice_of_a, a, i * a_row + k0 * a_col, a_row, a_col, rows, depth)
            high = whole_strips(rows)
            for j in range(j0, j1, n.panel):
                columns, at = min(n.panel, j1 - j), i * N + j
                wide = (columns + W - 1) // W * W
                out, at_out, out_row = c, at, N
                onto, at_onto, onto_row = (c, at, N) if k0 > 0 else (bias, j, 0)
                ragged = high > rows or wide > columns
                if ragged:  # whole strips or vectors do not fit C: a tile of its own comes first
                    out, at_out, out_row = tile, 0, n.panel
                    if add:
                        copy(tile, 0, n.panel, onto, at_onto, onto_row, rows, columns, one)
                    onto, at_onto, onto_row = out, at_out, out_row
                product_of_strips(out, at_out, out_row, onto, at_onto, onto_row, slice_of_a, packed,
                                  j * n.K + k0 * n.panel, high, wide, depth, add)  # fmt: skip
                if ragged:
                    copy(c, at, N, tile, 0, n.panel, rows, columns, one)
