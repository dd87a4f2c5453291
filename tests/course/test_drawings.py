"""The drawings of the lectures: each keeps the language, and is the file that is committed."""

import importlib
import re
import sys
from xml.etree import ElementTree

import pytest

from coursekit.build import text
from coursekit.deck import render
from coursekit.drawing.checks import problems
from tests import ROOT
from tests.coursekit import browser
from tinyattn import course
from tinyattn.course import project

pytest.importorskip("matplotlib")
FOLDER = ROOT / "lectures" / "figures"


def _drawings():
    """What make.py draws; its folder is no package."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("make").DRAWINGS
    finally:
        sys.path.remove(str(FOLDER))


DRAWINGS = _drawings()
each_drawing = pytest.mark.parametrize("draw", DRAWINGS, ids=lambda f: f.__name__)


def but_for_outlines(svg):
    """A drawing without the outlines of its formulas, which may differ between Matplotlibs."""
    return re.sub(r'(class="math"[^>]*) d="[^"]*"', r"\1", svg)


@each_drawing
def test_nothing_lies_on_anything_else(draw):
    found = problems(draw())
    assert not found, "\n".join(found)


@each_drawing
def test_the_committed_file_is_what_the_code_draws(draw):
    drawing = draw()
    committed = (FOLDER / f"{drawing.name}.svg").read_text(encoding="utf-8")
    assert but_for_outlines(drawing.svg()) == but_for_outlines(committed), (
        "run python lectures/figures/make.py"
    )
    assert drawing.svg() == draw().svg()
    ElementTree.fromstring(committed)


def test_names_differ_and_no_file_is_left_over():
    names = [draw().name for draw in DRAWINGS]
    assert len(set(names)) == len(names)
    assert {p.stem for p in FOLDER.glob("*.svg")} == set(names)


def test_every_drawing_is_shown_by_a_lecture():
    source = "".join(d.source.read_text(encoding="utf-8") for d in project.lectures(ROOT))
    shown = set(re.findall(r'course\.drawing\("(\w+)"', source))
    assert shown == {draw().name for draw in DRAWINGS}


@pytest.mark.parametrize("document", project.lectures(ROOT), ids=lambda d: d.name)
def test_what_a_lecture_shows_is_there(document):
    for cell in text.read_source(document).cells:
        for call in re.findall(r"^course\.(?:drawing|where)\(.*\)$", cell["source"], re.M):
            assert eval(call, {"course": course})._repr_svg_().startswith("<svg")


def test_a_drawing_says_what_it_shows():
    assert "memory" in repr(course.drawing("transformer", root=ROOT))


def page(svg):
    """A deck of one page that shows this picture."""
    output = {
        "output_type": "execute_result",
        "data": {"image/svg+xml": svg, "text/plain": "a & b"},
    }
    heading = {"cell_type": "markdown", "source": "## It", "metadata": {}}
    code = {
        "cell_type": "code",
        "source": "draw()",
        "metadata": {"tags": ["hide-code"]},
        "outputs": [output],
    }
    return render.render([heading, code], project.lectures(ROOT)[0])


def test_a_deck_has_drawings_inline_so_that_their_steps_are_fragments():
    html = page(course.drawing("transformer", root=ROOT)._repr_svg_())
    assert '<g class="step fragment" data-step="1">' in html
    other = page('<svg xmlns="http://www.w3.org/2000/svg" id="a"></svg>')
    assert 'src="data:image/svg+xml;base64,' in other and 'alt="a &amp; b"' in other


def test_a_map_stands_beside_the_title_and_marks_its_parts():
    svg = course.where("transformer", "memory", "decoder/cross-attention", root=ROOT)._repr_svg_()
    html = page(svg)
    assert html.index('<div class="map">') < html.index('<div class="body">')
    assert html.count('class="drawing') == 1 and 'class="part lit arrow rail memory"' in html
    with pytest.raises(ValueError, match="no part 'memories'"):
        course.where("transformer", "memories", root=ROOT)


def after_script(svg, code, folder):
    """The title of a deck's page that shows this drawing, after code of JavaScript has set it."""
    wait = "if (!document.documentElement.dataset.ready) return; clearInterval(waiting);"
    script = f"<script>const waiting = setInterval(() => {{ {wait} {code} }}, 50)</script></body>"
    path = folder / "deck.html"
    path.write_text(page(svg).replace("</body>", script), encoding="utf-8")
    return re.search("<title>([^<]*)</title>", browser.show(path))[1]


@browser.needed
def test_the_steps_of_a_drawing_come_one_by_one(tmp_path):
    svg = course.drawing("transformer", root=ROOT)._repr_svg_()
    presses = "for (let k = 0; k < 4; k++) onkeydown({key: ' ', preventDefault() {}});"
    count = "document.title = document.querySelectorAll('.step.hidden').length;"
    assert after_script(svg, presses + count, tmp_path) == "2"  # of six


@browser.needed
def test_a_drawing_alone_has_the_whole_page_below_the_title(tmp_path):
    svg = course.drawing("transformer", root=ROOT)._repr_svg_()
    width = "document.querySelector('{}').getBoundingClientRect().width"
    code = f"document.title = 1280 * {width.format('.drawing')} / {width.format('.page')};"
    assert float(after_script(svg, code, tmp_path)) == pytest.approx(1152, abs=2)
