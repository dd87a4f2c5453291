"""The `Picture` that most functions of `plot` return, and helpers that these functions share."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.plot.style import DPI, PALE, SIZE, pyplot, style


class Picture:
    """A drawn figure, which a notebook shows at the end of a cell.

    Args:
        figure   the matplotlib Figure
        axes     its matplotlib Axes as a list, of which `ax` is the first
    """

    def __init__(self, figure, axes):
        self.figure, self.axes = figure, list(axes)

    @property
    def ax(self):
        return self.axes[0]

    def save(self, path):
        """Write the figure to the file `path`, and return the path.

        The suffix, such as .png, .svg or .pdf, determines the format.
        """
        self.figure.savefig(path, bbox_inches="tight", facecolor="white", dpi=DPI)
        return path

    def show(self):
        """Show all figures drawn so far immediately, instead of at the end of the cell."""
        pyplot().show()

    def _ipython_display_(self):
        """Do nothing, because the notebook already shows new figures at the end of the cell."""

    def __repr__(self):
        titles = [t for t in (ax.get_title() for ax in self.axes) if t]
        return f"<picture: {'; '.join(titles) or 'untitled'}>"


def figure(rows=1, columns=1, *, size=None, **options):
    """Return an empty `Picture`, into which functions of `plot` draw with `ax=picture.axes[i]`.

    Args:
        rows      number of rows of axes
        columns   number of columns of axes. `.axes` lists the axes row by row
        size      (width, height) in inches. If None, (8, 4.5)
        options   options of matplotlib's `subplots`, such as sharex, sharey and width_ratios
    """
    plt = pyplot()
    from tinyattn.plot.figure_layout import Layout  # imported here, because it imports matplotlib

    with style():
        made, axes = plt.subplots(
            rows, columns, figsize=size or SIZE, layout=Layout(), squeeze=False, **options
        )
    return Picture(made, axes.ravel())


def canvas(ax, size, **options):
    """Return a `Picture` to draw into.

    Args:
        ax        matplotlib Axes or `Picture` to draw into. If None, a new figure is created
        size      (width, height) of a new figure in inches
        options   as in `figure`
    """
    if ax is None:
        return figure(size=size, **options)
    if isinstance(ax, Picture):
        ax = ax.ax
    if not hasattr(ax, "get_figure"):
        raise TypeError(
            f"plot: ax must be a matplotlib Axes, such as picture.axes[0], got {type(ax).__name__}"
        )
    return Picture(ax.get_figure(), [ax])


def finish(picture, title=None, xlabel=None, ylabel=None):
    """Set title and labels of the first axes, and return the picture.

    Args:
        picture   the `Picture`
        title     title. If None, it is unchanged
        xlabel    label of the x axis. If None, it is unchanged
        ylabel    label of the y axis. If None, it is unchanged
    """
    if title is not None:
        picture.ax.set_title(title)
    if xlabel is not None:
        picture.ax.set_xlabel(xlabel)
    if ylabel is not None:
        picture.ax.set_ylabel(ylabel)
    return picture


def real_array(name, values, ndim=None):
    """Return real numbers as a plain array.

    Args:
        name     name of the function or argument, for error messages
        values   an array, Tensor or list
        ndim     allowed number of axes, or a tuple of such numbers. If None, any number

    Raises:
        TypeError: the values are not real numbers
        ValueError: the number of axes is not allowed
    """
    values = np.asarray(to_array(values))
    if values.dtype.kind not in "fiub":
        single = values.dtype == object and values.ndim == 0
        kind = type(values.item()).__name__ if single else values.dtype
        raise TypeError(f"{name}: expected real numbers, got {kind}")
    allowed = ndim if isinstance(ndim, tuple) else (ndim,)
    if ndim is not None and values.ndim not in allowed:
        wanted = " or ".join(map(str, allowed)) + (" axis" if allowed == (1,) else " axes")
        raise ValueError(f"{name}: expected an array with {wanted}, got shape {values.shape}")
    return values


def color_map(colors, bad=PALE):
    """Return a matplotlib colour map.

    Args:
        colors   list of colours, from the smallest to the largest number
        bad      colour of nan
    """
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("tinyattn", colors).with_extremes(bad=bad)
