"""Operations on one row at a time: softmax, cross-entropy, normalization, GELU, sums, AdamW.

As array algebra, each operation needs five to fifteen passes over memory, each of which creates a
new array. In this file, a row of C numbers (the last axis) is read once into the first cache, where
all steps are done. The same operations as array algebra are in softmax.py, losses.py, norms.py and
activations.py of tinyattn/ops/, and in `Adam.update` of tinyattn/optim/algorithms.py. A test
compares both versions.

All kernels take arrays with one axis, and work on the rows (or, for GELU and AdamW, the numbers)
from start to stop.
"""

import math

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import helper, jit
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
    select_greater,
    sqrt,
    width,
)
from tinyattn.kernels.machine.thread_pool import parallel_for

REDUCTION_PARTS = 16  # sums over rows (gradients of weights) are computed in this many parts first


def parallel_rows(kernel, n, size, *arguments):
    """`parallel_for` over n rows, on one thread if there are few numbers (size) in all."""
    parallel_for(kernel, n, *arguments, serial=size < thresholds.ROWWISE)


# ---------------------------------------------------------------- softmax


@jit
def softmax_rows(y, x, C, log, team, start, stop):
    """Compute y_i = exp(x_i - top) / Σ_j exp(x_j - top), or its logarithm x_i - top - ln Σ …"""
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
    """softmax (or its logarithm) along the last axis of x."""
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
    """Return the gradient of x."""
    tops, shifts, ids = residuals
    dx = empty_pooled(x.shape, x.dtype)
    arrays = dx.reshape(-1), ravel(g), tops, shifts, ravel(x), ids
    parallel_rows(cross_entropy_rows_backward, len(x), x.size, *arrays, x.shape[1])
    return dx


# ---------------------------------------------------------------- layer norm, RMS norm


@jit
def norm_rows(y, means, scales, x, weight, bias, C, centred, eps, team, start, stop):
    """Compute y = (x - mean) · scale · weight + bias with scale = 1/√(mean((x - mean)²) + ε).

    Without `centred` the mean counts as 0, which is the RMS norm. An empty weight counts as 1, an
    empty bias as 0.
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
    """Layer norm (centred) or RMS norm over the last axis, and the arrays for the backward pass."""
    C = x.shape[-1]
    N, nothing = x.size // C, np.empty(0, x.dtype)
    y, means, scales = empty_pooled(x.shape, x.dtype), np.empty(N, x.dtype), np.empty(N, x.dtype)
    weight = nothing if weight is None else ravel(weight)
    bias = nothing if bias is None else ravel(bias)
    arrays = y.reshape(-1), means, scales, ravel(x), weight, bias
    parallel_rows(norm_rows, N, x.size, *arrays, C, centred, x.dtype.type(eps))
    return y, (means, scales, weight)


def norm_backward(g, residuals, x, centred):
    """Return dx, dweight, dbias."""
    C = x.shape[-1]
    N = x.size // C
    parts = max(1, min(REDUCTION_PARTS, N // 32))
    dx = empty_pooled(x.shape, x.dtype)
    sums = np.zeros((2, parts, C), x.dtype)
    dw, db = sums.reshape(2, -1)
    arrays = dx.reshape(-1), dw, db, ravel(g), ravel(x)
    parallel_rows(norm_rows_backward, parts, x.size, *arrays, residuals, C, N, centred)
    return dx, *sums.sum(axis=1)


# ---------------------------------------------------------------- GELU

# erfc(z) = exp(-z²) t P(t) with t = 1 / (1 + z/2), for z ≥ 0; P fitted to 4e-8 (float32 only).
# Φ(-|x|) is half of it at z = |x| / √2, where z² = x²/2.
ERFC = tuple(
    np.float32(c)
    for c in (
        -0.05889132491004501,
        0.28370461222526755,
        -0.4853890814650003,
        0.275984145102177,
        -0.02518167132542719,
        0.20207145071958327,
        0.2432606194320846,
        0.2823535343238701,
        0.28208767371591664,
    )
)
ROOT_HALF, HALF = np.float32(math.sqrt(0.5)), np.float32(0.5)
HALF_ERFC = tuple(c * HALF for c in ERFC)  # exact, as is every half
ONE, DENSITY = np.float32(1), np.float32(1 / math.sqrt(2 * math.pi))
CUBIC, ROOT_8_OVER_PI = np.float32(0.044715), np.float32(math.sqrt(8 / math.pi))


@jit
def gelu_sums(out, g, x, backward, tanh, team, start, stop):
    """Compute y = x Φ(x), or backward dx = g (Φ(x) + x φ(x)), with the normal distribution Φ.

    φ is the density of Φ. With `tanh`, Φ(x) = (1 + tanh(u/2)) / 2 = 1 / (1 + e⁻ᵘ) with u = √(8/π)
    (x + 0.044715 x³). This function computes the formula directly. It is the reference, and runs
    for float64.
    """
    if fork_join(team, start, stop):
        return
    for i in range(start, stop):
        v = x[i]
        if tanh:
            phi = 0.5 + 0.5 * math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v))
            rise = phi * (1 - phi) * math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * v * v)
        else:
            phi = 0.5 * math.erfc(-v * math.sqrt(0.5))
            rise = math.exp(-0.5 * v * v) / math.sqrt(2 * math.pi)
        out[i] = g[i] * (phi + v * rise) if backward else v * phi


@jit
def gelu_numbers(out, g, x, backward, tanh, team, start, stop):
    """Compute the same as `gelu_sums` with vectors of float32."""
    if fork_join(team, start, stop):
        return
    W = width(x)
    for i in range(start, stop, W):
        v = load_partial(x, i, stop, 0)
        if tanh:
            square = v * v
            u = v * (square * CUBIC + ONE) * ROOT_8_OVER_PI
            u = maximum(u, broadcast(v, -80))  # exp(80) is still a number
            e = exp(broadcast(v, 0) - u)
            phi = broadcast(v, 1) / (e + ONE)
            slope = (square * (np.float32(3) * CUBIC) + ONE) * ROOT_8_OVER_PI
            rise = phi * e * phi * slope  # e · phi is 1 - phi, without cancellation
        else:
            size = maximum(v, broadcast(v, 0) - v)
            t = broadcast(v, 1) / fma(size, broadcast(v, HALF * ROOT_HALF), broadcast(v, 1))
            p = broadcast(v, HALF_ERFC[0])
            for c in HALF_ERFC[1:]:
                p = fma(p, t, broadcast(v, c))
            e = exp(v * v * -HALF)
            tail = p * t * e  # Φ(-|x|)
            phi = select_greater(v, broadcast(v, 0), broadcast(v, 1) - tail, tail)
            rise = e * DENSITY
        if backward:
            store_partial(out, i, stop, load_partial(g, i, stop, 0) * fma(v, rise, phi))
        else:
            store_partial(out, i, stop, v * phi)


def gelu(x, tanh):
    """Return the GELU of x, x Φ(x)."""
    y, row = empty_pooled(x.shape, x.dtype), ravel(x)
    kernel = gelu_numbers if x.dtype == np.float32 else gelu_sums
    parallel_rows(kernel, x.size, 4 * x.size, y.reshape(-1), row, row, False, tanh)
    return y


def gelu_backward(g, x, tanh):
    """Return the gradient of x."""
    dx = empty_pooled(x.shape, x.dtype)
    kernel = gelu_numbers if x.dtype == np.float32 else gelu_sums
    parallel_rows(kernel, x.size, 4 * x.size, dx.reshape(-1), ravel(g), ravel(x), True, tanh)
    return dx


# ---------------------------------------------------------------- sums


@helper
def add_numbers(y, x, team, start, stop):
    """Add x to y."""
    if fork_join(team, start, stop):
        return
    for i in range(start, stop, width(y)):
        store_partial(y, i, stop, load_partial(y, i, stop, 0) + load_partial(x, i, stop, 0))


# ---------------------------------------------------------------- AdamW


@jit
def adam_numbers(out, theta, g, m, v, numbers, team, start, stop):
    """Update m ← β₁m + (1-β₁)g and v ← β₂v + (1-β₂)g², and compute the new parameters `out`.

    out = keep θ - rate · m / (√v / correct + ε), where decay θ is added to g before the update.
    AdamW has keep = 1 - η λ and decay = 0, and Adam has keep = 1 and decay = λ.
    """
    if fork_join(team, start, stop):
        return
    rate, beta1, beta2, eps, decay, correct, keep = numbers
    W, one = width(theta), theta.dtype.type(1)
    for i in range(start, stop, W):
        x, slope = load_partial(theta, i, stop, 0), load_partial(g, i, stop, 0)
        slope = slope + x * decay
        first, second = load_partial(m, i, stop, 0), load_partial(v, i, stop, 0)
        first = first + (slope - first) * (one - beta1)
        second = second * beta2 + slope * slope * (one - beta2)
        store_partial(m, i, stop, first)
        store_partial(v, i, stop, second)
        step = first / (sqrt(second) / broadcast(x, correct) + eps)
        store_partial(out, i, stop, x * keep - step * rate)


def adam(jobs):
    """One step for all parameters, one after the other, each on all threads.

    A job is (out, theta, g, m, v, numbers), five contiguous arrays of one dtype and the numbers
    of `adam_numbers` as NumPy numbers of that dtype.
    """
    for *arrays, numbers in jobs:
        n = arrays[0].size
        parallel_rows(adam_numbers, n, n, *[x.reshape(-1) for x in arrays], tuple(numbers))
