"""The style of all figures: colours, font sizes, and matplotlib's settings for them."""

import sys
from contextlib import contextmanager
from functools import cache

# Okabe and Ito (2008), https://jfly.uni-koeln.de/color: distinguishable with any kind of colour
# vision.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK = "#E69F00", "#56B4E9", "#F0E442", "#000000"
COLORS = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW]
# points differ by marker too, not only by colour
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
INK, GREY, PALE = "#222222", "#767676", "#E6E6E6"

# White is zero or small. The ends are dark, so that a number in a cell is readable in black or
# white.
SEQUENTIAL = ["#FFFFFF", "#B9D9EE", "#56B4E9", "#0072B2", "#00304D"]
DIVERGING = ["#6B2F00", "#D55E00", "#F9D2B8", "#FFFFFF", "#A9D2EA", "#0072B2", "#00304D"]

# inches, in the proportions of a slide. Text of 14 points is then 1/23 of the height.
SIZE = (8.0, 4.5)
DPI = 150  # pixels per inch in files and notebooks

_STYLE = {
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "figure.figsize": SIZE,
    "savefig.facecolor": "white",
    "savefig.dpi": DPI,
    "font.size": 14,
    "axes.titlesize": 16,
    "axes.labelsize": 14,
    "legend.fontsize": 13,
    "xtick.labelsize": 13,
    "ytick.labelsize": 13,
    "figure.titlesize": 16,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": PALE,
    "grid.linewidth": 1.0,
    "axes.linewidth": 1.0,
    "lines.linewidth": 2.5,
    "lines.markersize": 7,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "hatch.color": "#B5B5B5",
    "hatch.linewidth": 1.0,
}


def pyplot():
    """Return matplotlib.pyplot, which is imported when the first figure is drawn."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ImportError(
            "plot: drawing needs matplotlib, which is not installed. Install it with: pip install "
            "matplotlib"
        ) from error
    return plt


@cache
def _in_notebook():
    """Return whether a notebook shows figures at half their size in pixels.

    If the user has not chosen a format, this size is chosen here. Figures then match the text
    around them, and stay sharp when a slide enlarges them.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return False
    from matplotlib_inline.config import InlineBackend

    backend = InlineBackend.instance(parent=shell)
    if backend.figure_formats == {"png"}:  # the user has not chosen a format
        backend.figure_formats = {"retina"}  # 2 × figure.dpi, shown at half size
    return "retina" in backend.figure_formats


@contextmanager
def style():
    """Use the style of `plot` for your own matplotlib code in a block.

        with plot.style():
            plt.plot(x, y)

    At the end of the block, the previous settings of matplotlib are restored.
    """
    # matplotlib's rc_context would also restore the setting "interactive", which a notebook changes
    # when it draws the first figure, and no further figure would be shown
    settings = pyplot().rcParams
    before = {name: settings[name] for name in _wanted()}
    use_style()
    try:
        yield
    finally:
        settings.update(before)


def use_style():
    """Use the style of `plot` for all matplotlib figures of a program from now on."""
    pyplot().rcParams.update(_wanted())


def _wanted():
    from cycler import cycler

    wanted = {**_STYLE, "axes.prop_cycle": cycler(color=COLORS)}
    return wanted | {"figure.dpi": DPI / 2} if _in_notebook() else wanted
