"""Find a student's changes in a lecture by comparing the cells that ran with the notebook."""

import ast
import difflib
import json
import os
import sys
from types import CellType, CodeType, FunctionType

from tinyattn.course.project import CourseError, find

ALIKE = 0.6  # cells are versions of one cell if this fraction of their characters agrees
BUILDING = "TINYATTN_BUILDING"  # environment variable, set while a notebook is built from its text
CLAIM = "course.claim("
SHOWN = 4  # number of lines of a change that are shown
NO_CHANGE = ("course.predict", "course.compare", "course.answer", "%", "!", "?", "help(")


def changes(root, number, since_claim=False):
    """Describe how the cells that ran in this kernel differ from the lecture's notebook.

    Args:
        root          folder of the project
        number        number of the lecture, such as "04"
        since_claim   True: compare only the cells that ran since the last claim. A claim in the
                      current cell does not count

    Returns:
        a list of texts, one for each changed cell, or else one for the student's last new cell. It
        is empty if nothing differs, or if this is not a Jupyter kernel
    """
    ran = _cells_that_ran()
    if since_claim:
        claims = [i for i, source in enumerate(ran[:-1]) if CLAIM in source]
        ran = ran[claims[-1] + 1 :] if claims else ran
    changed, own = _changed_cells(root, number, ran)
    found = [_difference(a, b) for a, b in changed]
    if not found:
        found = [f"a cell of your own, {_shortened(source)}" for source in own[-1:]]
    return found


def changes_of(root, number, function):
    """Describe the changed cells that define a function, or a name that the function uses.

    Args:
        root       folder of the project
        number     number of the lecture, such as "04"
        function   the function

    Returns:
        a list of texts, one for each changed cell
    """
    used = _names_used(function)
    changed, _ = _changed_cells(root, number, _cells_that_ran())
    return [_difference(a, b) for a, b in changed if used & _names_made(b)]


def _changed_cells(root, number, ran):
    """Return ([(cell of the notebook, cell that ran instead)], [cells that the student added])."""
    if not ran:
        return [], []
    try:
        path = find(root, number).notebook
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (CourseError, OSError, ValueError, KeyError):
        return [], []
    given = ["".join(cell["source"]).strip() for cell in cells if cell["cell_type"] == "code"]
    latest, own = {}, []
    for source in ran:
        if source in given:
            latest[source] = source
        elif source and not source.startswith(NO_CHANGE):
            original = _original(source, given)
            if original is None:
                own.append(source)
            else:
                latest[original] = source
    return [(a, b) for a, b in latest.items() if a != b], own


def _names_used(function):
    """Return the global names used by a function and by functions of its module that it calls."""
    todo, seen, found = [function], set(), set()
    while todo:
        f = todo.pop()
        if not isinstance(f, FunctionType) or f in seen:
            continue
        seen.add(f)
        names = _names_in(f.__code__)
        inner = [cell.cell_contents for cell in f.__closure__ or () if cell != CellType()]
        known = [f.__globals__[name] for name in names if name in f.__globals__]
        todo += [g for g in known if getattr(g, "__module__", "") == f.__module__] + inner
        found |= names
    return found | {f.__name__ for f in seen}


def _names_in(code):
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))


def _names_made(source):
    """Return the names that a cell assigns or defines."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic of IPython
        return set()
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and type(n.ctx) is ast.Store}
    return found | {n.name for n in tree.body if hasattr(n, "name")}


def _cells_that_ran():
    """Return the sources of the cells of this kernel in the order in which they ran."""
    if os.environ.get(BUILDING):
        return []
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    return [str(source).strip() for source in getattr(shell, "user_ns", {}).get("In", [])]


def _original(source, given):
    """Return the cell among `given` that a student changed into `source`, or None."""
    matcher, best, most = difflib.SequenceMatcher(autojunk=False), None, ALIKE
    matcher.set_seq2(source)
    for cell in given:
        matcher.set_seq1(cell)
        if matcher.real_quick_ratio() > most and matcher.quick_ratio() > most:
            ratio = matcher.ratio()
            if ratio > most:
                best, most = cell, ratio
    return best


def _difference(before, after):
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    gone = [line[2:].strip() for line in lines if line[:2] == "- " and line[2:].strip()]
    new = [line[2:].strip() for line in lines if line[:2] == "+ " and line[2:].strip()]
    if gone and new:
        return f"{_joined(gone)} became {_joined(new)}"
    return f"{_joined(new)} is new" if new else f"{_joined(gone)} is gone"


def _joined(lines):
    more = f" and {len(lines) - SHOWN} more lines" if len(lines) > SHOWN else ""
    return ", ".join(f"`{_shortened(line)}`" for line in lines[:SHOWN]) + more


def _shortened(text):
    line = text.strip().splitlines()[0]
    return line if len(line) <= 80 else f"{line[:77]}..."
