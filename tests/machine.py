"""What tests of compiled kernels share: other numbers of threads, and a fresh Python."""

import contextlib
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

from tinyattn.kernels import numba
from tinyattn.kernels.machine import thread_pool


@contextlib.contextmanager
def kernels_on(n):
    """Kernels run on n threads meanwhile."""
    before = thread_pool.set_threads(n)
    try:
        yield
    finally:
        thread_pool.set_threads(before)


def same_bits_on_any_threads(run):
    """run() returns arrays: the same to the bit on 1, 2, 3 and 7 threads, and called by several."""

    def bits(_=None):
        return [a.tobytes() for a in run()]

    found = []
    for n in (1, 2, 3, 7):
        with kernels_on(n):
            found.append(bits())
    with kernels_on(2), ThreadPoolExecutor(4) as pool:
        found += pool.map(bits, range(8))
    assert all(other == found[0] for other in found)


def from_python(helper):
    """A kernel that is compiled for other kernels only, so that Python may call it."""
    return helper if numba is None else numba.njit(lambda *arguments: helper(*arguments))


def fresh_python(code, **environment):
    """Run code in a Python of its own, which must end well; the words that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=300,  # far more than it takes on a busy machine
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def processor_without(*missing):
    """Settings of a Python that compiles for this processor without some of its instructions.

    missing: beginnings of the names of features, such as "avx512"; none: this processor as it is.
    """
    if not missing:
        return {}
    target = numba.core.registry.cpu_target.target_context.codegen().magic_tuple()[2]
    kept = [f for f in target.split(",") if not f.lstrip("+-").startswith(missing)]
    return {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ",".join(kept)}
