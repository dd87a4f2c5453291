"""The command `tinyattn check`, which checks a homework in the terminal, task by task."""

import sys
from contextlib import contextmanager
from threading import Timer

from coursekit.build.execute import CellError, execute, namespace, surroundings
from coursekit.build.text import read_notebook
from coursekit.student.as_handed_in import as_handed_in, points
from tinyattn.course import checks
from tinyattn.course.checks.code import names_asked
from tinyattn.course.checks.homework_checker import HomeworkChecker, table
from tinyattn.course.project import CourseError

PATIENCE = 30  # seconds after which a task or a cell is named as slow


def check(document, *, saved=False):
    """Run the student's copy, check every task, and return True if all is right.

    A cell that raises an error is reported, and the other cells still run. With `saved`, a second
    column shows the points that grading gives the file, and every part that loses its point is
    explained.
    """
    if not document.is_homework:
        raise CourseError(
            f"check: {document.number} is a lecture, but only homework can be checked. Write: "
            f"tinyattn check hw{document.number}"
        )
    path = document.workbook if document.workbook.is_file() else document.notebook
    cells = read_notebook(document, path)
    homework, names = checks.load(document.number, document.root), namespace()
    print(f"{document.number} {document.slug.replace('_', ' ')}, from {document.relative(path)}\n")
    with surroundings(document.folder):
        stopped = run_cells(cells, names)
        sources = [c["source"] for c in cells if c["cell_type"] == "code"]
        checker = HomeworkChecker(homework, checks.LocalStudent(names), sources)
        for task in homework.tasks:
            with patience(f"task {task}"):
                report = checker.report(task)
            print(report, flush=True)
    for error in stopped:
        print(f"\na cell raised an error: {error}")
    outcomes = checker.outcomes
    right = all(outcome.right for parts in outcomes.values() for outcome in parts)
    right = right and not any(checker.reasons.values())
    if not saved:
        print(f"\n{table(outcomes, checker.reasons)}")
        return right
    result = as_handed_in(document, path)
    print(f"\n{table(outcomes, checker.reasons, points(result))}")
    print(*_explained(outcomes, result), sep="\n")
    return right and result.points == result.of


@contextmanager
def patience(what, seconds=PATIENCE):
    """Print which task is running if the block takes long, as an endless loop does."""
    text = (
        f"{what} has been running for {seconds:g} seconds. Is there a loop that never ends, such "
        f"as a `while` whose condition stays True? Ctrl-C ends this command"
    )
    timer = Timer(seconds, lambda: print(text, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _explained(outcomes, result):
    """Return lines that explain where grading gives fewer points than the check."""
    lines = [f"  note: {remark}" for remark in result.remarks]
    for task, parts in outcomes.items():
        for part, graded in zip(parts, result.of_task(task), strict=True):
            if part.right and not graded.right:
                lines.append(f"  task {task}, {part.title}, as handed in: {graded.text}")
    return lines


def run_cells(cells, names):
    """Run all code cells except the checks, and return their errors.

    Errors of unwritten cells are left out, and so are errors that follow from them.
    """
    stopped, unwritten = [], set()
    for cell in cells:
        if cell["cell_type"] != "code" or cell["source"].startswith(("hw.check", "hw.table")):
            continue
        first = cell["source"].strip().partition("\n")[0]
        try:
            with patience(f"the cell that begins with {first!r}"):
                execute(cell, names)
        except CellError as error:
            waits = isinstance(error.cause, NotImplementedError)
            if isinstance(error.cause, NameError) and error.cause.name in unwritten:
                waits = True
            if waits:
                unwritten |= names_asked(cell["source"])
            else:
                stopped.append(error)
    return stopped
