"""The checks of the homework: one module for each, and the judge that all of them use.

A notebook opens them with `hw = checks.homework("hw04", globals())` and calls `hw.check(1)` after
each task and `hw.table()` at the end. `tinyattn check` and `tinyattn grade` use the same checks.
"""

from importlib import import_module
from importlib.util import find_spec

from tinyattn.course.checks.desk import Desk
from tinyattn.course.checks.student import LocalStudent
from tinyattn.course.project import CourseError

__all__ = ["Desk", "homework", "load"]


def homework(number, names):
    """The checks of this homework for the functions in `names`, as a notebook uses them."""
    return Desk(load(number), LocalStudent(names))


def load(number):
    """The checks of this homework. Raises CourseError if it has none."""
    module = f"{__name__}.{number}"
    if find_spec(module) is None:
        raise CourseError(f"{number} has no checks (there is no module {module})")
    return import_module(module).homework
