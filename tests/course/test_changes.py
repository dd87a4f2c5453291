"""A student who changes an experiment is told what the change did to the claim."""

import json
import sys
from types import SimpleNamespace

import pytest

from tests.coursekit import small_project
from tinyattn import course, nn
from tinyattn.course import changes

GIVEN = ["rate = 0.1\ntotal = train(rate)\nprint(total)", "course.claim('C001', total == 2)"]


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A course whose lecture has the cells GIVEN, and a function that says what ran in Jupyter."""
    root = small_project.make(tmp_path)
    cells = [{"cell_type": "code", "source": source} for source in GIVEN]
    path = root / "notebooks" / "04_counting.ipynb"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")

    def ran(*sources):
        shell = SimpleNamespace(user_ns={"In": ["", *sources]})
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        return root

    return ran


def test_a_change_refutes_a_claim(kernel):
    root = kernel(GIVEN[0], GIVEN[0].replace("0.1", "10"), GIVEN[1])
    claim = course.claim("C001", holds=False, evidence="total 3", root=root)
    assert claim.verdict == "refuted as worded" and claim.evidence == "total 3"
    assert "Your change refutes C001: `rate = 0.1` became `rate = 10`." in claim.note
    assert "Without it, the verdict is 'holds': total 2" in claim.note
    assert "Your change refutes C001" in claim._repr_html_().partition("<details>")[0]
    proof = course.claim("C001", False, "The code agrees: up to 7.", proved=True, root=root)
    assert proof.evidence == "With your change: up to 7."
    changed = course.claim("C001", holds="partly", root=root)
    assert "Your change changes C001" in changed.note


def test_the_last_run_of_a_cell_counts(kernel):
    root = kernel(GIVEN[0].replace("0.1", "10"), GIVEN[0], GIVEN[1])
    with pytest.raises(course.ClaimError, match="this run: refuted"):
        course.claim("C001", holds=False, root=root)


def test_a_change_that_leaves_the_verdict_is_told_with_its_figures(kernel):
    root = kernel(GIVEN[0].replace("0.1", "0.2"), GIVEN[1])
    claim = course.claim("C001", holds=True, evidence="total 2.1", root=root)
    assert claim.verdict == "holds"
    assert claim.note == (
        "Your change leaves the verdict of C001: `rate = 0.1` became `rate = 0.2`. With it: total "
        "2.1"
    )
    root = kernel(GIVEN[0].replace("0.1", "0.2"), 'course.claim("C000", True)', GIVEN[1])
    assert "Your change" not in course.claim("C001", holds=True, root=root).note


def test_a_change_in_a_run_that_is_too_short_to_decide(kernel):
    root = kernel(GIVEN[0].replace("0.1", "10"), GIVEN[1])
    claim = course.claim("C001", False, "total 3", quick_decides=False, root=root)
    assert claim.note.startswith("With your change (`rate = 0.1` became `rate = 10`), this run")
    assert "'refuted as worded': total 3" in claim.note and "full" not in claim.note


def test_the_control_is_told_where_it_decides(kernel):
    root = kernel(GIVEN[0].replace("0.1", "10"), GIVEN[1])
    assert "Its control: " in course.claim("C001", holds=False, root=root).note


RATE = 0.1


def rated():
    """Return results that depend on RATE."""
    return {"x": [RATE]}


def unrated():
    """Return results that do not."""
    return {"x": [1]}


def test_a_change_of_recorded_results_has_no_effect(kernel, capsys, monkeypatch):
    root = kernel(GIVEN[0])
    with monkeypatch.context() as context:
        context.setenv("TINYATTN_FULL", "1")
        course.trained("04_rated", nn.Identity(), rated, root=root)
    cells = [{"cell_type": "code", "source": "RATE = 0.1\nother = 3"}]
    path = root / "notebooks" / "04_counting.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    for train, told in ((rated, True), (lambda: rated(), True), (unrated, False)):
        kernel("RATE = 0.2\nother = 3")
        course.trained("04_rated", nn.Identity(), train, root=root)
        out = capsys.readouterr().out
        assert ("Your change is not in these results" in out) == told
        assert ("`RATE = 0.1` became `RATE = 0.2`" in out) == told


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("rate = 0.1\nprint(rate)\ntotal = train(rate)\nprint(total)", ["`print(rate)` is new"]),
        ("rate = 0.1\ntotal = train(rate)", ["`print(total)` is gone"]),
        ("rate = 7", ["a cell of your own, rate = 7"]),
        ('course.predict("three")', []),
        ("%time 1", []),
    ],
)
def test_what_was_changed(kernel, cell, found):
    assert changes.changes(kernel(GIVEN[0], cell), "04") == found


def test_outside_of_a_notebook_nothing_was_changed(root, monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert changes.changes(root, "04") == []
    assert changes.changes(root, "99") == []


def test_a_build_is_no_change_of_a_student(kernel, monkeypatch):
    """While a new text is executed, its cells differ from the notebook of the old text."""
    root = kernel(GIVEN[0], "rate = 7")
    assert changes.changes(root, "04")
    monkeypatch.setenv(changes.BUILDING, "1")
    assert changes.changes(root, "04") == []
