"""`tinyattn check`: the checks of a homework in the terminal, task by task."""

from coursekit.build.execute import CellError, execute, namespace, surroundings
from coursekit.build.text import read_notebook
from tinyattn.course import checks
from tinyattn.course.checks.homework_checker import report, table
from tinyattn.course.checks.judging import attempt
from tinyattn.course.project import CourseError


def check(document):
    """Run the student's copy and check every task; returns True if all is right.

    A cell that stops is reported, and the rest goes on.
    """
    if not document.is_homework:
        raise CourseError(f"{document.number} is a lecture; its homework is hw{document.number}")
    path = document.workbook if document.workbook.is_file() else document.notebook
    cells = read_notebook(document, path)
    homework, names = checks.load(document.number, document.root), namespace()
    print(f"{document.number} {document.slug.replace('_', ' ')}, from {document.relative(path)}\n")
    with surroundings(document.folder):
        stopped = run_cells(cells, names)
        student = checks.LocalStudent(names)
        outcomes = {}
        for task in homework.tasks:
            outcomes[task] = [attempt(part, student) for part in homework.of(task)]
            print(report(task, outcomes[task], homework.forbidden.get(task, ())), flush=True)
    for error in stopped:
        print(f"\na cell stopped: {error}")
    print(f"\n{table(outcomes)}")
    return all(outcome.right for parts in outcomes.values() for outcome in parts)


def run_cells(cells, names):
    """Run all code cells but the checks; the errors of those that stopped, unwritten ones aside."""
    stopped = []
    for cell in cells:
        if cell["cell_type"] != "code" or cell["source"].startswith(("hw.check", "hw.table")):
            continue
        try:
            execute(cell, names)
        except CellError as error:
            if not isinstance(error.cause, NotImplementedError):
                stopped.append(error)
    return stopped
