"""Questions come before their answers: in the deck, the notebook to read, the student's copy."""

import json
import re
from types import SimpleNamespace

import pytest

from coursekit.build import lint, notebooks, questions, text, views
from coursekit.deck import render
from tests import ROOT
from tests.coursekit import browser
from tests.coursekit import small_project as course_project
from tinyattn import widgets
from tinyattn.course import predictions, project

ASKING = """\
## A wager

Two coins. What comes next?

So much for the question.

```{code-cell} ipython3
shown = 3
print("the answer")
```

```{code-cell} ipython3
:tags: [hide-code]

print("the picture")
```

+++ {"tags": ["shown"]}

A remark.

+++

A second thought.

"""


@pytest.fixture
def asking(tmp_path):
    lecture = course_project.LECTURE.replace("## What you saw", ASKING + "## What you saw")
    return project.find(course_project.make(tmp_path, lecture=lecture), "04")


def stream(words):
    new_output = pytest.importorskip("nbformat").v4.new_output
    return new_output("stream", name="stdout", text=words)


def wager(cells):
    return next(slide for slide in text.slides(cells) if slide.title == "A wager")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Who wins?", True),
        ("*Who wins?* Guess.", True),
        ("Who wins (and why?)", True),
        ("Why? Because: so", True),
        ("No question.", False),
        ("`a ? b : c` and $x?$ and [here](page?x=1)", False),
        ("```\nwhat?\n```", False),
    ],
)
def test_what_is_a_question(words, expected):
    assert questions.asks(words) is expected


def test_a_text_is_parted_after_its_questions():
    assert questions.parted("One.\n\nTwo?\n\nThree.\n\n**Four?**\n\nFive.") == [
        "One.\n\nTwo?",
        "Three.\n\n**Four?**",
        "Five.",
    ]
    assert questions.parted("One? Two.\n\nThree.") == ["One? Two.\n\nThree."]


def test_what_follows_a_question_waits(asking):
    slide = wager(text.read_source(asking).cells)
    assert [waits for _, waits in questions.waiting(slide)] == [False, True, True, False, True]


def test_nothing_waits_without_a_question_or_on_a_title_slide(asking):
    for slide in text.slides(text.read_source(asking).cells):
        if slide.title != "A wager":
            assert not any(waits for _, waits in questions.waiting(slide)), slide.title


def test_a_title_that_asks_makes_its_slide_wait():
    heading = {"cell_type": "markdown", "source": "## Which?\n\nWords.", "metadata": {}}
    code = {"cell_type": "code", "source": "1", "metadata": {}}
    slide = text.Slide("Which?", [], 2, [heading, code])
    assert [waits for _, waits in questions.waiting(slide)] == [False, True]


def test_the_deck_brings_code_and_answer_one_after_the_other(asking):
    cells = json.loads(notebooks.to_json(text.read_source(asking)))["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
        if cell["cell_type"] == "code":
            cell["outputs"] = [stream("said")]
    here = SimpleNamespace(root=project.find_root(), name="04")
    page = (
        render.render(cells, here).partition('data-title="A wager"')[2].partition("</section>")[0]
    )
    found = re.findall(r'class="block (\w+)( fragment" data-step="\d+)?"', page)
    steps = [(kind, int(at.rpartition('"')[2]) if at else 0) for kind, at in found]
    assert steps == [
        ("md", 0),
        ("md", 1),
        ("code", 2),
        ("out", 3),
        ("out", 4),
        ("md", 0),
        ("md", 5),
    ]


def test_the_notebook_to_read_folds_pictures_and_answers(asking):
    notebook = text.read_source(asking)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [stream("said")]
    views.fold(notebook.cells)
    by_source = {cell.source: cell.metadata for cell in notebook.cells}
    answer = by_source['shown = 3\nprint("the answer")']
    picture = by_source['print("the picture")']
    assert answer.jupyter == {"outputs_hidden": True} and answer.collapsed
    assert picture.jupyter == {"source_hidden": True, "outputs_hidden": True}
    counted = next(m for source, m in by_source.items() if "counted" in source)
    assert counted.jupyter == {"source_hidden": True} and "collapsed" not in counted


def test_a_notebook_brings_a_cell_that_installs_the_package():
    for document in project.lectures(ROOT) + project.homework(ROOT):
        file = document.notebook.read_text(encoding="utf-8")
        second = json.loads(file)["cells"][1]
        assert second["cell_type"] == "code" and "".join(second["source"]) == text.INSTALL
        assert all(cell["source"] != text.INSTALL for cell in text.read_notebook(document))
        without = views.from_text(file)
        assert text.INSTALL.splitlines()[-1] not in without
        assert views.to_read(without) == file


def test_the_first_line_of_a_folded_answer_tells_nothing(offering):
    from_dict = pytest.importorskip("nbformat").from_dict
    cells = text.read_source(offering).cells
    figure = {"output_type": "display_data", "data": {"image/png": "", "text/plain": "<Figure>"}}
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs = [from_dict({**figure, "metadata": {}})]
            cell.outputs.insert("answer" not in cell.source, stream("said"))
    views.fold(cells)
    plain = notebooks.to_json(text.assemble("04", cells))
    file = views.to_read(plain)
    assert views.to_read(file.replace(text.INSTALL, "")).count("The answer:") == 1  # not twice
    assert views.from_text(file) == plain
    project.write_text(offering.notebook, file)
    assert text.read_notebook(offering) == text.read_notebook(offering, _file(offering, plain))
    shown = json.loads(file)["cells"]
    first = [cell["source"][0] for cell in shown if "choices" in text.tags_of(cell)]
    assert first == ["Why each answer is right or wrong:\n"]
    answers = [c for c in shown if "outputs_hidden" in c["metadata"].get("jupyter", {})]
    began = {"".join(c["source"]): c["outputs"][0] for c in answers}
    assert began.pop('shown = 3\nprint("the answer")')["data"]["text/plain"] == ["The answer:"]
    assert all("image/png" in output["data"] for output in began.values()) and began
    assert not notebooks.differences(offering)
    project.write_text(offering.notebook, views.with_install(plain))
    (line,) = notebooks.differences(offering)
    assert "first line of a folded answer, is missing" in line


def _file(document, text):
    path = document.notebook.with_name("plain.ipynb")
    project.write_text(path, text)
    return path


def test_a_page_to_click_through_is_not_folded(asking):
    """JupyterLab shows nothing of an output that is folded together with its source."""
    notebook = text.read_source(asking)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shown = {"text/html": widgets.temperature([1.0, 2.0])._repr_html_()}
            cell.outputs = [{"output_type": "execute_result", "data": shown}]
    views.fold(notebook.cells)
    assert not any("outputs_hidden" in c.metadata.get("jupyter", {}) for c in notebook.cells)


@pytest.mark.parametrize("words", ['<svg aria-label="a &lt; b">', "<svg><title>a &lt; b</title>"])
def test_the_words_of_a_drawing_say_why_they_are_all_that_is_shown(asking, words):
    notebook = text.read_source(asking)
    drawing = {"image/svg+xml": f"{words}</svg>", "text/plain": "a < b"}
    cell = next(cell for cell in notebook.cells if cell.cell_type == "code")
    cell.outputs = [{"output_type": "display_data", "data": drawing}, stream("said")]
    for _ in range(2):  # also where outputs are kept and only words are new
        views.fold(notebook.cells)
        said = drawing["text/plain"]
        assert said.count("Trust Notebook") == 1 and said.endswith(
            "This is what the drawing shows:\na < b"
        )


def test_the_students_copy_asks_for_a_prediction(asking):
    notebook = text.read_source(asking)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [stream("said")]
    views.fold(notebook.cells)
    copy = json.loads(views.student_copy(notebooks.to_json(notebook)))
    pytest.importorskip("nbformat").validate(copy)
    codes = [cell for cell in copy["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in codes)
    assert not any("notes" in cell["metadata"] for cell in copy["cells"])
    assert "Ask the room" not in json.dumps(copy)
    sources = [cell["source"] for cell in wager(copy["cells"]).cells]
    assert sources[1].startswith('course.predict("")')
    assert sources[2:5] == [
        'shown = 3\nprint("the answer")',
        'print("the picture")',
        "course.compare()",
    ]
    assert sum("predict" in cell["source"] for cell in codes) == 1


def test_a_prediction_is_asked_before_the_proof(tmp_path):
    proof = '+++ {"tags": ["fragment"]}\n\n**Proof.** A coin has no memory.\n\n```{code-cell}'
    pages = ASKING.replace("```{code-cell}", proof, 1)
    lecture = course_project.LECTURE.replace("## What you saw", pages + "## What you saw")
    notebook = text.read_source(project.find(course_project.make(tmp_path, lecture=lecture), "04"))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [stream("said")]
    copy = json.loads(views.student_copy(notebooks.to_json(notebook)))["cells"]
    sources = [cell["source"] for cell in wager(copy).cells]
    assert sources[1].startswith("course.predict(") and sources[2].startswith("**Proof.**")


def test_a_question_in_what_introduces_a_name_asks_for_no_prediction(asking, monkeypatch):
    monkeypatch.setattr(views, "summary", lambda name: "Does it hold?")
    notebook = text.read_source(asking)
    file = notebooks.to_json(notebook)
    new = {
        s.cells[0]["id"]: [SimpleNamespace(written="check.x")] for s in text.slides(notebook.cells)
    }
    made = [json.loads(views.student_copy(file, names))["cells"] for names in (None, new)]
    introduced = [cell for cell in made[1] if cell["id"].endswith("-new")]
    assert len(introduced) == len(new) and "Does it hold?" in introduced[0]["source"]
    assert made[0] == [cell for cell in made[1] if cell not in introduced]


OVER_TWO_PAGES = """\
## Who hears whom?

```{code-cell} ipython3
classes = 3
```

## The bars

```{code-cell} ipython3
:tags: [fragment]

print("the bars")
```

"""


@pytest.mark.parametrize("second", ["## The bars", "## And who is heard?"])
@pytest.mark.parametrize("tag", [":tags: [fragment]", ":tags: [hide-code]"])
def test_a_prediction_waits_for_the_page_that_shows_the_answer(tmp_path, second, tag):
    pages = OVER_TWO_PAGES.replace("## The bars", second).replace(":tags: [fragment]", tag)
    lecture = course_project.LECTURE.replace("## What you saw", pages + "## What you saw")
    notebook = text.read_source(project.find(course_project.make(tmp_path, lecture=lecture), "04"))
    new_output = pytest.importorskip("nbformat").v4.new_output
    progress = new_output("display_data", data={views.PROGRESS: "", "text/plain": "2 of 2"})
    for cell in notebook.cells:
        if "print" in cell.source:
            cell.outputs = [stream("said")]
        elif "classes" in cell.source:
            cell.outputs = [progress]  # how far it is, is no answer
    copy = json.loads(views.student_copy(notebooks.to_json(notebook)))["cells"]
    made = [re.search("-(predict|compare)$", cell["id"]) for cell in copy]
    order = [match[1] for match in made if match]
    # a question of its own ends the wait: its prediction would take the place of the first
    assert order == ["predict", "compare"] * (1 if second == "## The bars" else 2)
    shown = next(n for n, cell in enumerate(copy) if cell["source"] == 'print("the bars")')
    assert copy[shown + 1]["id"].endswith("-compare")


CHOICES = """\
+++ {"tags": ["choices", "notebook-only"]}

- A: heads has no *memory*.
- **B**: a coin has no "memory".

"""


@pytest.fixture
def offering(tmp_path):
    """The lecture of `asking`, with two answers to choose from."""
    offered = ASKING.replace("What comes next?", "What comes next? A) tails B) either")
    # what is said to each choice stands behind the answer
    offered = offered.replace('+++ {"tags": ["shown"]}', CHOICES + '+++ {"tags": ["shown"]}')
    lecture = course_project.LECTURE.replace("## What you saw", offered + "+++\n\n## What you saw")
    return project.find(course_project.make(tmp_path / "offering", lecture=lecture), "04")


def test_the_students_copy_answers_what_was_chosen(offering):
    cells = text.read_source(offering).cells
    assert not list(lint.lecture_problems(cells))
    views.fold(cells)
    slide = wager(cells)
    assert questions.choices_of(slide)[0]["metadata"]["jupyter"] == {"source_hidden": True}
    assert "memory" not in "".join(c["source"] for c in questions.in_deck(slide))
    copy = json.loads(views.student_copy(notebooks.to_json(text.assemble("04", cells))))
    sources = [cell["source"] for cell in wager(copy["cells"]).cells]
    assert sources[1].startswith('course.predict("")  # A, B, and why?')
    assert sources[3] == 'print("the picture")'
    cell = wager(copy["cells"]).cells[4]
    assert cell["metadata"] == {"jupyter": {"source_hidden": True}}
    assert "memory" not in sources[4] and "coin" not in sources[4]
    predictions.predict("A, since I saw it")
    said = repr(eval(sources[4], {"course": predictions}))
    assert "You said: A; it is B." in said and 'a coin has no "memory".' in said
    assert "heads has no *memory*." in said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"choices", "notebook-only"', '"choices"', "needs 'notebook-only' too"),
        ("- **B**: a", "- B: a", "got '- A: heads"),
        ("- A: heads", "- **A**: heads", "the letter in bold, '- **B**: why'"),
        ("- A: heads", "A remark, and - A: heads", "at least two lines"),
        ("- A: heads", "- C: heads", "no answer 'C)' is offered"),
        ("next? A)", "next: A)", "it has choices but no question"),
    ],
)
def test_choices_of_another_form_are_named(offering, old, new, said):
    source = offering.source.read_text("utf-8")
    assert old in source
    offering.source.write_text(source.replace(old, new), "utf-8")
    found = "\n".join(lint.lecture_problems(text.read_source(offering).cells))
    assert said in found


def test_choices_stand_behind_the_answer(offering):
    source = offering.source.read_text("utf-8").replace(CHOICES, "")
    at = source.index("```{code-cell} ipython3\nshown = 3")
    offering.source.write_text(source[:at] + CHOICES + source[at:], "utf-8")
    found = "\n".join(lint.lecture_problems(text.read_source(offering).cells))
    assert "its choices must come after the cell that answers the question" in found


WALK = """<script>
(function walk() {
  if (document.documentElement.dataset.ready !== "yes") return setTimeout(walk, 50);
  const press = (key) => window.onkeydown(new KeyboardEvent("keydown", { key }));
  const seen = () => [...document.querySelectorAll(".slide.current .block")]
    .map((block) => (block.classList.contains("hidden") ? "-" : "x")).join("");
  const said = [];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"]) {
    said.push(seen());
    press(key);
  }
  document.documentElement.dataset.walk = said.concat(seen()).join(" ");
})();
</script>"""


@browser.needed
def test_in_a_browser_keys_bring_the_answers(tmp_path):
    slide = """# Why?

One.

+++

## Two

How many?

```{code-cell} ipython3
print("two")
```

And so on.

+++

## What you saw

- all
"""
    root = course_project.make(tmp_path, lecture=course_project.HEADER + slide)
    cells = text.read_source(project.find(root, "04")).cells
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs = [stream("two")]
    here = SimpleNamespace(root=project.find_root(), name="04")
    path = tmp_path / "deck.html"
    path.write_text(
        render.render(cells, here).replace("</body>", WALK + "</body>"), encoding="utf-8"
    )
    walk = re.search(r'data-walk="([^"]*)"', browser.show(path))[1].split()
    assert walk == ["x", "x---", "xx--", "xxx-", "xxxx", "xxx-"]


def test_the_short_way_leaves_optional_slides_out(tmp_path):
    lecture = course_project.LECTURE.replace('["N12"]', '["N12", "optional", "7min"]')
    document = project.find(course_project.make(tmp_path, lecture=lecture), "04")
    cells = text.read_source(document).cells
    parts = text.slides(cells)
    assert [slide.minutes for slide in parts] == [2, 7, 2, 2]
    assert [slide.optional for slide in parts] == [False, True, False, False]
    assert parts[1].ids == ["N12"]
    here = SimpleNamespace(root=project.find_root(), name="04")
    whole, core = render.render(cells, here), render.render(cells, here, core=True)
    assert whole.count("<section") == 4 and core.count("<section") == 3
    assert 'data-minutes="7" data-optional' in whole and "It is two" not in core


def test_the_students_copy_says_what_labels_and_optional_slides_are(tmp_path):
    lecture = course_project.LECTURE.replace(
        "## What you saw",
        '+++ {"tags": ["optional"]}\n\n## By the way\n\nWords.\n\n+++\n\n## What you saw',
    )
    document = project.find(course_project.make(tmp_path, lecture=lecture), "04")
    cells = text.read_source(document).cells
    copy = json.loads(views.student_copy(notebooks.to_json(text.assemble("04", cells))))["cells"]
    about = copy[1]["source"]
    assert "C027** is the number of a claim" in about and "*Optional*" in about
    assert re.findall(r"\]\((\w+)\.ipynb\)", about) == ["index", "glossary", "from_pytorch"]
    sources = [cell["source"] for cell in copy]
    assert "## By the way\n\n*Optional*\n\nWords." in sources
    assert sum("\n*Optional*\n" in source for source in sources) == 1
