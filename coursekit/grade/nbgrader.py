"""Write a homework as a source notebook for nbgrader, so that an existing course can use it.

The cell metadata follow nbgrader's format, version 3: answers are autograded answer cells, each
part of a task is a test cell worth one point, and open questions are graded by hand.
"""

import re
import secrets

from coursekit.build.homework import BEGIN
from coursekit.build.notebooks import to_json
from coursekit.build.text import need
from coursekit.grade.plan import plan_of
from tinyattn.course.project import write_text

HIDDEN = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"
# Answers run in the kernel of the tests and can replace functions of the checks, so the hidden test
# reads the checks from their files again. If a student has changed NumPy or Python, they stay
# changed. Only a sandbox withstands this, as in `tinyattn grade 04 submitted`.
ANEW = """import sys

for name in [name for name in sys.modules if name.startswith("tinyattn.course")]:
    del sys.modules[name]
from tinyattn.course import checks
"""


def write(document, path):
    """Write the notebook to `path` and return its number of points."""
    nbformat = need("nbformat")
    plan = plan_of(document)
    cells, tested, secret = [], set(), 1 + secrets.randbelow(2**62)
    for cell in plan.cells:
        new = nbformat.v4.new_code_cell if cell.kind == "code" else nbformat.v4.new_markdown_cell
        call = _task_checked(cell)
        if call is not None and call not in tested:
            tested.add(call)
            cells += [_test(nbformat, plan, part, secret) for part in plan.homework.of(call)]
        elif cell.wanted and cell.kind == "code":
            cells.append(new(_marks(cell.solution), metadata=_metadata(cell.id, solution=True)))
        elif cell.wanted:
            facts = _metadata(cell.id, solution=True, grade=True, points=1, kind="markdown")
            cells.append(new(cell.source, metadata=facts))
        else:
            cells.append(new(cell.source, metadata=_metadata(cell.id, locked=True, kind=cell.kind)))
    for position, cell in enumerate(cells):
        cell["id"] = f"{document.number}-{position:03d}"
    notebook = nbformat.v4.new_notebook(cells=cells, nbformat_minor=5)
    write_text(path, to_json(notebook))
    return sum(cell["metadata"]["nbgrader"].get("points", 0) for cell in cells)


def _task_checked(cell):
    """Return the task that a cell `hw.check(3)` checks, otherwise None."""
    text = cell.source.strip()
    if cell.kind == "code" and text.startswith("hw.check(") and text.endswith(")"):
        return int(text[len("hw.check(") : -1])
    return None


def _test(nbformat, plan, part, secret):
    # nbgrader allows only these characters in a name
    title = re.sub(r"[^A-Za-z0-9]+", "-", part.title)
    name = f"{plan.document.number}-task-{part.task}-{title}"
    # A student can set the notebook's own `hw` to anything, so it is not used.
    fresh = f"checks.homework({plan.document.number!r}, globals()).require"
    visible = f"from tinyattn.course import checks\n\n{fresh}({part.task}, {part.title!r})"
    call = f"{fresh}({part.task}, {part.title!r}, hidden=True, secret={secret})"
    hidden = HIDDEN.format(f"{ANEW}\n{call}")
    return nbformat.v4.new_code_cell(
        f"{visible}\n{hidden}", metadata=_metadata(name, grade=True, locked=True, points=1)
    )


def _metadata(name, *, solution=False, grade=False, locked=False, points=None, kind="code"):
    facts = {
        "schema_version": 3,
        "grade_id": name,
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "task": False,
        "cell_type": kind,
    }
    return {"nbgrader": facts if points is None else {**facts, "points": points}}


def _marks(source):
    """Replace our markers by nbgrader's, and keep the instructions as a comment above them."""
    lines = []
    for line in source.split("\n"):
        if begin := BEGIN.match(line):
            indent, message = begin.groups()
            lines += [f"{indent}# {message}", f"{indent}### BEGIN SOLUTION"]
        elif line.strip() == "# END SOLUTION":
            lines.append(line.replace("# END", "### END"))
        else:
            lines.append(line)
    return "\n".join(lines)
