"""A graph of nodes and edges as dots and lines, in two or three dimensions."""

import numpy as np

from tinyattn.engine.ranges import check_range
from tinyattn.plot.picture import (
    canvas,
    check_class_names,
    check_names,
    class_array,
    color_map,
    figure,
    finish,
    real_array,
)
from tinyattn.plot.style import COLORS, GREY, INK, MARKERS, SEQUENTIAL, style

STEPS = 200  # iterations of the layout


def graph(
    graph,
    positions=None,
    classes=None,
    *,
    values=None,
    widths=None,
    arrows=False,
    labels=None,
    names=None,
    value_label="",
    title=None,
    ax=None,
    size=None,
    rng=0,
):
    """Draw the nodes of a Graph as dots and its edges as lines.

    Two nodes that are connected in both directions are joined by one line, or by two arrows. An
    edge from a node to itself is not drawn.

    Args:
        graph         the `Graph`
        positions     positions of the nodes [N, 2], or [N, 3] for a drawing in space. If None,
                      `layout` computes them
        classes       class of each node [N] int, shown by colour and shape. If None, all nodes have
                      the same class
        values        a number for each node [N], shown by colour instead of a class, or None
        widths        strength of each edge [E], at least 0. The strongest edge is the widest, and
                      one line for two edges shows the stronger. If None, all edges are thin
        arrows        True: draw arrows from sender to receiver, which requires positions [N, 2]
        labels        text at each node, as a list of N strings, some of which may be empty, or None
        names         a name for each class, for the legend. If None, "class 0", "class 1", ...
        value_label   label of the scale of the values
        title         title, or None
        ax            matplotlib Axes to draw into. If None, a new figure is created
        size          (width, height) of a new figure in inches. If None, (5.6, 4.5)
        rng           seed or numpy.random.Generator for the layout, if `positions` is None

    Returns:
        a `Picture`

    Raises:
        TypeError: `graph` is not a Graph, an argument that must be numbers contains something else,
            or `labels` or `names` is not a list
        ValueError: the shape of `positions`, `classes`, `values`, `widths` or `labels` does not fit
            the graph, the classes are not integers, a class or width is negative, or a class has no
            name in `names`
        ValueError: both `classes` and `values` are given, or positions are [N, 3] although `arrows`
            is True or `ax` is two-dimensional
    """
    _check_graph("graph", graph)
    N = graph.num_nodes
    x = (
        layout(graph, rng=rng)
        if positions is None
        else real_array("plot.graph: positions", positions, 2)
    )
    labels = list(labels) if isinstance(labels, np.ndarray) else labels
    if x.shape[0] != N or x.shape[1] not in (2, 3):
        raise ValueError(f"plot.graph: positions must be [{N}, 2] or [{N}, 3], got shape {x.shape}")
    c = np.zeros(N, int) if classes is None else class_array("plot.graph", classes)
    if c.shape != (N,):
        raise ValueError(
            f"plot.graph: classes must have shape ({N},), with one class for each node, got shape "
            f"{c.shape}"
        )
    if c.dtype.kind not in "iu":
        raise ValueError(
            f"plot.graph: classes must be whole numbers, got {c.dtype}. Write "
            "np.asarray(classes).astype(int)"
        )
    if c.min(initial=0) < 0:
        raise ValueError(f"plot.graph: expected classes >= 0, got {c.min()} at index {c.argmin()}")
    check_class_names("plot.graph", names, int(c.max(initial=0)))
    if classes is not None and values is not None:
        raise ValueError(
            "plot.graph: nodes can be coloured by classes or by values, not by both. Leave one of "
            "them out"
        )
    if arrows and x.shape[1] == 3:
        raise ValueError(
            "plot.graph: arrows can only be drawn in two dimensions, but positions has three. Use "
            "arrows=False"
        )
    check_names("plot.graph", "labels", labels, N, "node")
    strength = _strengths(widths, graph.num_edges)
    with style():
        picture = _canvas(ax, (5.6, 4.5) if size is None else size, x.shape[1])
        ax = picture.ax
        (_arrows if arrows else _lines)(ax, x, graph, strength)
        dots = {"s": 60 if N <= 100 else 25, "edgecolor": "white", "linewidth": 0.6, "zorder": 2}
        if values is not None:
            _shaded(picture, x, real_array("plot.graph: values", values, 1), value_label, dots)
        else:
            _by_class(ax, x, c, names, dots)
        written = [_write(ax, at, text) for at, text in zip(x, labels or (), strict=False) if text]
        if values is None and (names is not None or c.max(initial=0) > 0):
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.1)
        ax.set_axis_off()
        ax.set_aspect("equal")
        finish(picture, title)
        if x.shape[1] == 2:
            _put_apart(written)
        return picture


def _write(ax, place, text):
    """Write a label with a white outline, so that it is readable on lines."""
    from matplotlib.patheffects import withStroke

    rim = [withStroke(linewidth=3, foreground="white")]
    return ax.text(*place, f"  {text}", color=INK, fontsize="small", zorder=3, path_effects=rim)


def _put_apart(labels):
    """Of two overlapping labels, move the left one to the left of its node."""
    if len(labels) < 2:
        return
    labels[0].figure.draw_without_rendering()  # the positions are only known now
    for label in sorted(labels, key=lambda text: text.get_position()[0]):
        others = [text.get_window_extent() for text in labels if text is not label]
        if label.get_window_extent().count_overlaps(others):
            label.set(ha="right", text=f"{label.get_text().strip()}  ")


def _by_class(ax, x, c, names, dots):
    for k in np.unique(c):
        label = names[k] if names is not None else f"class {k}"
        ax.scatter(*x[c == k].T, color=COLORS[k % 8], marker=MARKERS[k % 8], label=label, **dots)


def _shaded(picture, x, values, label, dots):
    if values.shape != x.shape[:1]:
        raise ValueError(
            f"plot.graph: values must have {len(x)} {'entry' if len(x) == 1 else 'entries'}, one "
            f"for each node, got {len(values)}"
        )
    # the edge keeps the smallest value visible, because its colour is white
    dots = dots | {"edgecolor": INK}
    shown = picture.ax.scatter(*x.T, c=values, cmap=color_map(SEQUENTIAL), **dots)
    picture.figure.colorbar(shown, ax=picture.ax, label=label, shrink=0.7)


def layout(graph, dimensions=2, rng=0):
    """Compute positions of the nodes of a graph, so that connected nodes are close to each other.

    Edges pull their ends together with a force that grows with the square of the distance, and all
    nodes push each other apart with a force that falls as 1/distance (Fruchterman and Reingold
    1991). The steps become shorter, and a weak pull to the centre keeps separate parts in view.

    Args:
        graph        the `Graph`
        dimensions   number of coordinates of each position, usually 2 or 3
        rng          seed or numpy.random.Generator for the initial positions

    Returns:
        positions [N, dimensions] float64, whose mean is 0. They are the same for the same seed

    Raises:
        TypeError: `graph` is not a Graph, or `dimensions` is not a whole number
        ValueError: `dimensions` is less than 1
    """
    _check_graph("layout", graph)
    check_range("plot.layout", 1, whole=True, dimensions=dimensions)
    N = graph.num_nodes
    x = np.random.default_rng(rng).normal(size=(N, dimensions))
    together = np.minimum(graph.adjacency() + graph.adjacency().T, 1)  # [N, N]
    ideal = 1 / max(N, 1) ** (1 / dimensions)
    for step in range(STEPS):
        apart = x[:, None] - x[None]  # [N, N, dimensions]
        d = np.sqrt(np.sum(apart**2, axis=-1)) + 1e-9
        strength = ideal**2 / d**2 - together * d / ideal
        force = np.sum(strength[..., None] * apart, axis=1) - x * ideal
        length = np.sqrt(np.sum(force**2, axis=1, keepdims=True)) + 1e-9
        x = x + force / length * np.minimum(length, 0.2 * (1 - step / STEPS))
    return x - x.mean(axis=0, keepdims=True) if N else x


def _check_graph(owner, graph):
    if not hasattr(graph, "num_nodes"):
        tensor = hasattr(graph, "_operation")
        raise TypeError(
            f"plot.{owner}: graph must be a graph.Graph, got {type(graph).__name__}"
            + (
                ". To draw the computation graph of a Tensor, use plot.computation_graph"
                if tensor
                else ". Make one with graph.Graph(src, dst, num_nodes)"
            )
        )


def _canvas(ax, size, dimensions):
    """Return a `Picture` to draw into, with Axes of 2 or 3 dimensions."""
    if dimensions == 2 or ax is not None:
        picture = canvas(ax, size)
        if dimensions == 3 and picture.ax.name != "3d":
            raise ValueError(
                'plot.graph: positions [N, 3] need an ax with projection="3d", got '
                f'"{picture.ax.name}". Leave ax= out to create one'
            )
        return picture
    picture = figure(size=size)
    fig = picture.ax.get_figure()
    fig.delaxes(picture.ax)
    return type(picture)(fig, [fig.add_subplot(projection="3d")])


def _strengths(widths, E):
    """Return the widths of the edges in points [E]: 0.8 for all, or up to 6 for the strongest."""
    if widths is None:
        return np.full(E, 0.8)
    widths = real_array("plot.graph: widths", widths, 1)
    if widths.shape != (E,) or (E and not widths.min() >= 0):
        i = int(widths.argmin()) if len(widths) else 0  # the index of nan, if there is one
        counted = [f"{n} {'number' if n == 1 else 'numbers'}" for n in (E, len(widths))]
        came = f"{widths[i]:g} at index {i}" if len(widths) == E else counted[1]
        raise ValueError(
            f"plot.graph: widths must be {counted[0]} >= 0, one for each edge, got {came}"
        )
    return 0.3 + 5.7 * widths / max(widths.max(initial=0), 1e-30)


def _lines(ax, x, graph, strength):
    ends = np.sort(np.stack([graph.src, graph.dst], axis=1), axis=1)
    keep = ends[:, 0] != ends[:, 1]
    pairs, which = np.unique(ends[keep], axis=0, return_inverse=True)
    if not len(pairs):
        return
    widths = np.zeros(len(pairs))
    np.maximum.at(widths, which.ravel(), strength[keep])
    options = {"colors": GREY, "linewidths": widths, "alpha": 0.5, "zorder": 1}
    if x.shape[1] == 3:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection

        ax.add_collection(Line3DCollection(x[pairs], **options))
    else:
        from matplotlib.collections import LineCollection

        ax.add_collection(LineCollection(x[pairs], **options))


def _arrows(ax, x, graph, strength):
    """Draw an arrow sender → receiver, slightly bent to separate it from the reverse arrow."""
    from matplotlib.patches import FancyArrowPatch

    for a, b, width in zip(graph.src, graph.dst, strength, strict=True):
        if a != b:
            ax.add_patch(
                FancyArrowPatch(
                    x[a],
                    x[b],
                    arrowstyle="-|>",
                    connectionstyle="arc3,rad=0.12",
                    color=GREY,
                    mutation_scale=14,
                    linewidth=width + 0.4,
                    shrinkA=6,
                    shrinkB=6,
                    zorder=1,
                )
            )
    ax.update_datalim(x)
    ax.autoscale_view()
