"""Full runs one after the other: what is done stays done, what failed or changed is tried again."""

import pytest

from coursekit import cli
from coursekit.build import full_runs
from tests.coursekit import small_project
from tinyattn import course
from tinyattn.course import claims, project
from tinyattn.course.project import LEDGER

README = f"before\n{full_runs.BEGIN}\n| 03 | 7 |\n{full_runs.END}\nafter\n"


@pytest.fixture
def lecture(tmp_path):
    root = small_project.make(tmp_path)
    (root / full_runs.TABLE).write_text(README, encoding="utf-8")
    return project.find(root, "04")


@pytest.fixture
def here(lecture, monkeypatch):
    """The lecture, whose full runs are made in this process; the first test starts one for it."""
    monkeypatch.setenv("TINYATTN_FULL", "1")
    monkeypatch.chdir(lecture.root)
    monkeypatch.setattr(full_runs, "_one", lambda document: cli.main(["run", document.number]))
    return lecture


def test_it_goes_on_where_it_stopped(lecture, capfd):
    assert full_runs.run([lecture]) == 0
    assert "full run" in capfd.readouterr().out
    entry = claims.read_ledger(lecture.root / LEDGER)["C001"]
    assert entry["control"] == "one and two are 3"
    assert entry["experiment"]
    table = (lecture.root / full_runs.TABLE).read_text(encoding="utf-8")
    assert "| 03 | 7 |\n| 04 | 0 |\n" in table
    assert table.startswith("before\n") and table.endswith("\nafter\n")
    assert full_runs.run([lecture]) == 0
    assert "unchanged since its last full run" in capfd.readouterr().out


def test_a_changed_text_is_run_again_and_one_that_is_to_be(here, capfd):
    for more, again in (("", False), ("\nMore.\n", False), ("\nMore.\n", True)):
        here.source.write_text(small_project.LECTURE + more, encoding="utf-8")
        assert full_runs.run([here], again=again) == 0
        said = capfd.readouterr().out
        assert "full run" in said and "unchanged since its last full run" not in said


def test_a_lecture_that_fails_is_tried_again(here, capfd):
    broken = small_project.LECTURE.replace("total = 1 + 1", "total = 1 + missing")
    here.source.write_text(broken, encoding="utf-8")
    for _ in range(2):
        assert full_runs.run([here]) == 1
        shown = capfd.readouterr()
        assert "name 'missing' is not defined" in shown.err
        assert "failed: 04" in shown.err


def test_a_damaged_note_is_named(lecture):
    path = lecture.root / full_runs.DONE
    path.parent.mkdir()
    path.write_text("{", encoding="utf-8")
    with pytest.raises(course.CourseError, match=r"build/full\.json is damaged"):
        full_runs.run([lecture])
