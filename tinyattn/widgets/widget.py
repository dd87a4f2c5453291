"""The class of all widgets: a page in its own frame, and a static image below it."""

import base64
import html
import json
from pathlib import Path

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.widgets.iframe import iframe

FOLDER = Path(__file__).parent / "page"
PICTURE = 380  # height of the drawing, which is 960 wide


class Widget:
    """An explorer that is displayed in a notebook and in a deck. `save` writes one HTML file.

    The functions of `widgets` return a Widget. Its arguments matter only for new kinds of widgets.

    Args:
        name      name of the script in the folder page/ that computes and draws
        title     title of the page
        caption   text below the drawing on the page
        data      {name: value} that the script uses. Values are arrays, numbers, texts, lists or
                  dictionaries
        still     SVG text of the image that is shown where scripts do not run
        height    height of the frame in pixels
        parts     names of further scripts in page/ that run before this script
    """

    def __init__(self, name, title, caption, data, still, height=560, parts=()):
        self.name, self.title, self.caption = name, title, caption
        self.data, self.still, self.height, self.parts = data, still, height, parts

    def html(self):
        """Return the whole page as HTML text."""
        read = lambda file: (FOLDER / file).read_text(encoding="utf-8")
        own_style = read(f"{self.name}.css") if (FOLDER / f"{self.name}.css").is_file() else ""
        scripts = "\n".join(read(f"{part}.js") for part in ("base", *self.parts, self.name))
        data = json.dumps(_plain(self.data), ensure_ascii=False, separators=(",", ":"))
        page = read("widget.html")
        for mark, part in (
            ("{{title}}", html.escape(self.title)),
            ("{{height}}", str(PICTURE)),
            ("{{caption}}", html.escape(self.caption)),
            ("{{style}}", read("widget.css") + own_style),
            ("{{scripts}}", f'{scripts}\nbegin();\ndocument.body.dataset.ready = "yes";'),
            ("{{data}}", data.replace("</", "<\\/")),
        ):
            page = page.replace(mark, part)
        return page

    def save(self, path):
        """Write the page to the file `path`, and return the path as a `Path`.

        The file needs no network. Its folder must exist, otherwise FileNotFoundError is raised.
        """
        path = Path(path)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def _repr_html_(self):
        """Return the page in a frame, with a static image where the frame is removed."""
        source = f"data:image/svg+xml;base64,{base64.b64encode(self.still.encode()).decode()}"
        still = f'<img alt="{html.escape(repr(self))}" src="{source}" style="max-width:100%">'
        return iframe(self.html(), self.title, self.height, still)

    def __repr__(self):
        return f'widget: {self.title}; .save("widget.html") writes it'


def numbers(name, what, values, ndim):
    """Return real numbers as a float64 array.

    Args:
        name     name of the widget, for error messages
        what     name of its argument
        values   the numbers, an array, Tensor or list
        ndim     number of axes

    Raises:
        ValueError: the values are not real numbers, there are none, some are not finite, or the
            number of axes is not `ndim`
    """
    axes = f"{ndim} {'axis' if ndim == 1 else 'axes'}"
    try:
        array = np.asarray(to_array(values))
    except ValueError:  # NumPy's message is about an inhomogeneous shape
        raise ValueError(
            f"widgets.{name}: {what} must form one array with {axes}, but the parts have different "
            "shapes"
        ) from None
    if array.dtype.kind not in "fiub":
        came = "text" if array.dtype.kind in "US" else f"values of type {array.dtype}"
        raise ValueError(
            f"widgets.{name}: {what} must be real numbers, got "
            f"{type(values).__name__ if array.ndim == 0 else came}"
        )
    if array.ndim != ndim or array.size == 0:
        raise ValueError(
            f"widgets.{name}: {what} must have {axes} and at least one element, got shape "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise ValueError(
            f"widgets.{name}: {what} must be finite, got {array[tuple(place)]} at index "
            f"{place[0] if ndim == 1 else tuple(place)}"
        )
    return array.astype(np.float64)


def whole_numbers(name, what, values, least=None, below=None):
    """Return whole numbers as a list of int.

    Args:
        name     name of the widget, for error messages
        what     name of its argument
        values   the numbers, an array, Tensor or list [N]
        least    smallest number allowed, or None
        below    number that must not be reached, or None

    Raises:
        ValueError: the values are not whole numbers with 1 axis, or one is out of range
    """
    array = numbers(name, what, values, 1)
    wrong = array != np.rint(array)
    wrong |= (array < (-np.inf if least is None else least)) | (array >= (below or np.inf))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        inside = (
            f" with {'' if least is None else f'{least} <= '}{what}[i]"
            f"{'' if below is None else f' < {below}'}"
        )
        raise ValueError(
            f"widgets.{name}: {what} must be whole numbers"
            f"{'' if least is None and below is None else inside}, got {array[i]:g} at index {i}"
        )
    return [int(n) for n in array]


def names_of(name, what, given, count):
    """Return the given names as a list of texts.

    Args:
        name    name of the widget, for error messages
        what    name of its argument
        given   the names. If None, they are 0, 1, 2, ...
        count   required number of names

    Raises:
        TypeError: the names are not a list
        ValueError: the number of names is not `count`
    """
    if given is not None and not hasattr(given, "__iter__"):
        raise TypeError(f"widgets.{name}: {what} must be a list of texts, got {given!r}")
    names = [str(i) for i in range(count)] if given is None else [str(n) for n in given]
    if len(names) != count:
        entries = "1 entry" if count == 1 else f"{count} entries"
        raise ValueError(f"widgets.{name}: {what} must have {entries}, got {len(names)}")
    return names


def _plain(value):
    """Return the value with its arrays as lists, and its floats rounded to six digits."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
