"""Graphs and point clouds: edges, message passing, layers and object condensation."""

from tinyattn.engine import torch_hints
from tinyattn.graph.condensation import (
    Matching,
    Terms,
    condensation_loss,
    condensation_terms,
    condense,
    match,
)
from tinyattn.graph.convolutions import GATConv, GCNConv, GraphNetBlock
from tinyattn.graph.edge_conv import DynamicEdgeConv, EdgeConv, GravNetConv, edge_conv
from tinyattn.graph.graph import Graph, batch, from_adjacency, from_networkx, fully_connected
from tinyattn.graph.knn import knn, knn_edges, knn_graph, radius_graph
from tinyattn.graph.message import propagate
from tinyattn.graph.neighbours import mean_max, squared_distances
from tinyattn.graph.segment import (
    global_add_pool,
    global_max_pool,
    global_mean_pool,
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_softmax,
    segment_sum,
)

__all__ = [
    "DynamicEdgeConv",
    "EdgeConv",
    "GATConv",
    "GCNConv",
    "Graph",
    "GraphNetBlock",
    "GravNetConv",
    "Matching",
    "Terms",
    "batch",
    "condensation_loss",
    "condensation_terms",
    "condense",
    "edge_conv",
    "from_adjacency",
    "from_networkx",
    "fully_connected",
    "global_add_pool",
    "global_max_pool",
    "global_mean_pool",
    "knn",
    "knn_graph",
    "match",
    "mean_max",
    "knn_edges",
    "propagate",
    "radius_graph",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_softmax",
    "segment_sum",
    "squared_distances",
]


torch_hints.hint_functions(globals(), __all__)


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
