"""One training step of recurrent layers, forward and backward, against torch.nn.

    python -m tests.benchmarks.recurrent [rounds]

Both use float32 and two threads, and compute one layer with the gradients of its input and of all
its parameters. Before a row is timed, values and gradients of both are compared with array algebra
in float64. In the last rows, a cell is called step by step, as in a decoder with attention.
"""

import sys

from tests.benchmarks.measure import (
    HEADER,
    by_processor,
    foot,
    interleave,
    product_peak,
    row,
    use_threads,
)

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
from tinyattn import nn  # noqa: E402
from tinyattn.engine.autograd import Tensor  # noqa: E402

torch.set_num_threads(2)
SHAPES = [(128, 32, 128), (128, 32, 256), (32, 8, 64)]  # T, B, H, with H features
STEPS = [(10, 64, 48), (10, 64, 128)]  # the same, for cells
GOALS = {"LSTM": by_processor(1.15, 1.1), "GRU": 1.9, "RNN": 1.0}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def problem(T, B, H):
    """Return x and the gradient that arrives at y, both [B, T, H]."""
    return np.random.default_rng(0).standard_normal((2, B, T, H)).astype(np.float32)


def ours(name, state, x, g, lengths=None, impl="auto", dtype=np.float32):
    layer = getattr(nn, name)(x.shape[-1], g.shape[-1], impl=impl).astype(dtype)
    layer.load_state_dict(state)
    x = Tensor(x.astype(dtype), requires_grad=True)
    leaves, g = [x, *layer.parameters()], g.astype(dtype)

    def run():
        for p in leaves:
            p.grad = None
        y, _ = layer(x, lengths=lengths)
        y.backward(g)
        return [y.data, *[p.grad for p in leaves]]

    return run


def pytorch(layer, x, g, lengths=None):
    x, g = torch.tensor(x, requires_grad=True), torch.tensor(g)
    leaves = [x, *layer.parameters()]

    def run():
        for p in leaves:
            p.grad = None
        if lengths is None:
            y, _ = layer(x)
        else:
            packed = torch.nn.utils.rnn.pack_padded_sequence(
                x, torch.tensor(lengths), batch_first=True, enforce_sorted=False
            )
            y, _ = torch.nn.utils.rnn.pad_packed_sequence(
                layer(packed)[0], batch_first=True, total_length=x.shape[1]
            )
        y.backward(g)
        return [y.detach().numpy(), *[p.grad.numpy() for p in leaves]]

    return run


def stepped(library, cell, xs, g):
    """Return the states of a cell called step by step, and the gradients."""
    leaves = [*xs, *cell.parameters()]

    def run():
        for p in leaves:
            p.grad = None
        state, hs = None, []
        for x in xs:
            state = cell(x, state)
            hs.append(state[0] if isinstance(state, tuple) else state)
        y = library.stack(hs)
        y.backward(g)
        return [np.asarray(y.detach()), *[np.asarray(p.grad) for p in leaves]]

    return run


def measured_steps(name, shape, rounds):
    """Return one line of the table, for a cell."""
    T, B, H = shape
    x, g = (a.swapaxes(0, 1).copy() for a in problem(*shape))
    theirs = getattr(torch.nn, name)(H, H)
    state = {n: p.detach().numpy() for n, p in theirs.named_parameters()}

    def our_program(impl, dtype):
        cell = getattr(nn, name)(H, H, impl=impl).astype(dtype)
        cell.load_state_dict(state)
        xs = [Tensor(a.astype(dtype), requires_grad=True) for a in x]
        return stepped(np, cell, xs, g.astype(dtype))

    xs = [torch.tensor(a, requires_grad=True) for a in x]
    programs = {
        "tinyattn": our_program("auto", np.float32),
        "PyTorch": stepped(torch, theirs, xs, torch.tensor(g)),
    }
    expected = our_program("numpy", np.float64)()
    for program in programs.values():
        for found, e in zip(program(), expected, strict=True):
            np.testing.assert_allclose(found, e, rtol=0, atol=1e-4 * max(1, np.abs(e).max()))
    times = interleave(programs, rounds, 3, at_least=0.02)
    print(row(f"{name}, {T} steps, B = {B}, H = {H}", times, goal=1.0), flush=True)


def measured(name, shape, peak, rounds, padded=False):
    """Return one line of the table."""
    T, B, H = shape
    x, g = problem(*shape)
    lengths = np.random.default_rng(1).integers(T // 4, T + 1, B) if padded else None
    layer = getattr(torch.nn, name)(H, H, batch_first=True)
    state = {n: p.detach().numpy() for n, p in layer.named_parameters()}
    programs = {
        "tinyattn": ours(name, state, x, g, lengths),
        "PyTorch": pytorch(layer, x, g, lengths),
    }
    expected = ours(name, state, x, g, lengths, "numpy", np.float64)()
    for program in programs.values():
        for found, e in zip(program(), expected, strict=True):
            np.testing.assert_allclose(found, e, rtol=0, atol=1e-4 * max(1, np.abs(e).max()))
    flop = 3 * 2 * B * T * GATES[name] * H * 2 * H * (np.mean(lengths) / T if padded else 1)
    times = interleave(programs, rounds, 3, at_least=0.02)
    note = ", lengths from T/4 to T" if padded else ""
    print(
        row(
            f"{name}, T = {T}, B = {B}, H = {H}{note}",
            times,
            goal=GOALS[name],
            flop=flop,
            peak=peak,
        ),
        flush=True,
    )


def main(rounds=21):
    peak = product_peak(2)
    print(HEADER)
    for name in GOALS:
        for shape in SHAPES:
            measured(name, shape, peak, rounds)
    for name in GOALS:
        measured(name, SHAPES[0], peak, rounds, padded=True)
    for name in ("LSTMCell", "GRUCell", "RNNCell"):
        for shape in STEPS:
            measured_steps(name, shape, rounds)
    print(foot(rounds, np, torch, ta, peak=peak))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
