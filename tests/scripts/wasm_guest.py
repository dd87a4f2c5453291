"""What `tests/scripts/wasm.py` runs in the guest: a notebook's cells, with one object for each."""

import json
import sys
import time
from pathlib import Path

from coursekit.build import execute
from tinyattn.course.checks.homework_checker import HomeworkChecker
from tinyattn.course.checks.judging import attempt


def main():
    job = json.loads(sys.stdin.read())
    names, right = execute.namespace(), True
    with execute.surroundings(Path("/tmp/notebooks")):
        for cell in job["cells"]:
            right = tried(dict(cell, cell_type="code"), names) and right
    checkers = [value for value in names.values() if isinstance(value, HomeworkChecker)]
    right = all([checked(checker) for checker in checkers]) and right
    print(json.dumps({"done": True}))
    return 0 if right else 1


def tried(cell, names):
    """Run a cell, print its outcome, and return whether it and its claims are as expected."""
    if not execute.wanted(cell):
        return True
    said = {"cell": cell["id"], "begins": cell["source"].strip().partition("\n")[0]}
    began, pictures = time.perf_counter(), drawn()
    try:
        outcome = execute.execute(cell, names)
        if outcome.disagreement:
            said["problem"] = f"{cell['id']}: {outcome.disagreement}"
    except execute.CellError as error:
        said["problem"] = f"{cell['id']}: {error}"
    said |= {"seconds": time.perf_counter() - began, "pictures": drawn() > pictures}
    print(json.dumps(said), flush=True)
    return "problem" not in said


def checked(checker):
    """Judge every part of a homework, also with hidden inputs, and return whether all are right."""
    parts = checker.homework.parts
    outcomes = [attempt(part, checker.student, hidden=True) for part in parts]
    for part, outcome in zip(parts, outcomes, strict=True):
        if not outcome.right:
            print(json.dumps({"problem": f"task {part.task}, {part.title}: {outcome.text}"}))
    print(json.dumps({"checked": len(outcomes)}))
    return len(outcomes) > 0 and all(outcome.right for outcome in outcomes)


def drawn():
    """Return how many figures Matplotlib made so far."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return 0
    if not hasattr(pyplot, "figures_made"):
        figure, pyplot.figures_made = pyplot.figure, 0

        def counted(*args, **kwargs):
            pyplot.figures_made += 1
            return figure(*args, **kwargs)

        pyplot.figure = counted
    return pyplot.figures_made


if __name__ == "__main__":
    sys.exit(main())
