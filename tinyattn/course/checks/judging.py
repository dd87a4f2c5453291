"""The judge of all homework: compare with the expected result, and name a known mistake."""

import inspect
import re
import textwrap
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np

from tinyattn.course.checks.listed import BASIC

NO_RETURN = "without return"
VALUES = "no gradient, because the values are not right"
# tolerances for a formula in float64, which are too strict for difference quotients
EXACT = {"rtol": 1e-9, "atol": 1e-12}
HIDDEN = (1, 2, 3)  # seeds of the cases that only the grader uses
GRADIENTS = [
    f"tinyattn.{name}"
    for name in ("grad", "gradients", "value_and_grad", "jacobian", "hessian", "Tensor.backward")
] + ["tinyattn.engine.autograd.backward_pass"]


class Diagnosis(Exception):
    """The error for a wrong answer, whose text explains why it is wrong.

    Args:
        text      explanation for the student
        mistake   name of the kind of mistake. If None, it is the first line without its numbers
    """

    def __init__(self, text, mistake=None):
        super().__init__(text)
        self.mistake = mistake or re.sub(r"-?\d[\d.e+-]*", "…", text.split("\n")[0])[:160]


class Unfinished(Diagnosis):
    """The error for a task whose stub has not been replaced yet."""


class NotAsked(Exception):
    """The error for a question that did not reach the student's code and cannot be judged."""


class Case:
    """One set of inputs for a check. The student sees case 0, and the other cases are hidden.

    The checks are public, so the hidden inputs also depend on a secret number.

    Args:
        number   number of the case
        secret   number of the grader
    """

    def __init__(self, number, secret=0):
        self.number = number
        self.rng = np.random.default_rng(
            [25, number, secret] if number and secret else [25, number]
        )

    def size(self, shown, low, high):
        """Return a size: `shown` in the visible case, otherwise one from low to high."""
        return shown if self.number == 0 else int(self.rng.integers(low, high + 1))

    def normal(self, *shape):
        """Return normally distributed numbers of this shape."""
        return self.rng.normal(size=shape)


@dataclass
class Part:
    """A part of a task, worth one point. For a wrong answer, its function raises Diagnosis."""

    task: int
    title: str
    function: object  # function (student, case)
    hidden: tuple = HIDDEN

    @property
    def name(self):
        return f"{self.task} {self.title}"

    def __reduce__(self):
        """Pickle by module and title, because a nested function cannot be pickled."""
        return part_of, (self.function.__module__, self.task, self.title, self.hidden)


def part_of(module, task, title, hidden):
    """Return the part with this title among the checks in a module, with these hidden cases."""
    found = next(p for p in import_module(module).homework.of(task) if p.title == title)
    return replace(found, hidden=hidden)


@dataclass
class Outcome:
    """The outcome of one part of a task: whether it is right, and what the student reads."""

    task: int
    title: str
    right: bool
    text: str = ""
    mistake: str = ""
    unfinished: bool = False


@dataclass
class Homework:
    """The checks of one homework, and the rules of its tasks."""

    number: str
    parts: list = field(default_factory=list)
    allowed: dict = field(default_factory=dict)  # task -> names of the library that it may use
    by_hand: dict = field(default_factory=dict)  # task -> names of the engine that are removed
    earlier: dict = field(default_factory=dict)  # task -> functions of earlier tasks that it uses

    def part(self, task, title, hidden=HIDDEN):
        """Return a decorator that makes a function (student, case) a part of a task.

        Args:
            task     number of the task
            title    title of the part
            hidden   numbers of the hidden cases
        """

        def register(function):
            self.parts.append(Part(task, title, function, tuple(hidden)))
            return function

        return register

    def allow(self, task, *names):
        """Allow this task and later ones to use names of the library, which are given in full.

        NumPy and the student's own code are allowed in every task. Everything else must be listed
        here.
        """
        self.allowed.setdefault(task, []).extend(names)

    def derive_by_hand(self, task, *, engine=False):
        """Require that the derivatives in this task are derived by hand, not by the engine.

        The engine is removed, unless the check itself needs it (`engine`). The numbers that pass
        through exp, tanh and similar functions are counted, see `Student.counted`.
        """
        self.by_hand[task] = [] if engine else GRADIENTS

    def build_on(self, task, *names):
        """Name the functions of earlier tasks that this task builds on.

        If the student's versions are wrong, the task is tested again with those of the sample
        solution.
        """
        self.earlier.setdefault(task, []).extend(names)

    def listed(self, task):
        """Return the full names in the library that this task may use."""
        basic = () if task in self.by_hand else BASIC
        before = [name for t, names in self.allowed.items() if t <= task for name in names]
        return [*basic, *before]

    @property
    def tasks(self):
        return list(dict.fromkeys(part.task for part in self.parts))

    def of(self, task):
        """Return the parts of this task, a list. Raises ValueError if there are none."""
        wanted = int(task) if str(task).isdigit() else task
        found = [part for part in self.parts if part.task == wanted]
        if not found:
            raise ValueError(
                f"{self.number} has no task {task!r}. Choose one of "
                f"{', '.join(map(str, self.tasks))}"
            )
        return found


def attempt(part, student, *, hidden=False, secret=0):
    """Test one part with the visible inputs, and with the hidden ones if requested.

    Args:
        part      the `Part`
        student   the `Student`
        hidden    True: also test it with the hidden inputs
        secret    number of the grader, on which the hidden inputs depend

    Returns:
        an `Outcome`
    """
    for number in (0, *(part.hidden if hidden else ())):
        try:
            with np.errstate(all="ignore"):  # the mistakes that the check looks for may overflow
                part.function(student, Case(number, secret))
        except Unfinished as error:
            return Outcome(part.task, part.title, False, str(error), "not done", True)
        except Diagnosis as error:
            before = "right for the inputs of the check, but not for others: " if number else ""
            return Outcome(part.task, part.title, False, before + str(error), error.mistake)
        except NotAsked:
            raise
        except Exception as error:  # the answer has a type that the check does not expect
            text = f"this answer cannot be read ({type(error).__name__}: {error})"
            return Outcome(part.task, part.title, False, text[:500], "an answer of another kind")
    return Outcome(part.task, part.title, True)


def expect(condition, text, mistake=None):
    """Raise a Diagnosis if a condition does not hold.

    Args:
        condition   True, False, or an array of bools that must all be True
        text        explanation for the student
        mistake     name of the kind of mistake. If None, it is derived from the text
    """
    if not (condition.all() if isinstance(condition, np.ndarray) else condition):
        raise Diagnosis(text, mistake)


def by_formula(student, most):
    """Raise Diagnosis if the last answer passed more numbers to exp, tanh, ... than a formula does.

    Difference quotients, complex steps and similar methods evaluate the function itself many times.
    The evaluations are counted only in grading, so every answer passes in the notebook.

    Args:
        student   the `Student`
        most      largest number of numbers that a formula passes to exp, tanh or similar functions
    """
    expect(
        student.counted is None or student.counted <= most,
        f"right, but {student.counted} numbers were passed to exp, tanh or similar functions, "
        f"and a formula needs at most {most}. Derive the derivative by hand instead of measuring "
        "differences",
        "differences in place of the derivative",
    )


def without_loops(student, name, small, large, more=""):
    """Raise Diagnosis if a function executes more lines for larger arrays, as a loop does.

    Args:
        student   the `Student`
        name      name of the function
        small     inputs
        large     longer inputs
        more      text that is appended to the advice
    """
    few, many = (student.steps(name, *inputs) for inputs in (small, large))
    expect(
        many <= few + 2,
        f"{name}: correct, but your code executes {few} lines for short inputs and {many} for "
        f"longer ones, as a loop does. Compute everything at once with array operations{more}",
        "with a loop",
    )


def number_of(came, what="the result"):
    """Return a student's result as a number.

    Args:
        came   the result
        what   name of the result for messages

    Raises:
        Diagnosis: the result is not a single number
    """
    came = array_of(came, what)
    expect(came.shape == (), f"{what}: expected one number, got shape {came.shape}")
    return came[()]


def array_of(came, what="your result"):
    """Return a student's result as an array of numbers.

    Args:
        came   the result
        what   name of the result for messages

    Raises:
        Diagnosis: the result is None, or does not consist of numbers in an array
    """
    if came is None:
        raise Diagnosis(f"{what} is None. Did you forget `return`?", NO_RETURN)
    if isinstance(came, SimpleNamespace):
        raise Diagnosis(f"expected an array, but {what} has the type {came.type}")
    try:
        array = np.asarray(came)
    except ValueError:
        raise Diagnosis(
            f"expected an array, but {what} is a {type(came).__name__} with rows of different "
            "lengths or shapes"
        ) from None
    if array.dtype.kind not in "biufc":
        kind = f"type {type(came).__name__}"
        kind = f"dtype {array.dtype}" if isinstance(came, np.ndarray) else kind
        raise Diagnosis(f"expected numbers, but {what} has the {kind}")
    return array


def judge(came, expected, mistakes=(), *, rtol=1e-5, atol=None, what="", kind=""):
    """Compare a result with the expected one, and name the mistake if it is a known one.

    The tolerance is suitable for float32, in which a right answer may be computed: 1e-5 of a
    number, and 1e-6 of the largest one. Derivatives by hand are compared more strictly (`EXACT`).

    Args:
        came       the student's result
        expected   the right result
        mistakes   {text that completes "what you get ...": the result of a known mistake}
        rtol       largest difference that passes, as a fraction of a number
        atol       largest absolute difference that passes. If None, 1e-6 of the largest number
        what       name of the result, if a part has several
        kind       "bool" to expect a boolean array, and "" for any numbers

    Raises:
        Diagnosis: the result is wrong
    """
    start = f"{what}: not correct yet. " if what else "not correct yet. "
    if came is None:
        raise Diagnosis(f"{start}It returned None. Is the `return` missing?", NO_RETURN)
    came, expected = array_of(came), np.asarray(expected)
    atol = 1e-6 * _largest(expected) if atol is None else atol
    _known(came, expected, dict(mistakes), start, (rtol, atol))
    if came.shape != expected.shape:
        raise Diagnosis(
            f"{start}Expected shape {expected.shape}, but yours has shape {came.shape}",
            "with another shape than asked for",
        )
    if kind == "bool" and came.dtype != bool:
        raise Diagnosis(f"{start}It should be a boolean array, but yours has dtype {came.dtype}")
    if np.isnan(came.astype(complex)).any() and not np.isnan(expected.astype(complex)).any():
        nans = np.isnan(came).sum()
        found = f"{nans} of your {came.size} numbers {'is' if nans == 1 else 'are'} NaN"
        found = "Your number is NaN" if came.size == 1 else found
        raise Diagnosis(f"{start}{found}", "with NaN")
    if _same(came, expected, rtol, atol):
        return
    difference = np.abs(came.astype(complex) - expected.astype(complex))
    i = tuple(map(int, np.unravel_index(difference.argmax(), came.shape)))
    where = f"The largest difference is at index {i}: expected" if came.shape else "Expected"
    right, yours, hint = f"{expected[i]:.4g}", f"{came[i]:.4g}", ""
    if right == yours:
        right, yours = f"{expected[i]:.9g}", f"{came[i]:.9g}"
        hint = (
            ". The numbers almost agree. Perhaps something is computed in float32, but "
            "float64 is needed here"
        )
    raise Diagnosis(f"{start}{where} {right}, yours is {yours}{hint}", "other numbers")


def _largest(x):
    """Return the largest finite absolute value in an array, at least 1e-9."""
    x = np.abs(x.astype(complex))
    return max(x[np.isfinite(x)].max(initial=0.0), 1e-9)


def _known(came, expected, mistakes, start, tolerance):
    if came.shape == expected.shape and _same(came, expected, *tolerance):
        return
    for mistake, wrong in mistakes.items():
        wrong = np.asarray(wrong)
        if wrong.shape == came.shape and _same(came, wrong, *tolerance):
            raise Diagnosis(f"{start}Your numbers match what you get {mistake}", mistake)


def _same(a, b, rtol, atol):
    return np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)


def judge_gradients(
    student, name, reference, *inputs, of=None, letters=(), hint="", case=None, slips=None
):
    """Compare the gradients of a student's function with difference quotients of `reference`.

    Args:
        student     the `Student`
        name        name of the function
        reference   function of the same arrays that returns the expected output
        inputs      arguments of both functions
        of          indices of the inputs with respect to which to differentiate. If None, all
        letters     names of these inputs for messages
        hint        possible reason if the function stops with an error
        case        the `Case`, which determines the incoming gradient
        slips       {mistake: function whose gradients the mistake would give}

    Raises:
        Diagnosis: the output or a gradient is wrong
    """
    of = list(range(len(inputs))) if of is None else of
    expected = np.asarray(reference(*inputs))
    rng = np.random.default_rng(7 if case is None else [7, case.number])
    arriving = rng.normal(size=expected.shape)
    y, grads = student.gradients(name, *inputs, of=of, arriving=arriving, hint=hint)
    _values_first(name, y, expected)
    for place, (i, came) in enumerate(zip(of, grads, strict=True)):
        letter = letters[place] if letters else f"input {i + 1}"
        if came is None:
            raise Diagnosis(f"{name}: no gradient arrives at {letter}")
        what = f"{name}, the gradient with respect to {letter}"
        right = slopes(reference, inputs, i, arriving)
        mistakes = {why: slopes(f, inputs, i, arriving) for why, f in (slips or {}).items()}
        judge(came, right, mistakes, rtol=1e-4, atol=1e-6, what=what)


def _values_first(name, came, expected):
    """Raise Diagnosis if the result `came` is wrong, as its gradient then has no meaning."""
    try:
        judge(came, expected)
    except Diagnosis as error:
        text = f"{name}: the gradient is checked only when the values are correct"
        raise Diagnosis(
            f"{text} ({str(error).removeprefix('not correct yet. ')})", VALUES
        ) from None


def slopes(f, inputs, i, arriving=1.0, epsilon=1e-6):
    """Return the gradient of sum(arriving · f) with respect to input i, by central differences.

    Args:
        f          function of the inputs
        inputs     arguments of f
        i          index of an input
        arriving   incoming gradient, of the shape of the output or 1
        epsilon    step of the differences
    """
    inputs = [np.array(x, dtype=float) if n == i else x for n, x in enumerate(inputs)]
    x = inputs[i]
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        kept, values = x[place], []
        for sign in (1, -1):
            x[place] = kept + sign * epsilon
            values.append(np.sum(arriving * np.asarray(f(*inputs))))
        x[place] = kept
        found[place] = (values[0] - values[1]) / (2 * epsilon)
    return found


def source_of(function):
    """Return the source of a function, which is sent to the student's code."""
    return textwrap.dedent(inspect.getsource(function))
