"""Recurrent cells for whole sequences or for one step, with arguments that have been checked.

The cells and their formulas are in `ops/recurrent.py`.
"""

import numpy as np

from tinyattn.engine.convert import of_one_dtype, to_array
from tinyattn.ops import recurrent
from tinyattn.ops.recurrent import GRU, LSTM, RELU_RNN, RNN, Cell

__all__ = ["GRU", "LSTM", "RELU_RNN", "RNN", "Cell", "check_lengths", "scan", "step"]


def step(cell, x, state, w_ih, w_hh, b_ih=None, b_hh=None, impl="auto"):
    """Return the state of a cell after one step, a tuple of arrays [B, H].

    Args:
        cell    the `Cell`, with G gates
        x       input of this step [B, D]
        state   state before the step, (h,) or, for an LSTM, (h, c), with arrays [B, H]
        w_ih    weights of the input [G·H, D]
        w_hh    weights of the state [G·H, H]
        b_ih    bias of the input [G·H], or None
        b_hh    bias of the state [G·H], or None
        impl    which implementation to use. All of them give the same result and gradients, and all
                except "sums" can be differentiated more than once
                "sums"    the index sums as loops (compiled if Numba is installed)
                "numpy"   two matrix products and array algebra
                "kernel"  two matrix products, and compiled code for the gates of a GRU or LSTM. An
                          RNN has no "kernel", because its single gate leaves nothing to combine
                "auto"    "kernel" where it is faster, otherwise "numpy"
    """
    x, w_ih, w_hh, b_ih, b_hh, *state = of_one_dtype(x, w_ih, w_hh, b_ih, b_hh, *state)
    name = f"{cell.name}Cell"
    return recurrent.step(x, cell, state, w_ih, w_hh, b_ih, b_hh, impl=impl, name=name)


def scan(
    cell, x, state, w_ih, w_hh, b_ih=None, b_hh=None, lengths=None, reverse=False, impl="auto"
):
    """Run a cell over sequences.

    Args:
        cell      the `Cell`, with G gates
        x         inputs of all steps [B, T, D]
        state     state before the first step, (h,) or, for an LSTM, (h, c), with arrays [B, H]
        w_ih      weights of the input [G·H, D]
        w_hh      weights of the state [G·H, H]
        b_ih      bias of the input [G·H], or None
        b_hh      bias of the state [G·H], or None
        lengths   [B] whole numbers from 0 to T, or None for T. Sequence b ends after lengths[b]
                  steps. Later steps have no effect, their h_t is 0, and the last state is the state
                  at the end of the sequence
        reverse   True: go from the end of each sequence to its beginning. h_t is still at position
                  t
        impl      which implementation to use. All of them give the same result and gradients
                  "sums"    the index sums as loops (compiled if Numba is installed)
                  "numpy"   one matrix product per step. This is the only implementation that can be
                            differentiated more than once
                  "kernel"  compiled code, in which each thread processes whole sequences of a part
                            of the batch
                  "auto"    "kernel" where it is faster, otherwise "numpy"

    Returns:
        (the states h_t of all steps [B, T, H], the last state in the form of `state`)
    """
    x, w_ih, w_hh, b_ih, b_hh, *state = of_one_dtype(x, w_ih, w_hh, b_ih, b_hh, *state)
    if lengths is not None:  # steps after the end must not count, not even if they are nan
        x = np.where((np.arange(x.shape[1]) < lengths[:, None])[:, :, None], x, 0)
    inputs = x, cell, tuple(state), w_ih, w_hh, b_ih, b_hh, lengths, reverse
    return recurrent.scan(*inputs, impl=impl, name=cell.name)


def check_lengths(name, lengths, B, T):
    """Return `lengths` as an array of B whole numbers from 0 to T, or None if they are None.

    `name` begins the message of an error. Raises ValueError for anything else.
    """
    if lengths is None:
        return None
    lengths = np.asarray(to_array(lengths))
    if lengths.shape != (B,) or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: lengths must be [{B}] whole numbers, one for each sequence of the batch, got "
            f"{lengths.dtype} of shape {lengths.shape}"
        )
    wrong = (lengths < 0) | (lengths > T)
    if wrong.any():
        b = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{name}: expected 0 <= lengths <= {T}, the number of steps of x, got "
            f"lengths[{b}]={int(lengths[b])}"
        )
    return lengths.astype(np.int64)
