"""How long a program waits before it can begin: import, the first kernel, compiling again.

    python -m tests.benchmarks.startup [rounds]

Each time is measured in a separate process and contains only the step in question. The numbers are
seconds on one machine, not ratios, and so are the goals.
"""

import os
import statistics
import subprocess
import sys
import tempfile

from tests.benchmarks.measure import interleave, use_threads, versions

use_threads(2)

import numpy as np  # noqa: E402

import tinyattn as ta  # noqa: E402
from tinyattn.kernels.machine import first_use  # noqa: E402

ATTENTION = """
import sys, time
import numpy as np
import tinyattn as ta, tinyattn.functional as F
from tinyattn import kernels  # with Numba, which everybody who compiles has to import
q, k, v = (ta.tensor(np.ones((1, 2, 64, 16), np.float32), requires_grad=True) for _ in range(3))
start = time.perf_counter()
y = F.scaled_dot_product_attention(q, k, v, causal=True, impl="kernel")
forward = time.perf_counter() - start
y.backward(np.ones(y.shape, np.float32))
print(forward, time.perf_counter() - start)
"""
FIRST_CELL = """
import time
start = time.perf_counter()
import numpy as np
import tinyattn as ta, tinyattn.functional as F
q, k, v = (ta.tensor(np.ones((4, 4, 128, 16), np.float32), requires_grad=True) for _ in range(3))
F.scaled_dot_product_attention(q, k, v, causal=True).sum().backward()
print(time.perf_counter() - start)
from tinyattn.kernels.machine import first_use
first_use._process.kill()
first_use._process.wait()
"""
WITHOUT_SCIPY = """
import sys
sys.modules["scipy"] = None
"""


def run(code, **environment):
    """Return the output of a new process."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, **environment}
    )
    return done.stdout


def main(rounds=9):
    imports = interleave(
        {m: lambda m=m: run(f"import {m}") for m in ("numpy", "tinyattn")}, rounds, warm_up=1
    )
    over = [t - n for t, n in zip(imports["tinyattn"], imports["numpy"], strict=True)]
    run(ATTENTION)
    warm = [float(run(ATTENTION).split()[0]) for _ in range(rounds)]
    alone = [float(run(WITHOUT_SCIPY + ATTENTION).split()[0]) for _ in range(rounds)]
    cold = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(float(run(ATTENTION, NUMBA_CACHE_DIR=folder).split()[1]))
    first = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            new = {"HOME": folder, "NUMBA_CACHE_DIR": folder, first_use.SETTING: "background"}
            first.append(float(run(FIRST_CELL, **new)))
    print("| step | seconds: median (minimum) | goal: fewer seconds than |")
    print("|---|---|---|")
    for step, seconds, goal in (
        ("`import tinyattn`, in addition to `import numpy`", over, 0.1),
        ("first forward pass of attention, with stored machine code", warm, 0.25),
        ("the same without SciPy, which Numba imports if it is installed", alone, 0.25),
        ("forward and backward pass of attention, compiled again", cold, 3),
        ("first cell of a new installation: import, attention, backward", first, 2),
    ):
        middle = statistics.median(seconds)
        missed = "" if middle < goal else " (missed)"
        print(f"| {step} | **{middle:.2f}** ({min(seconds):.2f}) | {goal}{missed} |")
    print("\n" + versions(ta, np))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
