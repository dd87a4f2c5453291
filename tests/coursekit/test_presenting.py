"""A deck in class: the notes in their window, the clock, going to a page, a telephone."""

import pytest

from coursekit.deck import render
from tests import ROOT
from tests.coursekit import browser
from tests.scripts.in_browser import Page, until
from tinyattn.course import project

pytest.importorskip("websocket")
pytest.importorskip("nbconvert")
pytestmark = browser.needed


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A deck of fifteen pages, opened as a file; `test_decks.py` opens those of the lectures."""
    folder = tmp_path_factory.mktemp("deck")
    texts = [f"## Page {n}\n\nA formula, $x^{n}$, and a sentence." for n in range(1, 16)]
    cells = [{"cell_type": "markdown", "source": source, "metadata": {}} for source in texts]
    path = folder / "deck.html"
    path.write_text(render.render(cells, project.lectures(ROOT)[0]), encoding="utf-8")
    with Page(path.as_uri(), folder / "profile") as shown:
        ready(shown)
        yield shown


def ready(page):
    is_ready = "document.documentElement?.dataset.ready === 'yes'"
    until(lambda: page.value(is_ready), 60, "the deck does not come up")


def again(page):
    page.value("document.documentElement.dataset.ready = ''")
    page.command("Page.reload")
    ready(page)


def press(page, *keys):
    for key in keys:
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Enter": 13}.get(key, ord(key[0].upper()))
            page.command("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)


def windows(page):
    """The texts of all windows with notes."""
    shown = page.command("Target.getTargets")["targetInfos"]
    found = []
    for target in shown:
        if target["type"] == "page" and target["title"] == "Speaker notes":
            session = page.command("Target.attachToTarget", targetId=target["targetId"])
            found.append(session["sessionId"])
    return found


NOTES = "history.state.clock"


def test_a_number_and_enter_go_to_a_page(page):
    press(page, "1", "2", "Enter")
    assert page.value("location.hash") == "#12"
    assert page.value("document.getElementById('goto').hidden")
    press(page, "3", "n", "Enter")  # another key forgets the number
    assert page.value("location.hash") != "#3"
    press(page, "9", "9", "9", "Enter")
    assert page.value("document.querySelectorAll('.slide').length") == 15
    assert page.value("location.hash") == "#15"


def test_the_notes_come_again_after_f5_and_the_clock_goes_on(page):
    press(page, "1", "Enter", "w")
    until(lambda: len(windows(page)) == 1, 20, "no window with notes")
    began = page.value(f"{NOTES}.began")
    assert began
    again(page)
    until(lambda: not windows(page), 20, "the older window stays")
    press(page, "w")
    until(lambda: len(windows(page)) == 1, 20, "no window with notes after F5")
    assert page.value(f"{NOTES}.began") == began


def test_the_clock_can_be_stopped(page):
    began = page.value(f"{NOTES}.began")
    press(page, "t")
    assert page.value(f"{NOTES}.stopped") >= began
    again(page)
    assert page.value(f"{NOTES}.stopped") >= began  # also after F5
    press(page, "t")
    assert page.value(f"{NOTES}.stopped") is None
    assert page.value(f"{NOTES}.began") > began


def test_on_a_telephone_held_upright_the_page_is_whole(page):
    page.command(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=844,
        deviceScaleFactor=2,
        mobile=True,
    )
    again(page)
    box = "document.querySelector('.slide.current').getBoundingClientRect()"
    left, right = page.value(f"[{box}.left, {box}.right]")
    page.command("Emulation.clearDeviceMetricsOverride")
    assert left >= -1 and right <= 391 and right - left > 380
