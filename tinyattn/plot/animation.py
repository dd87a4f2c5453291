"""Figures that move: frames of one cloud of points in adjacent panels, and short films."""

import base64
import errno
import os
import tempfile
from pathlib import Path

import numpy as np

from tinyattn.engine.ranges import check_range, is_number
from tinyattn.plot.picture import canvas, check_names, class_numbers, figure, real_array
from tinyattn.plot.style import COLORS, INK, MARKERS, pyplot, style

DPI = 100  # pixels per inch of a film, which is enough for a slide and keeps the file small
NOTHING = "#C8C8C8"  # colour of points without an object
DOTS = (12, 110)  # areas of the smallest and the largest dot, in points²


def animate_points(
    frames,
    classes=None,
    *,
    weights=None,
    titles=None,
    title=None,
    columns=None,
    xlabel="",
    ylabel="",
    ax=None,
    size=None,
):
    """Draw the same points in F frames, one panel for each frame, all with the same scale.

    Args:
        frames    positions of the points in each frame [F, N, 2], or [N, 2] for a single frame.
                  Points that are not finite are not drawn
        classes   class of each point [N] int, shown by colour and shape. Points with a negative
                  class are pale grey. If None, all points have the same class
        weights   weights [F, N], or [N] for a single frame, shown by the size of the dots. A weight
                  below 0 counts as 0, and one above 1 as 1. Dots with a weight above 0.5 have a
                  dark edge. If None, all weights are 0
        titles    a title for each frame, or None
        title     title of the whole figure, or None
        columns   number of panels in a row, at least 1. If None, all are in one row
        xlabel    label of the x axis
        ylabel    label of the y axis
        ax        matplotlib Axes to draw into, only for F = 1. If None, a new figure is created
        size      (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`

    Raises:
        TypeError: the positions, classes or weights are not real numbers, `titles` is not a list,
            or `columns` is not a whole number
        ValueError: `frames`, `classes` or `weights` has the wrong shape, or the number of titles
            does not fit
        ValueError: all positions are nan or infinite, a class is not whole, `columns` is less than
            1, or `ax` is given for several frames
    """
    frames, classes, weights = _check_frames(frames, classes, weights)
    F = len(frames)
    check_names("animate_points", "titles", titles, F, "frame")
    check_range("animate_points", 1, whole=True, optional=("columns",), columns=columns)
    if ax is not None and F > 1:
        raise ValueError(f"animate_points: one Axes (ax=) cannot hold {F} frames. Leave ax= out")
    columns = min(columns or F, F)
    rows = -(-F // columns)
    limits = _limits(frames)
    with style():
        if ax is None:
            width = min(3.4, 11 / columns)
            size = (width * columns, (width + 0.6) * rows + 0.4) if size is None else size
            picture = figure(rows, columns, size=size, sharex=True, sharey=True)
        else:
            picture = canvas(ax, size)
        for i, panel in enumerate(picture.axes):
            if i >= F:
                panel.set_axis_off()
                continue
            _dots(panel, frames[i], classes, weights[i])
            panel.set(aspect="equal", xlim=limits[0], ylim=limits[1])
            panel.set_xlabel(xlabel if i + columns >= F else "")
            panel.set_ylabel(ylabel if i % columns == 0 else "")
            if titles is not None:
                panel.set_title(str(titles[i]))
        if title is not None and F == 1:
            picture.ax.set_title(title)
        elif title is not None:
            picture.figure.suptitle(title)
    return picture


def _check_frames(frames, classes, weights):
    frames = real_array("animate_points: frames", frames, (2, 3))
    given = frames.shape
    frames = frames[None] if frames.ndim == 2 else frames
    F, N, d = frames.shape
    if d != 2 or F == 0:
        advice = ". Choose two of the coordinates" if d > 2 else ""
        advice = ". Write frames.swapaxes(-1, -2)" if N == 2 and d > 2 else advice
        raise ValueError(
            "animate_points: frames must be [F, N, 2] with F >= 1, or [N, 2] for a single frame, "
            f"got shape {given}{advice}"
        )
    if N and not np.isfinite(frames).any():
        raise ValueError(
            "animate_points: frames contains only nan and infinity, so nothing can be drawn"
        )
    classes = np.zeros(N, int) if classes is None else classes
    classes = class_numbers("animate_points", classes, N, "point")
    weights = (
        np.zeros((F, N)) if weights is None else real_array("animate_points: weights", weights)
    )
    weights = weights[None] if weights.ndim == 1 else weights
    if weights.shape != (F, N):
        raise ValueError(
            f"animate_points: weights must have shape {(F, N)}, with one weight for each point in "
            f"each frame, got shape {weights.shape}"
        )
    return frames, classes, np.clip(weights, 0, 1)


def _limits(frames):
    """Return one square that contains the points of all frames: (left, right), (low, high)."""
    points = frames.reshape(-1, 2)
    points = points[np.isfinite(points).all(axis=1)]  # other points are not drawn
    if len(points) == 0:
        return (-1, 1), (-1, 1)
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.53 * max((high - low).max(), 1e-6)
    return [(m - half, m + half) for m in (low + high) / 2]


def _dots(panel, points, classes, weights):
    for c in np.unique(classes):
        rows = np.flatnonzero(classes == c)
        # points with large weights are drawn on top
        rows = rows[np.argsort(weights[rows], kind="stable")]
        strong = weights[rows] > 0.5
        areas = DOTS[0] + (DOTS[1] - DOTS[0]) * weights[rows]
        color = NOTHING if c < 0 else COLORS[c % 8]
        edges = np.where(strong, INK, color)
        panel.scatter(
            *points[rows].T,
            s=areas,
            color=color,
            edgecolor=edges,
            linewidth=0.9,
            marker="o" if c < 0 else MARKERS[c % 8],
            zorder=1 + (c >= 0),
        )


class Film:
    """An animated GIF file, which a notebook shows at the end of a cell. `film` writes it.

    Args:
        path     path of the file, which must exist when the notebook shows it
        frames   number of frames, for the text in a terminal
        title    alternative text of the image, for a reader who cannot see it
    """

    def __init__(self, path, frames, title=""):
        self.path, self.frames, self.title = Path(path), frames, title

    def _repr_html_(self):
        code = base64.b64encode(self.path.read_bytes()).decode()
        return f'<img class="figure" alt="{self.title}" src="data:image/gif;base64,{code}">'

    def __repr__(self):
        return f"<film: {self.frames} frames, {self.title or self.path.name}>"


def film(
    draw, frames, path, *, title="", per_second=5, first=1.5, last=4.0, size=(5.0, 5.0), columns=1
):
    """Write an animated GIF whose frames are drawn by a function.

    The first quarter of the frames runs at half speed, so that viewers do not miss the beginning.
    Writing the file requires Pillow, which is installed with matplotlib.

    Args:
        draw         function draw(i, *axes) that fills the empty axes with frame i = 0, 1, ...
        frames       number of frames, at least 1
        path         file to write, which ends in .gif. Its folder is created if necessary. If the
                     folder is read-only, a temporary folder is used, and its path is printed
        title        alternative text of the image in a notebook. The film does not show it
        per_second   frames per second after the first quarter
        first        duration of the first frame in seconds
        last         duration of the last frame in seconds, even if there is only one frame
        size         (width, height) of the film in inches, at 100 pixels per inch
        columns      number of axes next to each other, at least 1

    Returns:
        a `Film`, whose `path` is the file that was written

    Raises:
        TypeError: `draw` is not a function, `columns` is not a whole number, or `per_second`,
            `first` or `last` is not a number
        ValueError: `path` does not end in .gif, `frames` is not a whole number >= 1, `columns` is
            less than 1, `per_second` is not above 0, or `first` or `last` is negative
    """
    if not callable(draw):
        raise TypeError(f"film: draw must be a function draw(i, *axes), got {type(draw).__name__}")
    if not is_number(frames, whole=True) or frames < 1:
        raise ValueError(f"film: expected a whole number frames >= 1, got frames={frames!r}")
    if not str(path).endswith(".gif"):
        raise ValueError(f"film: path must end in .gif, got {str(path)!r}")
    check_range("film", above=0, per_second=per_second)
    check_range("film", 0, first=first, last=last)
    check_range("film", 1, whole=True, columns=columns)
    pyplot()  # this raises the error if matplotlib is missing
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    path = _writable(Path(path))
    pictures = []
    with style():
        picture = figure(1, columns, size=size)
        picture.figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(picture.figure)
        for i in range(frames):
            for panel in picture.axes:
                panel.clear()
            draw(i, *picture.axes)
            canvas.draw()
            pictures.append(np.asarray(canvas.buffer_rgba())[:, :, :3].copy())
        pyplot().close(picture.figure)
    _write_gif(path, pictures, _durations(frames, per_second, first, last))
    return Film(path, frames, title)


def _writable(path):
    """Return the path, or one in a temporary folder if its own folder is read-only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.access(path.parent, os.W_OK):
            return path
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
    there = Path(tempfile.mkdtemp(prefix="tinyattn-films-")) / path.name
    print(f"{path.parent} is read-only, so the film is {there}")
    return there


def _durations(frames, per_second, first, last):
    """Return the duration of each image of a film in milliseconds."""
    slow = -(-frames // 4)
    times = [2000 / per_second] * slow + [1000 / per_second] * (frames - slow)
    times[0], times[-1] = 1000 * first, 1000 * last
    return times


def _write_gif(path, pictures, times):
    """Write images [H, W, 3] uint8 that last `times` ms, with their 256 most frequent colours."""
    from PIL import Image

    codes = np.stack(pictures).astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    count = np.bincount(codes.ravel(), minlength=1 << 24)  # number of pixels of each colour
    used = np.flatnonzero(count)
    colors = np.stack([used >> 16, used >> 8 & 255, used & 255], axis=1)
    palette = colors[np.argsort(-count[used], kind="stable")[:256]]
    away = sum(np.square(a[:, None] - b) for a, b in zip(colors.T, palette.T, strict=True))
    nearest = np.zeros(1 << 24, np.uint8)
    nearest[used] = away.argmin(axis=1)
    indices = nearest[codes]  # [F, H, W]
    frames = [Image.fromarray(index) for index in indices]
    for frame in frames:
        frame.putpalette(palette.astype(np.uint8).tobytes())
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0)
