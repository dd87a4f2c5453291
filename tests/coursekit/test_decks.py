"""The decks as a browser shows them: every page is whole, and none is mostly empty."""

import html
import json
import re
from pathlib import Path

import pytest

from coursekit.build import text
from coursekit.deck import render
from tests import ROOT
from tests.coursekit import browser
from tinyattn.course import project
from tinyattn.course.claims import Claim

LECTURES = project.lectures(ROOT)
MEASURE = Path(__file__).with_name("emptiness.js").read_text(encoding="utf-8")
# Half of the area: with less in use a page is mostly empty in the plain sense of the words. Pages
# that looked empty to the eye had 0.25 to 0.48; a list of five lines has 0.5 to 0.6.
LEAST_USED = 0.5

pytestmark = browser.needed


def looked_at(cells, document, folder):
    """(what does not fit, [page, title, share in use] of the ordinary pages) of a deck.

    All that comes at a key press counts: it has its place on the page from the start.
    """
    path = folder / "deck.html"
    page, end, nothing = render.render(cells, document).rpartition("</body>")
    path.write_text(f"{page}<script>{MEASURE}</script>{end}{nothing}", encoding="utf-8")
    shown = browser.show(path)
    assert 'data-ready="yes"' in shown, "the scripts of the deck did not come to their end"
    problems, used = (re.search(f'data-{n}="([^"]*)"', shown)[1] for n in ("problems", "used"))
    return html.unescape(problems), json.loads(html.unescape(used))


@pytest.mark.parametrize("document", LECTURES, ids=lambda d: d.name)
def test_every_page_of_the_deck_fits_and_none_is_mostly_empty(document, tmp_path):
    problems, used = looked_at(text.read_notebook(document), document, tmp_path)
    assert not problems, f"too much on the page, or a formula is wrong: {problems}"
    empty = [f"page {n}, '{title}': {u:.2f}" for n, title, u in used if u < LEAST_USED]
    assert not empty, (
        f"mostly empty: {'; '.join(empty)} of the area in use, at least {LEAST_USED}. Join it with "
        f"the slide before or after, or show what belongs there: a picture, a formula"
    )


def cell(source, kind="markdown", *outputs):
    new = {"cell_type": kind, "source": source, "metadata": {}}
    return {**new, "outputs": list(outputs)} if kind == "code" else new


def printed(words):
    return {"output_type": "stream", "name": "stdout", "text": words}


LINE = "A sentence that is as wide as the page is, or nearly so, and not much wider than that."
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 1152 560"></svg>'
DRAWN = {"output_type": "display_data", "data": {"image/svg+xml": PICTURE, "text/plain": ""}}


@pytest.mark.parametrize(
    ("cells", "least", "most"),
    [
        ([cell("## Three lines\n\nOne.\n\nTwo words.\n\nAnd three words.")], 0.02, 0.15),
        ([cell("## One claim"), cell("1", "code", printed("a: 1\nb: 2\nc: 3"))], 0.05, 0.4),
        ([cell("## Full\n\n" + "\n\n".join([LINE] * 9))], 0.7, 1),
        ([cell("## A picture"), cell("1", "code", DRAWN)], 0.7, 1),
        ([cell("## A narrow list\n\n" + "\n".join(["- one"] * 8))], 0.02, 0.15),
    ],
    ids=["three lines", "printed lines", "text", "picture", "narrow"],
)
def test_an_empty_page_is_told_from_a_full_one(cells, least, most, tmp_path):
    problems, [[number, _, used]] = looked_at(cells, LECTURES[0], tmp_path)
    assert not problems and number == 1
    assert least < used <= most


def test_the_line_under_an_explorer_is_not_on_the_page(tmp_path):
    output = '<div class="explorer">a</div><div id="line">.save("trace.html")</div>'
    shown = {"output_type": "display_data", "data": {"text/html": output, "text/plain": ""}}
    page = render.render([cell("## Explore"), cell("1", "code", shown)], LECTURES[0])
    say = "document.body.dataset.line = getComputedStyle(document.getElementById('line')).display"
    path = tmp_path / "deck.html"
    path.write_text(page.replace("</body>", f"<script>{say}</script></body>"), encoding="utf-8")
    assert 'data-line="none"' in browser.show(path)


def test_words_at_the_lower_end_of_a_page_do_not_fill_it(tmp_path):
    lines = cell("1", "code", printed("\n" * 20 + "1"))
    _, [[_, _, used]] = looked_at([cell("## Low"), lines], LECTURES[0], tmp_path)
    assert used < 0.5


FREE = """
const waiting = setInterval(() => {
  if (!document.documentElement.dataset.ready) return;
  clearInterval(waiting);
  const body = document.querySelector(".level2 .body");
  const drawing = body.querySelector(".drawing").getBoundingClientRect();
  document.body.dataset.free = body.getBoundingClientRect().bottom - drawing.bottom;
}, 20);
"""


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_picture_takes_the_room_that_smaller_text_leaves(lines, tmp_path):
    cells = [cell("## Full\n\n" + " ".join([LINE] * lines)), cell("1", "code", DRAWN)]
    path = tmp_path / "deck.html"
    page = render.render(cells, LECTURES[0])
    path.write_text(page.replace("</body>", f"<script>{FREE}</script></body>"), encoding="utf-8")
    free = float(re.search(r'data-free="([^"]*)"', browser.show(path))[1])
    assert -2 <= free < 12  # pixels; a picture grows in quarters of a step, which is 7


def test_no_line_ends_after_the_letter_of_an_offered_answer():
    page = render.render([cell("## A question\n\nWhy (a fact)? A) `f(A) ` B) two")], LECTURES[0])
    assert "(a fact)? A)\N{NO-BREAK SPACE}<code>f(A) </code> B)\N{NO-BREAK SPACE}two" in page


def test_no_line_ends_within_a_number_of_a_badge():
    claim = Claim("C044", "holds", "The change is at most 6e-16, and 0.74 ± 0.05 without it.")
    shown = {"output_type": "execute_result", "data": {"text/html": claim._repr_html_()}}
    page = render.render([cell("## Sets"), cell("1", "code", shown)], LECTURES[0])
    assert 'nowrap">6e-16</span>' in page
    assert "0.74\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.05" in page
