"""One training step of a convolution, forward and backward, against torch.nn.functional.

    python -m tests.benchmarks.conv [rounds]

Both use float32 and two threads, at the sizes of the lectures. A step computes the gradients of x
(unless x is an image, which does not need one), weight and bias. Before a row is timed, values and
gradients of both are compared with float64.
"""

import sys

from tests.benchmarks.measure import HEADER, foot, interleave, product_peak, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
import tinyattn.functional as F  # noqa: E402
from tinyattn.engine.autograd import Tensor  # noqa: E402

torch.set_num_threads(2)
# shape of x, channels out, kernel, options, whether x needs a gradient
WORK = [
    ((64, 3, 32, 32), 32, 3, {"padding": 1}, False),
    ((64, 32, 16, 16), 64, 3, {"padding": 1}, True),
    ((64, 32, 32, 32), 32, 3, {"padding": 1, "stride": 2}, True),
    ((256, 1, 8, 8), 16, 3, {"padding": 1}, False),
    ((32, 16, 128), 16, 3, {"padding": 1}, True),
    ((32, 16, 128), 32, 5, {"padding": 2}, True),
    ((16, 64, 256), 64, 3, {"padding": 2, "dilation": 2}, True),
]


def problem(shape, out, kernel, options):
    """Return x, weight, bias, and the gradient of y."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    n = len(shape) - 2
    weight = rng.standard_normal((out, shape[1], *[kernel] * n)).astype(np.float32) / 5
    bias = rng.standard_normal(out).astype(np.float32)
    y = getattr(F, f"conv{n}d")(x[:1], weight, bias, **options)
    return x, weight, bias, rng.standard_normal((len(x), *y.shape[1:])).astype(np.float32)


def ours(x, weight, bias, g, options, wanted, dtype=np.float32):
    convolve = getattr(F, f"conv{x.ndim - 2}d")
    x, weight, bias, g = (a.astype(dtype) for a in (x, weight, bias, g))
    x = Tensor(x, requires_grad=wanted)
    leaves = [x, *(Tensor(a, requires_grad=True) for a in (weight, bias))]

    def run():
        for p in leaves:
            p.grad = None
        y = convolve(*leaves, **options)
        y.backward(g)
        return [y.data, *[p.grad for p in leaves if p.requires_grad]]

    return run


def pytorch(x, weight, bias, g, options, wanted):
    convolve = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")
    leaves = [torch.tensor(x, requires_grad=wanted)]
    leaves += [torch.tensor(a, requires_grad=True) for a in (weight, bias)]
    g = torch.tensor(g)

    def run():
        for p in leaves:
            p.grad = None
        y = convolve(*leaves, **options)
        y.backward(g)
        return [a.detach().numpy() for a in [y, *[p.grad for p in leaves if p.requires_grad]]]

    return run


def main(rounds=21):
    peak = product_peak(2)
    print(HEADER)
    for shape, out, kernel, options, wanted in WORK:
        arrays = problem(shape, out, kernel, options)
        programs = {
            "tinyattn": ours(*arrays, options, wanted),
            "PyTorch": pytorch(*arrays, options, wanted),
        }
        expected = ours(*arrays, options, wanted, np.float64)()
        for program in programs.values():
            for found, e in zip(program(), expected, strict=True):
                np.testing.assert_allclose(found, e, rtol=0, atol=1e-4 * max(1, np.abs(e).max()))
        _, weight, _, g = arrays
        flop = (3 if wanted else 2) * 2 * g.size * weight[0].size
        times = interleave(programs, rounds, 3, at_least=0.02)
        n = len(shape) - 2
        extra = ", ".join(f"{k} {v}" for k, v in options.items())
        work = f"conv{n}d {'x'.join(map(str, shape))} to {out} channels, kernel {kernel}, {extra}"
        print(row(work, times, goal=1.0, flop=flop, peak=peak), flush=True)
    print(foot(rounds, np, torch, ta, peak=peak))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
