"""Full runs one after the other: what is done stays done, what failed or changed is tried again."""

import pytest

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
    assert full_runs.run([lecture], again=True) == 0
    assert "unchanged since its last full run" not in capfd.readouterr().out


def test_a_changed_text_is_run_again(lecture, capfd):
    full_runs.run([lecture])
    lecture.source.write_text(small_project.LECTURE + "\nMore.\n", encoding="utf-8")
    capfd.readouterr()
    assert full_runs.run([lecture]) == 0
    assert "unchanged since its last full run" not in capfd.readouterr().out


def test_a_lecture_that_fails_is_tried_again(lecture, capfd):
    broken = small_project.LECTURE.replace("total = 1 + 1", "total = 1 + missing")
    lecture.source.write_text(broken, encoding="utf-8")
    for _ in range(2):
        assert full_runs.run([lecture]) == 1
        shown = capfd.readouterr()
        assert "name 'missing' is not defined" in shown.err
        assert "failed: 04" in shown.err


def test_a_damaged_note_is_named(lecture):
    path = lecture.root / full_runs.DONE
    path.parent.mkdir()
    path.write_text("{", encoding="utf-8")
    with pytest.raises(course.CourseError, match=r"build/full\.json is damaged"):
        full_runs.run([lecture])
