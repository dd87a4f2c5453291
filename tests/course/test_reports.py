"""The report on a homework: what errors mean, and an error of several parts is printed once."""

import linecache

import numpy as np
import pytest

import tinyattn as ta
from tinyattn.check.report import WIDTH, wrapped
from tinyattn.course.checks import runner
from tinyattn.course.checks.errors import GUESS, meaning
from tinyattn.course.checks.homework_checker import report
from tinyattn.course.checks.judging import Diagnosis, Outcome
from tinyattn.course.checks.student import LocalStudent


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
    assert "beginning with the last" in meaning(error_in("x / z", x=x, z=np.ones(3)))[1]
    for letters, of in (("ij,jk", (x, y)), ("ij,jk->ik", (y, y)), ("ijkl", (x,))):
        line = f"np.einsum({letters!r}, *of)"
        assert "one letter for each axis" in meaning(error_in(line, of=of), line)[1], letters
    assert "np.stack" in meaning(error_in("z[0] = x", x=x, z=np.zeros(3)))[1]
    assert "must consist of integers" in meaning(error_in("x[x]", x=x))[1]
    assert meaning("something else", "x") == ("", "")


@pytest.mark.parametrize(
    ("message", "line", "said"),
    [
        ("'int' object is not callable", "a = np.exp(e - max(e)) / sum(a)", "`max` or `sum`"),
        ("'list' object is not callable", "return a.max() + range(3)", "gave `range` a new value"),
        ("'int' object has no attribute 'zeros'", "Y = np.zeros((3, 2))", "gave `np` a new value"),
        ("'int' object is not callable", "return own(3)", ""),
        ("'list' object has no attribute 'zeros'", "Y = y.zeros()", ""),
    ],
)
def test_a_name_that_another_cell_has_overwritten(message, line, said):
    found = meaning(message, line)[1]
    assert said in found and (found == "") == (said == "")


def test_one_error_is_printed_once():
    parts = [
        Outcome(2, title, False, "it stops with ValueError: no", "no") for title in ("one", "two")
    ]
    said = report(2, [*parts, Outcome(2, "three", False, "something else", "else")])
    assert said.count("ValueError") == 1 and "two: the same as in 'one'" in said
    assert "something else" in said


def test_one_error_with_different_guesses_is_printed_once():
    texts = [f"it stops with ValueError: no{guess}" for guess in ("", f"\n{GUESS}a", f"\n{GUESS}b")]
    parts = [Outcome(2, title, False, text) for title, text in zip("abc", texts, strict=True)]
    said = report(2, parts)
    assert said.count("ValueError") == 1 and "c: the same as in 'a'" in said


def test_one_line_that_stops_with_different_shapes_is_printed_once():
    texts = [f"it stops with ValueError: ({n},)\nin the line: return x @ y" for n in "23"]
    texts.append(texts[1].replace("ValueError", "TypeError"))
    parts = [Outcome(2, title, False, text) for title, text in zip("abc", texts, strict=True)]
    said = report(2, parts)
    assert said.count("return x @ y") == 2 and "(3,)" in said.partition("c: ")[2]
    assert "b: it stops with ValueError in the same line as 'a'" in said


def test_long_lines_are_broken_between_words():
    text = (
        "Task 2: 0 of 1 parts are right.\n  ✗  the rule: " + 20 * "not correct yet, " + "\n     x"
    )
    lines = wrapped(text, indent=5 * " ").split("\n")
    assert max(map(len, lines)) <= WIDTH and lines[0] == text.split("\n")[0]
    assert all(line.startswith("     ") for line in lines[2:])
    assert " ".join(" ".join(lines).split()) == " ".join(text.split())


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("<cell hw00-003>", True),
        ("/tmp/ipykernel_123/456.py", True),
        (r"C:\\Temp\\ipykernel_123\\456.py", True),
        ("<ipython-input-3-ab12>", True),
        ("/home/marcello/tinyattn/engine/autograd.py", False),
    ],
)
def test_the_students_line_is_named(file, known):
    source = "def own(x):\n    return x.unsqueeze(0)\n"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names = {}
    exec(compile(source, file, "exec"), names)
    reply = runner.answer(lambda its: its.own(np.ones(3)), names, [])
    assert reply["line"] == ("return x.unsqueeze(0)" if known else "")


def test_the_title_of_a_part_is_printed_once():
    said = report(2, [Outcome(2, "the rule of a", False, "the rule of a: not correct yet.")])
    assert "✗  the rule of a: not correct yet." in said


@pytest.mark.parametrize(
    ("message", "line", "said"),
    [
        ("'numpy.ndarray' object has no attribute 'unsqueeze'", "", "np.expand_dims(x, 0)"),
        ("'numpy.ndarray' object has no attribute 'masked_fill'", "", "np.where(m, 0, x)"),
        ("sum() got an unexpected keyword argument 'keepdim'", "", "keepdims=True"),
        ("name 'torch' is not defined", "y = torch.matmul(a, b)", "x @ x.T"),
        ("name 'torch' is not defined", "import torch_", "NumPy's functions"),
        ("name 'torch' is not defined", "y = torch.sigmoid(x)", "NumPy's functions"),
        ("'numpy.ndarray' object has no attribute 'foo'", "", ""),
    ],
)
def test_names_of_pytorch_get_the_hint_on_plain_arrays(message, line, said):
    found = meaning(message, line)[1]
    assert said in found and (found == "") == (said == "")


RULE = """\
@ta.primitive
def cube(x):
    return x**3

def rule(g, y, x):
    g *= 3 * x**2
    return g

cube.defvjp(rule)
"""


def written(file, name, code=RULE):
    """The report on a function in a cell that JupyterLab runs under the name of a file."""
    linecache.cache[file] = len(code), None, code.splitlines(keepends=True), file
    names = {"ta": ta, "np": np, "__name__": "__main__"}
    exec(compile(code, file, "exec"), names)
    student = LocalStudent(names)
    with pytest.raises(Diagnosis) as caught:
        if name == "cube":
            student.gradients(name, np.ones(2), arriving=np.ones(2), hint="it has one rule")
        else:
            getattr(student, name)(np.ones(2), hint="x is [N]")
    return str(caught.value)


@pytest.mark.parametrize(
    "file",
    ["/tmp/ipykernel_12/345.py", "<ipython-input-3-a1b2>", "<cell hw00-003>", "<own cell 3>"],
)
def test_the_line_that_writes_into_an_input_is_shown_and_nothing_is_guessed(file):
    said = written(file, "cube")
    assert "in the line: g *= 3 * x**2" in said and "x.copy()" in said and GUESS not in said
    said = written(file, "double", "def double(x):\n    x *= 2\n    return x\n")
    assert "in the line: x *= 2" in said and "writes into one of its inputs" in said
    assert GUESS not in said
    said = written(file, "wrong", "def wrong(x):\n    return x @ np.ones(3)\n")
    assert "in the line: return x @ np.ones(3)" in said and f"{GUESS}x is [N]" in said
