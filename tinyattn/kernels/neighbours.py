"""What a point hears from its K neighbours, when each has the same number of them.

    y_nf  = 1/K Σ_k w_nk h_if   and   z_nf = max_k w_nk h_if,     i = index_nk
    d²_nk = Σ_s (x_ns - x_is)²

The tensor of messages, N·K·F numbers, is never stored, in neither direction. In the backward pass
each sender i gathers the gradients from those who heard it, listed by `hearers`: no two threads
ever add to one place.
"""

import numpy as np

from tinyattn.kernels import jit
from tinyattn.kernels.crew import together
from tinyattn.kernels.nearest import exact
from tinyattn.kernels.threads import share
from tinyattn.memory import empty

# ---------------------------------------------------------------- who hears whom


@exact
def _hearers(starts, edges, index):
    for i in index:
        starts[i + 1] += 1
    for i in range(len(starts) - 1):
        starts[i + 1] += starts[i]
    place = starts.copy()
    for e in range(len(index)):
        edges[place[index[e]]] = e
        place[index[e]] += 1


def hearers(index, senders):
    """Point i is heard through the edges n · K + k in edges[starts[i] : starts[i + 1]]."""
    starts, edges = np.zeros(senders + 1, np.int64), np.empty(index.size, np.int64)
    _hearers(starts, edges, index.reshape(-1))
    return starts, edges


# ---------------------------------------------------------------- mean and max


@exact
def sums(y, w, h, index):
    """y = [mean, max], as the formulas are written."""
    N, K = index.shape
    F = h.shape[1]
    for n in range(N):
        for f in range(F):
            total, highest = h.dtype.type(0), w[n, 0] * h[index[n, 0], f]
            for k in range(K):
                v = w[n, k] * h[index[n, k], f]
                total += v
                highest = v if v > highest or v != v else highest
            y[n, f], y[n, F + f] = total / K, highest


@exact
def forward(y, w, h, index, crew, first, last):
    """The same, with the features innermost: they lie side by side."""
    if together(crew, first, last):
        return
    K, F = index.shape[1], h.shape[1]
    for n in range(first, last):
        mean, highest = y[n, :F], y[n, F:]
        mean[:] = 0
        highest[:] = -np.inf
        for k in range(K):
            weight, row = w[n, k], h[index[n, k]]
            for f in range(F):
                v = weight * row[f]
                mean[f] += v
                old = highest[f]
                highest[f] = old if (old > v) | (old != old) else v  # nan stays
        for f in range(F):
            mean[f] /= K


def _dot(gmean, own, highest, weight, row, K):
    total = row.dtype.type(0)
    for f in range(len(row)):
        g = gmean[f] / K + (own[f] if weight * row[f] == highest[f] else row.dtype.type(0))
        total += row[f] * g
    return total


# a sum in vectors, in an order that the compiler may choose
_dot = jit(_dot, fastmath={"contract", "reassoc", "nsz"})


@exact
def backward_weights(dw, shared, g, y, w, h, index, crew, first, last):
    """dw_nk = Σ_f h_if (g_nf / K + shared_nf [w_nk h_if = z_nf]), shared_nf the gradient of the
    maximum divided by the number of those that reach it."""
    if together(crew, first, last):
        return
    K, F = index.shape[1], h.shape[1]
    tied = np.empty(F, h.dtype)
    for n in range(first, last):
        highest, gmean, gmax, own = y[n, F:], g[n, :F], g[n, F:], shared[n]
        tied[:] = 0
        for k in range(K):
            weight, row = w[n, k], h[index[n, k]]
            for f in range(F):
                tied[f] += h.dtype.type(1) if weight * row[f] == highest[f] else h.dtype.type(0)
        for f in range(F):
            own[f] = gmax[f] / tied[f]
        if dw.size:
            for k in range(K):
                dw[n, k] = _dot(gmean, own, highest, w[n, k], h[index[n, k]], K)


@exact
def backward_messages(dh, shared, g, y, w, h, starts, edges, crew, first, last):
    """dh_if = Σ w_nk (g_nf / K + shared_nf [w_nk h_if = z_nf]) over the edges nk that hear i."""
    if together(crew, first, last):
        return
    K, F = w.shape[1], h.shape[1]
    part = h.dtype.type(1) / h.dtype.type(K)
    for i in range(first, last):
        row, d = h[i], dh[i]
        d[:] = 0
        for e in edges[starts[i] : starts[i + 1]]:
            n = e // K
            weight = w[n, e % K]
            highest, gmean, own = y[n, F:], g[n, :F], shared[n]
            for f in range(F):
                v = part * gmean[f]
                v += own[f] if weight * row[f] == highest[f] else h.dtype.type(0)
                d[f] += weight * v


def mean_max_sums(w, h, index):
    """[mean, max] by `sums`. [N, 2F]"""
    y = np.empty((len(index), 2 * h.shape[1]), h.dtype)
    sums(y, w, h, index)
    return y


def mean_max(w, h, index):
    """[mean, max] of w_nk h_i. [N, 2F]"""
    y = np.empty((len(index), 2 * h.shape[1]), h.dtype)
    share(forward, len(index), y, w, h, index)
    return y


def mean_max_backward(g, y, w, h, index, heard, weights_wanted):
    """dw (None if not wanted) and dh."""
    shared = np.empty((len(index), h.shape[1]), h.dtype)
    dw = np.empty(w.shape if weights_wanted else (0, 0), h.dtype)
    share(backward_weights, len(index), dw, shared, g, y, w, h, index)
    dh = np.empty_like(h)
    share(backward_messages, len(h), dh, shared, g, y, w, h, *heard)
    return dw if weights_wanted else None, dh


# ---------------------------------------------------------------- the maximum alone


@exact
def forward_max(y, tied, h, index, crew, first, last):
    """y_nf = max_k h_if, and how many of the k reach it."""
    if together(crew, first, last):
        return
    one = h.dtype.type(1)
    for n in range(first, last):
        highest, number = y[n], tied[n]
        highest[:] = -np.inf
        number[:] = 0
        for i in index[n]:
            row = h[i]
            for f in range(len(row)):
                v, old = row[f], highest[f]
                same = number[f] + one if v == old else number[f]
                number[f] = same if old >= v else one
                highest[f] = old if (old > v) | (old != old) else v  # nan stays


@exact
def backward_max(dh, shared, y, h, starts, edges, K, crew, first, last):
    """dh_if = Σ shared_nf [h_if = y_nf] over the n that hear i."""
    if together(crew, first, last):
        return
    zero = h.dtype.type(0)
    for i in range(first, last):
        row, d = h[i], dh[i]
        d[:] = 0
        for e in edges[starts[i] : starts[i + 1]]:
            n = e // K
            highest, own = y[n], shared[n]
            for f in range(len(row)):
                d[f] += own[f] if row[f] == highest[f] else zero


def maximum(h, index):
    """max_k h_i [N, F], and how many reach it [N, F]."""
    y, tied = np.empty((2, len(index), h.shape[1]), h.dtype)
    share(forward_max, len(index), y, tied, h, index)
    return y, tied


def maximum_backward(g, y, tied, h, index, heard):
    """dh; those who are tied share the gradient."""
    dh = np.empty_like(h)
    share(backward_max, len(h), dh, g / tied, y, h, *heard, index.shape[1])
    return dh


# ---------------------------------------------------------------- squared distances


@exact
def distances(d2, x, index, crew, first, last):
    """d²_nk = Σ_s (x_ns - x_is)²."""
    if together(crew, first, last):
        return
    for n in range(first, last):
        for k in range(index.shape[1]):
            i, total = index[n, k], x.dtype.type(0)
            for s in range(x.shape[1]):
                total += (x[n, s] - x[i, s]) * (x[n, s] - x[i, s])
            d2[n, k] = total


@exact
def backward_distances(dx, g, x, index, starts, edges, crew, first, last):
    """dx_n = 2 Σ_k g_nk (x_n - x_i) and, for those who hear n, the same from the other end."""
    if together(crew, first, last):
        return
    K = index.shape[1]
    for n in range(first, last):
        dx[n] = 0
        for k in range(K):
            i = index[n, k]
            for s in range(x.shape[1]):
                dx[n, s] += 2 * g[n, k] * (x[n, s] - x[i, s])
        for e in edges[starts[n] : starts[n + 1]]:
            j = e // K
            for s in range(x.shape[1]):
                dx[n, s] += 2 * g[j, e % K] * (x[n, s] - x[j, s])


def squared_distances(x, index):
    """d²_nk of each point and its neighbours. [N, K]"""
    d2 = np.empty(index.shape, x.dtype)
    share(distances, len(index), d2, x, index)
    return d2


def squared_distances_backward(g, x, index, heard):
    """dx."""
    dx = np.empty_like(x)
    share(backward_distances, len(x), dx, g, x, index, *heard)
    return dx


# ---------------------------------------------------------------- sums for each edge


@exact
def pairs(y, p, q, index, crew, first, last):
    """y_nk = p_n + q_i."""
    if together(crew, first, last):
        return
    for n in range(first, last):
        for k in range(index.shape[1]):
            row, own, other = y[n, k], p[n], q[index[n, k]]
            for f in range(len(own)):
                row[f] = own[f] + other[f]


@exact
def backward_pairs(dp, dq, g, starts, edges, crew, first, last):
    """dp_n = Σ_k g_nk, and dq_n the sum over the edges that hear n."""
    if together(crew, first, last):
        return
    K = g.shape[1]
    for n in range(first, last):
        d = dp[n]
        d[:] = 0
        for k in range(K):
            row = g[n, k]
            for f in range(len(d)):
                d[f] += row[f]
        d = dq[n]
        d[:] = 0
        for e in edges[starts[n] : starts[n + 1]]:
            row = g[e // K, e % K]
            for f in range(len(d)):
                d[f] += row[f]


def pair_sums(p, q, index):
    """p_n + q_i for each point n and each of its neighbours. [N, K, F]"""
    y = empty((*index.shape, q.shape[1]), q.dtype)
    share(pairs, len(index), y, p, q, index)
    return y


def pair_sums_backward(g, heard):
    """dp and dq; there are as many p as q."""
    dp, dq = np.empty((2, len(g), g.shape[2]), g.dtype)
    share(backward_pairs, len(g), dp, dq, g, *heard)
    return dp, dq
