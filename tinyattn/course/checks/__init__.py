"""The common part of all homework checks; the checks of one homework are in
`lectures/homework/checks/`.

A notebook loads them with `hw = checks.homework("hw04", globals())` and calls `hw.check(1)` after
each task and `hw.table()` at the end. `tinyattn check` and `tinyattn grade` use the same checks.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location

from tinyattn.course.checks.homework_checker import HomeworkChecker
from tinyattn.course.checks.student import LocalStudent
from tinyattn.course.project import CHECKS, CourseError, find_root

__all__ = ["HomeworkChecker", "homework", "load", "module"]


def homework(number, names):
    """Return the checks of this homework for the functions in `names`, as a notebook uses them."""
    return HomeworkChecker(load(number), LocalStudent(names))


def load(number, root=None):
    """Return the checks of the homework `number` in the course at `root` (None: `find_root()`).

    Raises CourseError if the homework has no checks.
    """
    return module(number, root).homework


def module(number, root=None):
    """Return the file `lectures/homework/checks/<number>.py` as a module, which is loaded once."""
    path = (find_root() if root is None else root) / CHECKS / f"{number}.py"
    name = f"tinyattn.course.checks.{number}"  # tracebacks and pickle use this name
    if name in sys.modules and sys.modules[name].__file__ == str(path):
        return sys.modules[name]
    if not path.is_file():
        raise CourseError(f"{number} has no checks, because there is no file {path}")
    spec = spec_from_file_location(name, path)
    sys.modules[name] = made = module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made
