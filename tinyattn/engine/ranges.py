"""Check that numbers are in a range, and otherwise raise an error that states the range."""

import numpy as np


def check_range(
    owner,
    least=None,
    most=None,
    *,
    above=None,
    below=None,
    whole=False,
    optional=(),
    **numbers,
):
    """Check that each of `numbers` is a number in a range, and raise an error otherwise.

    Args:
        owner      name of the function or class that checks its arguments
        least      smallest number allowed, or None
        most       largest number allowed, or None
        above      number that must be exceeded, or None
        below      number that must not be reached, or None
        whole      True: only whole numbers are allowed
        optional   names of the arguments that may be None
        numbers    the arguments by name

    Raises:
        TypeError: a value is not a number, or not a whole number
        ValueError: a number is outside the range
    """
    for name, value in numbers.items():
        if value is None and name in optional:
            continue
        kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
        if not isinstance(value, kinds) or isinstance(value, bool):
            kind = "a whole number" if whole else "a number"
            of = "" if value is None else f", a {type(value).__name__}"
            raise TypeError(f"{owner}: {name} must be {kind}, got {value!r}{of}")
        inside = (
            (least is None or value >= least)  # nan is in no range
            and (most is None or value <= most)
            and (above is None or value > above)
            and (below is None or value < below)
        )
        if not inside or value != value:
            left = f"{least} <= " if least is not None else f"{above} < " * (above is not None)
            right = f" <= {most}" if most is not None else f" < {below}" * (below is not None)
            expected = f"{left}{name}{right}" if left or right else f"a number as {name}"
            raise ValueError(f"{owner}: expected {expected}, got {name}={value!r}")
