"""A kernel that compiles for long says so, once, on one line; one from the disk says nothing."""

import pytest

from tests.kernels import small_kernel
from tinyattn.kernels.machine import compile_notice

numba = pytest.importorskip("numba")


@pytest.fixture
def lines(tmp_path, monkeypatch, capfd):
    """What a program that runs the small kernel says on its standard error."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def said(name="tinyattn.small", after=0):
        monkeypatch.setattr(compile_notice, "_said", set())
        monkeypatch.setattr(compile_notice, "AFTER", after)
        small_kernel.run(tmp_path, name)
        return capfd.readouterr().err.splitlines()

    return said


def test_a_long_compilation_is_announced_once(lines):
    """Both dtypes are compiled, the second one without a further line."""
    (line,) = lines()
    assert line == compile_notice.TEXT.format(small_kernel.NAME)
    assert "tinyattn warm" in line
    assert lines() == []  # from the disk


def test_functions_of_others_are_not_announced(lines):
    assert lines("others.small") == []


def test_a_quick_compilation_is_silent(lines):
    assert lines(after=1000) == []
