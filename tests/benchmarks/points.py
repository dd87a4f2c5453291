"""Layers on point clouds, forward and backward, and training steps, against PyTorch Geometric.

    python -m tests.benchmarks.points [rounds]

Both use float32 and two threads, forward and backward. The layers have N = 10,000 points, k = 16
and 64 features. EdgeConv has a given graph, and the time of dynamic layers includes the search.
PyTorch Geometric searches with torch_cluster. If torch_cluster is not installed, scipy's tree with
two threads searches in the 4 dimensions of GravNet's space. Values and gradients are compared
before the timing.
"""

import sys

from tests.benchmarks.measure import head, interleave, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402
from torch_geometric.nn import EdgeConv as PyGEdgeConv  # noqa: E402

import tinyattn as ta  # noqa: E402
import tinyattn.functional as TF  # noqa: E402
from tests.parity import point_models as point_peers  # noqa: E402
from tinyattn import models, nn, optim  # noqa: E402
from tinyattn.graph import EdgeConv, GravNetConv, knn_graph  # noqa: E402

torch.set_num_threads(2)
N, K, F = 10_000, 16, 64


def layer(mine, theirs, x, call_mine, call_theirs):
    """Return programs for two layers with equal weights, forward and backward."""
    mine.load_state_dict(theirs.state_dict())
    a, b = ta.Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    g = np.random.default_rng(1).standard_normal(call_mine(a).shape).astype(np.float32)
    torch_g = torch.from_numpy(g)

    def ours():
        a.grad = None
        mine.zero_grad()
        y = call_mine(a)
        y.backward(g)
        return y.data, a.grad

    def pytorch():
        b.grad = None
        theirs.zero_grad()
        y = call_theirs(b)
        y.backward(torch_g)
        return y.detach().numpy(), b.grad.numpy()

    for own, other in zip(ours(), pytorch(), strict=True):
        assert np.mean(np.abs(own - other) > 1e-3 * np.abs(other).max()) < 1e-3
    return {"tinyattn": ours, "PyG": pytorch}


def edge_conv(depth, aggr="max"):
    x = np.random.default_rng(0).standard_normal((N, F)).astype(np.float32)
    g = knn_graph(x, K, loop=True)
    edges = torch.from_numpy(np.stack([g.src, g.dst]))
    mine = [nn.Linear(2 * F, F), nn.ReLU(), nn.Linear(F, F)][:depth]
    theirs = [torch.nn.Linear(2 * F, F), torch.nn.ReLU(), torch.nn.Linear(F, F)][:depth]
    mine = EdgeConv(nn.Sequential(*mine), aggr)
    theirs = PyGEdgeConv(torch.nn.Sequential(*theirs), aggr)
    return layer(mine, theirs, x, lambda x: mine(x, g), lambda x: theirs(x, edges))


def gravnet():
    x = np.random.default_rng(0).standard_normal((N, F)).astype(np.float32)
    mine, theirs = GravNetConv(F, F, 4, 22, K), point_peers.GravNet(F, F, 4, 22, K)
    return layer(mine, theirs, x, mine, theirs)


def training(mine, theirs, inputs, y):
    """Return a step of AdamW with the cross-entropy of whole models, from the same weights."""
    mine.load_state_dict(theirs.state_dict())
    ours, other = optim.AdamW(mine.parameters()), torch.optim.AdamW(theirs.parameters())
    torch_inputs, torch_y = [torch.from_numpy(x) for x in inputs], torch.from_numpy(y)

    def tinyattn():
        ours.zero_grad()
        loss = TF.cross_entropy(mine(*inputs), y)
        loss.backward()
        ours.step()
        return loss.item()

    def pytorch():
        other.zero_grad()
        loss = torch.nn.functional.cross_entropy(theirs(*torch_inputs), torch_y)
        loss.backward()
        other.step()
        return loss.item()

    np.testing.assert_allclose(tinyattn(), pytorch(), rtol=1e-4)
    return {"tinyattn": tinyattn, "PyTorch": pytorch}


def particle_net(B=64, P=40):
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((B, P, n)).astype(np.float32) for n in (2, 7)]
    shape = (7, 2, 7, ((32,) * 3, (64,) * 3), 128)
    pair = models.ParticleNet(*shape, dropout=0.0), point_peers.ParticleNet(*shape)
    return training(*pair, inputs, rng.integers(0, 2, B))


def gravnet_model(hits=4000):
    rng = np.random.default_rng(0)
    shape = (8, 3, 4, 64, 48, 4, 22, 40, 128)
    x = rng.standard_normal((hits, 8)).astype(np.float32)
    pair = models.GravNetModel(*shape), point_peers.GravNetModel(*shape)
    return training(*pair, [x], rng.integers(0, 3, hits))


def main(rounds=9):
    print(head(np, torch, torch_geometric))
    shape = f"N = {N:,}, k = {K}, F = {F}"
    for depth, goal in ((2, 25), (3, None)):
        times = interleave(edge_conv(depth), rounds, 1)
        print(
            row(f"EdgeConv, layers of its MLP: {1 + depth // 3}, {shape}", times, goal=goal),
            flush=True,
        )
    for work, programs in (
        (
            "training step, ParticleNet-Lite against PyTorch, 64 jets of 40 particles",
            particle_net(),
        ),
        ("training step, GravNetModel, 4000 hits, k = 40", gravnet_model()),
    ):
        print(row(work, interleave(programs, rounds, 1)), flush=True)
    times = interleave(gravnet(), rounds, 1)
    print(row(f"GravNetConv with search, {shape}", times, goal=3), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
