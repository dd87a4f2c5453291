"""Attention against PyTorch's scaled_dot_product_attention, forward and backward.

    python -m tests.benchmarks.attention [rounds]

Both use float32 and two threads. Before a shape is timed, values and gradients of both are compared
with the plain formula in float64.
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
from tinyattn.engine.autograd import Tensor, no_grad  # noqa: E402
from tinyattn.functional.attention import scaled_dot_product_attention as attention  # noqa: E402

torch.set_num_threads(2)
FORWARD = [
    (BH, N, d)
    for N in (128, 256, 512, 1024, 2048, 4096)
    for BH in (8, 64)
    for d in (64, 32)
    if BH * N <= 64 * 1024
]
BACKWARD = [(BH, N, d) for BH, N, d in FORWARD if d == 64 or BH == 8]
BIASED = [(8, 512, 64), (64, 128, 32), (512, 128, 16)]
PADDED = [(8, 512, 64), (64, 256, 32), (64, 512, 64)]


def problem(BH, N, d, bias=False, padding=False, dtype=np.float32):
    """Return q, k, v, g [B, H, N, d], a bias [B, H, N, N] or None, a mask of the keys or None."""
    rng = np.random.default_rng(0)
    B, H = BH // 8, 8
    q, k, v, g = rng.standard_normal((4, B, H, N, d)).astype(dtype)
    b = rng.standard_normal((B, H, N, N)).astype(dtype) if bias else None
    keep = np.arange(N) < rng.integers(N // 2, N + 1, (B, 1, 1, 1)) if padding else None
    return q, k, v, g, b, keep


def ours(q, k, v, g, bias, mask, causal, backward):
    inputs = [None if x is None else Tensor(x, requires_grad=backward) for x in (q, k, v, bias)]

    def run():
        y = attention(*inputs[:3], mask, inputs[3], causal)
        if backward:
            for x in inputs:
                if x is not None:
                    x.grad = None
            y.backward(g)
        return [y.data, *([x.grad for x in inputs if x is not None] if backward else [])]

    def forward():
        with no_grad():
            return run()

    return run if backward else forward


def pytorch(q, k, v, g, bias, mask, causal, backward):
    inputs = [
        None if x is None else torch.tensor(x, requires_grad=backward) for x in (q, k, v, bias)
    ]
    other = inputs[3] if mask is None else torch.tensor(mask)
    g = torch.tensor(g)

    def run():
        y = torch.nn.functional.scaled_dot_product_attention(*inputs[:3], other, is_causal=causal)
        if backward:
            for x in inputs:
                if x is not None:
                    x.grad = None
            y.backward(g)
        found = [y.detach(), *([x.grad for x in inputs if x is not None] if backward else [])]
        return [x.numpy() for x in found]

    return run


def check(arguments, causal, backward):
    """Compare both with array algebra in float64, on the first two sequences of the batch."""
    few = [None if x is None else x[:2] for x in arguments]
    wide = [x if x is None or x.dtype == bool else x.astype(np.float64) for x in few]
    *inputs, g, bias, mask = wide
    inputs = [None if x is None else Tensor(x, requires_grad=True) for x in (*inputs, bias)]
    y = attention(*inputs[:3], mask, inputs[3], causal, impl="numpy")
    y.backward(g)
    expected = [y.data, *[x.grad for x in inputs if x is not None]]
    for program in (ours, pytorch):
        found = program(*few, causal, backward)()
        for x, e in zip(found, expected, strict=False):
            np.testing.assert_allclose(x, e, rtol=0, atol=2e-5 * max(1, np.abs(e).max()))


def measured(name, shape, goal, peak, rounds, causal=False, backward=False, **kind):
    """Return one line of the table."""
    BH, N, d = shape
    arguments = problem(BH, N, d, **kind)
    if BH * N * N <= 2**24:
        check(arguments, causal, backward)
    programs = {
        "tinyattn": ours(*arguments, causal, backward),
        "PyTorch": pytorch(*arguments, causal, backward),
    }
    flop = (14 if backward else 4) * BH * N * N * d * (0.5 if causal else 1)
    times = interleave(programs, rounds, 2, at_least=0.01)
    print(
        row(f"{name}, B·H = {BH}, N = {N}, d = {d}", times, goal=goal, flop=flop, peak=peak),
        flush=True,
    )


def main(rounds=11):
    peak = product_peak(2)
    print(HEADER)
    for shape in FORWARD:
        measured("forward", shape, 1.4 if shape[1] <= 512 else 1.2, peak, rounds)
    for shape in BACKWARD:
        goal = by_processor(2.2, 1.5) if shape[1] <= 512 else 1.5
        measured("forward + backward, causal", shape, goal, peak, rounds, True, True)
    for shape in BIASED:
        name, goal = "forward + backward, trainable bias", by_processor(2.0, 1.6)
        measured(name, shape, goal, peak, rounds, False, True, bias=True)
    for shape in PADDED:
        measured("forward, key padding", shape, 1.5, peak, rounds, padding=True)
        measured(
            "forward + backward, key padding", shape, 1.5, peak, rounds, False, True, padding=True
        )
    note = (
        "With a causal mask, only visible positions are counted as work. With padding, all keys "
        "are counted, including those that are skipped, so these rows can exceed 100% of the peak."
    )
    print(foot(rounds, np, torch, ta, peak=peak, note=note))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
