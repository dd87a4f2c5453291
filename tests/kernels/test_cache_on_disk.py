"""Machine code that cannot be kept on the disk, or is damaged there: kernels run all the same."""

import errno
import os
import subprocess
import sys
import textwrap

import pytest

from tinyattn.kernels.machine import compile_notice

pytest.importorskip("numba")

ADVICE = "Set NUMBA_CACHE_DIR to a folder that you may write to, on a disk with free space."
PROGRAM = """
import errno, os, sys
import numpy as np
from numba.core import caching
from tinyattn.kernels.machine import compile_notice
{first}
from tinyattn.kernels.fast.rowwise import softmax, softmax_rows
{then}
for dtype in (np.float32, np.float64):
    assert (softmax(np.ones((2, 4), dtype), False) == 0.25).all()
print(sum(softmax_rows.stats.cache_hits.values()), softmax_rows.stats.cache_path)
"""
# Numba writes whatever it keeps with these two
FULL = """
def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
{}
"""
DATA_NOT_SAVED = FULL.format("caching.IndexDataCacheFile._save_data = full")
NOT_RENAMED = FULL.format("os.replace = full")
SLOW = "compile_notice.AFTER = 0.001"
NOT_IN_THE_PACKAGE = "caching.InTreeCacheLocator.from_function = lambda *_: None"
NOWHERE = "caching.CacheImpl._locator_classes = []"


def run(first="", then="", **settings):
    """(kernels of two dtypes that were read from the disk, their folder, lines on stderr)."""
    code = PROGRAM.format(first=textwrap.dedent(first), then=textwrap.dedent(then))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TINYATTN_CANARY": "off", **settings},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    hits, folder = done.stdout.split()
    return int(hits), folder, done.stderr.splitlines()


def files(folder, ending):
    """The files of the kernel in a folder of Numba's cache."""
    return sorted(folder.rglob(f"rowwise.softmax_rows_*{ending}"))


@pytest.mark.parametrize("change", [DATA_NOT_SAVED, NOT_RENAMED], ids=["data", "rename"])
def test_a_kernel_that_cannot_be_kept_runs_with_one_line(change, tmp_path):
    settings = {"NUMBA_CACHE_DIR": str(tmp_path)}
    hits, folder, (line,) = run("compile_notice.AFTER = 1000", change, **settings)
    assert hits == 0 and line.startswith("tinyattn: the compiled kernel ")  # one it calls, too
    assert line.endswith(f"({os.strerror(errno.ENOSPC)}), so each run compiles it again. {ADVICE}")
    assert f" cannot be kept in {tmp_path}" in line and folder.startswith(str(tmp_path))
    assert not files(tmp_path, "")  # no list of files that do not exist
    assert run("compile_notice.AFTER = 1000", **settings)[::2] == (0, [])  # there is room again
    assert run("compile_notice.AFTER = 1000", **settings)[::2] == (2, [])


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", ["half", "nothing", "zeros"])
def test_a_damaged_file_is_written_again(ending, left, kept):
    folder, settings = kept
    for path in files(folder, ending):
        found = path.read_bytes()
        damaged = {"half": found[: len(found) // 2], "nothing": b"", "zeros": bytes(len(found))}
        path.write_bytes(damaged[left])
    hits, _, lines = run("compile_notice.AFTER = 1000", **settings)
    assert hits < 2 and lines == []
    assert run("compile_notice.AFTER = 1000", **settings)[::2] == (2, [])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with two compiled kernels, and the settings of a Python that uses it."""
    folder = tmp_path_factory.mktemp("cache")
    settings = {"NUMBA_CACHE_DIR": str(folder)}
    assert run("compile_notice.AFTER = 1000", **settings)[::2] == (0, [])
    assert len(files(folder, "nbi")) == 1 and len(files(folder, "nbc")) == 2
    return folder, settings


def test_a_package_that_is_read_only_keeps_kernels_with_the_user(tmp_path):
    """Where NUMBA_CACHE_DIR is not set, Numba's own second choice is the user's folder."""
    settings = dict.fromkeys(("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"), str(tmp_path))
    settings["NUMBA_CACHE_DIR"] = ""
    hits, folder, (line,) = run(f"{NOT_IN_THE_PACKAGE}\n{SLOW}", **settings)
    assert hits == 0 and folder.startswith(str(tmp_path)) and len(files(tmp_path, "nbc")) == 2
    assert line == compile_notice.TEXT.format("rowwise.softmax_rows")
    assert run(f"{NOT_IN_THE_PACKAGE}\n{SLOW}", **settings)[::2] == (2, [])


def test_without_any_folder_the_line_promises_nothing(tmp_path):
    hits, folder, (line,) = run(f"{NOWHERE}\n{SLOW}", NUMBA_CACHE_DIR=str(tmp_path))
    assert (hits, folder) == (0, "None")
    assert line == (
        "tinyattn: the compiled kernel rowwise.softmax_rows cannot be kept on the disk (no folder "
        f"can be written to), so each run compiles it again. {ADVICE}"
    )


def test_on_a_full_disk_the_line_promises_nothing(tmp_path):
    change = FULL.format("compile_notice.tempfile.TemporaryFile = os.replace = full")
    hits, folder, (line,) = run(SLOW, change, NUMBA_CACHE_DIR=str(tmp_path))
    assert hits == 0 and f"cannot be kept in {folder} ({os.strerror(errno.ENOSPC)})" in line
