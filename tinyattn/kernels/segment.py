"""Reductions over segments as loops, where row e of `values` belongs to segment ids_e.

    y_n = □_{e: ids_e = n} values_e                         □ = Σ, max, Π;   min = -max(-values)
    a_e = exp(values_e) / Σ_{e': ids_e' = ids_e} exp(values_e')              softmax

For example, the rows are messages in a graph, and a segment consists of all messages to one node.
The index e runs over edges, n over receivers, c over features. The shapes are values [E, C], ids
[E] with numbers from 0 to N - 1, y [N, C] and a [E, C]. The result for an empty segment is 0, or 1
for the product. A gradient dL/dvalues is called dx, and g is the gradient of the result.
"""

import math

import numpy as np

from tinyattn.kernels import jit

# ---------------------------------------------------------------- sum


@jit
def segment_sum(y, values, ids):
    """Add values_e to y_n for all e with ids_e = n. y is 0 before the call."""
    for e in range(len(ids)):
        for c in range(y.shape[1]):
            y[ids[e], c] += values[e, c]


@jit
def segment_sum_backward(g, ids):
    """Return dx_e = g_n with n = ids_e."""
    dx = np.empty((len(ids), g.shape[1]), g.dtype)
    for e in range(len(ids)):
        for c in range(g.shape[1]):
            dx[e, c] = g[ids[e], c]
    return dx


# ---------------------------------------------------------------- max


@jit
def largest(values, ids, N):
    """Return y_n = max values_e over the rows e of segment n, or 0 if the segment is empty."""
    y, filled = np.full((N, values.shape[1]), -np.inf, values.dtype), np.zeros(N, np.bool_)
    for e in range(len(ids)):
        filled[ids[e]] = True
        for c in range(y.shape[1]):
            value = values[e, c]
            if value > y[ids[e], c] or value != value:  # the second condition is True for nan
                y[ids[e], c] = value
    for n in range(N):
        if not filled[n]:
            y[n] = 0
    return y


@jit
def largest_backward(g, y, values, ids):
    """Return dx_e = g_n / t if row e is one of the t rows with values_e = y_n, and 0 otherwise."""
    dx, tied = np.zeros_like(values), np.zeros_like(y)
    for e in range(len(ids)):
        for c in range(y.shape[1]):
            tied[ids[e], c] += values[e, c] == y[ids[e], c]
    for e in range(len(ids)):
        for c in range(y.shape[1]):
            if values[e, c] == y[ids[e], c]:
                dx[e, c] = g[ids[e], c] / tied[ids[e], c]
    return dx


# ---------------------------------------------------------------- product


@jit
def product(values, ids, N):
    """Return y_n = Π values_e over the rows e of segment n, or 1 if the segment is empty."""
    y = np.ones((N, values.shape[1]), values.dtype)
    for e in range(len(ids)):
        for c in range(y.shape[1]):
            y[ids[e], c] *= values[e, c]
    return y


@jit
def product_backward(g, values, ids):
    """Return dx_e = g_n Π values_e' over the other rows e' of segment n, without a division."""
    dx = np.empty_like(values)
    for e in range(len(ids)):
        for c in range(g.shape[1]):
            dx[e, c] = g[ids[e], c]
            for other in range(len(ids)):
                if other != e and ids[other] == ids[e]:
                    dx[e, c] *= values[other, c]
    return dx


# ---------------------------------------------------------------- softmax


@jit
def softmax(values, ids, N):
    """Return a_e = exp(values_e - top_n) / Σ_e' exp(values_e' - top_n) for e, e' in segment n.

    top_n is the maximum of the segment, which cancels but prevents an overflow. If all values of a
    segment are -inf, a_e is 0.
    """
    a, top = np.empty_like(values), largest(values, ids, N)
    total = np.zeros_like(top)
    for e in range(len(ids)):
        for c in range(top.shape[1]):
            # -inf - -inf would be nan. Every other exp is at most 1, so it cannot overflow
            hidden = values[e, c] == -math.inf
            a[e, c] = 0 if hidden else math.exp(values[e, c] - top[ids[e], c])
            total[ids[e], c] += a[e, c]
    for e in range(len(ids)):
        for c in range(top.shape[1]):
            if total[ids[e], c] != 0:
                a[e, c] /= total[ids[e], c]
    return a


@jit
def softmax_backward(g, a, ids, N):
    """Return dx_e = a_e (g_e - Σ_e' a_e' g_e'), summed over the rows e' of the segment of e."""
    dx, mean = np.empty_like(a), np.zeros((N, a.shape[1]), a.dtype)
    for e in range(len(ids)):
        for c in range(a.shape[1]):
            mean[ids[e], c] += a[e, c] * g[e, c]
    for e in range(len(ids)):
        for c in range(a.shape[1]):
            dx[e, c] = a[e, c] * (g[e, c] - mean[ids[e], c])
    return dx
