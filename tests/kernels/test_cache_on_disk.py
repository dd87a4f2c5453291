"""Machine code that cannot be kept on the disk, or is damaged there: kernels run all the same.

One test starts a new Python for each run; the others load a small kernel afresh instead.
"""

import errno
import os
import subprocess
import sys

import pytest

from tests.kernels import small_kernel
from tests.kernels.small_kernel import files
from tinyattn.kernels.machine import compile_notice

numba = pytest.importorskip("numba")

from numba.core import caching  # noqa: E402

ADVICE = "Set NUMBA_CACHE_DIR to a folder that you may write to, on a disk with free space."
PROGRAM = """
import errno, os
import numpy as np
from numba.core import caching
from tinyattn.kernels.machine import compile_notice
compile_notice.AFTER = 1000
from tinyattn.kernels.fast.rowwise import softmax, softmax_rows
{then}
assert (softmax(np.ones((2, 4), np.float32), False) == 0.25).all()
print(sum(softmax_rows.stats.cache_hits.values()), softmax_rows.stats.cache_path)
"""
DATA_NOT_SAVED = """
def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
caching.IndexDataCacheFile._save_data = full
"""


def full(*_, **__):
    """What writing does on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def in_a_new_python(folder, then=""):
    """(kernels that were read from the disk, their folder, lines on stderr)."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(then=then)],
        env={**os.environ, "TINYATTN_CANARY": "off", "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    hits, folder = done.stdout.split()
    return int(hits), folder, done.stderr.splitlines()


def test_a_kernel_of_the_package_that_cannot_be_kept_runs_with_one_line(tmp_path):
    hits, folder, (line,) = in_a_new_python(tmp_path, DATA_NOT_SAVED)
    assert hits == 0 and line.startswith("tinyattn: the compiled kernel ")  # one it calls, too
    assert line.endswith(f"({os.strerror(errno.ENOSPC)}), so each run compiles it again. {ADVICE}")
    assert f" cannot be kept in {tmp_path}" in line and folder.startswith(str(tmp_path))
    assert not list(tmp_path.rglob("rowwise.softmax_rows_*"))  # no list of missing files
    assert in_a_new_python(tmp_path)[::2] == (0, [])  # there is room again
    assert in_a_new_python(tmp_path)[::2] == (1, [])


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Load the small kernel and run it: (hits on the disk, its folder, lines on stderr).

    Each run is as in a new process: all lines may come again. Its machine code is kept in
    `tmp_path / "kept"`.
    """
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(compile_notice, "AFTER", 1000)

    def once(loaded=lambda: None):
        monkeypatch.setattr(compile_notice, "_said", set())
        capfd.readouterr()
        hits, folder = small_kernel.run(tmp_path, loaded=loaded)
        return hits, folder, capfd.readouterr().err.splitlines()

    return once


# Numba writes whatever it keeps with these two
@pytest.mark.parametrize(
    ("owner", "name"), [(caching.IndexDataCacheFile, "_save_data"), (os, "replace")]
)
def test_a_kernel_that_cannot_be_kept_runs_with_one_line(owner, name, run, tmp_path):
    with pytest.MonkeyPatch.context() as disk:
        hits, folder, (line,) = run(lambda: disk.setattr(owner, name, full))
    assert hits == 0 and folder.startswith(str(tmp_path / "kept"))
    assert line == (
        f"tinyattn: the compiled kernel {small_kernel.NAME} cannot be kept in {folder} "
        f"({os.strerror(errno.ENOSPC)}), so each run compiles it again. {ADVICE}"
    )
    assert not files(tmp_path / "kept")  # no list of files that do not exist
    assert run()[::2] == (0, [])  # there is room again
    assert run()[::2] == (2, [])


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", ["half", "nothing", "zeros"])
def test_a_damaged_file_is_written_again(ending, left, run, tmp_path):
    assert run()[::2] == (0, [])
    assert len(files(tmp_path, "nbi")) == 1 and len(files(tmp_path, "nbc")) == 2
    for path in files(tmp_path, ending):
        found = path.read_bytes()
        damaged = {"half": found[: len(found) // 2], "nothing": b"", "zeros": bytes(len(found))}
        path.write_bytes(damaged[left])
    hits, _, lines = run()
    assert hits < 2 and lines == []
    assert run()[::2] == (2, [])


def test_a_package_that_is_read_only_keeps_kernels_with_the_user(run, tmp_path, monkeypatch):
    """Where NUMBA_CACHE_DIR is not set, Numba's own second choice is the user's folder."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    for name in ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "user"))
    monkeypatch.setattr(caching.InTreeCacheLocator, "from_function", lambda *_: None)
    monkeypatch.setattr(compile_notice, "AFTER", 0)
    hits, folder, (line,) = run()
    assert hits == 0 and folder.startswith(str(tmp_path / "user"))
    assert len(files(tmp_path / "user", "nbc")) == 2
    assert line == compile_notice.TEXT.format(small_kernel.NAME)
    assert run()[::2] == (2, [])


def test_without_any_folder_the_line_promises_nothing(run, monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(compile_notice, "AFTER", 0)
    hits, folder, (line,) = run()
    assert (hits, folder) == (0, None)
    assert line == (
        f"tinyattn: the compiled kernel {small_kernel.NAME} cannot be kept on the disk (no folder "
        f"can be written to), so each run compiles it again. {ADVICE}"
    )


def test_on_a_full_disk_the_line_promises_nothing(run, monkeypatch):
    def fill():
        monkeypatch.setattr(compile_notice.tempfile, "TemporaryFile", full)
        monkeypatch.setattr(os, "replace", full)

    monkeypatch.setattr(compile_notice, "AFTER", 0)
    hits, folder, (line,) = run(fill)
    assert hits == 0 and f"cannot be kept in {folder} ({os.strerror(errno.ENOSPC)})" in line
