"""Row-wise functions, forward and backward, and steps of AdamW, against PyTorch.

    python -m tests.benchmarks.rowwise [rounds]

Both use float32 and two threads. Values and gradients are compared in float64 before the timing.
"""

import sys

from tests.benchmarks.measure import HEADER, by_processor, foot, interleave, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
import tinyattn.functional as F  # noqa: E402
from tinyattn import Tensor, optim  # noqa: E402

torch.set_num_threads(2)
TF = torch.nn.functional
SHAPES = [(512, 128), (4096, 512), (16384, 1024)]
IDS = {N: np.random.default_rng(1).integers(0, C, N) for N, C in SHAPES}
TORCH_IDS = {N: torch.from_numpy(ids) for N, ids in IDS.items()}
WORK = {  # name: (number of weights, ours, PyTorch's)
    "softmax": (0, F.softmax, lambda x: TF.softmax(x, -1)),
    "cross-entropy": (
        0,
        lambda x: F.cross_entropy(x, IDS[len(x)]),
        lambda x: TF.cross_entropy(x, TORCH_IDS[len(x)]),
    ),
    "layer norm": (
        2,
        lambda x, w, b: F.layer_norm(x, x.shape[-1], w, b),
        lambda x, w, b: TF.layer_norm(x, x.shape[-1:], w, b),
    ),
    "RMS norm": (
        1,
        lambda x, w: F.rms_norm(x, x.shape[-1], w, eps=1e-5),
        lambda x, w: TF.rms_norm(x, x.shape[-1:], w, eps=1e-5),
    ),
    "GELU": (0, F.gelu, TF.gelu),
}


def programs(name, shape, dtype=np.float32):
    """Return {name: function}, where each function returns y and the gradients."""
    n_weights, ours, theirs = WORK[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype)]
    arrays += [rng.standard_normal(shape[-1]).astype(dtype) for _ in range(n_weights)]
    g = rng.standard_normal(() if name == "cross-entropy" else shape).astype(dtype)
    mine = [Tensor(a, requires_grad=True) for a in arrays]
    other, torch_g = [torch.tensor(a, requires_grad=True) for a in arrays], torch.tensor(g)

    def tinyattn():
        for x in mine:
            x.grad = None
        y = ours(*mine)
        y.backward(g)
        return [y.data, *[x.grad for x in mine]]

    def pytorch():
        for x in other:
            x.grad = None
        y = theirs(*other)
        y.backward(torch_g)
        return [y.detach().numpy(), *[x.grad.numpy() for x in other]]

    return {"tinyattn": tinyattn, "PyTorch": pytorch}


def optimizers(n_parameters, size):
    """Return a step of AdamW over many parameters of one size."""
    rng = np.random.default_rng(0)
    arrays, gradients = rng.standard_normal((2, n_parameters, size)).astype(np.float32)
    mine = [Tensor(a, requires_grad=True) for a in arrays]
    other = [torch.tensor(a, requires_grad=True) for a in arrays]
    for x, z, g in zip(mine, other, gradients, strict=True):
        x.grad, z.grad = g.copy(), torch.tensor(g)
    ours, theirs = optim.AdamW(mine), torch.optim.AdamW(other)
    ours.step()
    theirs.step()
    for x, z in zip(mine, other, strict=True):
        np.testing.assert_allclose(x.data, z.detach().numpy(), rtol=0, atol=1e-5)
    return {"tinyattn": ours.step, "PyTorch": theirs.step}


def main(rounds=15):
    print(HEADER)
    for name in WORK:
        for shape in SHAPES:
            found = [f() for f in programs(name, (512, shape[1]), np.float64).values()]
            for a, b in zip(*found, strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)
            times = interleave(programs(name, shape), rounds, 3, at_least=0.01)
            print(
                row(f"{name}, {shape[0]} x {shape[1]}", times, goal=by_processor(None, 1.0)),
                flush=True,
            )
    for n, size in ((30, 16384), (60, 262144)):
        times = interleave(optimizers(n, size), rounds, 3, at_least=0.01)
        print(row(f"AdamW, {n} parameters of {size} numbers", times), flush=True)
    print(foot(rounds, np, torch, ta, work="All programs use float32, forward and backward"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
