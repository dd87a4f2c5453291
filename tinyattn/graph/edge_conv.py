"""Layers on point clouds: EdgeConv on a given graph, and layers that choose the neighbours.

Here x_i is the receiving point, and x_j are its neighbours. □ is the maximum, mean or sum, and ‖
concatenates:

    EdgeConv, DynamicEdgeConv   y_i = □_j  nn(x_i ‖ x_j - x_i)
    GravNetConv                 y_i = W₁ x_i + W₂ (mean_j m_ij ‖ max_j m_ij)
                                m_ij = exp(-10 d²_ij) h_j,   h_j a linear map of x_j

If nn starts with a linear layer with the weights [A B], its product splits:
A x_i + B (x_j - x_i) = (A - B) x_i + B x_j. The two products are computed once for each of the N
points, so only a sum remains for each of the N·K edges. If □ is the maximum, increasing activations
at the end of nn can be applied after the maximum instead of before it. If nn contains nothing but
the linear layer and such activations, (A - B) x_i is added after the maximum too, and no tensor of
edges is needed at all (slide K44).

Parameters have the same names and shapes as in PyTorch Geometric.
"""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator
from tinyattn.graph.graph import Graph
from tinyattn.graph.knn import group_by_k, knn
from tinyattn.graph.message import nodes, propagate
from tinyattn.graph.segment import SEGMENT
from tinyattn.graph.validation import (
    check_callable,
    check_choice,
    check_matrix,
    check_points,
    check_table,
    rows_for_each,
)
from tinyattn.nn import MLP, LeakyReLU, Linear, Module, ReLU, Sequential, Sigmoid, Tanh
from tinyattn.nn.overrides import describe_override
from tinyattn.nn.validation import check_sizes
from tinyattn.ops.elementwise import exp
from tinyattn.ops.neighbours import mean_max, neighbour_max, pair_sums, squared_distances

REDUCE = {"max": np.max, "mean": np.mean, "sum": np.sum}
# increasing activations, whose maximum is the activation of the maximum
MONOTONE = (ReLU, LeakyReLU, Tanh, Sigmoid)
PAIRS = "from [E, 2F] to [E, F']"  # the shapes that nn must accept and return


def _first_linear(nn):
    """Return the linear layer with which nn starts and the layers after it, or (None, None).

    Only layers whose `forward` has not been overridden are split, and all others are called.
    """
    if _is_unchanged(nn, MLP):
        nn = nn.layers
    parts = list(nn) if _is_unchanged(nn, Sequential) else [nn]
    return (parts[0], parts[1:]) if parts and _is_unchanged(parts[0], Linear) else (None, None)


def _is_unchanged(module, *classes):
    """Return whether a module is an unchanged instance of one of these classes."""
    return type(module) in classes and describe_override(module) is None


def _split_product(name, linear, x):
    """Return p_i = (A - B) x_i + b and q_j = B x_j, whose sum is [A B] (x_i ‖ x_j - x_i) + b."""
    F = x.shape[1]
    if linear.in_features != 2 * F:
        raise ValueError(
            f"{name}: nn accepts {linear.in_features} features, but its input has 2 · {F} = "
            f"{2 * F} features (the point and the difference to its neighbour). Begin nn with "
            f"nn.Linear({2 * F}, ...)"
        )
    A, B = linear.weight[:, :F], linear.weight[:, F:]
    p = x @ (A - B).T
    return (p if linear.bias is None else p + linear.bias), x @ B.T


def _monotone_tail(parts, aggr):
    """Divide the layers into those for each message and those that can follow the maximum."""
    n = len(parts)
    while aggr == "max" and n and _is_unchanged(parts[n - 1], *MONOTONE):
        n -= 1
    return parts[:n], parts[n:]


def _apply(parts, x):
    for part in parts:
        x = part(x)
    return x


def _table(graph):
    """Return the senders to each node [N, K], or None if the edges do not form such a table."""
    N, E = graph.num_nodes, graph.num_edges
    if E == 0 or E % N or np.any(graph.dst != np.repeat(np.arange(N), E // N)):
        return None
    return np.require(graph.src.reshape(N, E // N), np.int64, ["C", "W"])


class EdgeConv(Module):
    """An edge convolution, y_i = □_{j∈N(i)} nn(x_i ‖ x_j - x_i), where □ is max, mean or sum.

    N(i) are the nodes with an edge to i, and ‖ concatenates. Call the layer with (x, graph). For a
    node without neighbours, y_i is 0.

    Args:
        nn     module or function from [E, 2F] to [E, F'], with a row for each edge
        aggr   □, which is "max", "mean" or "sum"

    Raises:
        ValueError: aggr is unknown
        TypeError: nn is not a module or function

    Source: Wang et al. 2018 (DGCNN) and slide K44. The slide has x_i - x_j, which only changes the
    sign of some weights.
    """

    def __init__(self, nn, aggr="max"):
        check_callable("EdgeConv", "nn", nn, PAIRS)
        check_choice("EdgeConv", "aggr", aggr, REDUCE)
        self.nn, self.aggr = nn, aggr

    def forward(self, x, graph):
        """Apply the layer. Shape: x [N, F] → [N, F'].

        Args:
            x       features of the nodes
            graph   the `Graph` with these nodes

        Raises:
            ValueError: x is not a matrix, the graph has a different number of nodes, nn accepts a
                different number of features, or nn does not return a row for each edge
            TypeError: `graph` is not a Graph
        """
        x = nodes("EdgeConv", check_matrix("EdgeConv", x), graph)
        return _edge_conv_of_graph("EdgeConv", self.nn, x, graph, self.aggr)

    def extra_repr(self):
        return f"aggr={self.aggr!r}"


def _messages(name, nn, pairs):
    """Return nn(pairs), after a check that it has a row for each of the pairs [E, 2F]."""
    messages = nn(pairs)
    got = f"shape {messages.shape}" if hasattr(messages, "shape") else type(messages).__name__
    if not hasattr(messages, "shape") or messages.ndim != 2 or len(messages) != len(pairs):
        raise ValueError(
            f"{name}: nn must return [{len(pairs)}, F'], a row for each pair of points, got {got}"
        )
    return messages


def _edge_conv_of_graph(name, nn, x, graph, aggr):
    """Return y_i = □_{j∈N(i)} nn(x_i ‖ x_j - x_i) for the edges of a graph."""
    linear, rest = _first_linear(nn)
    if linear is None:

        def message(x_i, x_j):
            return _messages(name, nn, np.concatenate([x_i, x_j - x_i], axis=-1))

        return propagate(x, graph, message, aggr)
    table = _table(graph)
    if table is not None:
        return _edge_conv(name, nn, x, table, aggr)
    p, q = _split_product(name, linear, x)
    src, dst, N = graph.src, graph.dst, graph.num_nodes
    rest, after = _monotone_tail(rest, aggr)
    if not rest and aggr == "max":
        y = p + SEGMENT["max"](q[src], dst, N)
    else:
        y = SEGMENT[aggr](_apply(rest, p[dst] + q[src]), dst, N)
    return np.where(graph.in_degree[:, None] > 0, _apply(after, y), 0)


class DynamicEdgeConv(Module):
    """An edge convolution over the k nearest neighbours in the space of the features x.

        y_i = □_j nn(x_i ‖ x_j - x_i)

    Here j runs over the k nearest points, including i itself, and ‖ concatenates. The choice of
    neighbours has no gradient. Call the layer with (x, batch=None, places=None).

    Args:
        nn       module or function from [E, 2F] to [E, F'], with a row for each pair (i, j)
        k        number of neighbours, including the point itself. A cloud with fewer than k points
                 uses all of them
        aggr     □, which is "max", "mean" or "sum"
        strict   True: a cloud with fewer than k points raises ValueError

    Raises:
        ValueError: k is not a whole number >= 1, or aggr is unknown
        TypeError: nn is not a module or function

    Source: Wang et al. 2018 and slide K44.
    """

    def __init__(self, nn, k, aggr="max", strict=False):
        check_sizes(self, k=k)
        check_callable("DynamicEdgeConv", "nn", nn, PAIRS)
        check_choice("DynamicEdgeConv", "aggr", aggr, REDUCE)
        self.nn, self.k, self.aggr, self.strict = nn, k, aggr, strict

    def forward(self, x, batch=None, places=None):
        """Apply the layer. Shape: x [N, F] → [N, F'].

        Args:
            x        features of the points
            batch    index of each point's cloud [N], whole numbers, or None for a single cloud
            places   positions of the points [N, S] that determine the nearest neighbours, or None
                     for x

        Raises:
            ValueError: x or places is not a matrix with a row for each point, there are no points,
                a number is not finite, or batch is not N whole numbers
            ValueError: nn accepts a different number of features or does not return a row for each
                pair, or a cloud has fewer than k points and strict is True
        """
        x = check_points("DynamicEdgeConv", x)
        if places is not None:
            places = check_points("DynamicEdgeConv", places, what="places")
        places = to_array(x if places is None else places)
        if len(places) != len(x):
            raise ValueError(
                f"DynamicEdgeConv: places must have {rows_for_each(len(x), 'point of x')}, got "
                f"shape {places.shape}"
            )
        groups = group_by_k("DynamicEdgeConv", len(x), self.k, batch, self.strict)
        if len(groups) == 1:
            index, _ = knn(places, groups[0][1], batch)
            return _edge_conv("DynamicEdgeConv", self.nn, x, index, self.aggr)
        batch, pairs = np.asarray(to_array(batch)), []
        # merge them into one list of edges, so that nn receives all messages in one call
        for rows, k in groups:
            index, _ = knn(places[rows], k, batch[rows])
            pairs.append((rows[index.ravel()], np.repeat(rows, k)))
        src, dst = (np.concatenate(part) for part in zip(*pairs, strict=True))
        order = np.argsort(dst, kind="stable")
        graph = Graph(src[order], dst[order], len(x))
        return _edge_conv_of_graph("DynamicEdgeConv", self.nn, x, graph, self.aggr)

    def extra_repr(self):
        return f"k={self.k}, aggr={self.aggr!r}"


def edge_conv(nn, x, index, aggr="max"):
    """Return an edge convolution over a table of neighbours, y_i = □_k nn(x_i ‖ x_j - x_i).

    Here j = index_ik, and ‖ concatenates.

    Args:
        nn      module or function from [N·K, 2F] to [N·K, F'], with a row for each pair (i, j)
        x       features of the points [N, F]
        index   rows of x that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        aggr    □, which is "max", "mean" or "sum"

    Returns:
        y [N, F']

    Raises:
        ValueError: x is not a matrix, index does not have a row of whole numbers from 0 to N - 1
            for each point, or aggr is unknown
        ValueError: nn accepts a different number of features, or does not return a row for each
            pair
        TypeError: nn is not a module or function
    """
    check_callable("edge_conv", "nn", nn, "from [N·K, 2F] to [N·K, F']")
    check_choice("edge_conv", "aggr", aggr, REDUCE)
    x = check_matrix("edge_conv", x)
    index = check_table("edge_conv", index, x.shape[0])
    if len(index) != x.shape[0]:
        raise ValueError(
            f"edge_conv: index must have {rows_for_each(x.shape[0], 'point')}, got shape "
            f"{index.shape}"
        )
    return _edge_conv("edge_conv", nn, x, index, aggr)


def _edge_conv(name, nn, x, index, aggr):
    """Return `edge_conv` for an index that has been checked."""
    N, K = index.shape
    linear, rest = _first_linear(nn)
    if linear is None:
        centre = np.broadcast_to(x[:, None], (N, K, x.shape[1]))
        pairs = np.concatenate([centre, x[index] - centre], axis=-1)  # [N, K, 2F]
        messages = _messages(name, nn, pairs.reshape(N * K, -1))
        return REDUCE[aggr](messages.reshape(N, K, messages.shape[-1]), axis=1)
    p, q = _split_product(name, linear, x)
    rest, after = _monotone_tail(rest, aggr)
    if not rest:
        return _apply(after, _of_sums(p, q, index, aggr))
    messages = _apply(rest, pair_sums(p, q, index).reshape(N * K, -1))
    return _apply(after, REDUCE[aggr](messages.reshape(N, K, messages.shape[-1]), axis=1))


def _of_sums(p, q, index, aggr):
    """Return □_k (p_i + q_j) with j = index_ik.

    p_i does not depend on k, so it is added after the mean or maximum.
    """
    if aggr == "max":
        return p + neighbour_max(q, index)
    mean = mean_max(np.ones(index.shape, q.dtype), q, index)[:, : q.shape[1]]
    return p + mean if aggr == "mean" else index.shape[1] * (p + mean)


def _check_sharpness(sharpness):
    """Check that c of exp(-c d²) is not negative, which would give far points the most weight."""
    c = np.asarray(to_array(sharpness))
    if c.size != 1 or c.dtype.kind not in "iuf" or not 0 <= c.item() < np.inf:
        raise ValueError(
            "GravNetConv: sharpness, the c of exp(-c d²), must be finite and >= 0, got "
            f"{sharpness!r}. With 0, all neighbours have the same weight"
        )


class GravNetConv(Module):
    """A GravNet layer, which learns the space in which it searches for the nearest neighbours.

        s = W_s x + b_s,   h = W_h x + b_h,   m_ij = exp(-c d²_ij) h_j
        y_i = W₁ x_i + W₂ (mean_j m_ij ‖ max_j m_ij) + b₂

    Here j runs over the k nearest points in the space s, including i itself, d_ij is their
    distance in this space, and ‖ concatenates. The gradient flows to s through the distances, but
    the choice of neighbours has no gradient. Call the layer with (x, batch=None).

    Args:
        in_channels            number of features of x
        out_channels           number of features of y
        space_dimensions       number of dimensions of s
        propagate_dimensions   number of features of h
        k                      number of neighbours, including the point itself. A cloud with fewer
                               than k points uses all of them
        sharpness              c >= 0. The authors' code and PyTorch Geometric use 10. The slide has
                               1/10, which is equivalent if s is multiplied by 10
        strict                 True: a cloud with fewer than k points raises ValueError
        rng                    seed or numpy.random.Generator for the initial values, or None for
                               the default generator

    Raises:
        ValueError: a size or k is not a whole number >= 1, or sharpness is not a finite number >= 0

    Source: Qasim et al. 2019, arXiv:1902.07987, and slides K48-K50.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        space_dimensions,
        propagate_dimensions,
        k,
        sharpness=10.0,
        strict=False,
        rng=None,
    ):
        check_sizes(
            self,
            in_channels=in_channels,
            out_channels=out_channels,
            space_dimensions=space_dimensions,
            propagate_dimensions=propagate_dimensions,
            k=k,
        )
        _check_sharpness(sharpness)
        rng = generator(rng)
        self.in_channels, self.k, self.sharpness = in_channels, k, sharpness
        self.strict = strict
        self.lin_s = Linear(in_channels, space_dimensions, rng=rng)
        self.lin_h = Linear(in_channels, propagate_dimensions, rng=rng)
        self.lin_out1 = Linear(in_channels, out_channels, bias=False, rng=rng)
        self.lin_out2 = Linear(2 * propagate_dimensions, out_channels, rng=rng)

    def forward(self, x, batch=None):
        """Apply the layer. Shape: x [N, in_channels] → [N, out_channels].

        Args:
            x       features of the points
            batch   index of each point's cloud [N], whole numbers, or None for a single cloud

        Raises:
            ValueError: x is not [N, in_channels], there are no points, a number is not finite,
                batch is not N whole numbers, or a cloud has fewer than k points and strict is True
        """
        x = check_points("GravNetConv", x, self.in_channels)
        s, h = self.lin_s(x), self.lin_h(x)
        groups = group_by_k("GravNetConv", x.shape[0], self.k, batch, self.strict)
        if len(groups) == 1:
            heard = self._gather(s, h, groups[0][1], batch)
        else:
            batch = np.asarray(to_array(batch))
            parts = [self._gather(s[rows], h[rows], k, batch[rows]) for rows, k in groups]
            rows = np.concatenate([rows for rows, _ in groups])
            heard = np.concatenate(parts)[np.argsort(rows)]
        return self.lin_out1(x) + self.lin_out2(heard)

    def _gather(self, s, h, k, batch):
        """Return the mean and the maximum of exp(-c d²_ij) h_j over k neighbours j, [N, 2F]."""
        index, _ = knn(s.data, k, batch)
        weights = exp(-self.sharpness * squared_distances(s, index))  # [N, K]
        return mean_max(weights, h, index)

    def extra_repr(self):
        return f"k={self.k}, sharpness={self.sharpness}"
