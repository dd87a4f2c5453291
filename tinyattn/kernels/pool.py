"""Pooling as loops: one number for each window of a channel; a table names what is in a window.

    mean      y_jα = 1/K Σ_i x_αI(j,i)
    largest   y_jα = max_i x_αI(j,i)

j counts windows, i the places in a window, α channels. I[j, i] is the position of x at place i of
window j, or -1 where the window hangs over the edge. All arrays have their positions on one axis:
x [B, C, N], y [B, C, P], I [P, K]. A gradient dL/dx is called dx; g is dL/dy.
"""

import numpy as np

from tinyattn.kernels import helper, jit
from tinyattn.kernels.conv import OUTSIDE


@jit
def mean(y, x, I):
    """y_jα = 1/K Σ_i x_αI(j,i); places over the edge count as 0."""
    for n in range(len(x)):
        for α in range(x.shape[1]):
            for j in range(len(I)):
                y[n, α, j] = 0
                for i in range(I.shape[1]):
                    if I[j, i] != OUTSIDE:
                        y[n, α, j] += x[n, α, I[j, i]] / I.shape[1]


@jit
def mean_backward(dx, g, I):
    """Each position of a window receives 1/K of its g."""
    for n in range(len(g)):
        for α in range(g.shape[1]):
            for j in range(len(I)):
                for i in range(I.shape[1]):
                    if I[j, i] != OUTSIDE:
                        dx[n, α, I[j, i]] += g[n, α, j] / I.shape[1]


@jit
def largest(y, x, I):
    """y_jα = max_i x_αI(j,i); places over the edge do not count."""
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
    """The largest positions of a window share its g; if it holds nan, those that are nan."""
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
    """a = b, or both are nan."""
    return a == b or (a != a and b != b)
