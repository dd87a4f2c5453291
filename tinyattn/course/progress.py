"""One line of progress for long loops, which leaves only a final line without timings."""

from tinyattn.progress import moving_line

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
