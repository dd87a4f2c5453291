"""The table of systems: what it names exists, and runs on the slides that it names."""

import re
from functools import reduce

import pytest

import tinyattn as ta
from tests import ROOT
from tinyattn.course import project
from tinyattn.models import pretrained

FILE = ROOT / "lectures" / "SYSTEMS.md"
ROWS = [line.split(" | ") for line in FILE.read_text("utf-8").splitlines() if "](../n" in line]
ROWS = [row for row in ROWS if len(row) == 3]
NAME = re.compile(r"`((?:F|nn|graph|models|data|check)\.[\w.]+)`")
PLACE = re.compile(r"\[(\d\d)\]\(\.\./(notebooks/\w+\.ipynb)\): ((?:[A-Z]+\d+(?:, )?)+)")


def test_the_table_has_its_rows():
    assert len(ROWS) > 50
    assert hasattr(pretrained, "minilm")  # imported: a module of its own


@pytest.mark.parametrize("row", ROWS, ids=[row[0].strip("| ") for row in ROWS])
def test_what_it_names_exists_and_runs_there(row):
    _, names, where = row
    texts = ""
    assert PLACE.search(where)
    for number, notebook, slides in PLACE.findall(where):
        document = project.find(ROOT, number)
        assert document.relative(document.notebook) == notebook
        text = document.source.read_text("utf-8")
        for slide in slides.split(", "):
            assert f'"{slide}"' in text, f"lecture {number} has no slide {slide}"
        texts += text
    for name in NAME.findall(names):
        path = name.replace("F.", "functional.", 1) if name.startswith("F.") else name
        reduce(getattr, path.split("."), ta)
    for name in NAME.findall(names.partition(";")[0]):  # behind it: relatives that need not run
        assert re.search(rf"\b{name.split('.')[-1]}\b", texts), f"{name} is on none of its slides"
