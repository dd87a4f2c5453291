"""Operations on one row at a time: softmax, cross-entropy, layer norm and RMS norm.

As array algebra, each operation needs five to fifteen passes over memory, each of which creates a
new array. In this file, a row of C numbers (the last axis) is read once into the first cache, where
all steps are done. The same operations as array algebra are in softmax.py, losses.py and norms.py
of tinyattn/ops/. A test compares both versions.

All kernels take arrays with one axis, and work on the rows start … stop - 1.
"""

import math

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import (
    broadcast,
    exp,
    fma,
    hmax,
    hsum,
    maximum,
    width,
)
from tinyattn.kernels.machine.thread_pool import parallel_for

REDUCTION_PARTS = 16  # sums over rows (gradients of weights) are computed in this many parts first


def parallel_rows(kernel, n, size, *arguments):
    """Run a kernel over n rows in parallel, or on one thread if `size`, its work, is small."""
    parallel_for(kernel, n, *arguments, serial=size < thresholds.ROWWISE)


# ---------------------------------------------------------------- softmax


@jit
def softmax_rows(y, x, C, log, team, start, stop):
    """Compute y_i = exp(x_i - top) / Σ_j exp(x_j - top) with top = max x, or ln y_i if `log`."""
    if fork_join(team, start, stop):
        return
    W, one = width(x), x.dtype.type(1)
    for row in range(start, stop):
        at, end = row * C, (row + 1) * C
        tops = broadcast(x, -np.inf)
        for i in range(at, end, W):
            tops = maximum(load_partial(x, i, end, -np.inf), tops)
        top = hmax(tops)
        sums = broadcast(x, 0)
        for i in range(at, end, W):
            e = exp(load_partial(x, i, end, -np.inf) - top)
            sums = sums + e
            if not log:
                store_partial(y, i, end, e)
        if log:
            shift = x.dtype.type(math.log(hsum(sums)))
            for i in range(at, end, W):
                store_partial(y, i, end, load_partial(x, i, end, 0) - top - shift)
        else:
            factor = one / hsum(sums)
            for i in range(at, end, W):
                store_partial(y, i, end, load_partial(y, i, end, 0) * factor)


@jit
def softmax_rows_backward(dx, g, y, C, log, team, start, stop):
    """Compute dx_i = y_i (g_i - Σ_j g_j y_j), or with `log` dx_i = g_i - exp(y_i) Σ_j g_j."""
    if fork_join(team, start, stop):
        return
    W = width(y)
    for row in range(start, stop):
        at, end = row * C, (row + 1) * C
        sums = broadcast(y, 0)
        for i in range(at, end, W):
            g_i = load_partial(g, i, end, 0)
            sums = sums + g_i if log else fma(g_i, load_partial(y, i, end, 0), sums)
        mean = hsum(sums)
        for i in range(at, end, W):
            g_i, y_i = load_partial(g, i, end, 0), load_partial(y, i, end, 0)
            store_partial(dx, i, end, g_i - exp(y_i) * mean if log else y_i * (g_i - mean))


def softmax(x, log):
    """Return the softmax along the last axis of x, or its logarithm if `log`."""
    y = empty_pooled(x.shape, x.dtype)
    C = x.shape[-1]
    parallel_rows(softmax_rows, x.size // C, x.size, y.reshape(-1), ravel(x), C, log)
    return y


def softmax_backward(g, y, log):
    """Return the gradient of `softmax`, from its result y."""
    dx, C = empty_pooled(y.shape, y.dtype), y.shape[-1]
    arrays = dx.reshape(-1), ravel(g), ravel(y)
    parallel_rows(softmax_rows_backward, y.size // C, y.size, *arrays, C, log)
    return dx


# ---------------------------------------------------------------- cross-entropy


@jit
def cross_entropy_rows(losses, tops, shifts, x, ids, C, team, start, stop):
    """Compute loss = ln Σ_j exp(x_j) - x_id, with top = max x and shift = ln Σ_j exp(x_j - top)."""
    if fork_join(team, start, stop):
        return
    W = width(x)
    for row in range(start, stop):
        at, end = row * C, (row + 1) * C
        highest_yet = broadcast(x, -np.inf)
        for i in range(at, end, W):
            highest_yet = maximum(load_partial(x, i, end, -np.inf), highest_yet)
        top = hmax(highest_yet)
        sums = broadcast(x, 0)
        for i in range(at, end, W):
            sums = sums + exp(load_partial(x, i, end, -np.inf) - top)
        shift = x.dtype.type(math.log(hsum(sums)))
        tops[row], shifts[row] = top, shift
        losses[row] = shift - (x[at + ids[row]] - top)


@jit
def cross_entropy_rows_backward(dx, g, tops, shifts, x, ids, C, team, start, stop):
    """Compute dx_i = g (softmax(x)_i - [i = id])."""
    if fork_join(team, start, stop):
        return
    W = width(x)
    for row in range(start, stop):
        at, end = row * C, (row + 1) * C
        for i in range(at, end, W):
            e = exp(load_partial(x, i, end, 0) - tops[row] - shifts[row])
            store_partial(dx, i, end, e * g[row])
        dx[at + ids[row]] -= g[row]


def cross_entropy(x, ids):
    """Return -ln softmax(x)[id] for each row of x [N, C], and the arrays for the backward pass."""
    N, C = x.shape
    losses, tops, shifts = (np.empty(N, x.dtype) for _ in range(3))
    ids = np.require(ids, np.int64, ["C", "W"])
    parallel_rows(cross_entropy_rows, N, x.size, losses, tops, shifts, ravel(x), ids, C)
    return losses, (tops, shifts, ids)


def cross_entropy_backward(g, residuals, x):
    """Return dx for the gradient g of `cross_entropy`, with its second result `residuals`."""
    tops, shifts, ids = residuals
    dx = empty_pooled(x.shape, x.dtype)
    arrays = dx.reshape(-1), ravel(g), tops, shifts, ravel(x), ids
    parallel_rows(cross_entropy_rows_backward, len(x), x.size, *arrays, x.shape[1])
    return dx


# ---------------------------------------------------------------- layer norm, RMS norm


@jit
def norm_rows(y, means, scales, x, weight, bias, C, centred, eps, team, start, stop):
    """Compute y = (x - mean) · scale · weight + bias with scale = 1/√(mean((x - mean)²) + ε).

    Without `centred`, the mean counts as 0, which is the RMS norm. An empty weight counts as 1, and
    an empty bias as 0.
    """
    if fork_join(team, start, stop):
        return
    W, one, columns = width(x), x.dtype.type(1), x.dtype.type(C)
    for row in range(start, stop):
        at, end = row * C, (row + 1) * C
        mean = x.dtype.type(0)
        if centred:
            even, odd = broadcast(x, 0), broadcast(x, 0)
            for i in range(at, end, 2 * W):
                even = even + load_partial(x, i, end, 0)
                odd = odd + load_partial(x, i + W, end, 0)
            mean = hsum(even + odd) / columns
        even, odd = broadcast(x, 0), broadcast(x, 0)
        for i in range(at, end, 2 * W):
            z = load_partial(x, i, end, mean) - mean
            even = fma(z, z, even)
            z = load_partial(x, i + W, end, mean) - mean
            odd = fma(z, z, odd)
        scale = one / x.dtype.type(math.sqrt(hsum(even + odd) / columns + eps))
        for i in range(at, end, W):
            z = (load_partial(x, i, end, 0) - mean) * scale
            if weight.size:
                z = z * load_partial(weight, i - at, C, 0)
            if bias.size:
                z = z + load_partial(bias, i - at, C, 0)
            store_partial(y, i, end, z)
        means[row], scales[row] = mean, scale


@jit
def norm_rows_backward(dx, dw, db, g, x, residuals, C, N, centred, team, start, stop):
    """Compute dx = scale (gz - mean(gz) - z mean(gz z)), z = (x - mean) · scale, gz = g · weight.

    An item is a part of the rows. dw = Σ g z and db = Σ g have a row for each part.
    """
    if fork_join(team, start, stop):
        return
    means, scales, weight = residuals
    W, columns, parts = width(x), x.dtype.type(C), dw.size // max(C, 1)
    for part in range(start, stop):
        own, own_end = part * C, (part + 1) * C
        for row in range(part * N // parts, (part + 1) * N // parts):
            at, end = row * C, (row + 1) * C
            mean, scale = means[row], scales[row]
            straight, along = broadcast(x, 0), broadcast(x, 0)
            for i in range(at, end, W):
                g_i, j = load_partial(g, i, end, 0), own + i - at
                z = (load_partial(x, i, end, mean) - mean) * scale
                g_z = g_i * z
                store_partial(dw, j, own_end, load_partial(dw, j, own_end, 0) + g_z)
                store_partial(db, j, own_end, load_partial(db, j, own_end, 0) + g_i)
                if weight.size:
                    w = load_partial(weight, i - at, C, 0)
                    g_i, g_z = g_i * w, g_z * w
                straight, along = straight + g_i, along + g_z
            off = hsum(straight) / columns if centred else x.dtype.type(0)
            slope = hsum(along) / columns
            for i in range(at, end, W):
                g_i = load_partial(g, i, end, 0)
                if weight.size:
                    g_i = g_i * load_partial(weight, i - at, C, 0)
                z = (load_partial(x, i, end, mean) - mean) * scale
                store_partial(dx, i, end, (g_i - off - z * slope) * scale)


def norm(x, weight, bias, eps, centred):
    """Return the layer norm (if `centred`) or RMS norm of x, and arrays for the backward pass."""
    C = x.shape[-1]
    N, nothing = x.size // C, np.empty(0, x.dtype)
    y, means, scales = empty_pooled(x.shape, x.dtype), np.empty(N, x.dtype), np.empty(N, x.dtype)
    weight = nothing if weight is None else ravel(weight)
    bias = nothing if bias is None else ravel(bias)
    arrays = y.reshape(-1), means, scales, ravel(x), weight, bias
    parallel_rows(norm_rows, N, x.size, *arrays, C, centred, x.dtype.type(eps))
    return y, (means, scales, weight)


def norm_backward(g, residuals, x, centred):
    """Return dx, dweight and dbias for the gradient g of `norm`."""
    C = x.shape[-1]
    N = x.size // C
    parts = max(1, min(REDUCTION_PARTS, N // 32))
    dx = empty_pooled(x.shape, x.dtype)
    sums = np.zeros((2, parts, C), x.dtype)
    dw, db = sums.reshape(2, -1)
    arrays = dx.reshape(-1), dw, db, ravel(g), ravel(x)
    parallel_rows(norm_rows_backward, parts, x.size, *arrays, residuals, C, N, centred)
    return dx, *sums.sum(axis=1)
