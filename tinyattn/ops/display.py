"""How a Tensor shows itself: in a terminal, in a format string, and in a notebook."""

import numpy as np

ROWS, COLUMNS = 8, 12  # the cells that a notebook shows of a larger tensor
BLUE, VERMILLION = "0,114,178", "213,94,0"  # above and below zero, for any kind of colour vision


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
    """A line with shape, dtype and operation, above coloured cells with the first values."""
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
    first = array[(0,) * (array.ndim - 2)] if array.ndim > 2 else array
    note = _spread(array) if array.size > ROWS * COLUMNS or array.ndim > 2 else ""
    if array.ndim > 2:
        note = f"cells: [{'0, ' * (array.ndim - 2)}:, :]; {note}"
    table = _table(np.atleast_2d(first), is_vector=array.ndim == 1)
    return table + (f'<div style="font-size:85%;opacity:.75">{note}</div>' if note else "")


def _table(matrix, is_vector):
    rows, columns = matrix.shape
    shown = matrix[:ROWS, :COLUMNS]
    finite = shown[np.isfinite(shown)] if shown.dtype.kind in "fc" else shown
    reach = float(np.max(np.abs(finite), initial=0)) or 1.0
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
    color = "128,128,128,.25"
    if np.isfinite(value) and value.dtype.kind != "c":
        share = 0.6 * min(1.0, abs(float(value)) / reach)
        color = f"{BLUE if value > 0 else VERMILLION},{share:.2f}"
    return (
        f'<td style="background:rgba({color});color:inherit;border:0;padding:2px 7px;'
        f'text-align:right">{_text(value)}</td>'
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
