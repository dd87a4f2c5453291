"""Message passing, the formula of all layers on graphs.

    y_i = □_{j ∈ N(i)} φ(x_i, x_j)

N(i) is the set of nodes with an edge to i. CNNs, attention, GCN and GAT have this form and differ
in φ.
"""

from tinyattn.engine.convert import as_tensor
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.graph.graph import Graph
from tinyattn.graph.segment import SEGMENT
from tinyattn.graph.validation import check_choice, rows_for_each


@with_torch_hints
def propagate(x, graph, message, aggregate="sum"):
    """Pass messages along the edges, y_i = □_{j ∈ N(i)} φ(x_i, x_j).

    N(i) are the nodes with an edge to i. A node without incoming edges gets 0 (1 for "prod"). The
    messages have the order of the edges, so φ can use features of the edges, as in lambda x_i, x_j:
    graph.edge_attr[:, None] * x_j for edge_attr [E] and x [N, F].

    Args:
        x           features of the nodes [N, ...]
        graph       the `Graph` with these nodes
        message     φ, a function that receives the features x_i of the receivers and x_j of the
                    senders of all edges [E, ...] and returns the messages [E, ...]
        aggregate   □, which is "sum", "mean", "max", "min" or "prod"

    Returns:
        y [N, ...]

    Raises:
        ValueError: `aggregate` is unknown, x does not have one row for each node, or φ does not
            return one message for each edge
        TypeError: x is not an array, `graph` is not a Graph, φ is not a function, or φ does not
            return an array of numbers

    Source: Gilmer et al. 2017 and slides K36, K37.
    """
    check_choice("propagate", "aggregate", aggregate, SEGMENT)
    x = nodes("propagate", x, graph)
    if not callable(message):
        raise TypeError(
            "propagate: message must be a function of (x_i, x_j), the receivers and the senders, "
            f"got {type(message).__name__}"
        )
    messages = message(x[graph.dst], x[graph.src])  # [E, ...]
    if not hasattr(messages, "shape"):
        raise TypeError(
            "propagate: the message function must return an array or Tensor, got "
            f"{type(messages).__name__}"
        )
    if messages.dtype == bool:
        raise TypeError(
            "propagate: the message function must return numbers, got bool. Convert them with "
            ".astype(int)"
        )
    if messages.shape[:1] != (graph.num_edges,):
        raise ValueError(
            "propagate: the message function must return "
            f"{rows_for_each(graph.num_edges, 'edge')}, got shape {messages.shape}"
        )
    return SEGMENT[aggregate](messages, graph.dst, graph.num_nodes)


def nodes(name, x, graph, features=None):
    """Return x as a Tensor, after a check that it has a row for each node of a Graph.

    Args:
        name       function or layer that is called, for the error message
        x          features of the nodes [N, ...]
        graph      the `Graph`
        features   number of features of each node, for an x [N, features], or None for any x

    Raises:
        TypeError: x is not an array, or `graph` is not a Graph
        ValueError: x has a different shape
    """
    if not isinstance(graph, Graph):
        raise TypeError(
            f"{name}: graph must be a Graph, got {type(graph).__name__}. Make one from PyTorch "
            "Geometric's edge_index = (src, dst) with Graph(src, dst, num_nodes), or from a matrix "
            "with from_adjacency"
        )
    if not hasattr(x, "shape"):
        hint = ". Does the graph have features?" if x is None else ". Write np.array(x)"
        raise TypeError(f"{name}: x must be an array or Tensor, got {type(x).__name__}{hint}")
    x, N = as_tensor(x), graph.num_nodes
    if features is not None and x.shape != (N, features):
        raise ValueError(
            f"{name}: x must be [{N}, {features}] (nodes, features), got shape {x.shape}"
        )
    if x.shape[:1] != (N,):
        raise ValueError(f"{name}: x must have {rows_for_each(N, 'node')}, got shape {x.shape}")
    return x
