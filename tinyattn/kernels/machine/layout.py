"""How arrays lie in memory, as kernels want to see them: as one row of numbers.

A compiled function is compiled anew for every kind of array: other axes, other steps, read-only.
So kernels take rows of memory and compute the places themselves.
"""

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided


def row_of(x):
    """The numbers of x as one contiguous row that may be written to: no copy if x is so."""
    if x.flags.c_contiguous and x.flags.writeable:
        return x.reshape(-1)
    return np.require(x, None, ["C", "W"]).reshape(-1)


def matrices(lead, *xs):
    """The memory of each x [..., rows, columns], where matrices start, steps of rows and columns.

    The first three must have rows in one piece. Where that is not so, or the steps through memory
    are not regular, x is copied. Steps are 0 along axes that are broadcast.
    """
    plan = _plan(lead, tuple([(x.shape, x.strides, x.itemsize, x.flags.writeable) for x in xs]))
    memory = []
    for x, (extent, copied) in zip(xs, plan[0], strict=True):
        x = np.require(x, None, ["C", "W"]) if copied else x
        memory.append(x.reshape(-1) if x.flags.c_contiguous else _behind(x, extent))
    return *memory, *plan[1:]


@lru_cache(256)
def _plan(lead, layouts):
    """What `matrices` does for these shapes and strides."""
    todo, all_steps = [], []
    for i, (shape, strides, size, writeable) in enumerate(layouts):
        in_one_piece = i > 2 or len(shape) < 2 or strides[-1] == size or shape[-1] <= 1
        # read-only arrays are another type for Numba: it would compile all kernels once more
        fits = in_one_piece and writeable and all(s >= 0 and s % size == 0 for s in strides)
        if not fits:
            strides = np.empty(shape, f"V{size}").strides
        steps = [s // size if n > 1 else 0 for s, n in zip(strides, shape, strict=True)]
        last = sum([(n - 1) * s for n, s in zip(shape, steps, strict=True)])
        todo.append((0 if 0 in shape else last + 1, not fits))
        all_steps.append((0,) * (len(lead) + 2 - len(shape)) + tuple(steps))
    starts = []
    for steps in all_steps:
        at = np.zeros(1, np.int64)
        for n, step in zip(lead, steps[:-2], strict=True):
            at = (at[:, None] + np.arange(n) * step).reshape(-1)
        starts.append(at)
    return todo, np.stack(starts), *(tuple([s[i] for s in all_steps]) for i in (-2, -1))


def _behind(x, extent):
    """The memory of an array with gaps, from its first number to its last, as one row."""
    whole = x.base
    if type(whole) is np.ndarray and whole.flags.c_contiguous and whole.dtype == x.dtype:
        start = (_address(x) - _address(whole)) // x.itemsize
        return whole.reshape(-1)[start : start + extent]
    return as_strided(x, (extent,), (x.itemsize,))


def _address(x):
    return x.__array_interface__["data"][0]


def like(x, shape, parts=None):
    """Room for the result, with the heads inside of the tokens in memory if x has them so.

    A projection gives [B, T, H·D], of which x [B, H, T, D] is a view; the next projection wants
    to see the result in that form again.
    """
    first = () if parts is None else (parts,)
    if x.ndim >= 3 and len(shape) >= 3 and x.shape[-3] > 1 and x.strides[-3] < x.strides[-2]:
        *lead, heads, rows, columns = shape
        return np.empty((*first, *lead, rows, heads, columns), x.dtype).swapaxes(-3, -2)
    return np.empty((*first, *shape), x.dtype)
