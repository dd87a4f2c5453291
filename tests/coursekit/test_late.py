"""Late days: when homework was handed in, and what the class's settings make of the points."""

import csv
import io
from datetime import UTC, datetime

import pytest

from coursekit.grade import grading, handed_in, late, worksheets
from coursekit.grade.marking import Mark
from tests.coursekit.handed_in import notebook
from tests.scripts.grading import small_plan
from tinyattn.course.checks.judging import Outcome
from tinyattn.course.project import CourseError

SETTINGS = """
[due]
hw04 = 2026-11-20T23:59:00
hw05 = 2026-11-27
[late]
free_days = 2
per_day = 0.25
most_days = 4
tables = "points/*.csv"
[days.hw04]
"Ada" = 0
"""


def handed(student, time=None, identifier=""):
    return handed_in.Submission(student, identifier=identifier, time=time)


def marked(student, points=8):
    return Mark(student, [Outcome(1, str(i), i < points) for i in range(10)])


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "class.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("time", "days", "counted"),
    [
        (datetime(2026, 11, 20, 23, 59), 0, 8),
        (datetime(2026, 11, 20, 23, 59, 1), 1, 8),
        (datetime(2026, 11, 22, 23, 0), 2, 8),
        (datetime(2026, 11, 23, 1, 0), 3, 6),
        (datetime(2026, 11, 24, 1, 0), 4, 4),
        (datetime(2026, 11, 25, 1, 0), 5, 0),
        (None, None, 8),
    ],
)
def test_days_after_the_free_ones_cost_points(settings, time, days, counted):
    result = late.read(settings, "hw04").apply(handed("Béla", time), marked("Béla"))
    assert (result.late_days, result.counted) == (days, counted)
    assert result.points == 8
    assert any("not known" in note for note in result.notes) == (time is None)


def test_what_the_lecturer_decides_counts(settings):
    rules = late.read(settings, "hw04")
    assert rules.days(handed("Ada", datetime(2027, 1, 1))) == 0
    assert late.read(settings, "hw05").due == datetime(2026, 11, 27, 23, 59, 59)
    assert late.read(settings, "hw06").days(handed("Ada", datetime(2027, 1, 1))) is None
    assert rules.unknown([handed("Ada"), handed("Ben")]) == []
    assert rules.unknown([handed("Ben"), handed("ada")]) == ["Ada"]


def test_free_days_are_used_once_in_a_course(settings, tmp_path):
    (tmp_path / "points").mkdir()
    head = "student,identifier,homework,points,late days\n"
    (tmp_path / "points" / "hw03.csv").write_text(f"\ufeff{head}Béla,12,hw03,7,2\n")
    (tmp_path / "points" / "hw04.csv").write_text(f"{head}Béla,12,hw04,7,2\n")  # an earlier run
    rules = late.read(settings, "hw04")
    one_late = datetime(2026, 11, 21, 12, 0)
    assert rules.apply(handed("Béla", one_late, "12"), marked("Béla")).counted == 6
    assert rules.apply(handed("Béla", one_late, "13"), marked("Béla")).counted == 8


def test_the_table_has_the_late_days_and_what_counts():
    plan = small_plan(1, 6)
    results = [Mark("Ada", [], late_days=3, final=1.5), Mark("Béla", [])]
    rows = list(csv.DictReader(io.StringIO(grading.table(plan, results))))
    assert [(r["late days"], r["counted"]) for r in rows] == [("3", "1.5"), ("", "0")]
    assert {row["homework"] for row in rows} == {"hw04"}


def test_moodle_knows_when(tmp_path):
    sheet = tmp_path / "grades.csv"
    head = "Identifier,Full name,Grade,Last modified (submission)"
    times = ['"Friday, 20 November 2026, 11:59 PM"', "-", "gestern"]
    rows = [f"Participant {10 + i},N{i},,{time}" for i, time in enumerate(times)]
    sheet.write_text("\n".join([head, *rows]), encoding="utf-8")
    class_ = [handed(f"N{i}", identifier=str(10 + i)) for i in range(3)]
    worksheets.take_times(sheet, class_)
    assert [s.time for s in class_] == [datetime(2026, 11, 20, 23, 59), None, None]


def test_nbgrader_knows_when_and_has_folders_for_several_homeworks(tmp_path):
    for student in ("ada", "bela"):
        for number in ("hw03", "hw04"):
            folder = tmp_path / student / number
            folder.mkdir(parents=True)
            (folder / f"{number}.ipynb").write_text(notebook([("a", "code", number)]))
            (folder / "timestamp.txt").write_text("2026-11-20 12:00:00.5 UTC")
    found = handed_in.submissions(tmp_path, "hw04")
    assert [s.student for s in found] == ["ada", "bela"]
    assert all(s.cells == [("a", "code", "hw04")] and not s.notes for s in found)
    assert found[0].time == datetime(2026, 11, 20, 12, 0, 0, 500000, UTC)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("per_day = 0.25", "per_day = 25", "expected 0 <= late.per_day <= 1, got 25"),
        ("per_day = 0.25", "per_day = '0.25'", "late.per_day <= 1, got '0.25'"),
        ("free_days", "freedays", "'late.freedays' is not a setting. Expected late.free_days"),
        ("free_days = 2", "free_days = -1", "expected a whole number late.free_days >= 0"),
        ("free_days = 2", "free_days = 1.5", "late.free_days >= 0, got 1.5"),
        ("most_days = 4", "most_days = '4'", "late.most_days >= 0, got '4'"),
        (
            '"Ada" = 0',
            '"Ada" = "none"',
            "whole number of days >= 0 for each student, got 'none' for 'Ada'",
        ),
        ('"Ada" = 0', '"Ada" = -1', "in .days.hw04., .* for each student, got -1 for 'Ada'"),
        ("[due]", "[due", "not valid TOML"),
        ('"points/*.csv"', '["points/*.csv"]', "late.tables must be a pattern"),
        ('"points/*.csv"', '"/points/*.csv"', "late.tables must be relative to the folder of"),
        ('[days.hw04]\n"Ada" = 0', "[days]\nhw04 = 0", r"Write \[days.hw04\] on a line of its own"),
        ("2026-11-20T23:59:00", '"friday"', "due.hw04 must be a date or a time"),
        ("hw05 =", "hw5 =", "'due.hw5' is not a homework. Write its number with two digits"),
        ("[days.hw04]", "[days.homework04]", "'days.homework04' is not a homework"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, old, new, says):
    settings.write_text(SETTINGS.replace(old, new))
    with pytest.raises(CourseError, match=says):
        late.read(settings, "hw04")
    with pytest.raises(CourseError, match="there is no file"):
        late.read(settings.with_name("nowhere.toml"), "hw04")
