"""Work on columns: normalisation of each feature over a batch, forward and backward.

x [N, C] in one piece has the C features of an item side by side; statistics are over the N items.
A block of ROWS items stays in the nearest cache while each vector of features adds it up. The
sums of blocks are added up in parts, the same for any number of threads. The reference in array
algebra is `batch_norm_composition` in tinyattn/ops/rowwise.py; one test runs over both.
"""

import numpy as np

from tinyattn.kernels import jit
from tinyattn.kernels.fast.rowwise import PARTS, over
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.layout import row_of
from tinyattn.kernels.machine.simd import broadcast, fma, load_until, store_until, width
from tinyattn.memory import empty

ROWS = 64


@jit
def column_sums(sums, x, mean, C, N, squares, team, start, stop):
    """Σ (x - mean), or with squares Σ (x - mean)², of the items of some parts; sums [parts, C]."""
    if together(team, start, stop):
        return
    W, parts = width(x), sums.size // C
    for part in range(start, stop):
        own, end = part * C, (part + 1) * C
        last = (part + 1) * N // parts
        for n0 in range(part * N // parts, last, ROWS):
            for j in range(0, C, W):
                total, m = broadcast(x, 0), load_until(mean, j, C, 0)
                for n in range(n0, min(n0 + ROWS, last)):
                    z = load_until(x, n * C + j, (n + 1) * C, 0) - m
                    total = fma(z, z, total) if squares else total + z
                store_until(sums, own + j, end, load_until(sums, own + j, end, 0) + total)


@jit
def normalise(y, x, mean, factor, shift, C, team, start, stop):
    """y = (x - mean) · factor + shift, each of them a number for each feature."""
    if together(team, start, stop):
        return
    W = width(x)
    for n in range(start, stop):
        at, end = n * C, (n + 1) * C
        for j in range(0, C, W):
            z = load_until(x, at + j, end, 0) - load_until(mean, j, C, 0)
            z = fma(z, load_until(factor, j, C, 0), load_until(shift, j, C, 0))
            store_until(y, at + j, end, z)


@jit
def gradient_sums(straight, along, g, x, mean, C, N, team, start, stop):
    """Σ g and Σ g (x - mean) of the items of some parts; both [parts, C]."""
    if together(team, start, stop):
        return
    W, parts = width(x), straight.size // C
    for part in range(start, stop):
        own, end = part * C, (part + 1) * C
        last = (part + 1) * N // parts
        for n0 in range(part * N // parts, last, ROWS):
            for j in range(0, C, W):
                total, sloped, m = broadcast(x, 0), broadcast(x, 0), load_until(mean, j, C, 0)
                for n in range(n0, min(n0 + ROWS, last)):
                    g_n = load_until(g, n * C + j, (n + 1) * C, 0)
                    z = load_until(x, n * C + j, (n + 1) * C, 0) - m
                    total, sloped = total + g_n, fma(g_n, z, sloped)
                i = own + j
                store_until(straight, i, end, load_until(straight, i, end, 0) + total)
                store_until(along, i, end, load_until(along, i, end, 0) + sloped)


@jit
def normalise_backward(dx, g, x, mean, factor, level, slope, C, team, start, stop):
    """dx = factor · (g - level - slope (x - mean))"""
    if together(team, start, stop):
        return
    W = width(x)
    for n in range(start, stop):
        at, end = n * C, (n + 1) * C
        for j in range(0, C, W):
            z = load_until(x, at + j, end, 0) - load_until(mean, j, C, 0)
            d = load_until(g, at + j, end, 0) - load_until(level, j, C, 0)
            d = (d - z * load_until(slope, j, C, 0)) * load_until(factor, j, C, 0)
            store_until(dx, at + j, end, d)


def statistics(x):
    """Mean and variance of each feature of x [N, C]."""
    N, C = x.shape
    row, mean = row_of(x), np.zeros(C, x.dtype)
    for squares in (False, True):
        sums = np.zeros((min(PARTS, N), C), x.dtype)
        over(column_sums, len(sums), x.size, sums.reshape(-1), row, mean, C, N, squares)
        found = sums.sum(axis=0) / x.dtype.type(N)
        mean, var = (mean, found) if squares else (found, None)
    return mean, var


def batch_norm(x, weight, bias, mean, var, eps):
    """(x - mean) / √(var + ε) · weight + bias; what the backward pass wants."""
    N, C = x.shape
    scale = (1 / np.sqrt(var + eps)).astype(x.dtype, copy=False)
    factor = scale if weight is None else scale * weight
    shift = np.zeros(C, x.dtype) if bias is None else row_of(bias)
    y, mean = empty(x.shape, x.dtype), row_of(mean)
    over(normalise, N, x.size, y.reshape(-1), row_of(x), mean, factor, shift, C)
    return y, (mean, scale, factor)


def batch_norm_backward(g, saved, x, own):
    """dx, dweight and dbias; own: mean and variance are those of x, and so depend on it.

    With z = (x - mean) · scale: dx = factor (g - mean(g) - z mean(g z)), or factor g.
    """
    N, C = x.shape
    mean, scale, factor = saved
    straight, along = np.zeros((2, min(PARTS, N), C), x.dtype)
    arrays = row_of(g), row_of(x), mean
    sums = straight.reshape(-1), along.reshape(-1)
    over(gradient_sums, len(straight), x.size, *sums, *arrays, C, N)
    db, dw = straight.sum(axis=0), along.sum(axis=0) * scale
    level, slope = (db / N, dw * scale / N) if own else np.zeros((2, C), x.dtype)
    dx = empty(x.shape, x.dtype)
    over(normalise_backward, N, x.size, dx.reshape(-1), *arrays, factor, level, slope, C)
    return dx, dw, db
