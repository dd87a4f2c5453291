"""Grade a saved notebook as a submission, on the student's own machine."""

import json
import sys
from pathlib import Path

from coursekit.grade import handed_in
from coursekit.grade.marking import mark
from coursekit.grade.own_machine import OwnMachine
from coursekit.grade.plan import plan_of_notebook
from tinyattn.course.project import find, find_root


def as_handed_in(document, path):
    """Grade the notebook at `path` with the visible inputs only, and return its Mark."""
    with OwnMachine() as here:
        submission = handed_in.read("you", Path(path))
        return mark(submission, plan_of_notebook(document), here, hidden=False)


def points(result):
    """Return the points in a Mark, as {task: points}."""
    tasks = dict.fromkeys(outcome.task for outcome in result.outcomes)
    return {task: sum(o.right for o in result.of_task(task)) for task in tasks}


if __name__ == "__main__":
    number, path = sys.argv[1:]
    print(json.dumps(points(as_handed_in(find(find_root(), number), path))))
