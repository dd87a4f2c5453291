"""Layers on a given graph: GCN, GAT, and a block that updates edges, nodes and the whole graph.

    GCNConv   y_i = Σ_j  Θ x_j / √(d_i d_j) + b          fixed weights, from the degrees d
    GATConv   y_i = Σ_j  a_ij Θ x_j + b                  learned weights, Σ_j a_ij = 1

In both layers, a node also receives a message from itself (add_self_loops). Parameters have the
same names and shapes as in PyTorch Geometric.
"""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.graph.message import nodes, propagate
from tinyattn.graph.segment import SEGMENT, segment_softmax, segment_sum
from tinyattn.graph.validation import check_callable, check_choice
from tinyattn.nn import Linear, Module, Parameter
from tinyattn.nn.init import xavier_parameter
from tinyattn.nn.validation import check_sizes


def _zeros(n):
    return Parameter(np.zeros(n, np.float32))


class GCNConv(Module):
    """A graph convolution, y_i = Σ_{j ∈ N(i)∪{i}} w_ij / √(d_i d_j) Θ x_j + b with d_i = Σ_j w_ij.

    N(i) are the nodes with an edge to i, and w_ij is the weight of the edge from j to i, which is 1
    for a new self-loop. The parameters are Θ = lin.weight [out_channels, in_channels] and b = bias.
    Call the layer with (x, graph, edge_weight=None). A node without incoming edges receives a
    message only from itself. Without self-loops, it has d = 0 and receives nothing, so y = b.

    Args:
        in_channels      number of features of x
        out_channels     number of features of y
        add_self_loops   True: every node gets exactly one edge to itself, with the weight of its
                         existing self-loop if it has one. False: the edges are used as they are
        bias             False: no b is added
        rng              seed or numpy.random.Generator for the initial values, or None for the
                         default generator

    Raises:
        ValueError: a size is not a whole number >= 1

    Source: Kipf and Welling 2017, and slide N05.
    """

    def __init__(self, in_channels, out_channels, add_self_loops=True, bias=True, rng=None):
        check_sizes(self, in_channels=in_channels, out_channels=out_channels)
        rng = generator(rng)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.add_self_loops = add_self_loops
        self.lin = Linear(in_channels, out_channels, bias=False, rng=rng)
        self.lin.weight = xavier_parameter((out_channels, in_channels), rng)
        self.bias = _zeros(out_channels) if bias else None

    def forward(self, x, graph, edge_weight=None):
        """Apply the layer. Shape: x [N, in_channels] → [N, out_channels].

        Args:
            x             features of the nodes
            graph         the `Graph` with these nodes
            edge_weight   w, an array with a number for each edge [E], or None for 1

        Raises:
            ValueError: x is not [N, in_channels], edge_weight is not an array [E] of finite
                numbers, or the weights of the edges to a node have a negative sum
            TypeError: x is not an array, or `graph` is not a Graph
        """
        x = nodes("GCNConv", x, graph, self.in_channels)
        graph, w = self._edges(graph, edge_weight, x.dtype)
        d = segment_sum(w, graph.dst, graph.num_nodes)  # [N]
        if np.any(to_array(d) < 0):
            worst = int(np.argmin(to_array(d)))
            loop = ""
            if self.add_self_loops:
                own = to_array(w)[worst - graph.num_nodes]  # the self-loops are the last edges
                loop = f", with {own:.3g} for its self-loop,"
            raise ValueError(
                f"GCNConv: the weights (edge_weight) of the edges to node {worst}{loop} add up to "
                f"{to_array(d)[worst]:.3g}, which has no square root. Use weights >= 0"
            )
        empty = np.equal(d, 0)
        r = np.where(empty, 0, 1 / np.sqrt(np.where(empty, 1, d)))
        norm = (r[graph.dst] * w * r[graph.src])[:, None]  # [E, 1]
        y = propagate(self.lin(x), graph, lambda x_i, x_j: norm * x_j)
        return y if self.bias is None else y + self.bias

    def _edges(self, graph, w, dtype):
        """Return the graph, with self-loops if the layer adds them, and the weights of its edges.

        The weight of a new self-loop is 1.
        """
        if w is None:
            w = np.ones(graph.num_edges, dtype)
        elif (
            np.shape(w) != (graph.num_edges,)
            or not hasattr(w, "dtype")
            or w.dtype.kind not in "fiu"
        ):
            got = type(w).__name__
            if hasattr(w, "dtype"):
                got = f"{w.dtype} of shape {w.shape}"
                if w.dtype.kind == "b":
                    got += ". Convert it with .astype(np.float32)"
            elif isinstance(w, list | tuple):
                got += ". Write np.array(edge_weight)"
            raise ValueError(
                f"GCNConv: edge_weight must be an array [{graph.num_edges}] with a number for each "
                f"edge, got {got}"
            )
        elif not np.isfinite(to_array(w)).all():
            bad = np.flatnonzero(~np.isfinite(to_array(w)))
            raise ValueError(
                f"GCNConv: edge_weight is NaN or infinite for {len(bad)} of {len(w)} edges, first "
                f"for edge {bad[0]}. Leave out these edges, or look for NaN where the weights are "
                "computed"
            )
        if not self.add_self_loops:
            return graph, w
        (old,) = np.nonzero(graph.src == graph.dst)
        place = np.full(graph.num_nodes, len(w))
        place[graph.src[old]] = old
        loops = np.concatenate([w, np.ones(1, w.dtype)])[place]  # [N]
        w = np.concatenate([w[graph.src != graph.dst], loops])
        return _bare(graph).with_self_loops(), w

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}"


class GATConv(Module):
    """Graph attention, y_i = Σ_{j ∈ N(i)∪{i}} a_ij Θ x_j + b, with learned weights a.

        a_ij = softmax_j LeakyReLU(α_dst·Θx_i + α_src·Θx_j)

    N(i) are the nodes with an edge to i. Each of the H heads has a separate part of Θ = lin.weight
    [H · out_channels, in_channels] and separate vectors α_dst and α_src, which are att_dst and
    att_src [1, H, out_channels]. The vector α of the paper is [α_dst ‖ α_src] here. Features of the
    edges are not used. Call the layer with (x, graph). Without self-loops, a node without incoming
    edges gets y = b.

    Args:
        in_channels      number of features of x
        out_channels     number of features of y in each head
        heads            number H of heads
        concat           True: the heads are concatenated instead of averaged
        negative_slope   slope of the LeakyReLU for negative numbers
        dropout          probability with which an attention weight becomes 0 in training
        add_self_loops   True: every node gets exactly one edge to itself. False: the edges are used
                         as they are
        bias             False: no b is added
        rng              seed or numpy.random.Generator for the initial values and the dropout, or
                         None for the default generator

    Raises:
        ValueError: a size or heads is not a whole number >= 1, dropout is not between 0 and 1, or
            negative_slope is NaN
        TypeError: dropout or negative_slope is not a number

    Source: Veličković et al. 2018 and slides K41, N05.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        heads=1,
        concat=True,
        negative_slope=0.2,
        dropout=0.0,
        add_self_loops=True,
        bias=True,
        rng=None,
    ):
        check_sizes(self, in_channels=in_channels, out_channels=out_channels, heads=heads)
        check_range("GATConv", 0, 1, dropout=dropout)
        check_range("GATConv", negative_slope=negative_slope)
        # generator for dropout, or None for the default generator
        self.rng = None if rng is None else generator(rng)
        rng = generator(rng if self.rng is None else self.rng)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.concat, self.negative_slope, self.dropout = concat, negative_slope, dropout
        self.add_self_loops = add_self_loops
        self.lin = Linear(in_channels, heads * out_channels, bias=False, rng=rng)
        self.lin.weight = xavier_parameter((heads * out_channels, in_channels), rng)
        self.att_src = xavier_parameter((1, heads, out_channels), rng)
        self.att_dst = xavier_parameter((1, heads, out_channels), rng)
        self.bias = _zeros(heads * out_channels if concat else out_channels) if bias else None

    def forward(self, x, graph):
        """Apply the layer. Shape: x [N, in_channels] → [N, heads · out_channels].

        If concat is False, the result is [N, out_channels].

        Args:
            x       features of the nodes
            graph   the `Graph` with these nodes

        Raises:
            ValueError: x is not [N, in_channels]
            TypeError: x is not an array, or `graph` is not a Graph
        """
        x, graph, a = self._attend(x, graph)
        a = F.dropout(a, self.dropout, self.training, self.rng)
        y = propagate(x, graph, lambda x_i, x_j: a[:, :, None] * x_j)  # [N, H, C]
        y = y.reshape(len(y), self.heads * self.out_channels) if self.concat else np.mean(y, axis=1)
        return y if self.bias is None else y + self.bias

    def attention(self, x, graph):
        """Return the graph along whose edges the layer attends, and the weights of these edges.

        Args:
            x       features of the nodes [N, in_channels]
            graph   the `Graph` with these nodes

        Returns:
            (graph, a [E, H]), where the graph includes the self-loops (if add_self_loops is True),
            and a contains the weight of each of its E edges for each head, without dropout

        Raises:
            ValueError: x is not [N, in_channels]
            TypeError: x is not an array, or `graph` is not a Graph
        """
        return self._attend(x, graph)[1:]

    def _attend(self, x, graph):
        x = nodes("GATConv", x, graph, self.in_channels)
        graph = _bare(graph).with_self_loops() if self.add_self_loops else graph
        x = self.lin(x).reshape(graph.num_nodes, self.heads, self.out_channels)  # [N, H, C]
        s_src = np.sum(x * self.att_src, axis=-1)  # [N, H]
        s_dst = np.sum(x * self.att_dst, axis=-1)
        s = F.leaky_relu(s_dst[graph.dst] + s_src[graph.src], self.negative_slope)  # [E, H]
        return x, graph, segment_softmax(s, graph.dst, graph.num_nodes)

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


class GraphNetBlock(Module):
    """A block that updates every edge, then every node, then the whole graph.

        e'_k = φᵉ(e_k, x_dst, x_src, u)        from its two nodes and the whole graph
        x'_i = φᵛ(Σ_{k → i} e'_k, x_i, u)      from the incoming edges
        u'   = φᵘ(Σ_k e'_k, Σ_i x'_i, u)       from all edges and nodes

    e_k are the features of edge k, which runs from node src to node dst. Call the block with
    (x, graph, e=None, u=None), where x is [N, F], e [E, F'] and u [G, F'']. It returns
    (x', e', u').

    Args:
        edge_model     φᵉ, a module or function of a matrix, the concatenation of the arguments of
                       φᵉ above, in this order and without those that are None. None: e does not
                       change
        node_model     φᵛ, in the same form. None: x does not change
        global_model   φᵘ, in the same form. None: u does not change
        aggregate      what Σ means in the formulas: "sum", "mean", "max", "min" or "prod"

    Raises:
        ValueError: `aggregate` is unknown
        TypeError: a model is not a module or function

    Source: Battaglia et al. 2018 and slide K35.
    """

    def __init__(self, edge_model=None, node_model=None, global_model=None, aggregate="sum"):
        check_choice("GraphNetBlock", "aggregate", aggregate, SEGMENT)
        models = {"edge": edge_model, "node": node_model, "global": global_model}
        for kind, model in models.items():
            if model is not None:
                check_callable("GraphNetBlock", f"{kind}_model", model, "from [M, F] to [M, F']")
        self.edge_model, self.node_model, self.global_model = edge_model, node_model, global_model
        self.aggregate = aggregate

    def forward(self, x, graph, e=None, u=None):
        """Apply the block, and return (x', e', u').

        Args:
            x       features of the nodes [N, F]
            graph   the `Graph` with these nodes
            e       features of the edges [E, F'], or None
            u       features of the graphs [G, F''], or None

        Returns:
            (x', e', u'), with a row for each node, edge and graph. Without a model, the given
            features (or None) are returned unchanged

        Raises:
            ValueError: x, e or u is not a matrix with a row for each node, edge or graph, a model
                accepts a different number of features, or a model does not return a row for each
                row of its input
            TypeError: x is not an array, or `graph` is not a Graph
        """
        x = nodes("GraphNetBlock", x, graph)
        e, u = (None if f is None else as_tensor(f) for f in (e, u))
        N, G = graph.num_nodes, graph.num_graphs
        of_node = np.zeros(N, np.intp) if graph.batch is None else graph.batch
        rows = ("x", x, N, "node"), ("e", e, graph.num_edges, "edge"), ("u", u, G, "graph")
        for name, features, n, of in rows:
            if features is not None and (features.ndim != 2 or len(features) != n):
                raise ValueError(
                    f"GraphNetBlock: {name} must be [{n}, F], a row for each {of}, got shape "
                    f"{features.shape}"
                )
        together = SEGMENT[self.aggregate]
        of_edge = of_node[graph.dst]
        if self.edge_model is not None:
            parts = [e, x[graph.dst], x[graph.src], None if u is None else u[of_edge]]
            e = _rows("edge_model", self.edge_model, parts)
        if self.node_model is not None:
            arriving = None if e is None else together(e, graph.dst, N)
            parts = [arriving, x, None if u is None else u[of_node]]
            x = _rows("node_model", self.node_model, parts)
        if self.global_model is not None:
            edges = None if e is None else together(e, of_edge, G)
            u = _rows("global_model", self.global_model, [edges, together(x, of_node, G), u])
        return x, e, u

    def extra_repr(self):
        return f"aggregate={self.aggregate!r}"


def _rows(name, model, parts):
    """Return the model's result for the concatenated parts, which must have the same rows."""
    inputs = np.concatenate([p for p in parts if p is not None], axis=-1)
    y, n = model(inputs), len(inputs)
    shape = getattr(y, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != n:
        got = type(y).__name__ if shape is None else f"shape {shape}"
        raise ValueError(
            f"GraphNetBlock: {name} must return [{n}, F'], a row for each row of its input, got "
            f"{got}"
        )
    return y


def _bare(graph):
    """Return a graph with the same nodes and edges, but without features."""
    return type(graph)(graph.src, graph.dst, graph.num_nodes, batch=graph.batch)
