"""Find the function behind an operation, and measure slopes with it."""

import sys
from types import FunctionType

import numpy as np

# step of central differences, the same as in check.gradcheck
STEP = np.finfo(np.float64).eps ** (1 / 3)
COLUMNS = 12  # number of input elements to vary if there are too many for all
ENTRIES = 6_000  # a step with at most this many slopes is measured completely
RTOL, ATOL = 1e-3, 1e-5  # float32 rules differ in the sixth digit, wrong rules in the first


def function_of(operation, seen=None):
    """Return the NumPy function behind an operation, or None if it cannot be found.

    Args:
        operation   the operation
        seen        {operation: function}, recorded during the run. For other operations, the
                    function is searched for among the names in the file of their rules
    """
    if seen and operation in seen:
        return seen[operation]
    for space in _spaces(operation):
        for value in list(space.values()):
            for primitive in primitives_of(value):
                if primitive.operation is operation:
                    return primitive.__wrapped__
    return None


def primitives_of(value):
    """Return a list of the primitives behind a value of any type: itself, or its implementations.

    A primitive is the result of `ta.primitive` for a function. For other values, the list is empty.
    """
    if type(value) is not FunctionType:
        return []
    each = vars(value).get("implementations", {"": value}).values()
    return [f for f in each if {"operation", "__wrapped__"} <= getattr(f, "__dict__", {}).keys()]


def _spaces(operation):
    """Yield the global names, {name: value}, of the files that define an operation's rules."""
    rules = [operation.joint] if operation.joint is not None else list(operation.rules)
    for rule in rules:
        for f in [rule, *_enclosed(rule)]:
            if hasattr(f, "__globals__"):
                yield f.__globals__
    main = sys.modules.get("__main__")
    if main is not None:
        yield vars(main)


def _enclosed(f):
    """Return the functions that a closure refers to."""
    for cell in getattr(f, "__closure__", None) or ():
        try:
            if callable(cell.cell_contents):
                yield cell.cell_contents
        except ValueError:  # the cell variable was never assigned
            continue


def run(function, step, values):
    """Run the operation of a step on other values, and return (y, options for its rule).

    Args:
        function   function of the operation
        step       the `Step`, whose options are used
        values     inputs of the function
    """
    with np.errstate(all="ignore"):
        # a compiled kernel also returns the arrays that its rule needs
        if "residuals" in step.options:
            y, residuals = function(*values)
            return np.asarray(y), step.options | {"residuals": residuals}
        return np.asarray(function(*values, **step.options)), step.options


def measured_through(tape, functions, tensor, element):
    """Return dL/dx for one element x of a leaf, from the results for a larger and a smaller x.

    Args:
        tape        the `Tape` that leads to L
        functions   {operation: its function}
        tensor      the leaf, an array that no step of the tape computed
        element     index of x in the flattened leaf

    Returns:
        the central difference, a float, or None if the function of an operation is unknown
    """
    if any(functions.get(s.operation) is None for s in tape.steps):
        return None
    x = tape.copy_of(tensor).astype(np.float64)
    h = STEP * max(1.0, abs(float(x.flat[element])))
    ends = []
    for sign in (1, -1):
        moved = x.copy()
        moved.flat[element] += sign * h
        new = {id(tensor): moved}
        for s in tape.steps:
            values = [new.get(id(i), _double(v)) for i, v in zip(s.inputs, s.values, strict=True)]
            new[id(s.tensor)] = run(functions[s.operation], s, values)[0]
        ends.append(float(new[id(tape.root)].reshape(-1)[0]))
    return (ends[0] - ends[1]) / (2 * h)


class Measured:
    """The slopes dy/dx of a step with respect to one input, by central differences.

    Args:
        function   function of the step's operation
        step       the `Step`
        k          index of the input x

    Attributes:
        columns    elements of x that were changed: all, or a random selection of a large x
        slopes     measured slopes [elements of y, columns]
    """

    def __init__(self, function, step, k):
        self._function, self._step, self._k = function, step, k
        self._values = [_double(v) for v in step.values]
        self._x = np.array(self._values[k], np.float64)
        n, m = step.y.size, self._x.size
        few = m if n * m <= ENTRIES else COLUMNS
        self.columns = np.arange(m) if few >= m else np.random.default_rng(0).choice(m, few, False)
        self.slopes = np.empty((n, len(self.columns)))
        with np.errstate(all="ignore"):
            for c, j in enumerate(self.columns):
                h = self._h(j)
                self.slopes[:, c] = (self._at(j, h) - self._at(j, -h)) / (2 * h)

    def _h(self, j):
        return STEP * max(1.0, abs(float(self._x.flat[j])))

    def _at(self, j, h):
        x = self._x.copy()
        x.flat[j] += h
        values = list(self._values)
        values[self._k] = x
        return run(self._function, self._step, values)[0].astype(np.float64).reshape(-1)

    def wrong(self, slopes):
        """Return a bool array of where the rule's slopes differ from the measured ones.

        Args:
            slopes   slopes by the rule [elements of y, columns]
        """
        with np.errstate(all="ignore"):
            largest = np.abs(self.slopes[np.isfinite(self.slopes)]).max(initial=0)
            room = RTOL * np.maximum(np.abs(slopes), np.abs(self.slopes)) + ATOL * (1 + largest)
            both = np.isfinite(self.slopes) & np.isfinite(slopes)
            wrong = both & (np.abs(slopes - self.slopes) > room)
            for c in np.flatnonzero(wrong.any(axis=0)):
                low, high = self._range(self.columns[c])
                wrong[:, c] &= (slopes[:, c] < low) | (slopes[:, c] > high)
        return wrong

    def _range(self, j):
        """Return the (lowest, highest) correct slope for element j of x.

        At a kink, the range reaches from the slope on one side to the slope on the other. Where
        the function is steep, the range covers the results of differences with another step.
        """
        h, here = self._h(j), self._at(j, 0)
        sides = (self._at(j, h) - here) / h, (here - self._at(j, -h)) / h
        wider = (self._at(j, 8 * h) - self._at(j, -8 * h)) / (16 * h)
        middle = (sides[0] + sides[1]) / 2
        apart = np.abs(wider - middle)
        room = RTOL * (1 + np.abs(sides[0] - sides[1])) + apart
        beside_a_pole = apart > 0.1 * np.maximum(1e-3, np.minimum(np.abs(wider), np.abs(middle)))
        room = np.where(beside_a_pole | ~np.isfinite(room), np.inf, room)
        return np.minimum(*sides) - room, np.maximum(*sides) + room


def _double(value):
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return value.astype(np.float64) if is_float else value
