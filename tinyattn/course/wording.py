"""Figures as the words of a claim: 100% without a decimal, "exactly 0", and lists with "and"."""

import re


def percent(share, digits=1):
    """Return a fraction as a percentage in text, such as "97.5%".

    Args:
        share    fraction, from 0 to 1
        digits   number of decimals to which the percentage is rounded. "0%" and "100%" are written
                 without decimals
    """
    number = f"{100 * share:.{digits}f}"
    return f"{abs(float(number)):.0f}%" if float(number) in (0, 100) else f"{number}%"


def at_least(share, digits=1):
    """Return a lower bound of a fraction as text, "at least 97.5%", or "100%" if it rounds to that.

    Args:
        share    lower bound, from 0 to 1
        digits   as in `percent`
    """
    text = percent(share, digits)
    return text if text == "100%" else f"at least {text}"


def difference(size):
    """Return the size of a difference as text with one digit, such as "3e-15", or "exactly 0".

    Args:
        size   the difference, a number >= 0
    """
    return short_exponents(f"{size:.0e}") if size else "exactly 0"


def short_exponents(text):
    """Return the text with 3e-9 instead of Python's 3e-09."""
    return re.sub(r"(\d)e-0(\d)", r"\1e-\2", text)


def listed(items):
    """Return the items as text with commas, and with "and" before the last one: "1, 2 and 3".

    Args:
        items   list of values or texts, at least one. A single item is returned as text

    Raises:
        ValueError: there are no items
    """
    items = [*items]
    if not items:
        raise ValueError("listed: items is empty. Pass at least one item")
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last
