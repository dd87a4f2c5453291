"""A kernel that compiles for long says so, once, on one line; one from the disk says nothing."""

import os
import subprocess
import sys

import pytest

from tinyattn.kernels.machine import compile_notice

pytest.importorskip("numba")
PROGRAM = """
import numpy as np
from tinyattn.kernels.machine import compile_notice
compile_notice.AFTER = 0.01
from tinyattn.kernels.fast.rowwise import softmax
{more}
softmax(np.ones((1, 3), np.float32), False)
softmax(np.ones((1, 3)), False)
"""
OTHERS = """
import time, numba
@numba.njit
def slow(x):
    return x + 1
slow(1)
time.sleep(0.05)
import sys; print(len(sys.argv), file=sys.stderr)
"""


def lines(folder, more=""):
    """What the program says on its standard error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(more=more)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder), "TINYATTN_CANARY": "off"},
        check=True,
    )
    return done.stderr.splitlines()


def test_a_long_compilation_is_announced_once(tmp_path):
    (line,) = lines(tmp_path)
    assert line == compile_notice.TEXT.format("rowwise.softmax_rows")
    assert "tinyattn warm" in line
    assert lines(tmp_path) == []  # from the disk


def test_functions_of_others_are_not_announced(tmp_path):
    said = lines(tmp_path, OTHERS)
    assert said[0] == "1" and len(said) == 2  # after it only our own


def test_a_quick_compilation_is_silent(tmp_path):
    assert lines(tmp_path, "compile_notice.AFTER = 1000") == []
