"""The k nearest neighbours among points of many features, by matrix products.

    d²_ij / 2 = |x_i|² / 2 + |x_j|² / 2 - x_i·x_j

The products of 64 points with 64 others are one small matrix product, the fastest thing a
processor can do. But close to 0 the three terms cancel, and what is left is rounding error. So this
formula only chooses candidates: all that are not farther than the k-th so far plus twice what
rounding may have done. Their distances are then computed as differences, and decide.

The error: each term is at most R² (R: the longest x, counted from the mean of the cloud), and
passes through about D + 8 roundings of relative size ε/2; see `fill`.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.kernels import exact, exact_helper, numba
from tinyattn.kernels.fast.nearest import (
    BEST,
    clear,
    close,
    enter,
    keep,
    limit_of,
    reach,
    sort,
    spare_of,
)
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.simd import (
    at,
    broadcast,
    highest,
    instruction,
    lanes_before,
    load,
    load_lanes,
    load_until,
    maximum,
    once,
    room,
    spread,
    store,
    store_until,
    width,
)
from tinyattn.kernels.machine.thread_pool import share
from tinyattn.kernels.machine.tiles import fill as set_all
from tinyattn.kernels.machine.tiles import product, transpose, turned
from tinyattn.memory import aligned

if numba is not None:
    from llvmlite import ir
    from numba import types

BLOCK = 64  # points that are multiplied together


class Blocks(NamedTuple):
    """The points of each cloud in blocks: feature d of point t of block b is [(b D + d) 64 + t]."""

    points: np.ndarray  # from the mean of their cloud; 0 behind the last
    half: np.ndarray  # [blocks · 64], |x|² / 2; inf behind the last
    rows: np.ndarray  # [blocks · 64] int32, the row of x
    size: np.ndarray  # [blocks]
    cloud: np.ndarray  # [blocks]
    block: np.ndarray  # [clouds + 1], the first block of each cloud
    margin: np.ndarray  # [clouds], what candidates may be farther than the k-th


def blocks(x, offsets):
    """Copy the points into their blocks."""
    D = x.shape[1]
    number = -(-np.diff(offsets) // BLOCK)
    first = np.concatenate([[0], np.cumsum(number)])
    B = int(first[-1])
    b = Blocks(
        aligned(B * D * BLOCK, x.dtype), aligned(B * BLOCK, x.dtype),
        np.zeros(B * BLOCK, np.int32), np.zeros(B, np.int64),
        np.repeat(np.arange(len(number)), number), first, np.zeros(len(number), x.dtype),
    )  # fmt: skip
    share(fill, len(number), b, x.reshape(-1), offsets)
    return b


@exact
def fill(b, x, offsets, team, first, last):
    """One task: a cloud."""
    if together(team, first, last):
        return
    D, W, one = len(b.points) // len(b.half), width(x), x.dtype.type(1)
    mean, rows = room(D, x), room(BLOCK * D, x)
    for c in range(first, last):
        start, stop, longest = offsets[c], offsets[c + 1], x.dtype.type(0)
        part = one / x.dtype.type(max(stop - start, 1))
        for d in range(0, D, W):  # the mean, roughly: it only has to be among the points
            total = broadcast(x, 0)
            for i in range(start, stop):
                total = total + load_until(x, i * D + d, (i + 1) * D, 0) * part
            store_until(mean, d, D, total)
        for l in range(b.block[c], b.block[c + 1]):
            i = start + (l - b.block[c]) * BLOCK
            size, own = min(BLOCK, stop - i), l * D * BLOCK
            b.size[l] = size
            for t in range(size):
                for d in range(0, D, W):
                    v = load_until(x, (i + t) * D + d, (i + t + 1) * D, 0)
                    store_until(rows, t * D + d, (t + 1) * D, v - load_until(mean, d, D, 0))
            if size < BLOCK:
                set_all(b.points[own : own + D * BLOCK], 0)
            transpose(b.points, own, BLOCK, rows, 0, D, size, D, one)
            for t in range(0, BLOCK, W):
                total = broadcast(x, 0)
                for d in range(D):
                    v = load(b.points, own + d * BLOCK + t)
                    total = total + v * v
                store(b.half, l * BLOCK + t, total * x.dtype.type(0.5))
                longest = max(longest, highest(total))
            for t in range(BLOCK):
                b.rows[l * BLOCK + t] = i + t if t < size else 0
            for t in range(size, BLOCK):
                b.half[l * BLOCK + t] = np.inf
        info = np.finfo(x.dtype)  # near 0 rounding is as large as the smallest number there is
        b.margin[c] = 4 * (D + 8) * (info.eps * longest + info.eps * info.tiny)


@exact_helper
def sift(found, names, o, n, k, limit, margin):
    """Keep what is within the margin of the k-th; returns (how many, the limit)."""
    once()
    if n < k:
        return n, limit
    close(found, o, n)
    nearly = limit if limit == np.inf else limit - margin
    limit, end = limit_of(found, o, n, k, nearly) + margin, 0
    for i in range(0, n, width(found)):
        end += keep(found, names, o + end, load(found, o + i), names, o + i, limit)
    return end, limit


def _add_squares(total, x, i, names, m, f, D):
    for g in range(f, min(f + len(total), D)):
        gap = x[names[m : m + len(total)] * D + g] - x[i * D + g]
        total = total + gap * gap
    return total


@instruction(_add_squares)
def add_squares(typing, total, x, i, names, m, f, D):
    """total + Σ_g (x_jg - x_ig)², feature after feature from f on, as many as a vector has lanes.

    Lane l stands for j = names[m + l]. Rows are read as vectors of features, and turned.
    """

    def code(context, builder, signature, args):
        total, x, i, names, m, f, D = args
        kind, integer = total.type, ir.IntType(64)
        lanes = lanes_before(builder, kind, f, D)

        def row(number):
            at_f = builder.add(builder.mul(number, D), f)
            place = spread(builder, at(context, builder, signature.args[1], x, at_f, 1))
            return load_lanes(builder, place, lanes, 0)

        own, squares = row(i), []
        for l in range(kind.count):
            place = builder.add(m, integer(l))
            name = builder.load(at(context, builder, signature.args[3], names, place, 1))
            gap = builder.fsub(row(builder.sext(name, integer)), own)
            squares.append(builder.fmul(gap, gap))
        for square in turned(builder, squares):  # behind the last feature they are 0
            total = builder.fadd(total, square)
        return total

    return total(total, x, types.intp, names, types.intp, types.intp, types.intp), code


@exact_helper
def recheck(found, names, o, n, x, i, D):
    """The exact distances of the candidates. There is room for a vector more of names."""
    once()
    W = width(found)
    for m in range(n, (n + W - 1) // W * W):
        names[o + m] = i
    for m in range(o, o + n, W):
        total = broadcast(found, found.dtype.type(0))
        for f in range(0, D, W):
            total = add_squares(total, x, i, names, m, f, D)
        store(found, m, total)


@exact_helper
def rough(b, tile, l, q, other, t):
    """About d²/2 of point q of block l from those of another block, from t on as a vector."""
    own, theirs = b.half[l * BLOCK + q], load(b.half, other * BLOCK + t)
    return maximum(theirs + own - load(tile, q * BLOCK + t), broadcast(tile, tile.dtype.type(0)))


@exact_helper
def first_limits(limit, best, b, tile, l, k):
    """For each point of block l, a limit that k points of it keep; inf if that is not known."""
    for t in range(0, b.size[l], width(tile)):
        clear(best, k)
        for j in range(b.size[l] if b.size[l] >= k else 0):
            enter(best, k, j, rough(b, tile, l, j, l, t))  # from j to the others, or from them to j
        store(limit, t, reach(best, k) + b.margin[b.cloud[l]])


@exact
def search(index, d2, hard, x, b, k, team, first, last):
    """One task: the points of one block against all blocks of its cloud, from itself on.

    A point with so many nearly equal candidates that its list overflows makes hard[block] true,
    and has no answer.
    """
    if together(team, first, last):
        return
    D, W = len(b.points) // len(b.half), width(b.points)
    slack = spare_of(k) + max(k // 2, 32)
    most = 2 * k + 192
    size = most + slack + BLOCK + 2 * W
    found, names = room(BLOCK * size, b.points), np.empty(BLOCK * size, np.int32)
    tile, limit, n = room(BLOCK * BLOCK, b.points), room(BLOCK, b.points), np.zeros(BLOCK, np.int64)
    best, highest = room((k + BEST) * W, b.points), np.finfo(x.dtype).max
    for l in range(first, last):
        c = b.cloud[l]
        blocks_of_cloud = b.block[c + 1] - b.block[c]
        n[:] = 0
        for step in range(blocks_of_cloud):
            other = b.block[c] + (l - b.block[c] + step) % blocks_of_cloud
            columns = -(-b.size[other] // W) * W
            product(tile, 0, BLOCK, b.points, l * D * BLOCK, 1, BLOCK, b.points,
                    other * D * BLOCK, BLOCK, b.size[l], columns, D, False)  # fmt: skip
            if step == 0:
                first_limits(limit, best, b, tile, l, k)
            for q in range(b.size[l]):
                o, within = q * size, min(limit[q], highest)
                for t in range(0, columns, W):
                    v = rough(b, tile, l, q, other, t)
                    n[q] += keep(found, names, o + n[q], v, b.rows, other * BLOCK + t, within)
                if n[q] > k + slack or limit[q] == np.inf:
                    n[q], limit[q] = sift(found, names, o, n[q], k, limit[q], b.margin[c])
                    if n[q] > most:
                        hard[l] = True
                        n[q] = most
            if hard[l]:
                break
        for q in range(0 if hard[l] else b.size[l]):
            o, row = q * size, b.rows[l * BLOCK + q]
            m, _ = sift(found, names, o, n[q], k, limit[q], b.margin[c])
            recheck(found, names, o, m, x, row, D)
            sort(found, names, o, m)
            for i in range(k):
                index[row, i], d2[row, i] = names[o + i], found[o + i]


def by_product(x, offsets, k):
    """The k nearest, or None if too many distances are nearly equal."""
    b = blocks(x, offsets)
    index, d2 = np.empty((len(x), k), np.int64), np.empty((len(x), k), x.dtype)
    hard = np.zeros(len(b.size), bool)
    share(search, len(b.size), index, d2, hard, x.reshape(-1), b, k)
    return None if hard.any() else (index, d2)
