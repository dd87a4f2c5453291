"""`tinyattn check`: the homework in the terminal, task by task."""

import shutil
import time

import pytest

from coursekit import cli
from coursekit.build import notebooks, text
from coursekit.build.execute import namespace
from coursekit.student import workbook
from coursekit.student.as_handed_in import as_handed_in, points
from coursekit.student.checking import patience, run_cells
from tests import ROOT
from tinyattn.course import project

pytest.importorskip("jupytext")
pytest.importorskip("matplotlib")


@pytest.fixture
def document(tmp_path, monkeypatch):
    """Homework 05 in a project of its own."""
    for folder in (project.CHECKS, "notebooks/homework"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / project.LEDGER, tmp_path / project.LEDGER)
    real = project.find(ROOT, "hw05")
    for file in (real.source, real.notebook, ROOT / project.CHECKS / "hw05.py"):
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    monkeypatch.chdir(tmp_path)
    return project.find(tmp_path, "hw05")


def write(document, edit):
    """The student's copy, with the solutions in it and this edit."""
    notebook = text.read_source(document)
    for cell in notebook.cells:
        cell.source = edit(cell.source)
    project.write_text(document.workbook, notebooks.to_json(notebook))


def test_untouched_homework_is_not_done(document, capsys):
    workbook.prepare(document)
    assert cli.main(["check", "05"]) == 1
    said = capsys.readouterr().out
    assert "from workbook/homework/hw05_sets.ipynb" in said
    assert "Task 1 is not done: return the largest |F(PX) - F(X)|" in said
    assert "all      0 of 11" in said


def test_right_homework(document, capsys):
    write(document, lambda source: source)
    assert cli.main(["check", "hw05"]) == 0
    said = capsys.readouterr().out
    assert said.count("is right.") == 6 and "all      11 of 11" in said


def test_one_task_that_fails_does_not_hide_the_others(document, capsys):
    def edit(source):
        return source.replace("np.maximum(mask.sum(axis=1, keepdims=True), 1)", "this_is_missing")

    write(document, edit)
    assert cli.main(["check", "5"]) == 1
    said = capsys.readouterr().out
    assert "Task 3: 0 of 3 parts are right." in said
    assert "NameError: name 'this_is_missing' is not defined" in said
    assert "Task 5 is right." in said and "all      8 of 11" in said


def test_a_cell_that_stops_is_reported(document, capsys):
    write(document, lambda source: source.replace("def own(X):", "def own(X:"))
    assert cli.main(["check", "5"]) == 1
    said = capsys.readouterr().out
    assert "a cell raised an error: SyntaxError" in said and "Task 4 is right." in said


def test_a_lecture_is_no_homework(document, capsys):
    assert cli.main(["check", "04"]) == 2
    assert "there is no lecture or homework 'hw04'" in capsys.readouterr().err


# --- what grading sees


@pytest.fixture
def homework_04(tmp_path, monkeypatch):
    for folder in (project.CHECKS, "notebooks/homework"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / project.LEDGER, tmp_path / project.LEDGER)
    real = project.find(ROOT, "hw04")
    for file in (real.source, real.notebook, ROOT / project.CHECKS / "hw04.py"):
        shutil.copy(file, tmp_path / file.relative_to(ROOT))
    monkeypatch.chdir(tmp_path)
    return project.find(tmp_path, "hw04")


def forbidden_softmax(source):
    """Homework 04 with the library's softmax, and the engine where a derivative is asked."""
    source = source.replace("for x in losses[::30]", "for x in losses[:1]")
    source = source.replace("def train(layer, steps=150)", "def train(layer, steps=1)")
    source = source.replace(
        "    e = np.exp(s - s.max(axis=-1, keepdims=True))\n"
        "    return e / e.sum(axis=-1, keepdims=True)\n",
        "    return F.softmax(s, axis=-1)\n",
    )
    start = source.find("    root = np.sqrt(Q.shape[-1])")
    if start > 0:
        source = source[:start] + (
            "    q, k, v = (ta.tensor(x[None], requires_grad=True) for x in (Q, K, V))\n"
            "    attention(q, k, v).backward(G[None])\n"
            "    return q.grad[0], k.grad[0], v.grad[0]\n"
        )
    return source


def test_a_check_says_what_would_have_no_points(homework_04, capsys):
    write(homework_04, forbidden_softmax)
    assert cli.main(["check", "04", "--as-handed-in"]) == 1
    said = capsys.readouterr().out
    uses = "which this task asks you to write yourself: 0 points."
    assert f"Task 2 is right, but you use F.softmax, {uses}" in said
    uses = "although the derivative must be derived by hand: 0 points."
    assert f"Task 4 is right, but you use ta.tensor, .backward, .grad, {uses}" in said
    assert "Task 1 is right.\n" in said and "Task 3 is right.\n" in said
    table = " ".join(said[said.index("here     as handed in") :].split())
    assert "here as handed in task 1 2 of 2 2 of 2 right" in table
    assert "task 2 0 of 5 0 of 5 no points: you use F.softmax, which" in table
    assert "task 3 3 of 3 3 of 3 right task 4 0 of 3 0 of 3 no points: you use ta.tensor" in table
    assert "all 8 of 16 8 of 16" in table
    assert cli.main(["check", "04"]) == 1
    assert "all      8 of 16" in capsys.readouterr().out


def test_the_saved_notebook_is_seen_as_grading_sees_it(homework_04, capsys):
    """A name that only the memory of a notebook has is not in the file."""

    def edit(source):
        source = source.replace("def train(layer, steps=150)", "def train(layer, steps=1)")
        return source.replace("for x in losses[::30]", "for x in losses[:1]").replace(
            "return self.attend(x + self.positions)", "return self.attend(plus(x, self.positions))"
        )

    write(homework_04, edit)
    assert cli.main(["check", "04", "--as-handed-in"]) == 1
    said = capsys.readouterr().out
    assert "note: task 6: plus is not defined in any cell of the notebook" in said
    result = as_handed_in(homework_04, homework_04.workbook)
    assert points(result) == {1: 2, 2: 5, 3: 3, 4: 3, 5: 2, 6: 0}


def test_the_table_in_a_notebook_has_both_columns(homework_04, capsys, monkeypatch):
    write(homework_04, forbidden_softmax)
    names = namespace()
    run_cells([{**c, "id": str(i)} for i, c in enumerate(cells_of(homework_04))], names)
    capsys.readouterr()
    names["__vsc_ipynb_file__"] = str(homework_04.workbook)
    names["hw"].check(2)
    assert "Task 2 is right, but you use F.softmax" in capsys.readouterr().out
    names["hw"].table()
    said = " ".join(capsys.readouterr().out.split())
    assert "here as handed in" in said and "all 8 of 16 8 of 16" in said


def cells_of(document):
    return text.read_notebook(document, document.workbook)


def test_a_loop_that_never_ends_is_named(capsys):
    with patience("task 1", seconds=0.01):
        time.sleep(0.2)
    assert "task 1 has been running for 0.01 seconds" in capsys.readouterr().err
    with patience("task 1", seconds=0.1):
        pass
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_untouched_homework_ends_without_errors_of_cells_that_wait(capsys):
    """What an unwritten cell would have defined is missing in later cells; that is no error."""
    homework = project.find(ROOT, "hw00")
    cells = text.read_notebook(homework)
    assert run_cells(cells, namespace()) == []
    broken = [*cells, {"cell_type": "code", "source": "never_defined", "id": "x"}]
    assert [error.cause.name for error in run_cells(broken, namespace())] == ["never_defined"]
