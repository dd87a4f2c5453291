"""Write the points into the exported tables of Moodle and Canvas.

Moodle's grading worksheet has the columns "Identifier", "Full name", "Grade" and "Feedback
comments". Canvas's gradebook has "Student", "ID" and a column for each assignment.
"""

import csv
import io
import zipfile

from coursekit.grade.late import time_of
from tinyattn.course.project import CourseError, write_text

LAST = "last modified (submission)"


def fill(path, document, marks, submissions):
    """Write the points into a copy of the sheet `path`, and return a sentence about the result.

    The name of the copy ends in -filled. Raises CourseError if the sheet does not exist, is not a
    text in UTF-8, is empty, or lacks a column.
    """
    rows, dialect, columns = _read(path)
    who, name, where, comment = _columns(path, columns, document)
    by_id, by_name = _index(marks, submissions)
    filled = set()
    for row in rows[1:]:
        row += [""] * (len(rows[0]) - len(row))
        number = row[who].removeprefix("Participant ").strip()
        result = by_id.get(number) or by_name.get(_plain(row[name]))
        if result is None or not result.graded:
            continue
        filled.add(result.student)
        row[where] = str(result.counted)
        if comment is not None:
            days = "day" if result.late_days == 1 else "days"
            late = f", {result.late_days} {days} late" if result.late_days else ""
            row[comment] = f"{result.points} of {result.of} points{late}"
    file = io.StringIO()
    csv.writer(file, dialect, lineterminator="\n").writerows(rows)
    made = path.with_name(f"{path.stem}-filled{path.suffix}")
    write_text(made, f"\ufeff{file.getvalue()}")
    left = [m.student for m in marks if m.student not in filled]
    rest = f"; not in it: {', '.join(left)}" if left else ""
    return f"wrote {made}, {len(filled)} of {len(marks)} students{rest}"


def _read(path):
    """Return the rows of a sheet, the format of its file, and {name of a column: its index}."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise CourseError(f"there is no file {path}. Check the path") from None
    except UnicodeDecodeError:
        raise CourseError(
            f"{path} is not a text file in UTF-8. Pass the file as exported by Moodle or Canvas"
        ) from None
    dialect = "excel" if text.partition("\n")[0].count(",") else "excel-tab"
    rows = list(csv.reader(io.StringIO(text), dialect))
    if not rows:
        raise CourseError(f"{path} is empty. Export the sheet from Moodle or Canvas again")
    return rows, dialect, {name.strip().lower(): i for i, name in enumerate(rows[0])}


def take_times(path, submissions):
    """Give submissions without a time the time that Moodle's sheet at `path` has for them."""
    rows, _, columns = _read(path)
    if not {"identifier", LAST} <= columns.keys():
        return
    times = {
        row[columns["identifier"]].removeprefix("Participant ").strip(): row[columns[LAST]]
        for row in rows[1:]
        if len(row) > columns[LAST]
    }
    for submission in submissions:
        text = times.get(submission.identifier, "").strip()
        if submission.time is None:
            submission.time = time_of(text)


def _columns(path, columns, document):
    """Return the indices of the columns (identifier, name, points, comment or None)."""
    if {"identifier", "full name", "grade"} <= columns.keys():
        comment = columns.get("feedback comments")
        return columns["identifier"], columns["full name"], columns["grade"], comment
    if {"student", "id"} <= columns.keys():
        bare = document.number.removeprefix("hw")
        wanted = [
            i
            for name, i in columns.items()
            if document.number in name or f"homework {bare}" in name
        ]
        if len(wanted) == 1:
            return columns["id"], columns["student"], wanted[0], None
        found = ", ".join(f"'{name}'" for name, i in columns.items() if i in wanted)
        raise CourseError(
            f"{path}: expected exactly one column for {document.number}, got {found or 'none'}. "
            f"Name exactly one assignment in Canvas 'Homework {bare}', and export the sheet again"
        )
    raise CourseError(
        f"{path}: expected the columns Identifier, Full name and Grade (Moodle), or Student and ID "
        f"(Canvas), got {', '.join(columns)}"
    )


def _index(marks, submissions):
    """Return marks by identifier and by name, with the best of several files of one student."""
    results = {m.student: m for m in marks}
    by_id, by_name = {}, {}
    for submission in submissions:
        result = results[submission.student]
        name = submission.student.partition("/")[0].partition(" (")[0]
        for index, key in ((by_id, submission.identifier), (by_name, _plain(name))):
            if key and (key not in index or index[key].points < result.points):
                index[key] = result
    return by_id, by_name


def _plain(name):
    """Return a name in the form of Canvas's file names: "Lovelace, Ada" and "lovelaceada"."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def feedback(folder, marks, submissions):
    """Write a zip of the students' pages, which Moodle accepts as feedback, and return its path."""
    from coursekit.grade.pages import file_name

    path = folder / "feedback.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for submission in submissions:
            if submission.folder:
                page = folder / "students" / f"{file_name(submission.student)}.html"
                archive.write(page, f"{submission.folder}/{file_name(submission.student)}.html")
    return path
