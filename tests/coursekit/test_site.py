"""The parts of the web site: examples, formulas, addresses.

`tests/scripts/site.py` looks at the whole site, `tests/scripts/examples.py` runs the examples.
"""

import re
from html import unescape

import pytest

from coursekit.build import text
from coursekit.build.public_api import PLACES, first_uses, place, public_names, section
from coursekit.deck import handout
from coursekit.site import (
    addresses,
    build,
    docstrings,
    extension,
    formulas,
    implementations,
    notebooks,
    pages,
    reference,
)
from tests import ROOT
from tests.coursekit import browser
from tests.scripts import site
from tests.scripts.examples import FOLDER, failures
from tinyattn.course import project
from tinyattn.course.project import CourseError

EXAMPLES = reference.read_examples(FOLDER)


def test_an_example_that_is_wrong_is_seen():
    assert "Expected" in failures("sum", ">>> np.sum([1, 2])\n4")
    assert "NameError" in failures("error", ">>> np.log(x)\n3")
    assert failures("sum", ">>> print(1 + 2)\n3") == ""


def test_every_public_name_has_an_example():
    names = {name.key for name in public_names()}
    assert len(names) > 300
    assert not sorted(names - set(EXAMPLES)), "add them in docs/examples, one file a module"
    assert not sorted(set(EXAMPLES) - names), "examples of names that are not public"


def test_pages_differ_in_more_than_capital_letters():
    pages_of = [name.page.lower() for name in public_names()]
    assert len(pages_of) == len(set(pages_of)), "some disks cannot hold both"


def test_implementations_side_by_side_are_functions_that_are_there():
    names = [
        name
        for columns in implementations.IMPLEMENTATIONS.values()
        for *_, found in columns
        for name in found
    ]
    assert names and all(callable(implementations.function_of(name)) for name in names)
    shown = "".join(
        implementations.side_by_side("functional/scaled_dot_product_attention", "x.html")
    )
    assert "def attention_softmax(scores):" in shown and "ops/attention.py" in shown


def test_every_module_with_public_names_is_in_the_reference():
    import tinyattn

    there = {module for module, _, _ in PLACES}
    missing = [n for n in tinyattn._SUBMODULES if f"tinyattn.{n}" not in there]
    assert not missing
    assert section("tinyattn.nn.init") == "nn.init"


def test_the_source_line_is_that_of_the_name():
    by_name = {name.written: name for name in public_names()}
    for written, start in [
        ("F.scaled_dot_product_attention", "@with_torch_hints"),
        ("nn.Linear", "class Linear"),
        ("optim.Adam", "class Adam"),
    ]:
        path, line = place(by_name[written].object)
        assert (ROOT / path).read_text("utf-8").splitlines()[line - 1].startswith(start)


def test_a_page_of_source_code_has_each_line_and_its_anchor_once():
    text = (ROOT / "tinyattn" / "kernels" / "fast" / "matmul.py").read_text(encoding="utf-8")
    page = extension.numbered(text)
    places = re.findall(r'id="(.*?)"', page)
    assert places == [f"L{i}" for i in range(1, 1 + len(text.splitlines()))]
    assert places == re.findall(r'href="#(.*?)"', page)
    shown = re.sub("<[^>]*>", "", re.sub(r'<a class="linenos".*?</a>', "", page))
    assert unescape(shown) + "\n" == text


def test_the_first_use_is_found():
    names = public_names()
    uses = first_uses(project.lectures(ROOT), names)
    by_name = {name.written: use for name, use in uses.items()}
    assert by_name["ta.tensor"][0].number == "00"
    assert by_name["graph.GravNetConv"][0].number == "11"
    assert len(uses) > 100


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y_t = Σ_s a_ts v_s", r"y_{t} = \sum_{s} a_{t s} v_{s}"),
        ("1 / (1 + e⁻ˣ)", r"1 / ( 1 + e^{-x} )"),
        ("x Wᵀ + b", r"x W^{\top} + b"),
        (
            "θ ← θ - η m̂ / (√v̂ + ε)",
            r"\theta \leftarrow \theta - \eta \hat{m} / ( \sqrt{\hat{v}} + \varepsilon )",
        ),
        ("‖x_i - x_j‖", r"\lVert  x_{i} - x_{j} \rVert "),
        ("√(var + ε)", r"\sqrt{ \operatorname{var} + \varepsilon }"),
        ("the sum of x", None),
        ("(x + 1", None),
    ],
)
def test_formulas(text, expected):
    assert formulas.tex(text) == expected


def test_words_of_a_sentence_are_no_formula():
    text = "query t sees the keys s ≤ t only, both counted from the first"
    assert formulas.in_sentence(text) == [
        ("query t sees the keys ", False),
        (r"s \le t", True),
        (" only, both counted from the first", False),
    ]


def test_a_docstring_becomes_a_lead_a_table_and_errors():
    text = docstrings.markdown(
        """y = x² of `F.relu`.

        x [B, T] gives y [B, T]. Raises ValueError for *stars*.

        mode  what is done: "a" or
              something else
        """,
        {"F.relu": "/relu.md"}.get,
    )
    assert "{.lead}\n$y = x^{2}$ of [`F.relu`](/relu.md)." in text
    assert "`x [B, T]` gives `y [B, T]`.\n\n**Errors:** Raises ValueError for \\*stars\\*." in text
    assert '`mode`\n: what is done: "a" or something else' in text


@pytest.mark.parametrize(
    ("block", "begins"),
    [
        ("n = tanh(W x + r ⊙ (W h))", "$$"),
        ("r = σ(W x + b)", "$$"),
        ("model = nn.GRUCell(3, 4)", "```python"),
    ],
)
def test_a_formula_with_a_call_is_no_code(block, begins):
    text = docstrings.markdown(f"A cell.\n\n        {block}\n\n    Call it.\n", {}.get)
    assert any(line.startswith(begins) for line in text.split("\n"))


def test_headings_of_parts_push_slides_down():
    assert notebooks.lowered("## A\n```\n# no heading\n```\n### B", 1) == (
        "### A\n```\n# no heading\n```\n#### B"
    )
    assert notebooks.lowered("# Part", 1) == "## Part"


def test_links_of_texts_lead_to_pages():
    text = "[the operations](../tinyattn/ops/) [file](../tinyattn/engine/torch_hints.py) "
    text += "[out](https://a.b) [x](../pyproject.toml)"
    linked = pages.linked(text, ROOT, "lectures/from_pytorch.md", "from_pytorch")
    assert '<a href="source/index.html">the operations</a>' in linked
    assert '<a href="source/tinyattn/engine/torch_hints.py.html">file</a>' in linked
    assert "[out](https://a.b)" in linked and linked.endswith(" x")
    with pytest.raises(CourseError, match=r"lectures/a.md: the link to no.md leads nowhere"):
        pages.linked("[x](no.md)", ROOT, "lectures/a.md", "a")


def test_the_first_page_keeps_the_links_of_its_template():
    template = "[the ledger](claims.md) <!-- start -->"
    home = pages.home(ROOT, template, {}, {}, {})
    assert home.startswith("[the ledger](claims.md) ") and "pip install" in home


def test_a_link_that_leads_nowhere_is_seen(tmp_path, monkeypatch):
    (tmp_path / "b").mkdir()
    first = '<p id="x"><a href="b/c.html#here"><a href="#x"><a href="https://a.b">'
    (tmp_path / "a.html").write_text(first)
    (tmp_path / "b" / "c.html").write_text('<a href="../a.html#y"><img src="no.png">')
    monkeypatch.setattr(site, "FOLDER", tmp_path)
    assert site.broken_links(site.read(tmp_path)) == [
        "a.html: b/c.html#here names a place that is not there",
        "b/c.html: ../a.html#y names a place that is not there",
        "b/c.html: no.png leads nowhere",
    ]


def test_the_workflow_publishes_what_the_tests_saw():
    text = (ROOT / ".github" / "workflows" / "site.yml").read_text("utf-8")
    assert text.index("tests.scripts.site") < text.index("actions/deploy-pages")
    assert "path: build/site" in text


def test_the_site_for_students_leaves_out_the_pages_for_those_who_teach(tmp_path, monkeypatch):
    pytest.importorskip("nbconvert")
    monkeypatch.setattr(build, "lectures", lambda root: project.lectures(root)[4:5])
    monkeypatch.setattr(build, "homework", lambda root: project.homework(root)[4:5])
    monkeypatch.setattr(handout, "print_page", lambda *_: None)
    made = {}
    for students in (False, True):
        pages_of = tmp_path / str(students)
        build.write_sources(ROOT, pages_of / "pages", pages_of / "files", students=students)
        texts = {
            path.relative_to(pages_of).as_posix(): path.read_text(encoding="utf-8")
            for path in pages_of.rglob("*.*")
            if path.suffix in (".md", ".ipynb", ".html")
        }
        made[students] = texts
        link = re.compile(r"teaching/(index|\d\d)|project/writing_lectures")
        named = [name for name, text in texts.items() if link.search(text + name)]
        assert bool(named) is not students, named
        deck = texts["files/decks/04_self_attention.html"]
        assert ('<aside class="notes' in deck) is not students
    left_out = set(made[False]) - set(made[True])
    assert left_out == {
        "pages/teaching/04.md",
        "pages/teaching/index.md",
        "pages/project/writing_lectures.md",
    }


@browser.needed
@pytest.mark.parametrize(("students", "kind"), [(False, "handout"), (True, "pages")])
def test_a_lecture_offers_its_handout_as_pdf(students, kind, tmp_path, monkeypatch):
    pytest.importorskip("nbconvert")
    lecture = project.find(ROOT, "03")
    printed = []
    monkeypatch.setattr(
        handout, "print_page", lambda _, page, pdf: printed.append(page.read_text())
    )
    build.write_handouts([lecture], tmp_path, students)
    assert [p.name for p in tmp_path.iterdir()] == []  # the page itself does not stay
    assert ('class="noted"' in printed[0]) is not students
    ways = dict(build.ways(ROOT, lecture, {}, students))
    assert ways["Handout (PDF)"] == f"decks/{lecture.name}_{kind}.pdf"


def test_who_waits_for_the_handouts_sees_how_far_they_are(tmp_path, monkeypatch, capsys):
    def prints(document, notes, folder):
        (folder / "x.html").write_text("")
        return folder / "x.pdf"

    monkeypatch.setattr(build.handout, "find_browser", lambda: "a browser")
    monkeypatch.setattr(build.handout, "build_handout", prints)
    documents = project.lectures(ROOT)[:2]
    build.write_handouts(documents, tmp_path)
    names = [document.name for document in documents]
    said = capsys.readouterr().out
    assert said == f"handout 1 of 2: {names[0]}\nhandout 2 of 2: {names[1]}\n"


def test_without_a_browser_the_site_says_so_and_has_no_link(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(handout, "find_browser", lambda: None)
    lecture = project.find(ROOT, "03")
    build.write_handouts([lecture], tmp_path)
    assert "no handouts as PDF" in capsys.readouterr().out and not list(tmp_path.iterdir())
    ways = [words for words, _ in build.ways(ROOT, lecture, {})]
    assert "Slides" in ways and not [w for w in ways if "PDF" in w]


def test_every_picture_of_a_text_is_copied():
    pictures = {path.name for folder in build.PICTURES for path in (ROOT / folder).glob("*.png")}
    for path in addresses.TEXTS:
        if path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            named = re.findall(r"!\[[^\]]*\]\((?!https?:)[^)\s]*?([^/)\s]+\.png)\)", text)
            assert set(named) <= pictures, path
    page = pages.project_text(ROOT, "tinyattn/trace/README.md", "project/trace")
    assert '<img class="picture" src="../pictures/trace.png"' in page


def test_a_notebook_opens_elsewhere_where_the_repository_is_known():
    path = "notebooks/04_self_attention.ipynb"
    assert build.elsewhere(path, {}) == []
    assert build.elsewhere(path, {"GITHUB_REPOSITORY": "us/tinyattn"}) == [
        ("Colab", f"https://colab.research.google.com/github/us/tinyattn/blob/main/{path}"),
        ("Binder", f"https://mybinder.org/v2/gh/us/tinyattn/main?labpath={path}"),
    ]
    first = notebooks.with_ways("# Title", build.elsewhere(path, {"GITHUB_REPOSITORY": "a/b"}), "x")
    assert 'href="https://mybinder.org/v2/gh/a/b/main?labpath=' in first
    assert "download" not in first


@browser.needed
def test_the_ledger_is_filtered_by_verdict_lecture_and_words(tmp_path):
    documents = project.lectures(ROOT)[3:6]
    built = {d: text.slides(text.read_notebook(d)) for d in documents}
    page = pages.claims_page(ROOT, built, {})
    script = (ROOT / "docs" / "static" / "site.js").read_text("utf-8")
    walk = """
      const count = () => document.querySelectorAll("tr[data-verdict]:not([hidden])").length;
      const said = [count()];
      const set = (id, value, kind) => {
        document.getElementById(id).value = value;
        document.getElementById(id).dispatchEvent(new Event(kind));
        said.push(count());
      };
      addEventListener("DOMContentLoaded", () => {
        set("lecture", "04", "change");
        set("words", "SOFTMAX", "input");
        set("words", "softmax nosuchword", "input");
        set("words", "", "input");
        document.querySelector("[data-verdict=holds]").click();
        said.push(count());
        document.body.dataset.said = said.join(" ") + " " + document.getElementById("shown").value;
      });"""
    path = tmp_path / "claims.html"
    path.write_text(f"<body>{page}<script>{script}{walk}</script></body>", encoding="utf-8")
    shown = re.search(r'data-said="([^"]*)"', browser.show(path))[1].split()
    every, of_04, with_word, nothing, again, holds, said = map(int, shown[:-1])
    assert every > of_04 > with_word > nothing == 0
    assert again == of_04 >= holds > 0 and said == holds
