"""The object that a notebook calls: the check after a task, and the table at the end."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tinyattn.check.report import wrapped
from tinyattn.course.checks.code import HandedOut
from tinyattn.course.checks.errors import GUESS
from tinyattn.course.checks.judging import attempt
from tinyattn.course.project import CourseError, find, find_root

STOPS = re.compile(r"it stops with (\w+):.*\nin the line: (.*)")


class HomeworkChecker:
    """The checks of one homework, with the student's functions.

    Args:
        homework   the checks, a `Homework`
        student    the functions, a `Student`
        sources    the notebook's cells. If None, the cells that defined its functions are used
    """

    def __init__(self, homework, student, sources=None):
        self.homework, self.student, self._sources = homework, student, sources
        self.outcomes = {}  # task -> outcomes of its parts at the last check
        self.reasons = {}  # task -> why it gets no points although parts are right, or None
        self._handed_out = None

    def check(self, task):
        """Check one task and print the result, including any error of the student's code.

        Raises ValueError if there is no task with this number.
        """
        print(wrapped(self.report(task), indent=5 * " "))

    def report(self, task):
        """Check one task and return a text that names the parts that are right."""
        self._attempt(task)
        return report(task, self.outcomes[task], self.reasons[task])

    def _attempt(self, task):
        self.outcomes[task] = [attempt(part, self.student) for part in self.homework.of(task)]
        self.reasons[task] = self.why_not(task)

    def table(self):
        """Print which tasks are done and which remain, here and in the saved notebook."""
        for task in self.homework.tasks:
            if task not in self.outcomes:
                self._attempt(task)
        as_handed_in = saved(self.homework.number, self.student.names)
        print(table(self.outcomes, self.reasons, as_handed_in))
        bare = self.homework.number.removeprefix("hw")
        print(f"As handed in: save the notebook, then `tinyattn check {bare} --as-handed-in`.")

    def require(self, task, title, *, hidden=False, secret=0):
        """Raise AssertionError unless this part is right, for the test cells of nbgrader.

        Args:
            task     number of the task
            title    title of the part
            hidden   True: also test it with hidden inputs
            secret   number of the grader, on which the hidden inputs depend

        Raises:
            AssertionError: the part is wrong, or would get no points
            ValueError: there is no such task or part
        """
        parts = {part.title: part for part in self.homework.of(task)}
        if title not in parts:
            raise ValueError(
                f"{self.homework.number}, task {task}: there is no part {title!r}. Choose one of "
                f"{', '.join(map(repr, parts))}"
            )
        part = parts[title]
        outcome = attempt(part, self.student, hidden=hidden, secret=secret)
        reason = self.why_not(task) if outcome.right else None
        if reason or not outcome.right:
            raise AssertionError(f"Task {task}, {title}: {reason or outcome.text}")

    def why_not(self, task):
        """Return why grading gives no points for a task, even if it is right, or None."""
        if self._handed_out is None:
            self._handed_out = handed_out(self.homework.number)
        sources = self.student.sources() if self._sources is None else self._sources
        return self._handed_out.why_not(self.homework, task, sources)


def handed_out(number):
    """Return the `HandedOut` notebook of homework `number`, "hw04", as students get it.

    The notebook is empty if it has not been built.
    """
    try:
        path = find(find_root(), number).notebook
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (CourseError, OSError, ValueError, KeyError):
        cells = []
    return HandedOut([c | {"source": "".join(c["source"])} for c in cells])


def saved(number, names):
    """Return {task: points} that grading gives for the saved notebook, or None if that fails.

    JupyterLab and VS Code report which file runs. The grader's own code reads this file, in a
    separate process.

    Args:
        number   number of the homework, such as "hw04"
        names    {name: value} of the notebook
    """
    path = names.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    if not path or not Path(path).is_file() or importlib.util.find_spec("coursekit") is None:
        return None
    command = [sys.executable, "-m", "coursekit.student.as_handed_in", number, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        points = json.loads(done.stdout.strip().split("\n")[-1])
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return {int(task): right for task, right in points.items()}


def report(task, outcomes, reason=None):
    """Return the result of checking one task as text.

    Args:
        task       number of the task
        outcomes   an `Outcome` for each part
        reason     why grading gives no points even for right answers, or None
    """
    if all(outcome.right for outcome in outcomes):
        return f"Task {task} is right" + (f", but {reason}: 0 points." if reason else ".")
    if all(outcome.unfinished for outcome in outcomes):
        return f"Task {task} is not done: {outcomes[0].text.removeprefix(f'task {task}: ')}"
    lines = [f"Task {task}: {sum(o.right for o in outcomes)} of {len(outcomes)} parts are right."]
    told = {}  # {error, or the line at which a part stops: the first part with it}
    for outcome in outcomes:
        text = f": {outcome.text.removeprefix(f'{outcome.title}: ')}" if outcome.text else ""
        error, line = outcome.text.partition(f"\n{GUESS}")[0], STOPS.match(outcome.text)
        if error and told.setdefault(error, outcome.title) != outcome.title:
            text = f": the same as in '{told[error]}'"
        elif line and told.setdefault(line.groups(), outcome.title) != outcome.title:
            text = f": it stops with {line[1]} in the same line as '{told[line.groups()]}'"
        text = text.replace("\n", "\n     ")
        lines.append(f"  {'✓' if outcome.right else '✗'}  {outcome.title}{text}")
    if reason:
        lines.append(f"  but {reason}: 0 points.")
    return "\n".join(lines)


def table(outcomes, reasons, as_handed_in=None):
    """Return a table of all tasks and their state, here and in the saved notebook.

    Args:
        outcomes       {task: outcomes of its parts}
        reasons        {task: why it gets no points although parts are right, or None}
        as_handed_in   {task: points} of the saved notebook. If None, the column is omitted
    """
    counted = {
        task: 0 if reasons.get(task) else sum(part.right for part in parts)
        for task, parts in outcomes.items()
    }
    lines = []
    if as_handed_in is not None:
        lines.append("             here     as handed in")
    for task, parts in outcomes.items():
        left = [part.title for part in parts if not part.right]
        state = f"left: {', '.join(left)}" if left else "right"
        if all(part.unfinished for part in parts):
            state = "not done"
        elif reasons.get(task):
            state = f"no points: {reasons[task]}"
        second = "" if as_handed_in is None else f"   {as_handed_in.get(task, 0)} of {len(parts)}"
        lines.append(f"  task {task}   {counted[task]} of {len(parts)}{second}   {state}")
    parts = [part for task in outcomes.values() for part in task]
    second = "" if as_handed_in is None else f"   {sum(as_handed_in.values())} of {len(parts)}"
    lines.append(f"  all      {sum(counted.values())} of {len(parts)}{second}")
    return "\n".join(lines)
