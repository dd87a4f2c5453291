"""A recurrent cell over whole sequences, or one step of it, as one operation over a kernel."""

import numpy as np

from tinyattn.ops.fused import fused

# ---------------------------------------------------------------- one step


def _array_algebra(p, q, before, kind, step):
    after = step(p, q, (before, before))  # of its state a GRU reads h, the first, an LSTM c alone
    return after[0] if len(after) == 1 else np.stack(after)


@fused(_array_algebra)
def gated(p, q, before, kind, step):
    """One step behind its products p and q [B, G·H]: of a GRU from h, of an LSTM from c [B, H].

    The result is h [B, H], for the LSTM h and c [2, B, H]. step: the formula as array algebra.
    """
    from tinyattn.kernels.fast import recurrent_cells as kernel

    return kernel.gated(kind, p, q, before)


@gated.defvjp
def _gated_rule(g, y, saved, wanted, p, q, before, kind, step):
    from tinyattn.kernels.fast import recurrent_cells as kernel

    return (*kernel.gated_backward(kind, g, saved, q, before), None, None)


# ---------------------------------------------------------------- whole sequences


@fused()
def recurrent(x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse):
    """All states y and the last state of a cell, behind each other in one array with one axis."""
    from tinyattn.kernels.fast import recurrent as kernel

    return kernel.sequence(kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse)


@recurrent.defvjp
def _recurrent_rule(g, y, saved, wanted, x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse):
    from tinyattn.kernels.fast import recurrent as kernel

    return kernel.sequence_gradients(kind, g, saved, wanted[0], x, w_ih, w_hh, lengths, reverse)


@fused()
def recurrent_sums(x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse):
    """The same as index sums in loops."""
    from tinyattn.kernels import recurrent as loops

    return loops.sums(kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse)


@recurrent_sums.defvjp
def _sums_rule(g, y, saved, wanted, x, h0, c0, w_ih, w_hh, b_ih, b_hh, kind, lengths, reverse):
    from tinyattn.kernels import recurrent as loops

    return loops.sums_gradients(kind, g, saved, wanted[0], x, w_ih, w_hh, lengths, reverse)


def states(run, kind, x, state, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """y [B, T, H] and the last state as a tuple, from `recurrent` or `recurrent_sums`."""
    (B, T, _), H = x.shape, w_hh.shape[1]
    zeros = np.zeros(len(w_ih), x.dtype)
    b_ih, b_hh = zeros if b_ih is None else b_ih, zeros if b_hh is None else b_hh
    lengths = np.full(B, T, np.int64) if lengths is None else lengths
    c0 = state[1] if len(state) > 1 else np.zeros((B, 0), x.dtype)
    inputs = x, state[0], c0, w_ih, w_hh, b_ih, b_hh
    row = run(*inputs, kind, lengths, reverse)
    y, ends = row[: B * T * H], [B * (T + i) * H for i in range(len(state) + 1)]
    last = (row[i:j] for i, j in zip(ends, ends[1:], strict=False))
    return y.reshape((B, T, H)), tuple(s.reshape((B, H)) for s in last)
