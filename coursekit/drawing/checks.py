"""Check the requirements for a drawing that a program can check. Look at the drawing, too."""

import re
from math import ceil, hypot

NEAR = 4  # words and a line must be this many pixels apart
MOST_STEPS = 7


def problems(drawing):
    """Return all problems of a drawing, such as words on words or lines, one line for each
    problem.
    """
    return [
        *_on_the_page(drawing),
        *_words_on_words(drawing),
        *_words_on_lines(drawing),
        *_words_and_boxes(drawing),
        *_lines_across_boxes(drawing),
        *_frame(drawing),
    ]


def contrast(one, other):
    """Return the contrast of two colours by WCAG 2, from 1 to 21. Words need 4.5, and lines 3."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color):
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _on_the_page(d):
    for label, (x0, y0, x1, y1), *_ in d.words:
        if min(x0, y0) < 0 or x1 > d.width or y1 > d.height:
            yield f"{label!r} leaves the page"
    for box, kind, part in d.boxes:
        if min(box.left, box.top) < 0 or box.right > d.width or box.bottom > d.height:
            yield f"{kind} {part} leaves the page"


def _words_on_words(d):
    for k, (a, one, *_) in enumerate(d.words):
        for b, other, *_ in d.words[k + 1 :]:
            if _overlap(one, other, -1):
                yield f"{a!r} overlaps {b!r}"


def _words_on_lines(d):
    for label, rect, _, own in d.words:
        for a, b, part, _ in d.lines if own is None else ():
            points = ceil(hypot(b[0] - a[0], b[1] - a[1]) / 3) + 1
            along = (
                (a[0] + (b[0] - a[0]) * t / points, a[1] + (b[1] - a[1]) * t / points)
                for t in range(points + 1)
            )
            if any(_overlap(rect, (x, y, x, y), NEAR) for x, y in along):
                yield f"{label!r} overlaps the line {part} from {_place(a)} to {_place(b)}"


def _words_and_boxes(d):
    """Check that words are either inside a box, with some room, or outside of it."""
    for label, rect, _, own in d.words:
        for box, kind, part in d.boxes:
            edge = (box.left, box.top, box.right, box.bottom)
            if box is own:
                if not _inside(rect, edge, 3):
                    yield f"{label!r} is too large for its box {part}"
            elif _overlap(rect, edge, 0) and not _inside(rect, edge, 0):
                yield f"{label!r} crosses the edge of {kind} {part}"


def _lines_across_boxes(d):
    """Check that a line begins and ends at a box, or enters a frame, but does not cross a box."""
    for a, b, name, _ in d.lines:
        points = ceil(hypot(b[0] - a[0], b[1] - a[1]) / 3) + 1
        for box, kind, part in d.boxes:
            if kind != "frame" and any(
                _within(
                    box, kind, a[0] + (b[0] - a[0]) * t / points, a[1] + (b[1] - a[1]) * t / points
                )
                for t in range(points + 1)
            ):
                yield f"the line {name} from {_place(a)} to {_place(b)} crosses {kind} {part}"


def _within(box, kind, x, y):
    """Return whether a point is at least 4 px inside a box."""
    if kind in ("op", "node", "picked"):
        return hypot(x - box.x, y - box.y) < box.width / 2 - 4
    return abs(x - box.x) < box.width / 2 - 4 and abs(y - box.y) < box.height / 2 - 4


def _frame(d):
    text = d.svg()
    if len(re.findall(r"[.!?](?:\s|$)", d.alt)) < 2 or len(d.alt) < 60:
        yield "the alt text must say in two sentences what flows where"
    steps = [int(k) for k in re.findall(r'class="step[^"]*" data-step="(\d+)"', text)]
    if steps != list(range(len(steps))) or len(steps) > MOST_STEPS + 1:
        yield f"steps must be 0, 1, 2, ... up to {MOST_STEPS}, got {steps}"
    if re.search(r"\s(id|style)=|<style|<marker|<use", text):
        yield "ids, styles and markers of two drawings on one page clash, so leave them out"


def _overlap(a, b, gap):
    return a[0] < b[2] + gap and b[0] < a[2] + gap and a[1] < b[3] + gap and b[1] < a[3] + gap


def _inside(a, b, room):
    return a[0] >= b[0] + room and a[1] >= b[1] - 1 and a[2] <= b[2] - room and a[3] <= b[3] + 1


def _place(point):
    return f"({point[0]:.0f}, {point[1]:.0f})"
