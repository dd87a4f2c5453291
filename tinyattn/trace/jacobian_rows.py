"""Find the inputs of each element of a result: row i of the Jacobian.

    dy_i / dx_j = rule(e_i, y, x)_j        e_i is 1 at element i and 0 elsewhere

No operation is described by hand: its own rule gives the rows for one-hot gradients.
"""

import numpy as np

from tinyattn.engine.autograd import no_grad
from tinyattn.trace.fast_rows import Rows, element_by_element, moved
from tinyattn.trace.forward import run
from tinyattn.trace.tape import pull

# If y and the inputs have few elements (up to this product), a rule is evaluated MANY times.
SMALL = 20_000
FEW, MANY = 2, 8  # number of extra evaluations of a rule at other numbers
# Elements of y that are evaluated at other numbers first. If they show nothing new, the others are
# evaluated only at the numbers of the step.
SAMPLE = 24


class TooManyEntries(Exception):
    """The error for rows with many more entries than the page has room for."""


def rows_of(step, function, room=np.inf):
    """Return a list with the `Rows` of each input of a step, or None for an input without slopes.

    A source whose slope happens to be 0 (a dead relu, the elements that are not the maximum, a
    factor 0) is still a source. It is found by evaluating the rule at other numbers, too. Two kinds
    of rows are found with few evaluations, and kept only if random gradients confirm them. All
    others need one evaluation for each element.

    Args:
        step       the `Step`
        function   function of its operation. If None, the rule is evaluated only at the step's own
                   numbers
        room       number of entries that the page has room for

    Raises:
        TooManyEntries: a sample of the rows has twice as many entries as there is room for, in
            proportion
    """
    with np.errstate(all="ignore"), no_grad():
        asked = [step, *_elsewhere(step, function)]
        if step.y.size > FEW:
            quick = moved(step) or element_by_element(asked)
            if quick is not None:
                return quick
        return _one_by_one(asked, room)


def _one_by_one(asked, room=np.inf):
    n = asked[0].y.size
    if n > 4 * SAMPLE:
        sample = np.linspace(0, n - 1, SAMPLE).astype(int)
        here, everywhere = _answers(asked[:1], sample), _answers(asked, sample)
        if sum(len(r.columns) for r in here if r is not None) / SAMPLE * n > 2 * room:
            raise TooManyEntries  # before all rows are computed, which may take minutes
        if all(_same_sources(a, b) for a, b in zip(here, everywhere, strict=True)):
            asked = asked[:1]
    return _answers(asked, range(n))


def _same_sources(a, b):
    return (a is None and b is None) or np.array_equal(a.columns, b.columns)


def _answers(asked, elements):
    """Return the rows of some elements of y, from the rules of all steps in `asked`."""
    found = [[] for _ in asked[0].values]  # for each input and each i: (columns, slopes)
    # separate arrays, because a rule may return a view of its g
    g = [np.zeros(s.y.shape, s.y.dtype) for s in asked]
    for i in elements:
        rows = []
        for s, one in zip(asked, g, strict=True):
            one.reshape(-1)[i] = 1
            rows.append(_row(s, one, must=s is asked[0]))
        for k, row in enumerate(zip(*rows, strict=True)):
            found[k].append(_sources(*row))
        for one in g:
            one.reshape(-1)[i] = 0
    return [_joined(f) for f in found]


def _row(step, g, must):
    try:
        return [None if d is None else d.reshape(-1).copy() for d in pull(step, g, constants=True)]
    except Exception:
        if must:
            raise
        return [None] * len(step.values)


def _sources(here, *elsewhere):
    if here is None:
        return None
    seen = here != 0  # nan counts as different from 0
    for row in elsewhere:
        if row is not None and row.shape == here.shape:
            seen |= np.isfinite(row) & (row != 0)
    columns = np.flatnonzero(seen)
    return columns, here[columns]


def _joined(found):
    if not found or all(f is None for f in found):
        return None
    found = [f or (np.zeros(0, int), np.zeros(0)) for f in found]
    starts = np.concatenate([[0], np.cumsum([len(c) for c, _ in found])])
    return Rows(
        starts, np.concatenate([c for c, _ in found]), np.concatenate([s for _, s in found])
    )


def _elsewhere(step, function):
    """Yield the same step at other inputs, its own numbers reordered, scaled and partly negated."""
    if function is None:
        return
    work = step.y.size * sum(np.size(v) for v in step.values if isinstance(v, np.ndarray))
    rng = np.random.default_rng(0)
    for attempt in range(MANY if work <= SMALL else FEW):
        values = [_drawn(v, rng, -1 if attempt % 2 else 1) for v in step.values]
        try:
            y, options = run(function, step, values)
        except Exception:
            continue
        if y.shape == step.y.shape:
            yield step._replace(values=values, options=options, y=y.astype(step.y.dtype))


def _drawn(x, rng, sign):
    if not (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
        return x
    x = rng.permutation(x.reshape(-1)).reshape(x.shape)
    x = sign * x * rng.uniform(0.5, 1, x.shape).astype(x.dtype)
    return np.where(x == 0, rng.uniform(0.1, 0.9, x.shape).astype(x.dtype), x).astype(x.dtype)
