"""Pooling over one or two axes, forward and backward.

    largest   y_i = max_k x_(i · stride + k · dilation - padding)
    mean      y_i = 1/K Σ_k x_(i · stride + k · dilation - padding)

kernels/pool.py has the same formulas as loops with a table of positions. In this file, the
positions are computed, and each thread processes different channels. For the maximum, each k is
processed for all windows of a row before the next k, so that LLVM can compute several windows with
one instruction. The most common case by far, adjacent windows of 2 × 2, is computed in a single
pass. The forward pass stores the position of the maximum, so the backward pass need not search for
it again.

All arrays are contiguous, with batch and channels as one axis: x [N, H, W], y [N, rows, columns].
For pooling over one axis, the first of the two has length 1. dx is dL/dx, g is dL/dy.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import alwaysinline, helper, jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.thread_pool import parallel_for
from tinyattn.kernels.pool import equal

TIED = -1  # several numbers are equally large, so there is no single index


class Windows(NamedTuple):
    """The positions of the windows. Each pair is (number for rows, number for columns)."""

    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple


FOUR = Windows(kernel=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1))


@helper
def columns_of(m, n, W, windows):
    """Return (a, b, v): the windows whose column m is inside x are a … b - 1.

    In window a, this column is column v of x. x has W columns, and there are `windows` windows.
    """
    shift = m * n.dilation[1] - n.padding[1]
    a = max(0, -(shift // n.stride[1]))
    b = min(windows, (W - 1 - shift) // n.stride[1] + 1)
    return a, max(a, b), a * n.stride[1] + shift


@helper
def larger_of(best, at, value, place):
    """Return (best, at), but (value, place) if value is larger, or (best, TIED) if it is equal.

    nan counts as the largest. No branch depends on the numbers, because the processor cannot
    predict whether the next number is larger, and a wrong prediction takes longer than a
    comparison.
    """
    alwaysinline()
    larger = (value > best) | ((value != value) & (best == best))
    at = np.int32(TIED) if equal(value, best) else at
    return (value if larger else best), (place if larger else at)


@helper
def compare_row(best, at, x, stride, place):
    """Update a row of maxima, and their indices `at`, with x[0], x[stride], ….

    x[0] has the index `place`.
    """
    alwaysinline()
    for j in range(len(best)):
        best[j], at[j] = larger_of(best[j], at[j], x[j * stride], np.int32(place + j * stride))


@jit
def largest(y, place, x, n, team, start, stop):
    """Compute the maximum y_i and its index u · W + v in x, for channels start … stop - 1."""
    if fork_join(team, start, stop):
        return
    H, W = x.shape[1:]
    s = n.stride[1]
    for c in range(start, stop):
        for i in range(y.shape[1]):
            y[c, i, :], place[c, i, :] = -np.inf, TIED
            for k in range(n.kernel[0]):
                u = i * n.stride[0] + k * n.dilation[0] - n.padding[0]
                for m in range(n.kernel[1] if 0 <= u < H else 0):
                    a, b, v = columns_of(m, n, W, y.shape[2])
                    best, at, numbers = y[c, i, a:b], place[c, i, a:b], x[c, u, v:]
                    if s == 1:  # with a stride that it knows, LLVM uses vectors
                        compare_row(best, at, numbers, 1, u * W + v)
                    elif s == 2:
                        compare_row(best, at, numbers, 2, u * W + v)
                    else:
                        compare_row(best, at, numbers, s, u * W + v)


@jit
def largest_of_four(y, place, x, team, start, stop):
    """Do the same as `largest` for windows of 2 × 2 with a stride of 2, without padding."""
    if fork_join(team, start, stop):
        return
    W = np.int32(x.shape[2])
    for c in range(start, stop):
        for i in range(y.shape[1]):
            upper, lower = x[c, 2 * i], x[c, 2 * i + 1]
            first = np.int32(2 * i) * W
            y_row, place_row = y[c, i], place[c, i]
            for j in range(y.shape[2]):
                a = np.int32(first + 2 * j)
                b = np.int32(a + W)
                best, at = larger_of(upper[2 * j], a, upper[2 * j + 1], np.int32(a + 1))
                best, at = larger_of(best, at, lower[2 * j], b)
                y_row[j], place_row[j] = larger_of(best, at, lower[2 * j + 1], np.int32(b + 1))


@jit
def largest_backward(dx, g, y, place, x, n, team, start, stop):
    """Add the g of each window to the dx of its maximum. If there are several, they share g."""
    if fork_join(team, start, stop):
        return
    H, W = x.shape[1:]
    for c in range(start, stop):
        receives = dx[c].reshape(-1)
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                at = place[c, i, j]
                if at != TIED:
                    receives[at] += g[c, i, j]
                    continue
                tied = 0
                for add in (False, True):  # first count, then distribute
                    for k in range(n.kernel[0]):
                        u = i * n.stride[0] + k * n.dilation[0] - n.padding[0]
                        for m in range(n.kernel[1]):
                            v = j * n.stride[1] + m * n.dilation[1] - n.padding[1]
                            if 0 <= u < H and 0 <= v < W and equal(x[c, u, v], y[c, i, j]):
                                if add:
                                    dx[c, u, v] += g[c, i, j] / tied
                                else:
                                    tied += 1


@jit
def mean(y, x, n, team, start, stop):
    """Compute the mean y_i of each window, where positions in the padding count as 0."""
    if fork_join(team, start, stop):
        return
    H, W = x.shape[1:]
    for c in range(start, stop):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                total = x.dtype.type(0)
                for k in range(n.kernel[0]):
                    u = i * n.stride[0] + k * n.dilation[0] - n.padding[0]
                    if 0 <= u < H:
                        for m in range(n.kernel[1]):
                            v = j * n.stride[1] + m * n.dilation[1] - n.padding[1]
                            if 0 <= v < W:
                                total += x[c, u, v]
                y[c, i, j] = total / (n.kernel[0] * n.kernel[1])


@jit
def mean_backward(dx, g, n, team, start, stop):
    """Add 1/K of the g of each window to the dx of its positions."""
    if fork_join(team, start, stop):
        return
    H, W = dx.shape[1:]
    for c in range(start, stop):
        for i in range(g.shape[1]):
            for j in range(g.shape[2]):
                part = g[c, i, j] / (n.kernel[0] * n.kernel[1])
                for k in range(n.kernel[0]):
                    u = i * n.stride[0] + k * n.dilation[0] - n.padding[0]
                    if 0 <= u < H:
                        for m in range(n.kernel[1]):
                            v = j * n.stride[1] + m * n.dilation[1] - n.padding[1]
                            if 0 <= v < W:
                                dx[c, u, v] += part


def find_largest(y, place, x, n):
    """Run `largest`, or its version for adjacent windows of 2 × 2."""
    if n == FOUR:
        parallel_for(largest_of_four, len(x), y, place, x, serial=x.size < thresholds.POOL_OF_FOUR)
    else:
        over_channels(largest, y, place, x, n=n)


def over_channels(kernel, *arrays, n):
    """Run a kernel on all threads, with the channels as items."""
    serial = min(a.size for a in arrays) * n.kernel[0] * n.kernel[1] < thresholds.POOL
    parallel_for(kernel, len(arrays[0]), *arrays, n, serial=serial)
