"""Drawings of networks: what the page holds, steps and highlight, and the checks themselves."""

import subprocess
import sys
from xml.etree import ElementTree

import pytest

from coursekit.drawing import Drawing, style
from coursekit.drawing.checks import contrast, problems
from tests import ROOT

pytest.importorskip("matplotlib")
ALT = "The state goes through a linear map. Its result goes on to a softmax, which gives weights."


def small(alt=ALT):
    d = Drawing("small", alt)
    boxes = d.row(
        100,
        200,
        ("linear", 120, ["$W^Q$"], "query/W"),
        ("+", 28, [], "sum"),
        ("softmax", 120, ["softmax"], "softmax"),
        right=700,
        thing="state",
    )
    with d.step(1), d.part("output"):
        d.arrow(boxes[-1].e, (900, 200), thing="query", part="arrow")
        d.sizes(800, 170, "T", "d")
    return d


def elements(svg, name):
    return list(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}" + name))


def test_a_drawing_without_faults_has_no_problems():
    assert problems(small()) == []


def test_a_row_fills_its_width_with_equal_gaps():
    d = Drawing("row", ALT)
    boxes = d.row(0, 50, *[("linear", w, ["a"], f"b{w}") for w in (50, 100, 150)], right=400)
    assert boxes[0].left == 0 and boxes[-1].right == 400
    assert [b.left - a.right for a, b in zip(boxes, boxes[1:], strict=False)] == [50, 50]


def test_a_stack_runs_down_and_arrows_follow_it_up():
    d = Drawing("stack", ALT)
    top, low = d.stack(
        200,
        10,
        ("norm", 40, ["norm"], "n"),
        ("linear", 60, ["MLP"], "m"),
        gap=20,
        up=True,
        thing="state",
    )
    assert (top.top, top.bottom, low.top, low.bottom) == (10, 50, 70, 130)
    assert d.lines == [((200, 70), (200, 50), "n", "flow")]


def test_it_is_valid_and_says_what_it_shows():
    root = ElementTree.fromstring(
        small("x < y & so on. Twice: it says so with all it has got.").svg()
    )
    assert root.get("role") == "img" and root.get("viewBox") == "0 0 1152 560"
    assert root.get("aria-label").startswith("x < y & so on.")
    with pytest.raises(ValueError, match="alt text"):
        Drawing("mute", "").svg()


def test_steps_are_fragments_and_can_be_left_out():
    svg = small().svg()
    groups = [g for g in elements(svg, "g") if "step" in g.get("class", "").split()]
    assert [(g.get("class"), g.get("data-step")) for g in groups] == [
        ("step", "0"),
        ("step fragment", "1"),
    ]
    first = small().svg(until=0)
    assert "[T, d]" in svg and "[T, d]" not in first and "softmax" in first
    assert "fragment" not in first and "fragment" not in small().svg(until=1)


def test_focus_leaves_a_part_and_its_parts_bright():
    groups = elements(small().svg(focus="output"), "g")
    pale = {g.get("data-part"): g.get("opacity") for g in groups if g.get("data-part")}
    assert pale["output/arrow"] is None and pale["output"] is None
    assert pale["query/W"] == pale["sum"] == "0.25"


def test_a_part_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="no part 'quer'. Choose one of .*query/W"):
        small().svg(focus=["output", "quer"])


def test_the_same_bytes_in_another_process():
    program = "from tests.coursekit.test_drawing import small; print(small().svg(), end='')"
    command = [sys.executable, "-c", program]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert again.stdout == small().svg() == small().svg()


def test_nothing_in_it_clashes_with_another_drawing_on_the_page():
    for element in ElementTree.fromstring(small().svg()).iter():
        assert not {"id", "style"} & set(element.keys())
        assert not element.tag.endswith(("style", "marker", "use"))


def test_it_is_saved_as_svg_and_shown_by_a_notebook(tmp_path):
    d = small()
    assert d.save(tmp_path / "d.svg").read_text(encoding="utf-8") == d.svg() == d._repr_svg_()
    with pytest.raises(ValueError, match=r"end in .svg"):
        d.save(tmp_path / "d.png")


def test_words_take_the_room_that_the_decks_font_needs():
    width, above, below = style.extent("linear", 20)
    assert 45 < width < 55 and above > 14 > below > 0
    assert style.extent("$W^Q$", 20)[1] > style.extent("$W$", 20)[1]
    assert style.extent("[T, d]", 16, mono=True)[0] == 6 * 16 * 0.6


def test_what_cannot_be_read_or_measured_is_refused():
    d = Drawing("bad", ALT)
    with pytest.raises(ValueError, match="has the font size 15 px, but 16 px are"):
        d.text(100, 100, "small", size=15)
    with pytest.raises(ValueError, match="Write it as a formula"):
        d.text(100, 100, "a → b")


# ------------------------------------------------------------ the palette


@pytest.mark.parametrize("thing", style.THINGS)
def test_what_flows_can_be_seen_and_read(thing):
    line, words, area = style.THINGS[thing]
    edge = words if thing == "memory" else line  # memory is a tube with a dark edge
    assert contrast(edge, style.PAPER) >= 3
    assert contrast(words, style.PAPER) >= 4.5 and contrast(words, area) >= 4.5


@pytest.mark.parametrize("kind", style.KINDS)
def test_words_in_boxes_can_be_read(kind):
    fill, stroke, _, _, words = style.KINDS[kind]
    assert contrast(words, fill) >= 4.5 and contrast(stroke, style.PAPER) >= 3


def test_remarks_edges_and_objects_can_be_seen():
    assert contrast(style.QUIET, style.PANEL) >= 4.5 and contrast(style.EDGE, style.PANEL) >= 3
    for line, words, area in style.OBJECTS:
        assert contrast(line, style.PAPER) >= 3 and contrast(words, area) >= 4.5
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


# ------------------------------------------------------------ each check finds its fault


def found(draw):
    d = small()
    draw(d)
    return "\n".join(problems(d))


def test_words_on_words_are_found():
    assert "'[T, d]' overlaps 'one'" in found(lambda d: d.text(800, 176, "one"))


def test_words_on_lines_are_found():
    assert "'one' overlaps the line output/arrow" in found(lambda d: d.text(850, 208, "one"))
    assert "overlaps the line" not in found(lambda d: d.text(850, 224, "one"))


def test_words_outside_the_page_are_found():
    assert "'one' leaves the page" in found(lambda d: d.text(1140, 300, "one"))


def test_words_too_large_for_their_box_are_found():
    box = lambda d: d.box("linear", 300, 400, 60, 40, "feed-forward")
    assert "'feed-forward' is too large for its box" in found(box)


def test_words_on_an_edge_are_found():
    assert "'one' crosses the edge of linear query/W" in found(lambda d: d.text(100, 200, "one"))


def test_a_line_across_a_box_is_found():
    line = lambda d: d.arrow((50, 215), (800, 215))
    assert "crosses linear query/W" in found(line) and "crosses softmax" in found(line)


def test_missing_steps_and_a_lazy_alt_text_are_found():
    def later(d):
        with d.step(3):
            d.text(300, 400, "late")

    assert "steps must be 0, 1, 2" in found(later)
    assert problems(small("A network.")) == [
        "the alt text must say in two sentences what flows where"
    ]
