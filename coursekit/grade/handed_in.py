"""What was handed in: the notebooks of a folder, and the task cells in them."""

import ast
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from tinyattn.course.project import CourseError

LARGEST = 30_000_000  # bytes of a notebook; one with pictures has a few million


@dataclass
class Submission:
    """One student's notebook: its cells as (id, type, source)."""

    student: str
    path: Path
    cells: list = field(default_factory=list)
    trouble: str = ""  # why the notebook cannot be read

    @property
    def digest(self):
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


@dataclass
class Found:
    """The student's sources of the task cells, by the pristine cell's id, and what was odd."""

    sources: dict
    notes: list


def submissions(folder):
    """One for each notebook in the folder: a file, or a folder with one notebook, per student."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CourseError(f"there is no folder {folder}")
    found = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_file() and entry.suffix == ".ipynb":
            found[entry.stem] = entry
        elif entry.is_dir():
            inside = [
                p for p in sorted(entry.rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts
            ]
            for path in inside:
                found[entry.name if len(inside) == 1 else f"{entry.name}/{path.stem}"] = path
    if not found:
        raise CourseError(f"{folder} has no notebooks, neither .ipynb files nor folders with one")
    return [read(student, path) for student, path in found.items()]


def read(student, path):
    """The cells of a notebook; what cannot be read is said in `trouble`."""
    submission = Submission(student, path)
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST // 10**6} MB")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = cell.get("source", "")
            text = source if isinstance(source, str) else "".join(source)
            submission.cells.append((str(cell.get("id", "")), str(cell["cell_type"]), text))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        submission.cells = []
        submission.trouble = f"this is no notebook that can be read ({error})"[:200]
    return submission


def take(submission, plan):
    """The student's task cells and answers: by id, else by the names that a cell defines."""
    by_id = {name: (kind, source) for name, kind, source in submission.cells if name}
    sources, moved, missing, used = {}, [], [], set()
    for cell in plan.cells:
        if not cell.wanted:
            continue
        kind, source = by_id.get(cell.id, (None, None))
        fits = kind == cell.kind and (
            not cell.defines or cell.defines & defined(source) or not parses(source)
        )
        if fits:
            used.add(cell.id)
        else:
            name, source = _by_name(submission, cell)
            used.add(name)
            if source is not None:
                moved.append(cell.task)
            elif cell.kind == "code":
                missing.append(cell.task)
        sources[cell.id] = source
    notes = [
        f"{_tasks(tasks)}: {what}"
        for tasks, what in (
            (moved, "taken from another cell than the one handed out"),
            (missing, "the cell is missing"),
        )
        if tasks
    ]
    return Found(sources, notes + _added(submission, plan, sources, used))


def _tasks(numbers):
    numbers = [str(n) for n in dict.fromkeys(numbers)]
    return f"task{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _by_name(submission, cell):
    """(id, source) of the last cell that defines what the task cell defines, or begins like it."""
    found = [
        (name, source)
        for name, kind, source in submission.cells
        if cell.kind == kind == "markdown" and source.strip().startswith(cell.source.strip())
    ] or [
        (name, source)
        for name, kind, source in submission.cells
        if kind == "code" and cell.defines & defined(source)
    ]
    return found[-1] if found else (None, None)


def _added(submission, plan, sources, used):
    """A note for each helper that a task uses and that stands in a cell which is not graded."""
    ours = {cell.id for cell in plan.cells}
    helpers = {}
    for name, kind, source in submission.cells:
        if kind == "code" and name not in used and name not in ours:
            helpers |= dict.fromkeys(defined(source))
    needed = set()
    for source in sources.values():
        needed |= used_names(source or "") - defined(source or "")
    lost = sorted((set(helpers) & needed) - plan.given_names)
    return [f"uses {', '.join(lost)} of a cell that was added"] if lost else []


def parses(source):
    """False for a cell with a syntax error: it is taken as it is, and said to be wrong."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def defined(source):
    """The functions and classes that a cell defines at its top."""
    try:
        tree = ast.parse(source or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds)}


def used_names(source):
    """All names that a cell reads."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
