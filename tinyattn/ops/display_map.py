"""A large array as a picture for a notebook: cells of colour, a few slices side by side.

Plain SVG without a script: each cell says its value when the mouse is over it. Cells are few, so
that also a large array stays small: where there are more numbers, a cell is a block of them.
"""

import numpy as np

ALONE, SEVERAL, SLICES = (20, 28), (12, 16), 4  # rows and columns of cells; slices that are drawn
PIXELS = 16  # of a cell
BLUE, VERMILLION = "0,114,178", "213,94,0"  # above and below zero, for any kind of colour vision
SHARE = 0.6  # of colour at most: the background shows through, and dark themes work too


def reach_of(values):
    """The size of number that has the full colour: the largest, but not that of a few outliers."""
    sizes = np.abs(values[np.isfinite(values)].astype(np.float64)).ravel()
    if sizes.size == 0:
        return 1.0
    largest, usual = float(sizes.max()), float(np.quantile(sizes, 0.98))
    return (usual if sizes.size > 50 and largest > 4 * usual > 0 else largest) or 1.0


def color(value, reach):
    """The colour of a number: white is 0."""
    share = SHARE * min(1.0, abs(float(value)) / reach)
    return f"rgba({BLUE if value > 0 else VERMILLION},{share:.2f})"


def picture(array, text):
    """The HTML of an array [..., R, C] of real numbers; `text` writes a number."""
    lead = array.shape[:-2]
    count = int(np.prod(lead))
    drawn = [np.unravel_index(i, lead) for i in range(min(count, SLICES))] if lead else [()]
    blocks = [_blocks(array[index], SEVERAL if count > 1 else ALONE) for index in drawn]
    reach = reach_of(np.array([b["mean"] for b in blocks]))
    panels = [_panel(b, index, lead, reach, text) for b, index in zip(blocks, drawn, strict=True)]
    notes = [f"0 has no colour, ±{text(np.float64(reach))} and more the full one"]
    if count > SLICES:
        notes.append(f"{SLICES} of {count} slices")
    block = blocks[0]["block"]
    if block != (1, 1):
        notes.append(f"each cell the mean of about {block[0]} × {block[1]} numbers")
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:10px">{"".join(panels)}</div>'
        f'<div style="font-size:85%;opacity:.75">{"; ".join(notes)}</div>'
    )


def _blocks(matrix, most):
    """What a slice is drawn from: the ends of its blocks, and of each its mean, least and most."""
    matrix = matrix.astype(np.float64)
    ends = [np.linspace(0, n, min(n, m) + 1).astype(int)
            for n, m in zip(matrix.shape, most, strict=True)]  # fmt: skip
    finite = np.isfinite(matrix)
    total, number = _sums(np.where(finite, matrix, 0), ends), _sums(finite.astype(float), ends)
    with np.errstate(all="ignore"):
        mean = total / number
        if mean.size == matrix.size:
            mean = matrix
        size = tuple([round(n / (len(e) - 1)) for n, e in zip(matrix.shape, ends, strict=True)])
        return {"ends": ends, "mean": mean, "block": size, "matrix": matrix,
                "odd": _sums((~finite).astype(float), ends) > 0}  # fmt: skip


def _sums(matrix, ends):
    starts = [e[:-1] for e in ends]
    return np.add.reduceat(np.add.reduceat(matrix, starts[0], axis=0), starts[1], axis=1)


def _panel(blocks, index, lead, reach, text):
    height, width = blocks["mean"].shape
    cells = [_cell(blocks, r, c, reach, text) for r in range(height) for c in range(width)]
    name = f"[{', '.join(map(str, index))}, :, :]" if lead else ""
    size = max(4, min(PIXELS, 480 // width))
    return (
        f'<div style="font-size:85%">{name}<svg viewBox="0 0 {width} {height}" '
        f'width="{width * size}" height="{height * size}" '
        'shape-rendering="crispEdges" style="display:block;max-width:100%;'
        'box-shadow:0 0 0 1px rgba(128,128,128,.4)" fill="currentColor" font-size=".8" '
        f'text-anchor="middle">{"".join(cells)}</svg></div>'
    )


def _cell(blocks, r, c, reach, text):
    rows, columns = [e[i : i + 2].tolist() for e, i in zip(blocks["ends"], (r, c), strict=True)]
    part = blocks["matrix"][slice(*rows), slice(*columns)]
    value = blocks["mean"][r, c]
    if part.size == 1:
        said = f"[{r}, {c}] = {text(value)}"
    else:
        said = f"[{rows[0]}:{rows[1]}, {columns[0]}:{columns[1]}] from {text(part.min())} to "
        said += text(part.max())
    fill = color(value, reach) if np.isfinite(value) else "rgba(128,128,128,.3)"
    sign = ""
    if blocks["odd"][r, c]:  # a sign, not only a colour
        sign = "×" if np.isnan(part).any() else "∞" if (part == np.inf).any() else "−∞"
        sign = f'<text x="{c + 0.5}" y="{r + 0.8}">{sign}</text>'
    return f'<path d="M{c} {r}h1v1h-1z" fill="{fill}"><title>{said}</title></path>{sign}'
