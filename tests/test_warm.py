"""`tinyattn warm` compiles, and `tinyattn class` lets it do so once, in the background."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from coursekit.cli import main
from tests import ROOT
from tinyattn import warm
from tinyattn.kernels.machine import first_use
from tinyattn.ops import backends

pytest.importorskip("numba")


@pytest.fixture
def installation(monkeypatch, tmp_path):
    """A new installation: nothing is compiled, and nothing of this process is known."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setenv("TINYATTN_COMPILE", "background")
    monkeypatch.setattr(first_use, "_ready", False)
    monkeypatch.setattr(first_use, "_look_again", 0.0)
    monkeypatch.setattr(first_use, "_process", None)
    monkeypatch.setattr(first_use, "PAUSE", 0.0)
    return tmp_path


class Process:
    """Stands in for the process that compiles."""

    pid = os.getpid()  # of one that lives

    def __init__(self):
        self.status = None

    def poll(self):
        return self.status


@pytest.fixture
def started(monkeypatch, installation):
    """The processes that were started instead of real ones, with their locks."""
    found = []

    def begin(lock):
        found.append((Process(), lock))
        return found[-1][0]

    monkeypatch.setattr(first_use, "_begin", begin)
    return found


@pytest.mark.parametrize("name", warm.WORK)
def test_all_of_it_runs(name):
    warm.WORK[name](np.float32)


def test_it_says_how_long_each_took_and_leaves_a_mark(installation, monkeypatch, capsys):
    done = []
    monkeypatch.setattr(warm, "WORK", {"one": done.append, "other": done.append})
    monkeypatch.setattr("tinyattn.kernels.machine.compile.compiled_files", lambda: {"here": []})
    assert not first_use.is_marked()
    assert main(["warm"]) == 0 and first_use.is_marked()
    assert done == [*warm.DTYPES, *warm.DTYPES]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["one", "other", "all"]
    assert main(["warm", "--quiet"]) == 0 and capsys.readouterr().out == ""


def test_it_does_not_claim_that_a_kernel_is_kept(installation, monkeypatch, capsys):
    monkeypatch.setattr(warm, "WORK", {})
    monkeypatch.setattr("tinyattn.kernels.machine.compile.compiled_files", dict)
    assert main(["warm"]) == 0 and not first_use.is_marked()
    assert "each run compiles them again. Set NUMBA_CACHE_DIR" in capsys.readouterr().out


def test_numpy_computes_until_the_kernels_are_compiled(started, capsys):
    assert not backends.kernel_is_faster("softmax", np.float32, 1e9)
    assert len(started) == 1 and "in the background" in capsys.readouterr().err
    assert not first_use.ready() and len(started) == 1
    first_use.mark()  # what the process does last
    assert backends.kernel_is_faster("softmax", np.float32, 1e9)
    assert first_use.ready() and len(started) == 1 and capsys.readouterr().err == ""


def test_where_nothing_can_be_kept_a_kernel_is_compiled_at_its_first_use(started):
    assert not first_use.ready()
    started[0][0].status = 1  # it ended, and left no mark
    assert first_use.ready() and not first_use.is_marked()


def test_no_second_process_while_another_compiles(started, monkeypatch):
    assert first_use.start(say=False)
    monkeypatch.setattr(first_use, "_process", None)  # as in another program of the same user
    assert not first_use.start(say=False) and not first_use.ready() and len(started) == 1
    started[0][1].unlink()  # that one was stopped
    assert not first_use.ready() and len(started) == 2


def test_a_lock_that_was_left_behind_keeps_nobody_waiting(started, monkeypatch):
    lock = first_use._files("compiling")[0]
    lock.parent.mkdir(parents=True)
    lock.write_text(str(os.getpid()))
    old = time.time() - 2 * first_use.LONGEST
    os.utime(lock, (old, old))
    assert first_use.start(say=False)
    lock.write_text("999999999")  # no process has this number
    monkeypatch.setattr(first_use, "_process", None)
    assert first_use.start(say=False) and len(started) == 2


def test_the_setting_compiles_at_once(started, monkeypatch):
    monkeypatch.setenv("TINYATTN_COMPILE", "now")
    assert first_use.ready() and started == []


def test_other_versions_and_processors_have_marks_of_their_own(installation, monkeypatch):
    first_use.mark()
    assert first_use.is_marked()
    monkeypatch.setenv("NUMBA_CPU_NAME", "another")
    assert not first_use.is_marked()


def test_the_process_in_the_background_leaves_its_mark(installation, monkeypatch):
    """A real one, which has nothing to compile."""
    monkeypatch.setattr(warm, "WORK", {})
    monkeypatch.setattr("tinyattn.kernels.machine.compile.compiled_files", lambda: {"here": []})
    monkeypatch.setattr(os, "nice", lambda more: more, raising=False)
    lock = installation / "lock"
    lock.touch()
    assert warm.main(["--quiet", "--lock", str(lock)]) == 0
    assert first_use.is_marked() and not lock.exists()


def test_a_program_that_ends_first_says_nothing_of_the_process(tmp_path):
    """The process in the background goes on, and no ResourceWarning is printed."""
    program = (
        "import subprocess, sys\n"
        "from tinyattn.kernels.machine import first_use\n"
        "wait = [sys.executable, '-c', 'import time; time.sleep(3)']\n"
        "first_use._begin = lambda lock: subprocess.Popen(wait)\n"
        "assert first_use.start(say=False)\n"
    )
    own = {"NUMBA_CACHE_DIR": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "always", "-c", program]
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
