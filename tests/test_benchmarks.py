"""The page of the benchmarks: what is kept, and the overview."""

from tests.benchmarks import __main__ as benchmarks

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
        "| part | AVX2: mean (lowest row) | AVX-512: mean (lowest row) |",
        "|---|---|---|",
        "| A training step | not measured | 1.18 (1.18) |",
        "| Neighbours | 0.80 (0.80) | 2.00 (1.00) |",
    ]


def test_the_committed_page_is_what_its_sections_give():
    page = benchmarks.page(benchmarks.parts(), benchmarks.scripts())
    assert benchmarks.RESULTS.read_text(encoding="utf-8") == page
