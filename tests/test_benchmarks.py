"""The page of the benchmarks: what is kept, the overview, and the work at the thresholds."""

import importlib
import math
import os
from unittest.mock import patch

import pytest

from tests.benchmarks import __main__ as benchmarks
from tinyattn.ops import backends
from tinyattn.optim import algorithms

TITLES = {"gpt": "A training step", "knn": "Neighbours"}
ROW = "| N = 10 | 0.061 | 0.077 NumPy | **{}** (1.04-1.25) | 1.0 | 138 | 69% |"
FOUND = {
    ("gpt", "AVX-512"): "Processor: A.\n\n" + ROW.format("1.18"),
    ("knn", "AVX-512"): "Processor: A.\n\n" + ROW.format("4.00") + "\n" + ROW.format("1.00"),
    ("knn", "AVX2"): "Processor: B.\n\n" + ROW.format("0.80"),
}


def test_sections_survive_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path / "RESULTS.md")
    assert benchmarks.parts() == {}
    benchmarks.RESULTS.write_text(benchmarks.page(FOUND, TITLES), encoding="utf-8")
    assert benchmarks.parts() == FOUND


def test_the_overview_has_a_column_for_each_kind_of_processor():
    lines = benchmarks.overview(FOUND, TITLES).splitlines()
    assert lines == [
        "| part | AVX2: mean ratio (lowest) | AVX-512: mean ratio (lowest) |",
        "|---|---|---|",
        "| A training step | not measured | 1.18 (1.18) |",
        "| Neighbours | 0.80 (0.80) | 2.00 (1.00) |",
    ]


def test_the_committed_page_is_what_its_sections_give():
    page = benchmarks.page(benchmarks.parts(), benchmarks.scripts())
    assert benchmarks.RESULTS.read_text(encoding="utf-8") == page


# ---------------------------------------------------------------- thresholds


@pytest.fixture
def thresholds():
    with patch.dict(os.environ):  # a benchmark says how many threads its process has
        return importlib.import_module("tests.benchmarks.thresholds")


def test_every_kernel_is_measured_at_its_threshold(thresholds):
    lines = {
        name
        for name, entry in backends.IMPLEMENTATIONS.items()
        if "kernel" in entry.names and math.isfinite(entry.least)
    }
    assert {line for line, _ in thresholds.ROWS} == lines


def test_a_row_has_the_work_that_its_line_of_the_table_says(thresholds, monkeypatch):
    """A whole number of rows may be up to a quarter more work."""
    asked = []

    def note(name, dtype, work):
        asked.append((name, work))
        return False

    monkeypatch.setattr(backends, "kernel_is_faster", note)
    monkeypatch.setattr(algorithms, "kernel_is_faster", note)
    for line, make in thresholds.ROWS:
        least = backends.IMPLEMENTATIONS[line].least
        for work, factor in zip(thresholds.works(line), (1 / 4, 1, 4), strict=True):
            asked.clear()
            make(work)()
            found = max((w for name, w in asked if name == line), default=0)
            assert found < least if factor < 1 else factor <= found / least < 1.25 * factor, line
