"""RNN, GRU and LSTM over whole sequences as loops, forward and backward.

    p_t = W_ih x_t + b_ih        part from the input, for all gates
    q_t = W_hh h_{t-1} + b_hh    part from the previous state
    RNN    h = tanh(p + q), or max(p + q, 0)
    GRU    r, z = σ(p + q),  n = tanh(p + r q),  h = (1 - z) n + z h_{t-1}
    LSTM   i, f, o = σ(p + q),  g = tanh(p + q),  c = f c_{t-1} + i g,  h = o tanh c

The shapes are x [B, T, D], h0 and c0 [B, H] (c0 is used only by the LSTM), W_ih [G·H, D], W_hh
[G·H, H] and biases [G·H], with the rows of one gate after the other. Sequence b has lengths[b]
steps. With `reverse`, each sequence is read from its end to its beginning.

In the code, b runs over sequences, t over steps, d over features, k and u over units, j over units
of all gates. A gradient dL/dx is called dx, and gy is the gradient of y. `recurrent_loops` and its
backward function have the same arguments as `sequence` and `sequence_gradients` of
fast/recurrent.py.
"""

import math

import numpy as np

from tinyattn.kernels import helper, jit

TANH, RELU, GRU, LSTM = range(4)  # the kinds of cells
GATES = 1, 1, 3, 4  # number of gates G of each kind

# ---------------------------------------------------------------- one step of one sequence


@helper
def sigmoid(x):
    """Return σ(x) = 1 / (1 + e⁻ˣ), computed with an exponential that is at most 1."""
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


@helper
def step(kind, p, q, h, c):
    """Update the state h and c [H] in place for one step with p and q [G·H]."""
    H = len(h)
    for u in range(H):
        if kind == TANH:
            h[u] = math.tanh(p[u] + q[u])
        elif kind == RELU:
            h[u] = max(p[u] + q[u], 0)
        elif kind == GRU:
            r, z = sigmoid(p[u] + q[u]), sigmoid(p[H + u] + q[H + u])
            n = math.tanh(p[2 * H + u] + r * q[2 * H + u])
            h[u] = (1 - z) * n + z * h[u]
        else:
            i, f = sigmoid(p[u] + q[u]), sigmoid(p[H + u] + q[H + u])
            g = math.tanh(p[2 * H + u] + q[2 * H + u])
            o = sigmoid(p[3 * H + u] + q[3 * H + u])
            c[u] = f * c[u] + i * g
            h[u] = o * math.tanh(c[u])


@helper
def step_backward(kind, p, q, h, c, dh, dc, dp, dq):
    """Apply the chain rule to `step`: write the gradients dp and dq, and update dh and dc.

    The gates are computed again from h and c before the step. Before the call, dh and dc are the
    gradients of the state after the step. After the call, they are the gradients of the state
    before the step, without the part that reaches h through q. σ' = σ (1 - σ), tanh' = 1 - tanh².
    """
    H = len(h)
    for u in range(H):
        if kind == TANH:
            y = math.tanh(p[u] + q[u])
            dp[u] = dq[u] = dh[u] * (1 - y * y)
            dh[u] = 0
        elif kind == RELU:
            dp[u] = dq[u] = dh[u] if p[u] + q[u] > 0 else 0
            dh[u] = 0
        elif kind == GRU:
            r, z = sigmoid(p[u] + q[u]), sigmoid(p[H + u] + q[H + u])
            n = math.tanh(p[2 * H + u] + r * q[2 * H + u])
            dn = dh[u] * (1 - z) * (1 - n * n)
            dp[2 * H + u], dq[2 * H + u] = dn, dn * r
            dp[u] = dq[u] = dn * q[2 * H + u] * r * (1 - r)
            dp[H + u] = dq[H + u] = dh[u] * (h[u] - n) * z * (1 - z)
            dh[u] *= z
        else:
            i, f = sigmoid(p[u] + q[u]), sigmoid(p[H + u] + q[H + u])
            g = math.tanh(p[2 * H + u] + q[2 * H + u])
            o = sigmoid(p[3 * H + u] + q[3 * H + u])
            tanh_c = math.tanh(f * c[u] + i * g)
            d = dc[u] + dh[u] * o * (1 - tanh_c * tanh_c)  # c after the step
            dp[u] = dq[u] = d * g * i * (1 - i)
            dp[H + u] = dq[H + u] = d * c[u] * f * (1 - f)
            dp[2 * H + u] = dq[2 * H + u] = d * i * (1 - g * g)
            dp[3 * H + u] = dq[3 * H + u] = dh[u] * tanh_c * o * (1 - o)
            dh[u], dc[u] = 0, d * f


# ---------------------------------------------------------------- all steps of all sequences


@jit
def forward(kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """Return all states y, the last h and c, and a tuple for `backward`.

    The tuple contains p and q of each step, and h and c before each step.
    """
    (B, T, D), (J, H) = x.shape, w_hh.shape
    y, h, c = np.zeros((B, T, H), x.dtype), h0.copy(), c0.copy()
    p, q = np.zeros((B, T, J), x.dtype), np.zeros((B, T, J), x.dtype)
    all_h, all_c = np.zeros((B, T, H), x.dtype), np.zeros((B, T, c0.shape[1]), x.dtype)
    for b in range(B):
        for i in range(lengths[b]):
            t = lengths[b] - 1 - i if reverse else i
            all_h[b, t], all_c[b, t] = h[b], c[b]
            for j in range(J):
                p[b, t, j], q[b, t, j] = b_ih[j], b_hh[j]
                for d in range(D):
                    p[b, t, j] += w_ih[j, d] * x[b, t, d]
                for k in range(H):
                    q[b, t, j] += w_hh[j, k] * h[b, k]
            step(kind, p[b, t], q[b, t], h[b], c[b])
            y[b, t] = h[b]
    return y, h, c, (p, q, all_h, all_c)


@jit
def backward(kind, gy, gh, gc, residuals, x, w_ih, w_hh, lengths, reverse):
    """Return dx, dh0, dc0, dW_ih, dW_hh, db_ih and db_hh, with the steps in reverse order.

    gy is the gradient of all states, and gh and gc are the gradients of the last state.
    """
    B, D, (J, H) = len(x), x.shape[2], w_hh.shape
    p, q, all_h, all_c = residuals
    dx, dh, dc = np.zeros_like(x), gh.copy(), gc.copy()
    dw_ih, dw_hh = np.zeros_like(w_ih), np.zeros_like(w_hh)
    db_ih, db_hh = np.zeros(J, x.dtype), np.zeros(J, x.dtype)
    dp, dq = np.zeros(J, x.dtype), np.zeros(J, x.dtype)
    for b in range(B):
        for i in range(lengths[b]):
            t = i if reverse else lengths[b] - 1 - i
            for u in range(H):
                dh[b, u] += gy[b, t, u]
            step_backward(kind, p[b, t], q[b, t], all_h[b, t], all_c[b, t], dh[b], dc[b], dp, dq)
            for j in range(J):
                db_ih[j] += dp[j]
                db_hh[j] += dq[j]
                for d in range(D):
                    dw_ih[j, d] += dp[j] * x[b, t, d]
                    dx[b, t, d] += dp[j] * w_ih[j, d]
                for k in range(H):
                    dw_hh[j, k] += dq[j] * all_h[b, t, k]
                    dh[b, k] += dq[j] * w_hh[j, k]
    return dx, dh, dc, dw_ih, dw_hh, db_ih, db_hh


# ---------------------------------------------------------------- the result as one row of memory


def recurrent_loops(kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """Return y, last h and (LSTM) last c as one row, and the arrays for the backward pass."""
    c0 = c0[:, : w_hh.shape[1] if kind == LSTM else 0]
    arrays = [np.require(a, None, ["C", "W"]) for a in (x, h0, c0, w_ih, w_hh, b_ih, b_hh)]
    y, h, c, residuals = forward(kind, *arrays, lengths, reverse)
    return np.concatenate([y.reshape(-1), h.reshape(-1), c.reshape(-1)]), residuals


def recurrent_loops_backward(kind, g, residuals, needs_x, x, w_ih, w_hh, lengths, reverse):
    """Return dx (even if `needs_x` is False), dh0, dc0, dW_ih, dW_hh, db_ih and db_hh.

    g is the gradient of the row that `recurrent_loops` returned, and residuals its second result.
    """
    arrays = [np.require(a, None, ["C", "W"]) for a in (x, w_ih, w_hh)]
    parts = parts_of(np.require(g, None, ["C", "W"]), x, w_hh.shape[1], 1 + (kind == LSTM))
    return backward(kind, *parts, residuals, *arrays, lengths, reverse)


def parts_of(row, x, H, states):
    """Return the views y, h and c of a result that is one row.

    `states` is 2 for an LSTM, whose row ends with c. For other layers, it is 1 and c is empty.
    """
    B, T, _ = x.shape
    y, h = row[: B * T * H].reshape(B, T, H), row[B * T * H : B * (T + 1) * H].reshape(B, H)
    return y, h, row[B * (T + 1) * H :].reshape(B, H if states > 1 else 0)
