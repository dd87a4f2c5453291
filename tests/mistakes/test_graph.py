"""Mistakes with graphs, neighbours, segments and layers on them: the error of each."""

import sys

import numpy as np
import pytest

from tests.graph.few_points import small_events
from tinyattn import Tensor, graph, nn
from tinyattn.graph import (
    DynamicEdgeConv,
    EdgeConv,
    Graph,
    GravNetConv,
    condensation_loss,
    condensation_terms,
    condense,
    edge_conv,
    knn,
    knn_edges,
    knn_graph,
    match,
    radius_graph,
)
from tinyattn.graph.neighbours import neighbour_max
from tinyattn.ops.index import scatter_add


@pytest.mark.parametrize("t_d", [-0.5, float("nan")])
def test_condense_says_that_a_distance_is_not_negative(t_d):
    with pytest.raises(ValueError, match="expected 0 <= t_d"):
        condense(np.ones(2), np.zeros((2, 2)), 0.1, t_d)


def test_wrong_input_of_condensation():
    beta, x, truth = np.full(3, 0.5), np.zeros((3, 2)), np.zeros(3, int)
    with pytest.raises(ValueError, match="got values from 0.5 to 2. Did you forget the s"):
        condensation_loss(np.array([0.5, 2.0, 0.5]), x, truth)
    with pytest.raises(ValueError, match="between 0 and 1, got NaN at point 1 of 3. Look"):
        condensation_loss(np.array([0.5, np.nan, 0.5]), x, truth)
    with pytest.raises(ValueError, match=r"truth to be 3 whole numbers.*float64"):
        condensation_loss(beta, x, truth.astype(float))
    with pytest.raises(ValueError, match=r"x \[N, C\], got shapes \(3, 1\) .* Pass beta\[:, 0\]"):
        condensation_loss(beta[:, None], x, truth)
    with pytest.raises(ValueError, match="batch must be 3 whole numbers"):
        condensation_loss(beta, x, truth, batch=np.zeros(2, int))
    with pytest.raises(ValueError, match=r"\[3\], one for each point, got shape \(2,\)"):
        condensation_loss(beta, x, truth, np.ones(2))
    with pytest.raises(ValueError, match="at least one point"):
        condensation_loss(beta[:0], x[:0], [])
    with pytest.raises(ValueError, match="0 <= q_min < inf, got q_min=-1"):
        condensation_loss(beta, x, truth, q_min=-1)
    with pytest.raises(ValueError, match="condense: expected beta"):
        condense(beta, x[:2])
    with pytest.raises(ValueError, match="condense: expected beta between 0 and 1, got .* sigmoid"):
        condense(np.array([-3.0, 0.5, 4.0]), x)
    with pytest.raises(ValueError, match="truth to be 1 whole number, the object of each point"):
        condensation_loss(beta[:1], x[:1], truth)
    with pytest.raises(ValueError, match="match: found and truth must both be whole numbers"):
        match(truth, truth[:2])
    with pytest.raises(TypeError, match=r"an array \[N\], got a tuple of 2 arrays. Unpack both"):
        match(condense(beta, x), truth)
    with pytest.raises(
        ValueError, match=r"expected weights of shape \(3,\), one for each point, got"
    ):
        match(truth, truth, weights=np.ones(2))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_gives_no_objects_but_an_error(wrong):
    beta, x, truth = np.full(3, 0.5), np.zeros((3, 2)), np.zeros(3, int)
    with pytest.raises(
        ValueError, match="condense: expected finite beta, got NaN or infinity at 3 of 3 points"
    ):
        condense(np.full(3, wrong), x)
    x[1, 0] = wrong
    with pytest.raises(
        ValueError, match="expected finite x, got NaN or infinity at 1 of 3 points, first at po"
    ):
        condense(beta, x)
    with pytest.raises(
        ValueError, match="match: expected finite weights, got NaN or infinity at 1 of 3 points"
    ):
        match(truth, truth, weights=np.array([1, wrong, 1]))


def test_coordinates_that_are_not_finite_have_no_loss():
    beta, x, truth = np.full(3, 0.5), np.zeros((3, 2)), np.array([0, 0, -1])
    x[2, 0] = np.nan  # of a noise point, which would otherwise be left out of the repulsion
    for loss in (condensation_loss, condensation_terms):
        with pytest.raises(ValueError, match=f"{loss.__name__}: expected finite x, .* point 2"):
            loss(beta, x, truth)
        with pytest.raises(ValueError, match=f"{loss.__name__}: expected 0 <= q_min"):
            loss(beta, np.zeros((3, 2)), truth, q_min=-1)


def test_weights_of_points_are_not_negative():
    truth = np.zeros(3, int)
    with pytest.raises(ValueError, match="match: expected weights >= 0, got -2 at point 1 of 3"):
        match(truth, truth, weights=np.array([1, -2, 3]))
    assert match((0, 0, 1), (0, 0, 1)).efficiency == 1  # a tuple of numbers is not a pair of arrays


def test_lists_that_are_not_a_matrix():
    with pytest.raises(ValueError, match="Graph: x must have rows of equal length, got a list of"):
        Graph([0], [1], 2, x=[[1], [2, 3]])
    with pytest.raises(ValueError, match="from_adjacency: A must have rows of equal length"):
        graph.from_adjacency([[0, 1], [1]])
    with pytest.raises(TypeError, match="from_adjacency: A must be real .* got Graph"):
        graph.from_adjacency(Graph([0], [1], 2))
    with pytest.raises(ValueError, match="fully_connected: num_nodes must be .* got '3'"):
        graph.fully_connected("3")
    with pytest.raises(ValueError, match=r"num_nodes .* got an array of shape \(2, 2\)"):
        graph.fully_connected(np.eye(2))


def test_attributes_of_networkx_that_do_not_fit():
    networkx = pytest.importorskip("networkx")
    g = networkx.path_graph(2)
    g.nodes[0]["x"], g.nodes[1]["x"] = [1, 2], [1]
    with pytest.raises(ValueError, match=r"node 0 has shape \(2,\) and node 1 has shape \(1,\)"):
        graph.from_networkx(g)
    g.nodes[1]["x"] = "a"
    with pytest.raises(ValueError, match="'x' of the nodes must be numbers .* node 1 has 'a'"):
        graph.from_networkx(g)
    with pytest.raises(ValueError, match="from_networkx: x is an empty list"):
        graph.from_networkx(g, x=[])


def test_edges_of_neighbours_need_sorted_finite_points():
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match="ascending order, .* got 1 before 0 at index 1. Sort"):
        knn_edges(x, 1, [0, 1, 0])
    with pytest.raises(ValueError, match=r"got None. .* pass np.zeros\(3, int\)"):
        knn_edges(x, 1, None)
    with pytest.raises(ValueError, match="knn_edges: x is NaN or infinite in 3 of 3 points"):
        knn_edges(np.full((3, 2), np.nan), 9, [0, 0, 0])
    assert knn_edges(x.tolist(), 1, [0, 0, 0])[1].tolist() == [0, 1, 2]


def test_pools_name_their_own_arguments():
    x = np.ones((3, 2))
    with pytest.raises(ValueError, match="global_max_pool: batch must be 3 whole numbers, the gra"):
        graph.global_max_pool(x, [0])
    with pytest.raises(ValueError, match="batch must be 1 whole number, the graph of each node"):
        graph.global_max_pool(x[:1], [0, 0])
    with pytest.raises(TypeError, match="got Graph. Pass the batch of the graph, graph.batch"):
        graph.global_add_pool(x, Graph([], [], 3))
    with pytest.raises(TypeError, match="global_add_pool: x must be numbers, got bool"):
        graph.global_add_pool([True, False], None)
    with pytest.raises(TypeError, match="global_add_pool: batch must be whole numbers, .* <U1"):
        graph.global_add_pool(x, ["a", "b", "c"])
    with pytest.raises(ValueError, match=r"are numbered from 0, but batch\[0\] is -1"):
        graph.global_mean_pool(x, [-1, -1, 0])
    with pytest.raises(ValueError, match="global_mean_pool: size must be a whole number of graphs"):
        graph.global_mean_pool(x, [0, 0, 0], 1.5)
    with pytest.raises(ValueError, match="global_mean_pool: x must have a row for each node"):
        graph.global_mean_pool(3.0, None)


def test_neighbours_of_points_that_are_not_a_matrix():
    index = np.zeros((3, 1), int)
    for name, call in (
        ("squared_distances: x", lambda: graph.squared_distances(np.ones(3), index)),
        ("mean_max: h", lambda: graph.mean_max(np.ones((3, 1)), np.ones(3), index)),
        ("neighbour_max: h", lambda: neighbour_max(np.ones(3), index)),
    ):
        with pytest.raises(ValueError, match=rf"{name} must be a matrix .* got shape \(3,\)"):
            call()
    with pytest.raises(ValueError, match="got a tuple of two. Unpack both results of knn"):
        edge_conv(nn.Linear(4, 2), np.ones((3, 2)), knn(np.ones((3, 2)), 2))


def test_networks_on_edges_that_do_not_fit():
    x, g = np.ones((3, 2), np.float32), Graph([0, 1], [1, 2], 3)
    for name, make in (
        ("EdgeConv: nn", lambda: EdgeConv(64)),
        ("DynamicEdgeConv: nn", lambda: DynamicEdgeConv(64, 2)),
        ("edge_conv: nn", lambda: edge_conv(64, x, np.zeros((3, 1), int))),
        ("GraphNetBlock: node_model", lambda: graph.GraphNetBlock(None, 64)),
    ):
        with pytest.raises(TypeError, match=f"{name} must be a module or function .* got 64"):
            make()
    for name, rows, layer in (
        ("EdgeConv", 2, lambda f: EdgeConv(f)(x, g)),
        ("DynamicEdgeConv", 6, lambda f: DynamicEdgeConv(f, 2)(x)),
        ("edge_conv", 3, lambda f: edge_conv(f, x, np.zeros((3, 1), int))),
    ):
        with pytest.raises(ValueError, match=rf"^{name}: nn must return \[{rows}, F'\].* \(1, 4\)"):
            layer(lambda pairs: pairs[:1])
    with pytest.raises(ValueError, match="DynamicEdgeConv: nn accepts 6 features"):
        DynamicEdgeConv(nn.Linear(6, 2), 2)(x)
    with pytest.raises(ValueError, match="GATConv: expected 0 <= dropout <= 1, got dropout=2"):
        graph.GATConv(3, 2, dropout=2)
    with pytest.raises(ValueError, match=r"aggregate must be one of .* got \['sum'\]"):
        graph.propagate(x, g, lambda x_i, x_j: x_j, ["sum"])
    with pytest.raises(ValueError, match="edge_weight must be an array .* got bool of shape"):
        graph.GCNConv(2, 2)(x, g, np.ones(2, bool))


rng = np.random.default_rng(0)
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}


def some_graph(N=6, E=14, seed=0):
    """Edges at random: repeated ones, loops and lonely nodes among them."""
    r = np.random.default_rng(seed)
    return Graph(r.integers(0, N, E), r.integers(0, N, E), N)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [5], 3), r"nodes from 0 to 2, but dst\[0\] is 5"),
        (([0, -1], [0, 0], 3), r"nodes from 0 to 2, but src\[1\] is -1"),
        (([0], [0], 0), r"src must be empty, because there are no nodes, but src\[0\] is 0"),
        (([0, 1], [0], 3), "src has 2 senders, but dst has 1 receiver. Each"),
        (([[0]], [[0]], 3), r"src must be a list of node indices, got shape \(1, 1\)"),
        (
            ([0], [0], 1, None, None, None, [[0]]),
            "batch must be a list of graph indices, got shape",
        ),
        (([], [], -1), "num_nodes must be a whole number >= 0, got -1"),
        (([], [], True), "num_nodes must be a whole number >= 0, got True"),
        (
            ([0], [1], 2, np.ones((3, 1))),
            "x must have 2 rows, one for each node, got shape",
        ),
        (
            ([0], [1], 2, None, np.ones((2, 1))),
            "edge_attr must have 1 row, one for each edge, got shape",
        ),
        (([0], [1], 2, None, None, None, [0, 1]), "edge 0 runs from node 0 of graph 0 to node 1"),
        (
            ([], [], 2, None, None, None, [0]),
            "batch must have 2 elements, one for each node, got 1",
        ),
        (([], [], 1, None, None, None, [-1]), r"numbered from 0, but batch\[0\] is -1"),
    ],
)
def test_wrong_graphs_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Graph(*arguments)


def test_edges_must_be_integers():
    with pytest.raises(TypeError, match="src must be integers, got float64"):
        Graph([0.5], [1], 3)
    with pytest.raises(TypeError, match=r"Write np.asarray\(dst, int\)"):
        Graph([0], [1.0], 3)


def test_the_weight_of_an_existing_self_loop_is_in_the_error():
    g = Graph([0, 1], [0, 0], 3)
    with pytest.raises(ValueError, match="with -2 for its self-loop, add up to -1.5"):
        graph.GCNConv(2, 2)(np.ones((3, 2)), g, np.array([-2.0, 0.5]))


def test_points_that_are_not_an_array():
    with pytest.raises(ValueError, match=r"x must be points \[N, D\], got NoneType"):
        graph.knn(None, 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (([1.0], [0.0], 1), TypeError, "ids must be integers, got float64"),
        (([1.0, 2.0], [0], 1), ValueError, r"got ids of shape \(1,\) and values of shape \(2,\)"),
        (([1.0], [3], 3), ValueError, r"segments from 0 to 2, but ids\[0\] is 3"),
        (([1.0], [-1], 3), ValueError, r"segments from 0 to 2, but ids\[0\] is -1"),
        (([1.0], [0], -1), ValueError, "num_segments must be a whole number >= 0, got -1"),
    ],
)
def test_wrong_segments_are_refused(call, error, message):
    values, ids, n = call
    for name in (*REDUCE, "softmax"):
        with pytest.raises(error, match=f"segment_{name}: .*{message}"):
            getattr(graph, f"segment_{name}")(np.array(values), np.array(ids), n)


def test_wrong_messages_are_refused():
    g, x = some_graph(), rng.normal(size=(6, 2))
    with pytest.raises(ValueError, match="aggregate must be one of sum, mean, .*, got 'add'"):
        graph.propagate(x, g, lambda x_j, x_i: x_i, "add")
    with pytest.raises(ValueError, match=r"6 rows, one for each node, got shape \(5, 2\)"):
        graph.propagate(x[:5], g, lambda x_j, x_i: x_i)
    with pytest.raises(ValueError, match="must return 14 rows, one for each edge, got shape"):
        graph.propagate(x, g, lambda x_j, x_i: np.sum(x_i, axis=0))


def test_layers_refuse_what_does_not_fit():
    g, x = some_graph(), rng.normal(size=(6, 3))
    for layer in (graph.GCNConv(2, 3), graph.GATConv(2, 3)):
        with pytest.raises(ValueError, match=r"x must be \[6, 2\].*got shape \(6, 3\)"):
            layer(x, g)
    with pytest.raises(ValueError, match=r"an array \[14\] with .*, got float64 of shape \(3,\)"):
        graph.GCNConv(3, 3)(x, g, np.ones(3))
    with pytest.raises(ValueError, match=r"e must be \[14, F\], .* edge, got shape \(3, 1\)"):
        graph.GraphNetBlock()(x, g, np.ones((3, 1)))
    with pytest.raises(ValueError, match="aggregate must be one of"):
        graph.GraphNetBlock(aggregate="add")
    e = np.ones((14, 1))
    with pytest.raises(ValueError, match=r"edge_model must return \[14, F'\].*, got NoneType"):
        graph.GraphNetBlock(lambda pairs: None)(x, g, e)
    with pytest.raises(ValueError, match=r"node_model must return \[6, F'\].* got shape \(1, 4\)"):
        graph.GraphNetBlock(node_model=lambda rows: rows[:1])(x, g, e)
    with pytest.raises(ValueError, match="got <U1 of shape"):
        graph.GCNConv(3, 3)(x, g, np.array(["a"] * 14))
    with pytest.raises(ValueError, match="global_add_pool: x must .*got Graph. Pass its features"):
        graph.global_add_pool(g, None)
    with pytest.raises(TypeError, match="global_max_pool: x must be numbers, got bool"):
        graph.global_max_pool(x > 0, None)
    with pytest.raises(ValueError, match="num_segments must be a whole number >= 0, got True"):
        graph.segment_sum(x, [0] * 6, True)
    with pytest.raises(TypeError, match="ids must be integers, got <U1. Write names, ids ="):
        graph.segment_sum(x, ["a"] * 6, 1)
    with pytest.raises(ValueError, match=r"knn_graph: .*numbered from 0, but batch\[0\] is -1"):
        graph.knn_graph(x, 2, [-1] * 6)
    with pytest.raises(TypeError, match="condensation_loss: s_B must be a number, got 'a'"):
        condensation_loss([0.5], [[0.0]], [0], s_B="a")


def test_what_is_no_graph_and_no_array_is_refused_by_name():
    g, x = some_graph(), rng.normal(size=(6, 2))
    layers = {
        "propagate": lambda x, g: graph.propagate(x, g, lambda x_j, x_i: x_i),
        "GCNConv": graph.GCNConv(2, 3, rng=0),
        "GATConv": graph.GATConv(2, 3, rng=0),
        "GraphNetBlock": graph.GraphNetBlock(),
    }
    for name, layer in layers.items():
        with pytest.raises(TypeError, match=f"{name}: graph must be a Graph, got ndarray"):
            layer(x, g.adjacency())
        with pytest.raises(TypeError, match=f"{name}: .*got NoneType. Does the graph have"):
            layer(g.x, g)
        with pytest.raises(TypeError, match=f"{name}: x must be an array or Tensor, got list"):
            layer(x.tolist(), g)
    with pytest.raises(
        TypeError, match="the message function must return an array or Tensor, got NoneType"
    ):
        graph.propagate(x, g, lambda x_j, x_i: None)
    with pytest.raises(ValueError, match=r"x must have 6 rows, one for each node, got shape \(\)"):
        graph.propagate(np.array(1.0), g, lambda x_j, x_i: x_i)


def test_numbers_that_cannot_be_meant_are_refused():
    with pytest.raises(TypeError, match="src must be integers, got bool"):
        Graph([True], [False], 2)
    with pytest.raises(ValueError, match=r"A\[0, 1\] is NaN. Write 0 where there is no edge"):
        graph.from_adjacency([[0, np.nan], [0, 0]])
    with pytest.raises(TypeError, match="A must be real numbers or bool, got <U1"):
        graph.from_adjacency([["a"]])
    g, x, layer = Graph([0], [1], 2), rng.normal(size=(2, 2)), graph.GCNConv(2, 3, False, rng=0)
    with pytest.raises(ValueError, match="edges to node 1.* add up to -1, which .* weights >= 0"):
        layer(x, g, np.array([-1.0]))
    with pytest.raises(ValueError, match="a number for each edge, got list"):
        layer(x, g, [1.0])
    for bad in (np.nan, np.inf):
        with pytest.raises(
            ValueError, match="edge_weight is NaN .* 1 of 1 edges, first for edge 0"
        ):
            layer(x, g, np.array([bad]))
    for name in (*REDUCE, "softmax"):
        with pytest.raises(TypeError, match=f"segment_{name}: values must be numbers, got bool"):
            getattr(graph, f"segment_{name}")(np.array([True]), np.array([0]), 1)
    assert graph.segment_min(np.array([2, 1]), np.array([0, 0]), 1).numpy().dtype.kind == "i"


def test_wrong_input_of_knn():
    x = np.zeros((5, 2), np.float32)
    with pytest.raises(ValueError, match="k <= 5, because the cloud has only 5.*k=6"):
        knn(x, 6)
    with pytest.raises(ValueError, match="k <= 2, because the smallest cloud"):
        knn(x, 3, np.array([0, 0, 0, 1, 1]))
    with pytest.raises(ValueError, match="k <= 1, because the smallest cloud"):
        knn(x, 3, np.array([1, 0, 0, 0, 0]))
    for k in (-1, 1.5, True):
        with pytest.raises(ValueError, match="knn: k must be a whole number"):
            knn(x, k)
    with pytest.raises(ValueError, match=r"got an array of shape \(5, 2"):
        knn(x, x)  # the points twice, as other libraries want them
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinite"):
            knn(np.where(np.arange(10).reshape(5, 2) == 3, bad, x), 2)
    with pytest.raises(ValueError, match=r"points \[N, D\], got shape \(5,\)"):
        knn(x[:, 0], 2)
    with pytest.raises(ValueError, match="do not fit into float32"):
        knn(np.array([[0.0], [1e20]], np.float32), 1)
    with pytest.raises(ValueError, match="5 whole numbers.*float64"):
        knn(x, 2, np.zeros(5))
    with pytest.raises(ValueError, match=r"5 whole numbers.*\(4,\)"):
        knn(x, 2, np.zeros(4, int))
    with pytest.raises(ValueError, match="one of auto, sums, numpy, kernel, got impl='fast'"):
        knn(x, 2, impl="fast")
    with pytest.raises(ValueError, match="real numbers, got complex128"):
        knn(x.astype(complex), 2)
    if sys.maxsize > 2**31:  # else there is no such array
        with pytest.raises(ValueError, match="fewer than 2\\^31 points, got 2147483648"):
            knn(np.zeros((2**31, 0), np.float32), 2)


def test_wrong_edges():
    x = np.zeros((5, 2))
    with pytest.raises(ValueError, match=r"knn_graph: .* k <= 4,.*loop=True counts.*got k=5"):
        knn_graph(x, 5)
    assert knn_graph(x, 5, loop=True).num_edges == 25
    for r in (-1, np.nan, np.array([1, 2]), None):
        with pytest.raises(ValueError, match="number >= 0"):
            radius_graph(x, r)
    with pytest.raises(ValueError, match="^knn_edges: batch must be 5 whole .* order"):
        knn_edges(np.zeros((5, 2)), 1, np.array([1, 0, 0, 0, 0]))
    with pytest.raises(ValueError, match="^knn_edges: k must be a whole number"):
        knn_edges(np.zeros((5, 2)), -1, np.zeros(5, int))
    with pytest.raises(
        ValueError, match="radius_graph: x is NaN or infinite in 5 of 5 points, first"
    ):
        radius_graph(x + np.nan, 1)
    with pytest.raises(ValueError, match="radius_graph: impl must be one of .*, got impl='fast'"):
        radius_graph(x, 1, impl="fast")


def points(N, F, seed=0):
    return np.random.default_rng(seed).normal(size=(N, F))


def batch_of(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.parametrize(
    "layer", [*small_events(strict=True)], ids=lambda layer: type(layer).__name__
)
def test_few_points_are_an_error_where_that_is_asked_for(layer):
    x = points(8, 3).astype(np.float32)
    with pytest.raises(ValueError, match="k <= 5.*k=6"):
        layer(x[:5])
    with pytest.raises(ValueError, match=r"k <= 1, because .* only 1 point, got k=6"):
        layer(x, batch_of(7, 1))


@pytest.mark.parametrize("layer", [*small_events()], ids=lambda layer: type(layer).__name__)
def test_no_points_and_nan_are_errors_that_say_so(layer):
    x, name = points(8, 3).astype(np.float32), type(layer).__name__
    with pytest.raises(ValueError, match=rf"{name}: x has no points \(shape \(0, 3\)\). Leave"):
        layer(x[:0])
    with pytest.raises(ValueError, match=rf"{name}: x has no points"):
        layer(x[:0], np.zeros(0, int))
    x[2, 1], x[5, 0] = np.nan, np.inf
    with pytest.raises(
        ValueError, match=rf"{name}: x is NaN or infinite in 2 of 8 points .index 2, 5.\. "
    ):
        layer(x)
    with pytest.raises(ValueError, match="batch must be 8 whole numbers"):
        layer(np.ones((8, 3), np.float32), np.zeros(3, int))


def test_wrong_input_of_layers_on_points():
    x = points(5, 3).astype(np.float32)
    with pytest.raises(ValueError, match=r"accepts 5 features, but its input has 2 · 3"):
        DynamicEdgeConv(nn.Linear(5, 3), 2)(x)
    with pytest.raises(ValueError, match="aggr must be one of max, mean, sum, got 'min'"):
        DynamicEdgeConv(nn.Linear(6, 3), 2, "min")
    with pytest.raises(ValueError, match=r"points \[N, 3\], got shape \(5, 2\)"):
        GravNetConv(3, 3, 2, 4, 2)(x[:, :2])
    with pytest.raises(ValueError, match="rows from 0 to 1, but .* is 5"):
        edge_conv(nn.Linear(6, 3), x[:2], np.array([[0], [5]]))
    with pytest.raises(ValueError, match=r"5 rows, one for each point, got shape \(2, 1\)"):
        edge_conv(nn.Linear(6, 3), x, np.array([[0], [4]]))
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        GravNetConv(3, 3, 2, 4, 0)
    with pytest.raises(
        TypeError, match="EdgeConv: graph must be a Graph, got ndarray. Make one from .* with Graph"
    ):
        EdgeConv(nn.Linear(6, 3))(x, np.array([[0], [4]]))


@pytest.mark.parametrize("layer", [nn.Linear(6, 3), np.tanh])
def test_edge_conv_refuses_a_table_that_names_no_points(layer):
    x = points(3, 3).astype(np.float32)
    with pytest.raises(
        ValueError,
        match="edge_conv: index must contain indices of points, .* got float64. Pass the first",
    ):
        edge_conv(layer, x, np.array([[0.0], [1.7], [2.0]]))
    with pytest.raises(ValueError, match="Convert it with .astype.int., unless it contains"):
        edge_conv(layer, x, np.array([[0.0], [1.0], [2.0]]))
    with pytest.raises(ValueError, match="got NoneType. Pass the first result of knn"):
        edge_conv(layer, x, None)
    with pytest.raises(
        ValueError, match="edge_conv: index must contain only rows from 0 to 2, but .* is -1"
    ):
        edge_conv(layer, x, np.array([[0], [-1], [2]]))
    with pytest.raises(ValueError, match=r"edge_conv: index must be \[N, K\] .*, got shape \(3,\)"):
        edge_conv(layer, x, np.array([0, 1, 2]))
    with pytest.raises(
        ValueError, match="neighbour_max: index must contain indices of points, .* got float64"
    ):
        neighbour_max(x, np.array([[0.0], [1.7], [2.0]]))
    table = np.array([[0], [2], [1]])
    from_list = edge_conv(layer, x, table.tolist())
    np.testing.assert_array_equal(from_list.numpy(), edge_conv(layer, x, table).numpy())


@pytest.mark.parametrize("c", [-1, "10", None, True, np.nan, np.inf, [1.0, 2.0]])
def test_a_sharpness_that_is_no_scale(c):
    with pytest.raises(ValueError, match="sharpness, the c of exp.* must be finite and >= 0"):
        GravNetConv(3, 3, 2, 4, 2, sharpness=c)


def test_an_unknown_implementation_of_segments():
    x = np.ones((100, 64), np.float32)
    with pytest.raises(ValueError, match="segment_max: impl must be one of auto, numpy"):
        graph.segment_max(x, np.zeros(100, int), 1, impl="fast")


def test_what_does_not_fit_into_64_bits_is_refused():
    x = Tensor(np.array([2**63], np.uint64))
    with pytest.raises(OverflowError, match="Convert them to float64"):
        _ = -x


def test_a_batch_of_too_few_rows_for_a_matching():
    found = np.zeros(12, int)
    with pytest.raises(ValueError, match="match: batch must be 12 whole numbers"):
        match(found, found, batch=np.zeros(3, int))


def test_graphs_that_make_no_batch():
    a = Graph([0], [1], 2, x=np.ones((2, 1)))
    with pytest.raises(ValueError, match="graph 1 has no x, but others have"):
        graph.batch([a, Graph([], [], 1)])
    with pytest.raises(
        TypeError, match=r"a list of graphs, got one Graph. Write batch\(\[graph\]\)"
    ):
        graph.batch(some_graph())
    with pytest.raises(ValueError, match="is already a batch"):
        graph.batch([graph.batch([a, a])])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"u": np.ones((1, 3)), "batch": [0, 1]},
            "u must have 2 rows, one for each graph",
        ),
        (
            {"u": np.ones((3, 1)), "batch": [0, 1], "num_graphs": 4},
            "u must have 4 rows, one for each graph",
        ),
        ({"batch": [0, 2], "num_graphs": 2}, "got num_graphs="),
        ({"num_graphs": 2}, "got num_graphs="),
        ({"batch": [0, 0], "num_graphs": 1.5}, "got num_graphs="),
    ],
)
def test_numbers_of_graphs_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        Graph([], [], 2, **options)


def test_builders_refuse_what_is_no_adjacency_matrix_or_loses_features():
    with pytest.raises(ValueError, match=r"must be square \[N, N\], got shape \(2, 3\)"):
        graph.from_adjacency(np.ones((2, 3)))
    with pytest.raises(ValueError, match="the new edges would have no features"):
        Graph([0], [1], 2, edge_attr=np.ones(1)).with_self_loops()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"x": "charge", "edge_attr": "weight"}, "node 'a' has no attribute 'charge'"),
        ({"x": "mass", "edge_attr": "charge"}, r"edge \('a', 'b'\) has no attribute 'charge'"),
        ({"x": "name", "edge_attr": "weight"}, "'name' of the nodes must be numbers"),
    ],
)
def test_features_that_a_graph_of_networkx_does_not_have(options, message):
    G = pytest.importorskip("networkx").Graph()
    for node in "ab":
        G.add_node(node, mass=3.0, name="a")
    G.add_edge("a", "b", weight=2)
    with pytest.raises(ValueError, match=message):
        graph.from_networkx(G, **options)


def test_places_belong_to_the_points():
    x = points(40, 3).astype(np.float32)
    layer = DynamicEdgeConv(nn.Linear(6, 4, rng=0), 5)
    with pytest.raises(ValueError, match="places must have 40 rows, one for each point"):
        layer(x, batch_of(4, 16, 20), x[:39])


@pytest.mark.parametrize("wrong", [300, -301])
def test_a_row_that_is_not_there_is_named_by_the_kernel(wrong):
    x, ids = np.ones((300, 64)), np.zeros(3000, int)
    ids[7] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0"):
        Tensor(x, requires_grad=True)[ids]
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0"):
        scatter_add(x[np.zeros(3000, int)], ids, x.shape)
