"""What was handed in: the notebooks of a folder, and what of them answers the tasks."""

import ast
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from tinyattn.course.checks.code import Code, code_of, missing, parsed
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
    """The student's own code, the answers to open questions by cell id, and what was odd."""

    code: Code
    answers: dict
    notes: list

    def missing(self, names, there):
        """Names that these names need, directly or not, and that no cell of the notebook has."""
        _, needed = self.code.needed(names)
        return missing(self.code, needed, there)


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
    """What of a notebook is the student's own: code, and answers to the open questions."""
    cells = [(i, s) for i, (_, kind, s) in enumerate(submission.cells) if kind == "code"]
    code = code_of(cells, plan.given_trees)
    _leave_stubs_out(code, plan)
    notes = _where(submission, plan, code)
    for place, error in code.broken.items():
        notes.append(f"cell {place + 1}: {error.partition(chr(10))[0]}")
    return Found(code, _answers(submission, plan), notes)


def _leave_stubs_out(code, plan):
    """A stub that was handed out does not count where the same name is written elsewhere."""
    stubs = plan.stubs
    written = set().union(
        set(), *(s.binds for s in code.statements if ast.dump(s.node) not in stubs)
    )
    code.statements = [
        s for s in code.statements if not (s.binds & written and ast.dump(s.node) in stubs)
    ]


def _where(submission, plan, code):
    """Notes about tasks that are answered in other cells than those handed out, or in none."""
    places = {name: i for i, (name, _, _) in enumerate(submission.cells) if name}
    moved, absent = [], []
    for cell in plan.cells:
        if not (cell.wanted and cell.kind == "code"):
            continue
        there = {s.cell for s in code.statements if s.binds & cell.asked}
        if not there and places.get(cell.id) not in code.broken:
            absent.append(cell.task)
        elif there and places.get(cell.id) not in there:
            moved.append(cell.task)
    return [
        f"{_tasks(tasks)}: {what}"
        for tasks, what in (
            (moved, "taken from another cell than the one handed out"),
            (absent, "the cell is missing"),
        )
        if tasks
    ]


def _tasks(numbers):
    numbers = [str(n) for n in dict.fromkeys(numbers)]
    return f"task{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _answers(submission, plan):
    """{cell id: text} of the open questions."""
    by_id = {name: source for name, kind, source in submission.cells if kind == "markdown"}
    found = {}
    for cell in plan.open_questions:
        asked = cell.source.strip()
        text = by_id.get(cell.id)
        if text is None:
            alike = [
                source
                for _, kind, source in submission.cells
                if kind == "markdown" and source.strip().startswith(asked)
            ]
            text = alike[-1] if alike else ""
        text = text.strip()
        found[cell.id] = text[len(asked) :].strip() if text.startswith(asked) else text
    return found


def defined(source):
    """The functions and classes that a cell defines at its top."""
    tree = parsed(source)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds)} if tree else set()
