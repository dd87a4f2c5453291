"""Segment sum, max and softmax, forward and backward, against PyTorch and PyTorch Geometric.

    python -m tests.benchmarks.segments [rounds] [edges]

All use float32 and two threads, forward and backward. A row has 64 features, and a segment has 16
rows on average. The ids are sorted, or in random order. Values and gradients are compared before
the timing.
"""

import sys

from tests.benchmarks.measure import head, interleave, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402
from torch_geometric import utils  # noqa: E402

import tinyattn as ta  # noqa: E402
from tinyattn import graph  # noqa: E402

torch.set_num_threads(2)
F = 64


def index_add(x, ids, n):
    return torch.zeros(n, F).index_add(0, ids, x)


def scatter_amax(x, ids, n):
    wide = ids[:, None].expand(-1, F)
    return torch.zeros(n, F).scatter_reduce(0, wide, x, "amax", include_self=False)


# work: (ours, {peer: theirs}, goal)
WORK = {
    "sum": (
        graph.segment_sum,
        {"PyTorch": index_add, "PyG": lambda x, i, n: utils.scatter(x, i, 0, n, "sum")},
        1.8,
    ),
    "max": (
        graph.segment_max,
        {"PyTorch": scatter_amax, "PyG": lambda x, i, n: utils.scatter(x, i, 0, n, "max")},
        1.8,
    ),
    "softmax": (graph.segment_softmax, {"PyG": lambda x, i, n: utils.softmax(x, i, None, n)}, 15),
}


def programs(work, E, in_order):
    ours, peers, _ = WORK[work]
    rng, n = np.random.default_rng(0), max(E // 16, 1)
    values, ids = rng.standard_normal((E, F), dtype=np.float32), rng.integers(0, n, E)
    ids = np.sort(ids) if in_order else ids
    x, t = ta.Tensor(values, requires_grad=True), torch.from_numpy(values).requires_grad_()
    g = rng.standard_normal((E if work == "softmax" else n, F), dtype=np.float32)
    torch_ids, torch_g = torch.from_numpy(ids), torch.from_numpy(g)

    def tinyattn():
        x.grad = None
        y = ours(x, ids, n)
        y.backward(g)
        return y.data, x.grad

    def peer(f):
        def run():
            t.grad = None
            y = f(t, torch_ids, n)
            y.backward(torch_g)
            return y.detach().numpy(), t.grad.numpy()

        return run

    found = {"tinyattn": tinyattn} | {name: peer(f) for name, f in peers.items()}
    for name in peers:
        for a, b in zip(tinyattn(), found[name](), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    return found


def main(rounds=7, E=1_000_000):
    print(head(np, torch, torch_geometric))
    for work, (*_, goal) in WORK.items():
        for in_order in (True, False):
            times = interleave(programs(work, E, in_order), rounds, 1)
            how = "in order" if in_order else "at random"
            print(row(f"segment {work}, {E:,} × {F}, ids {how}", times, goal=goal), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
