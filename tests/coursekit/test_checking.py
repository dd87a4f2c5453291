"""`tinyattn check`: the homework in the terminal, task by task, and what errors mean."""

import shutil

import numpy as np
import pytest

from coursekit import cli
from coursekit.build import notebooks, text
from coursekit.student import workbook
from tests import ROOT
from tinyattn.course import project
from tinyattn.course.checks.errors import meaning

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
    assert "Task 1 is not done: the largest |F(PX) - F(X)|" in said
    assert "all      0 of 9" in said


def test_right_homework(document, capsys):
    write(document, lambda source: source)
    assert cli.main(["check", "hw05"]) == 0
    said = capsys.readouterr().out
    assert said.count("is right.") == 5 and "all      9 of 9" in said


def test_one_task_that_fails_does_not_hide_the_others(document, capsys):
    def edit(source):
        return source.replace("np.maximum(mask.sum(axis=1, keepdims=True), 1)", "this_is_missing")

    write(document, edit)
    assert cli.main(["check", "5"]) == 1
    said = capsys.readouterr().out
    assert "Task 3: 0 of 3 parts are right." in said
    assert "NameError: name 'this_is_missing' is not defined" in said
    assert "Task 4 is right." in said and "all      6 of 9" in said


def test_a_cell_that_stops_is_reported(document, capsys):
    write(document, lambda source: source.replace("def own(X):", "def own(X:"))
    assert cli.main(["check", "5"]) == 1
    said = capsys.readouterr().out
    assert "a cell stopped: SyntaxError" in said and "Task 4 is right." in said


def test_a_lecture_is_no_homework(document, capsys):
    assert cli.main(["check", "04"]) == 2
    assert "there is no lecture 'hw04'" in capsys.readouterr().err


# --- what error messages mean


def error_in(code, **names):
    try:
        exec(code, {"np": np, **names})
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def test_messages_of_numpy_are_explained():
    x, y = np.ones((3, 2, 4)), np.ones((3, 2))
    short, text = meaning(error_in("x @ x", x=x), "x @ x")
    assert short == "the shapes of a product @ do not fit" and "lengths 4 and 2" in text
    assert "np.swapaxes" not in text
    assert "np.swapaxes" in meaning(error_in("x @ x.T", x=x), "x @ x.T")[1]
    assert "(3, 2) is (3, 2, 4) without one axis" in meaning(error_in("x / y", x=x, y=y))[1]
    assert "from their last axis on" in meaning(error_in("x / z", x=x, z=np.ones(3)))[1]
    for letters, of in (("ij,jk", (x, y)), ("ij,jk->ik", (y, y)), ("ijkl", (x,))):
        line = f"np.einsum({letters!r}, *of)"
        assert "one letter for each axis" in meaning(error_in(line, of=of), line)[1], letters
    assert "np.stack" in meaning(error_in("z[0] = x", x=x, z=np.zeros(3)))[1]
    assert "whole numbers" in meaning(error_in("x[x]", x=x))[1]
    assert meaning("something else", "x") == ("", "")
