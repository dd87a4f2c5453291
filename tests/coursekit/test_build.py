"""The machinery of the course on a project made for the test."""

import copy
import io
import json
import re

import numpy as np
import pytest

from coursekit import make
from coursekit.build import homework, index, lint, notebooks, pages, text, tidy, views
from coursekit.deck import render
from tests import ROOT
from tests.coursekit import browser
from tests.coursekit import small_project as course_project
from tinyattn import course
from tinyattn.course import project
from tinyattn.course.project import CourseError

REPOSITORY = ROOT


@pytest.fixture
def lecture(root):
    return project.find(root, "04")


@pytest.fixture
def hw(root):
    return project.find(root, "hw04")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A project whose lecture was executed once by a real kernel."""
    pytest.importorskip("ipykernel")
    root = course_project.make(tmp_path_factory.mktemp("built"))
    document = project.find(root, "04")
    notebooks.build_notebook(document)
    return document


# --- progress


def test_progress_leaves_one_line(capsys):
    assert list(course.progress([1, 2, 3], "training")) == [1, 2, 3]
    assert list(course.progress(iter("ab"), "reading")) == ["a", "b"]
    for _ in course.progress(range(5), "stopping"):
        break
    assert capsys.readouterr().out == "training: 3 of 3\nreading: 2\nstopping: 0 of 5\n"


# --- the project


def test_find_root_looks_upwards(root):
    deep = root / "lectures" / "homework"
    assert project.find_root(deep) == root


def test_find_root_without_lectures_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setattr(
        project, "__file__", str(tmp_path / "site" / "tinyattn" / "course" / "x.py")
    )
    with pytest.raises(CourseError, match=r"checkout of tinyattn(.|\n)*pip install -e"):
        project.find_root(tmp_path)


@pytest.mark.parametrize("number", ["4", "04", "04_counting"])
def test_find_a_lecture(root, number):
    assert project.find(root, number).name == "04_counting"


def test_a_lecture_that_is_not_there(root):
    with pytest.raises(
        project.NoSuchLecture,
        match=r"there is no lecture or homework '99'. Choose one of\n    04    counting",
    ):
        project.find(root, "99")


# --- reading a text


def test_cells_and_slides(lecture):
    cells = text.read_source(lecture).cells
    slides = text.slides(cells)
    assert [cell.id for cell in cells] == [f"04-{i:03d}" for i in range(len(cells))]
    assert [slide.ids for slide in slides] == [[], ["N12"], ["K15", "N13"], []]
    assert [slide.level for slide in slides] == [1, 2, 2, 2]
    assert [slide.title for slide in slides][:2] == ["How much is one and one?", "It is two"]
    assert cells[1].metadata.notes == "Ask the room first."
    assert not any("Ask the room" in cell.source for cell in cells)


def test_two_readings_are_equal(lecture):
    assert notebooks.to_json(text.read_source(lecture)) == notebooks.to_json(
        text.read_source(lecture)
    )


def test_a_text_that_does_not_begin_with_its_header(tmp_path):
    root = course_project.make(tmp_path, lecture="\n" + course_project.LECTURE)
    with pytest.raises(CourseError, match="must begin with its header"):
        text.read_source(project.find(root, "04"))


def test_a_tag_that_means_nothing(tmp_path):
    source = course_project.LECTURE.replace("hide-code", "hidecode")
    root = course_project.make(tmp_path, lecture=source)
    with pytest.raises(CourseError, match=r"04_counting\.md: the cell .* has the tag 'hidecode'"):
        text.read_source(project.find(root, "04"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["notes"]', '["notes", "N14"]', "got 'N14'"),
        (
            "# How much is one",
            '+++ {"tags": ["notes"]}\n\nHi\n\n+++\n\n# How much',
            "before the first",
        ),
    ],
)
def test_notes_belong_to_a_slide_and_are_nothing_else(tmp_path, old, new, message):
    assert old in course_project.LECTURE
    root = course_project.make(tmp_path, lecture=course_project.LECTURE.replace(old, new, 1))
    with pytest.raises(CourseError, match=message):
        text.read_source(project.find(root, "04"))


# --- notebooks


def outputs(document):
    cells = json.loads(document.notebook.read_text(encoding="utf-8"))["cells"]
    return [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]


def test_a_built_notebook_has_stable_outputs(built):
    first = built.notebook.read_text(encoding="utf-8")
    _, printed, claimed = outputs(built)  # the first cell installs the package
    assert printed[0]["text"] == ["counted\n"]
    assert claimed[0]["data"]["text/plain"] == ["counting: 3 of 3"]
    assert "✓ C001 holds" in "".join(claimed[1]["data"]["text/plain"])
    notebooks.build_notebook(built)
    assert built.notebook.read_text(encoding="utf-8") == first


def test_new_words_keep_the_outputs(built):
    text, before = built.source.read_text(encoding="utf-8"), outputs(built)
    try:
        built.source.write_text(text.replace("Much longer", "Even longer"), encoding="utf-8")
        notebooks.build_notebook(built, texts_only=True)
        assert "Even longer text." in built.notebook.read_text(encoding="utf-8")
        assert outputs(built) == before
        commented = text.replace("1 + 1\nprint", "1 + 1  # two\nprint")
        built.source.write_text(commented, encoding="utf-8")
        notebooks.build_notebook(built, texts_only=True)
        assert "# two" in built.notebook.read_text(encoding="utf-8")
        assert outputs(built) == before
        kept = built.notebook.read_bytes()
        built.source.write_text(text.replace("1 + 1\nprint", "3 - 1\nprint"), encoding="utf-8")
        with pytest.raises(CourseError, match="begins with 'from tinyattn import course'"):
            notebooks.build_notebook(built, texts_only=True)
        assert built.notebook.read_bytes() == kept
    finally:
        built.source.write_text(text, encoding="utf-8")
    notebooks.build_notebook(built, texts_only=True)
    assert notebooks.differences(built) == []


def test_a_drawing_that_has_changed_is_named_and_replaced(lecture):
    figures = lecture.root / "lectures" / "figures"
    figures.mkdir()
    dot = (
        '<svg class="drawing" viewBox="0 0 9 9" width="9" height="9" aria-label="A {} dot."></svg>'
    )
    (figures / "dot.svg").write_text(dot.format("red"), encoding="utf-8")
    source = course_project.LECTURE.replace('print("counted")', 'course.drawing("dot")')
    lecture.source.write_text(source, encoding="utf-8")
    notebook = text.read_source(lecture)
    data = {"image/svg+xml": course.drawing("dot", root=lecture.root).svg, "text/plain": ""}
    (cell,) = [c for c in notebook.cells if "course.drawing" in c["source"]]
    shown = {"output_type": "execute_result", "execution_count": 1, "data": data, "metadata": {}}
    cell["outputs"] = [notebooks.need("nbformat").from_dict(shown)]
    cell["execution_count"] = 1
    project.write_text(lecture.notebook, views.to_read(notebooks.to_json(notebook)))
    assert notebooks.differences(lecture) == []
    (figures / "dot.svg").write_text(dot.format("blue"), encoding="utf-8")
    (line,) = notebooks.differences(lecture)
    assert "slide 'It is two'" in line and line.endswith("run: tinyattn build --texts 04")
    notebooks.build_notebook(lecture, texts_only=True)
    assert notebooks.differences(lecture) == []
    (now,) = [data for data, *_ in filter(None, map(notebooks._drawn, outputs(lecture)))]
    assert "A blue dot." in "".join(now["image/svg+xml"])
    assert "A blue dot." in "".join(now["text/plain"])


def test_a_figure_takes_fewer_bytes():
    image = pytest.importorskip("PIL.Image")
    pyplot = pytest.importorskip("matplotlib.pyplot")

    def png(pixels):
        file = io.BytesIO()
        image.fromarray(pixels).save(file, "png")
        return file.getvalue()

    figure, file = pyplot.figure(), io.BytesIO()
    figure.add_subplot().plot([0, 2, 1])
    figure.savefig(file, format="png")
    pyplot.close(figure)
    few, plot = notebooks.fewer_bytes(file.getvalue()), file.getvalue()
    assert len(few) < 0.5 * len(plot)
    before, after = (np.asarray(image.open(io.BytesIO(x)).convert("RGB"), int) for x in (plot, few))
    assert np.abs(after - before).mean() < 0.2
    assert notebooks.fewer_bytes(few) == few
    photograph = np.random.default_rng(0).integers(0, 256, (60, 60, 3), np.uint8)
    same = np.asarray(image.open(io.BytesIO(notebooks.fewer_bytes(png(photograph)))))
    np.testing.assert_array_equal(same, photograph)  # too many colours
    glass = np.full((8, 8, 4), 100, np.uint8)
    assert notebooks.fewer_bytes(png(glass)) == png(glass)  # one looks through it


def test_a_notebook_that_agrees(built):
    assert notebooks.differences(built) == []


def test_a_failing_cell_names_slide_and_error(tmp_path):
    source = course_project.LECTURE.replace("total = 1 + 1", "total = 1 / 0")
    document = project.find(course_project.make(tmp_path, lecture=source), "04")
    with pytest.raises(
        CourseError, match=r"slide 'It is two': a cell failed(.|\n)*ZeroDivisionError"
    ):
        notebooks.build_notebook(document)
    assert not document.notebook.exists()


@pytest.mark.parametrize(
    ("old", "new", "slide"),
    [
        ("total = 1 + 1", "total = 2", "It is two"),
        ("Much longer", "Shorter", "It is two"),
        ("hide-code", "hide-output", "It is two"),
        ("- two", "- three", "What you saw"),
    ],
)
def test_a_notebook_that_differs_names_the_slide(lecture, old, new, slide):
    project.write_text(
        lecture.notebook, views.to_read(notebooks.to_json(text.read_source(lecture)))
    )
    assert notebooks.differences(lecture) == []
    lecture.source.write_text(course_project.LECTURE.replace(old, new), encoding="utf-8")
    (line,) = notebooks.differences(lecture)
    assert f"notebooks/04_counting.ipynb: slide '{slide}'" in line
    assert line.endswith("run: tinyattn build 04")


def test_a_notebook_that_is_missing_or_short(lecture):
    assert "not built yet. Run: tinyattn build 04" in notebooks.differences(lecture)[0]
    notebook = text.read_source(lecture)
    notebook.cells.pop()
    project.write_text(lecture.notebook, views.to_read(notebooks.to_json(notebook)))
    assert "slide 'What you saw', cell 7 is missing" in notebooks.differences(lecture)[0]


def test_check_returns_the_exit_code(root, capsys, monkeypatch):
    monkeypatch.setattr(make, "lacks", lambda *lecture: [])  # it is too short for a class
    documents = project.lectures(root) + project.homework(root)
    assert make.check(documents) == 1
    for document in documents:
        project.write_text(
            document.notebook, views.to_read(notebooks.to_json(notebooks.unexecuted(document)))
        )
    index.write_index(root)
    pages.write_pages(root)
    assert make.check(documents) == 0
    assert "2 notebooks agree" in capsys.readouterr().out


def test_check_names_what_a_lecture_lacks(tmp_path, capsys):
    lecture = course_project.LECTURE.replace('course.claim("C001"', 'course.claim("C990"')
    root = course_project.make(tmp_path, lecture=lecture)
    (root / "lectures/homework/hw04_counting.md").unlink()
    make.check(project.lectures(root))
    said = capsys.readouterr().err
    assert "lecture 04 tests C990, which is not in lectures/claims.toml: add a table" in said
    assert "04_counting has no homework: write lectures/homework/hw04_counting.md" in said


# --- homework


def test_the_students_version_has_stubs(hw):
    student = notebooks.unexecuted(hw)
    assert student.cells[1].source.split("\n") == [
        "def double(x):",
        "    # your code here",
        '    raise NotImplementedError("add x to itself")',
    ]
    assert len(student.cells) == 3
    shown = notebooks.to_json(student)
    solution = homework.solution_lines(text.read_source(hw))
    assert solution == {"answer = x + x", "return answer", "Multiplying by two does it as well."}
    assert not any(line in shown for line in solution)


def test_a_long_stub_keeps_the_house_style(hw):
    marked = "    # BEGIN SOLUTION: {}\n    pass\n    # END SOLUTION"
    short, long = (
        homework.without_solution(marked.format(n * "m"), hw).split("\n") for n in (67, 68)
    )
    assert [len(line) for line in short] == [len("    # your code here"), 100]
    assert long[1:] == ["    raise NotImplementedError(", f'        "{68 * "m"}"', "    )"]


def test_solutions_pass_and_stubs_fail_helpfully(hw, tmp_path):
    assert homework.run(text.read_source(hw), tmp_path) is None
    failed = homework.run(notebooks.unexecuted(hw), tmp_path)
    assert (failed["type"], failed["message"]) == ("NotImplementedError", "add x to itself")
    assert "-->   3     raise NotImplementedError" in failed["report"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (": add x to itself", "", "say what to write, after a colon"),
        ("    # END SOLUTION\n", "", "there is no # END SOLUTION"),
        ("    # BEGIN SOLUTION: add x to itself\n", "", "in turn"),
        ("    answer = x + x\n", "    # BEGIN SOLUTION: again\n", "in turn"),
    ],
)
def test_marks_that_do_not_pair(tmp_path, old, new, message):
    source = course_project.HOMEWORK.replace(old, new)
    document = project.find(course_project.make(tmp_path, homework=source), "hw04")
    with pytest.raises(CourseError, match=message):
        notebooks.unexecuted(document)


# --- the deck


@pytest.fixture(scope="module")
def page(built):
    return render.build_deck(built).read_text(encoding="utf-8")


def body(page):
    return page[page.index("<body>") : page.rindex("<script>")]


def test_the_deck_needs_no_network(page):
    html = re.sub(r"data:[\w/+;-]+,[\w+/=]*", "", page)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", html)
    assert not re.search(r"url\((?!\))|@import", html[: html.index("<body>")])
    assert html.count("<script") == html.count("</script>") == 1


def test_the_deck_has_the_slides(page):
    shown = body(page)
    assert shown.count("<section") == 4
    assert 'data-ids="K15 N13"' in shown
    assert "$$1 + 1 = 2$$" in shown
    assert "✓ holds" in shown
    assert "counting: 3 of 3" not in shown  # of interest while it runs only


def test_the_tags_say_what_the_deck_shows(page):
    shown = body(page)
    assert "total" not in shown.split("And the slide claims it")[0]
    assert "counted" in shown
    assert "Much longer text" not in shown
    assert re.search(r'<aside class="notes[^>]*>\s*<p>Ask the room first', shown)


def test_accents_of_formulas_stand_on_their_letters():
    bar = '<span class="bar">{}</span>'.format
    tall = '<span class="bar tall">{}</span>'.format
    spread = "x\N{COMBINING MACRON} = \u0233 b\N{COMBINING MACRON}"
    assert render.accents(spread) == f"{bar('x')} = {bar('y')} {tall('b')}"
    assert render.accents("m\N{COMBINING CIRCUMFLEX ACCENT}") == '<span class="hat">m</span>'
    assert render.accents("Schrödinger à Å <b>x</b>") == "Schrödinger à Å <b>x</b>"


def test_a_deck_of_an_old_notebook_is_refused(built):
    other = copy.copy(built)
    source = other.source.read_text(encoding="utf-8")
    try:
        other.source.write_text(source.replace("- two", "- three"), encoding="utf-8")
        with pytest.raises(CourseError, match="older than its text. Run: tinyattn build 04"):
            render.build_deck(other)
    finally:
        other.source.write_text(source, encoding="utf-8")


@browser.needed
def test_in_a_browser_formulas_are_set_and_pages_fit(built, page, tmp_path):
    long = page.replace("<p>A question", "<p>" + "A long text. " * 400 + "A question")
    for html, problems in ((page, ""), (long, "How much is one and one?")):
        path = tmp_path / "deck.html"
        path.write_text(html, encoding="utf-8")
        shown = browser.show(path)
        assert 'data-ready="yes"' in shown
        assert f'data-problems="{problems}"' in shown
        assert shown.count('class="katex-display"') == 1


# --- lint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("A question to begin with.", "word " * 61, "has 61 words, at most 60"),
        ("one and one?", "one and one", "does not open with the question"),
        ("## What you saw", "## The end", "ends with 'The end'"),
        ('["K15", "N13"]', '["K15", "N12"]', "N12 is already used in lectures/04_counting.md"),
        ('["notebook-only"]', '["N14"]', "N14 tags a cell that is not a heading"),
        ('["notebook-only"]', '["3min"]', "3min tags a cell that is not a heading"),
        ("total = 1 + 1", "%timeit 1", "is not plain Python"),
        ("total = 1 + 1", 'course.claim("C002", True)', "C002: a cell must have only one claim"),
        ("    pass\n", "    pass\n" + "1\n" * 34, "37 lines of code in the deck"),
    ],
)
def test_lint_finds(tmp_path, old, new, message):
    assert old in course_project.LECTURE
    source = course_project.LECTURE.replace(old, new)
    root = course_project.make(tmp_path, lecture=source)
    found = lint.problems(project.lectures(root))
    assert any(message in problem for problem in found), found


def test_lint_has_nothing_to_say(root):
    assert lint.problems(project.lectures(root)) == []


def test_formulas_and_hidden_text_are_not_words(lecture):
    slides = text.slides(text.read_source(lecture).cells)
    assert [lint.slide_words(slide) for slide in slides] == [5, 0, 0, 1]


def test_ledger_against_lectures():
    ledger = {"C001": {"lecture": "04"}, "C002": {"lecture": "04"}, "C003": {"lecture": "05"}}
    found = list(lint.disagreements(ledger, {"04": ["C001", "C001", "C009"]}))
    assert len(found) == 3
    assert "C001 belongs to lecture 04" in found[0]
    assert "C002" in found[1]
    assert "C009, which is not in" in found[2]


def test_tidy_formats_code_cells_only(tmp_path):
    source = course_project.LECTURE.replace("total = 1 + 1", "total=1+1").replace("- two", "- x=1")
    document = project.find(course_project.make(tmp_path, lecture=source), "04")
    assert tidy.tidy(document) == 1
    assert document.source.read_text(encoding="utf-8") == source.replace(
        "total=1+1", "total = 1 + 1"
    )
    assert tidy.tidy(document) == 0
