"""A progress line that is updated in place, in a terminal and in a notebook."""

import math
import sys
import time
from contextlib import contextmanager

from tinyattn.engine.ranges import is_number

REDRAW = 0.1  # seconds between two updates of the line


@contextmanager
def moving_line(quiet, final, marks=()):
    """Show a line of text that is replaced during a block, and a final text after the block.

        with moving_line(False, lambda: "done") as show:
            show("step 1")

    The line changes at most once in 0.1 seconds, so some of the texts are never shown. The final
    text should contain no timings, so that a notebook has the same output if it is run again.

    Args:
        quiet   True: show nothing
        final   function without arguments that returns the final text
        marks   MIME types with which the line is marked in a notebook, so that programs that read
                the notebook can find it
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
    """Return a function write(text, stays) that updates a notebook's line, or None elsewhere."""
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
    """Return a function write(text, stays), which prints the final text (`stays` is True).

    Other texts are written to the error stream if it is a terminal, and are dropped otherwise.
    """
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
    """Yield the items of `iterable`, and show in a line how many have been processed.

    The line is updated in place, and a text such as "training: 200 of 200" remains at the end. This
    text is the same in every run, so it can be committed with a notebook.

    Args:
        iterable   items of the loop. If it has no length, like a generator, only the number of
                   processed items is shown, without the total
        label      text at the beginning of the line

    Raises:
        TypeError: `iterable` is not something to loop over (raised when the loop begins)
    """
    try:
        items = iter(iterable)
    except TypeError:
        whole = is_number(iterable, whole=True)
        advice = (
            f"Write progress(range({iterable}))" if whole else "Pass a list, a range or an array"
        )
        raise TypeError(
            f"progress: iterable must be something to loop over, got {iterable!r}. {advice}"
        ) from None
    total = len(iterable) if hasattr(iterable, "__len__") else None
    done = 0

    def text():
        return f"{label}: {done}" if total is None else f"{label}: {done} of {total}"

    with moving_line(False, text, marks=[MIME]) as show:
        for item in items:
            show(text())
            yield item
            done += 1
