"""Read-only arrays for functions that are not part of the library.

A rule that writes into g returns the right gradient, but the other operations that receive g get a
wrong one. A function that writes into x changes its caller's weights. Neither effect is visible
where it is caused, so functions outside the library receive views that cannot be written to. Up to
NumPy 2.4, np.add.at and similar functions still write into them. Inside a block of `comparing`, the
arrays are compared with their earlier values. This finds such functions too, but takes time.
"""

from contextlib import contextmanager
from functools import wraps
from threading import local

import numpy as np

LIBRARY = __name__.partition(".")[0]


class WrittenError(ValueError):
    """An error for a function or rule that writes into its arguments."""


class _Comparing(local):
    on = False


_comparing = _Comparing()


@contextmanager
def comparing():
    """Also find functions that write into read-only arrays, in this block and this thread."""
    before, _comparing.on = _comparing.on, True
    try:
        yield
    finally:
        _comparing.on = before


def protected(f, name, what):
    """Return f with read-only views as arguments, unless it is None or part of the library.

    The returned function raises WrittenError if f writes into an argument. Its message contains
    the `name` of the operation and `what`, which is "function" or "rule", whichever f is.
    """
    if f is None or (getattr(f, "__module__", None) or "").partition(".")[0] == LIBRARY:
        return f

    @wraps(f)
    def guarded(*inputs, **options):
        before = _copies(inputs) if _comparing.on else None
        try:
            y = f(*map(read_only, inputs), **{k: read_only(v) for k, v in options.items()})
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise _written(name, what) from error
        if before is not None and before != _copies(inputs):
            raise _written(name, what)
        if isinstance(y, np.ndarray) and not y.flags.writeable and shares(y, inputs):
            y.flags.writeable = True  # a view of an input is as writeable as the input
        return y

    return guarded


def _copies(inputs):
    """Return the bytes of each array among the inputs."""
    return [x.tobytes() for x in inputs if isinstance(x, np.ndarray)]


def _written(name, what):
    given = "one of its arguments (g, y or an input)" if what == "rule" else "an input"
    return WrittenError(
        f"{name}: its {what} writes into {given}, which other code still needs. Write x = x * 2 "
        "instead of x *= 2, np.where instead of x[...] = 0, or write into a copy, x.copy()"
    )


def shares(y, inputs):
    """Return whether y is a view of a writeable array among the inputs."""
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.flags.writeable]
    return any([np.may_share_memory(y, x) for x in arrays])


def read_only(x):
    """Return an array, or each array in a list, as a view that cannot be written to."""
    if isinstance(x, list | tuple) and type(x) in (list, tuple):
        return type(x)(read_only(v) for v in x)
    if type(x) is not np.ndarray:
        return x
    x = x.view()
    x.flags.writeable = False
    return x
