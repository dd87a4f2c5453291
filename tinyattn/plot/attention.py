"""Attention weights as a map, or as lines between words."""

import numpy as np

from tinyattn.engine.ranges import check_range, is_number
from tinyattn.plot.heatmaps import heatmap, masks_of, panels_of
from tinyattn.plot.picture import canvas, check_names, finish, real_array
from tinyattn.plot.style import COLORS, GREY, INK, style

RECEIVER, SENDER = "query (receives)", "key (sends)"


def attention_map(
    weights,
    tokens=None,
    keys=None,
    *,
    title=None,
    titles=None,
    numbers=None,
    digits=2,
    mask=None,
    vmax=None,
    ax=None,
    size=None,
):
    """Draw attention weights as a heat map with a row for each query and a column for each key.

    The scale begins at 0. It ends at the largest weight, but not below 2/S (or 1 if S = 1).

    Args:
        weights   attention weights [T, S]. For several heads, an array [H, T, S], a list of arrays
                  [T, S], or a dictionary {title: array [T, S]}
        tokens    labels of the T queries. If None, their indices
        keys      labels of the S keys. If None and S = T, the labels of the queries. If None and
                  S ≠ T, the indices of the keys
        title     title of the whole figure, or None
        titles    a title for each head. If None, heads in an array [H, T, S] are numbered from 1,
                  and heads in a list have no titles. A dictionary brings its own titles
        numbers   True: write the weight into each cell. False: never. If None, only if the cells
                  are large enough
        digits    number of digits after the point, at least 0
        mask      bool [T, S] for all heads, or [H, T, S]. Cells of hidden keys (False) are hatched.
                  If None, no key is hidden
        vmax      end of the scale. If None, it is chosen as above
        ax        matplotlib Axes to draw into, only for a single head. If None, a new figure is
                  created
        size      (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`

    Raises:
        TypeError: the weights are not real numbers, or another argument is of the wrong type
        ValueError: `weights` has the wrong number of axes or no elements, the number of labels or
            titles does not fit, or `mask` is not bool or has a different shape
        ValueError: `vmax` or `digits` is negative, or `ax` is given for several heads
    """
    several = not isinstance(weights, dict | list | tuple) and np.ndim(weights) == 3
    matrices, titles = panels_of("attention_map", "weights", weights, titles)
    if several and titles is None:
        titles = [f"head {h + 1}" for h in range(len(matrices))]
    widths = {m.shape[1] for m in matrices}
    for m in matrices:
        check_names("attention_map", "tokens", tokens, len(m), "query")
        check_names("attention_map", "keys", keys, m.shape[1], "key")
    if keys is None and tokens is not None and widths == {len(tokens)}:
        keys = tokens
    check_range("attention_map", 0, optional=("vmax",), vmax=vmax)
    check_range("attention_map", 0, whole=True, digits=digits)
    if ax is not None and len(matrices) > 1:
        raise ValueError(
            f"attention_map: one Axes (ax=) cannot hold {len(matrices)} heads. Leave ax= out"
        )
    if vmax is None:
        largest = max([np.max(m[np.isfinite(m)], initial=0) for m in matrices])
        vmax = max(float(largest), min(1.0, 2 / matrices[0].shape[1]))
    return heatmap(
        matrices,
        tokens,
        keys,
        title=title,
        titles=titles,
        row_label=RECEIVER,
        column_label=SENDER,
        numbers=numbers,
        digits=digits,
        vmin=0,
        vmax=vmax,
        mask=masks_of("attention_map", mask, matrices),
        bar_label="attention weight",
        ax=ax,
        size=size,
    )


def attention_lines(
    weights, tokens, keys=None, *, title=None, query=None, threshold=0.02, ax=None, size=None
):
    """Draw attention weights as lines from queries on the left to keys on the right.

    Args:
        weights     attention weights [T, S]
        tokens      labels of the T queries
        keys        labels of the S keys. If None, the labels of the queries, which requires S = T
        title       title, or None
        query       index of the only query whose lines are drawn. Negative indices count from the
                    end. If None, the lines of all queries are drawn
        threshold   smallest weight that is drawn
        ax          matplotlib Axes to draw into. If None, a new figure is created
        size        (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`

    Raises:
        IndexError: `query` is not the index of a query
        TypeError: the weights are not real numbers, `tokens` or `keys` is not a list, or
            `threshold` is not a number
        ValueError: the shape of the weights does not fit the numbers of labels
    """
    advice = "Choose one head" if getattr(weights, "ndim", 0) > 2 else ""
    weights = real_array("attention_lines: weights", weights, 2, advice)
    for name, labels in (("tokens", tokens), ("keys", tokens if keys is None else keys)):
        if not hasattr(labels, "__len__"):
            raise TypeError(f"attention_lines: {name} must be a list of texts, got {labels!r}")
    advice = ""
    if keys is None and len(weights) == len(tokens):
        advice = f". Pass the labels of the {_count(weights.shape[1], 'key', 'keys')} as keys="
    keys = tokens if keys is None else keys
    if weights.shape != (len(tokens), len(keys)):
        raise ValueError(
            f"attention_lines: weights must have shape ({len(tokens)}, {len(keys)}), because there "
            f"are labels of {_count(len(tokens), 'query', 'queries')} and "
            f"{_count(len(keys), 'key', 'keys')}, got shape {weights.shape}{advice}"
        )
    check_range("attention_lines", threshold=threshold)
    whole = query is None or is_number(query, whole=True)
    if not whole or (query is not None and not -len(tokens) <= query < len(tokens)):
        raise IndexError(
            f"attention_lines: expected query to be None or a whole number with {-len(tokens)} <= "
            f"query < {len(tokens)}, got query={query!r}"
        )
    shown = range(len(tokens)) if query is None else [query % len(tokens)]
    n = max(len(tokens), len(keys))
    with style():
        picture = canvas(ax, (6.4, max(2.5, 0.42 * n + 0.9)) if size is None else size)
        ax = picture.ax
        for i in shown:
            for j in np.flatnonzero(weights[i] >= threshold):
                w = min(1.0, float(weights[i, j]))
                ax.plot(
                    [0, 1],
                    [_height(i, tokens, n), _height(j, keys, n)],
                    linewidth=1 + 9 * w,
                    alpha=0.2 + 0.7 * w,
                    color=COLORS[i % 4],
                )
        for i, word in enumerate(tokens):
            _word(
                ax,
                -0.04,
                _height(i, tokens, n),
                word,
                "right",
                COLORS[i % 4] if i in shown else GREY,
            )
        received = weights[list(shown)].sum(axis=0)
        for j, word in enumerate(keys):
            _word(
                ax,
                1.04,
                _height(j, keys, n),
                word,
                "left",
                INK if received[j] >= threshold else GREY,
            )
        ax.text(-0.04, -0.9, RECEIVER, ha="right", va="center", color=GREY, fontsize=13)
        ax.text(1.04, -0.9, SENDER, ha="left", va="center", color=GREY, fontsize=13)
        ax.set(xlim=(-0.05, 1.05), ylim=(n - 0.5, -1.4))
        ax.set_axis_off()
        return finish(picture, title)


def _count(n, one, several):
    return f"{n} {one if n == 1 else several}"


def _height(i, words, n):
    return i + (n - len(words)) / 2  # centre the shorter column


def _word(ax, x, y, word, side, color):
    ax.text(x, y, str(word), ha=side, va="center", color=color, fontsize=15)
