"""Selecting elements by an index, and the reverse, adding elements at the positions of an index.

`getitem` and `scatter_add` are each other's derivative rule. If an element occurs in an index
several times, it receives the sum of all incoming values and not only the last value.
"""

import math

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import to_array
from tinyattn.engine.dispatch import implements, implements_method
from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels import fast
from tinyattn.ops.backends import operation
from tinyattn.ops.marks import of_whole_numbers


@primitive
def _getitem(x, index):
    return _gather(x, index)


gather = _getitem  # x[index] without checking or copying the index, which must be valid


@implements_method("getitem")
def getitem(x, index):
    """Return y = x[index] for any index that NumPy accepts: slices, integers, arrays, masks, …"""
    return _getitem(x, plain_index(index))


_getitem.defvjp(
    lambda g, y, x, index: (_scatter_add if type(g) is np.ndarray else _scatter)(g, index, x.shape)
)


@implements_method("setitem")
def setitem(data, index, value):
    """Set data[index] = value in the plain array `data` of a Tensor, without recording it."""
    data[plain_index(index)] = to_array(value)


def plain_index(index):
    """Return an index with copies of its arrays, so that later changes of these have no effect.

    Tensors and lists in the index become arrays.
    """
    if isinstance(index, tuple):
        return tuple([i if type(i) in PLAIN else plain_index(i) for i in index])
    if isinstance(index, list):
        return np.asarray(to_array(index)) if index else np.zeros(0, dtype=int)
    index = to_array(index)
    return index.copy() if isinstance(index, np.ndarray) else index


PLAIN = {slice, int, type(None), type(...)}  # parts of an index that are immutable


def scatter_add(x, index, shape):
    """Return an array of `shape` that is zero except for x, which is added at the given index.

    If a position occurs several times in the index, it receives the sum of the numbers in x.
    """
    return _scatter(x, plain_index(index), shape)


@of_whole_numbers
@primitive
def _scatter(x, index, shape):
    return _scatter_add(x, index, shape)


_scatter.operation.name = "scatter_add"
_scatter.defvjp(
    lambda g, y, x, index, shape: _gather(g, index) if type(g) is np.ndarray else g[index]
)


# ---------------------------------------------------------------- of plain arrays


def _gather(x, index):
    """Return x[index], by `take_rows` if the index consists of row numbers."""
    return take_rows(x, index) if _names_rows(index) and x.ndim > 1 else x[index]


def _scatter_add(x, index, shape):
    """Return `scatter_add` for plain arrays and an index without Tensors and lists."""
    y = np.zeros(shape, x.dtype)
    if _names_rows(index):
        _add_to_rows(y, index, x)
    elif _is_basic(index):
        y[index] = x  # a slice selects each element once
    else:
        np.add.at(y, index, x)
    return y


def _is_basic(index):
    parts = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(i, np.ndarray) for i in parts)


def _names_rows(index):
    return isinstance(index, np.ndarray) and index.dtype.kind in "iu" and index.ndim > 0


def _row_numbers(index, n):
    """Return row indices as an array of whole numbers from 0 to n - 1 (-1 is the last row)."""
    # n itself may not fit into the dtype of the index
    ids = index.reshape(-1).astype(np.intp, copy=False)
    if ids.size == 0:
        return ids
    least, most = ids.min(), ids.max()
    if least < -n or most >= n:
        wrong = least if least < -n else most
        raise IndexError(f"index {wrong} is out of bounds for axis 0 with size {n}")
    return np.where(ids < 0, ids + n, ids) if least < 0 else ids


@operation("take_rows", work=lambda x, index: index.size * math.prod(x.shape[1:]))
def take_rows(x, index):
    """Return the rows x[index], where the index is an array of whole numbers."""
    return x[index]


def _take_rows_kernel(x, index):
    ids = _row_numbers(index, len(x))
    y = empty_pooled((*index.shape, *x.shape[1:]), x.dtype)
    fast.gather_scatter.take_rows(y, x, ids)
    return y


take_rows.implement("kernel", _take_rows_kernel)


def _add_to_rows(y, ids, rows):
    """Add each row to the row of y with its id, also if ids repeat. y must be zeros before."""
    if rows.size == 0:
        return
    n_features = int(np.prod(y.shape[1:]))
    ids, rows = _row_numbers(ids, len(y)), rows.reshape(-1, n_features)  # [E], [E, F]
    if n_features == 1 and y.dtype.kind == "f":  # bincount sums in float64
        y.reshape(-1)[:] = np.bincount(ids, weights=rows[:, 0], minlength=len(y))
    else:
        add_rows(rows, ids, y)


@operation("add_rows", work=lambda rows, ids, y: rows.size if y.dtype == rows.dtype else 0)
def add_rows(rows, ids, y):
    """Add rows [E, F] to the rows `ids` [E] of y, which must be zeros before.

    The ids are sorted, and the rows of equal ids are summed, because np.add.at is slower.
    """
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    y.reshape(len(y), -1)[ids[starts]] = np.add.reduceat(rows[order], starts, axis=0)


add_rows.implement("kernel", lambda rows, ids, y: fast.gather_scatter.add_rows(y, rows, ids))

# ---------------------------------------------------------------- NumPy's functions


@implements(np.take)
def take(x, indices, axis=None):
    """Return the slices of x along `axis` at the given indices.

    If `axis` is None, elements are returned, and the indices count them in reading order.
    """
    if axis is None:
        return getitem(np.reshape(x, -1), indices)
    axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    return getitem(x, (slice(None),) * axis + (indices,))


@implements(np.take_along_axis)
def take_along_axis(x, indices, axis=-1):
    """Return the elements of x at `indices` along `axis`, for example at an argsort.

        y[…, i, …] = x[…, indices[…, i, …], …]

    If `axis` is None, the indices count all elements of x in reading order.
    """
    indices = to_array(indices)
    if axis is None:
        return getitem(np.reshape(x, -1), indices)
    axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    # Each other axis gets a running index, which is 0 on an axis of length 1 in x.
    index = list(
        np.ogrid[
            tuple(
                slice(n)
                for n in np.broadcast_shapes(
                    tuple(1 if i == axis else n for i, n in enumerate(indices.shape)),
                    tuple(1 if i == axis else n for i, n in enumerate(x.shape)),
                )
            )
        ]
    )
    index = [np.where(x.shape[i] == 1, 0, o) for i, o in enumerate(index)]
    index[axis] = indices
    return getitem(x, tuple(index))


@implements(np.sort)
def sort(x, axis=-1, *, kind="stable"):
    """Return x in ascending order along `axis`. The gradient moves back to the original order.

    If `axis` is None, all elements are sorted as one axis. `kind` is the algorithm, as in np.sort.
    """
    if axis is None:
        x, axis = np.reshape(x, -1), 0
    return take_along_axis(x, np.argsort(x.data, axis=axis, kind=kind), axis)
