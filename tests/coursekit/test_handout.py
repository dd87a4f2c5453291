"""Handouts: several pages to a sheet, with the lecturer's notes or without them."""

import base64
import io
import re
import shutil
import subprocess

import numpy as np
import pytest

from coursekit.build import text
from coursekit.deck import handout
from tests import ROOT
from tests.coursekit import browser
from tinyattn.course import project

pytest.importorskip("nbconvert")
Image = pytest.importorskip("PIL.Image")
DOCUMENT = project.find(ROOT, "03")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where decks are written instead of build/decks."""
    monkeypatch.setattr(project.Document, "home", property(lambda self: tmp_path))
    return tmp_path


@browser.needed
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext to read a PDF with")
@pytest.mark.parametrize(("notes", "least", "most"), [(True, 2.5, 4.5), (False, 7, 11)])
def test_several_pages_are_on_a_sheet(folder, notes, least, most):
    pdf = handout.build_handout(DOCUMENT, notes=notes)
    assert pdf.suffix == ".pdf"
    printed = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True).stdout
    sheets = printed.count("\f")
    slides = text.slides(text.read_notebook(DOCUMENT))
    assert least <= len(slides) / sheets <= most, (len(slides), sheets)
    flat = "".join(printed.split())
    first = text.notes_of(slides[1].cells[0])
    words = "".join(re.sub(r"[*`$].*", "", first, flags=re.S).split())[:30]
    assert len(words) > 10 and (words in flat) is notes
    shown = [s.title for s in slides if re.fullmatch(r"[\w ,:?]+", s.title)]
    left_out = [title for title in shown if "".join(title.split()) not in flat]
    assert len(shown) > 10 and not left_out


def test_without_a_browser_there_is_a_page_to_print(folder, monkeypatch):
    monkeypatch.setattr(handout, "find_browser", lambda: None)
    page = handout.build_handout(DOCUMENT)
    assert page.suffix == ".html" and "size: A4 portrait" in page.read_text(encoding="utf-8")


def test_pictures_are_as_wide_as_paper_shows():
    rng = np.random.default_rng(0)
    wide, narrow = (picture(rng.integers(256, size=(10, w, 3))) for w in (1500, 900))
    page = re.sub(r"(data:image/png;base64,)([\w+/=]+)", handout.smaller, wide + " " + narrow)
    first, second = page.split()
    assert second == narrow
    image = Image.open(io.BytesIO(base64.b64decode(first.partition(",")[2])))
    assert image.size == (1000, 7)
    assert len(first) < len(wide) / 2


def picture(colours):
    """A page's picture of these colours [height, width, 3]."""
    data = io.BytesIO()
    Image.fromarray(colours.astype(np.uint8)).save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()
