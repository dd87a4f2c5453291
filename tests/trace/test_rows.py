"""What elements are made of, for every operation: nothing about one is declared by its name."""

import contextlib

import numpy as np
import pytest

import tests.cases.captioner
import tests.cases.conv
import tests.cases.graph
import tests.cases.models
import tests.cases.points
import tests.cases.recurrent
import tests.cases.rowwise  # noqa: F401 - each of these files adds its cases
import tinyattn as ta
import tinyattn.functional as F
from tests.cases.layers import CASES
from tests.ops.test_gradients import indexing_cases, name_of
from tinyattn import Tensor
from tinyattn.trace.build import _columns_of
from tinyattn.trace.forward import Measured, function_of
from tinyattn.trace.jacobian_rows import _elsewhere, _one_by_one, rows_of
from tinyattn.trace.patterns import packed
from tinyattn.trace.tape import Tape, pull
from tinyattn.trace.terms import summands

CASES["indexing"] = indexing_cases()
MOST = 500  # elements of y times those of the inputs; larger steps are no new operation
# these read one triangle only, and their rules share the gradient between both
NOT_MEASURED = {"cholesky", "eigh"}


SEEN, RAN = set(), set()  # (operation, note, shapes) that were checked; rows of the table


def tapes(case):
    """The tape of each floating-point result of a case, made one number with random weights."""
    inputs = [Tensor(x, requires_grad=True) if is_floating(x) else x for x in case.inputs]
    results = case.f(*inputs)
    for y in results if isinstance(results, tuple | list) else [results]:
        if isinstance(y, Tensor) and y.requires_grad and y.size:
            weights = np.random.default_rng(0).normal(size=y.shape).astype(y.dtype)
            yield Tape(np.sum(y * weights))


def is_floating(x):
    return isinstance(x, float | np.ndarray) and np.asarray(x).dtype.kind == "f"


def size_of(value):
    return value.size if isinstance(value, np.ndarray) else 1


def check(step, g, function=None):
    """Rows against the rule, patterns against rows, terms against the result, slopes measured."""
    function = function or function_of(step.operation)
    assert function is not None, f"{step.operation.name}: its function is not found"
    rows = rows_of(step, function)
    forms = packed(step, rows)
    terms = summands(step, rows, forms)
    for k, (x, r) in enumerate(zip(step.inputs, rows, strict=True)):
        if x is None or not x.requires_grad:
            continue
        size = size_of(step.values[k])
        matrix = unpacked(forms, rows, step, k, size)
        whole = pull(step, g)[k].reshape(-1)
        close(g.reshape(-1) @ matrix, whole, f"{step.operation.name}: gradient of input {k}", g)
        if "residuals" not in step.options and step.operation.name not in NOT_MEASURED:
            m = Measured(function, step, k)
            bad = m.wrong(_columns_of(step, r, k, m.columns))
            assert not bad.any(), f"{step.operation.name}: {bad.sum()} measured slopes of input {k}"
    if terms is not None:
        total = sum(
            products(step, unpacked(forms, rows, step, k, size_of(step.values[k])), k)
            for k in terms
        )
        close(total, step.y.reshape(-1), f"{step.operation.name}: terms")


def products(step, matrix, k):
    """Σ_j slope · x_j, where 0 · ∞ is 0: a number that has no part in it."""
    x = np.asarray(step.values[k], float).reshape(-1)
    return np.where(matrix == 0, 0, matrix * x).sum(axis=1)


def close(a, b, what, g=0.0):
    tolerance = 2e-5 if np.asarray(b).dtype == np.float32 else 1e-6
    scale = 1 + np.abs(b[np.isfinite(b)]).max(initial=0) + np.abs(g).max(initial=0)
    assert np.allclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True), what


def unpacked(forms, rows, step, k, size):
    """The Jacobian of one input from its pattern, as the page reads it."""
    form, n = forms[k], step.y.size
    matrix = np.zeros((n, size))
    for i in range(n):
        start, end = (
            (form["starts"][i], form["starts"][i + 1])
            if "starts" in form
            else (i * form["n"], (i + 1) * form["n"])
        )
        for at in range(start, end):
            matrix[i, column(form, i, at)] = slope(forms, step, k, i, at)
    return matrix


def column(form, i, at):
    if "columns" in form:
        return form["columns"][at]
    place = at - i * form["n"]
    first = i if isinstance(form["first"], str) else form["first"][i]
    offset = form["offset"]
    return first + (place * offset if isinstance(offset, int) else offset[place])


def slope(forms, step, k, i, at):
    form = forms[k]
    if "slope" in form:
        return form["slope"]
    if "partner" in form:
        p = form["partner"]
        return np.asarray(step.values[p]).reshape(-1)[column(forms[p], i, at)]
    if "row" in form:
        return form["row"][i]
    return form["same"][at - i * form["n"]] if "same" in form else form["slopes"][at]


@pytest.mark.parametrize("what", list(CASES), ids=lambda w: w if isinstance(w, str) else name_of(w))
def test_terms_add_up(what):
    RAN.add(what)
    for case in CASES[what]:
        for tape in tapes(case):
            for step in tape.steps:
                work = step.y.size * sum(map(size_of, step.values))
                kind = step.operation, len(tape.steps) < 4 and case.note
                shapes = tuple([np.shape(v) if is_floating(v) else None for v in step.values])
                # the same operation inside of a layer again and again shows nothing new
                known = any(step.operation is operation for operation, *_ in SEEN)
                if 0 < work <= (MOST if known else 40 * MOST) and (*kind, shapes) not in SEEN:
                    SEEN.add((*kind, shapes))
                    with np.errstate(all="ignore"):
                        check(step, tape.gradients[step.tensor])


def test_the_check_sees_a_wrong_rule():
    @ta.primitive
    def cube(x):
        return x**3

    for rule, right in (
        (lambda g, y, x: g * 3 * x**2, True),
        (lambda g, y, x: g * 2 * x**2, False),
    ):
        cube.defvjp(rule)
        (step, *_) = Tape(np.sum(cube(Tensor(np.array([1.0, 2.0]), requires_grad=True)))).steps
        with contextlib.nullcontext() if right else pytest.raises(AssertionError, match="measured"):
            check(step, np.ones(2), cube.__wrapped__)


QUICK = {
    "reshape": lambda x: np.reshape(x.T, (2, 15)),
    "slice": lambda x: x[1:, ::2],
    "picked once": lambda x: x[np.array([4, 0, 2])],
    "picked twice": lambda x: x[np.array([4, 0, 4])],
    "broadcast": lambda x: x * x[:, :1] + x[0],
    "tanh": np.tanh,
    "neighbours": lambda x: np.cumsum(x, axis=1),
    "mean taken off": lambda x: x - np.mean(x, axis=0),
    "softmax": lambda x: F.softmax(x),
    "maximum": lambda x: np.maximum(x, x[::-1]),
}


@pytest.mark.parametrize("name", list(QUICK))
def test_rows_found_with_few_questions_are_those_of_one_each(name):
    x = Tensor(np.random.default_rng(0).normal(size=(5, 6)), requires_grad=True)
    for step in Tape(np.sum(QUICK[name](x) ** 2)).steps:
        rows = rows_of(step, function_of(step.operation))
        each = _one_by_one([step, *_elsewhere(step, function_of(step.operation))])
        for a, b, value in zip(rows, each, step.values, strict=True):
            if b is not None:
                assert np.allclose(a.dense(np.size(value)), b.dense(np.size(value)), atol=1e-9)


def test_every_operation_was_looked_at():
    """The gradient table runs every primitive (tests/ops/test_gradients.py); so must this."""
    if not all(what in RAN for what in CASES):
        pytest.skip("only some of the operations were asked for")
    missed = {
        s.operation.name for what in CASES for c in CASES[what] for t in tapes(c) for s in t.steps
    } - {operation.name for operation, *_ in SEEN}
    assert len(SEEN) > 500
    assert not missed
