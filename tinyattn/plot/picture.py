"""The `Picture` that most functions of `plot` return, and helpers that these functions share."""

from pathlib import Path

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import check_range
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
        """The first of `axes`."""
        return self.axes[0]

    def save(self, path):
        """Write the figure to the file `path`, and return the path of the file.

        The suffix, such as .png, .svg or .pdf, determines the format. If `path` has no suffix, .png
        is added. The folder must exist.

        Raises:
            FileNotFoundError: the folder does not exist
            ValueError: matplotlib cannot write files with this suffix
        """
        if isinstance(path, str | Path) and not Path(path).suffix:
            path = type(path)(f"{path}.png")
        self.figure.savefig(path, bbox_inches="tight", facecolor="white", dpi=DPI)
        return path

    def show(self):
        """Show all figures that have been drawn so far but not shown yet.

        A script opens a window for each of them, and waits until the windows are closed. A notebook
        shows them immediately instead of at the end of the cell.
        """
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

    Raises:
        ImportError: matplotlib is not installed
        TypeError: `rows` or `columns` is not a whole number, or `size` is not a pair of numbers
        ValueError: `rows` or `columns` is less than 1, or a number in `size` is not above 0
    """
    check_range("plot.figure", 1, whole=True, rows=rows, columns=columns)
    size = SIZE if size is None else size
    check_size(size)
    plt = pyplot()
    from tinyattn.plot.figure_layout import Layout  # imported here, because it imports matplotlib

    with style():
        made, axes = plt.subplots(
            rows, columns, figsize=size, layout=Layout(), squeeze=False, **options
        )
    return Picture(made, axes.ravel())


def check_size(size):
    """Raise TypeError or ValueError unless `size` is (width, height), two numbers above 0."""
    if np.shape(size) != (2,) or np.asarray(size).dtype.kind not in "iuf":
        raise TypeError(
            f"plot: size must be a pair of numbers (width, height) in inches, got size={size!r}"
        )
    if not min(size) > 0:
        raise ValueError(
            f"plot: size must be (width, height) in inches, both above 0, got size={size!r}"
        )


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
    if not hasattr(ax, "set_xlabel"):  # a Figure has none
        advice = ". Choose one of them, such as axes.flat[0]" if isinstance(ax, np.ndarray) else ""
        raise TypeError(
            "plot: ax must be a matplotlib Axes, such as picture.axes[0], got "
            f"{type(ax).__name__}{advice}"
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


def real_array(name, values, ndim=None, advice="", kind="real numbers"):
    """Return real numbers as a plain array.

    Args:
        name     name of the function and its argument, for error messages
        values   an array, Tensor or list
        ndim     allowed number of axes, or a tuple of such numbers. If None, any number
        advice   sentence that is added to an error about the number of axes
        kind     what the values must be, for error messages

    Raises:
        TypeError: the values are not real numbers
        ValueError: the number of axes is not allowed, or lists have different lengths
    """
    try:
        values = np.asarray(to_array(values))
    except ValueError:  # NumPy's message is about an inhomogeneous shape
        raise ValueError(
            f"{name} must form one array, but the parts have different shapes"
        ) from None
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be {kind}, got {_kind_of(values)}")
    allowed = ndim if isinstance(ndim, tuple) else (ndim,)
    if ndim is not None and values.ndim not in allowed:
        axes = " or ".join(map(str, allowed)) + (" axis" if allowed == (1,) else " axes")
        form = {(0,): "be a number", (0, 1): "be a number or a list of numbers"}
        form = form.get(allowed, f"have {axes}")
        raise ValueError(f"{name} must {form}, got shape {values.shape}{advice and '. '}{advice}")
    return values


def _kind_of(values):
    """Return words for the values of an array that are not real numbers."""
    if values.dtype.kind in "US":
        return f"text such as {str(values.flat[0])!r}" if values.size else "text"
    if values.dtype.kind == "c":
        return "complex ones"
    single = values.dtype == object and values.ndim == 0
    return type(values.item()).__name__ if single else f"an array of {values.dtype}"


def class_numbers(owner, classes, n, thing, least=None):
    """Return classes, one for each point, as an array [n] int.

    Args:
        owner     name of the function, for error messages
        classes   the classes, an array, Tensor or list [n] or [n, 1]
        n         required number of classes
        thing     what has a class, such as "point"
        least     smallest number allowed, or None

    Raises:
        TypeError: the classes are not real numbers
        ValueError: the number of classes is not n, one is not whole, or one is less than `least`
    """
    classes = class_array(owner, classes)
    if classes.size != n or classes.ndim not in (1, 2):
        one_hot = classes.ndim == 2 and len(classes) == n
        raise ValueError(
            f"{owner}: classes must have shape ({n},), with one class for each {thing}, got shape "
            f"{classes.shape}" + (". Write classes.argmax(axis=1)" if one_hot else "")
        )
    classes = classes.ravel()
    right = classes == np.rint(classes)  # False for nan
    if least is not None:
        right &= classes >= least
    if not right.all():
        i = int(np.flatnonzero(~right)[0])
        raise ValueError(
            f"{owner}: classes must be whole numbers{'' if least is None else f' >= {least}'}, got "
            f"{classes[i]} at index {i}"
        )
    return classes.astype(int)


def class_array(owner, classes):
    """Return classes as an array of real numbers. Raises TypeError for text and other values."""
    try:
        return real_array(f"{owner}: classes", classes, kind="whole numbers")
    except TypeError as error:
        if "got text" not in str(error):
            raise
        raise TypeError(
            f"{error}. Write names, classes = np.unique(classes, return_inverse=True)"
        ) from None


def check_names(owner, argument, names, n, thing):
    """Raise an error unless there is one name for each thing. None stands for no names.

    Args:
        owner      name of the function, for error messages
        argument   name of the argument
        names      the names, or None
        n          required number of names
        thing      what has a name, such as "row"

    Raises:
        TypeError: the names are not a list
        ValueError: the number of names is not n
    """
    if names is None:
        return
    if not hasattr(names, "__len__") or isinstance(names, set | frozenset):  # a set has no order
        raise TypeError(
            f"{owner}: {argument} must be a list with an entry for each {thing}, got {names!r}"
        )
    if len(names) != n:
        raise ValueError(
            f"{owner}: {argument} must have {n} {'entry' if n == 1 else 'entries'}, one for each "
            f"{thing}, got {len(names)}" + (f": {list(names)}" if 0 < len(names) <= 8 else "")
        )


def check_class_names(owner, names, last):
    """Raise an error unless `names` is None or has an entry for each class from 0 to `last`."""
    if names is None:
        return
    if not (hasattr(names, "__len__") and hasattr(names, "__getitem__")):  # a set has no order
        raise TypeError(f"{owner}: names must be a list with a name for each class, got {names!r}")
    if len(names) <= last:
        classes = f"each class from 0 to {last}" if last else "class 0"
        raise ValueError(
            f"{owner}: names must have an entry for {classes}, got {len(names)} "
            f"{'entry' if len(names) == 1 else 'entries'}"
        )


def color_map(colors, bad=PALE):
    """Return a matplotlib colour map.

    Args:
        colors   list of colours, from the smallest to the largest number
        bad      colour of nan
    """
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("tinyattn", colors).with_extremes(bad=bad)
