"""The drawings of the lectures, as cells show them."""

import re
from pathlib import Path

from tinyattn.course.drawing_shown import SavedDrawing, shown
from tinyattn.course.project import CourseError, find_root
from tinyattn.engine.ranges import check_range

FOLDER = "lectures/figures"


def drawing(name, until=None, focus=(), root=None):
    """Show the drawing `lectures/figures/<name>.svg`.

    In a deck, each key press adds a step of the drawing, unless `until` or `focus` is given.

    Args:
        name    name of the drawing
        until   number of the last step that is shown. 0 shows what is there before step 1, and None
                shows all steps
        focus   name or list of names of the parts that keep their colour, together with the parts
                inside them, while all others are pale. If empty, no part is pale
        root    folder of the project. If None, look for it in the working folder and above

    Returns:
        a `SavedDrawing`, which the notebook displays

    Raises:
        CourseError: there is no such drawing, or no folder of the project
        TypeError: until is not a whole number
        ValueError: the drawing has no such part, or until is negative
    """
    check_range("drawing", 0, whole=True, until=until, optional=("until",))
    svg = shown(_read(name, root), until, focus)
    # a drawing without a size is as wide as the page, even in a narrow window
    return SavedDrawing(re.sub(r'(<svg [^>]*?) width="\d+" height="\d+"', r"\1", svg, count=1))


def where(name, *parts, root=None):
    """Show a small copy of a drawing in which only the parts that the slide is about have colour.

    A deck shows it next to the title of the slide.

    Args:
        name    name of the drawing, `lectures/figures/<name>.svg`
        parts   names of the parts that keep their colour, together with the parts inside them,
                while all others are pale. Without names, no part is pale
        root    folder of the project. If None, look for it in the working folder and above

    Returns:
        a `SavedDrawing`, which the notebook displays

    Raises:
        CourseError: there is no such drawing, or no folder of the project
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
    folder = (find_root() if root is None else Path(root)) / FOLDER
    path = folder / f"{name}.svg"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.svg")))
        raise CourseError(
            f"there is no drawing {name!r} in {FOLDER}. "
            + (f"Choose one of {there}" if there else "Pass the folder of the project as root=")
        )
    return path.read_text(encoding="utf-8")
