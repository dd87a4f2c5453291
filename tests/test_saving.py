"""Where `ta.save` writes: links, modes, interrupts and killed processes."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tinyattn as ta

posix = pytest.mark.skipif(
    os.name != "posix" or sys.platform == "wasi",
    reason="Windows and WebAssembly have other links, modes, locks and signals",
)
ONES = {"x": np.ones(2)}


@posix
def test_symbolic_links_stay_and_lead_to_the_new_file(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "weights"
    for target_exists in (False, True):
        link, second = tmp_path / f"link{target_exists}", tmp_path / f"second{target_exists}"
        link.symlink_to("folder/weights")
        second.symlink_to(link)
        assert target.exists() == target_exists
        ta.save(second, {"x": np.full(2, float(target_exists))})
        assert link.is_symlink() and second.is_symlink() and not target.is_symlink()
        assert ta.load(target)["x"][0] == target_exists
    assert os.listdir(tmp_path / "folder") == ["weights"]


@posix
def test_an_older_file_keeps_its_mode(tmp_path):
    path = tmp_path / "a"
    ta.save(path, ONES)
    by_default = stat.S_IMODE(path.stat().st_mode)
    (tmp_path / "other").touch()
    assert by_default == stat.S_IMODE((tmp_path / "other").stat().st_mode)
    for mode in (0o600, 0o640, 0o755):
        path.chmod(mode)
        ta.save(path, ONES)
        assert stat.S_IMODE(path.stat().st_mode) == mode


KILLED_WHILE_SAVING = """
    import os, sys, time, numpy as np, tinyattn as ta
    def never_ends(fd):
        print("writing", flush=True)
        time.sleep(60)
    os.fsync = never_ends
    ta.save(sys.argv[1], {"x": np.zeros(1000)})
"""


@posix
def test_a_process_killed_while_it_saves_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    ta.save(path, {"x": np.full(2, 5.0)})
    code = [sys.executable, "-c", textwrap.dedent(KILLED_WHILE_SAVING), path]
    process = subprocess.Popen(code, stdout=subprocess.PIPE)
    process.stdout.readline()
    assert ta.load(path)["x"][0] == 5  # while it writes
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert ta.load(path)["x"][0] == 5
    ta.save(path, ONES)
    assert ta.load(path)["x"][0] == 1
    (beside,) = [name for name in os.listdir(tmp_path) if name != "a"]
    assert beside.startswith("a.") and beside.endswith(".part")


def test_many_threads_save_to_one_place(tmp_path):
    def save(i):
        for _ in range(20):
            ta.save(tmp_path / "a", {"x": np.full(100, i)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert os.listdir(tmp_path) == ["a"]
    assert len(set(ta.load(tmp_path / "a")["x"])) == 1


@posix
# between open() and `with` nobody but Python closes a file
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_moment_leaves_a_whole_file_and_nothing_beside(tmp_path):
    """Interrupts that arrive after another time each; the old file or the new one is there."""
    path, interrupted = tmp_path / "a", 0
    ta.save(path, {"x": np.full(10, -1)})
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for i in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + i * 5e-6)
                ta.save(path, {"x": np.full(10, i)})
                time.sleep(0.01)
            except KeyboardInterrupt:
                interrupted += 1
            assert len(set(ta.load(path)["x"])) == 1
    finally:
        signal.signal(signal.SIGALRM, before)
    ta.save(path, ONES)
    assert os.listdir(tmp_path) == ["a"]
    assert interrupted > 100
