"""One step of a GRU or LSTM cell after its two products p and q, forward and backward.

As array algebra, a step consists of some fifteen operations, each of which creates an array and a
node of the graph. In this file, all operations are done on one vector of units before the next
vector is read. The formulas are in kernels/recurrent.py, where `step` is a plain loop with the same
result. fast/recurrent.py processes whole sequences.

p and q are [B, G·H]. `before` [B, H] is the state that the step updates unit by unit, which is h
for the GRU and c for the LSTM. All arrays have one axis.
"""

import numpy as np

from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.fast.recurrent import sigmoid, tanh, tiny_square
from tinyattn.kernels.machine.compile import helper, jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import broadcast, fma, width
from tinyattn.kernels.machine.thread_pool import parallel_for
from tinyattn.kernels.recurrent import GATES, LSTM

GRU_KEEPS, LSTM_KEEPS = 3, 5  # numbers per unit that are kept for the backward pass


@helper
def part(x, k, H, u):
    """Return the units from u on of block k of x as a vector, with zeros after its H numbers."""
    return load_partial(x, k * H + u, (k + 1) * H, 0)


@helper
def gate(p, q, k, H, u):
    """Return p + q for the units from u on of block k, as a vector."""
    return part(p, k, H, u) + part(q, k, H, u)


@helper
def put(x, k, H, u, v):
    """Write v to the units from u on of block k of x, but not beyond its H numbers."""
    store_partial(x, k * H + u, (k + 1) * H, v)


# ---------------------------------------------------------------- LSTM


@jit
def lstm_rows(y, kept, p, q, before, B, H, team, start, stop):
    """Compute i, f, o = σ(p + q), g = tanh(p + q), c ← f c + i g, h = o tanh c. y is h, then c."""
    if fork_join(team, start, stop):
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
    """Compute dp = dq, and the gradient of c before the step. gy contains those of h, then of c."""
    if fork_join(team, start, stop):
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
    """Compute r, z = σ(p + q), n = tanh(p + r q), and the new state y = (1 - z) n + z · before."""
    if fork_join(team, start, stop):
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
    """Compute dp and dq, and the part of the gradient of h that does not pass through the gates.

    dp and dq differ by the factor r in the gradient of q_n.
    """
    if fork_join(team, start, stop):
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
    """Return the next state, [2, B, H] (h, c) for the LSTM or [B, H] for the GRU, and residuals."""
    B, H = before.shape
    lstm = kind == LSTM
    y = np.empty((2, B, H) if lstm else (B, H), p.dtype)
    kept = np.empty(B * H * (LSTM_KEEPS if lstm else GRU_KEEPS), p.dtype)
    arrays = y.reshape(-1), kept, ravel(p), ravel(q), ravel(before)
    parallel_for(
        lstm_rows if lstm else gru_rows, B, *arrays, B, H, serial=p.size < thresholds.RECURRENT_CELL
    )
    return y, kept


def gated_backward(kind, g, kept, q, before):
    """Return dp, dq (the same array for an LSTM) and dbefore. `kept` comes from `gated`."""
    (B, H), gates = before.shape, GATES[kind]
    dp, dbefore = np.empty((B, gates * H), q.dtype), np.empty((B, H), q.dtype)
    rows, last = (dbefore.reshape(-1), ravel(g), kept), ravel(before)
    if kind == LSTM:
        parallel_for(
            lstm_rows_backward,
            B,
            dp.reshape(-1),
            *rows,
            last,
            B,
            H,
            serial=dp.size < thresholds.RECURRENT_CELL,
        )
        return dp, dp, dbefore
    dq = np.empty_like(dp)
    parallel_for(
        gru_rows_backward,
        B,
        dp.reshape(-1),
        dq.reshape(-1),
        *rows,
        ravel(q),
        last,
        H,
        serial=dp.size < thresholds.RECURRENT_CELL,
    )
    return dp, dq, dbefore
