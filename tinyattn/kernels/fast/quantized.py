"""The product with a quantized matrix, which is never unpacked as a whole.

`raw` contains the bytes of all blocks, row by row. A row of C numbers consists of C / 32 blocks.

    Q4_1   20 bytes: d and m as float16, 32 numbers q of 4 bits;   w = d q + m
    Q8_0   34 bytes: d as float16, 32 numbers q of 8 bits;         w = d q

For one row of x, all sums are computed from blocks in registers. Compared with float32, a sixth of
the data is read from memory, or a quarter with 8 bits. This matters because generation spends most
of its time reading weights. For several rows of x, some rows of the matrix are unpacked into the
nearest cache, and used for all of them.
"""

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import helper, jit, noinline
from tinyattn.kernels.machine.dot_products import TILE_COLUMNS, dot_products
from tinyattn.kernels.machine.fork_join import fork_join, runtime_zero
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import alloc_aligned, load, store
from tinyattn.kernels.machine.low_precision import (
    copy_two_float16,
    load_bytes,
    load_float16,
    load_high_halves,
    load_low_halves,
    load_signed_bytes,
)
from tinyattn.kernels.machine.prefetch import prefetch
from tinyattn.kernels.machine.simd import broadcast, fma, hsum, width
from tinyattn.kernels.machine.thread_pool import parallel_for, parallel_region

Q4_1, Q8_0 = 20, 34  # the kind of blocks is the number of their bytes
ROWS = 2 * TILE_COLUMNS  # rows of the matrix that are unpacked together
MIN_MULTIPLICATIONS_PER_CHUNK = 24_000
# Weights are prefetched this many bytes ahead. The processor itself prefetches only up to the end
# of a page; between 3,000 and 32,000 bytes, the distance made no difference.
AHEAD = 8192


def product(x, raw):
    """Return x Wᵀ for x [M, C] and the bytes of W, raw [N, C / 32, bytes of a block]."""
    (M, C), (N, _, kind) = x.shape, raw.shape
    y = empty_pooled((M, N), x.dtype)
    arrays, serial = (y.reshape(-1), ravel(x), raw.reshape(-1)), M * N * C <= thresholds.MATVEC
    parallel_region(block_product, *arrays, kind, M, N, C, serial=serial)
    return y


def unpacked(raw, dtype):
    """Return W [N, C] from raw [N, C / 32, bytes of a block]."""
    N, blocks, kind = raw.shape
    w = empty_pooled((N, 32 * blocks), dtype)
    parallel_for(unpack_rows, N, w.reshape(-1), raw.reshape(-1), kind, blocks)
    return w


@jit
def block_product(y, x, raw, kind, M, N, C, team):
    """Compute y = x Wᵀ, with the rows of the matrix divided among the team."""
    noinline()
    sum_x, pairs = alloc_aligned(C // 32, y), alloc_aligned(C, y)
    prepare(sum_x, pairs, x, M)
    tiles = (N + ROWS - 1) // ROWS
    items = max(1, min(M * N * C // MIN_MULTIPLICATIONS_PER_CHUNK, tiles))
    block_rows(y, x, sum_x, pairs, raw, kind, M, N, C, items, team, runtime_zero(), items)


@helper
def block_rows(y, x, sum_x, pairs, raw, kind, M, N, C, items, team, start, stop):
    """Compute y = x Wᵀ for the rows of W that belong to items start … stop - 1 of `items`."""
    noinline()
    if fork_join(team, start, stop):
        return
    tiles = (N + ROWS - 1) // ROWS
    j0, j1 = start * tiles // items * ROWS, min(stop * tiles // items * ROWS, N)
    some_rows(y, x, sum_x, pairs, raw, kind, M, N, C, j0, j1)


@helper
def prepare(sum_x, pairs, x, M):
    """Prepare x [C] for `q4_1_sums`, once for all rows of a matrix. For M > 1, nothing is needed.

    sum_x are the sums Σ_i x_bi of the blocks. A byte of a block contains two numbers, byte_i = q_i
    + 16 q_(16+i). The following identity uses the whole byte, so the upper number need not be
    extracted:

        q_i x_i + q_(16+i) x_(16+i) = q_i (x_i - x_(16+i) / 16) + byte_i x_(16+i) / 16

    Therefore, a block of `pairs` consists of the 16 numbers x_i - x_(16+i) / 16, followed by the 16
    numbers x_(16+i) / 16.
    """
    W, sixteenth = width(x), x.dtype.type(1 / 16)
    for b in range(sum_x.size if M == 1 else 0):
        sums = broadcast(x, 0)
        for i in range(32 * b, 32 * b + 16, W):
            low, high = load(x, i), load(x, i + 16)
            sums = sums + low + high
            store(pairs, i + 16, high * sixteenth)
            store(pairs, i, low - high * sixteenth)
        sum_x[b] = hsum(sums)


@helper
def some_rows(y, x, sum_x, pairs, raw, kind, M, N, C, j0, j1):
    """Compute columns j0 … j1 - 1 of y [M, N], from rows j0 … j1 - 1 of the matrix."""
    noinline()
    if M == 1:
        if kind == Q4_1:
            q4_1_sums(y, sum_x, pairs, raw, C // 32, j0, j1)
        else:
            q8_0_sums(y, x, raw, C // 32, j0, j1)
        return
    w = alloc_aligned(ROWS * C, y)
    for j in range(j0, j1, ROWS):
        rows = min(ROWS, j1 - j)
        unpack(w, raw, kind, j * (C // 32), rows * (C // 32))
        dot_products(y, j, N, x, 0, C, w, 0, C, M, rows, C)


@jit
def unpack_rows(w, raw, kind, blocks, team, start, stop):
    """Unpack rows start … stop - 1 of W, each of which has `blocks` blocks."""
    if fork_join(team, start, stop):
        return
    unpack(w[32 * start * blocks :], raw, kind, start * blocks, (stop - start) * blocks)


@helper
def q4_1_sums(y, sum_x, pairs, raw, n, j0, j1):
    """Compute y_j = Σ_b (d_jb Σ_i q_jbi x_bi + m_jb Σ_i x_bi) for rows j0 … j1 - 1 of n blocks.

    Two rows j and k are computed at a time, so each number of x is read once for both. `prepare`
    explains sum_x and pairs.
    """
    noinline()
    W, zero, scales = width(y), y.dtype.type(0), alloc_aligned(4 * n, y)
    for j in range(j0, j1, 2):
        k = min(j + 1, j1 - 1)  # if no row is left, repeat the last one
        row, other = j * n * Q4_1, k * n * Q4_1
        for b in range(n):  # d and m of both rows
            copy_two_float16(raw, row + b * Q4_1, scales, 4 * b)
            copy_two_float16(raw, other + b * Q4_1, scales, 4 * b + 2)
        sums_j, sums_k, offset_j, offset_k = broadcast(y, 0), broadcast(y, 0), zero, zero
        for b in range(n):
            prefetch(raw, row + b * 2 * Q4_1 + AHEAD)  # the two rows follow each other
            d_j, d_k = broadcast(y, scales[4 * b]), broadcast(y, scales[4 * b + 2])
            offset_j += scales[4 * b + 1] * sum_x[b]
            offset_k += scales[4 * b + 3] * sum_x[b]
            qx_j, qx_k = broadcast(y, 0), broadcast(y, 0)
            for i in range(0, 16, W):
                of_low, of_bytes = load(pairs, 32 * b + i), load(pairs, 32 * b + 16 + i)
                at = row + b * Q4_1 + 4 + i
                qx_j = fma(load_bytes(raw, at, y), of_bytes, qx_j)
                qx_j = fma(load_low_halves(raw, at, y), of_low, qx_j)
                at = other + b * Q4_1 + 4 + i
                qx_k = fma(load_bytes(raw, at, y), of_bytes, qx_k)
                qx_k = fma(load_low_halves(raw, at, y), of_low, qx_k)
            sums_j, sums_k = fma(d_j, qx_j, sums_j), fma(d_k, qx_k, sums_k)
        y[j], y[k] = hsum(sums_j) + offset_j, hsum(sums_k) + offset_k


@helper
def q8_0_sums(y, x, raw, n, j0, j1):
    """Compute y_j = Σ_b d_jb Σ_i q_jbi x_bi for rows j0 … j1 - 1 of n blocks each."""
    noinline()
    W = width(y)
    for j in range(j0, j1):
        sums = broadcast(y, 0)
        for b in range(n):
            at, qx = (j * n + b) * Q8_0, broadcast(y, 0)
            prefetch(raw, at + AHEAD)
            for i in range(0, 32, W):
                qx = fma(load_signed_bytes(raw, at + 2 + i, y), load(x, 32 * b + i), qx)
            sums = fma(broadcast(y, load_float16(raw, at, y)), qx, sums)
        y[j] = hsum(sums)


@helper
def unpack(w, raw, kind, first, n):
    """Write the numbers of n blocks from block `first` on to w."""
    noinline()
    W = width(w)
    for b in range(n):
        at = (first + b) * kind
        d = broadcast(w, load_float16(raw, at, w))
        if kind == Q4_1:
            m = broadcast(w, load_float16(raw, at + 2, w))
            for i in range(0, 16, W):
                store(w, 32 * b + i, d * load_low_halves(raw, at + 4 + i, w) + m)
                store(w, 32 * b + 16 + i, d * load_high_halves(raw, at + 4 + i, w) + m)
        else:
            for i in range(0, 32, W):
                store(w, 32 * b + i, d * load_signed_bytes(raw, at + 2 + i, w))
