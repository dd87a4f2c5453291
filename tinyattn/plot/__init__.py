"""Pictures in one house style: curves, heat maps, attention maps, points, computation graphs.

Every function returns a `Picture`. In a notebook it appears by itself at the end of the cell; in
a script `.save(path)` writes it and `.show()` opens a window. matplotlib is imported when the
first picture is drawn; computation graphs do not need it.
"""

from tinyattn.plot.attention import attention_lines, attention_map
from tinyattn.plot.graph_svg import GraphPicture, graph
from tinyattn.plot.heatmaps import heatmap, images
from tinyattn.plot.house import COLORS, Picture, figure, style, use_style
from tinyattn.plot.lines import bars, curves, loss_curve
from tinyattn.plot.moving import Film, clouds, film
from tinyattn.plot.networks import layout, network
from tinyattn.plot.points import decision_boundary, scatter

__all__ = [
    "COLORS", "Film", "GraphPicture", "Picture", "attention_lines",
    "attention_map", "bars", "clouds", "curves", "decision_boundary", "figure", "film", "graph",
    "heatmap", "images", "layout", "loss_curve", "network", "scatter", "style", "use_style",
]  # fmt: skip
