"""EdgeConv, DynamicEdgeConv and GravNetConv against PyTorch Geometric, and what they promise."""

import numpy as np
import pytest

import tinyattn as ta
from tests.graph.few_points import small_events
from tests.parity import modules, same, torch
from tinyattn import nn
from tinyattn.graph import (
    DynamicEdgeConv,
    EdgeConv,
    Graph,
    GravNetConv,
    edge_conv,
    knn,
    knn_graph,
)
from tinyattn.graph.neighbours import mean_max, neighbour_max, pair_sums, squared_distances

pyg = pytest.importorskip("torch_geometric.nn")


def points(N, F, seed=0):
    return np.random.default_rng(seed).normal(size=(N, F))


def batch_of(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def edges(index):
    """The table of neighbours as PyTorch Geometric's edge_index: sender, receiver."""
    N, K = index.shape
    return torch.tensor(np.stack([index.reshape(-1), np.repeat(np.arange(N), K)]))


NETWORKS = {
    "linear": (lambda: nn.Linear(6, 5), lambda: torch.nn.Linear(6, 5)),
    "linear without bias": (
        lambda: nn.Linear(6, 5, bias=False),
        lambda: torch.nn.Linear(6, 5, bias=False),
    ),
    "one layer": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU()),
        lambda: torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU()),
    ),
    "two layers": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)),
        lambda: torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4)),
    ),
    "batch norm": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU()),
        lambda: torch.nn.Sequential(
            torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU()
        ),
    ),
    "activations last": (  # follow the maximum; points without neighbours stay 0
        lambda: nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.LeakyReLU(0.2), nn.Sigmoid()),
        lambda: torch.nn.Sequential(
            torch.nn.Linear(6, 5),
            torch.nn.BatchNorm1d(5),
            torch.nn.LeakyReLU(0.2),
            torch.nn.Sigmoid(),
        ),
    ),
    "not linear first": (
        lambda: nn.Sequential(nn.Tanh(), nn.Linear(6, 5)),
        lambda: torch.nn.Sequential(torch.nn.Tanh(), torch.nn.Linear(6, 5)),
    ),
}


class Peer(torch.nn.Module):
    """PyTorch Geometric's EdgeConv on our edges, with the parameters where EdgeConv has them."""

    def __init__(self, network, aggr, edge_index):
        super().__init__()
        self.nn, self.edge_index = network, edge_index
        self.conv = [pyg.EdgeConv(network, aggr=aggr)]  # in a list: not a part of its own

    def forward(self, x):
        return self.conv[0](x, self.edge_index)


@pytest.mark.parametrize("aggr", ["max", "mean", "sum"])
@pytest.mark.parametrize("network", list(NETWORKS))
@pytest.mark.parametrize("N", [20, 700])  # array algebra, and the kernel
def test_dynamic_edge_conv(network, aggr, N):
    x, batch = points(N, 3), batch_of(N // 2, N - N // 2)
    index, _ = knn(x, 4, batch)
    ours, theirs = NETWORKS[network]
    mine = DynamicEdgeConv(ours(), 4, aggr)
    mine.forward = lambda x, forward=mine.forward: forward(x, batch)
    modules(mine, Peer(theirs(), aggr, edges(index)), x)


def ragged_graph(N, E, seed=0):
    """Unsorted edges, some of them twice; the last two nodes hear nobody."""
    rng = np.random.default_rng(seed)
    return Graph(rng.integers(0, N, E), rng.integers(0, N - 2, E), N)


@pytest.mark.parametrize("aggr", ["max", "mean", "sum"])
@pytest.mark.parametrize("network", list(NETWORKS))
def test_edge_conv(network, aggr):
    x, g = points(30, 3), ragged_graph(30, 90)
    ours, theirs = NETWORKS[network]
    mine = EdgeConv(ours(), aggr)
    mine.forward = lambda x, forward=mine.forward: forward(x, g)
    modules(mine, Peer(theirs(), aggr, torch.tensor(np.stack([g.src, g.dst]))), x)


def test_edge_conv_has_the_parameters_of_pytorch_geometric():
    theirs = pyg.EdgeConv(torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU()))
    mine = EdgeConv(nn.Sequential(nn.Linear(6, 5), nn.ReLU()))
    mine.load_state_dict(theirs.state_dict())
    assert list(mine.state_dict()) == list(theirs.state_dict())


def test_dynamic_edge_conv_is_edge_conv_on_the_knn_graph():
    x = points(40, 3).astype(np.float32)
    network = nn.Sequential(nn.Linear(6, 5, rng=0), nn.Tanh(), nn.Linear(5, 4, rng=1))
    g = knn_graph(x, 5, loop=True)
    found = EdgeConv(network, "mean")(x, g).data
    np.testing.assert_allclose(DynamicEdgeConv(network, 5, "mean")(x).data, found, atol=1e-6)


def test_dynamic_edge_conv_looks_for_neighbours_in_other_places():
    x, places = points(40, 3).astype(np.float32), points(40, 2, seed=1).astype(np.float32)
    layer, batch = DynamicEdgeConv(nn.Linear(6, 4, rng=0), 5), batch_of(4, 16, 20)
    found = layer(x, batch, ta.tensor(places, requires_grad=True))  # 4 points: all of them
    for cloud, k in enumerate((4, 5, 5)):
        index, _ = knn(places[batch == cloud], k)
        expected = edge_conv(layer.nn, x[batch == cloud], index)
        np.testing.assert_allclose(found.data[batch == cloud], expected.data, atol=1e-6)
    np.testing.assert_array_equal(layer(x, batch, x).data, layer(x, batch).data)
    with pytest.raises(ValueError, match="places .*40"):
        layer(x, batch, places[:39])


def test_a_graph_without_edges():
    g = Graph(np.zeros(0, int), np.zeros(0, int), 4)
    x = points(4, 3).astype(np.float32)
    for aggr in ("max", "mean", "sum"):
        for network in (nn.Linear(6, 2), nn.Sequential(nn.Linear(6, 2), nn.GELU())):
            np.testing.assert_array_equal(EdgeConv(network, aggr)(x, g).data, np.zeros((4, 2)))


class TorchGravNet(torch.nn.Module):
    """GravNetConv as PyTorch Geometric computes it, on edges that are given."""

    def __init__(self, F, out, S, P, edge_index):
        super().__init__()
        self.edge_index = edge_index
        self.lin_s, self.lin_h = torch.nn.Linear(F, S), torch.nn.Linear(F, P)
        self.lin_out1 = torch.nn.Linear(F, out, bias=False)
        self.lin_out2 = torch.nn.Linear(2 * P, out)

    def forward(self, x):
        from torch_geometric.nn.aggr import MultiAggregation

        s, h = self.lin_s(x), self.lin_h(x)
        src, dst = self.edge_index
        weight = torch.exp(-10.0 * (s[src] - s[dst]).pow(2).sum(-1))
        messages = h[src] * weight[:, None]
        found = MultiAggregation(["mean", "max"])(messages, dst, dim_size=len(x))
        return self.lin_out1(x) + self.lin_out2(found)


@pytest.mark.parametrize("N", [20, 600])
def test_gravnet(N):
    x, batch = points(N, 3), batch_of(N // 2, N - N // 2)
    mine = GravNetConv(3, 5, 2, 4, k=6, rng=1).astype(np.float64)
    index, _ = knn(mine.lin_s(ta.Tensor(x)), 6, batch)
    theirs = TorchGravNet(3, 5, 2, 4, edges(index))
    theirs.load_state_dict({n: torch.tensor(v) for n, v in mine.state_dict().items()})
    mine.forward = lambda x, forward=mine.forward: forward(x, batch)
    modules(mine, theirs, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tied", [False, True])
def test_implementations_of_neighbours_agree(dtype, tied):
    rng = np.random.default_rng(0)
    w, h = rng.uniform(0.5, 1, (30, 5)).astype(dtype), rng.normal(size=(20, 7)).astype(dtype)
    x, index = rng.normal(size=(30, 3)).astype(dtype), rng.integers(0, 20, (30, 5))
    if tied:
        w, h = np.ones_like(w), np.sign(h)
    g, g2 = rng.normal(size=(30, 14)).astype(dtype), rng.normal(size=(30, 5)).astype(dtype)
    g3 = rng.normal(size=(30, 5, 3)).astype(dtype)
    expected = None
    for impl in ("numpy", "sums", "kernel"):
        a, b, c = (ta.Tensor(v, requires_grad=True) for v in (w, h, x))
        p, q = (ta.Tensor(v, requires_grad=True) for v in (x, -x))
        two = "kernel" if impl == "sums" else impl  # what the others have
        y, d2 = mean_max(a, b, index, impl), squared_distances(c, index, two)
        sums, m = pair_sums(p, q, index, two), ta.Tensor(h, requires_grad=True)
        highest = neighbour_max(m, index, two)
        highest.backward(g[:, :7])
        y.backward(g)
        d2.backward(g2)
        sums.backward(g3)
        found = y.data, d2.data, sums.data, highest.data
        found += a.grad, b.grad, c.grad, p.grad, q.grad, m.grad
        expected = expected or found
        for i, (own, other) in enumerate(zip(found, expected, strict=True)):
            same(own, other, f"{impl} {i}")


def test_nan_is_seen():
    index, w = np.array([[0, 1, 2], [2, 1, 2], [2, 2, 0]]), np.ones((3, 3))
    h = np.array([[np.nan, 1], [2, 3], [0, 1]])
    for impl in ("numpy", "sums", "kernel"):
        y = np.asarray(mean_max(w, h, index, impl))
        np.testing.assert_array_equal(y[:, 2:], [[np.nan, 3], [2, 3], [np.nan, 1]], err_msg=impl)
    np.testing.assert_array_equal(np.asarray(neighbour_max(h, index, "kernel")), y[:, 2:])


def test_edge_conv_leaves_out_points_of_other_clouds():
    x, batch = points(30, 3), batch_of(12, 18)
    layer = DynamicEdgeConv(nn.Linear(6, 4, rng=0), 5)
    together = layer(x.astype(np.float32), batch).data
    alone = layer(x[12:].astype(np.float32)).data
    np.testing.assert_array_equal(together[12:], alone)


def test_order_of_points_does_not_matter():
    x = points(40, 3).astype(np.float32)
    order = np.random.default_rng(1).permutation(40)
    for layer in (GravNetConv(3, 5, 2, 4, 6, rng=0), DynamicEdgeConv(nn.Linear(6, 4, rng=0), 5)):
        np.testing.assert_allclose(layer(x[order]).data, layer(x).data[order], atol=1e-6)


def test_sharpness_is_the_scale_of_the_space():
    x = points(50, 3)
    one, other = (GravNetConv(3, 5, 2, 4, 6, sharpness=c, rng=0).astype(float) for c in (10, 0.1))
    other.lin_s.weight.data = other.lin_s.weight.data * 10
    other.lin_s.bias.data = other.lin_s.bias.data * 10
    np.testing.assert_allclose(one(x).data, other(x).data, atol=1e-12)


def test_gradient_reaches_the_space():
    layer = GravNetConv(3, 5, 2, 4, 6, rng=0)
    np.sum(layer(points(50, 3).astype(np.float32)) ** 2).backward()
    assert np.abs(layer.lin_s.weight.grad).max() > 1e-3


@pytest.mark.parametrize("N", [1, 5])
def test_all_points_are_neighbours(N):
    x = points(N, 2).astype(np.float32)
    assert GravNetConv(2, 3, 2, 4, k=N)(x).shape == (N, 3)
    assert DynamicEdgeConv(nn.Linear(4, 3), k=N)(x).shape == (N, 3)


@pytest.mark.parametrize("layer", [*small_events()], ids=lambda layer: type(layer).__name__)
def test_an_event_with_few_points_uses_all_of_them(layer):
    """Each event by itself: it gets what it gets alone, in any order of the points."""
    sizes = (9, 3, 6, 1, 3)
    x, batch = points(sum(sizes), 3), np.repeat([7, 3, 0, 9, 4], sizes)
    layer.astype(np.float64)
    t = ta.tensor(x, requires_grad=True)
    together = layer(t, batch)
    together.backward(np.ones(together.shape))
    for cloud in np.unique(batch):
        alone = ta.tensor(x[batch == cloud], requires_grad=True)
        y = layer(alone)
        y.backward(np.ones(y.shape))
        np.testing.assert_allclose(together.data[batch == cloud], y.data, rtol=0, atol=1e-12)
        np.testing.assert_allclose(t.grad[batch == cloud], alone.grad, rtol=0, atol=1e-12)
    order = np.random.default_rng(1).permutation(len(x))
    mixed = layer(x[order], batch[order]).data
    np.testing.assert_allclose(mixed, together.data[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("c", [0, np.float32(0.5), nn.Parameter(np.ones(1))])
def test_a_sharpness_may_be_zero_or_learned(c):
    assert GravNetConv(3, 3, 2, 4, 2, sharpness=c, rng=0)(points(5, 3)).shape == (5, 3)
