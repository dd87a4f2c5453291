"""What the tests of the course begin with: no full run, and a small project to try things on."""

import pytest

from tests.course import small_project


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.delenv("TINYATTN_FULL", raising=False)


@pytest.fixture
def root(tmp_path):
    return small_project.make(tmp_path)
