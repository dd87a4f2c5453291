"""Functions that others wrote get their arrays read-only.

A rule that writes into g gives the right gradient, and a wrong one to the other operations that g
arrives at; a function that writes into x changes the weights of whoever calls it. Neither shows up
where it is done. So what is not the library's own gets views that cannot be written to. (Only
np.add.at and its like write into them all the same, up to NumPy 2.4.)
"""

from functools import wraps

import numpy as np

LIBRARY = __name__.partition(".")[0]


class WrittenError(ValueError):
    """A function or a rule writes into what it was given."""


def protected(f, name, what):
    """f, called with read-only views of arrays; None and what the library wrote as they are.

    name: of the operation. what: "function" or "rule". Raises WrittenError if f writes.
    """
    if f is None or (getattr(f, "__module__", None) or "").partition(".")[0] == LIBRARY:
        return f

    @wraps(f)
    def guarded(*inputs, **options):
        try:
            y = f(*map(read_only, inputs), **{k: read_only(v) for k, v in options.items()})
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            given = (
                "the arrays that it is given, g, y or an input" if what == "rule" else "an input"
            )
            raise WrittenError(
                f"{name}: its {what} writes into {given}, which others need as they are. Write "
                f"x = x * 2 in place of x *= 2, np.where in place of x[...] = 0, or into a copy, "
                f"x.copy()"
            ) from error
        if isinstance(y, np.ndarray) and not y.flags.writeable and shares(y, inputs):
            y.flags.writeable = True  # a view of an input is as writeable as the input
        return y

    return guarded


def shares(y, inputs):
    """Whether y is a view of a writeable array among the inputs."""
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.flags.writeable]
    return any([np.may_share_memory(y, x) for x in arrays])


def read_only(x):
    """An array, or each array in a list, as a view that cannot be written to."""
    if isinstance(x, list | tuple) and type(x) in (list, tuple):
        return type(x)(read_only(v) for v in x)
    if type(x) is not np.ndarray:
        return x
    x = x.view()
    x.flags.writeable = False
    return x
