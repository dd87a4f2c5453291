"""`tinyattn warm` compiles, and `tinyattn class` lets it do so once, in the background."""

import subprocess
import sys

import numpy as np
import pytest

from coursekit.cli import main
from tinyattn import warm

pytest.importorskip("numba")


@pytest.fixture
def mark(monkeypatch, tmp_path):
    monkeypatch.setattr(warm, "_mark", lambda: tmp_path / "folder" / "warm")
    return warm._mark()


@pytest.mark.parametrize("name", warm.WORK)
def test_all_of_it_runs(name):
    warm.WORK[name](np.float32)


def test_it_says_how_long_each_took_and_leaves_a_mark(mark, monkeypatch, capsys):
    done = []
    monkeypatch.setattr(warm, "WORK", {"one": done.append, "other": done.append})
    assert main(["warm"]) == 0 and mark.exists()
    assert done == [*warm.DTYPES, *warm.DTYPES]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["one", "other", "all"]
    assert main(["warm", "--quiet"]) == 0 and capsys.readouterr().out == ""


def test_it_does_not_claim_that_a_kernel_is_kept(mark, monkeypatch, capsys):
    monkeypatch.setattr(warm, "WORK", {})
    monkeypatch.setattr("tinyattn.kernels.machine.compile.compiled_files", dict)
    assert main(["warm"]) == 0 and not mark.exists()
    assert "each run compiles them again. Set NUMBA_CACHE_DIR" in capsys.readouterr().out


def test_in_the_background_only_the_first_time(mark, monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: started.append(command))
    warm.in_the_background()
    assert started == [[sys.executable, "-m", "tinyattn.warm", "--quiet"]]
    mark.parent.mkdir()
    mark.touch()
    assert warm.in_the_background() is None and len(started) == 1


def test_the_mark_is_of_these_sources():
    from tinyattn.kernels.machine import compile

    assert warm._mark().name == f"warm_{compile.checksum:08x}"
