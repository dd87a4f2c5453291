"""No right answer without its points, and no points without an answer."""

import ast
import contextlib
import functools
import importlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from coursekit.build import execute
from coursekit.grade import handed_in
from coursekit.grade.marking import mark
from coursekit.grade.plan import definitions, plan_of, plan_of_notebook
from tests import ROOT
from tests.coursekit.forked import ForkedMachine
from tests.coursekit.free_checks import READ
from tests.coursekit.free_points import EMPTY, FREE
from tests.coursekit.handed_in import careless
from tests.coursekit.unusual_answers import UNUSUAL
from tinyattn.course import checks, project
from tinyattn.course.checks.judging import attempt

pytest.importorskip("jupytext")
HOMEWORK = [document.number for document in project.homework(ROOT)]


@functools.cache
def plan(number):
    return plan_of(project.find(ROOT, number))


@pytest.fixture(scope="module")
def here():
    """What grading runs, on this machine; `test_grade.py` has the sandbox."""
    with ForkedMachine() as place:
        yield place


SECRET = 20261126  # of a grader


def graded(number, cells, here, task=None):
    """The Mark of a notebook with these (id, type, source) cells; task: of this one alone."""
    whole = plan(number)
    if task is not None:
        parts = [p for p in whole.homework.parts if p.task == task]
        whole = replace(whole, homework=replace(whole.homework, parts=parts))
    return mark(handed_in.Submission("somebody", Path(), cells), whole, here, SECRET)


def solved(number):
    return [
        (c.id, c.kind, c.solution if c.wanted and c.kind == "code" else c.source)
        for c in plan(number).cells
    ]


def lost(result):
    return [(o.task, o.title, o.text) for o in result.outcomes if not o.right]


# --- right answers


@pytest.mark.parametrize("number", HOMEWORK)
def test_a_right_notebook_has_all_points_however_it_is_written(number, here):
    result = graded(number, careless(plan(number)), here)
    assert not lost(result)
    assert not result.remarks


@pytest.mark.parametrize("number", HOMEWORK)
def test_a_magic_or_a_print_in_a_handed_out_cell_costs_nothing(number, here):
    cells = [
        (name, kind, f"%matplotlib inline\n{source}\nprint(1)" if kind == "code" else source)
        for name, kind, source in solved(number)
    ]
    result = graded(number, cells, here)
    assert not lost(result) and not result.remarks


@pytest.mark.parametrize(
    ("number", "task", "code"),
    [pytest.param(n, t, c, id=f"{n}-{t}-{what}") for n, t, what, c in UNUSUAL],
)
def test_an_unusual_answer_has_all_points(number, task, code, here):
    cells = [
        (c.id, c.kind, code if c.wanted and c.kind == "code" and c.task == task else c.source)
        for c in solved_plan(number)
    ]
    assert not lost(graded(number, cells, here, task))


def solved_plan(number):
    """The cells of the plan, in which all tasks are solved."""
    return [
        replace(c, source=c.solution) if c.wanted and c.kind == "code" else c
        for c in plan(number).cells
    ]


@pytest.mark.parametrize("number", HOMEWORK)
def test_the_notebook_alone_tells_what_grading_needs(number):
    """A student has no text with solutions; the saved notebook is looked at all the same."""
    document = project.find(ROOT, number)
    known, whole = plan_of_notebook(document), plan(number)
    for task in whole.homework.tasks:
        assert known.asked(task) == whole.asked(task) and known.given(task) == whole.given(task)


def earlier():
    """(homework, task, an earlier one) of all homework."""
    for number in HOMEWORK:
        tasks = plan(number).homework.tasks
        yield from ((number, task, tasks[0]) for task in tasks[1:])


@pytest.mark.parametrize(("number", "task", "first"), list(earlier()))
def test_a_helper_of_an_earlier_task_is_there_in_every_box(number, task, first, here):
    cells, helped = [], False
    for cell in plan(number).cells:
        source = cell.solution if cell.wanted and cell.kind == "code" else cell.source
        if cell.kind == "code" and cell.wanted and cell.task == first and not helped:
            source, helped = source + "\n\ndef passed_on(x):\n    return x\n", True
        if cell.kind == "code" and cell.wanted and cell.task == task:
            tree = Helped().visit(ast.parse(source))
            source = ast.unparse(ast.fix_missing_locations(tree))
        cells.append((cell.id, cell.kind, source))
    assert not lost(graded(number, cells, here, task))


class Helped(ast.NodeTransformer):
    def visit_Return(self, node):
        if node.value is not None:
            node.value = ast.parse(f"passed_on({ast.unparse(node.value)})", mode="eval").body
        return node


def test_a_mistake_in_an_earlier_task_costs_points_once(here):
    """Task 4 builds on the loss of task 3, and that on the charge of task 1."""
    cells = [
        (c.id, c.kind, c.solution.replace("+ q_min", "+ 2 * q_min") if c.wanted else c.source)
        for c in plan("hw12").cells
    ]
    assert {task for task, *_ in lost(graded("hw12", cells, here))} == {1}


def test_answers_in_float32_are_right(here):
    def cast(source):
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Return) and node.value is not None:
                call = f"np.asarray({ast.unparse(node.value)}, np.float32)"
                node.value = ast.parse(call, mode="eval").body
        return ast.unparse(tree)

    cells = [
        (c.id, c.kind, cast(c.solution) if c.wanted and c.task == 1 else c.source)
        for c in plan("hw04").cells
    ]
    assert not lost(graded("hw04", cells, here, 1))


def test_the_page_names_the_reason_why_a_function_is_missing(here):
    code = "try:\n    limit = 1 / 0\nexcept NameError:\n    pass\nweights = [limit]\n"
    cells = [
        (c.id, c.kind, code if c.wanted and c.kind == "code" and c.task == 2 else c.source)
        for c in solved_plan("hw02")
    ]
    (first, *_) = graded("hw02", cells, here, 2).outcomes
    assert "ZeroDivisionError" in first.text and "Did you run the cell" not in first.text


def test_what_a_sample_does_is_in_no_feedback(here):
    """An error inside of an earlier task's solution shows the student's line, not the sample's."""
    code = "def masked_attention(Q, K, V, mask):\n    return softmax('no numbers')\n"
    cells = [
        (c.id, c.kind, code if c.wanted and c.task == 3 else c.source) for c in plan("hw04").cells
    ]
    result = graded("hw04", cells, here, 3)
    text = "\n".join(o.text for o in result.outcomes)
    assert "softmax('no numbers')" in text and "np.exp" not in text and "keepdims" not in text


# --- no points without an answer


# parts that some of these ways answer themselves, as they have to, to reach the others
RIGHT_ANYWAY = {
    ("hw04", 2): (),
    ("hw00", 8): ("the value",),
    ("hw07", 4): ("the right words",),
}
WAYS = [(*row, RIGHT_ANYWAY.get(row[:2], ())) for row in FREE] + READ


@pytest.mark.parametrize(
    ("number", "task", "code", "allowed"),
    [pytest.param(n, t, c, a, id=f"{n}-{t}-{why}") for n, t, why, c, a in WAYS],
)
def test_nothing_is_had_for_nothing(number, task, code, allowed, here):
    cells, there = [], False
    for cell in plan(number).cells:
        source = cell.solution if cell.wanted and cell.kind == "code" else cell.source
        if cell.kind == "code" and cell.wanted and cell.task == task:
            source, there = (code if not there else ""), True
        cells.append((cell.id, cell.kind, source))
    result = graded(number, cells, here, task)
    free = [o.title for o in result.outcomes if o.right]
    assert there and not set(free) - set(allowed), result.outcomes


def imports_of(code):
    """The (module, name) that the imports of the library in a text of code ask for."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((a.name, None) for a in node.names if a.name.startswith("tinyattn"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tinyattn"):
            yield from ((node.module, a.name) for a in node.names)


@pytest.mark.parametrize(
    ("module", "name"), sorted({i for *_, code in FREE for i in imports_of(code)}, key=str)
)
def test_what_these_ways_import_is_there(module, name):
    """A way that fails at a name that the library no longer has would close nothing."""
    found = importlib.import_module(module)
    if name not in (None, "*") and not hasattr(found, name):
        importlib.import_module(f"{module}.{name}")


def free_in_an_open_notebook():
    """How many of these ways have a right part where a check runs what stands in the notebook."""
    free = 0
    for number, task, _, code in FREE:
        names, there = execute.namespace(), False
        for cell in plan(number).cells:
            source = cell.solution if cell.wanted else ""
            if cell.kind == "code" and not cell.wanted:
                source = definitions(cell.source)
            if cell.kind == "code" and cell.wanted and cell.task == task:
                source, there = (code if not there else ""), True
            if cell.kind == "code":
                with contextlib.suppress(execute.CellError):
                    one = {"id": cell.id, "source": source, "cell_type": "code", "metadata": {}}
                    execute.execute(one, names)
        student = checks.LocalStudent(names)
        free += any(attempt(part, student).right for part in checks.load(number).of(task))
    return free


def test_most_of_these_ways_lead_to_points_where_nothing_is_closed():
    """The control, in a process of its own: some of them change NumPy for all that follows."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        free = apart.submit(free_in_an_open_notebook).result()
    assert free > 70 and len(FREE) > 100


@functools.cache
def sample_names(number):
    """The names of a notebook in which all tasks are solved."""
    names = execute.namespace()
    for cell in plan(number).cells:
        if cell.kind == "code":
            source = cell.solution if cell.wanted else definitions(cell.source)
            with contextlib.suppress(execute.CellError):
                one = {"id": cell.id, "source": source, "cell_type": "code", "metadata": {}}
                execute.execute(one, names)
    return names


class Known(checks.LocalStudent):
    """A student who knows the answers to what is asked without the grader's secret."""

    def __init__(self, names):
        super().__init__(names)
        self.answers = {}

    def _ask(self, function, inputs):
        place = str((function.__name__, inputs))
        if self.answers is not None and place not in self.answers:
            self.answers[place] = super()._ask(function, inputs)
        return self.answers[place]


def all_tasks():
    return [(number, task) for number in HOMEWORK for task in plan(number).homework.tasks]


@pytest.mark.parametrize(("number", "task"), all_tasks())
def test_answers_that_are_looked_up_are_right_only_where_nothing_is_hidden(number, task):
    student, parts = Known(sample_names(number)), plan(number).homework.of(task)
    with np.printoptions(precision=17, threshold=10**7):
        assert all(attempt(part, student, hidden=True).right for part in parts)
        student.names = {}
        right = [p.title for p in parts if attempt(p, student, hidden=True, secret=SECRET).right]
    assert set(right) <= {part.title for part in parts if not part.hidden}


BELLS = {
    "difference quotients": "e = 1e-5\nf = lambda x, w: np.exp(-((x / w) ** 2))\nbell.defvjp(\n"
    "    lambda g, y, x, w: g * (f(x + e, w) - f(x - e, w)) / (2 * e),\n"
    "    lambda g, y, x, w: g * (f(x, w + e) - f(x, w - e)) / (2 * e),\n)",
    "the engine by other names": "def rule(n):\n    def by(g, y, *xs):\n"
    "        T = type(ta.primitive(lambda x: x)(xs[0]))\n"
    "        xs = [T(np.array(x), requires_grad=True) for x in xs]\n"
    "        getattr(np.exp(-((xs[0] / xs[1]) ** 2)), 'back' + 'ward')(g)\n"
    "        return getattr(xs[n], 'gra' + 'd')\n"
    "    return by\n\n\nbell.defvjp(rule(0), rule(1))",
    "the engine": "def rule(n):\n    def by(g, y, *xs):\n"
    "        xs = [ta.tensor(x, requires_grad=True) for x in xs]\n"
    "        np.exp(-((xs[0] / xs[1]) ** 2)).backward(g)\n        return xs[n].grad\n"
    "    return by\n\n\nbell.defvjp(rule(0), rule(1))",
}


@pytest.mark.parametrize("way", BELLS)
def test_the_rules_of_the_bell_are_worked_out(way, here):
    code = "@ta.primitive\ndef bell(x, width):\n    return np.exp(-((x / width) ** 2))\n\n\n"
    cells = [
        (c.id, c.kind, code + BELLS[way] if c.wanted and c.task == 8 else c.source)
        for c in plan("hw00").cells
    ]
    right = [o.title for o in graded("hw00", cells, here, 8).outcomes if o.right]
    assert "the two rules" not in right and "the second derivative" not in right


@pytest.mark.parametrize(
    ("number", "task", "empty", "code"),
    [pytest.param(*row, id=f"{row[0]}-{row[1]}") for row in EMPTY],
)
def test_an_empty_task_answers_no_other(number, task, empty, code, here):
    cells = []
    for cell in plan(number).cells:
        source = cell.solution if cell.wanted and cell.kind == "code" else cell.source
        if cell.kind == "code" and cell.wanted and cell.task in empty:
            source = cell.source
        if cell.kind == "code" and cell.wanted and cell.task == task:
            source = code
        cells.append((cell.id, cell.kind, source))
    result = graded(number, cells, here, task)
    assert not [o for o in result.outcomes if o.right]
    assert np.isfinite(result.points)
