"""Find rows of a Jacobian with a few evaluations of the rule, instead of one per element.

A guess is kept only if the rule confirms it for random gradients, so no pattern is assumed.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.trace.tape import pull

MOST = 2**24  # float32 counts exactly up to this number
CONFIRMATIONS = 3


class Rows(NamedTuple):
    """The rows of the Jacobian of a result y with respect to one input.

    Attributes:
        starts    position of the first slope of each element of y, and the number of all slopes
        columns   element of the input to which each slope belongs
        slopes    dy_i/dx_j, all rows one after the other
    """

    starts: np.ndarray
    columns: np.ndarray
    slopes: np.ndarray

    def dense(self, n_columns):
        """Return the rows as a matrix [elements of y, n_columns]."""
        matrix = np.zeros((len(self.starts) - 1, n_columns))
        matrix[self.owners(), self.columns] = self.slopes
        return matrix

    def owners(self):
        """Return the element of y to which each slope belongs."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def moved(step):
    """Return the rows of an operation that only moves the numbers of one input: reshape, slice, ...

    The result is a list with the `Rows` of each input, or None if the operation does more. The
    gradient 1, 2, 3, ... returns with each number at the position of its element.
    """
    n = step.y.size
    if n >= MOST:
        return None
    counted = np.arange(1, n + 1, dtype=step.y.dtype).reshape(step.y.shape)
    found = pull(step, counted, constants=True)
    inputs = [k for k, d in enumerate(found) if d is not None]
    if len(inputs) != 1:
        return None
    back = found[inputs[0]].reshape(-1)
    used = np.flatnonzero(back)
    order = back[used].astype(np.intp) - 1
    if len(used) != n or not np.array_equal(np.sort(order), np.arange(n)):
        return None
    columns = np.empty(n, np.intp)
    columns[order] = used
    rows = [None] * len(found)
    rows[inputs[0]] = Rows(np.arange(n + 1), columns, np.ones(n, step.y.dtype))
    return rows if _confirmed(step, rows) else None


def element_by_element(asked):
    """Return the rows of an operation in which each element depends on one element of each input.

    If inputs broadcast, one evaluation is needed for each position along the broadcast axes. It
    gives the slopes of all elements at this position, because no two of them share a source.

    Args:
        asked   list with the step itself, and the same step at other numbers

    Returns:
        a list with the `Rows` of each input, or None if the operation is of another kind
    """
    step = asked[0]
    places = _places(step)
    if places is None:
        return None
    columns, colour = places
    number = int(colour.max()) + 1
    if number > max(8, step.y.size // 4):
        return None
    slopes = [_slopes(s, columns, colour, number) for s in asked]
    rows = []
    for k, here in enumerate(slopes[0]):
        if here is None:
            rows.append(None)
            continue
        other = [s[k] for s in slopes[1:] if s is not None and s[k] is not None]
        seen = here != 0
        for o in other:
            seen |= np.isfinite(o) & (o != 0)
        starts = np.concatenate([[0], np.cumsum(seen)])
        rows.append(Rows(starts, columns[k][seen], here[seen]))
    return rows if _confirmed(step, rows) else None


def _places(step):
    """Return, for each input, the column of each element of y, and a colour for each element.

    Elements of one colour share no source. The result is None if an input cannot broadcast to y.
    """
    shape, columns, shared = step.y.shape, [], np.zeros(step.y.ndim, bool)
    for value in step.values:
        if not (isinstance(value, np.ndarray | np.floating | float)):
            columns.append(None)
            continue
        array = np.asarray(value)
        try:
            numbers = np.broadcast_to(np.arange(array.size).reshape(array.shape), shape)
        except ValueError:
            return None
        columns.append(numbers.reshape(-1))
        own = (1,) * (len(shape) - array.ndim) + array.shape
        shared |= [a == 1 and n > 1 for a, n in zip(own, shape, strict=True)]
    lengths = [n if s else 1 for n, s in zip(shape, shared, strict=True)]
    colour = np.broadcast_to(np.arange(int(np.prod(lengths))).reshape(lengths), shape)
    return columns, colour.reshape(-1)


def _slopes(step, columns, colour, number):
    """Return, for each input, dy_i/dx of the single source of each element i of y, or None."""
    found = [None] * len(step.values)
    for c in range(number):
        mine = np.flatnonzero(colour == c)
        g = np.zeros(step.y.shape, step.y.dtype)
        g.reshape(-1)[mine] = 1
        try:
            answer = pull(step, g, constants=True)
        except Exception:
            return None
        for k, d in enumerate(answer):
            if d is not None and columns[k] is not None:
                if found[k] is None:
                    found[k] = np.zeros(step.y.size, d.dtype)
                found[k][mine] = d.reshape(-1)[columns[k][mine]]
    return found


def _confirmed(step, rows):
    """Return whether the rule and these rows give the same result for random gradients."""
    rng = np.random.default_rng(0)
    for _ in range(CONFIRMATIONS):
        g = rng.normal(size=step.y.shape).astype(step.y.dtype)
        for d, r in zip(pull(step, g, constants=True), rows, strict=True):
            if (d is None) != (r is None):
                return False
            if r is None:
                continue
            parts = r.slopes * g.reshape(-1)[r.owners()].astype(np.float64)
            total = np.bincount(r.columns, parts, d.size)
            size = np.bincount(r.columns, np.abs(parts), d.size)
            room = 1e-12 + (1e-5 if d.dtype == np.float32 else 1e-12) * size
            same = (np.abs(total - d.reshape(-1)) <= room) | ~np.isfinite(total)
            if not same.all():
                return False
    return True
