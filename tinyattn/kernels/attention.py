"""Attention as loops: every query t receives a weighted mean of the values, y_t = Σ_s a_ts v_s.

    score_ts = scale Σ_d q_td k_sd + bias_ts         how well key s matches query t
    a_ts     = exp(score_ts) / Σ_s' exp(score_ts')   the weights of a query sum to 1
    y_td     = Σ_s a_ts v_sd

The same result is computed in two ways, each with its gradient:

1. `attention_loops` computes the three formulas one after the other. It stores all T·S weights.
2. `blockwise` reads the keys only once, one block at a time. It stores only the weights of one
block, and the backward pass computes them again, block by block.

fast/attention.py is `blockwise` with vector instructions and threads, for 64 queries at a time
instead of one.

These loops work on one head of one sequence, with q [T, D], k [S, D], v [S, E], mask and bias [T,
S]. Where the mask is False, or s > t under `causal`, the score is -∞. For a query t that may not
attend to any key, y_t and dq_t are 0. A gradient dL/dx is called dx, and dL/dy is called g.
"""

import math

import numpy as np

from tinyattn.kernels import helper, jit


@helper
def scores(row, q, k, mask, bias, causal, scale, t, start, stop):
    """Write the scores of query t for the keys start … stop - 1 to `row`, -∞ for hidden keys."""
    for s in range(start, stop):
        score = -math.inf
        if mask[t, s] and (s <= t or not causal):
            score = bias[t, s]
            for d in range(q.shape[1]):
                score += scale * q[t, d] * k[s, d]
        row[s - start] = score


# ---------------------------------------------------------------- 1. the sums, as they are written


@jit
def attention_loops(q, k, v, mask, bias, causal, scale):
    """Return y [T, E], y_td = Σ_s a_ts v_sd, and all weights a [T, S]."""
    T, (S, E) = len(q), v.shape
    y, a = np.zeros((T, E), q.dtype), np.zeros((T, S), q.dtype)
    for t in range(T):
        scores(a[t], q, k, mask, bias, causal, scale, t, 0, S)
        highest = np.finfo(q.dtype).min  # finite, so that -∞ - highest is -∞ and not nan
        for s in range(S):
            if a[t, s] > highest:
                highest = a[t, s]
        total = 0.0
        for s in range(S):
            a[t, s] = math.exp(a[t, s] - highest)  # at most 1: it cannot overflow
            total += a[t, s]
        for s in range(S):
            a[t, s] = a[t, s] / total if a[t, s] != 0 else 0.0  # total may be 0, or nan
            for d in range(E):
                y[t, d] += a[t, s] * v[s, d]
    return y, a


@jit
def attention_loops_backward(g, q, k, v, a, scale):
    """Return dq, dk, dv and dbias, with the chain rule for the three formulas, the last one first.

    y_t = Σ_s a_ts v_s             dv_s = Σ_t a_ts g_t,   da_ts = g_t·v_s
    a = softmax(score)             dscore_ts = a_ts (da_ts - Σ_s' a_ts' da_ts')
    score = scale q·k + bias       dq_t = scale Σ_s dscore_ts k_s,   dk_s = scale Σ_t dscore_ts q_t
    """
    (T, D), (S, E) = q.shape, v.shape
    dq, dk, dv, dscore = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v), np.zeros_like(a)
    for t in range(T):
        mean = 0.0  # Σ_s a_ts da_ts
        for s in range(S):
            da = 0.0
            for d in range(E):
                da += g[t, d] * v[s, d]
                dv[s, d] += a[t, s] * g[t, d]
            dscore[t, s] = da
            mean += a[t, s] * da
        for s in range(S):
            dscore[t, s] = a[t, s] * (dscore[t, s] - mean) if a[t, s] != 0 else 0.0
            for d in range(D):
                dq[t, d] += scale * dscore[t, s] * k[s, d]
                dk[s, d] += scale * dscore[t, s] * q[t, d]
    return dq, dk, dv, dscore  # the bias is added to the score, so dscore is its gradient


# ---------------------------------------------------------------- 2. block by block


@jit
def blockwise(q, k, v, mask, bias, causal, scale, block):
    """Return y [T, E], computed with `block` keys at a time, and highest and total [T].

    highest [T] is the highest score of each query, and total [T] is Σ_s exp(score_ts - highest_t).
    The backward pass needs both.

    The softmax needs the highest score of all keys, but the keys are read only once. The sums are
    therefore computed with the highest score so far:

        total_t = Σ exp(score_ts - highest_t)    y_td = Σ exp(score_ts - highest_t) v_sd

    When a block raises the maximum, both sums are multiplied by exp(old highest - new highest). The
    products are the same as if the new maximum had been used from the start. The division by
    total_t comes at the end. Source: Milakov and Gimelshein 2018 (online softmax), Dao et al. 2022
    (FlashAttention).
    """
    T, (S, E) = len(q), v.shape
    y, highest, total = np.zeros((T, E), q.dtype), np.zeros(T), np.zeros(T)
    row = np.zeros(block)
    for t in range(T):
        highest[t] = np.finfo(q.dtype).min  # finite, so that -∞ - highest is -∞ and not nan
        for start in range(0, S, block):
            stop, old = min(start + block, S), highest[t]
            scores(row, q, k, mask, bias, causal, scale, t, start, stop)
            for s in range(start, stop):
                if row[s - start] > highest[t]:
                    highest[t] = row[s - start]
            shrink = math.exp(old - highest[t])
            total[t] *= shrink
            for d in range(E):
                y[t, d] *= shrink
            for s in range(start, stop):
                weight = math.exp(row[s - start] - highest[t])
                total[t] += weight
                for d in range(E):
                    y[t, d] += weight * v[s, d]
        for d in range(E):
            y[t, d] = y[t, d] / total[t] if total[t] != 0 else 0.0
    return y, highest, total


@jit
def blockwise_backward(g, y, highest, total, q, k, v, mask, bias, causal, scale, block):
    """Return dq, dk, dv and dbias, with the weights of each block computed again.

    y, highest and total are the results of `blockwise`, so a_ts = exp(score_ts - highest_t) /
    total_t. With da_ts = g_t·v_s, the sum Σ_s a_ts da_ts does not need a second pass over the keys,
    because it is g_t·y_t.
    """
    T, D, (S, E) = len(q), k.shape[1], v.shape
    dq, dk, dv, dbias = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v), np.zeros_like(bias)
    row = np.zeros(block)
    for t in range(T):
        mean = 0.0
        for d in range(E):
            mean += g[t, d] * y[t, d]
        for start in range(0, S if total[t] != 0 else 0, block):
            stop = min(start + block, S)
            scores(row, q, k, mask, bias, causal, scale, t, start, stop)
            for s in range(start, stop):
                a = math.exp(row[s - start] - highest[t])
                # hidden keys keep weight 0 even if another score is nan
                a = a / total[t] if a != 0 else 0.0
                da = 0.0
                for d in range(E):
                    da += g[t, d] * v[s, d]
                    dv[s, d] += a * g[t, d]
                dscore = dbias[t, s] = a * (da - mean) if a != 0 else 0.0
                for d in range(D):
                    dq[t, d] += scale * dscore * k[s, d]
                    dk[s, d] += scale * dscore * q[t, d]
    return dq, dk, dv, dbias


# ---------------------------------------------------------------- for all heads


def heads_by_loops(q, k, v, mask, bias, causal, scale):
    """Return y [..., T, E] and the weights [N, T, S] of N heads, each by `attention_loops`.

    mask and bias may be None.
    """
    lead, T, (S, E) = leading_axes(q, k, v), q.shape[-2], v.shape[-2:]
    arrays = matrices_of(lead, q, k, v, *mask_and_bias(lead, q, k, mask, bias))
    N = math.prod(lead)
    y, a = np.empty((N, T, E), q.dtype), np.empty((N, T, S), q.dtype)
    for n in range(N):
        y[n], a[n] = attention_loops(*[x[n] for x in arrays], causal, scale)
    return y.reshape(*lead, T, E), a


def heads_by_loops_backward(g, a, q, k, v, scale):
    """Return dq, dk, dv and dbias of all heads, where a are the weights from `heads_by_loops`.

    The leading axes of all four are those of g, to which q, k and v are broadcast.
    """
    lead = g.shape[:-2]
    arrays = g, q, k, v = matrices_of(lead, g, q, k, v)
    out = [np.empty_like(x) for x in (q, k, v, a)]
    for n in range(len(g)):
        for d, found in zip(
            out, attention_loops_backward(*[x[n] for x in arrays], a[n], scale), strict=True
        ):
            d[n] = found
    return [d.reshape(*lead, *d.shape[1:]) for d in out]


def leading_axes(q, k, v):
    """Return the leading axes of q, k and v (all but the last two), broadcast together."""
    axes = q.shape[:-2]
    if axes == k.shape[:-2] == v.shape[:-2]:
        return axes
    return np.broadcast_shapes(axes, k.shape[:-2], v.shape[:-2])


def mask_and_bias(lead, q, k, mask, bias):
    """Return mask and bias as arrays [*lead, T, S]. A missing mask is True, a missing bias is 0."""
    shape = *lead, q.shape[-2], k.shape[-2]
    mask = np.broadcast_to(True if mask is None else mask, shape)
    return mask, np.broadcast_to(q.dtype.type(0) if bias is None else bias, shape)


def matrices_of(lead, *arrays):
    """Return each array, broadcast to the leading axes `lead`, as contiguous [N, rows, columns]."""
    arrays = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in arrays]
    return [np.require(x.reshape(math.prod(lead), *x.shape[-2:]), None, ["C", "W"]) for x in arrays]
