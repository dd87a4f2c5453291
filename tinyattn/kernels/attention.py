"""Attention: every query t takes a weighted mean of the values, y_t = Σ_s a_ts v_s.

    score_ts = scale Σ_d q_td k_sd + bias_ts         how well key s answers query t
    a_ts     = exp(score_ts) / Σ_s' exp(score_ts')   the weights of a query sum to 1
    y_td     = Σ_s a_ts v_sd

Two versions, with the same arguments and the same results:

1. `attention_sums`: these sums as loops. It keeps all weights, N² numbers.
2. `attention`: one pass over the keys in blocks, with a running maximum and a running sum. The
   weights of a block are used at once and forgotten, so the memory grows with N only; the
   backward pass computes them again.

Both take q [..., T, D], k [..., S, D], v [..., S, E] of one dtype, a bias of that dtype and a bool
mask that broadcast to [..., T, S] (or None), and return y [..., T, E] and what the backward
function wants to have back. Where the mask is False, or s > t under `causal`, the score is -∞.
A query that may see no key gives y = 0 and no gradient.

In the code n runs over all leading axes at once, t over queries, s over keys, d over features.
A gradient dL/dx is called dx; g is dL/dy.
"""

import math
from typing import NamedTuple

import numpy as np

from tinyattn.kernels import jit
from tinyattn.kernels.lanes import LANES, add_dots, add_product, blocks, exp, into_lanes, lanes
from tinyattn.kernels.threads import share

# ---------------------------------------------------------------- 1. the sums, as they are written


@jit
def sums(q, k, v, bias, mask, causal, scale):
    """y_td = Σ_s a_ts v_sd, and all weights a."""
    N, T, D = q.shape
    S, E = v.shape[1:]
    y, a = np.zeros((N, T, E), q.dtype), np.zeros((N, T, S), q.dtype)
    for n in range(N):
        for t in range(T):
            highest = np.finfo(q.dtype).min  # finite, so that -∞ - highest is -∞, not nan
            for s in range(S):
                score = -math.inf
                if mask[n, t, s] and (s <= t or not causal):
                    score = bias[n, t, s]
                    for d in range(D):
                        score += scale * q[n, t, d] * k[n, s, d]
                a[n, t, s] = score
                if a[n, t, s] > highest:
                    highest = a[n, t, s]
            total = 0.0
            for s in range(S):
                a[n, t, s] = math.exp(a[n, t, s] - highest)  # ≤ 1: it cannot overflow
                total += a[n, t, s]
            for s in range(S):
                a[n, t, s] = a[n, t, s] / total if total != 0 else 0.0
                for d in range(E):
                    y[n, t, d] += a[n, t, s] * v[n, s, d]
    return y, a


@jit
def sums_backward(g, q, k, v, a, scale):
    """The chain rule through the three formulas, from the last to the first.

    y_t = Σ_s a_ts v_s             dv_s = Σ_t a_ts g_t,   da_ts = g_t · v_s
    a = softmax(score)             dscore_ts = a_ts (da_ts - Σ_s' a_ts' da_ts')
    score_ts = scale q_t·k_s + b   dq_t = scale Σ_s dscore_ts k_s,   dk_s = scale Σ_t dscore_ts q_t
    """
    N, T, D = q.shape
    S, E = v.shape[1:]
    dq, dk, dv, dscore = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v), np.zeros_like(a)
    for n in range(N):
        for t in range(T):
            mean = 0.0  # Σ_s a_ts da_ts
            for s in range(S):
                da = 0.0
                for d in range(E):
                    da += g[n, t, d] * v[n, s, d]
                    dv[n, s, d] += a[n, t, s] * g[n, t, d]
                dscore[n, t, s] = da
                mean += a[n, t, s] * da
            for s in range(S):
                dscore[n, t, s] = a[n, t, s] * (dscore[n, t, s] - mean)
                for d in range(D):
                    dq[n, t, d] += scale * dscore[n, t, s] * k[n, s, d]
                    dk[n, s, d] += scale * dscore[n, t, s] * q[n, t, d]
    return dq, dk, dv, dscore


def attention_sums(q, k, v, bias, mask, causal, scale):
    """`sums` for any leading axes."""
    lead = leading_axes(q, k, v)
    T, S = q.shape[-2], k.shape[-2]
    full = np.broadcast_to(q.dtype.type(0) if bias is None else bias, (*lead, T, S))
    allowed = np.broadcast_to(True if mask is None else mask, (*lead, T, S))
    arrays = [flat(x, lead) for x in (q, k, v, full, allowed)]
    y, a = sums(*arrays, causal, scale)
    return y.reshape(*lead, *y.shape[1:]), a


def attention_sums_backward(g, y, a, q, k, v, bias, mask, causal, scale, bias_wanted=True):
    """dq, dk, dv and dbias, with all leading axes broadcast."""
    lead = y.shape[:-2]
    gradients = sums_backward(*[flat(x, lead) for x in (g, q, k, v)], a, scale)
    return [d.reshape(*lead, *d.shape[1:]) for d in gradients]


# ---------------------------------------------------------------- 2. block by block

KEYS = 64  # keys in a block; a block of queries has LANES of them, side by side in vectors
PARTS = 8  # at least so many independent pieces of the backward pass, if there are enough queries


class Inputs(NamedTuple):
    """What every task reads. Bias and mask keep their own size: one row for all where broadcast."""

    q: np.ndarray  # [N, T, D]
    k: np.ndarray  # [N, S, D]
    v: np.ndarray  # [N, S, E]
    bias: np.ndarray  # [n, T or 1, S or 1]; empty if there is none
    mask: np.ndarray  # the same
    bias_of: np.ndarray  # [N]: bias[bias_of[n]] belongs to q[n]
    mask_of: np.ndarray
    causal: bool
    scale: float


def attention(q, k, v, bias, mask, causal, scale):
    """y, and for the backward pass the maximum and 1 / Σ of the exponentials of each query."""
    lead = leading_axes(q, k, v)
    x = inputs(lead, q, k, v, bias, mask, causal, scale)
    N, T, _ = x.q.shape
    y = np.empty((N, T, v.shape[-1]), q.dtype)
    highest, norm = np.empty((N, T), q.dtype), np.empty((N, T), q.dtype)
    share(lambda start, stop: forward(y, highest, norm, x, start, stop), N * blocks(T))
    return y.reshape(*lead, *y.shape[1:]), (highest, norm)


def attention_backward(g, y, saved, q, k, v, bias, mask, causal, scale, bias_wanted=True):
    """dq, dk, dv and dbias (None if not wanted), with all leading axes broadcast."""
    lead = y.shape[:-2]
    x = inputs(lead, q, k, v, bias, mask, causal, scale)
    N, T, _ = x.q.shape
    g, y = flat(g, lead), flat(y, lead)
    parts = max(1, min(blocks(T), -(-PARTS // max(N, 1))))
    dq = np.empty_like(x.q)
    dk, dv = (np.zeros((N, parts, *z.shape[1:]), z.dtype) for z in (x.k, x.v))
    rows, columns = x.bias.shape[1:] if bias_wanted else (0, 0)
    db = np.zeros((N, parts if rows == 1 else 1, rows, columns), q.dtype)
    share(lambda start, stop: backward(dq, dk, dv, db, g, y, *saved, x, start, stop), N * parts)
    dk, dv, db = dk.sum(axis=1), dv.sum(axis=1), db.sum(axis=1)
    dq, dk, dv, db = (d.reshape(*lead, *d.shape[1:]) for d in (dq, dk, dv, db))
    return dq, dk, dv, db if bias_wanted else None


@jit
def forward(y, highest, norm, x, start, stop):
    """One task: one block of queries of one head, against all keys.

    After each block of keys, top = max score, total = Σ exp(score - top) and
    acc = Σ exp(score - top) v hold for the keys so far. When the maximum rises, what was summed
    up shrinks by exp(old - new).  (Milakov and Gimelshein 2018; Rabe and Staats 2021; Dao 2022)
    """
    T, D = x.q.shape[1:]
    S, E = x.v.shape[1:]
    query, acc, tile = lanes(D, y), lanes(E, y), lanes(KEYS, y)
    top, shrink, total = lanes(1, y), lanes(1, y), lanes(1, y)
    for task in range(start, stop):
        n, t0 = task // blocks(T), task % blocks(T) * LANES
        rows = min(LANES, T - t0)
        into_lanes(query, x.q[n], t0, rows, x.scale)
        acc[:] = 0
        total[:] = 0
        top[:] = np.finfo(y.dtype).min
        for s0 in range(0, min(S, t0 + rows) if x.causal else S, KEYS):
            keys = min(KEYS, S - s0)
            if not scores(tile, query, x, n, t0, rows, s0, keys):
                continue
            shrink[:] = top
            for s in range(keys):
                for t in range(LANES):
                    score = tile[s * LANES + t]
                    top[t] = score if score > top[t] else top[t]
            for t in range(LANES):
                shrink[t] = exp(shrink[t] - top[t])
                total[t] *= shrink[t]
            for s in range(keys):
                for t in range(LANES):
                    weight = exp(tile[s * LANES + t] - top[t])
                    tile[s * LANES + t] = weight
                    total[t] += weight
            for d in range(E):
                for t in range(LANES):
                    acc[d * LANES + t] *= shrink[t]
            add_product(acc, x.v[n, s0 : s0 + keys].T, tile)
        for t in range(rows):
            highest[n, t0 + t] = top[t]
            norm[n, t0 + t] = 1 / total[t] if total[t] != 0 else 0
            for d in range(E):
                y[n, t0 + t, d] = acc[d * LANES + t] * norm[n, t0 + t]


@jit
def backward(dq, dk, dv, db, g, y, highest, norm, x, start, stop):
    """One task: every parts-th block of queries of one head, added up in a dk and dv of its own.

    The weights come back as a_ts = exp(score_ts - highest_t) norm_t. The mean of da that the
    softmax takes off needs no second pass: Σ_s a_ts da_ts = Σ_s a_ts g_t·v_s = g_t·y_t.
    """
    T, D = x.q.shape[1:]
    S, E = x.v.shape[1:]
    parts = dk.shape[1]
    query, dquery, grad = lanes(D, y), lanes(D, y), lanes(E, y)
    a, ds = lanes(KEYS, y), lanes(KEYS, y)
    top, factor, mean = lanes(1, y), lanes(1, y), lanes(1, y)
    for task in range(start, stop):
        n, part = task // parts, task % parts
        for t0 in range(part * LANES, T, parts * LANES):
            rows = min(LANES, T - t0)
            into_lanes(query, x.q[n], t0, rows, x.scale)
            into_lanes(grad, g[n], t0, rows, 1)
            dquery[:] = 0
            top[:] = 0
            factor[:] = 0
            mean[:] = 0
            for t in range(rows):
                top[t], factor[t] = highest[n, t0 + t], norm[n, t0 + t]
                for d in range(E):
                    mean[t] += g[n, t0 + t, d] * y[n, t0 + t, d]
            for s0 in range(0, min(S, t0 + rows) if x.causal else S, KEYS):
                keys = min(KEYS, S - s0)
                if not scores(a, query, x, n, t0, rows, s0, keys):
                    continue
                ds[: keys * LANES] = 0
                add_product(ds, x.v[n, s0 : s0 + keys], grad)  # da_ts = v_s · g_t
                for s in range(keys):
                    for t in range(LANES):
                        weight = exp(a[s * LANES + t] - top[t]) * factor[t]
                        a[s * LANES + t] = weight
                        ds[s * LANES + t] = weight * (ds[s * LANES + t] - mean[t])
                add_dots(dv[n, part, s0 : s0 + keys], a, grad)  # dv_s += Σ_t a_ts g_t
                add_dots(dk[n, part, s0 : s0 + keys], ds, query)  # dk_s += Σ_t dscore_ts scale q_t
                add_product(dquery, x.k[n, s0 : s0 + keys].T, ds)  # dq_t += Σ_s dscore_ts k_s
                if db.size:
                    add_bias_gradient(db[n, part % db.shape[1]], ds, t0, rows, s0, keys)
            for t in range(rows):
                for d in range(D):
                    dq[n, t0 + t, d] = x.scale * dquery[d * LANES + t]


@jit
def scores(tile, query, x, n, t0, rows, s0, keys):
    """tile[s, t] = scale q_t·k_s + bias_ts, and -∞ where query t may not see key s.

    Returns False, with the tile untouched, if no query of the block may see any of the keys.
    """
    bias, mask = x.bias[x.bias_of[n]], x.mask[x.mask_of[n]]
    if mask.size and not any_true(mask, t0, rows, s0, keys):
        return False
    tile[: keys * LANES] = 0
    add_product(tile, x.k[n, s0 : s0 + keys], query)
    if bias.size:
        for t in range(rows):
            for s in range(keys):
                tile[s * LANES + t] += bias[row(bias, t0 + t), column(bias, s0 + s)]
    if mask.size:
        for t in range(rows):
            for s in range(keys):
                if not mask[row(mask, t0 + t), column(mask, s0 + s)]:
                    tile[s * LANES + t] = -np.inf
    if x.causal and s0 + keys - 1 > t0:
        for s in range(keys):
            for t in range(LANES):
                if s0 + s > t0 + t:
                    tile[s * LANES + t] = -np.inf
    return True


@jit
def any_true(mask, t0, rows, s0, keys):
    """Whether any query of the block may see any key of the block."""
    for t in range(rows if mask.shape[0] > 1 else 1):
        for s in range(keys if mask.shape[1] > 1 else 1):
            if mask[row(mask, t0 + t), column(mask, s0 + s)]:
                return True
    return False


@jit
def add_bias_gradient(db, ds, t0, rows, s0, keys):
    """dbias_ts += dscore_ts; the gradients of all that one number of the bias stands for add up."""
    for t in range(rows):
        for s in range(keys):
            db[row(db, t0 + t), column(db, s0 + s)] += ds[s * LANES + t]


@jit
def row(x, t):
    """Row t of a mask or bias; a single row stands for all."""
    return t if x.shape[0] > 1 else 0


@jit
def column(x, s):
    """Column s of a mask or bias; a single column stands for all."""
    return s if x.shape[1] > 1 else 0


# ---------------------------------------------------------------- 3. shapes


def leading_axes(q, k, v):
    """All axes but the last two, broadcast against each other."""
    return np.broadcast_shapes(*[x.shape[:-2] for x in (q, k, v)])


def flat(x, lead):
    """x with all leading axes broadcast and as one: [N, rows, columns], contiguous."""
    x = np.broadcast_to(x, (*lead, *x.shape[-2:]))
    return np.require(x.reshape(math.prod(lead), *x.shape[-2:]), None, ["C", "W"])


def inputs(lead, q, k, v, bias, mask, causal, scale):
    """The `Inputs` of the fast version."""
    bias, bias_of = unexpanded(bias, lead, q.dtype)
    mask, mask_of = unexpanded(mask, lead, bool)
    q, k, v = (flat(x, lead) for x in (q, k, v))
    return Inputs(q, k, v, bias, mask, bias_of, mask_of, bool(causal), q.dtype.type(scale))


def unexpanded(x, lead, dtype):
    """A bias or mask as [n, rows, columns] without repetitions, and its n for each of the N."""
    if x is None:
        x = np.empty((0, 0), dtype)
    x = x.reshape((1,) * (2 - x.ndim) + x.shape)
    own = x.shape[:-2]
    number = np.broadcast_to(np.arange(math.prod(own)).reshape(own), lead)
    return flat(x, own), np.require(number.reshape(-1), np.int64, ["C", "W"])
