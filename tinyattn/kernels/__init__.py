"""Loops on plain arrays, compiled by Numba. No `Tensor` here. README.md says what to read first.

The files of this folder are for reading: one operation each, its formula and its gradient as plain
loops. `fast/` has the same operations on vectors and threads, made of what is in `machine/`. Numba
is imported with the first kernel, not with tinyattn; without Numba the loops run as ordinary
Python.
"""

from tinyattn.kernels.machine.compile import helper, helper_no_fma, jit, jit_no_fma, missing, numba

__all__ = ["helper", "helper_no_fma", "jit", "jit_no_fma", "missing", "numba"]
