"""How a Tensor shows itself: in a terminal, in a format string, and in a notebook."""

import numpy as np

from tinyattn.ops.display_map import color, picture, reach_of

ROWS, COLUMNS = 8, 12  # up to so many cells have a number in each; larger ones are a picture


def to_repr(self):
    """tensor([1., 2.], requires_grad=True), or tensor(0.46, op=tanh) for a computed one."""
    name = "tensor" if type(self).__name__ == "Tensor" else type(self).__name__
    chosen = np.get_printoptions()["precision"]  # 8 unless somebody chose: too long to read
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


def to_format(self, spec):
    """f"{loss:.3f}": the number, or the numbers in brackets."""
    if not spec:
        return to_repr(self)
    if self.size == 1:
        return format(self.item(), spec)
    each = {"all": lambda v: format(v.item(), spec)}
    return np.array2string(self._data, separator=", ", formatter=each)


# ---------------------------------------------------------------- notebook


def to_html(self):
    """A line with shape, dtype and operation, above coloured cells: with their numbers if there
    are few, else as a picture that says the numbers under the mouse."""
    facts = [f"<b>{type(self).__name__}</b>", str(list(self.shape)), str(self.dtype)]
    if self._operation is not None:
        facts.append("op " + _name(self._operation).replace("<", "&lt;"))  # of a lambda
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
    """All numbers of a small array; matrices along further axes stand side by side."""
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
    """Coloured by sign and size. The colour lets the background through: dark themes work too."""
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
