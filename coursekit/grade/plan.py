"""The original homework as the grader needs it: which cells contain tasks, and which are given."""

import ast
import functools
from dataclasses import dataclass

from coursekit.build.homework import by_task, is_task
from coursekit.build.notebooks import unexecuted
from coursekit.build.text import read_notebook, read_source, tags_of
from tinyattn.course.checks import load
from tinyattn.course.checks.code import STUB, given_in, names_asked, parsed

ROOTS = {"np", "ta", "nn", "F", "data", "optim", "graph", "len", "range", "list", "tuple", "set"}


@dataclass
class Cell:
    """A cell of the student's version, with its solution if it is a task."""

    id: str
    kind: str
    task: int | None
    source: str
    solution: str = ""  # the sample solution of a task, or the sample answer of an open question
    wanted: bool = False  # True: the cell is read from the submission
    question: str = ""

    @functools.cached_property
    def asked(self):
        """Return the names that this cell asks the student to define."""
        return names_asked(self.source) if self.kind == "code" else set()


@dataclass
class Plan:
    """All facts about a homework that do not depend on a submission."""

    document: object
    homework: object
    cells: list

    @property
    def has_solutions(self):
        """Return False for a student's version: a notebook without its source text."""
        return any(cell.solution for cell in self.cells)

    @property
    def open_questions(self):
        return [cell for cell in self.cells if cell.wanted and cell.kind == "markdown"]

    @functools.cached_property
    def given_trees(self):
        """Return the results of `given_in` for all distributed cells without a task, as one set."""
        cells = (c.source for c in self.cells if c.kind == "code" and not c.wanted)
        return set().union(*map(given_in, cells))

    @functools.cached_property
    def stubs(self):
        """Return the set of ast.dump of all statements of the task cells as distributed."""
        wanted = (parsed(c.source) for c in self.cells if c.kind == "code" and c.wanted)
        return {ast.dump(node) for tree in wanted for node in tree.body}

    def of_task(self, task):
        """Return the task cells of one task."""
        return [c for c in self.cells if c.wanted and c.kind == "code" and c.task == task]

    def asked(self, task):
        """Return the names that a task asks the student to define."""
        return set().union(set(), *(cell.asked for cell in self.of_task(task)))

    def given(self, task):
        """Return the definitions of the distributed cells up to the end of a task."""
        code = [cell for cell in self.cells if cell.kind == "code"]
        last = max((i for i, cell in enumerate(code) if cell.task == task), default=len(code) - 1)
        return [definitions(cell.source) for cell in code[: last + 1] if not cell.wanted]

    def samples(self, task):
        """Return the sample solutions of earlier functions that a task uses, even indirectly."""
        names, earlier = set(self.homework.earlier.get(task, ())), self.homework.earlier
        while True:
            chosen = [c for c in self.cells if c.asked & names and c.solution]
            more = {name for c in chosen for name in earlier.get(c.task, ())} - names
            if not more:
                return [c.solution for c in chosen]
            names |= more

    def program(self, sources):
        """Return the sources to run: given definitions, and task cells from {cell id: source}."""
        return [
            (sources.get(c.id) or "") if c.wanted else definitions(c.source)
            for c in self.cells
            if c.kind == "code"
        ]


def plan_of_notebook(document):
    """Return the Plan of a homework from the student's notebook, without solutions."""
    cells, question = [], ""
    source = read_notebook(document, document.notebook)
    for task, cell in by_task(source):
        new = Cell(cell["id"], cell["cell_type"], int(task) if task else None, cell["source"])
        if new.kind == "code":
            new.wanted = STUB in new.source
        elif "answer" in tags_of(cell):
            new.wanted, new.question = True, question
        else:
            question = new.source
        cells.append(new)
    return Plan(document, load(document.number, document.root), cells)


def plan_of(document):
    """Return the Plan of a homework from its text, with the solutions."""
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
    """Return the imports, functions, classes and constants of a given cell, without training."""
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
