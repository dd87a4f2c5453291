"""Points in the plane with their classes, and a classifier's predictions everywhere else."""

import numpy as np

from tinyattn.engine.autograd import no_grad
from tinyattn.engine.convert import to_array
from tinyattn.plot.picture import canvas, check_class_names, class_numbers, finish, real_array
from tinyattn.plot.style import COLORS, INK, MARKERS, style

GRID = 200  # points per side of the grid on which the classifier is evaluated


def scatter(
    points, classes=None, *, names=None, title=None, xlabel="x₁", ylabel="x₂", ax=None, size=None
):
    """Draw points in the plane, with the class shown by both colour and shape.

    Args:
        points    positions [N, 2] of at least one point
        classes   class of each point [N] int, at least 0. If None, all have the same class
        names     a name for each class, for the legend. If None, "class 0", "class 1", ...
        title     title, or None
        xlabel    label of the x axis
        ylabel    label of the y axis
        ax        matplotlib Axes to draw into. If None, a new figure is created
        size      (width, height) of a new figure in inches. If None, (5.6, 4.5)

    Returns:
        a `Picture`

    Raises:
        TypeError: the points or the classes are not real numbers, or `names` is not a list
        ValueError: `points` or `classes` has the wrong shape, a class is negative or not whole, or
            a class has no name in `names`
    """
    points, classes, names = _check_points("scatter", points, classes, names)
    with style():
        picture = canvas(ax, (5.6, 4.5) if size is None else size)
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

    The background is paler where the probability of the predicted class is smaller.

    Args:
        predict   function of positions [M, 2] float32. It may return the logits of C classes
                  [M, C], the logits of class 1 against class 0 ([M] or [M, 1]), or the classes
                  themselves [M] int. It is called once, in `no_grad()`. A Module should be in
                  evaluation mode
        points    finite positions [N, 2] of at least one point
        classes   class of each point [N] int, at least 0
        names     a name for each class, for the legend. If None, "class 0", "class 1", ...
        title     title, or None
        xlabel    label of the x axis
        ylabel    label of the y axis
        ax        matplotlib Axes to draw into. If None, a new figure is created
        size      (width, height) of a new figure in inches. If None, (5.6, 4.5)

    Returns:
        a `Picture`

    Raises:
        TypeError: `predict` is not a function or does not return real numbers, the points or the
            classes are not real numbers, or `names` is not a list
        ValueError: `points`, `classes` or the result of `predict` has the wrong shape, or
            `predict` returns negative classes
        ValueError: a point is not finite, a class is negative or not whole, or a class has no name
            in `names`
    """
    if not callable(predict):
        raise TypeError(
            "decision_boundary: predict must be a function of positions [M, 2], such as a Module, "
            f"got {type(predict).__name__}"
        )
    points, classes, names = _check_points("decision_boundary", points, classes, names)
    if not np.isfinite(points).all():
        i = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
        raise ValueError(
            f"decision_boundary: points must be finite, got {points[i].tolist()} at index {i}"
        )
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

        picture = canvas(ax, (5.6, 4.5) if size is None else size)
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
    points = real_array(f"{name}: points", points, 2)
    if points.shape[1] != 2 or len(points) == 0:
        advice = ""
        if len(points) == 2:
            advice = ". Transpose points"
        elif len(points) and points.shape[1] > 2:
            advice = ". Choose two of the coordinates"
        raise ValueError(
            f"{name}: points must be [N, 2] with N >= 1, got shape {points.shape}{advice}"
        )
    n = len(points)
    classes = np.zeros(n, int) if classes is None else classes
    classes = class_numbers(name, classes, n, "point", 0)
    check_class_names(name, names, int(classes.max()))
    return points, classes, names


def _scores(out, n):
    """Return scores [n, C] for each form of result that a classifier may return."""
    out = np.asarray(out)
    if out.dtype.kind not in "fiub":
        kind = type(out.item()).__name__ if out.ndim == 0 else f"an array of {out.dtype}"
        raise TypeError(
            f"decision_boundary: predict must return logits or classes, but it returned {kind}"
        )
    if out.shape not in ((n,), (n, 1)) and not (out.ndim == 2 and len(out) == n and out.size):
        raise ValueError(
            f"decision_boundary: predict was given points [{n}, 2] and must return [{n}, C] or "
            f"[{n}], but it returned shape {out.shape}"
        )
    if out.ndim == 2 and out.shape[1] > 1:
        return out.astype(float)
    if out.dtype.kind in "iub":
        if out.min() < 0:
            raise ValueError(
                "decision_boundary: predict must return classes >= 0, or logits in floating point, "
                f"but it returned the class {out.min()}"
            )
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
