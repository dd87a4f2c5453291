"""What the checks of all homework share. `lectures/homework/checks/` has a file for each homework.

A notebook loads the checks with `hw = checks.homework("hw04", globals())` and calls `hw.check(1)`
after each task and `hw.table()` at the end. `tinyattn check` and `tinyattn grade` use the same
checks.
"""

import base64
import linecache
import sys
import zlib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tinyattn.course.checks.homework_checker import HomeworkChecker
from tinyattn.course.checks.student import LocalStudent
from tinyattn.course.project import CHECKS, CourseError, find_root

__all__ = ["HomeworkChecker", "homework", "load", "module"]


def homework(number, names):
    """Return the checks of a homework for the functions of a notebook.

    Args:
        number   number of the homework, such as "hw04"
        names    {name: value} of the notebook, globals()

    Returns:
        a `HomeworkChecker`

    Raises:
        CourseError: the homework has no checks, or there is no folder of the course
    """
    return HomeworkChecker(load(number), LocalStudent(names))


def load(number, root=None):
    """Return the checks of a homework, a `Homework`.

    Args:
        number   number of the homework, such as "hw04"
        root     folder of the course. If None, look for it in the working folder and above

    Raises:
        CourseError: the homework has no checks, or there is no folder of the course
    """
    return module(number, root).homework


def module(number, root=None):
    """Return the file `lectures/homework/checks/<number>.py` as a module, which is loaded once.

    In an installed course, the file is `<number>.packed`, for the reason given in `setup.py`.

    Args:
        number   number of the homework, such as "hw04"
        root     folder of the course. If None, look for it in the working folder and above

    Raises:
        CourseError: there is no such file, or no folder of the course
    """
    path = (find_root() if root is None else Path(root)) / CHECKS / f"{number}.py"
    name = f"tinyattn.course.checks.{number}"  # tracebacks and pickle use this name
    if name in sys.modules and sys.modules[name].__file__ == str(path):
        return sys.modules[name]
    if path.is_file():
        spec = spec_from_file_location(name, path)
        made, run = module_from_spec(spec), spec.loader.exec_module
    elif path.with_suffix(".packed").is_file():
        made, run = ModuleType(name), _run_packed
        made.__file__ = str(path)
    else:
        there = sorted({p.stem for p in path.parent.glob("hw*")})
        raise CourseError(
            f"there are no checks for the homework {number!r} in {path.parent}. "
            + (f"Choose one of {', '.join(there)}" if there else "The folder has none")
        )
    sys.modules[name] = made
    try:
        run(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made


def unpacked(text):
    """Return the source of the checks that are packed in `text`."""
    return zlib.decompress(base64.b64decode(text.partition("\n")[2])).decode()


def _run_packed(made):
    path = made.__file__
    source = unpacked(Path(path).with_suffix(".packed").read_text(encoding="utf-8"))
    # inspect must find the lines of a check, because it is sent to the student's code as text
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    exec(compile(source, path, "exec"), vars(made))
