"""Fast loops on plain arrays, compiled by Numba. No `Tensor` here.

Each file has the reference first, the formula as plain loops, and then the fast version of the
same function. Numba is imported with the first kernel, not with tinyattn; without Numba the loops
run as ordinary Python.
"""

import zlib
from pathlib import Path

try:
    import numba
except ImportError:
    numba = None

FASTMATH = {"fastmath": {"contract"}}  # a·b + c in one step; infinities and nan keep their meaning


def jit(f, **options):
    """Compile f with Numba: it lets other Python threads run meanwhile and is kept on disk.

    The name on disk carries a checksum of all kernel sources, because Numba looks
    only at the file of f itself and would miss a change in a kernel that f calls.
    """
    if numba is None:
        return f
    f.__qualname__ += f"_{_checksum:08x}"
    options = {"nogil": True, "error_model": "numpy", **FASTMATH, **options}
    try:
        return numba.njit(f, cache=True, **options)
    except RuntimeError:  # no folder to write to: compile anew in each process
        return numba.njit(f, **options)


def helper(f):
    """`jit` for a function that only other kernels call: it is quicker to compile."""
    return jit(f, no_cpython_wrapper=True, no_cfunc_wrapper=True)


_checksum = 0
for _source in sorted(Path(__file__).parent.glob("*.py")):
    _checksum = zlib.crc32(_source.read_bytes(), _checksum)
