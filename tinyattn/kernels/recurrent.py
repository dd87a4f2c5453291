"""A recurrent cell over whole sequences as sums: RNN, GRU, LSTM, forward and backward.

    p_t = W_ih x_t + b_ih        what the input says, gate by gate
    q_t = W_hh h_{t-1} + b_hh    what the state before says
    RNN    h = tanh(p + q), or max(p + q, 0)
    GRU    r, z = σ(p + q),  n = tanh(p + r q),  h = (1 - z) n + z h_{t-1}
    LSTM   i, f, o = σ(p + q),  g = tanh(p + q),  c = f c_{t-1} + i g,  h = o tanh c

The formulas as loops over single numbers, and the chain rule through them: loops to read, not to be
fast. The fast ones, with the same arguments and the same results, are in recurrent.py.

x is [B, T, D], h0 and c0 [B, H] (c0 counts for the LSTM only), W_ih [G·H, D], W_hh [G·H, H], the
biases [G·H], all of one dtype and contiguous; sequence b has lengths[b] steps. With `reverse` a
sequence is read from its end to its beginning. The result is one row of memory with y [B, T, H],
the last h [B, H] and, for the LSTM, the last c [B, H] behind each other.

In the code b runs over sequences, t over steps, d over features, k and u over units, j over units
of all gates. A gradient dL/dx is called dx; g is the gradient of the result.
"""

import math

import numpy as np

from tinyattn.kernels import helper, jit

TANH, RELU, GRU, LSTM = range(4)  # kinds of cells
GATES = 1, 1, 3, 4
KEPT = 1, 1, 4, 6  # numbers a unit keeps of each step for the backward pass


@helper
def logistic(x):
    """σ(x) = 1 / (1 + e⁻ˣ)"""
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


@helper
def next_state(kind, p, q, h, c, kept):
    """Change h and c [H] to the next state; p and q [G·H] hold what input and state say.

    kept [KEPT, H] holds what the chain rule wants to know of this step.
    """
    H = len(h)
    for u in range(H):
        if kind == TANH:
            h[u] = kept[0, u] = math.tanh(p[u] + q[u])
        elif kind == RELU:
            h[u] = kept[0, u] = max(p[u] + q[u], 0)
        elif kind == GRU:
            r, z = logistic(p[u] + q[u]), logistic(p[H + u] + q[H + u])
            n = math.tanh(p[2 * H + u] + r * q[2 * H + u])
            kept[0, u], kept[1, u], kept[2, u], kept[3, u] = r, z, n, q[2 * H + u]
            h[u] = n + z * (h[u] - n)
        else:
            i, f = logistic(p[u] + q[u]), logistic(p[H + u] + q[H + u])
            g, o = math.tanh(p[2 * H + u] + q[2 * H + u]), logistic(p[3 * H + u] + q[3 * H + u])
            kept[0, u], kept[1, u], kept[2, u], kept[3, u] = i, f, g, o
            kept[5, u] = c[u]
            c[u] = f * c[u] + i * g
            kept[4, u] = math.tanh(c[u])
            h[u] = o * kept[4, u]


@helper
def next_state_backward(kind, kept, before, dh, dc, dp, dq):
    """From dh and dc after a step: dp and dq, and dh and dc before it, apart from the way by q."""
    H = len(dh)
    for u in range(H):
        if kind == TANH:
            dp[u] = dq[u] = dh[u] * (1 - kept[0, u] * kept[0, u])
            dh[u] = 0
        elif kind == RELU:
            dp[u] = dq[u] = dh[u] if kept[0, u] > 0 else 0
            dh[u] = 0
        elif kind == GRU:
            r, z, n, q_n = kept[0, u], kept[1, u], kept[2, u], kept[3, u]
            dn = dh[u] * (1 - z) * (1 - n * n)
            dp[2 * H + u], dq[2 * H + u] = dn, dn * r
            dp[u] = dq[u] = dn * q_n * r * (1 - r)
            dp[H + u] = dq[H + u] = dh[u] * (before[u] - n) * z * (1 - z)
            dh[u] *= z
        else:
            i, f, g, o, tanh_c = kept[0, u], kept[1, u], kept[2, u], kept[3, u], kept[4, u]
            d = dc[u] + dh[u] * o * (1 - tanh_c * tanh_c)
            dp[u] = dq[u] = d * g * i * (1 - i)
            dp[H + u] = dq[H + u] = d * kept[5, u] * f * (1 - f)
            dp[2 * H + u] = dq[2 * H + u] = d * i * (1 - g * g)
            dp[3 * H + u] = dq[3 * H + u] = dh[u] * tanh_c * o * (1 - o)
            dh[u], dc[u] = 0, d * f


@jit
def sums_forward(kind, y, last_h, last_c, prev, kept, x, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """All states y; last_h and last_c hold the first state when called, the last one afterwards."""
    J, D = w_ih.shape
    H = w_hh.shape[1]
    p, q = np.empty(J, x.dtype), np.empty(J, x.dtype)
    for b in range(len(x)):
        h, c = last_h[b], last_c[b]
        for step in range(lengths[b]):
            t = lengths[b] - 1 - step if reverse else step
            for u in range(H):
                prev[b, t, u] = h[u]
            for j in range(J):
                p[j], q[j] = b_ih[j], b_hh[j]
                for d in range(D):
                    p[j] += w_ih[j, d] * x[b, t, d]
                for k in range(H):
                    q[j] += w_hh[j, k] * h[k]
            next_state(kind, p, q, h, c, kept[b, t])
            for u in range(H):
                y[b, t, u] = h[u]


@jit
def sums_backward(
    kind, gy, dh, dc, dx, dw_ih, dw_hh, db_ih, db_hh, prev, kept, x, w_ih, w_hh, lengths, reverse
):
    """The steps backwards; dh and dc hold the gradients of the last state, then of the first."""
    J, D = w_ih.shape
    H = w_hh.shape[1]
    dp, dq = np.empty(J, x.dtype), np.empty(J, x.dtype)
    for b in range(len(x)):
        for step in range(lengths[b]):
            t = step if reverse else lengths[b] - 1 - step
            for u in range(H):
                dh[b, u] += gy[b, t, u]
            next_state_backward(kind, kept[b, t], prev[b, t], dh[b], dc[b], dp, dq)
            for j in range(J):
                db_ih[j] += dp[j]
                db_hh[j] += dq[j]
                for d in range(D):
                    dw_ih[j, d] += dp[j] * x[b, t, d]
                    dx[b, t, d] += dp[j] * w_ih[j, d]
                for k in range(H):
                    dw_hh[j, k] += dq[j] * prev[b, t, k]
                    dh[b, k] += dq[j] * w_hh[j, k]


def parts_of(row, x, H, states):
    """The views y, h, c (or nothing in its place) of a result in one row of memory."""
    B, T, _ = x.shape
    y, h = row[: B * T * H].reshape(B, T, H), row[B * T * H : B * (T + 1) * H].reshape(B, H)
    return y, h, row[B * (T + 1) * H :].reshape(B, H if states > 1 else 0)


def sums(kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """The result in one row of memory, and what the backward pass wants."""
    (B, T, _), H, states = x.shape, w_hh.shape[1], 1 + (kind == LSTM)
    row = np.zeros(B * (T + states) * H, x.dtype)
    y, h, c = parts_of(row, x, H, states)
    h[:] = h0
    c[:] = c0[:, : c.shape[1]]
    prev, kept = np.zeros((B, T, H), x.dtype), np.zeros((B, T, KEPT[kind], H), x.dtype)
    sums_forward(kind, y, h, c, prev, kept, x, w_ih, w_hh, b_ih, b_hh, lengths, reverse)
    return row, (prev, kept)


def sums_gradients(kind, g, saved, wanted_x, x, w_ih, w_hh, lengths, reverse):
    """dx, dh0, dc0, dW_ih, dW_hh, db_ih, db_hh"""
    H, states = w_hh.shape[1], 1 + (kind == LSTM)
    gy, dh, dc = (a.copy() for a in parts_of(g, x, H, states))
    dx, dw_ih, dw_hh = np.zeros_like(x), np.zeros_like(w_ih), np.zeros_like(w_hh)
    db_ih, db_hh = np.zeros((2, len(w_ih)), x.dtype)
    sums_backward(kind, gy, dh, dc, dx, dw_ih, dw_hh, db_ih, db_hh, *saved, x, w_ih, w_hh,
                  lengths, reverse)  # fmt: skip
    return dx, dh, dc, dw_ih, dw_hh, db_ih, db_hh
