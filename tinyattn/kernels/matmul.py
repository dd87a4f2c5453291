"""The product of two matrices, C = A B, in the same threads as all other kernels.

NumPy's product has threads of its own, which go on spinning for a while after each call and keep
the processors from the kernels that come next. Hence this one; it is as fast.

`sums` is the formula. `matmul` cuts C into columns of PANEL numbers: for one of them, DEPTH rows
of B at a time are copied into a panel that stays in the nearest cache while the rows of A pass by.
"""

import numpy as np

from tinyattn.kernels import jit
from tinyattn.kernels.simd import load_until, room, store_until, width
from tinyattn.kernels.threads import share
from tinyattn.kernels.tiles import copy, fill, product, transpose

PANEL = 64  # columns of B and C at a time
DEPTH = 256  # rows of B at a time: 64 · 256 numbers stay in the second cache
HEIGHT = 64  # rows of A at a time, where A must be copied
GROUP = 4  # at most so many panels for one copy of rows of A
BAND = 256  # rows of A at a time: they stay in the next cache while the panels pass by
PIECES = 8  # at least so many pieces of work, if that does not cut the rows too short
ALONE = 8e6  # multiplications below which a second thread costs more than it brings


@jit
def sums(a, b):
    """c_ij = Σ_k a_ik b_kj"""
    M, K = a.shape
    c = np.zeros((M, b.shape[1]), a.dtype)
    for i in range(M):
        for k in range(K):
            for j in range(b.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def matmul(a, b, bias=None):
    """A B, plus bias_j in each row; a [M, K], b [K, N], each with rows or columns in one piece."""
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), a.dtype)
    a, *a_steps = _in_one_piece(a)
    b, *b_steps = _in_one_piece(b)
    bias = np.empty(0, a.dtype) if bias is None else np.require(bias, None, ["C", "W"])
    panels = -(-N // PANEL)
    group = 1 if a_steps[1] == 1 else max(1, min(GROUP, -(-panels // 2)))
    groups = -(-panels // group)
    step = max(HEIGHT, min(BAND, -(-M // -(-PIECES // max(groups, 1)))))
    sizes, tasks = (M, N, K, step, group, groups), groups * -(-M // step)

    def work(start, stop):
        blocks(c.reshape(-1), a, *a_steps, b, *b_steps, bias, *sizes, start, stop)

    share(work, tasks, alone=M * N * K < ALONE)
    return c


def _in_one_piece(x):
    """(memory as one row, step from row to row, step from column to column); one of them is 1."""
    if x.flags.writeable and x.flags.c_contiguous:
        return x.reshape(-1), x.shape[1], 1
    if x.flags.writeable and x.flags.f_contiguous:
        return x.T.reshape(-1), 1, x.shape[0]
    x = np.require(x, None, ["C", "W"])
    return x.reshape(-1), x.shape[1], 1


@jit
def blocks(c, a, a_row, a_col, b, b_row, b_col, bias, M, N, K, step, group, groups, start, stop):
    """One task: `step` rows of one group of panels."""
    one, W = c.dtype.type(1), width(c)
    size = DEPTH * PANEL
    panels, rows_of_a = room(group * size, c), room(HEIGHT * DEPTH, c)
    tile = room(HEIGHT * PANEL, c)
    if N % W > 0:
        fill(panels, 0)  # what lies behind the last column
    for task in range(start, stop):
        j0, i0 = task % groups * PANEL * group, task // groups * step
        i1, j1 = min(i0 + step, M), min(j0 + PANEL * group, N)
        for k0 in range(0, max(K, 1), DEPTH):
            depth, add = min(DEPTH, K - k0), k0 > 0
            for j in range(j0, j1, PANEL):
                own, columns = (j - j0) // PANEL * size, min(PANEL, j1 - j)
                if b_col == 1:
                    copy(panels, own, PANEL, b, k0 * b_row + j, b_row, depth, columns, one)
                else:
                    transpose(panels, own, PANEL, b, j * b_col + k0, b_col, columns, depth, one)
            for i in range(i0, i1, HEIGHT):
                rows, at_a, row = min(HEIGHT, i1 - i), i * a_row + k0, a_row
                source = a
                if a_col != 1:
                    transpose(rows_of_a, 0, DEPTH, a, i + k0 * a_col, a_col, depth, rows, one)
                    source, at_a, row = rows_of_a, 0, DEPTH
                for j in range(j0, j1, PANEL):
                    own, columns, at = (j - j0) // PANEL * size, min(PANEL, j1 - j), i * N + j
                    wide = (columns + W - 1) // W * W
                    out, at_out, out_row = c, at, N
                    if wide > columns:  # whole vectors do not fit C: a tile of its own comes first
                        out, at_out, out_row = tile, 0, PANEL
                        if add:
                            copy(tile, 0, PANEL, c, at, N, rows, columns, one)
                    product(out, at_out, out_row, source, at_a, row, 1, panels, own, PANEL, rows,
                            wide, depth, add)  # fmt: skip
                    if wide > columns:
                        copy(c, at, N, tile, 0, PANEL, rows, columns, one)
        if bias.size:
            for i in range(i0, i1):
                for j in range(j0, j1, W):
                    value = load_until(c, i * N + j, i * N + j1, 0) + load_until(bias, j, j1, 0)
                    store_until(c, i * N + j, i * N + j1, value)
