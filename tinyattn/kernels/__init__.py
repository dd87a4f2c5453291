"""Loops on plain arrays, compiled by Numba. No `Tensor` here.

The files of this folder are for reading: one operation each, its formula and its gradient as plain
loops. `fast/` has the same operations on vectors and threads, made of what is in `machine/`. Numba
is imported with the first kernel, not with tinyattn; without Numba the loops run as ordinary
Python.
"""

import zlib
from functools import partial
from pathlib import Path

try:
    import numba
except ImportError:
    numba = None

OPTIONS = {
    "nogil": True,
    "error_model": "numpy",  # x / 0 is infinite, not an exception
    "fastmath": {"contract"},  # a·b + c in one step; infinities and nan keep their meaning
    "no_cfunc_wrapper": True,  # nobody calls kernels from C
}


def jit(f, **options):
    """Compile f with Numba, for Python to call: other Python threads run meanwhile.

    The machine code is kept on disk. Its name there carries a checksum of all kernel sources,
    because Numba looks only at the file of f itself and would miss a change in what f calls.
    """
    if numba is None:
        return f
    f.__qualname__ += f"_{_checksum:08x}"
    options = {**OPTIONS, **options}
    try:
        return numba.njit(f, cache=True, **options)
    except RuntimeError:  # no folder to write to: compile anew in each process
        return numba.njit(f, **options)


def helper(f, **options):
    """`jit` for a function that only other kernels call; a call from Python would crash.

    Without the code that unpacks Python's objects it is compiled in a fifth less time.
    """
    return jit(f, no_cpython_wrapper=True, **options)


# never a·b + c in one step: loops that add up the same numbers in the same order round alike
exact, exact_helper = partial(jit, fastmath=False), partial(helper, fastmath=False)

_checksum = 0
for _source in sorted(Path(__file__).parent.rglob("*.py")):
    _checksum = zlib.crc32(_source.read_bytes(), _checksum)
