"""Curves over epochs, steps or sizes, and bars with error bars."""

import numpy as np

from tinyattn.engine.ranges import check_interval, check_range, is_number
from tinyattn.plot.picture import canvas, finish, real_array
from tinyattn.plot.style import COLORS, GREY, INK, SIZE, style


def loss_curve(
    histories, *, title=None, log=False, xlabel="epoch", ylabel="loss", smooth=1, ax=None, size=None
):
    """Draw the loss of one or more training runs over the epochs.

    The held-out losses of a `History` are dashed, with a dot at the epoch whose weights were kept.

    Args:
        histories   the losses of a run: a `History`, which is the result of `training.fit`, or a
                    list of numbers. For several runs, a dictionary with the losses of each run,
                    {name: `History` or list}
        title       title, or None
        log         True: the axis of the loss is logarithmic
        xlabel      label of the x axis
        ylabel      label of the y axis
        smooth      number of consecutive training losses of which the mean is drawn, at least 1 and
                    at most the number of losses. 1 changes nothing
        ax          matplotlib Axes to draw into. If None, a new figure is created
        size        (width, height) of a new figure in inches. If None, (8, 4.5)

    Returns:
        a `Picture`

    Raises:
        TypeError: the losses are not real numbers
        ValueError: there are no losses, several runs are not in a dictionary, or `smooth` is not a
            whole number from 1 to the number of losses
    """
    named = histories if isinstance(histories, dict) else {None: histories}
    if not named:
        raise ValueError("loss_curve: histories is empty, so there is nothing to draw")
    with style():
        picture = canvas(ax, size)
        ax = picture.ax
        for i, (name, history) in enumerate(named.items()):
            color = COLORS[i % len(COLORS)]
            kept = list(getattr(history, "valid", None) or [])
            what = "histories" if name is None else f"histories[{name!r}]"
            losses = _averaged(what, _losses(what, getattr(history, "losses", history)), smooth)
            first = 1 + (smooth - 1) / 2  # a mean is drawn at the centre of its window
            label = name if name is not None else "training" if kept else None
            ax.plot(first + np.arange(len(losses)), losses, color=color, label=label)
            if kept:
                color = COLORS[1] if name is None else color
                label = "held out" if name is None else f"{name}, held out"
                ax.plot(np.arange(1, len(kept) + 1), kept, "--", color=color, label=label)
                best = getattr(history, "best", None)
                if best:
                    ax.plot(best, kept[best - 1], "o", color=color, clip_on=False, zorder=5)
        if log:
            ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        _legend(ax)
        return finish(picture, title, xlabel, ylabel)


def _losses(what, losses):
    came = None
    if getattr(losses, "ndim", 1) > 1:
        came = f"shape {losses.shape}"
    elif isinstance(losses, list | tuple):
        parts = [v for v in losses if np.ndim(v) or hasattr(v, "losses")]
        came = f"a list with elements of type {type(parts[0]).__name__}" if parts else None
    if came is not None:
        raise ValueError(
            f"loss_curve: {what} must be the losses of one run, a list of numbers, got {came}. "
            "Pass several runs as a dictionary {name: losses}"
        )
    return real_array(f"loss_curve: {what}", losses, 1)


def _averaged(what, values, n):
    if len(values) == 0:
        raise ValueError(f"loss_curve: {what} is empty, so there is nothing to draw")
    if not is_number(n, whole=True) or n < 1:
        raise ValueError(f"loss_curve: expected a whole number smooth >= 1, got smooth={n!r}")
    if len(values) < n:
        raise ValueError(
            f"loss_curve: expected smooth <= {len(values)}, the number of losses in {what}, got "
            f"smooth={n}"
        )
    return np.convolve(values, np.full(n, 1 / n), mode="valid")


def curves(
    x,
    ys,
    *,
    title=None,
    xlabel="",
    ylabel="",
    log="",
    markers=False,
    quantiles=None,
    ax=None,
    size=None,
):
    """Draw one or several curves over the same x.

    Args:
        x           values of the horizontal axis [N]
        ys          values [N] of one curve, or values [repeats, N], of which the line is the mean,
                    with a band from the smallest to the largest. For several curves, a dictionary
                    {name: values}
        title       title of the figure, or None
        xlabel      label of the horizontal axis
        ylabel      label of the vertical axis
        log         logarithmic axes: "x", "y", "xy" for both, or "" for none
        markers     True: draw a dot at each value
        quantiles   (low, high), such as (0.1, 0.9). The line is then the median of the repeats, and
                    the band extends from one quantile to the other. If None, see `ys`
        ax          matplotlib Axes to draw into. If None, a new figure is created
        size        (width, height) of a new figure in inches. If None, (8, 4.5)

    Returns:
        a `Picture`

    Raises:
        TypeError: `x` or `ys` does not consist of real numbers, or `quantiles` is not a pair of
            numbers
        ValueError: `ys` is an empty dictionary, `x` or `ys` has the wrong number of axes, their
            lengths differ, `log` is unknown, or the quantiles are not 0 <= low <= high <= 1
    """
    if log not in ("", "x", "y", "xy"):
        raise ValueError(f'curves: log must be "x", "y", "xy", or "" for none, got {log!r}')
    named = ys if isinstance(ys, dict) else {None: ys}
    x = real_array("curves: x", x, 1)
    if quantiles is not None:
        check_interval("curves", "quantiles", quantiles, 0, 1)
    if not named:
        raise ValueError("curves: ys is empty, so there is nothing to draw")
    with style():
        picture = canvas(ax, size)
        ax = picture.ax
        for i, (name, y) in enumerate(named.items()):
            which = "ys" if name is None else f"ys[{name!r}]"
            y = np.atleast_2d(real_array(f"curves: {which}", y, (1, 2)))
            if y.shape[1] != len(x):
                transposed = len(y) == len(x) > 1
                advice = f"Transpose {which}" if transposed else "Give both the same length"
                raise ValueError(
                    f"curves: x has {len(x)} {'value' if len(x) == 1 else 'values'}, but {which} "
                    f"has {y.shape[1]} in its last axis. {advice}"
                )
            color = COLORS[i % len(COLORS)]
            line = y.mean(axis=0) if quantiles is None else np.median(y, axis=0)
            ax.plot(x, line, color=color, label=name, marker="o" if markers else None)
            if len(y) > 1:
                band = np.quantile(y, (0, 1) if quantiles is None else quantiles, axis=0)
                ax.fill_between(x, *band, color=color, alpha=0.2, linewidth=0)
        if "x" in log:
            ax.set_xscale("log")
        if "y" in log:
            ax.set_yscale("log")
        _legend(ax)
        return finish(picture, title, xlabel, ylabel)


def _legend(ax):
    """Draw a legend if a curve has a name, and place it beside the axes for more than 4 names."""
    entries = len(ax.get_legend_handles_labels()[0])
    beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if entries > 4 else {}
    if entries:
        ax.legend(**beside)


def bars(
    values,
    errors=None,
    *,
    title=None,
    xlabel="",
    ylabel="",
    horizontal=False,
    numbers=True,
    digits=2,
    highlight=None,
    ax=None,
    size=None,
):
    """Draw a bar for each name, with its number and an error bar.

    Args:
        values       {name: number}, or {name: list of repeats}. The bar of repeats is their mean,
                     with an error bar of ± one standard deviation (of the repeats, not of the mean)
        errors       {name: half the length of the error bar, at least 0}, with the same names as
                     `values`. If None, there are error bars only for repeats
        title        title, or None
        xlabel       label of the x axis
        ylabel       label of the y axis
        horizontal   True: horizontal bars
        numbers      True: write the number (or the mean of the repeats) at each bar
        digits       number of digits after the point, at least 0
        highlight    name of the bar to highlight, while the others become grey. If None, all have
                     the same colour
        ax           matplotlib Axes to draw into. If None, a new figure is created
        size         (width, height) of a new figure in inches. If None, (8, 4.5), or a height that
                     fits the number of horizontal bars

    Returns:
        a `Picture`

    Raises:
        TypeError: `values` or `errors` is not a dictionary of real numbers, or `values` is empty
        ValueError: `errors` does not have the same names as `values`, or has a negative number
        ValueError: a list of repeats is empty or has more than one axis, `digits` is negative, or
            `highlight` is not a name in `values`
    """
    from tinyattn.plot.figure_layout import after_layout

    check_range("bars", 0, whole=True, digits=digits)
    mean, error = _means(values, errors)
    names, at = list(values), np.arange(len(values))
    if highlight is not None and highlight not in names:
        raise ValueError(f"bars: highlight must be one of the names {names}, got {highlight!r}")
    colors = [COLORS[0] if highlight in (None, name) else "#B5B5B5" for name in names]
    with style():
        if horizontal and size is None:
            size = (SIZE[0], max(2.0, 0.6 * len(at) + 1))
        picture = canvas(ax, size)
        ax = picture.ax
        draw = ax.barh if horizontal else ax.bar
        error_bar = {"xerr" if horizontal else "yerr": error}
        shown = draw(at, mean, 0.65, color=colors, capsize=6, ecolor=INK, **error_bar)
        if numbers:
            ax.bar_label(
                shown,
                [f"{m:z,.{digits}f}".replace("-", "−") for m in mean],
                padding=4,
                fontsize=13,
                # other lines are drawn behind the text
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )
            ax.margins(**{"x" if horizontal else "y": 0.12})
        (ax.set_yticks if horizontal else ax.set_xticks)(at, names)
        if horizontal:
            ax.yaxis.set_inverted(True)  # the first name is on top, also if panels share the axis
        else:
            after_layout(ax.figure, lambda: _turn_long_names(ax), lambda: None)
        ax.grid(False, axis="y" if horizontal else "x")
        (ax.axvline if horizontal else ax.axhline)(0, color=GREY, linewidth=1)
        return finish(picture, title, xlabel, ylabel)


def _turn_long_names(ax):
    labels = ax.get_xticklabels()
    room = ax.get_window_extent().width / len(labels)
    if max([label.get_window_extent().width for label in labels]) > 0.95 * room:
        for label in labels:
            label.set(rotation=30, rotation_mode="anchor", ha="right", va="top")


def _means(values, errors):
    """Return, for each name, the mean and half the length of the error bar (None without one)."""
    if not isinstance(values, dict) or not values:
        raise TypeError(
            "bars: values must be a dictionary {name: number or list of repeats} with at least one "
            "entry, got " + ("an empty one" if isinstance(values, dict) else type(values).__name__)
        )
    arrays = [
        np.atleast_1d(real_array(f"bars: values[{name!r}]", v, (0, 1))).astype(float)
        for name, v in values.items()
    ]
    for name, a in zip(values, arrays, strict=True):
        if a.size == 0:
            raise ValueError(
                f"bars: values[{name!r}], a list of repeats, is empty. Leave {name!r} out"
            )
    mean = np.array([a.mean() for a in arrays])
    if errors is not None:
        if not isinstance(errors, dict):
            raise TypeError(
                f"bars: errors must be a dictionary {{name: number}}, got {type(errors).__name__}"
            )
        if set(errors) != set(values):
            raise ValueError(
                f"bars: errors must have the same names as values, {list(values)}, got "
                f"{list(errors)}"
            )
        for name, half in errors.items():
            real_array(f"bars: errors[{name!r}]", half, 0)
            if half < 0:
                raise ValueError(
                    f"bars: expected errors >= 0, got errors[{name!r}]={float(half):g}"
                )
        return mean, np.array([float(errors[name]) for name in values])
    if all([a.size == 1 for a in arrays]):
        return mean, None
    return mean, np.array([a.std() for a in arrays])
