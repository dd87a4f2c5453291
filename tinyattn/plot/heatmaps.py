"""Matrices as coloured cells, and images in a grid."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import check_range
from tinyattn.plot.picture import Picture, canvas, check_names, color_map, figure, real_array
from tinyattn.plot.style import DIVERGING, GREY, INK, PALE, SEQUENTIAL, style

SMALLEST = 8  # font size in points, because smaller text cannot be read on a slide
WIDTH = 0.64  # width of a digit as a fraction of the font size
MOST_IN_A_ROW = 4


def heatmap(
    values,
    rows=None,
    columns=None,
    *,
    title=None,
    titles=None,
    row_label="",
    column_label="",
    numbers=None,
    digits=2,
    center=None,
    vmin=None,
    vmax=None,
    bar=True,
    bar_label="",
    mask=None,
    ax=None,
    size=None,
):
    """Draw a matrix as coloured cells, or several matrices with the same scale.

    Args:
        values         matrix [R, C]. For P matrices, an array [P, R, C], a list of matrices, or a
                       dictionary {title: matrix}. Cells with nan are pale grey
        rows           a name for each row. If None, the indices of the rows
        columns        a name for each column. If None, the indices of the columns
        title          title of the whole figure, or None
        titles         a title for each matrix, or None. A dictionary brings its own titles
        row_label      label of the axis of rows
        column_label   label of the axis of columns
        numbers        True: write the value into each cell. False: never. If None, only if the
                       cells are large enough
        digits         number of digits after the point, at least 0. If a matrix contains only whole
                       numbers, they are written without a point
        center         value that is white, with orange below and blue above it. The scale then
                       extends equally far to both sides, at least to vmin and vmax. If None, the
                       start of the scale is white
        vmin           start of the scale. If None, the smallest finite value
        vmax           end of the scale. If None, the largest finite value
        bar            True: show the scale
        bar_label      label of the scale
        mask           bool [R, C] for all matrices, or an array [P, R, C] or a list with a mask for
                       each matrix. Cells with False are hatched, and do not count for the scale. If
                       None, all are True
        ax             matplotlib Axes to draw into, only for a single matrix. If None, a new figure
                       is created
        size           (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`

    Raises:
        TypeError: the values are not real numbers, or another argument is of the wrong type
        ValueError: `values` has the wrong number of axes or no elements, the number of names or
            titles does not fit, or `mask` is not bool or has a different shape
        ValueError: vmin > vmax, `digits` is negative, or `ax` is given for several matrices
    """
    matrices, titles = panels_of("heatmap", "values", values, titles)
    for m in matrices:
        check_names("heatmap", "rows", rows, len(m), "row")
        check_names("heatmap", "columns", columns, m.shape[1], "column")
    check_range("heatmap", 0, whole=True, digits=digits)
    named = {"center": center, "vmin": vmin, "vmax": vmax}
    check_range("heatmap", optional=tuple(named), **named)
    masks = masks_of("heatmap", mask, matrices)
    scale = _scale(matrices, masks, center, vmin, vmax)
    from tinyattn.plot.figure_layout import after_layout

    with style():
        picture = _grid(matrices, ax, size)
        for i, (panel, matrix, keep) in enumerate(zip(picture.axes, matrices, masks, strict=True)):
            shown = _cells(panel, matrix, keep, scale)
            left, lowest = _at_the_edge(
                i, len(matrices), same=len({m.shape for m in matrices}) == 1
            )
            _names(panel.yaxis, rows, len(matrix), visible=left)
            _names(panel.xaxis, columns, matrix.shape[1], visible=lowest)
            panel.set_xlabel(column_label if lowest else "")
            panel.set_ylabel(row_label if left else "")
        for panel, name in zip(picture.axes, titles or [], strict=False):
            panel.set_title(str(name))
        if title is not None and titles:
            picture.figure.suptitle(title)
        elif title is not None:
            picture.ax.set_title(title)
        if bar:
            drawn = picture.figure.colorbar(shown, ax=picture.axes, label=bar_label, aspect=18)
            drawn.outline.set_visible(False)

        def write_numbers():
            for panel, matrix, keep in zip(picture.axes, matrices, masks, strict=True):
                _write_numbers(panel, matrix, keep, scale, digits, numbers)

        after_layout(picture.figure, lambda: _fit_names(picture), write_numbers)
        return picture


def images(images, titles=None, *, columns=None, title=None, colors="gray_r", size=None):
    """Draw images in a grid, all with the same scale.

    Args:
        images    images [N, H, W], or [N, H, W, 3] in colour (0 to 1, or 0 to 255 as integers).
                  A fourth number for each pixel [N, H, W, 4] is its opacity
        titles    a text above each image, or None
        columns   number of images in a row, at least 1. If None, it depends on N
        title     title of the whole figure, or None
        colors    name of a matplotlib colour map for images [N, H, W]. The default draws the
                  smallest number white and the largest black
        size      (width, height) of a new figure in inches. If None, it fits the content

    Returns:
        a `Picture`

    Raises:
        TypeError: the images are not real numbers, or `columns` is not a whole number
        ValueError: `images` has a different shape or no elements, the number of titles does not
            fit, `columns` is less than 1, or `colors` is not the name of a colour map
    """
    single = getattr(images, "ndim", 0) == 2
    advice = "Write images[None] for a single image" if single else ""
    images = real_array("images: images", images, (3, 4), advice)
    if images.size == 0:
        raise ValueError(
            "images: images must contain at least one image with at least one pixel, got shape "
            f"{images.shape}"
        )
    if images.ndim == 4 and images.shape[3] not in (3, 4):
        channels_first = images.shape[1] in (3, 4)
        advice = (
            "Write images.transpose(0, 2, 3, 1)"
            if channels_first
            else "Pass grey images as [N, H, W]"
        )
        if images.shape[3] == 1:
            advice = "Write images[..., 0] for grey images"
        elif images.shape[1] == 1:
            advice = "Write images[:, 0] for grey images"
        raise ValueError(
            "images: colour images must be [N, H, W, 3], or [N, H, W, 4] with opacity, got shape "
            f"{images.shape}. {advice}"
        )
    check_names("images", "titles", titles, len(images), "image")
    check_range("images", 1, whole=True, optional=("columns",), columns=columns)
    columns = min(columns or max(1, round(np.sqrt(len(images) * 2.5))), len(images))
    rows = -(-len(images) // columns)
    scale = {} if images.ndim == 4 else {"vmin": images.min(), "vmax": images.max()}
    with style():
        cell = min(1.4, 10 / columns)
        letters = min(14, 11 * cell)
        height = cell * images.shape[1] / images.shape[2] + (0 if titles is None else letters / 50)
        size = (cell * columns, height * rows + 0.4) if size is None else size
        picture = figure(rows, columns, size=size)
        for i, panel in enumerate(picture.axes):
            panel.set_axis_off()
            if i < len(images):
                panel.imshow(images[i], cmap=colors, **scale)
                if titles is not None:
                    panel.set_title(str(titles[i]), fontsize=letters, pad=3)
        if title is not None:
            picture.figure.suptitle(title)
        return Picture(picture.figure, picture.axes[: len(images)])


# ---------------------------------------------------------------- checks of the arguments


def panels_of(owner, name, values, titles):
    """Return a list of matrices and their titles (None if there are none).

    Args:
        owner    name of the function, for error messages
        name     name of its argument
        values   as in `heatmap`
        titles   as in `heatmap`

    Raises:
        TypeError: the values are not real numbers
        ValueError: a matrix is empty or not a matrix, or the number of titles does not fit
    """
    names = list(values) if isinstance(values, dict) else None
    if names is not None:
        titles, values = names, list(values.values())
    if isinstance(values, list | tuple) and not values:
        raise ValueError(f"{owner}: {name} is empty, so there is nothing to draw")
    if names is not None or (isinstance(values, list | tuple) and _is_matrix(values[0])):
        places = range(len(values)) if names is None else names
        matrices = [
            real_array(f"{owner}: {name}[{place!r}]", v, 2)
            for place, v in zip(places, values, strict=True)
        ]
    else:
        batch = getattr(values, "ndim", 0) > 3
        advice = f"Choose one example, such as {name}[0]" if batch else ""
        stack = real_array(f"{owner}: {name}", values, (2, 3), advice)
        matrices = [stack] if stack.ndim == 2 else list(stack)
    if not matrices or any([m.size == 0 for m in matrices]):
        shapes = [m.shape for m in matrices] if matrices else [stack.shape]
        raise ValueError(
            f"{owner}: there is nothing to draw, because {name} contains no elements, got shape "
            f"{next(s for s in shapes if 0 in s)}"
        )
    titles = [titles] if isinstance(titles, str) else titles
    check_names(owner, "titles", titles, len(matrices), "matrix")
    return matrices, titles


def _is_matrix(value):
    try:
        return np.ndim(to_array(value)) == 2
    except ValueError:  # rows of different lengths, which real_array refuses
        return True


def masks_of(owner, mask, matrices):
    """Return a mask of the cells that count for each matrix.

    Args:
        owner      name of the function, for error messages
        mask       as in `heatmap`
        matrices   list of matrices

    Raises:
        TypeError: the masks are not arrays of numbers
        ValueError: the masks are not bool, or differ in shape or number from the matrices
    """
    if mask is None:
        return [np.ones(m.shape, bool) for m in matrices]
    if isinstance(mask, list | tuple) and len(mask) and _is_matrix(mask[0]):
        masks = [real_array(f"{owner}: mask", m, kind="bool") for m in mask]
    else:
        mask = real_array(f"{owner}: mask", mask, (2, 3), kind="bool")
        masks = [mask] * len(matrices) if mask.ndim == 2 else list(mask)
    for m in masks:
        if m.dtype != bool:
            raise ValueError(
                f"{owner}: mask must be bool, with False for hatched cells, got {m.dtype}. Write "
                "np.asarray(mask, bool)"
            )
    if len(masks) != len(matrices):
        several = f" or {len(matrices)} matrices" if len(matrices) > 1 else ""
        if several and len(masks) == 1:
            raise ValueError(
                f"{owner}: mask must have an entry for each of the {len(matrices)} matrices, got "
                "1 entry. Pass mask[0] to use it for all of them"
            )
        raise ValueError(f"{owner}: mask must be one matrix{several}, got {len(masks)} matrices")
    for kept, m in zip(masks, matrices, strict=True):
        if kept.shape != m.shape:
            raise ValueError(
                f"{owner}: mask must have the shape of the matrix, {m.shape}, got {kept.shape}"
            )
    return masks


def _scale(matrices, masks, center, vmin, vmax):
    """Return the (norm, colour map) that all panels share."""
    from matplotlib.colors import Normalize

    cells = np.concatenate([m[keep].astype(float) for m, keep in zip(matrices, masks, strict=True)])
    cells = cells[np.isfinite(cells)]
    low, high = (cells.min(), cells.max()) if cells.size else (0.0, 1.0)
    if center is None:
        low, high = low if vmin is None else vmin, high if vmax is None else vmax
        _check_order(low, high, vmin, vmax)
        if low == high:
            low, high = (0, high) if high > 0 else (low, low + 1)
        return Normalize(low, high), color_map(SEQUENTIAL)
    if None not in (vmin, vmax):
        _check_order(vmin, vmax, vmin, vmax)
    reach = max(
        center - (low if vmin is None else vmin), (high if vmax is None else vmax) - center, 1e-12
    )
    return Normalize(center - reach, center + reach), color_map(DIVERGING)


def _check_order(low, high, vmin, vmax):
    """Raise an error if low > high, which are vmin and vmax, or computed where these are None."""
    if low > high:
        which = [" (the smallest value)" * (vmin is None), " (the largest value)" * (vmax is None)]
        raise ValueError(
            f"heatmap: expected vmin <= vmax, got vmin={low:g}{which[0]} and vmax={high:g}"
            f"{which[1]}"
        )


# ---------------------------------------------------------------- drawing


def _rows_and_columns(n):
    rows = -(-n // MOST_IN_A_ROW)
    return rows, -(-n // rows)


def _at_the_edge(i, n, same):
    """Return two bools: panel i of n shows the names of its rows, and those of its columns.

    With `same`, all panels have the same names, so only those at the left and below show them.
    """
    columns = _rows_and_columns(n)[1]
    return i % columns == 0 or not same, i + columns >= n or not same


def _grid(matrices, ax, size):
    """Return a Picture with one Axes for each matrix."""
    n, (R, C) = len(matrices), matrices[0].shape
    if ax is not None:
        if n > 1:
            raise ValueError(f"heatmap: one Axes (ax=) cannot hold {n} matrices. Leave ax= out")
        return canvas(ax, size)
    rows, columns = _rows_and_columns(n)
    height = (4.2 if max(R, C) <= 8 else 5) if n == 1 else max(2.4, min(3.6, 10 / columns * R / C))
    width = min(max(height * C / R, 0.5 * height), (9 if n == 1 else 12) / columns)
    size = (width * columns + 1.6, height * rows + 0.6) if size is None else size
    made = figure(rows, columns, size=size)
    for extra in made.axes[n:]:
        extra.remove()
    return Picture(made.figure, made.axes[:n])


def _cells(panel, matrix, keep, scale):
    """Draw coloured cells with thin white lines between them, hatched where the mask is False."""
    norm, colors = scale
    R, C = matrix.shape
    aspect = "equal" if 1 / 6 <= R / C <= 6 else "auto"
    values = np.where(keep, matrix.astype(float), np.nan)
    shown = panel.imshow(values, cmap=colors, norm=norm, aspect=aspect, interpolation="nearest")
    for i, j in np.argwhere(~keep):
        panel.add_patch(_rectangle(j, i, hatch="////"))
    panel.grid(False)
    panel.tick_params(length=0)
    if max(R, C) <= 40:
        lines = {"color": "white", "linewidth": 1 if max(R, C) <= 16 else 0.4}
        panel.vlines(np.arange(1, C) - 0.5, -0.5, R - 0.5, **lines)
        panel.hlines(np.arange(1, R) - 0.5, -0.5, C - 0.5, **lines)
    for side in panel.spines.values():
        side.set(visible=True, color=GREY, linewidth=0.8)
    return shown


def _rectangle(x, y, hatch):
    from matplotlib.patches import Rectangle

    return Rectangle(
        (x - 0.5, y - 0.5), 1, 1, facecolor=PALE, edgecolor="#B5B5B5", hatch=hatch, linewidth=0
    )


def _names(axis, names, n, visible=True):
    """Write the names of the n rows or columns at an axis, or indices if `names` is None."""
    if names is None:
        axis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    else:
        axis.set_ticks(range(n), [str(name) for name in names])
    if not visible:
        axis.set_ticklabels([])


def _cell_points(panel, shape):
    """Return width and height of a cell in points (1/72 inch)."""
    box = panel.get_window_extent()
    scale = 72 / panel.figure.dpi
    return box.width * scale / shape[1], box.height * scale / shape[0]


def _fit_names(picture):
    """Rotate the names of columns, shrink names and leave some out, until nothing overlaps."""
    for panel in picture.axes:
        shape = panel.images[0].get_array().shape
        width, height = _cell_points(panel, shape)
        for axis, room in ((panel.yaxis, height), (panel.xaxis, width)):
            labels = [t for t in axis.get_ticklabels() if t.get_text()]
            if not labels:
                continue
            spacing = room * shape[0 if axis is panel.yaxis else 1] / len(labels)
            letters = min(13, max(SMALLEST, spacing / 1.15))
            every = int(np.ceil(letters * 1.15 / spacing))
            wide = max([len(t.get_text()) for t in labels]) * letters * WIDTH
            slanted = axis is panel.xaxis and wide > spacing * every
            if slanted and any("\n" in t.get_text() for t in labels):  # two lines would overlap
                names = [t.get_text().replace("\n", " ") for t in axis.get_ticklabels()]
                axis.set_ticks(axis.get_ticklocs(), names)
            for i, label in enumerate(labels):
                label.set(fontsize=letters, visible=i % every == 0)
                if slanted:
                    steep = letters * 1.6 > spacing * every
                    label.set(
                        rotation=90 if steep else 45,
                        rotation_mode="anchor",
                        ha="right",
                        va="center" if steep else "top",
                    )


def _write_numbers(panel, matrix, keep, scale, digits, numbers):
    if numbers is False:
        return
    norm, colors = scale
    whole = matrix.dtype.kind in "iub" or np.array_equal(matrix, np.rint(matrix))
    text = [[f"{v:z.{0 if whole else digits}f}".replace("-", "−") for v in row] for row in matrix]
    longest = max([len(t) for row in text for t in row])
    width, height = _cell_points(panel, matrix.shape)
    letters = min(15, 0.9 * width / (longest * WIDTH), 0.62 * height)
    if letters < SMALLEST and not numbers:
        return
    for (i, j), value in np.ndenumerate(matrix):
        if keep[i, j] and np.isfinite(value):
            red, green, blue, _ = colors(norm(value))
            dark = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.3
            panel.text(
                j,
                i,
                text[i][j],
                ha="center",
                va="center",
                fontsize=letters,
                color="white" if dark else INK,
            )
