"""The display of a Tensor: in a terminal, in a format string, and in a notebook."""

import numpy as np

from tinyattn.engine.dispatch import implements_method

ROWS, COLUMNS = 8, 12  # arrays up to this size show a number in each cell, larger ones only colours


@implements_method("repr")
def to_repr(self):
    """Return the text of a Tensor: tensor([1., 2.], requires_grad=True), tensor(0.46, op=tanh)."""
    name = "tensor" if type(self).__name__ == "Tensor" else type(self).__name__
    chosen = np.get_printoptions()["precision"]  # 8 is NumPy's default, which is too long to read
    values = np.array2string(
        self._data, separator=", ", prefix=f"{name}(", precision=4 if chosen == 8 else chosen
    )
    return f"{name}({', '.join([values, *_properties(self)])})"


def _properties(self):
    parts = [f"shape={self.shape}"] if self.size == 0 and self.ndim > 1 else []
    parts += [f"dtype={self.dtype}"] if self.dtype != np.float32 else []
    if self._operation is not None:
        return [*parts, f"op={_name(self._operation)}"]
    return [*parts, "requires_grad=True"] if self.requires_grad else parts


def _name(operation):
    return operation.name.lstrip("_")


@implements_method("format")
def to_format(self, spec):
    """Return the text of f"{x:.3f}": the only number of x, or all numbers in brackets.

    `spec` is what follows the colon, here ".3f".
    """
    if not spec:
        return to_repr(self)
    if self.size == 1:
        return format(self.item(), spec)
    each = {"all": lambda v: format(v.item(), spec)}
    return np.array2string(self._data, separator=", ", formatter=each)


# ---------------------------------------------------------------- notebook


@implements_method("html")
def to_html(self):
    """Return the HTML of a Tensor: shape, dtype and operation in one line, then coloured cells.

    A cell of a small array shows its number, and a cell of a large array shows its number when the
    mouse is on the cell.
    """
    facts = [f"<b>{type(self).__name__}</b>", str(list(self.shape)), str(self.dtype)]
    if self._operation is not None:
        # a lambda's name contains < and >
        facts.append("op " + _name(self._operation).replace("<", "&lt;"))
    elif self.requires_grad:
        facts.append("requires grad")
    if self._operation is None and self.grad is not None:
        gradient = self.grad if isinstance(self.grad, np.ndarray) else self.grad.data
        facts.append(f"gradient of length {np.linalg.norm(gradient):.3g}")
    head = f'<div style="font-size:90%;opacity:.75;margin-bottom:3px">{" · ".join(facts)}</div>'
    return f'<div style="font-family:sans-serif;line-height:1.4">{head}{_values(self._data)}</div>'


def _values(array):
    if array.size == 0:
        return "<div>no elements</div>"
    if array.ndim == 0:
        return f'<div style="font-size:120%">{_text(array[()])}</div>'
    small = array.ndim == 1 or (array.shape[-2] <= ROWS and array.shape[-1] <= COLUMNS)
    if array.size <= ROWS * COLUMNS and small:
        return _slices(array)
    note = f'<div style="font-size:85%;opacity:.75">{_spread(array)}</div>'
    if array.ndim == 1 or array.dtype.kind == "c":
        return _table(np.atleast_2d(array[(0,) * (array.ndim - 2)])) + note
    return picture(array, _text) + note


def _slices(array):
    """Return all numbers of a small array, with matrices along further axes next to each other."""
    lead = array.shape[:-2]
    tables = []
    for index in np.ndindex(*lead):
        name = f"[{', '.join(map(str, index))}, :, :]" if lead else ""
        tables.append(
            f'<div style="font-size:95%">{name}{_table(np.atleast_2d(array[index]))}</div>'
        )
    return f'<div style="display:flex;flex-wrap:wrap;gap:10px">{"".join(tables)}</div>'


def _table(matrix):
    rows, columns = matrix.shape
    shown = matrix[:ROWS, :COLUMNS]
    reach = 1.0 if shown.dtype.kind == "c" else reach_of(shown)
    dots = '<td style="border:0;opacity:.6;padding:2px 7px;background:none">{}</td>'
    lines = [
        "".join([_cell(v, reach) for v in row]) + (dots.format("…") if columns > COLUMNS else "")
        for row in shown
    ]
    if rows > ROWS:
        lines.append(dots.format("⋮") * min(columns, COLUMNS))
    body = "".join([f'<tr style="background:none">{line}</tr>' for line in lines])
    return (
        '<table style="border-collapse:separate;border-spacing:1px;margin:0;width:auto;'
        f'color:inherit;font-variant-numeric:tabular-nums;font-size:95%"><tbody>{body}</tbody></table>'
    )


def _cell(value, reach):
    """Return a cell coloured by sign and size, half transparent so that dark themes work too."""
    finite = np.isfinite(value) and value.dtype.kind != "c"
    background = color(value, reach) if finite else "rgba(128,128,128,.25)"
    return (
        f'<td title="{value}" style="background:{background};color:inherit;border:0;'
        f'padding:2px 7px;text-align:right">{_text(value)}</td>'
    )


def _text(value):
    if value.dtype.kind == "f":
        if not np.isfinite(value):
            return str(value).replace("-", "−")
        size = abs(float(value))
        text = f"{value:.3f}" if size == 0 or 1e-3 <= size < 1e4 else f"{value:.2e}"
        return text.replace("-", "−")
    return str(value).replace("-", "−")


def _spread(array):
    if array.dtype.kind == "b":
        return f"{int(array.sum())} of {array.size} True"
    if array.dtype.kind == "c":
        return f"{array.size} numbers"
    with np.errstate(all="ignore"):
        low, mean, high = array.min(), array.mean(dtype=np.float64), array.max()
    return f"smallest {_text(low)}, mean {_text(mean)}, largest {_text(high)}"


# ---------------------------------------------------------------- arrays as images


# rows and columns of cells for one slice and for several, and the number of slices
ALONE, SEVERAL, SLICES = (20, 28), (12, 16), 4
PIXELS = 16  # size of a cell
# everyone can distinguish these two colours, also with impaired colour vision
BLUE, VERMILLION = "0,114,178", "213,94,0"
SHARE = 0.6  # largest opacity, through which the background is visible, so dark themes work too


def reach_of(values):
    """Return the absolute value that gets the full colour, for the numbers in an array.

    It is the largest absolute value, or the 98% quantile of the absolute values if an array of more
    than 50 numbers contains one that is more than four times as large as this quantile.
    """
    sizes = np.abs(values[np.isfinite(values)].astype(np.float64)).ravel()
    if sizes.size == 0:
        return 1.0
    largest, usual = float(sizes.max()), float(np.quantile(sizes, 0.98))
    return (usual if sizes.size > 50 and largest > 4 * usual > 0 else largest) or 1.0


def color(value, reach):
    """Return the CSS colour of a number, from transparent for 0 to the full colour for ±reach."""
    share = SHARE * min(1.0, abs(float(value)) / reach)
    return f"rgba({BLUE if value > 0 else VERMILLION},{share:.2f})"


def picture(array, text):
    """Return the HTML of an array [..., R, C] of real numbers as coloured images.

    `text` is the function that formats a number. At most SLICES matrices are shown, and in large
    ones, a cell is the mean of a block of numbers.
    """
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
    """Divide a matrix into blocks, at most `most` (rows, columns), and return a dictionary of them.

    It contains the ends, the means and the approximate size of the blocks, the matrix, and whether
    each block is "odd", which means that one of its numbers is not finite.
    """
    matrix = matrix.astype(np.float64)
    ends = [
        np.linspace(0, n, min(n, m) + 1).astype(int)
        for n, m in zip(matrix.shape, most, strict=True)
    ]
    finite = np.isfinite(matrix)
    total, number = _sums(np.where(finite, matrix, 0), ends), _sums(finite.astype(float), ends)
    with np.errstate(all="ignore"):
        mean = total / number
        if mean.size == matrix.size:
            mean = matrix
        size = tuple([round(n / (len(e) - 1)) for n, e in zip(matrix.shape, ends, strict=True)])
        return {
            "ends": ends,
            "mean": mean,
            "block": size,
            "matrix": matrix,
            "odd": _sums((~finite).astype(float), ends) > 0,
        }


def _sums(matrix, ends):
    starts = [e[:-1] for e in ends]
    return np.add.reduceat(np.add.reduceat(matrix, starts[0], axis=0), starts[1], axis=1)


def _panel(blocks, index, lead, reach, text):
    height, width = blocks["mean"].shape
    cells = [_map_cell(blocks, r, c, reach, text) for r in range(height) for c in range(width)]
    name = f"[{', '.join(map(str, index))}, :, :]" if lead else ""
    size = max(4, min(PIXELS, 480 // width))
    return (
        f'<div style="font-size:85%">{name}<svg viewBox="0 0 {width} {height}" '
        f'width="{width * size}" height="{height * size}" '
        'shape-rendering="crispEdges" style="display:block;max-width:100%;'
        'box-shadow:0 0 0 1px rgba(128,128,128,.4)" fill="currentColor" font-size=".8" '
        f'text-anchor="middle">{"".join(cells)}</svg></div>'
    )


def _map_cell(blocks, r, c, reach, text):
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
    if blocks["odd"][r, c]:  # mark it with a character, because colour alone is not enough
        sign = "×" if np.isnan(part).any() else "∞" if (part == np.inf).any() else "−∞"
        sign = f'<text x="{c + 0.5}" y="{r + 0.8}">{sign}</text>'
    return f'<path d="M{c} {r}h1v1h-1z" fill="{fill}"><title>{said}</title></path>{sign}'
