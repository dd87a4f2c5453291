"""The student's functions as the checks see them: called with arrays, they return arrays.

A check never holds a student's object. It calls a function by its name, or sends its own function
that runs with the student's code, and receives plain data. The same check therefore works on a
notebook in this process and on one in a sandbox.
"""

import copy
import inspect
import linecache

from tinyattn.course.checks import runner
from tinyattn.course.checks.errors import GUESS, OVERWRITTEN, WRITTEN, meaning
from tinyattn.course.checks.judging import NO_RETURN, Diagnosis, Unfinished


class Student:
    """A student's functions: `student.f(x)` calls f(x) and returns the result as plain data."""

    counted = None  # grading counts the numbers that passed through exp, tanh, ... in tasks by hand

    def ask(self, function, *inputs, hint=""):
        """Return the result of function(names, *inputs), which runs with the student's code.

        The function is sent as text, so it may use np, ta and its inputs, and nothing else of its
        module. Raises Diagnosis if the function stops with an error, for which `hint` names a
        possible reason.
        """
        reply = self._ask(function, inputs)
        if "value" in reply:
            return reply["value"]
        raise _diagnosis(reply, hint)

    def _ask(self, function, inputs):
        raise NotImplementedError

    def gradients(self, name, *inputs, of=None, arriving=None, hint=""):
        """Return (output, gradients) of a student's function.

        Args:
            name       name of the function
            inputs     arguments of the function
            of         indices of the inputs with respect to which to differentiate. If None, all
            arriving   incoming gradient. If None, the output must be a single number
            hint       possible reason if the function stops with an error

        Raises:
            Diagnosis: the function stops with an error, or no gradient reaches the inputs
        """
        of = list(range(len(inputs))) if of is None else of
        y, grads = self.ask(_gradients, name, list(inputs), of, arriving, hint=hint)
        if grads is None:
            raise Diagnosis(
                f"{name}: the gradient does not reach the inputs. Use operators and NumPy "
                "functions on the inputs themselves, not .numpy(), .data or np.asarray"
                + (f"\n{hint}" if hint else ""),
                "when the gradient is lost on the way",
            )
        return y, grads

    def steps(self, name, *inputs):
        """Call the student's function `name` with `inputs`, and count the lines that are executed.

        Only lines of the notebook count, and each call of a function counts as one more.
        """
        return self.ask(_steps, name, list(inputs))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*inputs, hint=""):
            value = self.ask(_call, name, list(inputs), hint=hint)
            if value is None:
                raise Diagnosis(f"{name} returned None. Is the `return` missing?", NO_RETURN)
            return value

        return call


class LocalStudent(Student):
    """The functions of a notebook that runs in this process."""

    def __init__(self, names):
        self.names = names

    def _ask(self, function, inputs):
        return runner.answer(function, self.names, copy.deepcopy(inputs))

    def sources(self):
        """Return the cells that defined the current functions and classes of the notebook."""
        files = dict.fromkeys(filter(None, map(_file_of, list(self.names.values()))))
        return ["".join(linecache.getlines(file)) for file in files]


def _file_of(value):
    """Return the name of the cell in which a function or class of the notebook was written."""
    if getattr(value, "__module__", None) != "__main__":
        return None
    inner = vars(value).values() if isinstance(value, type) else [value]
    codes = (getattr(inspect.unwrap(f), "__code__", None) for f in inner if callable(f))
    return next((code.co_filename for code in codes if code is not None), None)


def _call(its, name, inputs):
    return getattr(its, name)(*inputs)


def _steps(its, name, inputs):
    import sys

    steps, before = [0], sys.gettrace()

    def look(frame, event, argument):
        if frame.f_globals.get("__name__") != "__main__":
            return None
        steps[0] += event in ("call", "line")
        return look

    function = getattr(its, name)
    sys.settrace(look)
    try:
        function(*inputs)
    finally:
        sys.settrace(before)
    return steps[0]


def _gradients(its, name, inputs, of, arriving):
    import numpy as np

    import tinyattn as ta

    given = [
        ta.tensor(np.array(x, dtype=float), requires_grad=True) if i in of else x
        for i, x in enumerate(inputs)
    ]
    y = getattr(its, name)(*given)
    if not isinstance(y, ta.Tensor) or not y.requires_grad:
        return y, None
    y.backward(None if arriving is None else np.asarray(arriving).reshape(y.shape))
    return y, [given[i].grad for i in of]


def _diagnosis(reply, hint):
    """Return the Diagnosis for an error of the student's code, from the reply with this error."""
    error, message = reply["error"], reply["message"]
    if error == "NotImplementedError":
        return Unfinished(message or "not done yet")
    if error == "Forbidden":
        return Diagnosis(message, message)
    line = f"\nin the line: {reply['line']}" if reply["line"] else ""
    short, sentence = meaning(message, reply["line"])
    known = short in (OVERWRITTEN, WRITTEN) or error == "WrittenError"
    known = known or (error == "NameError" and message.startswith("there is no"))
    guess = f"{GUESS}{hint}" if hint and not known else ""
    lines = [f"it stops with {error}: {message}{line}", sentence, guess]
    return Diagnosis(
        "\n".join(filter(None, lines)), ": ".join(filter(None, [f"it stops with {error}", short]))
    )
