"""The drawings of the lectures, as cells show them."""

import re

from tinyattn.course.drawing_shown import SavedDrawing, shown
from tinyattn.course.project import CourseError, find_root

FOLDER = "lectures/figures"


def drawing(name, until=None, focus=(), root=None):
    """Show the drawing `lectures/figures/<name>.svg`, step by step with key presses in a deck.

    Args:
        name    name of the drawing
        until   number of the last step that is shown, without key presses. If None, a deck shows
                all steps, one after each key press
        focus   name or names of the parts that keep their colour, while all others are pale. If
                empty, all parts do
        root    folder of the project. If None, look for it in the working folder and above

    Raises:
        CourseError: there is no such drawing
        ValueError: the drawing has no such part
    """
    svg = shown(_read(name, root), until, focus)
    # a drawing without a size is as wide as the page, even in a narrow window
    return SavedDrawing(re.sub(r'(<svg [^>]*?) width="\d+" height="\d+"', r"\1", svg, count=1))


def where(name, *parts, root=None):
    """Show a small map of a drawing with the parts that the slide is about.

    A deck shows it next to the title.

    Args:
        name    name of the drawing
        parts   names of the parts that keep their colour, while all others are pale
        root    folder of the project. If None, look for it in the working folder and above

    Raises:
        CourseError: there is no such drawing
        ValueError: the drawing has no such part
    """
    svg = shown(_read(name, root), focus=parts)
    return SavedDrawing(
        re.sub(
            r'class="drawing"( viewBox="[^"]*") width="\d+" height="\d+"',
            r'class="drawing map"\1 width="288" height="140"',
            svg,
            count=1,
        )
    )


def _read(name, root):
    folder = (find_root() if root is None else root) / FOLDER
    path = folder / f"{name}.svg"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.svg")))
        raise CourseError(
            f"there is no drawing {name!r} in {FOLDER}. "
            + (f"Choose one of {there}" if there else "There are none")
        )
    return path.read_text(encoding="utf-8")
