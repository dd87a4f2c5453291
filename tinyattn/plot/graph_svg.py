"""The computation graph of a tensor as an SVG image, drawn without any other program."""

from html import escape
from pathlib import Path

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.plot.graph_layout import layout
from tinyattn.plot.style import BLUE, GREEN, GREY, INK, ORANGE, VERMILLION

MOST_NODES = 200
SMALL = 4  # arrays up to this many numbers are shown in full
SYMBOLS = {
    "add": "+",
    "subtract": "−",
    "multiply": "×",
    "divide": "÷",
    "power": "^",
    "matmul": "@",
    "negative": "−( )",
    "square": "( )²",
    "sqrt": "√",
    "absolute": "| |",
    "getitem": "[ ]",
}
# the inputs of these operations may be drawn in any order
NO_ORDER = {"add", "multiply", "maximum", "minimum"}
# plain numbers are inputs of these operations
NUMBERS = {*NO_ORDER, "subtract", "divide", "power", "matmul", "where"}
ALONG_AXIS = {"sum", "mean", "max", "min", "prod", "var", "std", "cumsum", "softmax", "log_softmax"}
LOOK = {  # kind -> fill, border colour, border width, dashes, corner radius
    "operation": ("#E3F0F8", BLUE, 1.5, "", 16),
    "parameter": ("#FDF1D8", ORANGE, 2, "", 3),
    "data": ("#F3F3F3", GREY, 1.5, "", 3),
    "constant": ("#FFFFFF", GREY, 1.2, "4 3", 3),
    "result": ("#E0F3EC", GREEN, 2, "", 3),
}
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
TEXT = {  # kind of line -> font size, weight, colour
    "symbol": (19, "bold", INK),
    "name": (16, "bold", INK),
    "value": (14, "normal", INK),
    "shape": (14, "normal", GREY),
    "gradient": (14, "normal", VERMILLION),
}


class GraphPicture:
    """A drawn computation graph, which appears if it is the last line of a notebook cell.

    Args:
        svg       the drawing as text
        summary   description of the drawing in words
    """

    def __init__(self, svg, summary):
        self.svg, self.summary = svg, summary

    def save(self, path):
        """Write the drawing to the file `path`, which must end in .svg, and return `path`.

        Raises:
            FileNotFoundError: the folder does not exist
            ValueError: `path` does not end in .svg
        """
        if Path(path).suffix != ".svg":
            raise ValueError(f"computation_graph: path must end in .svg, got {str(path)!r}")
        Path(path).write_text(self.svg, encoding="utf-8")
        return path

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return f"<computation graph: {self.summary}; .save('graph.svg') writes it>"


def computation_graph(tensor, names=None, *, values=True):
    """Draw the operations and tensors from which a result was computed, from left to right.

    Rounded boxes are operations. Orange boxes are given Tensors that require a gradient, grey boxes
    are other given Tensors, dashed boxes are plain numbers and arrays, and green boxes are results.
    The inputs of an operation arrive in order, the first at the top, except where the order does
    not matter, as for +. Draw before `backward()`, which frees the graph. If you keep the graph
    with `backward(create_graph=True)` and draw it afterwards, the gradients are shown too.

    Args:
        tensor   the result, a Tensor
        names    {name: Tensor}, or a Module for the names of its parameters. Every named result has
                 its own green box. If None, only `tensor` has one
        values   True: write the values of tensors with up to 4 numbers, and the gradients of
                 leaves. False: write only shapes

    Returns:
        a `GraphPicture`

    Raises:
        RuntimeError: the graph was freed by an earlier `backward()`
        TypeError: `tensor` is not a Tensor, or `names` is neither a dictionary with Tensors as
            values nor a Module
        ValueError: the graph has more than 200 nodes
    """
    if not hasattr(tensor, "_operation"):
        raise TypeError(
            f"computation_graph: tensor must be a Tensor, got {type(tensor).__name__}. Pass the "
            "result of a computation with Tensors, such as the loss"
        )
    if hasattr(names, "named_parameters"):
        names = dict(names.named_parameters())
    if names is not None and not isinstance(names, dict):
        raise TypeError(
            "computation_graph: names must be a dictionary {name: Tensor} or a Module, got "
            f"{type(names).__name__}"
        )
    for name, value in (names or {}).items():
        if not hasattr(value, "_operation"):
            raise TypeError(
                "computation_graph: names must be a dictionary {name: Tensor}, got "
                f"{type(value).__name__} for {name!r}"
            )
    named = {id(t): name for name, t in (names or {}).items()}
    nodes, edges = _nodes(tensor, named, values)
    sizes = [_size(node) for node in nodes]
    free = {i for i, node in enumerate(nodes) if node["operation"] in NO_ORDER}
    centres, lines, (width, height) = layout(sizes, edges, free)
    operations = sum([node["kind"] == "operation" for node in nodes])
    summary = f"{_count(operations, 'operation')}, {_count(len(nodes) - operations, 'tensor')}"
    picture = [_line(points) for points in lines]
    picture += [_box(n, c, s) for n, c, s in zip(nodes, centres, sizes, strict=False)]
    return GraphPicture(_document(picture, width, height, summary), summary)


def _count(n, thing):
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


# ---------------------------------------------------------------- which nodes there are


def _nodes(root, named, values):
    """Return the nodes, inputs first, and edges (from, to, slot). `named` is {id: name}."""
    results = _results(root)
    nodes, edges, number = [], [], {}

    def add(kind, lines, tip, operation=None):
        if len(nodes) == MOST_NODES:
            raise ValueError(
                f"computation_graph: the graph of this tensor has more than {MOST_NODES} nodes "
                f"({len(results)} operations), too many to read. Draw only one layer or time "
                "step, or a smaller model"
            )
        nodes.append({"kind": kind, "lines": lines, "tip": tip, "operation": operation})
        return len(nodes) - 1

    def leaf(x):
        if id(x) not in number:
            kind = "parameter" if x.requires_grad else "data"
            number[id(x)] = add(kind, _describe(x, named.get(id(x)), values), _tip(kind, x))
        return number[id(x)]

    for t in results:
        arrays, kwargs = t._values, t._options
        name, sources = t._operation.name.lstrip("_"), []
        for parent, array in zip(t._inputs, arrays, strict=True):
            if parent is not None:
                sources.append(number[id(parent)] if parent._operation else leaf(parent))
            elif _is_input(name, array):
                lines = _describe(np.asarray(array), None, values)
                sources.append(add("constant", lines, _tip("constant", np.asarray(array))))
        boxed = t is root or id(t) in named
        lines = [("symbol", SYMBOLS.get(name, name)), *_options(name, arrays, kwargs)]
        lines += [] if boxed else _describe(t, None, values)
        number[id(t)] = add("operation", lines, _tip(name, t), name)
        edges += [(source, number[id(t)], slot) for slot, source in enumerate(sources)]
        if boxed:
            box = add("result", _describe(t, named.get(id(t), "result"), values), _tip("result", t))
            edges.append((number[id(t)], box, 0))
            number[id(t)] = box
    if not results:
        leaf(root)
    return nodes, edges


def _results(root):
    """Return all computed tensors that lead to root, oldest first."""
    found, seen = [root], {id(root)}
    for t in found:  # the list grows during the loop
        if t._inputs is None:
            raise RuntimeError(
                "computation_graph: this graph was freed by an earlier backward(). Draw it before "
                "backward(), or keep it with backward(create_graph=True)"
            )
        for parent in t._inputs:
            if parent is not None and id(parent) not in seen:
                seen.add(id(parent))
                found.append(parent)
    return sorted([t for t in found if t._operation is not None], key=lambda t: t._created)


def _is_input(name, array):
    """Return whether a plain argument is an input of the operation, not one of its options."""
    if isinstance(array, np.ndarray):
        return name != "getitem"
    return name in NUMBERS and isinstance(array, int | float | np.number)


# ---------------------------------------------------------------- what is written on them


def _describe(x, name, values):
    """Return the lines of text for a tensor or an array: name, shape, value, gradient."""
    lines = [] if name is None else [("name", name)]
    if x.ndim or not values:
        kind = "" if x.dtype == np.float32 else f" {x.dtype}"
        lines.append(("shape", f"{list(x.shape)}{kind}"))
    if values and x.size <= SMALL:
        lines.append(("value", _written(to_array(x))))
    is_leaf = getattr(x, "_operation", None) is None
    gradient = getattr(x, "grad", None) if is_leaf else None
    if values and gradient is not None:
        gradient = to_array(gradient)
        few = gradient.size <= SMALL
        text = _written(gradient) if few else f"of length {np.linalg.norm(gradient):.3g}"
        lines.append(("gradient", f"grad {text}"))
    return lines


def _written(array):
    if array.ndim:
        return f"[{', '.join([_written(a) for a in array])}]"
    return f"{array.item():.4g}".replace("-", "−") if array.dtype != bool else str(array.item())


def _options(name, arrays, kwargs):
    """Return a line with the subscripts, the index or the axis of an operation, or no line."""
    if name == "einsum":
        return [("shape", f"{','.join(kwargs['inputs'])}→{kwargs['output']}")]
    if name == "getitem":
        return [("shape", _index(arrays[1]))]
    axis = kwargs.get("axis")
    if axis is None and name in ALONG_AXIS and len(arrays) > 1:
        axis = arrays[1]
    return [] if axis is None else [("shape", f"axis {axis}".replace("-", "−"))]


def _index(index):
    parts = []
    for i in index if isinstance(index, tuple) else (index,):
        if isinstance(i, slice):
            ends = ["" if e is None else str(e) for e in (i.start, i.stop)]
            parts.append(":".join([*ends, *([] if i.step is None else [str(i.step)])]))
        elif isinstance(i, np.ndarray):
            parts.append("ids" if i.dtype != bool else "mask")
        else:
            parts.append("…" if i is Ellipsis else str(i))
    return f"[{', '.join(parts)}]"


def _tip(what, x):
    shape = f"shape {list(x.shape)}" if x.ndim else "a single number"
    return f"{what}: {shape}, {x.dtype}"


# ---------------------------------------------------------------- drawing


def _width(text, size):
    """Estimate the width of a text in pixels, rather too large, because no font can be measured."""
    narrow, wide = "iljt.,:;'|!()[] −f", "mwMW@%+→"
    units = [
        0.36 if c in narrow else 0.92 if c in wide else 0.7 if c.isupper() else 0.6 for c in text
    ]
    return size * sum(units)


def _size(node):
    weight = {"bold": 1.08, "normal": 1.0}
    width = max([_width(text, TEXT[k][0]) * weight[TEXT[k][1]] for k, text in node["lines"]])
    height = sum([1.28 * TEXT[k][0] for k, _ in node["lines"]])
    return max(width + 22, 40), height + 12


def _box(node, centre, size):
    fill, border, thickness, dashes, radius = LOOK[node["kind"]]
    (x, y), (width, height) = centre, size
    out = [
        f"<g><title>{escape(node['tip'])}</title>"
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="{min(radius, height / 2):.1f}" fill="{fill}" '
        f'stroke="{border}" stroke-width="{thickness}"'
        + (f' stroke-dasharray="{dashes}"' if dashes else "")
        + "/>"
    ]
    baseline = y - height / 2 + 6
    for kind, text in node["lines"]:
        letters, weight, color = TEXT[kind]
        out.append(
            f'<text x="{x:.1f}" y="{baseline + 0.98 * letters:.1f}" font-size="{letters}" '
            f'font-weight="{weight}" fill="{color}">{escape(text)}</text>'
        )
        baseline += 1.28 * letters
    return "".join(out) + "</g>"


def _line(points):
    """Return the SVG text of a smooth arrow through the points, horizontal at each of them."""
    *points, (x, y) = points
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], (x - 7, y)], strict=True):
        middle = (x0 + x1) / 2
        straight = abs(y0 - y1) < 0.05
        path += (
            f"L{x1:.1f},{y1:.1f}"
            if straight
            else (f"C{middle:.1f},{y0:.1f} {middle:.1f},{y1:.1f} {x1:.1f},{y1:.1f}")
        )
    head = f"M{x:.1f},{y:.1f}l-9,-4.5v9z"  # a marker element would vanish with a hidden slide
    return (
        f'<path d="{path}" fill="none" stroke="{GREY}" stroke-width="1.6"/>'
        f'<path d="{head}" fill="{GREY}"/>'
    )


def _document(parts, width, height, summary):
    width, height = width + 20, height + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" '
        f'style="max-width:100%;height:auto" font-family="{FONT}" text-anchor="middle">'
        f"<title>computation graph: {summary}</title>"
        f'<rect x="-10" y="-10" width="100%" height="100%" fill="white"/>'
        + "\n".join(parts)
        + "</svg>"
    )
