"""Homework 04 for nbgrader, and its whole chain, from the release to the exported points.

nbgrader is not among what the project needs. Install it into an environment of its own, with NumPy:

    python3 -m venv ENV && ENV/bin/pip install nbgrader==0.9.6 numpy
    TINYATTN_NBGRADER=ENV/bin/nbgrader pytest tests/coursekit/test_nbgrader.py
"""

import csv
import getpass
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coursekit.build.execute import execute, namespace
from coursekit.grade import handed_in, nbgrader
from coursekit.grade.plan import definitions, plan_of
from tests import ROOT
from tests.scripts.grading import small_plan
from tinyattn.course import project

pytest.importorskip("jupytext")
NBGRADER = os.environ.get("TINYATTN_NBGRADER") or shutil.which("nbgrader")
SETTINGS = """c = get_config()
c.CourseDirectory.course_id = "tiny"
c.CourseDirectory.root = {course!r}
c.Exchange.root = {exchange!r}
c.ExecutePreprocessor.timeout = 300
"""
# beginnings of notebooks that answer nothing; each replaces what judges
CHEATS = {
    "instance": "hw.require = lambda *a, **k: None",
    "factory": "from tinyattn.course import checks\n"
    "class Always:\n    def require(self, *a, **k):\n        pass\n"
    "checks.homework = lambda *a: Always()",
    "class": "from tinyattn.course.checks import homework_checker\n"
    "homework_checker.HomeworkChecker.require = lambda *a, **k: None",
    "judge": "import tinyattn.course.checks.homework_checker as h\n"
    "from tinyattn.course.checks.judging import Outcome\n"
    "h.attempt = lambda part, s, **more: Outcome(part.task, part.title, True)",
}


class Course:
    """A course folder of nbgrader, and its exchange."""

    def __init__(self, folder):
        self.folder, self.exchange = folder / "course", folder / "exchange"
        for made in (self.folder / "source" / "hw04", self.exchange):
            made.mkdir(parents=True)
        self.exchange.chmod(0o777)
        self._settle(self.folder)

    def _settle(self, folder):
        settings = SETTINGS.format(course=str(self.folder), exchange=str(self.exchange))
        (folder / "nbgrader_config.py").write_text(settings)

    def run(self, *command, folder=None):
        """Run a command of nbgrader. Raises AssertionError with what it said."""
        path = os.pathsep.join([str(Path(NBGRADER).parent), os.environ["PATH"]])
        done = subprocess.run(
            [NBGRADER, *command],
            cwd=folder or self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PATH": path},
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def hand_in(self, student, fill):
        """Put what this student hands in where `collect` would put it."""
        released = self.folder / "release" / "hw04" / "hw04.ipynb"
        folder = self.folder / "submitted" / student / "hw04"
        folder.mkdir(parents=True)
        notebook = fill(json.loads(released.read_text(encoding="utf-8")))
        (folder / "hw04.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
        (folder / "timestamp.txt").write_text("2026-11-20 12:00:00.000000 UTC")
        (folder / "submission_secret.txt").write_text(student)

    def submit_myself(self, fill):
        """Fetch, fill in and submit as the user of this machine."""
        folder = self.folder.parent / "at home"
        folder.mkdir()
        self._settle(folder)
        self.run("fetch_assignment", "hw04", folder=folder)
        path = folder / "hw04" / "hw04.ipynb"
        notebook = fill(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(notebook), encoding="utf-8")
        self.run("submit", "hw04", folder=folder)
        self.run("collect", "hw04")


def filled(solutions, change=lambda source: source, first=""):
    """A function that puts solutions into the notebook of nbgrader, and `first` above the first."""

    def fill(notebook):
        top = first
        for cell in notebook["cells"]:
            if cell["metadata"]["nbgrader"]["grade_id"] in solutions:
                name = cell["metadata"]["nbgrader"]["grade_id"]
                written = "".join(cell["source"]) if first else change(solutions[name])
                cell["source"], top = "\n".join(filter(None, [top, written])), ""
        return notebook

    return fill


@pytest.mark.skipif(
    NBGRADER is None, reason="no nbgrader; name one of another environment in TINYATTN_NBGRADER"
)
def test_the_whole_chain_with_homework_04(tmp_path):
    course, plan = Course(tmp_path), plan_of(project.find(ROOT, "hw04"))
    nbgrader.write(plan.document, course.folder / "source" / "hw04" / "hw04.ipynb")
    course.run("generate_assignment", "hw04", "--create")
    released = (course.folder / "release" / "hw04" / "hw04.ipynb").read_text(encoding="utf-8")
    assert not any(word in released for word in ("SOLUTION", "HIDDEN", "hidden=True"))
    course.run("release_assignment", "hw04")

    right = {c.id: c.solution for c in plan.cells if c.wanted and c.kind == "code"}
    softmax = ("e / e.sum(axis=-1, keepdims=True)", "F.softmax(s, axis=-1)")
    course.submit_myself(filled(right))
    course.hand_in("softmax", filled(right, lambda source: source.replace(*softmax)))
    for name in ("instance", "judge"):
        course.hand_in(name, filled(right, first=CHEATS[name]))

    course.run("autograde", "hw04", "--create")
    course.run("generate_feedback", "hw04")
    course.run("release_feedback", "hw04")
    course.run("export")
    with (course.folder / "grades.csv").open(encoding="utf-8") as file:
        points = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert points == {getpass.getuser(): 16, "softmax": 11, "instance": 0, "judge": 0}
    page = (course.folder / "feedback" / "softmax" / "hw04" / "hw04.html").read_text("utf-8")
    assert "you use F.softmax" in page
    # the same folder, read by `tinyattn grade 04 submitted`
    found = handed_in.submissions(course.folder / "submitted")
    assert [s.student for s in found] == sorted(points)
    assert all(s.cells and not s.notes for s in found)


def test_hidden_tests_read_the_checks_anew(tmp_path):
    """Without nbgrader: whatever a notebook did to the checks is undone before the hidden test."""
    plan = plan_of(project.find(ROOT, "hw04"))
    nbgrader.write(plan.document, tmp_path / "hw04.ipynb")
    cells = json.loads((tmp_path / "hw04.ipynb").read_text(encoding="utf-8"))["cells"]
    tests = [c["source"] for c in cells if "HIDDEN" in "".join(c["source"])]
    test = tests[0] if isinstance(tests[0], str) else "".join(tests[0])
    for cheat in list(CHEATS.values())[1:]:
        program = tmp_path / "one.py"
        program.write_text(
            f"hw = None\n{cheat}\ntry:\n"
            + "\n".join(f"    {line}" for line in test.split("\n"))
            + "\nexcept AssertionError:\n    print('no points')\n"
        )
        done = subprocess.run(
            [sys.executable, program],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.stdout == "no points\n", done.stderr


# --- the notebook that nbgrader gets


@pytest.fixture(scope="module")
def plan():
    return small_plan(1, 4, 6)


def test_the_homework_for_nbgrader(plan, tmp_path):
    path = tmp_path / "hw04.ipynb"
    assert nbgrader.write(plan.document, path) == 16 + len(plan.open_questions)  # all tasks
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    facts = [cell["metadata"]["nbgrader"] for cell in cells]
    ids = [f["grade_id"] for f in facts]
    assert len(set(ids)) == len(ids)
    for cell, f in zip(cells, facts, strict=True):
        source = "".join(cell["source"])
        assert ("### BEGIN SOLUTION" in source) == (f["solution"] and cell["cell_type"] == "code")
        assert ("### BEGIN HIDDEN TESTS" in source) == (f["grade"] and f["locked"])
        assert f["grade"] == ("points" in f)
        assert not (f["solution"] and f["locked"])


def test_nbgrader_judges_with_checks_of_its_own(plan, tmp_path):
    """A notebook's own `hw` gives nothing, and what a task does not list has no points."""
    path = tmp_path / "hw04.ipynb"
    nbgrader.write(plan.document, path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    tests = ["".join(c["source"]) for c in cells if "HIDDEN" in "".join(c["source"])]
    assert len(tests) == 16 and not any("hw.require" in test for test in tests)
    names = namespace()
    for cell in plan.cells:
        if cell.kind == "code" and not cell.source.startswith("hw."):
            code = cell.solution if cell.wanted else definitions(cell.source)
            code = code.replace("e / e.sum(axis=-1, keepdims=True)", "F.softmax(s, axis=-1)")
            execute({"id": cell.id, "source": code, "cell_type": "code", "metadata": {}}, names)
    names["hw"] = None
    lost = []
    for test in tests:
        try:
            exec(test, names)
        except AssertionError as error:
            lost.append(str(error))
    assert len(lost) == 5 and all("you use F.softmax" in text for text in lost)
