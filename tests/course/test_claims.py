"""Claims and their ledger: verdicts, badges, what a full run writes and a short run may not."""

import numpy as np
import pytest

from tests.coursekit import small_project as course_project
from tinyattn import course
from tinyattn.course import claims, project
from tinyattn.course.project import LEDGER


def ledger_of(root):
    return claims.read_ledger(root / LEDGER)


def test_a_claim_that_agrees_is_a_badge(root):
    claim = course.claim("C001", holds=True, evidence="total 2", root=root)
    assert repr(claim) == (
        "✓ C001 holds: One and one are two.\n    total 2\n    control: one and two are three"
    )
    assert "✓ holds" in claim._repr_html_()


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        (True, "holds"),
        (np.True_, "holds"),
        (False, "refuted as worded"),
        ("partly", "holds partly"),
        ("undecided", "undecided"),
    ],
)
def test_verdicts(tmp_path, holds, verdict):
    root = course_project.make(tmp_path, verdict=verdict)
    assert course.claim("C001", holds=holds, root=root).verdict == verdict


def test_an_identity_is_proved(tmp_path):
    root = course_project.make(tmp_path, verdict="proved")
    shown = course.claim("C001", holds=True, proved=True, root=root)
    assert shown.verdict == "proved" and "∎ proved" in shown._repr_html_()
    with pytest.raises(course.ClaimError, match="refuted as worded"):  # the code has a fault
        course.claim("C001", holds=False, proved=True, root=root)


def test_a_badge_shows_one_sentence_and_folds_the_rest(tmp_path):
    evidence = "A is 0.9 and B is 0.3 (5 seeds). It took 300 steps."
    root = course_project.make(tmp_path, evidence=evidence)
    shown = course.claim("C001", holds=True, evidence=evidence, root=root)._repr_html_()
    before, _, folded = shown.partition("<details>")
    assert "A is 0.9 and B is 0.3 (5 seeds).</span>" in before
    assert "It took 300 steps." in folded and "It took" not in before


def test_the_folded_part_of_a_badge_keeps_sentences_together(tmp_path):
    evidence = "The mean is 3. It is above 2."
    root = course_project.make(tmp_path, evidence=evidence)
    shown = course.claim("C001", True, evidence, root=root)._repr_html_()
    before, _, folded = shown.partition("<details>")
    assert "control: one and two are three" in before and folded.startswith("<summary>")
    assert evidence in folded and "control" not in folded


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("A is 0.9 (5 seeds).", "B follows."),
        ("A is 0.9. (Means of 5 seeds. f(x) is exact.)", "B follows."),
        ("A is 0.9. (Means of 5 seeds. One more.)", ""),
        ("A is 0.9", ""),
    ],
)
def test_a_parenthesis_stays_with_the_first_sentence(first, rest):
    assert claims._first_sentence(f"{first} {rest}".strip()) == (first, rest)


def test_a_badge_escapes_what_it_shows(tmp_path):
    root = course_project.make(tmp_path, claim="a < b & c")
    shown = course.claim("C001", True, "x<1", root=root)._repr_html_()
    assert "a &lt; b &amp; c" in shown
    assert "x&lt;1" in shown


def test_a_claim_that_disagrees_says_both_sides(root):
    with pytest.raises(course.ClaimError) as caught:
        course.claim("C001", holds=False, evidence="total 3", root=root)
    message = str(caught.value)
    assert "ledger:   holds (total 2)" in message
    assert "this run: refuted as worded (total 3)" in message
    assert "tinyattn full --again 04" in message


def test_a_short_run_shows_the_figures_of_the_full_one_and_its_own(root):
    shown = course.claim("C001", True, "total 2.0", root=root)
    assert (shown.evidence, shown.note) == ("total 2", "this short run: total 2.0")


def test_a_quick_run_that_cannot_decide_shows_the_ledgers_verdict(root, monkeypatch):
    shown = course.claim("C001", False, "Total 3.", quick_decides=False, root=root)
    assert shown.verdict == claims.HOLDS
    assert shown.note.startswith("this short run: Total 3. This run is too short to decide.")
    assert shown.note.endswith("Its own verdict would be 'refuted as worded'.")
    words = shown.note.removeprefix("this short run: ")
    assert words in shown._repr_html_().replace("&#x27;", "'")
    shown = course.claim("C001", True, "total 2", quick_decides=False, root=root)
    assert shown.note == ""
    monkeypatch.setenv("TINYATTN_FULL", "1")  # the full run does decide
    shown = course.claim("C001", False, "3", "none", quick_decides=False, root=root)
    assert shown.verdict == claims.REFUTED


def test_a_full_run_needs_a_control(root, monkeypatch):
    monkeypatch.setenv("TINYATTN_FULL", "1")
    before = (root / LEDGER).read_text(encoding="utf-8")
    with pytest.raises(course.ClaimError, match="C001 .*control"):
        course.claim("C001", True, "total 2", root=root)
    assert (root / LEDGER).read_text(encoding="utf-8") == before


def test_a_full_run_writes_its_entry_and_keeps_the_others(root, monkeypatch):
    monkeypatch.setenv("TINYATTN_FULL", "1")
    ledger = ledger_of(root)
    other = course_project.ENTRY | {
        "claim": 'Odd: "quotes", \\back, ünï, \n line, \x7f',
        "slides": [],
    }
    claims.write_ledger(root / LEDGER, {"C900": other, **ledger, "C002": other})
    claim = course.claim("C001", "partly", "new", "another way", root=root)
    assert claim.note == "the ledger said 'holds' before"
    after = ledger_of(root)
    assert list(after) == ["C900", "C001", "C002"]
    assert after["C900"] == after["C002"] == other
    assert [after["C001"][f] for f in ("verdict", "evidence", "control")] == [
        "holds partly",
        "new",
        "another way",
    ]
    monkeypatch.delenv("TINYATTN_FULL")
    assert course.claim("C001", holds="partly", root=root).verdict == "holds partly"


def test_a_write_that_fails_leaves_the_ledger_whole(root, monkeypatch):
    before = (root / LEDGER).read_text(encoding="utf-8")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        claims.write_ledger(root / LEDGER, {})
    assert (root / LEDGER).read_text(encoding="utf-8") == before
    assert [path.name for path in (root / "lectures").glob("*.part")] == []


def test_away_from_the_project_a_claim_is_shown_all_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        project, "__file__", str(tmp_path / "site" / "tinyattn" / "course" / "x.py")
    )
    claim = course.claim("C001", holds=True, evidence="seen")
    assert "no ledger here" in repr(claim)


def test_full_reads_the_environment(monkeypatch):
    assert not course.full()
    monkeypatch.setenv("TINYATTN_FULL", "0")
    assert not course.full()
    monkeypatch.setenv("TINYATTN_FULL", "1")
    assert course.full()


def test_seeds_are_five_in_a_full_run_and_say_how_many(monkeypatch):
    assert list(course.seeds()) == [0]
    assert list(course.seeds(quick=2)) == [0, 1]
    assert f"{course.seeds(quick=1)}, {course.seeds(quick=2)}" == "1 seed, 2 seeds"
    monkeypatch.setenv("TINYATTN_FULL", "1")
    assert list(course.seeds(quick=1)) == [0, 1, 2, 3, 4]
    assert str(course.seeds(quick=1)) == "5 seeds"
