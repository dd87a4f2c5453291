"""Batch normalization: each feature is normalized over a batch, forward and backward.

x [N, C] is contiguous: the C features of an item are adjacent, and statistics are over the N items.
A block of BLOCK_ROWS items stays in the L1 cache while it is summed, one vector of features after
the other. The sums of blocks are added up in parts, which are the same for any number of threads.
The reference in array algebra is `batch_norm` in tinyattn/ops/norms.py. A test compares both
versions.
"""

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast.rowwise import REDUCTION_PARTS, parallel_rows
from tinyattn.kernels.machine.compile import jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import broadcast, fma, width

BLOCK_ROWS = 64


@jit
def column_sums(sums, x, mean, C, N, squares, team, start, stop):
    """Add Σ (x - mean), or Σ (x - mean)² if `squares`, to sums [parts, C], for some parts."""
    if fork_join(team, start, stop):
        return
    W, parts = width(x), sums.size // C
    for part in range(start, stop):
        own, end = part * C, (part + 1) * C
        last = (part + 1) * N // parts
        for n0 in range(part * N // parts, last, BLOCK_ROWS):
            for j in range(0, C, W):
                total, m = broadcast(x, 0), load_partial(mean, j, C, 0)
                for n in range(n0, min(n0 + BLOCK_ROWS, last)):
                    z = load_partial(x, n * C + j, (n + 1) * C, 0) - m
                    total = fma(z, z, total) if squares else total + z
                store_partial(sums, own + j, end, load_partial(sums, own + j, end, 0) + total)


@jit
def normalise(y, x, mean, factor, shift, C, team, start, stop):
    """Compute y = (x - mean) · factor + shift, with mean, factor and shift for each feature."""
    if fork_join(team, start, stop):
        return
    W = width(x)
    for n in range(start, stop):
        at, end = n * C, (n + 1) * C
        for j in range(0, C, W):
            z = load_partial(x, at + j, end, 0) - load_partial(mean, j, C, 0)
            z = fma(z, load_partial(factor, j, C, 0), load_partial(shift, j, C, 0))
            store_partial(y, at + j, end, z)


@jit
def gradient_sums(straight, along, g, x, mean, C, N, team, start, stop):
    """Add Σ g to `straight` and Σ g (x - mean) to `along`, both [parts, C], for some parts."""
    if fork_join(team, start, stop):
        return
    W, parts = width(x), straight.size // C
    for part in range(start, stop):
        own, end = part * C, (part + 1) * C
        last = (part + 1) * N // parts
        for n0 in range(part * N // parts, last, BLOCK_ROWS):
            for j in range(0, C, W):
                total, sloped, m = broadcast(x, 0), broadcast(x, 0), load_partial(mean, j, C, 0)
                for n in range(n0, min(n0 + BLOCK_ROWS, last)):
                    g_n = load_partial(g, n * C + j, (n + 1) * C, 0)
                    z = load_partial(x, n * C + j, (n + 1) * C, 0) - m
                    total, sloped = total + g_n, fma(g_n, z, sloped)
                i = own + j
                store_partial(straight, i, end, load_partial(straight, i, end, 0) + total)
                store_partial(along, i, end, load_partial(along, i, end, 0) + sloped)


@jit
def normalise_backward(dx, g, x, mean, factor, level, slope, C, team, start, stop):
    """Compute dx = factor · (g - level - slope (x - mean)), as in `batch_norm_backward`."""
    if fork_join(team, start, stop):
        return
    W = width(x)
    for n in range(start, stop):
        at, end = n * C, (n + 1) * C
        for j in range(0, C, W):
            z = load_partial(x, at + j, end, 0) - load_partial(mean, j, C, 0)
            d = load_partial(g, at + j, end, 0) - load_partial(level, j, C, 0)
            d = (d - z * load_partial(slope, j, C, 0)) * load_partial(factor, j, C, 0)
            store_partial(dx, at + j, end, d)


def statistics(x):
    """Return the mean of each feature of x [N, C], and its variance with the divisor N."""
    N, C = x.shape
    row, mean = ravel(x), np.zeros(C, x.dtype)
    for squares in (False, True):
        sums = np.zeros((min(REDUCTION_PARTS, N), C), x.dtype)
        parallel_rows(column_sums, len(sums), x.size, sums.reshape(-1), row, mean, C, N, squares)
        found = sums.sum(axis=0) / x.dtype.type(N)
        mean, var = (mean, found) if squares else (found, None)
    return mean, var


def batch_norm(x, weight, bias, mean, var, eps):
    """Return (x - mean) / √(var + ε) · weight + bias, and the arrays for the backward pass."""
    N, C = x.shape
    scale = (1 / np.sqrt(var + eps)).astype(x.dtype, copy=False)
    factor = scale if weight is None else scale * weight
    shift = np.zeros(C, x.dtype) if bias is None else ravel(bias)
    y, mean = empty_pooled(x.shape, x.dtype), ravel(mean)
    parallel_rows(normalise, N, x.size, y.reshape(-1), ravel(x), mean, factor, shift, C)
    return y, (mean, scale, factor)


def batch_norm_backward(g, residuals, x, own):
    """Return dx, dweight and dbias. If `own`, mean and variance were computed from x.

    With scale = 1 / √(var + ε), factor = scale · weight and z = (x - mean) · scale, dx is
    factor (g - mean(g) - z mean(g z)) if `own`, and factor g otherwise.
    """
    N, C = x.shape
    mean, scale, factor = residuals
    straight, along = np.zeros((2, min(REDUCTION_PARTS, N), C), x.dtype)
    arrays = ravel(g), ravel(x), mean
    sums = straight.reshape(-1), along.reshape(-1)
    parallel_rows(gradient_sums, len(straight), x.size, *sums, *arrays, C, N)
    db, dw = straight.sum(axis=0), along.sum(axis=0) * scale
    level, slope = (db / N, dw * scale / N) if own else np.zeros((2, C), x.dtype)
    dx = empty_pooled(x.shape, x.dtype)
    parallel_rows(normalise_backward, N, x.size, dx.reshape(-1), *arrays, factor, level, slope, C)
    return dx, dw, db
