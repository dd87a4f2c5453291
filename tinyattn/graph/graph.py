"""Graphs as two arrays of node indices, where edge e runs from src[e] to dst[e].

Messages run along the edges, sender → receiver. An undirected edge is two edges.
"""

from dataclasses import FrozenInstanceError, dataclass, replace
from functools import wraps

import numpy as np

from tinyattn.engine import other_names, torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import is_number
from tinyattn.engine.tracebacks import warn_caller
from tinyattn.graph.validation import check_indices, rows_for_each


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An immutable graph with N nodes, E edges and their features.

    Features may be arrays or Tensors.

    Args:
        src          sender of each edge [E], whole numbers
        dst          receiver of each edge [E], whole numbers
        num_nodes    number N of nodes, including nodes without any edge
        x            features of the nodes [N, ...], or None
        edge_attr    features of the edges [E, ...], or None
        u            features of each whole graph [G, ...], with G = 1 without batch, or None
        batch        index of each node's graph [N], from 0 to G-1, or None for a single graph
        num_graphs   number G of graphs, or None to count them: up to the last graph that has a
                     node, or the rows of u if there are more

    Raises:
        ValueError: src, dst or batch is not a list of indices of existing nodes or graphs, an edge
            connects two graphs of the batch, or x, edge_attr, u or batch has the wrong number of
            rows
        ValueError: num_nodes is not a whole number >= 0, num_graphs is not a whole number larger
            than all indices in batch, or batch is None and num_graphs is not 1
        TypeError: src, dst or batch does not consist of whole numbers, or one edge_index [2, E] is
            given instead of src and dst
    """

    src: np.ndarray
    dst: np.ndarray
    num_nodes: int
    x: object = None
    edge_attr: object = None
    u: object = None
    batch: np.ndarray | None = None
    num_graphs: int | None = None

    def __getattr__(self, name):
        """Raise AttributeError for the missing `name`, with what to write instead, if known."""
        raise torch_hints.no_such_attribute("a Graph", name, other_names.GRAPH_NAMES, self)

    def __getitem__(self, name):
        """Raise the error for g["x"]."""
        what = "Write g.x, g.src or g.dst"
        if isinstance(name, str):
            there = name in vars(self) or hasattr(type(self), name)
            hint = other_names.GRAPH_NAMES.get(name)
            what = f"Write g.{name}" if there or hint is None else hint[0].upper() + hint[1:]
        raise TypeError(f"a Graph is not a dictionary or a list. {what}")

    def __post_init__(self):
        N = self.num_nodes
        if not isinstance(N, int | np.integer) or isinstance(N, bool) or N < 0:
            raise ValueError(f"Graph: num_nodes must be a whole number >= 0, got {N!r}")
        src, dst = _node_ids("src", self.src), _node_ids("dst", self.dst)
        if src.shape != dst.shape:
            senders = f"{len(src)} sender{'' if len(src) == 1 else 's'}"
            receivers = f"{len(dst)} receiver{'' if len(dst) == 1 else 's'}"
            raise ValueError(
                f"Graph: src has {senders}, but dst has {receivers}. Each edge needs both"
            )
        for name, ids in (("src", src), ("dst", dst)):
            check_indices("Graph", name, "nodes", ids, N)
        for name, value in (("src", src), ("dst", dst), ("num_nodes", int(N))):
            object.__setattr__(self, name, value)  # all other code must not change the graph
        if self.batch is not None:
            object.__setattr__(self, "batch", self._checked_batch())
        for name in ("x", "edge_attr", "u"):
            if isinstance(getattr(self, name), list | tuple):
                object.__setattr__(self, name, _array("Graph", name, getattr(self, name)))
        object.__setattr__(self, "num_graphs", self._checked_num_graphs())
        rows = ("x", N, "node"), ("edge_attr", len(src), "edge"), ("u", self.num_graphs, "graph")
        for name, n, of in rows:
            value = getattr(self, name)
            if value is not None and not (np.ndim(value) and len(value) == n):
                shape = np.shape(to_array(value))
                raise ValueError(
                    f"Graph: {name} must have {rows_for_each(n, of)}, got shape {shape}"
                )

    def _checked_num_graphs(self):
        """Return the number of graphs, including graphs without nodes at the end."""
        least = 1 if self.batch is None else int(self.batch.max(initial=-1)) + 1
        G = self.num_graphs
        if G is None:
            rows = 0 if self.batch is None or not np.ndim(self.u) else len(self.u)
            return max(least, rows)
        whole = isinstance(G, int | np.integer) and not isinstance(G, bool)
        if not whole or G < least or (self.batch is None and G != 1):
            known = "be 1 without batch" if self.batch is None else f"be a whole number >= {least}"
            raise ValueError(f"Graph: num_graphs must {known}, got num_graphs={G!r}")
        return int(G)

    def _checked_batch(self):
        batch = _node_ids("batch", self.batch)
        if len(batch) != self.num_nodes:
            N = self.num_nodes
            raise ValueError(
                f"Graph: batch must have {N} element{'' if N == 1 else 's'}, one for each node, "
                f"got {len(batch)}"
            )
        check_not_negative("Graph", batch)
        crossing = np.flatnonzero(batch[self.src] != batch[self.dst])
        if crossing.size:
            e = crossing[0]
            raise ValueError(
                f"Graph: edge {e} runs from node {self.src[e]} of graph {batch[self.src[e]]} to "
                f"node {self.dst[e]} of graph {batch[self.dst[e]]}. No edge may connect two "
                "graphs of a batch"
            )
        return batch

    @property
    def num_edges(self):
        """Return the number E of edges."""
        return len(self.src)

    @property
    def in_degree(self):
        """Return the number of incoming edges of each node [N]."""
        return np.bincount(self.dst, minlength=self.num_nodes)

    def adjacency(self):
        """Return the adjacency matrix A [N, N], where A[receiver, sender] is the number of edges.

        A is a float32 array. The features of the edges are ignored, so `adjacency` is the inverse
        of `from_adjacency` only for matrices of 0 and 1.
        """
        A = np.zeros((self.num_nodes, self.num_nodes), np.float32)
        np.add.at(A, (self.dst, self.src), 1)
        return A

    def without_self_loops(self):
        """Return the same graph without the edges from a node to itself and their features."""
        keep = self.src != self.dst
        e = None if self.edge_attr is None else self.edge_attr[keep]
        return replace(self, src=self.src[keep], dst=self.dst[keep], edge_attr=e)

    def with_self_loops(self):
        """Return the graph with exactly one edge from every node to itself, after all other edges.

        Existing edges from a node to itself are replaced.

        Raises:
            ValueError: edges have features, which the new edges would not have
        """
        if self.edge_attr is not None:
            raise ValueError(
                "with_self_loops: the new edges would have no features. Remove the edge "
                "features first with dataclasses.replace(graph, edge_attr=None)"
            )
        plain_graph, nodes = self.without_self_loops(), np.arange(self.num_nodes)
        return replace(
            self,
            src=np.concatenate([plain_graph.src, nodes]),
            dst=np.concatenate([plain_graph.dst, nodes]),
        )

    def __repr__(self):
        counts = [(self.num_nodes, "node"), (self.num_edges, "edge")]
        if self.batch is not None:
            counts.append((self.num_graphs, "graph"))
        parts = [f"{n} {of}{'' if n == 1 else 's'}" for n, of in counts]
        for name in ("x", "edge_attr", "u"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} {list(np.shape(to_array(value)))}")
        return f"Graph({', '.join(parts)})"


def _refuse_a_change(self, name, value):
    other = f"Make another graph with dataclasses.replace(g, {name}=...)"
    if name not in self.__dataclass_fields__:
        other = f"Keep {name} in a variable of your own"
    raise FrozenInstanceError(f"Graph: {name} cannot be set, because a graph is frozen. {other}")


def _made_of_edge_index(init):
    """Return Graph.__init__ with PyTorch Geometric's edge_index explained."""
    init = torch_hints.with_torch_hints(init)

    @wraps(init)
    def made(self, *args, **options):
        first = args[0] if args else None
        if len(args) + len(options) < 3 and "dst" not in options and np.ndim(first) == 2:
            raise TypeError(
                f"Graph: expected src, dst, num_nodes, got one array of shape {np.shape(first)}. "
                f"Write Graph(*edge_index, num_nodes) for PyTorch Geometric's edge_index [2, E]"
            )
        return init(self, *args, **options)

    return made


Graph.__init__ = _made_of_edge_index(Graph.__init__)
Graph.__setattr__ = _refuse_a_change  # this error message is clearer than the dataclass's


def _array(function, name, rows):
    """Return a list of rows as an array. Rows of different lengths are an error."""
    try:
        return np.asarray(to_array(rows))
    except ValueError:
        raise ValueError(
            f"{function}: {name} must have rows of equal length, got a list of {len(rows)} rows of "
            "different lengths"
        ) from None


def _node_ids(name, ids):
    given, ids = ids, np.asarray(to_array(ids))
    what = "graph" if name == "batch" else "node"
    if ids.ndim != 1:
        got = f"shape {ids.shape}" if ids.ndim else type(given).__name__
        raise ValueError(f"Graph: {name} must be a list of {what} indices, got {got}")
    if ids.size and ids.dtype.kind not in "iu":
        advice = f"Pass {what} indices, such as [0, 1]"
        if ids.dtype.kind == "f" and (ids == np.floor(ids)).all():
            advice = f"Write np.asarray({name}, int)"
        raise TypeError(f"Graph: {name} must be integers, got {ids.dtype}. {advice}")
    return ids.astype(np.intp)  # make a copy, because the graph is frozen


def check_not_negative(function, batch):
    """Raise ValueError if `batch` contains a negative index. The graphs are numbered from 0."""
    if batch.size and batch.min() < 0:
        i = int(np.argmax(batch < 0))
        raise ValueError(
            f"{function}: the graphs of a batch are numbered from 0, but batch[{i}] is {batch[i]}"
        )


# ---------------------------------------------------------------- making graphs


def batch(graphs):
    """Join several graphs into one Graph, whose `batch` is the index of each node's graph.

    The features x, edge_attr and u are concatenated, so each of the three must be present in all
    graphs or in none.

    Args:
        graphs   list of G graphs, which get the indices 0, …, G - 1

    Returns:
        a `Graph` with the nodes and edges of all graphs, in order

    Raises:
        TypeError: graphs is a single Graph or not a list, or an entry is not a Graph
        ValueError: an entry is already a batch, lacks features that other entries have, or has rows
            of features of a different shape
    """
    if isinstance(graphs, Graph):
        raise TypeError("batch: expected a list of graphs, got one Graph. Write batch([graph])")
    if not hasattr(graphs, "__iter__"):
        raise TypeError(f"batch: expected a list of graphs, got {type(graphs).__name__}")
    graphs = list(graphs)
    for i, g in enumerate(graphs):
        if not isinstance(g, Graph):
            raise TypeError(f"batch: expected graphs, got {type(g).__name__} at position {i}")
        if g.batch is not None:
            raise ValueError(f"batch: graph {i} is already a batch. Pass single graphs")
    sizes = [g.num_nodes for g in graphs]
    offsets = np.cumsum([0, *sizes])
    nothing = [np.zeros(0, np.intp)]
    return Graph(
        np.concatenate([g.src + o for g, o in zip(graphs, offsets, strict=False)] or nothing),
        np.concatenate([g.dst + o for g, o in zip(graphs, offsets, strict=False)] or nothing),
        int(offsets[-1]),
        *(_together(name, [getattr(g, name) for g in graphs]) for name in ("x", "edge_attr", "u")),
        batch=np.repeat(np.arange(len(graphs)), sizes),
        num_graphs=len(graphs),
    )


def _together(name, features):
    missing = [f is None for f in features]
    if all(missing):
        return None
    if any(missing):
        raise ValueError(
            f"batch: graph {missing.index(True)} has no {name}, but others have one. Give {name} "
            "to all graphs or to none"
        )
    shapes = [np.shape(to_array(f))[1:] for f in features]
    other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is not None:
        raise ValueError(
            f"batch: {name} must have the same features in all graphs, got rows of shape "
            f"{shapes[0]} in graph 0 and {shapes[other]} in graph {other}"
        )
    return np.concatenate([f if isinstance(f, Tensor) else np.asarray(f) for f in features])


def fully_connected(num_nodes, loop=False):
    """Return a graph with an edge from every node to every other node.

    The edges are ordered by receiver: dst = 0 0 0 1 1 1 …

    Args:
        num_nodes   number of nodes
        loop        True: add an edge from every node to itself

    Returns:
        a `Graph` without features

    Raises:
        ValueError: num_nodes is not a whole number >= 0
    """
    if not is_number(num_nodes, whole=True) or num_nodes < 0:
        got = repr(num_nodes)
        if np.ndim(num_nodes):
            got = f"an array of shape {np.shape(num_nodes)}"
        raise ValueError(f"fully_connected: num_nodes must be a whole number >= 0, got {got}")
    dst, src = np.divmod(np.arange(num_nodes * num_nodes), max(num_nodes, 1))
    keep = slice(None) if loop else src != dst
    return Graph(src[keep], dst[keep], num_nodes)


def from_adjacency(A):
    """Return the graph with an edge sender → receiver where A[receiver, sender] is not 0.

    Args:
        A   matrix [N, N]. If any entry is neither 0 nor 1, all nonzero entries become `edge_attr`
            [E]. Otherwise, edge_attr is None

    Returns:
        a `Graph` with N nodes, whose edges are ordered by receiver and then by sender

    Raises:
        TypeError: A does not consist of real numbers or bool
        ValueError: A is not square, has rows of different lengths, or contains a NaN
    """
    given, A = A, _array("from_adjacency", "A", A)
    if A.dtype.kind not in "fiub":
        got = type(given).__name__ if A.ndim == 0 else A.dtype
        raise TypeError(f"from_adjacency: A must be real numbers or bool, got {got}")
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(f"from_adjacency: A must be square [N, N], got shape {A.shape}")
    if A.dtype.kind == "f" and np.isnan(A).any():
        dst, src = np.argwhere(np.isnan(A))[0]
        raise ValueError(f"from_adjacency: A[{dst}, {src}] is NaN. Write 0 where there is no edge")
    dst, src = np.nonzero(A)
    values = A[dst, src]
    return Graph(src, dst, len(A), edge_attr=None if (values == 1).all() else values)


def from_networkx(G, x=None, edge_attr=None):
    """Convert a graph of networkx to a Graph. An undirected edge becomes two directed edges.

    An edge from a node to itself stays one edge. Nodes keep their order, and features become
    float32.

    Args:
        G           the graph of networkx
        x           name of the attribute of the nodes that becomes their features, or a list of
                    names, whose values are concatenated. None: "x" if all nodes have this
                    attribute, and otherwise no features
        edge_attr   name of the attribute of the edges that becomes their features, or a list of
                    names. None: "weight" if all edges have this attribute, and otherwise no
                    features

    Returns:
        a `Graph`, whose features are [N, ...] and [E, ...] or None

    Raises:
        TypeError: G is not a graph of networkx
        ValueError: a node or edge lacks a named attribute, the values of an attribute are not
            numbers or differ in shape, or a list of names is empty
    """
    if not hasattr(G, "is_directed"):
        raise TypeError(
            f"from_networkx: G must be a graph of networkx, got {type(G).__name__}. For a matrix, "
            "use from_adjacency"
        )
    number = {node: i for i, node in enumerate(G.nodes)}
    edges = list(G.edges(data=True))
    if not G.is_directed():
        edges += [(b, a, data) for a, b, data in edges if a != b]
    src, dst = [number[a] for a, _, _ in edges], [number[b] for _, b, _ in edges]
    x = _features("x", x, "x", "node", [(node, G.nodes[node]) for node in G.nodes])
    e = _features("edge_attr", edge_attr, "weight", "edge", [((a, b), d) for a, b, d in edges])
    return Graph(src, dst, len(number), x=x, edge_attr=e)


def _features(argument, names, usual, what, items):
    """Return the attributes `names` of all nodes or edges as an array, or None without them.

    `items` are pairs of the user's name for a node or edge and the dictionary of its attributes. If
    `names` is None, the attribute is `usual`. `argument` and `what` are words for the messages.
    """
    found = [data for _, data in items]
    if names is None:
        others = {k for data in found for k, v in data.items() if k != usual and _is_number(v)}
        if others:
            listed = ", ".join(sorted(map(repr, others)))
            choice = listed if len(others) == 1 else f"[{listed}]"
            warn_caller(
                f"from_networkx: the {what}s have numbers under {listed}, which are ignored. To "
                f"use them, pass {argument}={choice}"
            )
        having = sum(usual in data for data in found)
        if 0 < having < len(found):
            warn_caller(
                f"from_networkx: only some of the {what}s have {usual!r}, so it is ignored. Give "
                f"it to all of them, or to none"
            )
        if not found or having < len(found):
            return None
        names = usual
    columns, names = [], list(names) if isinstance(names, list | tuple) else [names]
    if not names:
        raise ValueError(
            f"from_networkx: {argument} is an empty list. Pass names of attributes, or None"
        )
    for name in names:
        missing = [label for label, data in items if name not in data]
        if missing:
            raise ValueError(f"from_networkx: {what} {missing[0]!r} has no attribute {name!r}")
        columns.append(_column(name, what, [(label, data[name]) for label, data in items]))
    if len(columns) == 1:
        return columns[0]
    return np.concatenate([c.reshape(len(found), -1) for c in columns], axis=1)


def _column(name, what, values):
    """Return the values of one attribute, given as (node or edge, value), in one float32 array."""
    rows = []
    for label, value in values:
        start = f"from_networkx: {name!r} of the {what}s must be numbers of the same shape, but"
        try:
            rows.append(np.asarray(to_array(value), np.float32))
        except (TypeError, ValueError):
            raise ValueError(f"{start} {what} {label!r} has {value!r}") from None
        if rows[-1].shape != rows[0].shape:
            raise ValueError(
                f"{start} {what} {values[0][0]!r} has shape {rows[0].shape} and {what} {label!r} "
                f"has shape {rows[-1].shape}"
            )
    return np.array(rows, np.float32)


def _is_number(value):
    return np.asarray(to_array(value)).dtype.kind in "fiu"
