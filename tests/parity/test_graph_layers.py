"""The layers against PyTorch Geometric: results, input gradients and parameter gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.nn")

import tinyattn as ta  # noqa: E402
from tests.parity import both, same  # noqa: E402
from tinyattn import graph  # noqa: E402
from tinyattn.graph import Graph  # noqa: E402

rng = np.random.default_rng(3)
GRAPHS = {
    "plain": Graph([0, 1, 2, 3, 3], [1, 2, 0, 0, 1], 4),
    "loops, double edges, a lonely node": Graph([0, 1, 1, 2, 2, 0], [1, 1, 1, 0, 0, 1], 5),
    "no edges": Graph([], [], 3),
    "batch": graph.batch([Graph([0, 1], [1, 0], 2), Graph([2, 0], [1, 1], 3)]),
}


def edge_index(g):
    return torch.tensor(np.stack([g.src, g.dst]))


def compare(mine, theirs, g, *more):
    """Load the weights of theirs into mine; compare on random features of the nodes."""
    mine, theirs = mine.astype(np.float64), theirs.double()
    mine.load_state_dict(theirs.state_dict())
    x = rng.normal(size=(g.num_nodes, 3))
    both(lambda x, *m: mine(x, g, *m), lambda x, *m: theirs(x, edge_index(g), *m), x, *more)
    for name, p in theirs.named_parameters():
        own = dict(mine.named_parameters())[name].grad
        same(np.zeros(p.shape) if own is None else own, p.grad.numpy(), name)


@pytest.mark.parametrize("g", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_gcn(g, loops, bias):
    mine = graph.GCNConv(3, 2, add_self_loops=loops, bias=bias)
    compare(mine, pyg.GCNConv(3, 2, add_self_loops=loops, bias=bias), g)


@pytest.mark.parametrize("g", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("loops", [True, False])
def test_gcn_with_edge_weights(g, loops):
    weights = rng.uniform(0.5, 2, g.num_edges)
    loop = np.flatnonzero(g.src == g.dst)  # of several loops at a node only one counts
    weights[loop] = 1.5
    mine = graph.GCNConv(3, 2, add_self_loops=loops)
    theirs = pyg.GCNConv(3, 2, add_self_loops=loops)
    if loop.size and loops:  # theirs loses the gradient of loops' weights: compare values
        mine.astype(np.float64).load_state_dict(theirs.double().state_dict())
        x = rng.normal(size=(g.num_nodes, 3))
        expected = theirs(torch.tensor(x), edge_index(g), torch.tensor(weights))
        same(mine(x, g, ta.tensor(weights)).numpy(), expected.detach().numpy(), "result")
    else:
        compare(mine, theirs, g, weights)


@pytest.mark.parametrize("g", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(("heads", "concat"), [(1, True), (3, True), (3, False)])
def test_gat(g, loops, heads, concat):
    options = {"heads": heads, "concat": concat, "add_self_loops": loops, "negative_slope": 0.1}
    compare(graph.GATConv(3, 2, **options), pyg.GATConv(3, 2, **options), g)


def test_gat_without_bias():
    compare(graph.GATConv(3, 2, bias=False), pyg.GATConv(3, 2, bias=False), GRAPHS["plain"])


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "prod"])
def test_segments(reduce):
    ids = np.array([4, 0, 4, 2, 0, 4])
    ours = getattr(graph, f"segment_{reduce.removeprefix('a')}")

    def theirs(x):
        zero = torch.zeros(5, 3, dtype=x.dtype) if reduce != "prod" else torch.ones(5, 3).double()
        index = torch.tensor(ids)[:, None].expand(-1, 3)
        return zero.scatter_reduce(0, index, x, reduce, include_self=reduce == "prod")

    both(lambda x: ours(x, ids, 5), theirs, rng.normal(size=(6, 3)))


def test_segment_softmax():
    from torch_geometric.utils import softmax

    ids = np.array([4, 0, 4, 2, 0, 4])
    both(
        lambda x: graph.segment_softmax(x, ids, 5),
        lambda x: softmax(x, torch.tensor(ids), num_nodes=5),
        rng.normal(size=(6, 3)),
        tolerance=1e-10,
    )
