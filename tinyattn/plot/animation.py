"""Figures that move: frames of one cloud of points in adjacent panels, and short films."""

import base64
import errno
import os
import tempfile
from pathlib import Path

import numpy as np

from tinyattn.engine.ranges import is_number
from tinyattn.plot.picture import canvas, figure, real_array
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
        weights   weights [F, N] from 0 to 1, shown by the size of the dots, which have a dark edge
                  above 0.5. If None, all are 0
        titles    a title for each frame, or None
        title     title of the whole figure, or None
        columns   number of panels in a row. If None, all are in one row
        xlabel    label of the x axis
        ylabel    label of the y axis
        ax        matplotlib Axes to draw into, only for F = 1. If None, a new figure is created
        size      (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`
    """
    frames, classes, weights = _check_frames(frames, classes, weights)
    F = len(frames)
    if titles is not None and len(titles) != F:
        raise ValueError(
            f"animate_points: titles must have one entry for each of the {F} frames, got "
            f"{len(titles)}"
        )
    if ax is not None and F > 1:
        raise ValueError(f"animate_points: one Axes (ax=) cannot hold {F} frames. Leave ax= out")
    columns = min(columns or F, F)
    rows = -(-F // columns)
    limits = _limits(frames)
    with style():
        if ax is None:
            width = min(3.4, 11 / columns)
            size = size or (width * columns, (width + 0.6) * rows + 0.4)
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
    frames = real_array("animate_points", frames, (2, 3))
    frames = frames[None] if frames.ndim == 2 else frames
    F, N, d = frames.shape
    if d != 2 or F == 0:
        advice = ". Choose two of the coordinates" if d > 2 else ""
        raise ValueError(
            "animate_points: frames must be [F, N, 2] with F >= 1, got shape "
            f"{frames.shape}{advice}"
        )
    if N and not np.isfinite(frames).any():
        raise ValueError("animate_points: frames contain no finite number, so nothing can be drawn")
    classes = (
        np.zeros(N, int) if classes is None else real_array("animate_points: classes", classes, 1)
    )
    weights = (
        np.zeros((F, N)) if weights is None else real_array("animate_points: weights", weights)
    )
    weights = weights[None] if weights.ndim == 1 else weights
    if classes.shape != (N,) or weights.shape != (F, N):
        raise ValueError(
            f"animate_points: {F} frames of {N} points need classes [{N}] and weights [{F}, {N}], "
            f"got shapes {classes.shape} and {weights.shape}"
        )
    return frames, classes.astype(int), np.clip(weights, 0, 1)


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
    """An animated GIF file, which a notebook shows at the end of a cell.

    Args:
        path     path of the file
        frames   number of frames
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

    The first quarter runs at half speed, so that viewers do not miss the beginning. Writing the
    file requires Pillow, which is installed with matplotlib.

    Args:
        draw         function draw(i, *axes) that fills the empty axes with frame i = 0, 1, ...
        frames       number of frames
        path         file to write, which ends in .gif. Its folder is created if necessary. If the
                     folder is read-only, a temporary folder is used, and its path is printed
        title        alternative text of the image in a notebook. The film does not show it
        per_second   frames per second
        first        duration of the first frame in seconds
        last         duration of the last frame in seconds
        size         (width, height) in inches
        columns      number of axes next to each other

    Returns:
        a `Film`
    """
    if not is_number(frames, whole=True) or frames < 1:
        raise ValueError(f"film: expected frames >= 1, a whole number, got frames={frames!r}")
    if not str(path).endswith(".gif"):
        raise ValueError(f"film: path must end in .gif, got {path!r}")
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
    print(f"{path.parent} is read-only; the film is {there}")
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
