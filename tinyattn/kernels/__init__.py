"""Loops on plain arrays, compiled by Numba. No `Tensor` here. README.md says what to read first.

The files of this folder are for reading: one operation each, its formula and its gradient as plain
loops. `fast/` has the same operations on vectors and threads, made of what is in `machine/`. Numba
is imported with the first kernel, not with this package; without Numba the loops run as ordinary
Python.
"""

from importlib import import_module
from importlib.util import find_spec

_COMPILING = ["helper", "helper_no_fma", "jit", "jit_no_fma", "missing", "numba"]


def __getattr__(name):
    """What compiles kernels, or a file of loops: imported at its first use, and Numba with it."""
    if name in _COMPILING:
        return getattr(import_module("tinyattn.kernels.machine.compile"), name)
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_threads(n: int) -> int:
    """Run kernels on n threads from now on; returns the number before."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"set_threads: n must be a whole number >= 1, got n={n!r}")
    return import_module("tinyattn.kernels.machine.thread_pool").set_threads(n)
