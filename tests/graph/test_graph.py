"""Graphs, segments and message passing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import graph, nn
from tinyattn.graph import Graph

rng = np.random.default_rng(0)
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


def some_graph(N=6, E=14, seed=0):
    """Edges at random: repeated ones, loops and lonely nodes among them."""
    r = np.random.default_rng(seed)
    return Graph(r.integers(0, N, E), r.integers(0, N, E), N)


# ---------------------------------------------------------------- graphs


def test_a_graph_keeps_its_own_edges_and_is_frozen():
    src = np.array([0, 1])
    g = Graph(src, [1, 2], 4)
    src[0] = 3
    assert g.src.tolist() == [0, 1] and g.dst.dtype == np.intp
    with pytest.raises(AttributeError):
        g.src = src
    assert (g.num_edges, g.num_graphs) == (2, 1)
    assert g.in_degree.tolist() == [0, 1, 1, 0]
    assert repr(Graph([0], [1], 2, x=np.ones((2, 3)))) == "Graph(2 nodes, 1 edge, x [2, 3])"


def test_batch_keeps_graphs_apart():
    a = Graph([0], [1], 2, x=np.ones((2, 1)))
    b = Graph([0, 2], [1, 1], 3, x=np.zeros((3, 1)))
    both = graph.batch([a, b])
    assert both.src.tolist() == [0, 2, 4] and both.dst.tolist() == [1, 3, 3]
    assert both.batch.tolist() == [0, 0, 1, 1, 1] and both.num_graphs == 2
    assert both.x.shape == (5, 1)
    assert graph.batch([]).num_nodes == 0
    empty = graph.batch([Graph([], [], 1, u=np.ones((1, 3))), Graph([], [], 0, u=np.ones((1, 3)))])
    assert empty.num_graphs == 2 and empty.num_nodes == 1


def test_graphs_without_nodes_count_at_the_end_too():
    """Pooled rows belong to the labels, one for each graph."""
    nothing = Graph([], [], 0, x=np.zeros((0, 2)))
    both = graph.batch([nothing, some_graph_with(2), nothing, nothing])
    assert both.num_graphs == 4
    pooled = graph.segment_sum(both.x, both.batch, both.num_graphs)
    np.testing.assert_array_equal(pooled.numpy(), [[0, 0], [2, 2], [0, 0], [0, 0]])
    assert replace(both, x=None).num_graphs == both.without_self_loops().num_graphs == 4
    assert replace(both, batch=None, num_graphs=None).num_graphs == 1
    assert graph.batch([]).num_graphs == 0
    assert Graph([], [], 2, batch=[0, 0], num_graphs=3, u=np.ones((3, 1))).num_graphs == 3


def some_graph_with(n):
    return Graph([0], [1], n, x=np.ones((n, 2)))


def test_features_of_a_batch_stay_differentiable():
    x = ta.tensor(np.ones((2, 1)), requires_grad=True)
    both = graph.batch([Graph([0], [1], 2, x=x), Graph([], [], 1, x=np.zeros((1, 1)))])
    np.sum(both.x * np.array([[1.0], [2.0], [3.0]])).backward()
    assert x.grad.tolist() == [[1], [2]]


def test_builders():
    full = graph.fully_connected(3)
    assert full.dst.tolist() == [0, 0, 1, 1, 2, 2] and full.src.tolist() == [1, 2, 0, 2, 0, 1]
    assert graph.fully_connected(3, loop=True).num_edges == 9
    assert graph.fully_connected(0).num_edges == graph.fully_connected(1).num_edges == 0
    A = np.array([[0, 1, 0], [0, 0, 0], [1, 1, 0]])  # [receiver, sender]
    g = graph.from_adjacency(A)
    assert g.src.tolist() == [1, 0, 1] and g.dst.tolist() == [0, 2, 2] and g.edge_attr is None
    assert np.array_equal(g.adjacency(), A)
    assert graph.from_adjacency(A * 0.5).edge_attr.tolist() == [0.5, 0.5, 0.5]


def test_from_networkx():
    networkx = pytest.importorskip("networkx")
    g = graph.from_networkx(networkx.path_graph(["a", "b", "c"]))
    assert np.array_equal(g.adjacency(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    directed = networkx.DiGraph([(0, 1), (1, 1)])
    directed.add_node(2)
    g = graph.from_networkx(directed)
    assert g.num_nodes == 3 and np.array_equal(g.adjacency(), [[0, 0, 0], [1, 1, 0], [0, 0, 0]])
    weighted = networkx.Graph()
    weighted.add_edge("x", "y", weight=2.5)
    assert graph.from_networkx(weighted).edge_attr.tolist() == [2.5, 2.5]
    assert graph.from_networkx(weighted).edge_attr.dtype == np.float32
    assert graph.from_networkx(networkx.Graph()).num_nodes == 0


def test_features_of_networkx_are_kept_or_named():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    for node in "ab":
        G.add_node(node, x=[1.0, 2.0], mass=3.0, name="a", at=np.zeros((2, 2)))
    G.add_edge("a", "b", weight=2, length=5.0)
    with pytest.warns(UserWarning, match="from_networkx") as said:
        g = graph.from_networkx(G)
    assert [str(w.message).split(". ")[1] for w in said] == [
        "To use them, pass x=['at', 'mass']",
        "To use them, pass edge_attr='length'",
    ]
    assert {w.filename for w in said} == {__file__}  # the user's line, not one of the library
    assert g.x.tolist() == [[1, 2], [1, 2]] and g.x.dtype == np.float32
    assert g.edge_attr.tolist() == [2, 2] and g.edge_attr.dtype == np.float32
    g = graph.from_networkx(G, x=["mass", "x", "at"], edge_attr=["length", "weight"])
    assert g.x.tolist() == [[3, 1, 2, 0, 0, 0, 0]] * 2 and g.edge_attr.tolist() == [[5, 2]] * 2


def test_features_that_only_some_have_are_named():
    networkx = pytest.importorskip("networkx")
    G = networkx.Graph()
    G.add_node("a", x=[1.0, 2.0])
    G.add_edge("a", "b", weight=2)
    G.add_edge("b", "c")
    with pytest.warns(UserWarning, match="only some of the (nodes|edges) have") as said:
        g = graph.from_networkx(G)
    assert len(said) == 2 and g.x is None and g.edge_attr is None


def test_self_loops():
    g = Graph([0, 1, 1], [1, 1, 2], 3).with_self_loops()
    assert g.src.tolist() == [0, 1, 0, 1, 2] and g.dst.tolist() == [1, 2, 0, 1, 2]
    assert g.without_self_loops().num_edges == 2
    listed = Graph([0, 1], [1, 1], 2, edge_attr=[3.0, 4.0])
    assert listed.without_self_loops().edge_attr.tolist() == [3.0]


# ---------------------------------------------------------------- segments


@given(st.integers(0, 12), st.integers(1, 5), st.sampled_from(list(REDUCE)), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_segments_are_what_a_loop_gives(E, S, name, seed):
    r = np.random.default_rng(seed)
    values, ids = r.integers(-2, 3, (E, 2)).astype(float), r.integers(0, S, E)
    found = getattr(graph, f"segment_{name}")(values, ids, S).numpy()
    for s in range(S):
        rows = values[ids == s]
        empty = np.full(2, name == "prod", float)
        np.testing.assert_allclose(found[s], REDUCE[name](rows, axis=0) if len(rows) else empty)


@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_segment_softmax_sums_to_one_and_survives_large_values(E, S, seed):
    r = np.random.default_rng(seed)
    values, ids = 1000 * r.normal(size=(E, 2)), r.integers(0, S, E)
    a = graph.segment_softmax(values, ids, S)
    total = graph.segment_sum(a, ids, S).numpy()
    present = np.isin(np.arange(S), ids)
    expected = np.broadcast_to(present[:, None], (S, 2))
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12)
    for s in range(S):
        rows = F.softmax(values[ids == s], axis=0).numpy()
        np.testing.assert_allclose(a.numpy()[ids == s], rows, rtol=1e-12, atol=1e-300)


def test_tied_maxima_share_the_gradient():
    x = ta.tensor([1.0, 3.0, 3.0, 2.0], requires_grad=True)
    np.sum(graph.segment_max(x, np.array([0, 0, 0, 1]), 3)).backward()
    assert x.grad.tolist() == [0, 0.5, 0.5, 1]


def test_an_empty_segment_of_minima_is_plain_zero():
    y = graph.segment_min(np.ones(1), np.array([1]), 2).numpy()
    assert not np.signbit(y[0])


# ---------------------------------------------------------------- one formula


def test_propagate_is_the_formula():
    g, x = some_graph(), rng.normal(size=(6, 2))
    for name, reduce in REDUCE.items():
        y = graph.propagate(x, g, lambda x_j, x_i: x_i - 2 * x_j, name).numpy()
        for j in range(6):
            messages = x[g.src[g.dst == j]] - 2 * x[j]
            expected = reduce(messages, axis=0) if len(messages) else float(name == "prod")
            np.testing.assert_allclose(y[j], np.broadcast_to(expected, 2), rtol=1e-12)


def test_a_convolution_is_message_passing():
    image, kernel = rng.normal(size=(4, 5)), rng.normal(size=(3, 3))
    row, column = np.divmod(np.arange(20), 5)
    offset = np.stack([row[None] - row[:, None], column[None] - column[:, None]])  # [2, j, i]
    g = graph.from_adjacency(np.abs(offset).max(axis=0) <= 1)
    c = kernel[tuple(offset[:, g.dst, g.src] + 1)][:, None]  # fixed by the relative position
    y = graph.propagate(image.reshape(-1, 1), g, lambda x_j, x_i: c * x_i).numpy()
    expected = F.conv2d(image[None, None], kernel[None, None], padding=1).numpy()
    np.testing.assert_allclose(y.reshape(4, 5), expected[0, 0], rtol=0, atol=1e-12)


def test_attention_is_message_passing():
    x, d = rng.normal(size=(5, 4)), 4
    q, k, v = (x @ rng.normal(size=(4, d)) for _ in range(3))
    g = graph.fully_connected(5, loop=True)
    s = np.sum(q[g.dst] * k[g.src], axis=-1) / np.sqrt(d)
    a = graph.segment_softmax(s, g.dst, 5)[:, None]
    y = graph.propagate(v, g, lambda x_j, x_i: a * x_i).numpy()
    expected = F.scaled_dot_product_attention(q, k, v).numpy()
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- layers


def layers():
    block = graph.GraphNetBlock(node_model=nn.Linear(4, 2, rng=0))
    return [
        graph.GCNConv(2, 3, rng=0),
        graph.GATConv(2, 3, heads=2, rng=0),
        lambda x, g: block(x, g, rng_edges(g))[0],
    ]


def rng_edges(g):
    """Edge features that belong to the edge and not to its place in the list."""
    return np.stack([np.ones(g.num_edges), np.zeros(g.num_edges)], axis=1)


@pytest.mark.parametrize("i", range(3))
@given(seed=st.integers(0, 999))
@settings(max_examples=15, deadline=None)
def test_renumbering_the_nodes_renumbers_the_result(i, seed):
    r = np.random.default_rng(seed)
    N = int(r.integers(1, 7))
    g, x = some_graph(N, int(r.integers(0, 12)), seed), r.normal(size=(N, 2))
    p = r.permutation(N)  # old node p[n] is the new node n
    new = np.argsort(p)
    edges = r.permutation(g.num_edges)
    shuffled = Graph(new[g.src][edges], new[g.dst][edges], N)
    layer = layers()[i]
    y, z = layer(x, g).numpy(), layer(x[p], shuffled).numpy()
    np.testing.assert_allclose(z, y[p], rtol=0, atol=1e-12)


def test_a_batch_gives_what_its_graphs_give():
    a, b = some_graph(4, 7, 1), some_graph(5, 6, 2)
    x, z = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    for layer in layers():
        together = layer(np.concatenate([x, z]), graph.batch([a, b])).numpy()
        apart = np.concatenate([layer(x, a).numpy(), layer(z, b).numpy()])
        np.testing.assert_allclose(together, apart, rtol=0, atol=1e-12)


def test_lonely_nodes_hear_nothing_or_themselves():
    g, x = Graph([], [], 2), rng.normal(size=(2, 2))
    layer = graph.GCNConv(2, 3, add_self_loops=False, rng=0)
    assert not layer(x, g).numpy().any()
    layer = graph.GATConv(2, 3, rng=0)
    np.testing.assert_allclose(layer(x, g).numpy(), layer.lin(x).numpy(), rtol=1e-12)
    assert graph.GCNConv(2, 3, rng=0)(np.zeros((0, 2)), Graph([], [], 0)).shape == (0, 3)


def test_attention_weights_of_gat_sum_to_one():
    layer, g = graph.GATConv(2, 3, heads=2, rng=0), some_graph()
    with_loops, a = layer.attention(rng.normal(size=(6, 2)), g)
    assert a.shape == (with_loops.num_edges, 2)
    total = graph.segment_sum(a, with_loops.dst, 6).numpy()
    np.testing.assert_allclose(total, 1, rtol=1e-12)


def test_dropout_of_gat_acts_in_training_only():
    layer, g, x = graph.GATConv(2, 3, dropout=0.5, rng=0), some_graph(), rng.normal(size=(6, 2))
    assert not np.allclose(layer(x, g).numpy(), layer(x, g).numpy())
    layer.eval()
    assert np.array_equal(layer(x, g).numpy(), layer(x, g).numpy())


def test_the_seed_of_gat_is_also_that_of_its_dropout():
    g, x = some_graph(), rng.normal(size=(6, 2))
    a, b = (graph.GATConv(2, 3, dropout=0.5, rng=0)(x, g).numpy() for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_graph_net_block_by_hand():
    """Sums of everything, all weights 1, on a path of three nodes."""

    def ones(n):
        layer = nn.Linear(n, 1, bias=False)
        layer.weight.data = np.ones((1, n), np.float32)
        return layer

    g = Graph([0, 1], [1, 2], 3)
    x, e, u = np.array([[1.0], [2.0], [3.0]]), np.array([[10.0], [20.0]]), np.array([[100.0]])
    block = graph.GraphNetBlock(ones(4), ones(3), ones(3))
    x2, e2, u2 = block(x, g, e, u)
    assert e2.numpy().ravel().tolist() == [10 + 2 + 1 + 100, 20 + 3 + 2 + 100]
    assert x2.numpy().ravel().tolist() == [0 + 1 + 100, 113 + 2 + 100, 125 + 3 + 100]
    assert u2.item() == (113 + 125) + (101 + 215 + 228) + 100
    x3, e3, u3 = graph.GraphNetBlock(node_model=ones(2))(x, g, e)
    assert x3.numpy().ravel().tolist() == [1, 12, 23] and u3 is None
    assert np.shares_memory(e3.data, e)


def test_graphs_without_nodes_or_edges_have_a_result():
    nobody, lonely, x = Graph([], [], 0), Graph([], [], 3), rng.normal(size=(3, 2))
    for layer in (graph.GCNConv(2, 3, rng=0), graph.GATConv(2, 3, heads=2, rng=0)):
        y = layer(np.zeros((0, 2)), nobody)
        assert y.shape == (0, layer(x, lonely).shape[1])
    no_loops = graph.GATConv(2, 3, add_self_loops=False, rng=0)
    assert not no_loops(x, lonely).numpy().any()  # nobody to hear
    block = graph.GraphNetBlock(nn.Linear(5, 2), nn.Linear(4, 2), nn.Linear(4, 2))
    for g in (nobody, lonely):
        nodes, edges, whole = block(x[: g.num_nodes], g, np.zeros((0, 1)))
        assert (nodes.shape, edges.shape, whole.shape) == ((g.num_nodes, 2), (0, 2), (1, 2))
    for name in REDUCE:
        y = graph.propagate(x, lonely, lambda x_j, x_i: x_i, name).numpy()
        assert np.array_equal(y, np.full((3, 2), float(name == "prod")))
