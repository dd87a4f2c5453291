"""Name the arrays of a computation as a student would."""

import numpy as np

SIGNS = {"add": "+", "subtract": "−", "multiply": "·", "divide": "/", "matmul": "@", "power": "**"}
TIGHT = {"multiply", "divide", "matmul", "power"}  # a sum inside these operations needs brackets
LONGEST = 18  # characters, because a longer expression is not useful as a name
DULL = {"x", "y", "out", "output", "input", "result", "t", "a", "b", "inputs", "module", "values"}


def base_name(step, recorder, operands):
    """Return the text for a result, and whether the text is the name of a variable.

    Otherwise, the text is a short expression of two names, or the name of the operation.

    Args:
        step       the `Step` that computed the result
        recorder   the `Recorder` with the names of variables
        operands   for each operand its name, its number as text, or None if it has no name
    """
    own = recorder.names.get(id(step.tensor))
    if own is not None and (own.rank == 0 or own.text not in DULL):
        return own.text, True
    return _expression(step.operation.name, operands) or step.operation.name, False


def _expression(operation, operands):
    if operation not in SIGNS or len(operands) != 2 or None in operands:
        return None
    first, second = [f"({n})" if " " in n and operation in TIGHT else n for n in operands]
    text = (
        f"{first}²"
        if (operation, second) == ("power", "2")
        else (f"{first} {SIGNS[operation]} {second}")
    )
    return text if len(text) <= LONGEST else None


def numbered(names):
    """Return the names, with subscripts if several arrays have the same one: h₁, h₂."""
    count, seen, out = {}, {}, []
    for n in names:
        count[n] = count.get(n, 0) + 1
    for n in names:
        seen[n] = seen.get(n, 0) + 1
        text = f"({n})" if " " in n and (count[n] > 1 or not n.endswith("²")) else n
        out.append(text + _subscript(seen[n]) if count[n] > 1 else text)
    return out


def _subscript(number):
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(d)] for d in str(number))


def of_parameters(recorder, roots):
    """Return {id of a parameter: its name}.

    Args:
        recorder   the `Recorder` with the names of variables
        roots      modules. If there are several, the variable of a module precedes the names of its
                   parameters
    """
    found = {}
    for root in roots:
        variable = recorder.names.get(id(root))
        before = f"{variable.text}." if variable is not None and len(roots) > 1 else ""
        for name, p in root.named_parameters():
            found.setdefault(id(p), before + name)
    return found


def of_modules(roots):
    """Return {id of a module: label of its frame on the page}."""
    found = {}
    for root in roots:
        for name, m in root.named_modules():
            kind = type(m).__name__
            last = name.rsplit(".", 1)[-1]
            found.setdefault(id(m), f"{last}: {kind}" if last else kind)
    return found


def brief(value):
    """Return a short text for an input other than numbers: an index, an axis, a shape."""
    if isinstance(value, np.ndarray):
        flat = ", ".join(map(str, value.reshape(-1)[:8].tolist()))
        return f"[{flat}{', …' if value.size > 8 else ''}]"
    if isinstance(value, slice):
        ends = ["" if v is None else str(v) for v in (value.start, value.stop, value.step)]
        return ":".join(ends[:2]) + (f":{ends[2]}" if ends[2] else "")
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(brief, value)) + ")"
    return "…" if value is Ellipsis else str(value)[:40]
