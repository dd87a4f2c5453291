"""The pristine homework as the grader needs it: which cells hold tasks, and what is given."""

import ast
from dataclasses import dataclass

from coursekit.build.homework import by_task, is_task
from coursekit.build.notebooks import unexecuted
from coursekit.build.text import read_source, tags_of
from coursekit.grade.handed_in import defined
from tinyattn.course.checks import load

ROOTS = {"np", "ta", "nn", "F", "data", "optim", "graph", "len", "range", "list", "tuple", "set"}


@dataclass
class Cell:
    """A cell of the student's version, with its solution where it is a task."""

    id: str
    kind: str
    task: int | None
    source: str
    solution: str = ""  # of a task: with the sample solution; of an open question: the sample
    wanted: bool = False  # it is taken from what was handed in
    question: str = ""

    @property
    def defines(self):
        return defined(self.source) if self.kind == "code" else set()


@dataclass
class Plan:
    """All that is known about a homework before anybody handed it in."""

    document: object
    homework: object
    cells: list

    @property
    def given_names(self):
        return set().union(*(cell.defines for cell in self.cells))

    @property
    def open_questions(self):
        return [cell for cell in self.cells if cell.wanted and cell.kind == "markdown"]

    def of_task(self, task):
        """The task cells of one task."""
        return [c for c in self.cells if c.wanted and c.kind == "code" and c.task == task]

    def untouched(self, task, sources):
        """True if nothing of the task was written."""
        return all(
            sources.get(cell.id) is None or squeeze(sources[cell.id]) == squeeze(cell.source)
            for cell in self.of_task(task)
        )

    def program(self, sources, until=None):
        """The cells to run: definitions that are given, and the task cells out of `sources`."""
        program = []
        for cell in self.cells:
            if cell.kind != "code":
                continue
            if cell.wanted:
                program.append(sources.get(cell.id) or "")
            else:
                program.append(definitions(cell.source))
        last = max((i for i, c in enumerate(self._code()) if c.task == until), default=None)
        return program if until is None or last is None else program[: last + 1]

    def with_solutions(self, task, sources):
        """The sources with the sample solution in every task but this one."""
        return {
            cell.id: sources.get(cell.id) if cell.task == task else cell.solution
            for cell in self.cells
            if cell.wanted and cell.kind == "code"
        }

    def _code(self):
        return [cell for cell in self.cells if cell.kind == "code"]


def plan_of(document):
    """Read the homework's text, which has the solutions."""
    source = read_source(document).cells
    student = {id(cell): None for cell in source}
    kept = [cell for cell in source if "solution" not in tags_of(cell)]
    for cell, handed_out in zip(kept, unexecuted(document).cells, strict=True):
        student[id(cell)] = handed_out
    cells, question = [], ""
    for task, cell in by_task(source):
        handed_out, number = student[id(cell)], int(task) if task else None
        if handed_out is None:
            if cells and cells[-1].kind == "markdown" and cells[-1].wanted:
                cells[-1].solution = cell.source
            continue
        new = Cell(handed_out["id"], cell.cell_type, number, handed_out.source)
        if cell.cell_type == "code" and is_task(cell):
            new.wanted, new.solution = True, cell.source
        elif "answer" in tags_of(cell):
            new.wanted, new.question = True, question
        if cell.cell_type == "markdown" and not new.wanted:
            question = cell.source
        cells.append(new)
    return Plan(document, load(document.number, document.root), cells)


def definitions(source):
    """What a given cell defines: imports, functions, classes and constants; nothing that trains."""
    kept = [node for node in ast.parse(source).body if _defines(node)]
    return "\n".join(ast.unparse(node) for node in kept)


def _defines(node):
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
        return True
    if not isinstance(node, ast.Assign):
        return False
    calls = [n.func for n in ast.walk(node.value) if isinstance(n, ast.Call)]
    return all(_root(call) in ROOTS for call in calls)


def _root(node):
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def squeeze(source):
    """A cell's code without comments and layout, to see whether anything was written."""
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
