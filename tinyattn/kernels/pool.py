"""Pooling as loops, with a table of the positions in each window of a channel.

    mean      y_jα = 1/K Σ_i x_αI(j,i)
    largest   y_jα = max_i x_αI(j,i)

The index j runs over windows, i over positions in a window, α over channels. I[j, i] is the
position in x of position i of window j, or -1 in the padding. All arrays have their positions on
one axis: x [B, C, N], y [B, C, P], I [P, K]. A gradient dL/dx is called dx, and dL/dy is called g.
"""

import numpy as np

from tinyattn.kernels import helper, jit
from tinyattn.kernels.conv import OUTSIDE


@jit
def mean(y, x, I):
    """Write y_jα = 1/K Σ_i x_αI(j,i) to y, where positions in the padding count as 0."""
    for n in range(len(x)):
        for α in range(x.shape[1]):
            for j in range(len(I)):
                y[n, α, j] = 0
                for i in range(I.shape[1]):
                    if I[j, i] != OUTSIDE:
                        y[n, α, j] += x[n, α, I[j, i]] / I.shape[1]


@jit
def mean_backward(dx, g, I):
    """Add 1/K of the g of a window to the dx of each of its positions."""
    for n in range(len(g)):
        for α in range(g.shape[1]):
            for j in range(len(I)):
                for i in range(I.shape[1]):
                    if I[j, i] != OUTSIDE:
                        dx[n, α, I[j, i]] += g[n, α, j] / I.shape[1]


@jit
def largest(y, x, I):
    """Write y_jα = max_i x_αI(j,i) to y, where positions in the padding are ignored."""
    for n in range(len(x)):
        for α in range(x.shape[1]):
            for j in range(len(I)):
                y[n, α, j] = -np.inf
                for i in range(I.shape[1]):
                    if I[j, i] != OUTSIDE:
                        value = x[n, α, I[j, i]]
                        # the second condition is True for nan
                        if value > y[n, α, j] or value != value:
                            y[n, α, j] = value


@jit
def largest_backward(dx, g, y, x, I):
    """Add the g of each window to dx, shared by all numbers that equal its maximum y (or nan)."""
    for n in range(len(g)):
        for α in range(g.shape[1]):
            for j in range(len(I)):
                tied = 0
                for i in range(I.shape[1]):
                    if I[j, i] != OUTSIDE and equal(x[n, α, I[j, i]], y[n, α, j]):
                        tied += 1
                for i in range(I.shape[1]):
                    if I[j, i] != OUTSIDE and equal(x[n, α, I[j, i]], y[n, α, j]):
                        dx[n, α, I[j, i]] += g[n, α, j] / tied


@helper
def equal(a, b):
    """Return whether a = b, or both are nan."""
    return a == b or (a != a and b != b)
