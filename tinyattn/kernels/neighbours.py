"""Aggregation over K neighbours of each point, as loops. i = index_nk is neighbour k of point n.

    y_nf  = 1/K Σ_k w_nk h_if   and   z_nf = max_k w_nk h_if      messages of GravNet (slide K48)
    z_nf  = max_k h_if                                            the maximum without weights
    d²_nk = Σ_s (x_ns - x_is)²                                    squared distances
    e_nkf = p_nf + q_if                                           a sum for each edge

The shapes are index [N, K] with K ≥ 1, w [N, K], h [M, F], x [N, S], p and q [N, F]. A gradient
dL/dx is called dx, and g is the gradient of the result. A backward pass adds to row i of each
neighbour, because several points may have the same neighbour. `jit_no_fma` forbids the instruction
that computes a·b + c with one rounding. Therefore, forward and backward pass compute exactly the
same messages, so the backward pass finds the largest message again.
"""

import numpy as np

from tinyattn.kernels import jit_no_fma

# ---------------------------------------------------------------- mean and max of messages


@jit_no_fma
def mean_max(w, h, index):
    """Return the mean y and the maximum z of the messages w_nk h_if, concatenated, [N, 2F]."""
    (N, K), F = index.shape, h.shape[1]
    out = np.zeros((N, 2 * F), h.dtype)
    for n in range(N):
        for f in range(F):
            total, highest = h.dtype.type(0), w[n, 0] * h[index[n, 0], f]
            for k in range(K):
                message = w[n, k] * h[index[n, k], f]
                total += message
                if message > highest or message != message:  # the second condition is True for nan
                    highest = message
            out[n, f], out[n, F + f] = total / K, highest
    return out


@jit_no_fma
def mean_max_backward(g, out, w, h, index):
    """Return dw and dh. A message receives g_nf / K, and equal maxima share the gradient of z_nf.

    `out` is the result of `mean_max`, and g [N, 2F] is the gradient of `out`.
    """
    (N, K), F = index.shape, h.shape[1]
    dw, dh = np.zeros_like(w), np.zeros_like(h)
    for n in range(N):
        for f in range(F):
            tied = 0
            for k in range(K):
                tied += w[n, k] * h[index[n, k], f] == out[n, F + f]
            for k in range(K):
                i = index[n, k]
                slope = g[n, f] / K
                if w[n, k] * h[i, f] == out[n, F + f]:
                    slope += g[n, F + f] / tied
                dw[n, k] += slope * h[i, f]
                dh[i, f] += slope * w[n, k]
    return dw, dh


@jit_no_fma
def largest(h, index):
    """Return the maximum over the neighbours, z_nf = max_k h_if, [N, F]."""
    (N, K), F = index.shape, h.shape[1]
    z = np.full((N, F), -np.inf, h.dtype)
    for n in range(N):
        for k in range(K):
            for f in range(F):
                value = h[index[n, k], f]
                if value > z[n, f] or value != value:
                    z[n, f] = value
    return z


@jit_no_fma
def largest_backward(g, z, h, index):
    """Return dh, where all neighbours with h_if = z_nf share g_nf. z is the result of `largest`."""
    (N, K), F = index.shape, h.shape[1]
    dh = np.zeros_like(h)
    for n in range(N):
        for f in range(F):
            tied = 0
            for k in range(K):
                tied += h[index[n, k], f] == z[n, f]
            for k in range(K):
                if h[index[n, k], f] == z[n, f]:
                    dh[index[n, k], f] += g[n, f] / tied
    return dh


# ---------------------------------------------------------------- squared distances


@jit_no_fma
def squared_distances(x, index):
    """Return the squared distances, d²_nk = Σ_s (x_ns - x_is)², [N, K]."""
    (N, K), S = index.shape, x.shape[1]
    d2 = np.zeros((N, K), x.dtype)
    for n in range(N):
        for k in range(K):
            for s in range(S):
                difference = x[n, s] - x[index[n, k], s]
                d2[n, k] += difference * difference
    return d2


@jit_no_fma
def squared_distances_backward(g, x, index):
    """Return dx. Each distance contributes to the dx of both points, with opposite signs."""
    (N, K), S = index.shape, x.shape[1]
    dx = np.zeros_like(x)
    for n in range(N):
        for k in range(K):
            for s in range(S):
                slope = 2 * g[n, k] * (x[n, s] - x[index[n, k], s])
                dx[n, s] += slope
                dx[index[n, k], s] -= slope
    return dx


# ---------------------------------------------------------------- sums for each edge


@jit_no_fma
def pair_sums(p, q, index):
    """Return a sum for each edge, e_nkf = p_nf + q_if, [N, K, F]."""
    (N, K), F = index.shape, q.shape[1]
    out = np.empty((N, K, F), q.dtype)
    for n in range(N):
        for k in range(K):
            for f in range(F):
                out[n, k, f] = p[n, f] + q[index[n, k], f]
    return out


@jit_no_fma
def pair_sums_backward(g, index):
    """Return dp_n and dq_i, the sums of g over the edges to point n and over those from point i."""
    N, K, F = g.shape
    dp, dq = np.zeros((N, F), g.dtype), np.zeros((N, F), g.dtype)
    for n in range(N):
        for k in range(K):
            for f in range(F):
                dp[n, f] += g[n, k, f]
                dq[index[n, k], f] += g[n, k, f]
    return dp, dq
