"""One step of pooling, forward and backward, against torch.nn.functional.

    python -m tests.benchmarks.pooling [rounds]

Both use float32 and two threads, and compute the gradient of x. Before a row is timed, values and
gradients of both are compared with float64.
"""

import sys

from tests.benchmarks.measure import HEADER, foot, interleave, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
import tinyattn.functional as F  # noqa: E402
from tinyattn.engine.autograd import Tensor  # noqa: E402

torch.set_num_threads(2)
# function, shape of x, window, stride, padding
WORK = [
    ("max_pool2d", (64, 16, 32, 32), 2, 2, 0),
    ("max_pool2d", (64, 8, 8, 8), 2, 2, 0),
    ("max_pool2d", (16, 8, 64, 64), 3, 2, 1),
    ("max_pool1d", (32, 16, 128), 2, 2, 0),
    ("avg_pool2d", (64, 16, 32, 32), 2, 2, 0),
]


def ours(name, x, g, options, dtype=np.float32):
    x, g = Tensor(x.astype(dtype), requires_grad=True), g.astype(dtype)

    def run():
        x.grad = None
        y = getattr(F, name)(x, *options)
        y.backward(g)
        return y.data, x.grad

    return run


def pytorch(name, x, g, options):
    x, g = torch.tensor(x, requires_grad=True), torch.tensor(g)

    def run():
        x.grad = None
        y = getattr(torch.nn.functional, name)(x, *options)
        y.backward(g)
        return y.detach().numpy(), x.grad.numpy()

    return run


def main(rounds=21):
    rng = np.random.default_rng(0)
    print(HEADER)
    for name, shape, *options in WORK:
        x = rng.standard_normal(shape).astype(np.float32)
        g = rng.standard_normal(getattr(F, name)(x, *options).shape).astype(np.float32)
        programs = {"tinyattn": ours(name, x, g, options), "PyTorch": pytorch(name, x, g, options)}
        expected = ours(name, x, g, options, np.float64)()
        for program in programs.values():
            for found, e in zip(program(), expected, strict=True):
                np.testing.assert_allclose(found, e, rtol=0, atol=1e-5)
        window, stride, padding = options
        work = f"{name} {'x'.join(map(str, shape))}, window {window}, stride {stride}"
        work += f", padding {padding}" if padding else ""
        print(row(work, interleave(programs, rounds, 3, at_least=0.02), goal=1.0), flush=True)
    print(foot(rounds, np, torch, ta))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
