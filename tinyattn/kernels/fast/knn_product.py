"""The k nearest neighbours among points of many features, by matrix products.

    d²_ij / 2 = |x_i|² / 2 + |x_j|² / 2 - x_i·x_j

The products of 64 points with 64 others are one small matrix product, which processors compute very
fast. But if d² is close to 0, the three terms cancel, and the result is mostly rounding error.
Therefore, this formula only selects the candidates that are not farther than the k-th nearest so
far plus twice the largest rounding error. The distances of the candidates are then computed from
differences, and these distances decide.

Each term is at most R², where R is the largest distance of a point from the mean of the cloud, and
undergoes about D + 8 roundings of relative size ε/2. `fill` computes the resulting error bound.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.engine.memory import aligned
from tinyattn.kernels.fast.candidate_list import (
    INSERTION_PLACES,
    clear_lists,
    find_limit,
    insert,
    pad_end,
    sort,
    tolerance,
    upper_bound,
)
from tinyattn.kernels.machine.compile import helper_no_fma, jit_no_fma, noinline
from tinyattn.kernels.machine.compress import compress_less_equal
from tinyattn.kernels.machine.distances import add_squares
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.load_store import (
    alloc_aligned,
    load,
    load_partial,
    store,
    store_partial,
)
from tinyattn.kernels.machine.simd import broadcast, hmax, maximum, width
from tinyattn.kernels.machine.thread_pool import parallel_for
from tinyattn.kernels.machine.tiles import fill as set_all
from tinyattn.kernels.machine.tiles import product, transpose

BLOCK = 64  # number of points that are multiplied together


class Blocks(NamedTuple):
    """The points of each cloud in blocks of 64 points, one feature after the other.

    Feature d of point t of block b is points[(b · D + d) · 64 + t].
    """

    points: np.ndarray  # points minus the mean of their cloud, with 0 after the last point
    half: np.ndarray  # [blocks · 64], |x|² / 2, with inf after the last point
    rows: np.ndarray  # [blocks · 64] int32, the row of x
    size: np.ndarray  # [blocks]
    cloud: np.ndarray  # [blocks]
    block: np.ndarray  # [clouds + 1], index of the first block of each cloud
    margin: np.ndarray  # [clouds], allowed excess of a candidate over the k-th distance


def blocks(x, offsets):
    """Return the `Blocks` of the points x [N, D]."""
    D = x.shape[1]
    number = -(-np.diff(offsets) // BLOCK)
    first = np.concatenate([[0], np.cumsum(number)])
    B = int(first[-1])
    b = Blocks(
        aligned(B * D * BLOCK, x.dtype),
        aligned(B * BLOCK, x.dtype),
        np.zeros(B * BLOCK, np.int32),
        np.zeros(B, np.int64),
        np.repeat(np.arange(len(number)), number),
        first,
        np.zeros(len(number), x.dtype),
    )
    parallel_for(fill, len(number), b, x.reshape(-1), offsets)
    return b


@jit_no_fma
def fill(b, x, offsets, team, first, last):
    """Fill the `Blocks` b for the clouds first … last - 1, each of which is a task."""
    if fork_join(team, first, last):
        return
    D, W, one = len(b.points) // len(b.half), width(x), x.dtype.type(1)
    mean, rows = alloc_aligned(D, x), alloc_aligned(BLOCK * D, x)
    for c in range(first, last):
        start, stop, longest = offsets[c], offsets[c + 1], x.dtype.type(0)
        part = one / x.dtype.type(max(stop - start, 1))
        for d in range(0, D, W):  # an approximate mean; any point inside the cloud would do
            total = broadcast(x, 0)
            for i in range(start, stop):
                total = total + load_partial(x, i * D + d, (i + 1) * D, 0) * part
            store_partial(mean, d, D, total)
        for l in range(b.block[c], b.block[c + 1]):
            i = start + (l - b.block[c]) * BLOCK
            size, own = min(BLOCK, stop - i), l * D * BLOCK
            b.size[l] = size
            for t in range(size):
                for d in range(0, D, W):
                    v = load_partial(x, (i + t) * D + d, (i + t + 1) * D, 0)
                    store_partial(rows, t * D + d, (t + 1) * D, v - load_partial(mean, d, D, 0))
            if size < BLOCK:
                set_all(b.points[own : own + D * BLOCK], 0)
            transpose(b.points, own, BLOCK, rows, 0, D, size, D, one)
            for t in range(0, BLOCK, W):
                total = broadcast(x, 0)
                for d in range(D):
                    v = load(b.points, own + d * BLOCK + t)
                    total = total + v * v
                store(b.half, l * BLOCK + t, total * x.dtype.type(0.5))
                longest = max(longest, hmax(total))
            for t in range(BLOCK):
                b.rows[l * BLOCK + t] = i + t if t < size else 0
            for t in range(size, BLOCK):
                b.half[l * BLOCK + t] = np.inf
        info = np.finfo(x.dtype)  # near 0, rounding errors are as large as the smallest number
        b.margin[c] = 4 * (D + 8) * (info.eps * longest + info.eps * info.tiny)


@helper_no_fma
def prune_with_margin(dist, ids, o, n, k, limit, margin):
    """Keep all entries up to the k-th distance plus `margin`. Return (their number, new limit)."""
    noinline()
    if n < k:
        return n, limit
    pad_end(dist, o, n)
    nearly = limit if limit == np.inf else limit - margin
    limit, end = find_limit(dist, o, n, k, nearly) + margin, 0
    for i in range(0, n, width(dist)):
        end += compress_less_equal(dist, ids, o + end, load(dist, o + i), ids, o + i, limit)
    return end, limit


@helper_no_fma
def exact_distances(dist, ids, o, n, x, i, D):
    """Write the exact d² of point i and each candidate to dist, computed from differences.

    The list must have room for two more vectors.
    """
    noinline()
    W = width(dist)
    end = (n + 2 * W - 1) // (2 * W) * (2 * W)
    for m in range(n, end):
        ids[o + m] = i
    # two vectors at a time, because their sums are independent
    for m in range(o, o + end, 2 * W):
        total, other = broadcast(dist, dist.dtype.type(0)), broadcast(dist, dist.dtype.type(0))
        for f in range(0, D, W):
            total = add_squares(total, x, i, ids, m, f, D)
            other = add_squares(other, x, i, ids, m + W, f, D)
        store(dist, m, total)
        store(dist, m + W, other)


@helper_no_fma
def approximate_distances(b, tile, l, q, other, t):
    """Return approximately d²/2 from point q of block l to points t, t + 1, … of block `other`."""
    own, theirs = b.half[l * BLOCK + q], load(b.half, other * BLOCK + t)
    return maximum(theirs + own - load(tile, q * BLOCK + t), broadcast(tile, tile.dtype.type(0)))


@helper_no_fma
def initial_limits(limit, best, b, tile, l, k):
    """Set, for each point of block l, a limit within which there are k points of l, or inf."""
    for t in range(0, b.size[l], width(tile)):
        clear_lists(best, k)
        for j in range(b.size[l] if b.size[l] >= k else 0):
            insert(
                best, k, j, approximate_distances(b, tile, l, j, l, t)
            )  # distances from j to the others are those from them to j
        store(limit, t, upper_bound(best, k) + b.margin[b.cloud[l]])


@jit_no_fma
def search(index, d2, overflow, x, b, k, team, first, last):
    """Compare the points of a block (a task) with all blocks of its cloud, itself first.

    If a point has so many nearly equal candidates that its list is full, overflow[block] becomes
    true, and the results for this block are not valid.
    """
    if fork_join(team, first, last):
        return
    D, W = len(b.points) // len(b.half), width(b.points)
    slack = tolerance(k) + max(k // 2, 32)
    most = 2 * k + 192
    size = most + slack + BLOCK + 2 * W
    dist, ids = alloc_aligned(BLOCK * size, b.points), np.empty(BLOCK * size, np.int32)
    tile, limit = alloc_aligned(BLOCK * BLOCK, b.points), alloc_aligned(BLOCK, b.points)
    n = np.zeros(BLOCK, np.int64)
    best, highest = alloc_aligned((k + INSERTION_PLACES) * W, b.points), np.finfo(x.dtype).max
    for l in range(first, last):
        c = b.cloud[l]
        blocks_of_cloud = b.block[c + 1] - b.block[c]
        n[:] = 0
        for step in range(blocks_of_cloud):
            other = b.block[c] + (l - b.block[c] + step) % blocks_of_cloud
            columns = -(-b.size[other] // W) * W
            product(
                tile,
                0,
                BLOCK,
                b.points,
                l * D * BLOCK,
                1,
                BLOCK,
                b.points,
                other * D * BLOCK,
                BLOCK,
                b.size[l],
                columns,
                D,
                False,
            )
            if step == 0:
                initial_limits(limit, best, b, tile, l, k)
            for q in range(b.size[l]):
                o, within = q * size, min(limit[q], highest)
                for t in range(0, columns, W):
                    v = approximate_distances(b, tile, l, q, other, t)
                    n[q] += compress_less_equal(
                        dist, ids, o + n[q], v, b.rows, other * BLOCK + t, within
                    )
                if n[q] > k + slack or limit[q] == np.inf:
                    n[q], limit[q] = prune_with_margin(dist, ids, o, n[q], k, limit[q], b.margin[c])
                    if n[q] > most:
                        overflow[l] = True
                        n[q] = most
            if overflow[l]:
                break
        for q in range(0 if overflow[l] else b.size[l]):
            o, row = q * size, b.rows[l * BLOCK + q]
            m, _ = prune_with_margin(dist, ids, o, n[q], k, limit[q], b.margin[c])
            exact_distances(dist, ids, o, m, x, row, D)
            sort(dist, ids, o, m)
            for i in range(k):
                index[row, i], d2[row, i] = ids[o + i], dist[o + i]


def knn_by_product(x, offsets, k):
    """Return (index, d²) of the k nearest, or None if too many distances are nearly equal."""
    b = blocks(x, offsets)
    index, d2 = np.empty((len(x), k), np.int64), np.empty((len(x), k), x.dtype)
    overflow = np.zeros(len(b.size), bool)
    parallel_for(search, len(b.size), index, d2, overflow, x.reshape(-1), b, k)
    return None if overflow.any() else (index, d2)
