"""Recurrent networks: a state that is carried from one element of a sequence to the next.

All cells have the same form: a part from the input and a part from the state before are added up,
gate by gate, and the cell computes the next state from them.

    p_t = W_ih x_t + b_ih        the input's part: needs no state, one product for all t
    q_t = W_hh h_{t-1} + b_hh    the state's part: one product a step
    next state = step(p_t, q_t, state)

`scan` runs a cell over sequences. Letters: B sequences, T steps, D features of x, H units; a cell
with G gates has weights W_ih [G·H, D] and W_hh [G·H, H], gate below gate, in PyTorch's order.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import of_one_dtype, to_array
from tinyattn.functional.linear import linear
from tinyattn.ops import recurrent
from tinyattn.ops.activations import relu, sigmoid
from tinyattn.ops.backends import select


class Cell(NamedTuple):
    """What the layers need to know of a cell; `kind` is its number in the kernels."""

    name: str
    kind: int
    gates: int  # G
    states: int  # arrays [B, H] that are carried along
    step: Callable


# ---------------------------------------------------------------- the cells


def rnn_step(p, q, state):
    """h_t = tanh(p + q).   p, q [B, H]; state (h,).   Slides H17, KB03; Elman 1990."""
    return (np.tanh(p + q),)


def relu_rnn_step(p, q, state):
    """h_t = max(p + q, 0)."""
    return (relu(p + q),)


def gru_step(p, q, state):
    """r, z = σ(p + q),  n = tanh(p + r q),  h_t = (1 - z) n + z h_{t-1}.   p, q [B, 3H].

    The order of the gates is r (reset), z (keep), n (new). Source: Cho et al. 2014 in the version
    with one product for all of W_hh, where r acts after it: r ⊙ (W h) instead of W (r ⊙ h). Slide
    H20 has the other one, and its z is 1 - z here.
    """
    h = state[0]
    p_r, p_z, p_n = _gates(p, 3)
    q_r, q_z, q_n = _gates(q, 3)
    r, z = sigmoid(p_r + q_r), sigmoid(p_z + q_z)
    n = np.tanh(p_n + r * q_n)
    return (n + z * (h - n),)


def lstm_step(p, q, state):
    """i, f, o = σ(p + q),  g = tanh(p + q),  c_t = f c_{t-1} + i g,  h_t = o tanh c_t.

    p, q [B, 4H] in the order i (input), f (forget), g (new), o (output); state (h, c).
    Source: Hochreiter, Schmidhuber 1997; Gers et al. 2000 (forget gate); slides H20, KB04.
    """
    i, f, g, o = _gates(p + q, 4)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def _gates(p, n):
    size = p.shape[-1] // n
    return [p[..., k * size : (k + 1) * size] for k in range(n)]


RNN = Cell("RNN", 0, 1, 1, rnn_step)
RELU_RNN = Cell("RNN", 1, 1, 1, relu_rnn_step)
GRU = Cell("GRU", 2, 3, 1, gru_step)
LSTM = Cell("LSTM", 3, 4, 2, lstm_step)


def step(cell, x, state, w_ih, w_hh, b_ih=None, b_hh=None, impl="auto"):
    """The next state of a cell.   x [B, D], state and result: tuples of [B, H].

    impl     which rung computes it; all give the same result and the same gradients
             "sums"    the index sums as loops (compiled if Numba is there)
             "numpy"   two products and array algebra
             "kernel"  two products, and the gates of a GRU or LSTM compiled (an RNN has one gate,
                       and nothing to put together: it lacks this rung)
             "auto"    "kernel" where it is faster, else "numpy"

    All but "sums" can be differentiated more than once.
    """
    x, w_ih, w_hh, b_ih, b_hh, *state = of_one_dtype(x, w_ih, w_hh, b_ih, b_hh, *state)
    rung = select(f"{cell.name}Cell", impl, x.dtype, len(x) * len(w_hh))
    if rung == "sums":
        return scan(cell, x[:, None], state, w_ih, w_hh, b_ih, b_hh, impl="sums")[1]
    p, q = linear(x, w_ih, b_ih), linear(state[0], w_hh, b_hh)
    if rung == "numpy":
        return cell.step(p, q, state)
    before = state[-1]
    after = recurrent.gated(p, q, before, cell.kind, cell.step)
    return (after[0], after[1]) if cell.states > 1 else (after,)


# ---------------------------------------------------------------- whole sequences


def scan(
    cell, x, state, w_ih, w_hh, b_ih=None, b_hh=None, lengths=None, reverse=False, impl="auto"
):
    """Run a cell over sequences: the states h_t of all steps [B, T, H], and the last state.

    x        [B, T, D]; state: tuple of [B, H]; weights as at the top of this file
    lengths  [B] whole numbers from 0 to T: sequence b ends after lengths[b] steps. What comes
             after it has no influence; the h_t there are 0, and the last state is that at the end.
    reverse  from the end of each sequence to its beginning; h_t stays at place t
    impl     which rung computes it; all give the same result and the same gradients
             "sums"    the index sums as loops (compiled if Numba is there)
             "numpy"   one product of matrices a step; can be differentiated more than once
             "kernel"  compiled, a part of the batch for the whole sequence on each thread
             "auto"    "kernel" where it is faster, else "numpy"
    """
    x, w_ih, w_hh, b_ih, b_hh, *state = of_one_dtype(x, w_ih, w_hh, b_ih, b_hh, *state)
    rung = select(cell.name, impl, x.dtype, x.shape[1])
    if lengths is not None:  # what comes after the end must not count, not even nan
        x = np.where((np.arange(x.shape[1]) < lengths[:, None])[:, :, None], x, 0)
    if rung == "numpy":
        return _scan(cell, x, tuple(state), w_ih, w_hh, b_ih, b_hh, lengths, reverse)
    run = recurrent.recurrent if rung == "kernel" else recurrent.recurrent_sums
    return recurrent.states(run, cell.kind, x, state, w_ih, w_hh, b_ih, b_hh, lengths, reverse)


def _scan(cell, x, state, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
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
    """[p[:, 0], p[:, 1], …], cut in halves, halves of halves and so on.

    The gradient of a slice is an array of zeros as large as what it was cut from. Cutting every
    step from the whole sequence would cost T² numbers in the backward pass, this way T log T.
    """
    T = p.shape[1]
    if T <= 1:
        return [p[:, 0]] if T else []
    return _steps(p[:, : T // 2]) + _steps(p[:, T // 2 :])


# ---------------------------------------------------------------- arguments


def checked_lengths(name, lengths, B, T):
    """`lengths` as an array of B whole numbers from 0 to T, or None."""
    if lengths is None:
        return None
    lengths = np.asarray(to_array(lengths))
    if lengths.shape != (B,) or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: lengths must be {B} whole numbers, one for each sequence of the batch, got "
            f"{lengths.dtype} of shape {lengths.shape}"
        )
    wrong = (lengths < 0) | (lengths > T)
    if wrong.any():
        b = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{name}: lengths[{b}] is {int(lengths[b])}, but x has {T} steps; lengths go from 0 "
            f"to {T}"
        )
    return lengths.astype(np.int64)
