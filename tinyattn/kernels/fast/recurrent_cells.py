"""One step of a GRU or LSTM cell, behind its two products p and q, forward and backward.

As array algebra a step is some fifteen operations, each with an array and a place in the graph of
its own. Here all of them are done on a vector of units before the next one is read. The formulas
are in kernels/recurrent.py, where `step` is the same as a plain loop; whole sequences are the work
of recurrent.py in this folder.

p and q are [B, G·H]; `before` [B, H] is what the step carries on unit by unit: h for the GRU, c
for the LSTM. All arrays are rows of memory.
"""

import numpy as np

from tinyattn.kernels import helper, jit
from tinyattn.kernels.fast.recurrent import sigmoid, tanh, tiny_square
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.layout import row_of
from tinyattn.kernels.machine.simd import broadcast, fma, load_until, store_until, width
from tinyattn.kernels.machine.thread_pool import share
from tinyattn.kernels.recurrent import GATES, LSTM

ALONE = 40_000  # numbers of p below which a second thread costs more than it brings
GRU_KEEPS, LSTM_KEEPS = 3, 5  # numbers a unit keeps for the backward pass


@helper
def part(x, k, H, u):
    """The vector of units u … of the k-th block of H numbers; zeros behind its end."""
    return load_until(x, k * H + u, (k + 1) * H, 0)


@helper
def gate(p, q, k, H, u):
    """p + q for the units u … of the k-th block."""
    return part(p, k, H, u) + part(q, k, H, u)


@helper
def put(x, k, H, u, v):
    """The units u … of the k-th block of H numbers = v"""
    store_until(x, k * H + u, (k + 1) * H, v)


# ---------------------------------------------------------------- LSTM


@jit
def lstm_rows(y, kept, p, q, before, B, H, team, start, stop):
    """i, f, o = σ(p + q), g = tanh(p + q), c = f c + i g, h = o tanh c. y is h, then c."""
    if together(team, start, stop):
        return
    W, tiny = width(y), tiny_square(y)
    for b in range(start, stop):
        gates, keep = 4 * b, LSTM_KEEPS * b
        for u in range(0, H, W):
            i = sigmoid(gate(p, q, gates, H, u))
            f = sigmoid(gate(p, q, gates + 1, H, u))
            g = tanh(gate(p, q, gates + 2, H, u), tiny)
            o = sigmoid(gate(p, q, gates + 3, H, u))
            c = fma(f, part(before, b, H, u), i * g)
            tanh_c = tanh(c, tiny)
            put(y, b, H, u, o * tanh_c)
            put(y, B + b, H, u, c)
            put(kept, keep, H, u, i)
            put(kept, keep + 1, H, u, f)
            put(kept, keep + 2, H, u, g)
            put(kept, keep + 3, H, u, o)
            put(kept, keep + 4, H, u, tanh_c)


@jit
def lstm_rows_backward(dp, dbefore, gy, kept, before, B, H, team, start, stop):
    """d(p + q) and dc from the gradients of h and c."""
    if together(team, start, stop):
        return
    W, one = width(gy), broadcast(gy, 1)
    for b in range(start, stop):
        gates, keep = 4 * b, LSTM_KEEPS * b
        for u in range(0, H, W):
            i, f = part(kept, keep, H, u), part(kept, keep + 1, H, u)
            g, o = part(kept, keep + 2, H, u), part(kept, keep + 3, H, u)
            tanh_c, dh = part(kept, keep + 4, H, u), part(gy, b, H, u)
            dc = fma(dh * o, one - tanh_c * tanh_c, part(gy, B + b, H, u))
            put(dp, gates, H, u, dc * g * i * (one - i))
            put(dp, gates + 1, H, u, dc * part(before, b, H, u) * f * (one - f))
            put(dp, gates + 2, H, u, dc * i * (one - g * g))
            put(dp, gates + 3, H, u, dh * tanh_c * o * (one - o))
            put(dbefore, b, H, u, dc * f)


# ---------------------------------------------------------------- GRU


@jit
def gru_rows(y, kept, p, q, before, B, H, team, start, stop):
    """r, z = σ(p + q), n = tanh(p + r q), h = (1 - z) n + z h."""
    if together(team, start, stop):
        return
    W, tiny = width(y), tiny_square(y)
    for b in range(start, stop):
        gates, keep = 3 * b, GRU_KEEPS * b
        for u in range(0, H, W):
            r = sigmoid(gate(p, q, gates, H, u))
            z = sigmoid(gate(p, q, gates + 1, H, u))
            n = tanh(fma(r, part(q, gates + 2, H, u), part(p, gates + 2, H, u)), tiny)
            put(y, b, H, u, fma(z, part(before, b, H, u) - n, n))
            put(kept, keep, H, u, r)
            put(kept, keep + 1, H, u, z)
            put(kept, keep + 2, H, u, n)


@jit
def gru_rows_backward(dp, dq, dbefore, gy, kept, q, before, H, team, start, stop):
    """dp, dq, which differ by the r before q_n, and the part of dh that goes past the gates."""
    if together(team, start, stop):
        return
    W, one = width(gy), broadcast(gy, 1)
    for b in range(start, stop):
        gates, keep = 3 * b, GRU_KEEPS * b
        for u in range(0, H, W):
            r, z = part(kept, keep, H, u), part(kept, keep + 1, H, u)
            n, d = part(kept, keep + 2, H, u), part(gy, b, H, u)
            dn = d * (one - z) * (one - n * n)
            dr = dn * part(q, gates + 2, H, u) * r * (one - r)
            dz = d * (part(before, b, H, u) - n) * z * (one - z)
            put(dp, gates, H, u, dr)
            put(dp, gates + 1, H, u, dz)
            put(dp, gates + 2, H, u, dn)
            put(dq, gates, H, u, dr)
            put(dq, gates + 1, H, u, dz)
            put(dq, gates + 2, H, u, dn * r)
            put(dbefore, b, H, u, d * z)


# ---------------------------------------------------------------- shapes


def gated(kind, p, q, before):
    """The next state, [2, B, H] for the LSTM (h, c) and [B, H] for the GRU; what backward wants."""
    B, H = before.shape
    lstm = kind == LSTM
    y = np.empty((2, B, H) if lstm else (B, H), p.dtype)
    kept = np.empty(B * H * (LSTM_KEEPS if lstm else GRU_KEEPS), p.dtype)
    arrays = y.reshape(-1), kept, row_of(p), row_of(q), row_of(before)
    share(lstm_rows if lstm else gru_rows, B, *arrays, B, H, alone=p.size < ALONE)
    return y, kept


def gated_backward(kind, g, kept, q, before):
    """dp, dq, dbefore"""
    (B, H), gates = before.shape, GATES[kind]
    dp, dbefore = np.empty((B, gates * H), q.dtype), np.empty((B, H), q.dtype)
    rows, last = (dbefore.reshape(-1), row_of(g), kept), row_of(before)
    if kind == LSTM:
        share(lstm_rows_backward, B, dp.reshape(-1), *rows, last, B, H, alone=dp.size < ALONE)
        return dp, dp, dbefore
    dq = np.empty_like(dp)
    share(gru_rows_backward, B, dp.reshape(-1), dq.reshape(-1), *rows, row_of(q), last, H,
          alone=dp.size < ALONE)  # fmt: skip
    return dp, dq, dbefore
