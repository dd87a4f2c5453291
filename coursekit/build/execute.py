"""Run the cells of a lecture in this Python, without a kernel, for `tinyattn run`."""

import ast
import contextlib
import io
import linecache
import os
import sys
import traceback
import types
from dataclasses import dataclass, field

from coursekit.build.text import tags_of
from tinyattn.course.claims import Claim, ClaimError, full
from tinyattn.course.project import CourseError, install, pip


class CellError(CourseError):
    """The error for a cell of a lecture or homework that raised an error, which is `cause`."""

    def __init__(self, message, cause):
        super().__init__(message)
        self.cause = cause


@dataclass
class Outcome:
    """The outcome of a cell: its printed text, and the claim it tested."""

    printed: str = ""
    claims: list = field(default_factory=list)
    disagreement: ClaimError | None = None


def namespace():
    """Return a new module for the variables of a lecture, which classes can name."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    return module.__dict__


def wanted(cell):
    """Return whether this run executes a code cell. Slow cells need a full run."""
    return cell["cell_type"] == "code" and (full() or "slow" not in tags_of(cell))


def execute(cell, names):
    """Run one code cell in the namespace `names` and return its Outcome.

    A claim that disagrees with the ledger is part of the outcome, so the lecture continues with its
    other claims. Any other exception raises CellError with the cell's own lines.
    """
    where = f"<cell {cell.get('id', '')}>"
    outcome, printed = Outcome(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            value = _value_of_last_expression(cell["source"], where, names)
        if isinstance(value, Claim):
            outcome.claims.append(value)
        elif value is not None:
            print(repr(value), file=printed)
    except ClaimError as error:
        outcome.disagreement = error
    except Exception as error:
        raise CellError(_report(cell["source"], where, error, printed.getvalue()), error) from None
    finally:
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
    outcome.printed = printed.getvalue()
    return outcome


@contextlib.contextmanager
def surroundings(folder):
    """Run the block in `folder`, as the notebook does, but without displaying figures."""
    before = os.getcwd()
    os.environ.setdefault("MPLBACKEND", "agg")
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _value_of_last_expression(source, where, names):
    # tracebacks and inspect.getsource need this to find the lines of the cell
    linecache.cache[where] = (len(source), None, source.splitlines(keepends=True), where)
    tree = ast.parse(source, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    return None if source.rstrip().endswith(";") else value


def _report(source, where, error, printed):
    """Format the error for a student: the lines of the cells and the message, without internals."""
    report = [f"{type(error).__name__}: {error}".removesuffix(": ")]
    frames = traceback.extract_tb(error.__traceback__)
    places = [(f.filename, f.lineno) for f in frames if f.filename.startswith("<cell ")]
    if isinstance(error, SyntaxError):
        places = [(where, error.lineno or 1)]
    # the report shows the line of the cell and the innermost line of the lecture
    for filename, number in dict.fromkeys((places or [(where, 1)])[:1] + places[-1:]):
        lines = linecache.getlines(filename) or source.split("\n")
        report.append(f"  in {filename.strip('<>')}")
        for i in range(max(0, number - 3), min(len(lines), number + 2)):
            mark = "-->" if i + 1 == number else "   "
            report.append(f"  {mark} {i + 1:3d} {lines[i]}".rstrip())
    if printed.strip():
        report.append("printed before: " + printed.strip()[-500:])
    return "\n".join(report + _hint(error))


def _hint(error):
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return []
    package = error.name.split(".")[0]
    extra = {"matplotlib": "class", "IPython": "class", "torch": "peers"}.get(package)
    command = install(extra) if extra else f"{pip()} install {package}"
    return [f"this lecture needs {package}; install it with: {command}"]
