"""A progress line that is updated in place, in a terminal and in a notebook."""

import math
import sys
import time
from contextlib import contextmanager

REDRAW = 0.1  # seconds between two updates of the line


@contextmanager
def moving_line(quiet, final, marks=()):
    """Return a function that replaces the displayed text. At the end, `final()` remains.

    The final text contains no timings, so a notebook that runs again has the same output. `marks`
    are the names of additional, empty representations of the line in a notebook, by which it can be
    found.
    """
    write, last = _notebook_line(marks) or _terminal_line(), -math.inf

    def show(text):
        nonlocal last
        if not quiet and time.perf_counter() - last > REDRAW:
            write(text, stays=False)
            last = time.perf_counter()

    try:
        yield show
    finally:
        if not quiet:
            write(final(), stays=True)


def _notebook_line(marks):
    """Return a display that is updated in place, or None outside a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    handle = None

    def write(text, stays):
        nonlocal handle
        shown = {"text/plain": text, **dict.fromkeys(marks, "")}
        if handle is None:
            handle = display(shown, raw=True, display_id=True)
        else:
            handle.update(shown, raw=True)

    return write


def _terminal_line():
    """Write to the error stream if it is a screen, and the final text to standard output."""
    moving = sys.stderr.isatty()

    def write(text, stays):
        if moving:
            sys.stderr.write("\r\x1b[K" + ("" if stays else f"  {text}"))
            sys.stderr.flush()
        if stays:
            print(text)

    return write


MIME = "application/x-tinyattn-progress"  # marks the line, so that the deck leaves it out


def progress(iterable, label="progress"):
    """Yield the items of `iterable` and show the progress of the loop.

    The line is updated in place, and "training: 200 of 200" remains at the end. This text is the
    same in every run, so it can be committed with a notebook.

    Args:
        iterable   items of the loop
        label      text at the beginning of the line
    """
    total = len(iterable) if hasattr(iterable, "__len__") else None
    done = 0

    def text():
        return f"{label}: {done}" if total is None else f"{label}: {done} of {total}"

    with moving_line(False, text, marks=[MIME]) as show:
        for item in iterable:
            show(text())
            yield item
            done += 1
