"""The report that every check returns."""

import textwrap
from dataclasses import dataclass, field

import numpy as np

WIDTH = 88  # characters; JupyterLab would break longer lines in the middle of a word


@dataclass(frozen=True)
class Report:
    """The outcome of a check. It is true if the check passed, and its text shows the comparison.

    Attributes:
        passed     whether the check passed
        text       the comparison, the position of the largest difference, and possible causes
        error      the largest difference, relative to the size of the numbers that were compared.
                   For `trains`, the last loss relative to the first
        compared   the number of values that were compared or, for `trains`, trained
        causes     possible causes, the likeliest first, empty if the check passed
    """

    passed: bool
    text: str
    error: float = 0.0
    compared: int = 0
    causes: tuple = field(default=(), repr=False)

    def __bool__(self):
        return self.passed

    def __repr__(self):
        return self.text

    def expect(self):
        """Return the report, or raise AssertionError with its text if the check failed."""
        if not self.passed:
            raise AssertionError("\n" + self.text)
        return self


def wrapped(text, indent=""):
    """Return a text with long lines broken between words. New lines begin with `indent`."""
    return "\n".join(
        textwrap.fill(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        for line in text.split("\n")
    )


def at(name, index):
    """Return how code names an element: `name`[0, 2], or only `name` if `index` is empty."""
    return f"{name}[{', '.join(str(int(i)) for i in index)}]" if len(index) else name


def number(v):
    """Format a value with few digits, but enough to show a difference of 1%."""
    return (
        np.format_float_positional(v, 6, fractional=False, trim="-")
        if (1e-4 <= abs(v) < 1e7 or v == 0)
        else f"{v:.4g}"
    )


def name_of(f):
    """Return the name of a function for texts."""
    name = getattr(f, "__name__", None) or type(f).__name__
    return "the function" if name == "<lambda>" else name


def check_callable(name, f):
    """Raise TypeError unless f, the first argument of the check `name`, can be called."""
    if not callable(f):
        raise TypeError(
            f"{name}: f must be a function or a module, got {type(f).__name__}. Write {name}(f, x)"
        )


def one_result(name, y):
    """Return y, the result of f in the check `name`, or raise TypeError unless it is one result."""
    if isinstance(y, tuple | list):
        raise TypeError(
            f"{name}: f returns several results. Check one of them, for example lambda x: f(x)[0]"
        )
    if y is None:
        raise TypeError(f"{name}: f returned None. Did you forget its `return`?")
    if isinstance(y, dict):
        raise TypeError(
            f'{name}: f returns a dict. Check one entry, such as lambda x: f(x)["name"]'
        )
    return y


def check_floating(name, y):
    """Raise TypeError unless the array y, a result in the check `name`, is floating point."""
    if y.dtype.kind != "f":
        raise TypeError(
            f"{name}: f must return floating-point numbers, got {y.dtype}. Check numbers that are "
            "not yet rounded or compared, or convert them with .astype(float)"
        )
