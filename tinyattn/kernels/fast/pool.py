"""Pooling over one or two axes, forward and backward: one number for each window of a channel.

    largest   y_i = max_k x_(i · stride + k · dilation - padding)
    mean      y_i = 1/K Σ_k x_(i · stride + k · dilation - padding)

kernels/pool.py has the same as loops over a table of places. Here the places are computed, and each
thread has channels of its own. The forward pass of the largest stores where it was, so that the
backward pass need not search for it again.

All arrays are contiguous, with batch and channels as one axis: x [N, H, W], y [N, rows, columns];
one axis is two of which the first has length 1. dx is dL/dx, g is dL/dy.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.thread_pool import parallel_for
from tinyattn.kernels.pool import equal

TIED = -1  # instead of an index: several numbers are equally large


class Windows(NamedTuple):
    """The positions of the windows; each pair is one number for rows and one for columns."""

    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple


@jit
def largest(y, place, x, n, team, start, stop):
    """y_i = max_k x_…, and its place u · W + v in x, for channels start … stop.

    nan counts as the largest. No branch depends on the numbers of x: whether the next one is larger
    cannot be predicted, and a wrong prediction takes longer than a comparison.
    """
    if fork_join(team, start, stop):
        return
    H, W = x.shape[1:]
    for c in range(start, stop):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                best, at = x.dtype.type(-np.inf), TIED
                for k in range(n.kernel[0]):
                    u = i * n.stride[0] + k * n.dilation[0] - n.padding[0]
                    if 0 <= u < H:
                        for m in range(n.kernel[1]):
                            v = j * n.stride[1] + m * n.dilation[1] - n.padding[1]
                            if 0 <= v < W:
                                value = x[c, u, v]
                                larger = (value > best) | ((value != value) & (best == best))
                                at = TIED if equal(value, best) else at
                                at = u * W + v if larger else at
                                best = value if larger else best
                y[c, i, j], place[c, i, j] = best, at


@jit
def largest_backward(dx, g, y, place, x, n, team, start, stop):
    """The largest of a window receives its g; several share it."""
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
    """y_i = 1/K Σ_k x_…; places over the edge count as zeros."""
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
    """Every x of a window receives its share of g."""
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


def over_channels(kernel, *arrays, n):
    """Run a kernel on all threads; its items are the channels."""
    serial = min(a.size for a in arrays) * n.kernel[0] * n.kernel[1] < thresholds.POOL
    parallel_for(kernel, len(arrays[0]), *arrays, n, serial=serial)
