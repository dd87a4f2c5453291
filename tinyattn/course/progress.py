"""One line of progress for long loops, which leaves only a final line without timings."""

import sys
import time

INTERVAL = 0.1  # seconds between two redraws
MIME = "application/x-tinyattn-progress"  # marks the line for the deck, which leaves it out


def progress(iterable, label="progress"):
    """Yield the items of `iterable` and show how far the loop is.

    A terminal and a notebook show a moving line; what stays, and what a committed notebook
    keeps, is one line that is the same in every run: "training: 200 of 200".
    """
    total = len(iterable) if hasattr(iterable, "__len__") else None
    line = _notebook_line() or _terminal_line()
    done, drawn = 0, 0.0
    try:
        for item in iterable:
            if time.perf_counter() - drawn > INTERVAL:
                line(_text(label, done, total), final=False)
                drawn = time.perf_counter()
            yield item
            done += 1
    finally:
        line(_text(label, done, total), final=True)


def _text(label, done, total):
    return f"{label}: {done}" if total is None else f"{label}: {done} of {total}"


def _notebook_line():
    """A display that is updated in place, or None outside a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    handle = None

    def line(text, final):
        nonlocal handle
        shown = {"text/plain": text, MIME: ""}
        if handle is None:
            handle = display(shown, raw=True, display_id=True)
        else:
            handle.update(shown, raw=True)

    return line


def _terminal_line():
    """Moves on the error stream if that is a screen; the final line goes to standard output."""
    moving = sys.stderr.isatty()

    def line(text, final):
        if moving:
            sys.stderr.write("\r\x1b[K" + ("" if final else f"  {text}"))
            sys.stderr.flush()
        if final:
            print(text)

    return line
