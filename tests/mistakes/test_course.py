"""Mistakes with claims, predictions, drawings and weights: the error that each must raise."""

import numpy as np
import pytest

from tests import ROOT
from tests.coursekit import small_project as course_project
from tinyattn import course, nn
from tinyattn.course import claims, predictions, two_processes
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
    with pytest.raises(course.CourseError, match="There are none"):
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
