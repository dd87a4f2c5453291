"""Make the student's notebook from the text of a homework, which contains the solutions."""

import json
import re
import subprocess
import sys

from coursekit.build.text import assemble, tags_of
from tinyattn.course.checks.code import TASK
from tinyattn.course.project import CourseError

BEGIN = re.compile(r"^(\s*)# BEGIN SOLUTION(?:: *(.*\S))? *$")
LINE_LENGTH = 100  # the same as in pyproject.toml
END = re.compile(r"^\s*# END SOLUTION *$")
# This runs in its own process, which receives cells as JSON and returns the outcome as one line.
RUNNER = """
import json, sys
from coursekit.build.homework import run_here
print("\\n" + json.dumps(run_here(json.load(sys.stdin))))
"""


def student_version(notebook, document):
    """Return the notebook with a NotImplementedError in place of each solution.

    The message of this error is the number of the task, from the heading above, and the text after
    `# BEGIN SOLUTION:`. Cells tagged `solution` are left out.
    """
    kept = []
    for task, cell in by_task(notebook.cells):
        if "solution" in tags_of(cell):
            continue
        if cell.cell_type == "code":
            cell.source = without_solution(cell.source, document, task)
        kept.append(cell)
    return assemble(document.number, kept)


def without_solution(source, document, task=None):
    """Return the source of a cell with each solution replaced by a stub of the same indentation.

    Raises CourseError if `# BEGIN SOLUTION: text` and `# END SOLUTION` do not alternate, if there
    is no text, or if any other line contains the word SOLUTION.
    """
    lines, indent, opened = [], None, ""
    for line in source.split("\n"):
        begin = BEGIN.match(line)
        if begin and indent is None:
            (indent, message), opened = begin.groups(), line
            if not message:
                raise CourseError(_marker(document, line, "say what to write, after a colon"))
            lines += [f"{indent}# your code here", *_stub(indent, _numbered(task, message))]
        elif END.match(line) and indent is not None:
            indent = None
        elif "SOLUTION" in line:
            raise CourseError(
                _marker(
                    document,
                    line,
                    "expected a line '# BEGIN SOLUTION: <what to write>' and a line "
                    "'# END SOLUTION' in turn, and the word SOLUTION nowhere else",
                )
            )
        elif indent is None:
            lines.append(line)
    if indent is not None:
        raise CourseError(_marker(document, opened, "there is no # END SOLUTION after it"))
    return "\n".join(lines)


def solution_lines(notebook):
    """Return the lines that only the solutions contain, and that students must not receive."""
    found, given = set(), set()
    for cell in notebook.cells:
        inside = always = "solution" in tags_of(cell)
        for line in cell.source.split("\n"):
            if END.match(line):
                inside = always
            elif not BEGIN.match(line):
                (found if inside else given).add(line.strip())
            inside = inside or bool(BEGIN.match(line))
    # short lines, such as brackets, appear everywhere
    return {line for line in found - given if len(line) > 8 and not line.startswith("#")}


def messages(notebook):
    """Return the messages of the stubs in the student's version, in order."""
    return [
        _numbered(task, match[2])
        for task, cell in by_task(notebook.cells)
        for line in cell.source.split("\n")
        if (match := BEGIN.match(line))
    ]


def by_task(cells):
    """Return each cell with the number of its task, from the last heading, or None before the
    first.
    """
    task = None
    for cell in cells:
        if cell["cell_type"] == "markdown" and (heading := TASK.match(cell["source"])):
            task = heading[1]
        yield task, cell


def is_task(cell):
    """Return whether the student writes in this cell."""
    return any(BEGIN.match(line) for line in cell.source.split("\n"))


def _numbered(task, message):
    return f"task {task}: {message}" if task else message


def run(notebook, folder, timeout=300):
    """Run the code cells in a separate Python process, in `folder`.

    Returns None if all passed, otherwise a dictionary with the `id` of the first cell that failed,
    the `type` and the `message` of its error, and a `report` with the lines. Raises CourseError if
    the process itself fails.
    """
    cells = [
        {"cell_type": "code", "id": c["id"], "source": c["source"], "metadata": dict(c["metadata"])}
        for c in notebook.cells
        if c["cell_type"] == "code"
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps({"cells": cells, "folder": str(folder)}),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        raise CourseError(
            "the Python process that runs the homework's cells ended with the exit code "
            f"{done.returncode}:\n{done.stderr}"
        )
    return json.loads(done.stdout.strip().split("\n")[-1])


def run_here(job):
    """Run the cells of `job` in this process, which `run` has started."""
    from pathlib import Path

    from coursekit.build.execute import CellError, execute, namespace, surroundings, wanted

    names = namespace()
    with surroundings(Path(job["folder"])):
        for cell in filter(wanted, job["cells"]):
            try:
                execute(cell, names)
            except CellError as error:
                cause = error.cause
                return {
                    "id": cell["id"],
                    "type": type(cause).__name__,
                    "message": str(cause),
                    "report": str(error),
                }
    return None


def _stub(indent, message):
    """Return the line that stops at an unwritten solution, wrapped like ruff if it is long."""
    message = json.dumps(message, ensure_ascii=False)
    line = f"{indent}raise NotImplementedError({message})"
    if len(line) <= LINE_LENGTH:
        return [line]
    return [f"{indent}raise NotImplementedError(", f"{indent}    {message}", f"{indent})"]


def _marker(document, line, problem):
    return f"{document.relative(document.source)}: at '{line.strip()}': {problem}"
