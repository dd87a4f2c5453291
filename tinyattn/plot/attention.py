"""Attention weights as a map, or as lines between words."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import is_number
from tinyattn.plot.heatmaps import heatmap
from tinyattn.plot.picture import canvas, finish, real_array
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

    The scale begins at 0. It ends at the largest weight, or at 2/S if all are smaller.

    Args:
        weights   attention weights [T, S], or of several heads as [H, T, S], a list of [T, S], or a
                  dictionary {title: [T, S]}
        tokens    labels of the T queries. If None, their indices
        keys      labels of the S keys. If None, the labels of the queries if S = T, or else the
                  indices
        title     title of the whole figure, or None
        titles    a title for each head. If None, heads in an array [H, T, S] are numbered from 1
        numbers   True: write the weight into each cell. False: never. If None, only if the cells
                  are large enough
        digits    number of digits after the point
        mask      bool [T, S] or [H, T, S]. Cells of hidden keys (False) are hatched. If None, no
                  key is hidden
        vmax      end of the scale. If None, it is chosen as above
        ax        matplotlib Axes to draw into. If None, a new figure is created
        size      (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`
    """
    if isinstance(weights, dict):
        titles, weights = list(weights), list(weights.values())
    if not isinstance(weights, list | tuple):
        weights = real_array("attention_map", weights, (2, 3))
        if weights.ndim == 3 and titles is None:
            titles = [f"head {h + 1}" for h in range(len(weights))]
    if keys is None and tokens is not None and len(tokens) == np.shape(to_array(weights))[-1]:
        keys = tokens
    if vmax is None:
        largest = max([np.max(to_array(w), initial=0) for w in weights])
        vmax = max(float(largest), min(1.0, 2 / max(1, np.shape(to_array(weights[0]))[-1])))
    return heatmap(
        weights,
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
        mask=mask,
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
        keys        labels of the S keys. If None, the labels of the queries are used
        title       title, or None
        query       index of the only query whose lines are drawn. If None, all lines are drawn
        threshold   smallest weight that is drawn
        ax          matplotlib Axes to draw into. If None, a new figure is created
        size        (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`
    """
    weights = real_array("attention_lines", weights, 2)
    if not hasattr(tokens, "__len__"):
        raise TypeError(f"attention_lines: tokens must be a list of texts, got {tokens!r}")
    keys = tokens if keys is None else keys
    if weights.shape != (len(tokens), len(keys)):
        raise ValueError(
            f"attention_lines: {len(tokens)} queries and {len(keys)} keys need weights of shape "
            f"({len(tokens)}, {len(keys)}), got {weights.shape}"
        )
    whole = query is None or is_number(query, whole=True)
    if not whole or (query is not None and not -len(tokens) <= query < len(tokens)):
        raise IndexError(
            f"attention_lines: query must be an index of the {len(tokens)} queries, got "
            f"query={query!r}"
        )
    shown = range(len(tokens)) if query is None else [query % len(tokens)]
    n = max(len(tokens), len(keys))
    with style():
        picture = canvas(ax, size or (6.4, max(2.5, 0.42 * n + 0.9)))
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


def _height(i, words, n):
    return i + (n - len(words)) / 2  # centre the shorter column


def _word(ax, x, y, word, side, color):
    ax.text(x, y, str(word), ha=side, va="center", color=color, fontsize=15)
