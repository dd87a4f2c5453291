"""Check that numbers are in a range, and otherwise raise an error that states the range."""

import math

import numpy as np


def is_number(value, whole=False):
    """Return True if `value` is a single real number, and whole if `whole` is True."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    return isinstance(value, kinds) and not isinstance(value, bool)


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
        if not is_number(value, whole):
            kind = "a whole number" if whole else "a number"
            raise TypeError(f"{owner}: {name} must be {kind}, got {_described(value)}")
        inside = (
            (least is None or value >= least)  # NaN is in no range
            and (most is None or value <= most)
            and (above is None or value > above)
            and (below is None or value < below)
        )
        if not inside or value != value:
            left = f"{least} <= " if least is not None else f"{above} < " * (above is not None)
            right = f" <= {most}" if most is not None else f" < {below}" * (below is not None)
            expected = f"{left}{name}{right}" if left or right else f"a number as {name}"
            raise ValueError(f"{owner}: expected {expected}, got {name}={value!r}")


def _described(value):
    """Return a value that is not a number, and its type, or only its type if the text is long."""
    text = repr(value)
    if value is None:
        return text
    kind = type_with_article(value)
    return kind if len(text) > 60 or "\n" in text else f"{text}, {kind}"


def type_with_article(value):
    """Return the name of the type of `value` with its article, such as "a list" or "an int"."""
    return with_article(type(value).__name__)


def with_article(name):
    """Return the name of a class with its article."""
    return f"{'an' if name[0] in 'aeiouAEIOU' or name == 'ndarray' else 'a'} {name}"


def check_interval(owner, name, pair, least, most=math.inf, *, whole=False):
    """Check that `pair` is (low, high) with least <= low <= high <= most.

    Args:
        owner   name of the function or class that checks its argument
        name    name of the argument
        pair    the value
        least   smallest number allowed
        most    largest number allowed
        whole   True: only whole numbers are allowed

    Raises:
        TypeError: the value is not a pair of numbers
        ValueError: a number is outside the range, or low exceeds high
    """
    kinds = "iu" if whole else "iuf"
    if np.shape(pair) != (2,) or np.asarray(pair).dtype.kind not in kinds:
        kind = "whole numbers" if whole else "numbers"
        raise TypeError(f"{owner}: {name} must be two {kind} (low, high), got {pair!r}")
    if not least <= pair[0] <= pair[1] <= most:
        end = f" <= {most}" if most < math.inf else ""
        raise ValueError(
            f"{owner}: expected {least} <= {name}[0] <= {name}[1]{end}, got {name}={pair!r}"
        )
