"""Points in the plane with their classes, and a classifier's predictions everywhere else."""

import numpy as np

from tinyattn.engine.autograd import no_grad
from tinyattn.engine.convert import to_array
from tinyattn.plot.picture import canvas, finish, real_array
from tinyattn.plot.style import COLORS, INK, MARKERS, style

GRID = 200  # points per side of the grid on which the classifier is evaluated


def scatter(
    points, classes=None, *, names=None, title=None, xlabel="x₁", ylabel="x₂", ax=None, size=None
):
    """Draw points in the plane, with the class shown by both colour and shape.

    Args:
        points    positions [N, 2]
        classes   class of each point [N] int, at least 0. If None, all have the same class
        names     a name for each class, for the legend. If None, "class 0", "class 1", ...
        title     title, or None
        xlabel    label of the x axis
        ylabel    label of the y axis
        ax        matplotlib Axes to draw into. If None, a new figure is created
        size      (width, height) of a new figure in inches. If None, (5.6, 4.5)

    Returns:
        a `Picture`
    """
    points, classes, names = _check_points("scatter", points, classes, names)
    with style():
        picture = canvas(ax, size or (5.6, 4.5))
        _dots(picture.ax, points, classes, names)
        picture.ax.set_aspect("equal")
        return finish(picture, title, xlabel, ylabel)


def decision_boundary(
    predict,
    points,
    classes,
    *,
    names=None,
    title=None,
    xlabel="x₁",
    ylabel="x₂",
    ax=None,
    size=None,
):
    """Draw points, with the class that a classifier predicts at every position as the background.

    Args:
        predict   function of positions [M, 2] float32. It returns scores of C classes [M, C], of
                  which the largest wins, or logits [M] or [M, 1], where a positive logit means
                  class 1, or classes as integers [M]. Paler colours mean a smaller probability
        points    positions [N, 2]
        classes   class of each point [N] int, at least 0
        names     a name for each class, for the legend. If None, "class 0", "class 1", ...
        title     title, or None
        xlabel    label of the x axis
        ylabel    label of the y axis
        ax        matplotlib Axes to draw into. If None, a new figure is created
        size      (width, height) of a new figure in inches. If None, (5.6, 4.5)

    Returns:
        a `Picture`
    """
    points, classes, names = _check_points("decision_boundary", points, classes, names)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.1 * (high - low).max() + 1e-9
    x = np.linspace(low[0] - margin, high[0] + margin, GRID, dtype=np.float32)
    y = np.linspace(low[1] - margin, high[1] + margin, GRID, dtype=np.float32)
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    with no_grad():
        scores = _scores(to_array(predict(places)), len(places))
    winner = scores.argmax(axis=1)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    certain = share.max(axis=1) / share.sum(axis=1)  # 1/C to 1
    with style():
        from matplotlib.colors import to_rgb

        picture = canvas(ax, size or (5.6, 4.5))
        ax = picture.ax
        colors = np.array([to_rgb(c) for c in COLORS])[winner % len(COLORS)]
        strength = (0.1 + 0.35 * (certain - 1 / scores.shape[1]) / (1 - 1 / scores.shape[1]))[
            :, None
        ]
        background = (1 - strength) + strength * colors
        extent = (x[0], x[-1], y[0], y[-1])
        ax.imshow(
            background.reshape(GRID, GRID, 3),
            extent=extent,
            origin="lower",
            aspect="auto",
            interpolation="bilinear",
        )
        for c in range(scores.shape[1]):
            lead = scores[:, c] - np.delete(scores, c, axis=1).max(axis=1)
            if lead.min() < 0 < lead.max():
                ax.contour(x, y, lead.reshape(GRID, GRID), levels=[0], colors=INK, linewidths=1.5)
        _dots(ax, points, classes, names)
        ax.grid(False)
        ax.set(xlim=extent[:2], ylim=extent[2:], aspect="equal")
        return finish(picture, title, xlabel, ylabel)


def _check_points(name, points, classes, names):
    points = real_array(name, points, 2)
    if points.shape[1] != 2 or len(points) == 0:
        raise ValueError(f"{name}: points must be [N, 2] with N >= 1, got shape {points.shape}")
    if classes is None:
        return points, np.zeros(len(points), int), names
    classes = real_array(f"{name}: classes", classes, (1, 2)).ravel()
    if len(classes) != len(points):
        raise ValueError(
            f"{name}: classes must have one entry for each of the {len(points)} points, got "
            f"{len(classes)}"
        )
    wrong = ~((classes == np.rint(classes)) & (classes >= 0))
    if wrong.any():
        raise ValueError(
            f"{name}: classes must be whole numbers >= 0, got {classes[wrong][0]} at "
            f"index {int(np.flatnonzero(wrong)[0])}"
        )
    if names is not None and len(names) <= classes.max():
        raise ValueError(
            f"{name}: names must have an entry for each class up to {int(classes.max())}, got "
            f"{len(names)}"
        )
    return points, classes.astype(int), names


def _scores(out, n):
    """Return scores [n, C] for each form of result that a classifier may return."""
    out = np.asarray(out)
    if out.shape not in ((n,), (n, 1)) and not (out.ndim == 2 and len(out) == n):
        raise ValueError(
            f"decision_boundary: predict was given points [{n}, 2] and must return [{n}, C] or "
            f"[{n}], but it returned shape {out.shape}"
        )
    if out.ndim == 2 and out.shape[1] > 1:
        return out.astype(float)
    if out.dtype.kind in "iub":
        return 50.0 * np.eye(max(2, int(out.max()) + 1))[out.ravel().astype(int)]
    return np.stack([np.zeros(n), out.ravel().astype(float)], axis=1)


def _dots(ax, points, classes, names):
    several = classes.max() > 0
    letters = 60 if len(points) <= 200 else 30 if len(points) <= 600 else 14
    for c in np.unique(classes):
        chosen = points[classes == c]
        ax.scatter(
            *chosen.T,
            s=letters,
            color=COLORS[c % 8],
            marker=MARKERS[c % 8],
            edgecolor="white",
            linewidth=0.6,
            label=(names[c] if names is not None else f"class {c}"),
        )
    if several or names is not None:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.1)
