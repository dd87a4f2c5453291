"""The cases of `tests/cases/ops.py` for graphs with given edges."""

import numpy as np

from tests.cases.layers import layer
from tests.cases.ops import CASES, apart, case, normal, positive
from tinyattn import graph, nn

__all__ = ["CASES"]

IDS = np.array([3, 0, 3, 1, 0, 3])  # unsorted, segment 2 is empty, segment 1 has one row
TIED = np.array([1.0, 2.0, 1.0, 3.0, 2.0, 1.0])

for f in (graph.segment_sum, graph.segment_mean, graph.segment_softmax):
    case(f, normal(6), IDS, 4)
    case(f, normal(6, 2), IDS, 4, order=3, note="third order")
    case(f, normal(6, 2, 3)[:, ::-1].swapaxes(1, 2), IDS, 5, note="strided")
    case(f, normal(0, 2), np.zeros(0, int), 3)
    case(f, normal(1, 2), np.zeros(1, int), 1)
for f in (graph.global_add_pool, graph.global_mean_pool, graph.global_max_pool):
    case(f, apart(6, 2), IDS, 5)
    case(f, apart(3, 2), None, note="one graph")
for f in (graph.segment_max, graph.segment_min, graph.segment_prod):
    case(f, apart(6), IDS, 4)
    case(f, apart(6, 2), IDS, 4)
    case(f, apart(6, 2, 3)[:, ::-1].swapaxes(1, 2), IDS, 5, note="strided")
    case(f, apart(0, 2), np.zeros(0, int), 3)
case(graph.segment_prod, np.array([0.0, 2.0, 0.0, 0.0, 3.0, 4.0]), IDS, 4, note="zeros")
case(graph.segment_softmax, normal(6, 2, 3), IDS, 5, order=1, impl="kernel", note="kernel")
for f in (graph.segment_max, graph.segment_min, graph.segment_prod):
    case(f, apart(6, 2, 3), IDS, 5, order=1, impl="kernel", note="kernel")

GRAPH = graph.Graph([0, 1, 2, 2, 3, 0], [1, 0, 0, 1, 3, 1], 5)  # a loop, a double edge, one alone
X = normal(5, 3)


def products(aggregate):
    return lambda x: graph.propagate(x, GRAPH, lambda x_j, x_i: x_i * x_j, aggregate)


for aggregate in ("sum", "mean", "max", "min", "prod"):
    case(graph.propagate, X, note=aggregate, f=products(aggregate))
layer(graph.GCNConv, X, GRAPH, make=graph.GCNConv(3, 2, rng=0))
layer(graph.GCNConv, X, GRAPH, positive(6), make=graph.GCNConv(3, 2, add_self_loops=False, rng=0))
layer(graph.GATConv, X, GRAPH, make=graph.GATConv(3, 2, heads=2, rng=0))
layer(graph.GATConv, X, GRAPH, make=graph.GATConv(3, 2, 2, concat=False, bias=False, rng=0))


def block(**modules):
    return graph.GraphNetBlock(**{k: nn.Linear(n, 2, rng=0) for k, n in modules.items()})


layer(
    graph.GraphNetBlock,
    X,
    GRAPH,
    normal(6, 2),
    normal(1, 4),
    make=block(edge_model=12, node_model=9, global_model=8),
)
layer(graph.GraphNetBlock, X, GRAPH, make=block(node_model=3))

# choices and containers: nothing in them has a gradient
NO_GRADIENT = {
    graph.Graph,
    graph.Matching,
    graph.Terms,
    graph.batch,
    graph.condense,
    graph.from_adjacency,
    graph.from_networkx,
    graph.fully_connected,
    graph.knn,
    graph.knn_graph,
    graph.match,
    graph.knn_edges,
    graph.radius_graph,
}
