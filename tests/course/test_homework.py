"""Homework explains the usual mistakes: each wrong answer is refused, in words that help."""

import copy
import functools
from importlib import import_module

import numpy as np
import pytest

from tests import ROOT
from tinyattn.course import execute, project, text

pytest.importorskip("jupytext")
pytest.importorskip("matplotlib")

HOMEWORK = {document.number: document for document in project.homework(ROOT)}
SOLUTION = "# BEGIN SOLUTION"
LEAST = 15  # wrong answers for each homework


def mistakes():
    """(homework, right line, wrong line, what the check must say about it), of all homework."""
    for number in HOMEWORK:
        for right, wrong, says in table_of(number):
            yield pytest.param(number, right, wrong, says, id=f"{number}-{wrong}")


def table_of(number):
    """The wrong answers to a homework; none if nobody wrote its table yet."""
    if not (ROOT / f"tests/course/mistakes/{number}.py").is_file():
        return []
    return import_module(f"tests.course.mistakes.{number}").MISTAKES


@pytest.mark.parametrize("number", HOMEWORK)
def test_enough_mistakes_are_tried(number):
    found = len(table_of(number))
    assert found >= LEAST, (
        f"tests/course/mistakes/{number}.py has {found} wrong answers, expected at least {LEAST}: "
        f"write MISTAKES, a list of (right line, wrong line, words of the check), as in hw03.py"
    )


def copied(names):
    """A copy of the dictionary, of its arrays, and of the state of its random generators."""
    changes = (np.ndarray, np.random.Generator)
    return {k: copy.deepcopy(v) if isinstance(v, changes) else v for k, v in names.items()}


class Desk:
    """One homework, worked on with the right answers; names are kept as they were before each cell.

    A cell is run once, and a mistake in it starts from where the right answers had come to. There
    is one dictionary of names, emptied and filled: functions look up their globals in it.
    """

    def __init__(self, document):
        cells = text.read_source(document).cells
        self.cells = [cell for cell in cells if cell["cell_type"] == "code"]
        self.names = execute.namespace()
        self.before = [copied(self.names)]  # names before cell 0, 1, ...

    def go_to(self, at):
        """Put the names back to what they were before cell `at`, reached with right answers."""
        while len(self.before) <= at:
            self.put_back(len(self.before) - 1)
            execute.execute(self.cells[len(self.before) - 1], self.names)
            self.before.append(copied(self.names))
        self.put_back(at)

    def put_back(self, at):
        self.names.clear()
        self.names.update(copied(self.before[at]))

    def place_of(self, right):
        """The number of the cell whose solution has this line."""
        tasks = [SOLUTION in c["source"] and right in c["source"] for c in self.cells]
        assert any(tasks), f"no solution has the line {right!r}"
        assert tasks.index(True) + 1 < len(self.cells), (
            f"no code cell follows the task with {right!r}: put its check there"
        )
        return tasks.index(True)

    def hand_in(self, at, right, wrong):
        """Run cell `at` with `wrong` in place of `right`, and the check behind it."""
        cell = {**self.cells[at], "source": self.cells[at]["source"].replace(right, wrong, 1)}
        execute.execute(cell, self.names)
        execute.execute(self.cells[at + 1], self.names)


@functools.cache
def desk(number):
    return Desk(HOMEWORK[number])


@pytest.mark.parametrize(("number", "right", "wrong", "says"), list(mistakes()))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow and 0 / 0 are mistakes too
def test_the_check_names_the_mistake(number, right, wrong, says):
    here = desk(number)
    at = here.place_of(right)
    here.go_to(at)
    with pytest.raises(execute.CellError) as found:
        here.hand_in(at, right, wrong)
    assert isinstance(found.value.cause, AssertionError), found.value.cause
    assert says in str(found.value.cause)


def test_the_space_of_homework_11_ignores_the_kind():
    """GravNet beats a layer without neighbours, and finds them by x and y alone."""
    here = desk("hw11")
    at = next(i for i, cell in enumerate(here.cells) if 'f"alone:' in cell["source"])
    here.go_to(at)
    printed = execute.execute(here.cells[at], here.names).printed
    alone, gravnet = (float(line.split()[1][:-1]) for line in printed.split("\n")[:2])
    assert gravnet > alone + 5
    W_s = here.names["learned"].lin_s.weight.data
    assert abs(W_s[:, 2]).max() < 0.3 * abs(W_s[:, :2]).max()
