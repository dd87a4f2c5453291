"""Apply the rules of a class for homework that was handed in late.

    [due]
    hw04 = 2026-11-20T23:59:00

    [late]
    free_days = 3      # for each student in the whole course
    per_day = 0.1      # the fraction of the points that is lost for each further day
    most_days = 7      # later homework gets no points; leave it out for no limit
    tables = "points/*.csv"   # tables written by --csv for other homework, whose days count as used

    [days.hw04]
    "Ada Lovelace" = 0        # your decision, which overrides the time of the file

A day counts from its first minute. Times come from nbgrader's `timestamp.txt` and Moodle's
worksheet. Canvas only reports that a file is late.
"""

import csv
import math
import re
import tomllib
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path

from tinyattn.course.project import CourseError
from tinyattn.engine.ranges import is_number

DAY = 24 * 60 * 60
KNOWN = {"due", "late", "days"}
OF_LATE = {"free_days": 0, "per_day": 0.0, "most_days": None, "tables": ""}
FORMS = ("%A, %d %B %Y, %I:%M %p", "%d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M")


@dataclass
class Rules:
    """The rules for handing in one homework late."""

    due: datetime | None = None
    free_days: int = 0
    per_day: float = 0.0
    most_days: int | None = None
    decided: dict = field(default_factory=dict)  # student: days
    used: dict = field(default_factory=dict)  # student: days in other homework

    def days(self, submission):
        """Return the number of days by which a submission is late, or None if this is unknown."""
        for name in (submission.student, submission.identifier):
            if name in self.decided:
                return self.decided[name]
        if self.due is None or submission.time is None:
            return None
        seconds = (local(submission.time) - self.due).total_seconds()
        return max(0, math.ceil(seconds / DAY))

    def unknown(self, submissions):
        """Return the names for which days were decided, but which handed in no homework."""
        known = {name for s in submissions for name in (s.student, s.identifier)}
        return sorted(set(self.decided) - known)

    def apply(self, submission, mark):
        """Return the mark with its late days and the points that remain."""
        days = self.days(submission)
        if days is None:
            note = (
                []
                if self.due is None
                else ["the time of the hand-in is not known or cannot be read"]
            )
            return replace(mark, notes=[*mark.notes, *note])
        left = max(0, self.free_days - self._used(submission))
        charged = max(0, days - left)
        share = max(0.0, 1 - self.per_day * charged)
        if self.most_days is not None and days > self.most_days:
            share = 0.0
        says = [_sentence(days, days - charged, share)] if days else []
        return replace(
            mark,
            late_days=days,
            final=round(share * mark.points, 2),
            notes=[*mark.notes, *says],
            remarks=[*mark.remarks, *says],
        )

    def _used(self, submission):
        return self.used.get(submission.identifier or submission.student, 0)


def _sentence(days, free, share):
    late = f"{days} day{'s' if days > 1 else ''} late ({free} free)"
    return f"{late}: {round(100 * share)}% of the points count"


def read(path, number, table=None):
    """Return the Rules for the homework `number`, such as "hw04", from the settings in `path`.

    `table` is the file to which this grading will write, so its days do not count as used.

    Raises CourseError if there is no such file, if it is not valid TOML, and for a setting that is
    unknown or has a value that is not allowed.
    """
    path = Path(path)
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CourseError(
            f"there is no file {path} with the settings of the class. Check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} is not valid TOML: {error}") from None
    _only(path, settings, KNOWN)
    late = _table(path, settings.get("late", {}), "late")
    _only(path, late, OF_LATE, "late.")
    late = OF_LATE | late
    if not is_number(late["per_day"]) or not 0 <= late["per_day"] <= 1:
        raise CourseError(f"{path}: expected 0 <= late.per_day <= 1, got {late['per_day']!r}")
    for name in ("free_days", "most_days"):
        days = late[name]
        if days is not None and not (is_number(days, whole=True) and days >= 0):
            raise CourseError(f"{path}: expected a whole number late.{name} >= 0, got {days!r}")
    if not isinstance(late["tables"] or "", str):
        raise CourseError(
            f'{path}: late.tables must be a pattern of file names, such as "points/*.csv", '
            f"got {late['tables']!r}"
        )
    if Path(late["tables"] or "").is_absolute():
        raise CourseError(
            f"{path}: late.tables must be relative to the folder of {path.name}, such as "
            f'"points/*.csv", got {late["tables"]!r}'
        )
    for name in ("due", "days"):
        for homework in _table(path, settings.get(name, {}), name):
            if not re.fullmatch(r"hw\d\d", homework):
                raise CourseError(
                    f"{path}: '{name}.{homework}' is not a homework. Write its number with two "
                    f"digits, such as {name}.{number}"
                )
    decided = _table(path, settings.get("days", {}), "days").get(number, {})
    decided = _table(path, decided, f"days.{number}")
    for student, days in decided.items():
        if not is_number(days, whole=True) or days < 0:
            raise CourseError(
                f"{path}: in [days.{number}], expected a whole number of days >= 0 for each "
                f"student, got {days!r} for {student!r}"
            )
    return Rules(
        due=_due(path, number, _table(path, settings.get("due", {}), "due").get(number)),
        free_days=late["free_days"],
        per_day=late["per_day"],
        most_days=late["most_days"],
        decided=decided,
        used=_used_days(path.parent, late["tables"], number, table),
    )


def _table(path, found, name):
    """Return `found`, which must be the table [name] of the settings."""
    if not isinstance(found, dict):
        raise CourseError(
            f"{path}: {name} must be a table, got {found!r}. Write [{name}] on a line of its own, "
            "with the settings of the table below it"
        )
    return found


def _only(path, found, known, where=""):
    unknown = sorted(set(found) - set(known))
    if unknown:
        expected = ", ".join(f"{where}{name}" for name in sorted(known))
        raise CourseError(f"{path}: '{where}{unknown[0]}' is not a setting. Expected {expected}")


def _due(path, number, value):
    """Return the time until which homework is accepted, which is the end of the day for a date."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return local(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, 23, 59, 59)
    raise CourseError(
        f"{path}: due.{number} must be a date or a time such as 2026-11-20T23:59:00, without "
        f"quotation marks, got {value!r}"
    )


def local(time):
    """Return a time in the local time zone."""
    return time if time.tzinfo is None else time.astimezone().replace(tzinfo=None)


def time_of(text):
    """Return the time in a text of nbgrader or Moodle, or None if it is not a time."""
    text = text.strip()
    if text.endswith(" UTC"):
        found = time_of(text[:-4])
        return found and found.replace(tzinfo=UTC)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in FORMS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None


def _used_days(folder, pattern, number, table):
    """Return {identifier or student: late days} from the tables of homework other than `number`."""
    used, own = {}, table and Path(table).resolve()
    for path in sorted(folder.glob(pattern)) if pattern else ():
        if path.resolve() == own:
            continue
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        if any(row.get("homework") == number for row in rows):
            continue  # an earlier table of this homework
        seen = {}
        for row in rows:
            who = row.get("identifier") or row.get("student", "").lstrip("'")
            seen[who] = max(seen.get(who, 0), int(row.get("late days") or 0))
        for who, days in seen.items():
            used[who] = used.get(who, 0) + days
    return used
