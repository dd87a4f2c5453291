"""The pages that are made from all lectures, and what a lecture must have to be taught."""

import re

import pytest

from coursekit import cli
from coursekit.build import lint, pages, teaching, text
from tests import ROOT
from tests.coursekit import small_project
from tinyattn.course import project

ENDING = """
+++ {"tags": ["notebook-only"]}

### After this lecture you can

- add.

### Words

- **sum**: what addition gives.
- **Addend** $a_i$: what is added.

### Read

- Peano 1889, *Arithmetices principia*, [doi:10.1/1](https://doi.org/10.1/1): what numbers are.
"""


@pytest.fixture
def small(tmp_path):
    """The cells of two small lectures, as `pages` reads them: {document: cells}."""

    def read(number, ending):
        root = small_project.make(tmp_path / number, small_project.LECTURE + ending)
        (document,) = project.lectures(root)
        return document, text.read_source(document).cells

    return lambda *endings: dict(read(str(i), ending) for i, ending in enumerate(endings))


def test_glossary_names_each_word_once_with_its_lectures(small):
    page = pages.glossary(small(ENDING, ENDING.replace("addition gives", "a sum is")))
    link = "[04](../notebooks/04_counting.ipynb)"
    assert f"- **sum**:\n  - what addition gives ({link}).\n  - what a sum is ({link}).\n" in page
    assert f"- **Addend** $a_i$: what is added ({link}, {link}).\n" in page
    assert page.index("## A\n") < page.index("**Addend**") < page.index("## S\n")


def test_references_gather_what_lectures_say_of_a_paper(small):
    page = pages.references(small(ENDING, ENDING.replace("what numbers", "what one")))
    assert page.count("Peano 1889") == 1
    assert "what numbers are. [04]" in page and "what one are.\n" in page


def test_one_paper_written_in_two_ways_is_an_error(small):
    with pytest.raises(project.CourseError, match="same way in both"):
        pages.references(small(ENDING, ENDING.replace("1889", "1890")))


@pytest.mark.parametrize(
    ("page", "old", "new"),
    [
        (pages.glossary, "- **sum**: what", "- *sum*: what"),
        (pages.references, " 1889,", ","),
        (pages.references, "(https://doi.org/10.1/1)", "()"),
    ],
)
def test_a_line_in_another_form_is_named(small, page, old, new):
    with pytest.raises(project.CourseError, match="is not of the form"):
        page(small(ENDING.replace(old, new)))


def test_old_pages_are_noticed(tmp_path, monkeypatch):
    document = project.lectures(ROOT)[0]
    monkeypatch.setattr(pages, "lectures", lambda root: [document])
    pages.write_pages(tmp_path)
    assert not list(pages.old_pages(tmp_path))
    glossary = tmp_path / pages.GLOSSARY
    glossary.write_text(glossary.read_text("utf-8").replace("gradient", "slope", 1), "utf-8")
    old = "lectures/GLOSSARY.md is out of date; run: tinyattn build"
    assert list(pages.old_pages(tmp_path)) == [old]


def test_links_of_the_pages_lead_somewhere():
    for path in (pages.GLOSSARY, pages.REFERENCES, pages.TEACHING):
        links = re.findall(r"\]\(([^)]+)\)", (ROOT / path).read_text("utf-8"))
        assert links
        for link in (link for link in links if "://" not in link):
            assert (ROOT / "lectures" / link).exists(), f"{path}: {link}"


# --- the form of a page for the lecturer: each part is missed when it is gone

PAGE = (ROOT / "lectures" / "teaching" / "05.md").read_text("utf-8")
TASKS = "**7a.** A question."


def test_a_whole_page_lacks_nothing():
    assert not list(teaching.page_lacks(PAGE, TASKS))


@pytest.mark.parametrize(
    ("pattern", "new", "said"),
    [
        (r"short version", "way", "short version"),
        (r"## Prepare", "## Before", "its parts are"),
        (r"(?s)## Last ten.*?(?=## Home)", "", "its parts are"),
        (r"(?m)^- .*\n", "", "fewer than two points"),
        (r"(?m)^\| [\"E].*\n", "", "fewer than four rows"),
        (r"\*Answer\*: ", "", "two exercises"),
        (r"\d+ to \d+ minutes", "an hour", "30 to 60 minutes"),
        (r"Open question 7a", "A question", "no line 'Open question"),
        (r"Open question 7a", "Open question 9z", "has no question 9z"),
        (r"marks \(out of 2\)", "marks", "table"),
        (r"\| 1: ", "| good: ", "table"),
        (r"\| 1: ", "| 2: ", "one with fewer"),
    ],
)
def test_a_missing_part_is_named(pattern, new, said):
    changed = re.sub(pattern, new, PAGE)
    assert changed != PAGE
    assert said in "\n".join(teaching.page_lacks(changed, TASKS))


def test_a_lecture_without_plan_ending_and_page_is_told_so(tmp_path):
    (document,) = project.lectures(small_project.make(tmp_path))
    found = "\n".join(teaching.lacks(document, text.read_source(document).cells, TASKS))
    for said in (
        "the short version takes 8 minutes",
        "questions that offer answers: 0",
        "notes",
        "'### Words'",
        "no page",
    ):
        assert said in found


def test_a_unit_of_a_guest_has_its_own_bounds(tmp_path):
    """30 minutes with notes pass, without homework and without a page; 60 minutes do not."""
    notes = '+++ {"tags": ["notes"]}\n\nAsk.\n\n'
    head, *rest = small_project.LECTURE.removeprefix(small_project.HEADER).split("\n## ")
    texts = []
    for minutes in (7, 15):
        tags = f'+++ {{"tags": ["{minutes}min"]}}\n\n'
        others = [part.split("\n+++ ")[0] for part in rest]
        slides = "".join(f"{tags}## {part.strip()}\n\n{notes}" for part in others)
        first = f'+++ {{"tags": ["guest", "{minutes}min"]}}\n\n'
        texts.append(f"{small_project.HEADER}{first}{head.split('+++')[0]}\n{notes}{slides}")
    found = []
    for i, lecture in enumerate(texts):
        (document,) = project.lectures(small_project.make(tmp_path / str(i), lecture=lecture))
        found.append(list(teaching.lacks(document, text.read_source(document).cells, TASKS)))
        assert not list(lint.without_homework([document], []))
    assert found[0] == []
    assert found[1] == ["the guest unit takes 60 minutes, expected 20 to 40"]


def test_the_plan_is_printed_and_nothing_is_written(capsys):
    before = (ROOT / pages.TEACHING).read_bytes()
    assert cli.main(["slides", "--minutes"]) == 0
    printed = capsys.readouterr().out
    assert (ROOT / pages.TEACHING).read_bytes() == before
    assert printed.strip() in before.decode("utf-8")
