"""The products of a linear layer's training step against PyTorch and NumPy.

    python -m tests.benchmarks.product [rounds]

All programs use float32 and two threads. For N rows of X, they compute the product of the forward
pass, X Wᵀ, and those of the backward pass, Ȳ W and Ȳᵀ X. Before a row is timed, the result is
compared with float64.
"""

import sys

from tests.benchmarks.measure import HEADER, foot, interleave, product_peak, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
from tinyattn.kernels.fast.matmul import matmul  # noqa: E402

torch.set_num_threads(2)
LAYERS = [  # N, in, out
    (256, 64, 256),
    (768, 128, 512),
    (768, 512, 128),
    (2048, 384, 1152),
    (2048, 384, 1536),
    (2048, 1536, 384),
]


def products(N, D, E):
    """Return {name: (a, b)}, transposed as in the layer."""
    rng = np.random.default_rng(0)
    shapes = (N, D), (E, D), (N, E)
    x, w, g = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return {"X Wᵀ": (x, w.T), "Ȳ W": (g, w), "Ȳᵀ X": (g.T, x)}


def as_torch(x):
    """Return a tensor over the same memory, transposed in the same way."""
    return torch.from_numpy(x) if x.flags.c_contiguous else torch.from_numpy(x.T).T


def main(rounds=15):
    peak = product_peak(2)
    print(HEADER)
    for N, D, E in LAYERS:
        for name, (a, b) in products(N, D, E).items():
            expected = a.astype(np.float64) @ b
            error = 1e-6 * np.sqrt(a.shape[1]) * np.abs(expected).max()
            np.testing.assert_allclose(matmul(a, b), expected, rtol=0, atol=error)
            s, t = as_torch(a), as_torch(b)
            programs = {
                "tinyattn": lambda a=a, b=b: matmul(a, b),
                "PyTorch": lambda s=s, t=t: torch.mm(s, t),
                "NumPy": lambda a=a, b=b: a @ b,
            }
            times = interleave(programs, rounds, 3, at_least=0.02, rest=0.2)
            work = f"{name}, X [{N}, {D}], W [{E}, {D}]"
            print(row(work, times, goal=1.0, flop=2 * N * D * E, peak=peak), flush=True)
    print(foot(rounds, np, torch, ta, peak=peak, note="Ȳ is the gradient of the output Y."))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
