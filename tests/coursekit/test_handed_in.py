"""What was handed in: files, folders and archives of a class, copies, and the sheets of points."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from coursekit.build.text import INSTALL
from coursekit.grade import grading, handed_in, pages, worksheets
from coursekit.grade.marking import mark
from tests.coursekit import handed_in as make
from tests.coursekit.handed_in import Class, solved
from tests.scripts.grading import small_plan
from tinyattn.course.project import CourseError

pytest.importorskip("jupytext")


@pytest.fixture(scope="module")
def plan():
    return small_plan(1, 4, 6)


def submission(cells, student="somebody"):
    return handed_in.Submission(student, Path(), cells)


def test_submissions_are_files_or_folders(tmp_path):
    text = make.notebook([])
    (tmp_path / "Ada.ipynb").write_text(text)
    (tmp_path / "Béla Bartók").mkdir()
    (tmp_path / "Béla Bartók" / "hw.ipynb").write_text(text)
    (tmp_path / ".DS_Store").write_text("no hand-in")
    assert [s.student for s in handed_in.submissions(tmp_path)] == ["Ada", "Béla Bartók"]
    with pytest.raises(CourseError, match="no folder"):
        handed_in.submissions(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CourseError, match="no notebook that"):
        handed_in.submissions(tmp_path / "empty")


def zipped(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_every_hand_in_has_a_row_as_moodle_packs_them(tmp_path):
    """Zips in zips, other endings, a BOM, UTF-16, two files of one, none of another."""
    text = make.notebook([("a", "code", "x = 1")])
    one = {name: f"{name}_{i}_assignsubmission_file/" for i, name in enumerate("ABCDEFGHI", 101)}
    files = {
        one["A"] + "hw04.ipynb": text,
        one["B"] + "hw04.ipynb.txt": text,
        one["C"] + "HW04.IPYNB": "\ufeff" + text,
        one["D"] + "hw04.ipynb": text.encode("utf-16"),
        one["E"] + "mine.zip": zipped({"inner/more.zip": zipped({"x/hw04.ipynb": text})}),
        one["F"] + "first.ipynb": text,
        one["F"] + "second.ipynb": text,
        one["G"] + "answers.pdf": b"%PDF",
        one["H"] + "hw04.ipynb": "",
        one["I"] + "broken.zip": b"PK no zip",
        "__MACOSX/x": b"",
    }
    (tmp_path / "class.zip").write_bytes(zipped(files))
    found = handed_in.submissions(tmp_path / "class.zip")
    assert [s.student for s in found] == [*"ABCDE", "F/first", "F/second", *"GHI"]
    assert [s.identifier for s in found] == [str(n) for n in (*range(101, 107), *range(106, 110))]
    assert [bool(s.cells) for s in found] == 7 * [True] + 3 * [False]
    assert found[5].notes == ["one of 2 notebooks of F"]
    assert "no notebook was handed in, but answers.pdf" in found[7].trouble
    assert "the file is empty" in found[8].trouble and "broken.zip" in found[9].trouble


def test_moodle_without_folders_and_with_online_texts(tmp_path):
    """Each setting of Moodle names files in another way; a text beside a file is no hand-in."""
    text = make.notebook([("a", "code", "x = 1")])
    flat, of = "_assignsubmission_file", "_assignsubmission_onlinetext"
    files = {
        f"Ada Lovelace_101{flat}_hw04_mine.ipynb": text,
        f"Béla B_102{flat}_all.zip": zipped({"x/hw04.ipynb": text}),
        f"Carl_103{flat}_/hw04.ipynb": text,
        f"Carl_103{of}_/onlinetext.html": "<p>see the file</p>",
        f"Dora_104{of}/onlinetext.html": "<p>x = 1</p>",
    }
    (tmp_path / "class.zip").write_bytes(zipped(files))
    found = {s.student: s for s in handed_in.submissions(tmp_path / "class.zip")}
    assert list(found) == ["Ada Lovelace", "Béla B", "Carl", "Dora"]
    assert [s.identifier for s in found.values()] == ["101", "102", "103", "104"]
    assert found["Ada Lovelace"].folder == f"Ada Lovelace_101{flat}"
    assert found["Béla B"].folder == f"Béla B_102{flat}" and found["Béla B"].cells
    assert found["Carl"].notes == ["wrote an online text in Moodle, too"] and found["Carl"].cells
    assert "no notebook was handed in" in found["Dora"].trouble


def test_every_hand_in_has_a_row_as_canvas_packs_them(tmp_path):
    text = make.notebook([])
    names = ["lovelaceada_11_901_hw04.ipynb", "bartokbela_LATE_12_902_hw04-1.ipynb"]
    names += ["twins_13_903_a.ipynb", "twins_13_904_b.ipynb", "smith_14_905_x.ipynb"]
    for name in [*names, "smith_15_906_x.ipynb"]:
        (tmp_path / name).write_text(text)
    found = {s.student: s for s in handed_in.submissions(tmp_path)}
    assert list(found)[:2] == ["bartokbela", "lovelaceada"]
    assert {"smith (14)", "smith (15)"} <= found.keys() and len(found) == 6
    assert found["bartokbela"].notes == ["handed in late"]
    assert found["lovelaceada"].identifier == "11"


def exported(*names):
    text = make.notebook([("a", "code", "x = 1")])
    files = {f"{name}_{i}_assignsubmission_file_/hw04.ipynb": text for i, name in enumerate(names)}
    return files | {"Zoë_99_assignsubmission_file_/only.pdf": b"%PDF"}


@pytest.mark.parametrize("place", ["class", "class.zip"])
@pytest.mark.parametrize(
    "files",
    [
        {"Course-HW04.zip": zipped(exported("Ada", "Béla"))},
        {f"downloads/Course-HW04/{name}": text for name, text in exported("Ada", "Béla").items()},
        {"monday.zip": zipped(exported("Ada")), "tuesday.zip": zipped(exported("Béla"))},
        {"hw04/Ada/x.ipynb": "{}", "hw04/Béla/x.ipynb": "{}", "hw04/Zoë/only.pdf": b"%PDF"},
    ],
    ids=["a zip in it", "folders around", "two groups", "a folder around"],
)
def test_what_is_around_a_class_is_not_a_student(tmp_path, files, place):
    """The exported zip is put into a folder, or its folder is packed again."""
    (tmp_path / "class.zip").write_bytes(zipped(files))
    with zipfile.ZipFile(tmp_path / "class.zip") as archive:
        archive.extractall(tmp_path / "class")
    students = {s.student.partition(" (")[0] for s in handed_in.submissions(tmp_path / place)}
    assert students == {"Ada", "Béla", "Zoë"}


def test_a_packed_folder_of_files_is_a_class_and_a_students_folder_is_not(tmp_path):
    text, class_zip = make.notebook([]), tmp_path / "handed_in.zip"
    class_zip.write_bytes(zipped({"handed_in/Ada.ipynb": text, "handed_in/Béla.txt": "x = 1"}))
    assert [s.student for s in handed_in.submissions(class_zip)] == ["Ada", "Béla.txt"]
    class_zip.write_bytes(zipped({"Ada/hw04.ipynb": text, "Ada/figure.png": b"x"}))
    assert [s.student for s in handed_in.submissions(class_zip)] == ["Ada"]
    class_zip.write_bytes(zipped({"Ada/": b"", "Ada/hw04.ipynb": text, "Béla/": b""}))
    assert [s.student for s in handed_in.submissions(class_zip)] == ["Ada", "Béla"]


def test_a_notebook_of_format_3_and_one_that_is_nested_as_no_program_is(plan):
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}]}
    assert handed_in._read("x", json.dumps(old).encode()).cells == [("", "code", "x = 1")]
    deep = submission([("a", "code", "x = " + "-" * 5000 + "1"), ("b", "code", "1+" * 9000 + "1")])
    result = mark(deep, plan, None)
    assert result.points == 0 and "nested too deeply" in " ".join(result.notes)


def test_the_cell_that_installs_the_package_is_not_the_students():
    cells = [{"cell_type": "code", "source": source} for source in (INSTALL, "x = 1")]
    read = handed_in._read("x", json.dumps({"cells": cells}).encode())
    assert read.cells == [("", "code", "x = 1")]


def test_the_same_code_is_noted_and_untouched_code_is_not(plan):
    def cells(write):
        return Class(plan).cells(write)

    copied = [(n, k, s.replace("\n", "\n# mine\n", 1)) for n, k, s in cells(solved)]
    class_ = [submission(cells(solved), "Ada"), submission(copied, "Béla")]
    class_ += [submission(cells(make.untouched), n) for n in ("Carl", "Dora")]
    (group,) = handed_in.copies(class_, plan)
    assert [s.student for s in group] == ["Ada", "Béla"]
    marks = {s.student: mark(submission([], s.student), plan, None) for s in class_}
    noted = grading._with_copies(marks, class_, plan)
    assert "the code is the same as that of Béla" in noted[0].notes
    assert not any("the same" in note for m in noted[2:] for note in m.notes)


@pytest.mark.parametrize(
    ("head", "rows", "points"),
    [
        (
            "Identifier,Full name,Email address,Grade,Feedback comments",
            ["Participant 101,Ada Lovelace,a@x,,", "Participant 7,Nobody,n@x,,"],
            ["Participant 101,Ada Lovelace,a@x,0,0 of 6 points", "Participant 7,Nobody,n@x,,"],
        ),
        (
            "Student,ID,Section,Homework 04 (77)",
            ['"Lovelace, Ada",101,s,', "Points possible,,,6"],
            ['"Lovelace, Ada",101,s,0', "Points possible,,,6"],
        ),
    ],
)
def test_points_are_filled_into_the_sheets_of_moodle_and_canvas(plan, tmp_path, head, rows, points):
    ada = submission([], "Ada Lovelace")
    ada.identifier, ada.folder = "101", "Ada Lovelace_101_assignsubmission_file"
    result, sheet = mark(ada, plan, None), tmp_path / "grades.csv"
    sheet.write_text("\ufeff" + "\n".join([head, *rows]), encoding="utf-8")
    assert "1 of 1 students" in worksheets.fill(sheet, plan.document, [result], [ada])
    filled = (tmp_path / "grades-filled.csv").read_text("utf-8-sig").splitlines()
    assert filled == [head, *points]
    pages.write(tmp_path, plan, [result])
    archive = zipfile.ZipFile(worksheets.feedback(tmp_path, [result], [ada]))
    assert archive.namelist()[0].startswith("Ada Lovelace_101_assignsubmission_file/")
    sheet.write_text("a,b\n1,2")
    with pytest.raises(CourseError, match="expected the columns"):
        worksheets.fill(sheet, plan.document, [result], [ada])
    sheet.write_bytes(b"PK\x03\x04\xff")  # saved as a spreadsheet
    with pytest.raises(CourseError, match="is not a text file in UTF-8. Pass the file as exported"):
        worksheets.fill(sheet, plan.document, [result], [ada])
    sheet.unlink()
    with pytest.raises(CourseError, match="there is no file .* Check the path"):
        worksheets.fill(sheet, plan.document, [result], [ada])
