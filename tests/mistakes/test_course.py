"""Mistakes with claims, predictions, drawings and weights: the error that each must raise."""

import numpy as np
import pytest

from tests import ROOT
from tests.coursekit import small_project as course_project
from tinyattn import course, nn
from tinyattn.course import checks, claims, measure, objects, predictions, two_processes
from tinyattn.course.project import LEDGER, CourseError


@pytest.mark.parametrize("holds", [1, None, "yes", np.ones(3, bool)])
def test_a_verdict_that_is_none(root, holds):
    with pytest.raises(TypeError, match=r"C001: holds must be True, False, \"partly\" or"):
        course.claim("C001", holds=holds, root=root)


def test_an_unknown_claim_names_the_ledger(root):
    with pytest.raises(course.ClaimError, match=r"C999 is not in lectures/claims\.toml"):
        course.claim("C999", holds=True, root=root)


def test_a_claim_never_run_in_full(tmp_path):
    root = course_project.make(tmp_path, verdict=claims.NOT_RUN, evidence="")
    for decides in (True, False):
        with pytest.raises(course.ClaimError, match="no verdict yet"):
            course.claim("C001", holds=True, quick_decides=decides, root=root)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"verdict": "maybe"}, "the verdict 'maybe', not one of"),
        ({"extra": "1"}, "exactly the fields"),
    ],
)
def test_a_damaged_ledger(tmp_path, entry, message):
    root = course_project.make(tmp_path)
    lines = [f'{key} = "{value}"' for key, value in entry.items()]
    source = (root / LEDGER).read_text(encoding="utf-8")
    if "verdict" in entry:
        source = source.replace('verdict = "holds"\n', "")
    (root / LEDGER).write_text(source + "\n".join(lines), encoding="utf-8")
    with pytest.raises(course.ClaimError, match=message):
        claims.read_ledger(root / LEDGER)


def test_a_drawing_that_is_not_there_is_named(tmp_path):
    with pytest.raises(course.CourseError, match="no drawing 'transformers' in .*transformer"):
        course.drawing("transformers", root=ROOT)
    with pytest.raises(course.CourseError, match="Pass the folder of the project as root="):
        course.drawing("transformer", root=tmp_path)


def test_a_batch_that_cannot_be_shared_equally_is_an_error():
    (comm, *_) = two_processes.Threads.of(3)
    with pytest.raises(ValueError, match="3 processes cannot share 8 texts equally"):
        two_processes.trained(comm)


def test_without_the_file_it_says_what_makes_it(root):
    with pytest.raises(course.CourseError, match="tinyattn full --again 04"):
        course.trained("04_line", nn.Linear(3, 4, rng=0), None, root=root)


def test_a_proof_holds_or_does_not(tmp_path):
    root = course_project.make(tmp_path, verdict="proved")
    with pytest.raises(TypeError, match="C001: a proof holds or does not hold"):
        course.claim("C001", holds="partly", proved=True, root=root)


def test_a_full_run_needs_a_control(root, monkeypatch):
    monkeypatch.setenv("TINYATTN_FULL", "1")
    with pytest.raises(course.ClaimError, match="C001 has no control, an experiment"):
        course.claim("C001", True, "total 2", root=root)


def test_a_prediction_is_a_text_and_a_claim_is_one_of_the_ledger(tmp_path):
    with pytest.raises(TypeError, match="predict: words must be a text in quotes, got 3 "):
        predictions.predict(3)
    with pytest.raises(CourseError, match="there is no claim C999"):
        predictions.compare("C999", root=course_project.make(tmp_path))


def test_the_right_answer_is_one_of_those_offered():
    with pytest.raises(ValueError, match="sealed: right must be one of the choices A, B, got 'C'"):
        predictions.sealed("C", {"A": "too few", "B": "enough"})


def test_a_damaged_answer():
    for seal in ("abc", "eJwD", 3, None):
        with pytest.raises(ValueError, match="answer: the text in this cell is damaged"):
            predictions.answer(seal)


def test_a_folder_without_a_ledger(tmp_path):
    with pytest.raises(course.ClaimError, match="no ledger .*claims.toml. Pass the folder"):
        course.claim("C001", holds=True, root=tmp_path)
    with pytest.raises(course.CourseError, match="there is no ledger"):
        course.compare("C001", root=str(tmp_path))
    with pytest.raises(course.ClaimError, match="there is no ledger"):
        course.claim("C001", holds=True, root=str(tmp_path))
    with pytest.raises(CourseError, match="there are no checks for the homework 'hw04'"):
        checks.load("hw04", str(tmp_path))


def test_homework_tasks_and_parts_that_do_not_exist():
    with pytest.raises(CourseError, match="no checks for the homework 4 in .*hw04"):
        checks.homework(4, {})
    hw = checks.homework("hw04", {})
    for task in (99, "one"):
        with pytest.raises(ValueError, match=f"hw04 has no task {task!r}. Choose one of 1, 2"):
            hw.check(task)
    with pytest.raises(ValueError, match="hw04, task 1: there is no part 'x'. Choose one of '"):
        hw.require(1, "x")


def test_the_slope_of_numbers_that_are_not_positive():
    for x, y in (([1, 2], [1, 0]), ([1, -2], [1, 4]), ([1], [1]), ([1, 2], [1])):
        with pytest.raises(ValueError, match="slope: x and y must be positive finite numbers"):
            measure.slope(x, y)


def test_a_slope_needs_different_numbers():
    with pytest.raises(ValueError, match="slope: x must contain different numbers, got"):
        measure.slope([2, 2], [1, 3])


def test_steps_seeds_and_lists_that_are_none():
    with pytest.raises(TypeError, match="drawing: until must be a whole number, got 'a'"):
        course.drawing("transformer", until="a", root=ROOT)
    with pytest.raises(ValueError, match="seeds: expected 1 <= quick, got quick=0"):
        course.seeds(0)
    with pytest.raises(ValueError, match="listed: items is empty"):
        course.listed([])


def test_objects_of_other_shapes_and_numbers():
    truth = np.array([0, 1, 1])
    with pytest.raises(ValueError, match=r"both be \[N\], .* got shapes \(2,\) and \(3,\)"):
        objects.condensation_points(np.ones(2), truth)
    with pytest.raises(ValueError, match="outcome: M must be above .* largest is 1, got M=1"):
        objects.outcome(truth, truth, truth * 0, 1)
    for draw in (objects.times_drawn, lambda E: objects.redrawn_values([], [], E, np.mean)):
        with pytest.raises(ValueError, match=r"(times_drawn|redrawn_values): expected 1 <= E"):
            draw(0)
    with pytest.raises(ValueError, match=r"redrawn: .* E >= 1 events, got shape \(0, 2\)"):
        objects.redrawn(np.ones((0, 2)), sum)
    for event in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match=r"indices from 0 to 1 \(E=2\), got values from"):
            objects.redrawn_values([1.0, 2.0], event, 2, np.mean)
    for values, event in (([1.0, 2.0], [0]), ([1.0], [0.0])):
        with pytest.raises(ValueError, match=r"values and event must both be \[n\], with whole"):
            objects.redrawn_values(values, event, 2, np.mean)
    with pytest.raises(ValueError, match=r"outcome: event must have shape \(3,\), .* shape \(1,\)"):
        objects.outcome(truth, truth, [0], 2)
    with pytest.raises(ValueError, match="counts: expected event >= 0, got -1 at index 2"):
        objects.counts(truth, truth, [0, 0, -1])
    with pytest.raises(ValueError, match=r"draws >= 1, got shape \(1, 3\)"):
        objects.interval(np.ones((1, 3)))
    with pytest.raises(ValueError, match="best_setting: settings is empty"):
        objects.best_setting(lambda: truth, [], truth)


def test_a_loop_over_a_number():
    with pytest.raises(TypeError, match=r"progress: .* got 3. Write progress\(range\(3\)\)"):
        next(course.progress(3))
    with pytest.raises(TypeError, match="progress: iterable must .* got None. Pass a list"):
        next(course.progress(None))
