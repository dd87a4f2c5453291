"""Homework: right answers pass, wrong ones are explained, and nothing is had for nothing."""

import builtins
import dis
import functools
import pkgutil
import re
from importlib import import_module

import numpy as np
import pytest

from coursekit.build import execute, homework, notebooks, text
from coursekit.grade.handed_in import Submission, take
from coursekit.grade.marking import refused
from coursekit.grade.plan import plan_of
from tests import ROOT
from tests.coursekit.handed_in import STUB
from tinyattn.course import checks, project
from tinyattn.course.checks import runner
from tinyattn.course.checks.homework_checker import HomeworkChecker
from tinyattn.course.checks.judging import attempt
from tinyattn.course.checks.student import LocalStudent, Student

pytest.importorskip("jupytext")
pytest.importorskip("matplotlib")

HOMEWORK = {
    document.number: document
    for document in project.homework(ROOT)
    if (ROOT / project.CHECKS / f"{document.number}.py").is_file()
}
LEAST = 15  # wrong answers for each homework
each_homework = pytest.mark.parametrize("number", HOMEWORK)


@functools.cache
def plan(number):
    return plan_of(HOMEWORK[number])


def names_of(number, sources):
    """The names that a homework has after its definitions and these task cells."""
    names = execute.namespace()
    given = [cell for cell in plan(number).cells if cell.kind == "code"]
    for one, source in zip(given, plan(number).program(sources), strict=True):
        cell = {"id": one.id, "source": source, "cell_type": "code", "metadata": {}}
        try:
            execute.execute(cell, names)
        except execute.CellError as error:
            # what is given may rest on a training, which a check does not need
            if one.wanted and not isinstance(error.cause, NotImplementedError):
                raise
    return names


def solutions(number):
    return {c.id: c.solution for c in plan(number).cells if c.wanted and c.kind == "code"}


@functools.cache
def solved(number):
    return names_of(number, solutions(number))


def outcomes(number, student, hidden=True):
    return [attempt(part, student, hidden=hidden) for part in checks.load(number).parts]


def points(number, student):
    return [o.title for o in outcomes(number, student) if o.right]


# --- right and wrong answers


@each_homework
def test_the_solutions_are_right_for_hidden_inputs_too(number):
    wrong = [o for o in outcomes(number, LocalStudent(solved(number))) if not o.right]
    assert not wrong


def found(number, sources):
    """What grading finds in a notebook with these task cells."""
    cells = [(c.id, c.kind, sources.get(c.id, c.source)) for c in plan(number).cells]
    return take(Submission("somebody", None, cells), plan(number))


@each_homework
def test_every_solution_uses_only_what_its_task_lists(number):
    handed_in = found(number, solutions(number))
    for task in plan(number).homework.tasks:
        assert refused(task, plan(number), handed_in) is None, task


@each_homework
def test_what_is_listed_exists(number):
    made = checks.load(number)
    for names in [*made.allowed.values(), *made.by_hand.values()]:
        for name in names:
            owner, _, last = name.rpartition(".")
            assert callable(getattr(pkgutil.resolve_name(owner), last)), name


@each_homework
def test_a_task_builds_on_functions_of_earlier_tasks(number):
    made = plan(number)
    for task, names in made.homework.earlier.items():
        before = set().union(*(made.asked(t) for t in made.homework.tasks if t < task))
        assert set(names) <= before


def mistakes():
    """(homework, right line, wrong line, what the check must say about it), of all homework."""
    for number in HOMEWORK:
        for right, wrong, says in table_of(number):
            yield pytest.param(number, right, wrong, says, id=f"{number}-{wrong}")


def table_of(number):
    """The wrong answers to a homework; none if nobody wrote its table yet."""
    if not (ROOT / f"tests/coursekit/mistakes/{number}.py").is_file():
        return []
    return import_module(f"tests.coursekit.mistakes.{number}").MISTAKES


def other_ways():
    """(homework, the sample's way, another right one) of all homework."""
    for number in HOMEWORK:
        module = import_module(f"tests.coursekit.mistakes.{number}")
        for way, other in getattr(module, "RIGHT", []):
            yield pytest.param(number, way, other, id=f"{number}-{other}")


@pytest.mark.parametrize(("number", "way", "other"), list(other_ways()))
def test_another_right_answer_is_right(number, way, other):
    cell = next(c for c in plan(number).cells if c.kind == "code" and way in c.solution)
    sources = {**solutions(number), cell.id: cell.solution.replace(way, other, 1)}
    student = LocalStudent(names_of(number, sources))
    parts = checks.load(number).of(cell.task)
    assert not [o for part in parts if not (o := attempt(part, student, hidden=True)).right]


@each_homework
def test_enough_mistakes_are_tried(number):
    found = len(table_of(number))
    assert found >= LEAST, (
        f"tests/coursekit/mistakes/{number}.py has {found} wrong answers, expected at least "
        f"{LEAST}: write MISTAKES, a list as in hw03.py"
    )


@each_homework
def test_the_lecturer_reads_the_same_time(number):
    stated = re.compile(r"\d+ to \d+(?= minutes)")
    document = project.find(ROOT, number)
    minutes = stated.search(document.source.read_text("utf-8"))[0]
    page = (ROOT / f"lectures/teaching/{number.removeprefix('hw')}.md").read_text("utf-8")
    assert f"{minutes} minutes, and `tinyattn check" in page
    lecture = project.find(ROOT, number.removeprefix("hw")).source.read_text("utf-8")
    assert set(re.findall(r"Homework \d\d takes (\d+ to \d+)", lecture)) <= {minutes}


@pytest.mark.parametrize(("number", "right", "wrong", "says"), list(mistakes()))
def test_the_check_names_the_mistake(number, right, wrong, says):
    cell = next(c for c in plan(number).cells if c.kind == "code" and right in c.solution)
    sources = {**solutions(number), cell.id: cell.solution.replace(right, wrong, 1)}
    student = LocalStudent(names_of(number, sources))
    found = [attempt(part, student) for part in checks.load(number).of(cell.task)]
    assert any(says in outcome.text for outcome in found if not outcome.right), found


def test_one_row_of_nan_is_explained_once():
    """Every part of task 2 gets the same nan, so the report explains it for the first only."""
    code = (
        "e = np.where(adj, e, -np.inf)\n    p = np.exp(e - e.max(axis=1, keepdims=True))\n"
        "    return p / p.sum(axis=1, keepdims=True)"
    )
    cell = next(c for c in plan("hw09").cells if c.kind == "code" and "def attention" in c.solution)
    body = cell.solution.partition('"""')[0] + code + "\n"
    student = LocalStudent(names_of("hw09", {**solutions("hw09"), cell.id: body}))
    found = HomeworkChecker(checks.load("hw09"), student).report(2)
    assert found.count("NaN; it should be zeros") == 1 and found.count("the same as in") == 2
    assert "-inf - -inf is NaN" in found


# --- how long it takes


def minutes(number):
    """An estimate for somebody who was in the lecture, in minutes.

    120 words a minute are read, 8 lines of code that is given; 1.2 minutes go by for each line of
    the solution, thought included, 1.5 for each part that is checked (it is run, and wrong once),
    and 4 for each open question.
    """
    cells = plan(number).cells
    words = sum(len(re.findall(r"\w+", c.source)) for c in cells if c.kind == "markdown")
    code = [c for c in cells if c.kind == "code"]
    given = sum(_lines(c.source) for c in code if not c.wanted)
    written = sum(_lines(c.solution) - _lines(STUB.sub("", c.source)) for c in code if c.wanted)
    checked, asked = len(plan(number).homework.parts), len(plan(number).open_questions)
    return words / 120 + given / 8 + 1.2 * written + 1.5 * checked + 4 * asked


def _lines(source):
    """Lines of code without empty ones and comments."""
    return sum(line.strip()[:1] not in ("", "#") for line in source.splitlines())


@each_homework
def test_the_time_that_is_stated_is_enough(number):
    first = plan(number).cells[0].source
    low, high = map(int, re.search(r"(\d+) to (\d+) minutes", first).groups())
    assert low < minutes(number) < high <= 2 * low


@each_homework
def test_homework_ends_with_something_of_ones_own(number):
    last = plan(number).homework.tasks[-1]
    end = [c.source for c in plan(number).cells if c.kind == "markdown" and (c.task or 0) >= last]
    assert re.search(r"\byour own\b", "\n".join(end))


# --- no free points


@each_homework
def test_untouched_homework_has_no_points_and_says_what_to_write(number):
    stubs = {c.id: c.source for c in plan(number).cells if c.wanted and c.kind == "code"}
    found = outcomes(number, LocalStudent(names_of(number, stubs)))
    assert not any(outcome.right for outcome in found)
    said = homework.messages(text.read_source(HOMEWORK[number]))
    assert {outcome.text for outcome in found if outcome.unfinished} & set(said)


@each_homework
@pytest.mark.parametrize("instead", ["return None", "pass"])
def test_nothing_in_place_of_the_work_has_no_points(number, instead):
    lazy = {
        c.id: STUB.sub(lambda _: instead, c.source)
        for c in plan(number).cells
        if c.wanted and c.kind == "code"
    }
    if instead == "return None":  # a stub outside of a function cannot return
        lazy = {name: re.sub(r"^return None", "pass", s, flags=re.M) for name, s in lazy.items()}
    assert points(number, LocalStudent(names_of(number, lazy))) == []


class InPlaceOf(Student):
    """The sample solution, whose results are replaced before anybody sees them."""

    def __init__(self, number, replace):
        self.names, self.replace = solved(number), replace

    def _ask(self, function, inputs):
        reply = runner.answer(function, self.names, inputs)
        return {"value": self.replace(reply["value"], inputs)} if "value" in reply else reply


def zeros(value, inputs=()):
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    if isinstance(value, list | tuple):
        return type(value)(map(zeros, value))
    if isinstance(value, dict):
        return {k: zeros(v) for k, v in value.items()}
    return type(value)() if isinstance(value, bool | int | float | str) else value


def arrays_in(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list | tuple):
        return [a for v in value for a in arrays_in(v)]
    return []


def an_input(value, inputs):
    """The first input of the right shape, else the first input."""
    given = arrays_in(inputs) or [np.zeros(())]
    if isinstance(value, tuple | list):
        return type(value)(an_input(v, inputs) for v in value)
    return next((a for a in given if a.shape == np.shape(value)), given[0])


@each_homework
@pytest.mark.parametrize("replace", [zeros, an_input])
def test_zeros_and_inputs_of_the_right_shape_have_no_points(number, replace):
    assert points(number, InPlaceOf(number, replace)) == []


def library_calls():
    """(homework, right line, a call in its place) of all homework."""
    for number in HOMEWORK:
        for right, call in import_module(f"tests.coursekit.mistakes.{number}").LIBRARY:
            yield pytest.param(number, right, call, id=f"{number}-{call}")


@pytest.mark.parametrize(("number", "right", "call"), list(library_calls()))
def test_the_library_in_place_of_the_work_has_no_points(number, right, call):
    cell = next(c for c in plan(number).cells if c.kind == "code" and right in c.solution)
    sources = {**solutions(number), cell.id: cell.solution.replace(right, call, 1)}
    reason = refused(cell.task, plan(number), found(number, sources))
    assert "asks you to write yourself" in reason or "must be derived by hand" in reason


# --- the notebook


@each_homework
def test_every_task_is_checked_in_the_notebook(number):
    cells = notebooks.unexecuted(HOMEWORK[number]).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    assert f'hw = checks.homework("{number}", globals())' in "\n".join(sources)
    assert sources[-1] == "hw.table()"
    tasks = [int(s[9:-1]) for s in sources if s.startswith("hw.check(")]
    assert tasks == checks.load(number).tasks


@each_homework
def test_the_notebook_shows_no_expected_result(number):
    """No check stands in the notebook, so none can be read or edited there."""
    for cell in notebooks.unexecuted(HOMEWORK[number]).cells:
        assert "assert " not in cell.source


@each_homework
def test_checks_leave_the_notebook_as_it_was(number):
    names = solved(number)
    before = dict(names)
    outcomes(number, LocalStudent(names), hidden=False)
    changed = [name for name in names if names[name] is not before.get(name)]
    assert names.keys() == before.keys() and not changed


def test_a_check_never_raises_and_the_table_says_what_is_left(capsys):
    names = names_of("hw04", {**solutions("hw04"), "hw04-010": "def masked_attention(*_): pass"})
    checker = checks.homework("hw04", names)
    for task in (1, 3):
        checker.check(task)
    said = capsys.readouterr().out
    assert "Task 1 is right." in said
    assert "Task 3: 0 of 3 parts are right." in said and "Is the `return` missing?" in said
    checker.table()
    shown = capsys.readouterr().out
    assert "task 1   2 of 2   right" in shown and "task 3   0 of 3   left: mask" in shown
    assert "all      13 of 16" in shown


def globals_of(code):
    """The global names that a function reads, those of functions inside it too."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return found.union(*(globals_of(c) for c in code.co_consts if hasattr(c, "co_code")))


@each_homework
def test_what_runs_beside_the_student_imports_all_it_uses(number):
    """In a sandbox these functions run alone: nothing of the module around them is there."""
    module = checks.module(number)
    for name, f in vars(module).items():
        code = getattr(f, "__code__", None)
        if code is not None and code.co_varnames[:1] == ("its",):
            missing = globals_of(code) - vars(builtins).keys()
            assert not missing, f"{name} uses {missing} without an import of its own"
