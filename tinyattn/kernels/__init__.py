"""Fast loops on plain arrays, compiled by Numba; no `Tensor` here.

README.md says what to read first. The files of this folder are the formulas as plain loops, `fast/`
has the same on vectors and threads, `machine/` what vectors and threads are made of. Numba is
imported with the first kernel, not with tinyattn; without Numba all of it runs as plain Python.
"""

from tinyattn.kernels.machine.compile import helper, jit, numba

__all__ = ["helper", "jit", "numba"]
