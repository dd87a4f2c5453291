"""Recurrent networks, which pass a state from one element of a sequence to the next.

All cells have the same form. For each gate, a part from the input and a part from the previous
state are added, and the cell computes the next state from these sums.

    p_t = W_ih x_t + b_ih        part from the input, one product for all t
    q_t = W_hh h_{t-1} + b_hh    part from the state, one product per step
    next state = step(p_t, q_t, state)

`scan` runs a cell over sequences, and `step` is one step. Letters: B sequences, T steps, D features
of x, H units. A cell with G gates has weights W_ih [G·H, D] and W_hh [G·H, H], with the gates
concatenated in PyTorch's order.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinyattn import kernels
from tinyattn.engine.autograd import Tensor
from tinyattn.kernels import fast
from tinyattn.ops.activations import relu, sigmoid
from tinyattn.ops.backends import custom_vjp, operation
from tinyattn.ops.matmul import linear


class Cell(NamedTuple):
    """The description of a cell for the layers."""

    name: str
    kind: int  # number of the cell in the kernels
    gates: int  # G
    states: int  # number of arrays [B, H] in the state
    step: Callable  # (p, q, state) -> next state


# ---------------------------------------------------------------- the cells


def rnn_step(p, q, state):
    """Return the next state (h_t,) of a simple recurrent network, h_t = tanh(p + q).

    p = W_ih x_t + b_ih and q = W_hh h_{t-1} + b_hh are [B, H]. state is (h_{t-1},), which is not
    used here, because q depends on it already. Sources: Elman 1990 and slides H17, KB03.
    """
    return (np.tanh(p + q),)


def relu_rnn_step(p, q, state):
    """Return the next state (h_t,), h_t = max(p + q, 0). The arguments are those of `rnn_step`."""
    return (relu(p + q),)


def gru_step(p, q, state):
    """Return the next state (h_t,) of a gated recurrent unit.

        r, z = σ(p + q),   n = tanh(p + r q),   h_t = (1 - z) n + z h_{t-1}

    p = W_ih x_t + b_ih and q = W_hh h_{t-1} + b_hh are [B, 3H], and each formula uses its own third
    of them. The thirds belong to the gates r (reset), z (keep) and n (new). state is (h_{t-1},).

    Source: Cho et al. 2014, in the version with one product for all of W_hh, where r acts after the
    product, as in r ⊙ (W h) instead of W (r ⊙ h). Slide H20 shows the latter, and its z is 1 - z
    here.
    """
    h = state[0]
    p_r, p_z, p_n = _split_gates(p, 3)
    q_r, q_z, q_n = _split_gates(q, 3)
    r, z = sigmoid(p_r + q_r), sigmoid(p_z + q_z)
    n = np.tanh(p_n + r * q_n)
    return (n + z * (h - n),)


def lstm_step(p, q, state):
    """Return the next state (h_t, c_t) of a long short-term memory (LSTM).

        i, f, o = σ(p + q),   g = tanh(p + q),   c_t = f c_{t-1} + i g,   h_t = o tanh c_t

    p = W_ih x_t + b_ih and q = W_hh h_{t-1} + b_hh are [B, 4H], and each formula uses its own
    quarter of them. The quarters belong to the gates i (input), f (forget), g (new) and o (output),
    in this order. state is (h_{t-1}, c_{t-1}), both [B, H].

    Sources: Hochreiter, Schmidhuber 1997, Gers et al. 2000 (forget gate), and slides H20, KB04.
    """
    i, f, g, o = _split_gates(p + q, 4)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def _split_gates(p, n):
    size = p.shape[-1] // n
    return [p[..., k * size : (k + 1) * size] for k in range(n)]


RNN = Cell("RNN", 0, 1, 1, rnn_step)
RELU_RNN = Cell("RNN", 1, 1, 1, relu_rnn_step)
GRU = Cell("GRU", 2, 3, 1, gru_step)
LSTM = Cell("LSTM", 3, 4, 2, lstm_step)


# ---------------------------------------------------------------- whole sequences


@operation("LSTM", work=lambda x, *_: x.shape[1])
def scan(x, cell, state, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """Return the states h_t of all steps [B, T, H], and the last state, a tuple of [B, H].

    Args:
        x         sequences [B, T, D]
        cell      the `Cell`
        state     state before the first step, a tuple of arrays [B, H]
        w_ih      weights of x [G·H, D]
        w_hh      weights of the state [G·H, H]
        b_ih      bias of x [G·H], or None
        b_hh      bias of the state [G·H], or None
        lengths   number of steps of each sequence [B], or None for T. After its end, a sequence
                  keeps its state, and h_t is 0
        reverse   True: go from the last step to the first
    """
    B, T, _ = x.shape
    ps, ys = _steps(linear(x, w_ih, b_ih)), [None] * T
    for t in range(T)[::-1] if reverse else range(T):
        after = cell.step(ps[t], linear(state[0], w_hh, b_hh), state)
        if lengths is None:
            state = after
            ys[t] = state[0]
        else:
            going = (t < lengths)[:, None]
            state = tuple(np.where(going, a, b) for a, b in zip(after, state, strict=True))
            ys[t] = np.where(going, after[0], 0)
    y = np.stack(ys, axis=1) if T else Tensor(np.zeros((B, 0, state[0].shape[1]), x.dtype))
    return y, state


def _steps(p):
    """Return [p[:, 0], p[:, 1], …], computed by cutting p into halves again and again.

    The gradient of a slice is an array of zeros as large as the array it was cut from. If every
    step were cut from the whole sequence, the backward pass would need T² numbers. With halving, it
    needs T log T.
    """
    T = p.shape[1]
    if T <= 1:
        return [p[:, 0]] if T else []
    return _steps(p[:, : T // 2]) + _steps(p[:, T // 2 :])


def _loops(x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse):
    return kernels.recurrent.recurrent_loops(
        kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse
    )


def _loops_backward(
    g, y, residuals, needs_grad, x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse
):
    inputs = kind, g, residuals, needs_grad[0], x, w_ih, w_hh, lengths, reverse
    return kernels.recurrent.recurrent_loops_backward(*inputs)


def _kernel(x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse):
    return fast.recurrent.sequence(kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse)


def _kernel_backward(
    g, y, residuals, needs_grad, x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse
):
    inputs = kind, g, residuals, needs_grad[0], x, w_ih, w_hh, lengths, reverse
    return fast.recurrent.sequence_gradients(*inputs)


# An operation has one result, so all states and the last one follow each other in one row of
# memory. An engine whose operations return several Tensors was tried here and for np.split. It
# needed 40 more lines, 14 of them in engine/autograd.py, and made little faster: compared with one
# result, a forward pass took 0.87 times as long for an LSTM of 12 steps by the kernel, 0.97 to 1.0
# times for attention, and 1.03 to 1.11 times for the cells. Backward passes took 1.0 to 1.16 times
# as long.
_row_by_loops = custom_vjp(_loops, _loops_backward, name="recurrent_loops")
_row_by_kernel = custom_vjp(_kernel, _kernel_backward, name="recurrent")


def _unpack_states(row_of, x, cell, state, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """Return what `scan` returns, computed by `row_of`: `_row_by_loops` or `_row_by_kernel`."""
    (B, T, _), H = x.shape, w_hh.shape[1]
    zeros = np.zeros(len(w_ih), x.dtype)
    b_ih, b_hh = zeros if b_ih is None else b_ih, zeros if b_hh is None else b_hh
    lengths = np.full(B, T, np.int64) if lengths is None else lengths
    c0 = state[1] if len(state) > 1 else np.zeros((B, 0), x.dtype)
    inputs = x, state[0], c0, w_ih, w_hh, b_ih, b_hh
    row = row_of(*inputs, cell.kind, lengths, reverse)
    y, ends = row[: B * T * H], [B * (T + i) * H for i in range(len(state) + 1)]
    last = (row[i:j] for i, j in zip(ends, ends[1:], strict=False))
    return y.reshape((B, T, H)), tuple(s.reshape((B, H)) for s in last)


scan.implement("sums", lambda *inputs: _unpack_states(_row_by_loops, *inputs))
scan.implement("kernel", lambda *inputs: _unpack_states(_row_by_kernel, *inputs))


# ---------------------------------------------------------------- one step


@operation("LSTMCell", work=lambda x, cell, state, w_ih, w_hh, *_: len(x) * len(w_hh))
def step(x, cell, state, w_ih, w_hh, b_ih, b_hh):
    """Return the next state of a cell for x [B, D]. The other arguments are those of `scan`."""
    return cell.step(linear(x, w_ih, b_ih), linear(state[0], w_hh, b_hh), state)


def _step_by_loops(x, cell, state, w_ih, w_hh, b_ih, b_hh):
    weights = w_ih, w_hh, b_ih, b_hh
    return scan(x[:, None], cell, state, *weights, None, False, impl="sums", name=cell.name)[1]


def _step_by_kernel(x, cell, state, w_ih, w_hh, b_ih, b_hh):
    """Compute two products in NumPy, and the gates of a GRU or LSTM by a compiled kernel."""
    p, q = linear(x, w_ih, b_ih), linear(state[0], w_hh, b_hh)
    after = gates_kernel(p, q, state[-1], cell.kind, cell.step)
    return (after[0], after[1]) if cell.states > 1 else (after,)


step.implement("sums", _step_by_loops)
step.implement("kernel", _step_by_kernel)


def _gates(p, q, before, kind, step):
    """Return the next h [B, H], or h and c [2, B, H] of an LSTM, from the products p, q [B, G·H].

    `before` is the previous h of a GRU or c of an LSTM [B, H]. `step` is the formula as array
    algebra. `kind` is the cell's number, which only the kernel uses.
    """
    # a GRU reads h, the first array of the state, and an LSTM reads only c
    after = step(p, q, (before, before))
    return after[0] if len(after) == 1 else np.stack(after)


gates_kernel = custom_vjp(
    lambda p, q, before, kind, step: fast.recurrent_cells.gated(kind, p, q, before),
    lambda g, y, residuals, needs_grad, p, q, before, kind, step: (
        *fast.recurrent_cells.gated_backward(kind, g, residuals, q, before),
        None,
        None,
    ),
    _gates,
    "gates",
)
