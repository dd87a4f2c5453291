"""What a class gets: everything to work with, and nothing of the lecturer's."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest

from coursekit import bundle, cli
from coursekit.build import text
from coursekit.grade.plan import plan_of
from tests import ROOT
from tests.coursekit.handed_in import Class, notebook, solved
from tinyattn.course import checks, project
from tinyattn.course.project import CourseError

pytest.importorskip("jupytext")
pytest.importorskip("nbconvert")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder for a class that hears lecture 04, and the files of its wheel."""
    folder = tmp_path_factory.mktemp("bundle") / "class"
    documents = [project.find(ROOT, number) for number in ("04", "hw04")]
    bundle.write(ROOT, folder, documents)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        archive.extractall(folder.parent / "wheel")
    return folder, folder.parent / "wheel"


def files(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.*")}


def test_a_class_gets_what_it_works_with(made):
    folder, _ = made
    wheel = next(folder.glob("*.whl")).name
    assert set(files(folder)) == {
        "START.md",
        wheel,
        "notebooks/04_self_attention.ipynb",
        "notebooks/homework/hw04_self_attention.ipynb",
        "slides/04_self_attention.html",
    }
    start = (folder / "START.md").read_text(encoding="utf-8")
    assert f'pip install "./{wheel}[class]"' in start and "tinyattn class 04" in start
    assert "tinyattn check 04" in start


@pytest.mark.parametrize(("numbers", "check"), [(["00", "hw04"], "check 04"), (["00"], None)])
def test_the_first_page_names_the_homework_that_is_there(tmp_path, monkeypatch, numbers, check):
    monkeypatch.setattr(bundle, "build_wheel", lambda root, folder: folder / "x.whl")
    monkeypatch.setattr(bundle.render, "build_deck", lambda *given, **options: None)
    bundle.write(ROOT, tmp_path / "class", [project.find(ROOT, n) for n in numbers])
    start = (tmp_path / "class" / "START.md").read_text(encoding="utf-8")
    assert (check in start) if check else ("tinyattn check" not in start)


def test_half_a_folder_is_not_in_the_way_of_the_next_attempt(tmp_path, monkeypatch):
    def fails(root, folder):
        raise CourseError("no network")

    monkeypatch.setattr(bundle, "build_wheel", fails)
    for _ in range(2):
        with pytest.raises(CourseError, match="no network"):
            bundle.write(ROOT, tmp_path / "class", [project.find(ROOT, "hw04")])
        assert not (tmp_path / "class").exists()


def test_nothing_of_the_lecturer_is_in_it(made):
    folder, wheel = made
    there = files(folder) | files(wheel)
    assert not [name for name in there if "teaching/" in name or re.search(r"hw\d\d.*\.md$", name)]
    # neither the lines of a solution, nor a sample answer, nor the readable text of a check
    secrets = []
    for document in project.homework(ROOT):
        plan = plan_of(document)
        for cell in plan.cells:
            if cell.kind == "markdown" and cell.solution:
                secrets.append(cell.solution.strip())
            elif cell.solution:
                lines = set(cell.solution.split("\n")) - set(cell.source.split("\n"))
                secrets += [line for line in lines if len(line.strip()) > 60]
        path = ROOT / project.CHECKS / f"{document.number}.py"
        secrets += re.findall(r"^def reference.*$", path.read_text(encoding="utf-8"), re.M)
    assert len(secrets) > 100
    texts = {
        name: path.read_text(encoding="utf-8")
        for name, path in there.items()
        if name.endswith((".ipynb", ".packed", ".html", ".md")) or "shipped" in name
        if not name.endswith((".safetensors", ".npz"))
        if "homework" in name or "slides" in name
    }
    assert len(texts) > 28
    found = [(name, s) for name, text in texts.items() for s in secrets if _as_json(s) in text]
    assert not found


def _as_json(text):
    return json.dumps(text, ensure_ascii=False)[1:-1]


def test_slides_for_students_have_no_notes(made):
    page = (made[0] / "slides" / "04_self_attention.html").read_text(encoding="utf-8")
    assert 'class="slide' in page and '<aside class="notes' not in page


def test_the_wheel_has_the_lectures_without_their_notes(made):
    """A student's own `tinyattn slides` shows the pages of the lecturer, and no notes."""
    shipped = made[1] / "tinyattn" / "course" / "shipped"
    for document in project.lectures(ROOT):
        own = text.read_source(document).cells
        theirs = text.read_source(replace(document, root=shipped)).cells
        assert sum(bool(text.notes_of(cell)) for cell in own) > 10
        for cell in own:
            cell.metadata.pop("notes", None)
        assert own == theirs
        notebook = json.loads(replace(document, root=shipped).notebook.read_text(encoding="utf-8"))
        assert not any("notes" in cell["metadata"] for cell in notebook["cells"])


def test_packed_checks_judge_as_the_readable_ones(made, tmp_path):
    """A student with the wheel alone, and the sample solutions in the workbook."""
    plan = plan_of(project.find(ROOT, "hw04"))
    work = tmp_path / "tinyattn-course" / "workbook" / "homework"
    work.mkdir(parents=True)
    text = notebook(Class(plan).cells(solved))
    (work / "hw04_self_attention.ipynb").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "coursekit.cli", "check", "04"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(made[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "16 of 16" in done.stdout, done.stdout + done.stderr


def test_packing_keeps_every_letter():
    spec = importlib.util.spec_from_file_location("setup_of_tinyattn", ROOT / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    for path in sorted((ROOT / project.CHECKS).glob("hw*.py")):
        source = path.read_text(encoding="utf-8")
        packed = setup.packed(source)
        assert checks.unpacked(packed) == source and "reference" not in packed


def test_a_folder_of_others_is_not_emptied(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CourseError, match="is not empty"):
        bundle.write(ROOT, tmp_path, [])
    assert (tmp_path / "thesis.tex").exists()


def test_the_help_says_what_cannot_be_hidden(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bundle", "--help"])
    assert "on purpose can read that answer" in capsys.readouterr().out
