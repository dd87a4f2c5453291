"""The arrays of kernels: one-dimensional, with the strides as separate numbers.

Numba compiles a function again for every type of array, such as a different number of axes, another
kind of strides, or read-only memory. Kernels therefore take one-dimensional arrays and compute the
positions themselves.
"""

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided


def ravel(x):
    """Return x as a contiguous, writeable array with one axis, copied only if necessary."""
    if x.flags.c_contiguous and x.flags.writeable:
        return x.reshape(-1)
    return np.require(x, None, ["C", "W"]).reshape(-1)


def strided_matrices(lead, *xs):
    """Return the memory of each x [..., rows, columns], and starts and strides of its matrices.

    The results are one-dimensional arrays, the indices [len(xs), matrices] where their matrices
    start, and the strides from row to row and from column to column. All leading axes are broadcast
    to `lead`, with strides of 0. The first three x must have contiguous rows. If they do not, or if
    a stride is negative, x is copied.
    """
    plan = _plan(lead, tuple([(x.shape, x.strides, x.itemsize, x.flags.writeable) for x in xs]))
    memory = []
    for x, (extent, copied) in zip(xs, plan[0], strict=True):
        x = np.require(x, None, ["C", "W"]) if copied else x
        memory.append(x.reshape(-1) if x.flags.c_contiguous else _flat_view(x, extent))
    return *memory, *plan[1:]


@lru_cache(256)
def _plan(lead, layouts):
    """Return what `strided_matrices` does for `layouts`, the shapes and strides of its arrays."""
    todo, all_strides = [], []
    for i, (shape, strides, size, writeable) in enumerate(layouts):
        contiguous = i > 2 or len(shape) < 2 or strides[-1] == size or shape[-1] <= 1
        # read-only arrays are a different type for Numba, which would compile all kernels again
        fits = contiguous and writeable and all(s >= 0 and s % size == 0 for s in strides)
        if not fits:
            strides = np.empty(shape, f"V{size}").strides
        steps = [s // size if n > 1 else 0 for s, n in zip(strides, shape, strict=True)]
        last = sum([(n - 1) * s for n, s in zip(shape, steps, strict=True)])
        todo.append((0 if 0 in shape else last + 1, not fits))
        all_strides.append((0,) * (len(lead) + 2 - len(shape)) + tuple(steps))
    starts = []
    for steps in all_strides:
        at = np.zeros(1, np.int64)
        for n, step in zip(lead, steps[:-2], strict=True):
            at = (at[:, None] + np.arange(n) * step).reshape(-1)
        starts.append(at)
    return todo, np.stack(starts), *(tuple([s[i] for s in all_strides]) for i in (-2, -1))


def _flat_view(x, extent):
    """Return the memory of an array with gaps, from its first number to its last, with one axis."""
    whole = x.base
    if type(whole) is np.ndarray and whole.flags.c_contiguous and whole.dtype == x.dtype:
        start = (_address(x) - _address(whole)) // x.itemsize
        return whole.reshape(-1)[start : start + extent]
    return as_strided(x, (extent,), (x.itemsize,))


def _address(x):
    return x.__array_interface__["data"][0]


def empty_like_heads(x, shape, parts=None):
    """Return an empty array of `shape` [..., T, D] that orders heads and tokens in memory like x.

    A projection returns [B, T, H·D], of which x [B, H, T, D] is a view, and the next projection
    needs the result as [B, T, H·D] again. With `parts`, the result has an array for each part,
    [parts, ...].
    """
    first = () if parts is None else (parts,)
    if x.ndim >= 3 and len(shape) >= 3 and x.shape[-3] > 1 and x.strides[-3] < x.strides[-2]:
        *lead, heads, rows, columns = shape
        return np.empty((*first, *lead, rows, heads, columns), x.dtype).swapaxes(-3, -2)
    return np.empty((*first, *shape), x.dtype)
