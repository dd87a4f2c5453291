"""Store rows in few numbers, with patterns that are found by comparison, never assumed.

columns   equal steps from the first column of a row, with the same step in every row
slopes    one number for all, one for each row, the same in every row, or (in products) the values
          of another input
"""

import numpy as np


def packed(step, rows):
    """Return the rows of each input as a dictionary that the page can read, or None without rows.

    The arguments are the `Step` and the list `rows` of its `Rows`. The dictionary has the following
    entries:

    n       number of slopes in every row. If the rows differ, `starts` is given instead
    first   the first column of each row, or "i" if it is the index of the row
    offset  distance from each column to the next, if it is always the same, or else a list with
            the distance of each column from the first. `columns` lists all columns instead if there
            is no pattern
    slope   one number for all slopes. Otherwise, `row` is a number for each row, `same` is one row
            for all, `partner` is the input with the slopes as its values, or `slopes` lists all
            slopes
    """
    out = []
    for k, r in enumerate(rows):
        if r is None:
            out.append(None)
            continue
        equal = _equal(r)
        columns = {"starts": r.starts.astype(np.int32), "columns": _ints(r.columns)}
        out.append((_columns(r, equal) if equal else columns) | _slopes(step, rows, k, equal))
    return out


def _equal(r):
    """Return the number of slopes in each row, if it is the same in all rows and not 0."""
    lengths = np.diff(r.starts)
    return int(lengths[0]) if len(lengths) and (lengths == lengths[0]).all() else 0


def _columns(r, n):
    columns = r.columns.reshape(-1, n)
    first, offsets = columns[:, 0], columns - columns[:, :1]
    if not (offsets == offsets[0]).all():
        return {"n": n, "columns": _ints(r.columns)}
    steps = set(np.diff(offsets[0]).tolist()) or {1}
    offset = steps.pop() if len(steps) == 1 else _ints(offsets[0])
    own = (first == np.arange(len(first))).all()
    return {"n": n, "first": "i" if own else _ints(first), "offset": offset}


def _slopes(step, rows, k, n):
    slopes = rows[k].slopes
    if len(slopes) and (slopes == slopes[0]).all():
        return {"slope": float(slopes[0])}
    if n:
        partner = _partner(step, rows, k, n)
        if partner is not None:
            return {"partner": partner}
        table = slopes.reshape(-1, n)
        if n > 1 and (table == table[:, :1]).all():
            return {"row": _floats(table[:, 0])}
        if len(table) > 1 and (table == table[0]).all():
            return {"same": _floats(table[0])}
    return {"slopes": _floats(slopes)}


def _partner(step, rows, k, n):
    """Return the index of an input whose values are the slopes of input k, as in a product."""
    for p, other in enumerate(rows):
        if p != k and other is not None and _equal(other) == n:
            values = np.asarray(step.values[p]).reshape(-1)
            if np.array_equal(values[other.columns], rows[k].slopes):
                return p
    return None


def _ints(a):
    return np.asarray(a, np.int32)


def _floats(a):
    return np.asarray(a, np.float32)
