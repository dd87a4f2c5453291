"""Figures in one style: curves, heat maps, attention maps, points, computation graphs.

Functions that draw return a `Picture`, a `Film` or a `GraphPicture`, which a notebook shows at the
end of the cell. In a script, `.save(path)` writes a picture to a file, and `.show()` opens a window
with each `Picture`. `film` always writes a file. matplotlib is imported when the first figure is
drawn (ImportError if it is not installed), and computation graphs do not need it.
"""

from tinyattn.engine import torch_hints
from tinyattn.plot import events as events
from tinyattn.plot.animation import Film, animate_points, film
from tinyattn.plot.attention import attention_lines, attention_map
from tinyattn.plot.graph_svg import GraphPicture, computation_graph
from tinyattn.plot.heatmaps import heatmap, images
from tinyattn.plot.lines import bars, curves, loss_curve
from tinyattn.plot.networks import graph, layout
from tinyattn.plot.picture import Picture, figure
from tinyattn.plot.points import decision_boundary, scatter
from tinyattn.plot.style import COLORS, GREY, style, use_style

__all__ = [
    "COLORS",
    "Film",
    "GREY",
    "GraphPicture",
    "Picture",
    "animate_points",
    "attention_lines",
    "attention_map",
    "bars",
    "computation_graph",
    "curves",
    "decision_boundary",
    "figure",
    "film",
    "graph",
    "heatmap",
    "images",
    "layout",
    "loss_curve",
    "scatter",
    "style",
    "use_style",
]


torch_hints.hint_functions(globals(), __all__)


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
