"""One line of progress that moves in place, in a terminal and in a notebook."""

import math
import sys
import time
from contextlib import contextmanager

REDRAW = 0.1  # seconds between two looks of the moving line


@contextmanager
def moving_line(quiet, final, marks=()):
    """A function that shows a text in place of the one before; at the end `final()` stays.

    What stays has no timings in it, so that a notebook that ran again has the same output.
    marks: names of further (empty) representations of the line in a notebook, to find it by.
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
    """A display that is updated in place, or None outside a notebook."""
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
    """Moves on the error stream if that is a screen; what stays goes to standard output."""
    moving = sys.stderr.isatty()

    def write(text, stays):
        if moving:
            sys.stderr.write("\r\x1b[K" + ("" if stays else f"  {text}"))
            sys.stderr.flush()
        if stays:
            print(text)

    return write


MIME = "application/x-tinyattn-progress"  # marks the line for the deck, which leaves it out


def progress(iterable, label="progress"):
    """Yield the items of `iterable` and show how far the loop is.

    A terminal and a notebook show a moving line; what stays, and what a committed notebook
    keeps, is one line that is the same in every run: "training: 200 of 200".
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
