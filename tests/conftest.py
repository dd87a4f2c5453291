"""What all tests share: quick runs, a small course, and the table of gradient checks.

The table is at the end of `pytest -rA` and `pytest -v`.
"""

import os

import pytest

from tests.coursekit import browser, small_project
from tinyattn.kernels.machine import first_use

os.environ.setdefault(first_use.SETTING, "now")  # kernels are tested, not what stands in for them


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No test makes a full run."""
    monkeypatch.delenv("TINYATTN_FULL", raising=False)


@pytest.fixture
def root(tmp_path):
    """A course of one lecture and one homework, in a folder of its own."""
    return small_project.make(tmp_path)


def pytest_sessionfinish():
    browser.close()


def pytest_terminal_summary(terminalreporter, config):
    rows = []
    for report in terminalreporter.stats.get("passed", []):
        for key, value in report.user_properties:
            if key == "gradients":
                rows.append((report.nodeid.split("::")[-1], *value))
    if not rows or not (config.option.verbose > 0 or "A" in config.option.reportchars):
        return
    terminalreporter.section("gradient checks")
    line = "{:40} {:>6} {:>6} {:>12} {:>12}".format
    terminalreporter.write_line(line("operation", "cases", "order", "derivatives", "worst error"))
    for name, cases, order, compared, worst in sorted(rows):
        name = name.removeprefix("test_gradient[").removesuffix("]")
        terminalreporter.write_line(line(name, cases, order, compared, f"{worst:.1e}"))
