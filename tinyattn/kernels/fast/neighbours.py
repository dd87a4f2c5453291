"""Messages from K neighbours to each point, where K is the same for all points.

    y_nf  = 1/K Σ_k w_nk h_if   and   z_nf = max_k w_nk h_if,     i = index_nk
    d²_nk = Σ_s (x_ns - x_is)²

The N·K·F messages are never stored, neither forward nor backward. In the backward pass, each sender
i collects the gradients of all receivers n that it is a neighbour of, which `reverse_index` lists.
Therefore, two threads never add to the same number. kernels/neighbours.py has the same formulas as
loops.
"""

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.machine.compile import jit_no_fma
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import (
    broadcast,
    hsum,
    maximum_or_nan,
    select_equal,
    select_greater,
    width,
)
from tinyattn.kernels.machine.thread_pool import parallel_for

# ---------------------------------------------------------------- the receivers of each sender


@jit_no_fma
def _reverse_index(starts, edges, receivers, index):
    N, K = index.shape
    for n in range(N):
        for k in range(K):
            starts[index[n, k] + 1] += 1
    for i in range(len(starts) - 1):
        starts[i + 1] += starts[i]
    place = starts.copy()
    for n in range(N):
        for k in range(K):
            i = index[n, k]
            edges[place[i]], receivers[place[i]] = n * K + k, n
            place[i] += 1


def reverse_index(index, senders):
    """Return (starts, edges, receivers), where point i has entries starts[i] … starts[i + 1] - 1.

    `senders` is the number of points. An edge from point i has index[n, k] = i. Its entry in edges
    is n · K + k, and its entry in receivers is n.
    """
    starts, (edges, receivers) = (
        np.zeros(senders + 1, np.int64),
        np.empty((2, index.size), np.int64),
    )
    _reverse_index(starts, edges, receivers, index)
    return starts, edges, receivers


# ---------------------------------------------------------------- mean and max


@jit_no_fma
def forward(y, w, h, index, K, F, team, first, last):
    """Compute y = [mean, max], with vectors of consecutive features in the innermost loop."""
    if fork_join(team, first, last):
        return
    for n in range(first, last):
        for f in range(0, F, width(h)):
            total, highest = broadcast(h, 0), broadcast(h, -np.inf)
            for e in range(n * K, (n + 1) * K):
                row = index[e] * F
                v = load_partial(h, row + f, row + F, 0) * w[e]
                total, highest = total + v, maximum_or_nan(highest, v)
            i = 2 * n * F + f
            store_partial(y, i, (2 * n + 1) * F, total / broadcast(h, K))
            store_partial(y, i + F, (2 * n + 2) * F, highest)


@jit_no_fma
def backward_weights(dw, shared, g, y, w, h, index, K, F, team, first, last):
    """Compute dw_nk = Σ_f h_if (g_nf / K + shared_nf [w_nk h_if = z_nf]), and shared.

    shared_nf is the gradient of the maximum z_nf, divided by the number of messages equal to it.
    """
    if fork_join(team, first, last):
        return
    W, zero, one, part = width(h), broadcast(h, 0), broadcast(h, 1), broadcast(h, K)
    for n in range(first, last):
        at, mean, top, end = n * F, 2 * n * F, (2 * n + 1) * F, (2 * n + 2) * F
        for f in range(0, F, W):
            highest, tied = load_partial(y, top + f, end, 0), zero
            for e in range(n * K, (n + 1) * K):
                row = index[e] * F
                v = load_partial(h, row + f, row + F, 0) * w[e]
                tied = tied + select_equal(v, highest, one, zero)
            store_partial(shared, at + f, at + F, load_partial(g, top + f, end, 0) / tied)
        for e in range(n * K if dw.size else (n + 1) * K, (n + 1) * K):
            row, sums = index[e] * F, zero
            for f in range(0, F, W):
                h_i, highest = (
                    load_partial(h, row + f, row + F, 0),
                    load_partial(y, top + f, end, 0),
                )
                own = select_equal(
                    h_i * w[e], highest, load_partial(shared, at + f, at + F, 0), zero
                )
                sums = sums + h_i * (load_partial(g, mean + f, top, 0) / part + own)
            dw[e] = hsum(sums)


@jit_no_fma
def backward_messages(dh, shared, g, y, w, h, reverse, K, F, team, first, last):
    """Compute dh_if = Σ w_nk (g_nf / K + shared_nf [w_nk h_if = z_nf]) over the edges nk from i."""
    if fork_join(team, first, last):
        return
    starts, edges, receivers = reverse
    part, zero = h.dtype.type(1) / h.dtype.type(K), broadcast(h, 0)
    for i in range(first, last):
        for f in range(0, F, width(h)):
            h_i, d = load_partial(h, i * F + f, (i + 1) * F, 0), zero
            for edge in range(starts[i], starts[i + 1]):
                n, weight = receivers[edge], w[edges[edge]]
                top, end = (2 * n + 1) * F, (2 * n + 2) * F
                own = load_partial(shared, n * F + f, (n + 1) * F, 0)
                own = select_equal(h_i * weight, load_partial(y, top + f, end, 0), own, zero)
                d = d + (load_partial(g, top - F + f, top, 0) * part + own) * weight
            store_partial(dh, i * F + f, (i + 1) * F, d)


def mean_max(w, h, index):
    """Return the mean and the maximum of the messages w_nk h_i, concatenated, [N, 2F]."""
    (N, K), F = index.shape, h.shape[1]
    y = np.empty((N, 2 * F), h.dtype)
    parallel_for(forward, N, *map(ravel, (y, w, h, index)), K, F)
    return y


def mean_max_backward(g, y, w, h, index, reverse, weights_wanted):
    """Return dw (None unless weights_wanted) and dh. `reverse` comes from `reverse_index`."""
    (N, K), (M, F) = index.shape, h.shape
    shared, dh = np.empty(N * F, h.dtype), np.empty_like(h)
    dw = np.empty(w.shape if weights_wanted else (0, 0), h.dtype)
    arrays = [ravel(x) for x in (g, y, w, h)]
    parallel_for(backward_weights, N, dw.reshape(-1), shared, *arrays, index.reshape(-1), K, F)
    parallel_for(backward_messages, M, dh.reshape(-1), shared, *arrays, reverse, K, F)
    return dw if weights_wanted else None, dh


# ---------------------------------------------------------------- max


@jit_no_fma
def forward_max(y, tied, h, index, K, F, team, first, last):
    """Compute y_nf = max_k h_if, and in tied_nf the number of neighbours with h_if = y_nf."""
    if fork_join(team, first, last):
        return
    zero, one = broadcast(h, 0), broadcast(h, 1)
    for n in range(first, last):
        for f in range(0, F, width(h)):
            highest, number = broadcast(h, -np.inf), zero
            for i in index[n * K : (n + 1) * K]:
                v = load_partial(h, i * F + f, (i + 1) * F, 0)
                number = select_equal(
                    v, highest, number + one, select_greater(highest, v, number, one)
                )
                highest = maximum_or_nan(highest, v)
            store_partial(y, n * F + f, (n + 1) * F, highest)
            store_partial(tied, n * F + f, (n + 1) * F, number)


@jit_no_fma
def backward_max(dh, shared, y, h, reverse, F, team, first, last):
    """Compute dh_if = Σ shared_nf [h_if = y_nf] over receivers n of i, with shared = g / tied."""
    if fork_join(team, first, last):
        return
    starts, _, receivers = reverse
    zero = broadcast(h, 0)
    for i in range(first, last):
        for f in range(0, F, width(h)):
            h_i, d = load_partial(h, i * F + f, (i + 1) * F, 0), zero
            for n in receivers[starts[i] : starts[i + 1]]:
                at, end = n * F + f, (n + 1) * F
                own = load_partial(shared, at, end, 0)
                d = d + select_equal(h_i, load_partial(y, at, end, 0), own, zero)
            store_partial(dh, i * F + f, (i + 1) * F, d)


def maximum(h, index):
    """Return y_nf = max_k h_if, and the number of neighbours with h_if = y_nf, both [N, F]."""
    (N, K), F = index.shape, h.shape[1]
    y, tied = np.empty((2, N, F), h.dtype)
    parallel_for(forward_max, N, *map(ravel, (y, tied, h, index)), K, F)
    return y, tied


def maximum_backward(g, y, tied, h, index, reverse):
    """Return dh, where tied maxima share the gradient."""
    dh = np.empty_like(h)
    parallel_for(backward_max, len(h), *map(ravel, (dh, g / tied, y, h)), reverse, h.shape[1])
    return dh


# ---------------------------------------------------------------- squared distances


@jit_no_fma
def distances(d2, x, index, team, first, last):
    """Compute d²_nk = Σ_s (x_ns - x_is)²."""
    if fork_join(team, first, last):
        return
    for n in range(first, last):
        for k in range(index.shape[1]):
            i, total = index[n, k], x.dtype.type(0)
            for s in range(x.shape[1]):
                total += (x[n, s] - x[i, s]) * (x[n, s] - x[i, s])
            d2[n, k] = total


@jit_no_fma
def backward_distances(dx, g, x, index, reverse, team, first, last):
    """Compute dx_n = 2 Σ_k g_nk (x_n - x_i), plus 2 Σ g (x_n - x_j) over the receivers j of n."""
    if fork_join(team, first, last):
        return
    starts, edges, receivers = reverse
    K = index.shape[1]
    for n in range(first, last):
        dx[n] = 0
        for k in range(K):
            i = index[n, k]
            for s in range(x.shape[1]):
                dx[n, s] += 2 * g[n, k] * (x[n, s] - x[i, s])
        for edge in range(starts[n], starts[n + 1]):
            j = receivers[edge]
            slope = 2 * g[j, edges[edge] - j * K]
            for s in range(x.shape[1]):
                dx[n, s] += slope * (x[n, s] - x[j, s])


def squared_distances(x, index):
    """Return d²_nk between each point and its neighbours, [N, K]."""
    d2 = np.empty(index.shape, x.dtype)
    parallel_for(distances, len(index), d2, x, index)
    return d2


def squared_distances_backward(g, x, index, reverse):
    """Return dx, the gradient of the points."""
    dx = np.empty_like(x)
    parallel_for(backward_distances, len(x), dx, g, x, index, reverse)
    return dx


# ---------------------------------------------------------------- sums for each edge


@jit_no_fma
def pairs(y, p, q, index, team, first, last):
    """Compute y_nk = p_n + q_i."""
    if fork_join(team, first, last):
        return
    for n in range(first, last):
        for k in range(index.shape[1]):
            row, own, other = y[n, k], p[n], q[index[n, k]]
            for f in range(len(own)):
                row[f] = own[f] + other[f]


@jit_no_fma
def backward_pairs(dp, dq, g, reverse, team, first, last):
    """Compute dp_n = Σ_k g_nk, and dq_n the sum over the edges from n."""
    if fork_join(team, first, last):
        return
    starts, edges, receivers = reverse
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
        for edge in range(starts[n], starts[n + 1]):
            j = receivers[edge]
            row = g[j, edges[edge] - j * K]
            for f in range(len(d)):
                d[f] += row[f]


def pair_sums(p, q, index):
    """Return p_n + q_i for each point n and each of its neighbours i, [N, K, F]."""
    y = empty_pooled((*index.shape, q.shape[1]), q.dtype)
    parallel_for(pairs, len(index), y, p, q, index)
    return y


def pair_sums_backward(g, reverse):
    """Return dp and dq, for p and q with the same number of rows."""
    dp, dq = np.empty((2, len(g), g.shape[2]), g.dtype)
    parallel_for(backward_pairs, len(g), dp, dq, g, reverse)
    return dp, dq
