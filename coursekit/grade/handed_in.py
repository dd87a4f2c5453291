"""Submitted work: the notebooks of a folder, and the parts of them that answer the tasks."""

import ast
import hashlib
import io
import json
import re
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from coursekit.build.text import INSTALL
from coursekit.grade.late import time_of
from tinyattn.course.checks.code import Code, code_of, missing, parsed
from tinyattn.course.project import CourseError

LARGEST = 30_000_000  # bytes of a notebook; with images, it has a few million
DEEPEST = 3  # levels of zip files inside zip files
ENDINGS = (".ipynb", ".ipynb.txt", ".ipynb.json", ".json")
NO_HAND_INS = {"__macosx", "thumbs.db", "desktop.ini"}
MOODLE = re.compile(r"^(?P<name>.+)_(?P<id>\d+)_assignsubmission_[a-z]+_?$")
# the same without "Download submissions in folders"
MOODLE_FILE = re.compile(r"^(?P<name>.+)_(?P<id>\d+)_assignsubmission_file_.+$")
ONLINE_TEXT = "_assignsubmission_onlinetext"
CANVAS = re.compile(r"^(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_\d+_(?P<file>.+)$")


@dataclass
class Submission:
    """One student's notebook: its cells as (id, type, source)."""

    student: str
    path: Path | None = None  # the path for messages, which includes zip files
    cells: list = field(default_factory=list)
    trouble: str = ""  # the reason why the notebook cannot be read
    digest: str = ""
    notes: list = field(default_factory=list)
    identifier: str = ""  # Moodle's identifier of a participant, or Canvas's of a user
    folder: str = ""  # Moodle's name of the folder, which the feedback folder must have too
    time: datetime | None = None  # when it was submitted, if known


@dataclass
class Found:
    """The student's own code, the answers to open questions by cell id, and anything unusual."""

    code: Code
    answers: dict
    notes: list

    def missing(self, names, there):
        """Return names that `names` need, even indirectly, but neither cells nor `there` have."""
        _, needed = self.code.needed(names)
        return missing(self.code, needed, there)


def submissions(place, number=None):
    """Return one Submission for each student in a folder or zip from Moodle, Canvas or nbgrader.

    A student is a file, or a folder with files. Unreadable files have a Submission as well. If
    students have a folder for each homework, as in nbgrader's `submitted/`, only the folders with
    the name `number`, such as "hw04", are read. A folder or zip around the whole class, such as an
    exported zip that was put into a folder, is not a student.

    Raises CourseError if the folder or zip does not exist, or has no notebook that can be read.
    """
    place = Path(place)
    if not place.exists():
        raise CourseError(f"there is no folder or zip file {place}. Check the path")
    files = {}  # name of the submission -> [(path in it, bytes)]
    read = list(_files(place))
    if number is not None and any(parts[1:2] == (number,) for parts, _ in read):
        read = [(parts, content) for parts, content in read if parts[1:2] == (number,)]
    else:
        read = _unwrapped(read, place)
    for parts, content in read:
        files.setdefault(parts[0], []).append(("/".join(parts[1:]) or parts[0], content))
    found = []
    for entry, inside in sorted(files.items()):
        found += _of_one(entry, inside)
    found = _without_texts(found)
    _tell_apart(found)
    if not any(s.cells or not s.trouble for s in found):
        raise CourseError(
            f"{place} has no notebook that can be read. Pass a folder or zip with .ipynb files, or "
            "with folders that contain them"
        )
    return found


def _unwrapped(read, place):
    """Return `read` without the outer folders and zips that contain a whole class."""
    while True:
        inside = {}  # name of the outermost folder -> files in it
        for parts, _ in read:
            inside.setdefault(parts[0], []).append(parts[1:])
        around = {e for e, files in inside.items() if _is_class(e, files, len(inside) == 1, place)}
        if not around:
            return read
        read = [(parts[1:] if parts[0] in around else parts, content) for parts, content in read]


def _is_class(entry, files, alone, place):
    """Return whether a folder contains the submissions of several students.

    Names that Moodle and Canvas give to submissions decide. Other names count only if there is
    nothing else (`alone`): then a class is a folder with the name of its zip, or one that has
    several folders with notebooks.
    """
    if not all(files) or _is_export(entry):
        return False
    if any(MOODLE.match(p) or MOODLE_FILE.match(p) for parts in files for p in parts):
        return True
    if not alone:
        return False
    if place.suffix.lower() == ".zip" and entry == place.stem:
        return True
    names = {parts[0] for parts in files}
    folders = {parts[0] for parts in files if len(parts) > 1 and _ending(parts[-1])}
    return len(folders) > 1 or (len(names) > 1 and all(map(_is_export, names)))


def _is_export(name):
    """Return whether Moodle or Canvas gave this name to a submission."""
    return any(pattern.match(name) for pattern in (MOODLE, MOODLE_FILE, CANVAS))


def _of_one(entry, inside):
    """Return the Submissions of one student's file or folder."""
    notebooks = [(path, content) for path, content in inside if _ending(path)]
    student, facts = _student(entry)
    if not notebooks:
        there = ", ".join(path for path, content in inside if content is not None)
        trouble = f"no notebook was handed in{', but ' * bool(there)}{there}"[:200]
        return [Submission(student, Path(entry), trouble=trouble, **facts)]
    made, time = [], _timestamp(inside)
    for path, content in notebooks:
        name = student
        if len(notebooks) > 1:
            name = f"{student}/{path.removesuffix(_ending(path) or '')}"
        new = _read(name, content)
        new.path, new.time = Path(entry, path), time
        for fact, value in facts.items():
            setattr(new, fact, value)
        if len(notebooks) > 1:
            new.notes.append(f"one of {len(notebooks)} notebooks of {student}")
        made.append(new)
    return made


def _without_texts(found):
    """Leave out the online texts of students who have also submitted files.

    In exports from Moodle, online texts have folders of their own.
    """
    kept = [s for s in found if not (s.trouble and ONLINE_TEXT in s.folder)]
    files = {s.identifier for s in kept}
    texts = {s.identifier: s for s in found if s.trouble and ONLINE_TEXT in s.folder}
    for submission in kept:
        if submission.identifier in texts:
            submission.notes.append("wrote an online text in Moodle, too")
    return kept + [s for name, s in texts.items() if name not in files]


def _timestamp(inside):
    """Return the time at which nbgrader collected a submission."""
    for path, content in inside:
        if path.rpartition("/")[2] == "timestamp.txt" and content:
            return time_of(content.decode("utf-8", "replace"))
    return None


def _tell_apart(found):
    """Give each submission a unique name, even if two people or two files have the same name."""
    names = Counter(s.student for s in found)
    people = {s.student: {t.identifier for t in found if t.student == s.student} for s in found}
    for submission in found:
        name, number = submission.student, names[submission.student]
        if number > 1 and len(people[name]) == number:
            submission.student = f"{name} ({submission.identifier})"
        elif number > 1:
            submission.student = f"{name}/{submission.path.name}"
            submission.notes.append(f"one of {number} files of {name}")


def _student(entry):
    """Return (name, other facts) of a file or folder, as Moodle and Canvas name them."""
    if moodle := MOODLE.match(entry):
        return moodle["name"], {"identifier": moodle["id"], "folder": entry}
    if moodle := MOODLE_FILE.match(entry):
        folder = f"{moodle['name']}_{moodle['id']}_assignsubmission_file"
        return moodle["name"], {"identifier": moodle["id"], "folder": folder}
    if canvas := CANVAS.match(entry):
        late = ["handed in late"] if canvas["late"] else []
        return canvas["name"], {"identifier": canvas["id"], "notes": late}
    return entry.removesuffix(_ending(entry) or "") or entry, {}


def _ending(path):
    """Return the extension of a notebook's name as written, or None for other files."""
    return next((path[-len(e) :] for e in ENDINGS if path.lower().endswith(e)), None)


def _files(place, before=(), depth=0):
    """Yield ((folder, ..., file), bytes) of all files in a folder or zip, and in zips inside.

    An empty folder is a path with None.
    """
    if depth <= DEEPEST and (isinstance(place, zipfile.ZipFile) or zipfile.is_zipfile(place)):
        yield from _zipped(place, before, depth)
    elif place.is_dir():
        entries = [e for e in sorted(place.iterdir()) if not _ignored(e.name)]
        if not entries and before:
            yield before, None
        for entry in entries:
            if entry.is_dir() or _is_zip(entry.name):
                inside = entry.stem if _is_zip(entry.name) else entry.name
                yield from _files(entry, (*before, inside), depth)
            elif entry.stat().st_size > LARGEST:
                yield (*before, entry.name), b""
            else:
                yield (*before, entry.name), entry.read_bytes()
    elif before:
        yield before, place.read_bytes()[:LARGEST]


def _zipped(place, before, depth):
    try:
        archive = place if isinstance(place, zipfile.ZipFile) else zipfile.ZipFile(place)
        names = set(archive.namelist())
        for entry in archive.infolist():
            parts = tuple(part for part in entry.filename.split("/") if part not in ("", ".", ".."))
            if not parts or any(map(_ignored, parts)):
                continue
            if entry.is_dir():
                if not any(n.startswith(entry.filename) for n in names - {entry.filename}):
                    yield (*before, *parts), None
                continue
            content = archive.read(entry) if entry.file_size <= LARGEST else b""
            if _is_zip(parts[-1]) and depth < DEEPEST:
                inner = (*before, *parts[:-1], parts[-1][:-4])
                try:
                    yield from _zipped(zipfile.ZipFile(io.BytesIO(content)), inner, depth + 1)
                except (zipfile.BadZipFile, OSError, ValueError):
                    yield (*before, *parts), content
            else:
                yield (*before, *parts), content
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError):
        yield (before or (Path(str(place)).name,)), b""


def _is_zip(name):
    return name.lower().endswith(".zip")


def _ignored(name):
    return name.startswith(".") or name.lower() in NO_HAND_INS


def read(student, path):
    """Return the notebook in a file, as a Submission."""
    new = _read(student, path.read_bytes() if path.stat().st_size <= LARGEST else b"")
    new.path = path
    return new


def _read(student, content):
    """Return a Submission with the cells in `content`, or with `trouble`, the reason why not."""
    submission = Submission(student, digest=hashlib.sha256(content or b"").hexdigest())
    try:
        if not content:
            raise ValueError(f"the file is empty, or larger than {LARGEST // 10**6} MB")
        notebook = json.loads(content)
        sheets = notebook.get("worksheets", ())  # notebooks of format 3 have worksheets
        cells = (
            notebook["cells"] if "cells" in notebook else [c for s in sheets for c in s["cells"]]
        )
        for cell in cells:
            source = cell.get("source", cell.get("input", ""))
            text = source if isinstance(source, str) else "".join(source)
            if text.strip() != INSTALL:
                submission.cells.append((str(cell.get("id", "")), str(cell["cell_type"]), text))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        submission.cells = []
        submission.trouble = f"this is not a readable notebook ({error})"[:200]
    return submission


def copies(found, plan):
    """Return groups of submissions whose own code is the same except for layout and comments."""
    alike = {}
    for submission in found:
        code = take(submission, plan).code
        text = [ast.dump(s.node) for s in code.statements]
        if set(text) - plan.stubs:
            alike.setdefault("\n".join(sorted(text)), []).append(submission)
    return [group for group in alike.values() if len(group) > 1]


def take(submission, plan):
    """Return the cells and texts that a student added to a notebook, as a `Found`."""
    cells = [(i, s) for i, (_, kind, s) in enumerate(submission.cells) if kind == "code"]
    code = code_of(cells, plan.given_trees)
    _leave_stubs_out(code, plan)
    notes = _where(submission, plan, code)
    for place, error in code.broken.items():
        notes.append(f"cell {place + 1}: {error.partition(chr(10))[0]}")
    return Found(code, _answers(submission, plan), notes)


def _leave_stubs_out(code, plan):
    """Ignore a distributed stub if the same name is defined elsewhere."""
    stubs = plan.stubs
    written = set().union(
        set(), *(s.binds for s in code.statements if ast.dump(s.node) not in stubs)
    )
    code.statements = [
        s for s in code.statements if not (s.binds & written and ast.dump(s.node) in stubs)
    ]


def _where(submission, plan, code):
    """Return notes about tasks that are answered in an unexpected cell or not at all."""
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
            (moved, "taken from a cell other than the one handed out"),
            (absent, "the cell is missing"),
        )
        if tasks
    ]


def _tasks(numbers):
    numbers = [str(n) for n in dict.fromkeys(numbers)]
    return f"task{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _answers(submission, plan):
    """Return {cell id: text} of the open questions."""
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
    """Return the functions and classes that a cell defines at its top level."""
    tree = parsed(source)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in tree.body if isinstance(node, kinds)} if tree else set()
