"""Loops on plain arrays (not on `Tensor`), compiled by Numba. Begin with README.md.

The files of this folder are written for reading. Each contains one operation, with its formula and
its gradient as plain loops. `fast/` has the same operations with vector instructions and threads,
which are built from the parts in `machine/`. Importing this package does not import Numba, because
only the first kernel needs it. Without Numba, the loops run as ordinary Python.
"""

from importlib import import_module
from importlib.util import find_spec
from numbers import Integral

_COMPILING = ["helper", "helper_no_fma", "jit", "jit_no_fma", "missing", "numba"]


def __getattr__(name):
    """Return a file of this folder or a name of compile.py, imported (with Numba) on first use."""
    if name in _COMPILING:
        return getattr(import_module("tinyattn.kernels.machine.compile"), name)
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_threads(n: int) -> int:
    """Run kernels on n threads from now on, and return the previous number of threads.

    Args:
        n   number of threads. Before the first call, it is TINYATTN_THREADS in the environment or,
            by default, the number of processors

    Raises:
        ValueError: n is not a whole number >= 1
    """
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"set_threads: n must be a whole number >= 1, got n={n!r}")
    return import_module("tinyattn.kernels.machine.thread_pool").set_threads(int(n))
