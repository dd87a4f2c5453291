"""Operations that move elements without changing them. Their rules move the gradient back."""

import builtins
from itertools import accumulate, pairwise

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.dispatch import implements
from tinyattn.engine.ranges import is_number
from tinyattn.ops.elementwise import where
from tinyattn.ops.index import getitem, scatter_add
from tinyattn.ops.reduce import axes_of

# ---------------------------------------------------------------- shapes and orders


@implements(np.reshape)
@primitive
def reshape(x, shape):
    """Return the same elements in reading order in a new shape (-1 is the remaining length)."""
    return np.reshape(x, shape)


reshape.defvjp(lambda g, y, x, shape: np.reshape(g, x.shape))


@implements(np.ravel)
def ravel(x):
    """Return all elements in reading order as one axis."""
    return reshape(x, -1)


@implements(np.transpose, np.permute_dims)
@primitive
def transpose(x, axes=None):
    """Return x with its axes in the order `axes`, or in reverse order if this is None."""
    return np.transpose(x, axes)


transpose.defvjp(
    lambda g, y, x, axes=None: np.transpose(
        g, None if axes is None else np.argsort(axes_of(x, axes))
    )
)


@implements(np.swapaxes)
@primitive
def swapaxes(x, axis1, axis2):
    """Return x with two axes exchanged."""
    return np.swapaxes(x, axis1, axis2)


swapaxes.defvjp(lambda g, y, x, axis1, axis2: np.swapaxes(g, axis1, axis2))


@implements(np.moveaxis)
@primitive
def moveaxis(x, source, destination):
    """Return x with axes moved to new positions. The other axes keep their order."""
    return np.moveaxis(x, source, destination)


moveaxis.defvjp(lambda g, y, x, source, destination: np.moveaxis(g, destination, source))


@implements(np.expand_dims)
@primitive
def expand_dims(x, axis):
    """Return x with a new axis of length 1 at the position `axis`."""
    return np.expand_dims(x, axis)


expand_dims.defvjp(lambda g, y, x, axis: np.reshape(g, x.shape))


@implements(np.squeeze)
@primitive
def squeeze(x, axis=None):
    """Return x without axes of length 1, either all of them or the given axes."""
    return np.squeeze(x, axis)


squeeze.defvjp(lambda g, y, x, axis=None: np.reshape(g, x.shape))


@implements(np.broadcast_to)
@primitive
def broadcast_to(x, shape):
    """Return x repeated along axes of length 1 and new leading axes, without a copy."""
    return np.broadcast_to(x, shape)


broadcast_to.defvjp(lambda g, y, x, shape: g)  # the engine sums over the copies


@implements(np.broadcast_arrays)
def broadcast_arrays(*xs):
    """Return all arrays in their common shape."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in xs])
    return tuple(broadcast_to(x, shape) for x in xs)


@implements(np.flip)
@primitive
def flip(x, axis=None):
    """Return x reversed along `axis`, or along all axes if this is None."""
    return np.flip(x, axis)


flip.defvjp(lambda g, y, x, axis=None: np.flip(g, axis))


@implements(np.roll)
@primitive
def roll(x, shift, axis=None):
    """Return x shifted by s = `shift` positions, yᵢ = x₍ᵢ₋ₛ₎, where the end moves to the start.

    If `axis` is None, all elements are shifted in reading order, and x keeps its shape.
    """
    return np.roll(x, shift, axis)


roll.defvjp(lambda g, y, x, shift, axis=None: np.roll(g, np.negative(shift), axis))


@implements(np.astype)
@primitive
def astype(x, dtype):
    """Return the same numbers in a different dtype. The gradient has the dtype of x.

    Raises TypeError if dtype is not a type of numbers or booleans.
    """
    if np.dtype(dtype).kind not in "fiubc":
        raise TypeError(
            "astype: dtype must be a type of numbers, such as np.float32, got "
            f"{np.dtype(dtype).name}. Write x.numpy().astype(...) for an array of any type"
        )
    return np.astype(x, dtype)


astype.defvjp(lambda g, y, x, dtype: g)


@implements(np.copy)
@primitive
def copy(x):
    """Return the same values in new memory."""
    return np.array(x)


copy.defvjp(lambda g, y, x: g)


# ---------------------------------------------------------------- joining and cutting


@primitive
def _concatenate(*xs, axis=0):
    return np.concatenate(xs, axis)


@_concatenate.defvjp_joint
def _concatenate_rule(g, y, *xs, axis=0):
    lengths = [np.shape(x)[axis] for x in xs]
    ends = accumulate(lengths)
    before = (slice(None),) * (axis % y.ndim)
    return [g[(*before, slice(end - n, end))] for n, end in zip(lengths, ends, strict=True)]


def _slice(x, axis, start, stop):
    return getitem(x, (slice(None),) * (axis % x.ndim) + (slice(int(start), int(stop)),))


@implements(np.concatenate, np.concat)
def concatenate(xs, axis=0, *, dtype=None):
    """Concatenate the arrays xs along `axis`. If it is None, they are flattened first."""
    if axis is None:
        xs, axis = [np.ravel(x) for x in xs], 0
    y = _concatenate(*xs, axis=axis)
    return y if dtype is None else y.astype(dtype)


@implements(np.stack)
def stack(xs, axis=0, *, dtype=None):
    """Stack arrays of the same shape along a new axis."""
    return concatenate([expand_dims(as_tensor(x), axis) for x in xs], axis, dtype=dtype)


@implements(np.hstack)
def hstack(xs, *, dtype=None):
    """Concatenate vectors along their only axis, and other arrays along the second axis."""
    xs = [atleast_1d(as_tensor(x)) for x in xs]
    return concatenate(xs, axis=0 if xs[0].ndim == 1 else 1, dtype=dtype)


@implements(np.vstack)
def vstack(xs, *, dtype=None):
    """Stack vectors (as rows) or matrices below each other."""
    return concatenate([atleast_2d(as_tensor(x)) for x in xs], axis=0, dtype=dtype)


@implements(np.column_stack)
def column_stack(xs):
    """Concatenate vectors (or numbers) as the columns of a matrix. Matrices add their columns."""
    xs = [atleast_1d(as_tensor(x)) for x in xs]
    xs = [expand_dims(x, 1) if x.ndim == 1 else x for x in xs]
    return concatenate(xs, axis=1)


@implements(np.append)
def append(x, values, axis=None):
    """Append values to x along `axis`, or flatten both first if this is None."""
    return concatenate([as_tensor(x), as_tensor(values)], axis)


@implements(np.atleast_1d)
def atleast_1d(x):
    """Turn a number into a vector with one element, and return other arrays unchanged."""
    return reshape(x, 1) if x.ndim == 0 else x


@implements(np.atleast_2d)
def atleast_2d(x):
    """Turn a number or a vector into a matrix with one row, and return other arrays unchanged."""
    return reshape(x, (1, -1)) if x.ndim < 2 else x


@implements(np.array_split)
def array_split(x, indices_or_sections, axis=0):
    """Return a list of pieces of x along `axis`.

    indices_or_sections is the number of pieces, or a list of the indices at which x is cut. If the
    number does not divide the length, the first pieces are longer by 1.
    """
    axis, n = np.lib.array_utils.normalize_axis_index(axis, x.ndim), indices_or_sections
    length = x.shape[axis]
    if n is not None and not np.isscalar(n):
        cuts = list(n)  # pieces may be empty, and cuts may be beyond the end
    elif not is_number(n, whole=True) or n < 1:
        raise ValueError(
            "split: indices_or_sections must be a number of pieces (a whole number >= 1) or a list "
            f"of indices, got {n!r}"
        )
    else:
        size, longer = divmod(length, int(n))  # the first pieces are longer by 1
        cuts = [k * size + min(k, longer) for k in range(1, int(n))]
    return [_slice(x, axis, a, b) for a, b in pairwise([0, *cuts, length])]


@implements(np.split)
def split(x, indices_or_sections, axis=0):
    """Split x as `array_split` does, but raise ValueError if the pieces are not equally long.

    With a list of indices, the lengths may differ.
    """
    axis, n = np.lib.array_utils.normalize_axis_index(axis, x.ndim), indices_or_sections
    if is_number(n, whole=True) and n > 0 and x.shape[axis] % n:
        raise ValueError(
            f"split: axis {axis} has length {x.shape[axis]}, which is not a multiple of {n}. "
            "Choose a number of pieces that divides it, or use np.array_split"
        )
    return array_split(x, n, axis)


@implements(np.hsplit)
def hsplit(x, indices_or_sections):
    """Split x along its second axis, or along the only axis of a vector, as `split` does."""
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


@implements(np.vsplit)
def vsplit(x, indices_or_sections):
    """Split x along its first axis, as `split` does."""
    return split(x, indices_or_sections, 0)


# ---------------------------------------------------------------- repeating and padding


@implements(np.repeat)
@primitive
def repeat(x, repeats, axis=None):
    """Return x with each slice along `axis` repeated.

    `repeats` is the number of copies, or a list with a number for each slice. If `axis` is None,
    the elements are repeated, and the result has a single axis.
    """
    if np.asarray(repeats).dtype.kind not in "iub":
        raise TypeError(
            f"repeat: repeats must be a whole number, or a list of them, got {repeats!r}"
        )
    whole = axis is None or x.ndim == 0
    n = x.size if whole else x.shape[np.lib.array_utils.normalize_axis_index(axis, x.ndim)]
    if np.size(repeats) not in (1, n):
        raise ValueError(
            f"repeat: repeats must be one number, or a list of {n} (one for each slice), got "
            f"{np.size(repeats)}. PyTorch's x.repeat is np.tile here"
        )
    return np.repeat(x, repeats, axis)


def _repeat_rule(g, y, x, repeats, axis=None):
    axis = None if x.ndim == 0 else axis  # NumPy repeats a single number along axis 0 too
    n = x.size if axis is None else x.shape[axis]
    source = np.repeat(np.arange(n), repeats)  # index in x of each element of y
    columns = np.moveaxis(g, 0 if axis is None else axis, 0)
    total = np.zeros((n, *columns.shape[1:]), x.dtype)
    total = scatter_add(columns, source, total.shape)
    return np.reshape(total, x.shape) if axis is None else np.moveaxis(total, 0, axis)


repeat.defvjp(_repeat_rule)


@implements(np.tile)
def tile(x, reps):
    """Return copies of all of x next to each other, as tiles are laid.

    `reps` is the number of copies along each axis. A single number belongs to the last axis.
    """
    reps = (reps,) if np.isscalar(reps) else tuple(reps)
    n = builtins.max(len(reps), x.ndim)
    reps, shape = (1,) * (n - len(reps)) + reps, (1,) * (n - x.ndim) + x.shape
    x = reshape(x, tuple(v for length in shape for v in (1, length)))
    x = broadcast_to(
        x, tuple(v for r, length in zip(reps, shape, strict=True) for v in (r, length))
    )
    return reshape(x, tuple(r * length for r, length in zip(reps, shape, strict=True)))


@primitive
def _pad_constant(x, widths, value):
    return np.pad(x, widths, constant_values=value)


_pad_constant.defvjp(
    lambda g, y, x, widths, value: g[
        tuple(slice(a, a + n) for (a, _), n in zip(widths, x.shape, strict=True))
    ]
)


@implements(np.pad)
def pad(x, pad_width, mode="constant", constant_values=0):
    """Return x with a constant added at the ends of its axes.

    pad_width is a number of added elements for all ends, a pair (before, after) for all axes, or a
    list with a pair for each axis. Raises TypeError if these are not whole numbers, and
    NotImplementedError for other modes than "constant" or several constant_values.
    """
    if mode != "constant" or not np.isscalar(constant_values):
        raise NotImplementedError(
            "np.pad of Tensors: only mode='constant' with a single number as constant_values is "
            f"implemented, got mode={mode!r}, constant_values={constant_values!r}. Write other "
            "modes as x[np.pad(np.arange(len(x)), 1, 'reflect')]"
        )
    if np.asarray(pad_width).dtype.kind not in "iu":
        raise TypeError(f"np.pad of Tensors: pad_width must be whole numbers, got {pad_width!r}")
    widths = np.broadcast_to(pad_width, (x.ndim, 2)).tolist()
    return _pad_constant(x, widths, constant_values)


# ---------------------------------------------------------------- triangles and diagonals


@implements(np.tril)
def tril(x, k=0):
    """Return the lower triangles of the last two axes, with zeros above the k-th diagonal."""
    return where(np.tri(*x.shape[-2:], k=k, dtype=bool), x, 0)


@implements(np.triu)
def triu(x, k=0):
    """Return the upper triangles of the last two axes, with zeros below the k-th diagonal."""
    return where(np.tri(*x.shape[-2:], k=k - 1, dtype=bool), 0, x)


@implements(np.diagonal)
def diagonal(x, offset=0, axis1=0, axis2=1):
    """Return the elements x[i, i + offset] as the last axis.

    The indices i and i + offset are on axis1 and axis2.
    """
    x = np.moveaxis(x, (axis1, axis2), (-2, -1))
    n, m = x.shape[-2:]
    i = np.arange(
        builtins.max(0, builtins.min(n + builtins.min(offset, 0), m - builtins.max(offset, 0)))
    )
    return x[..., i - builtins.min(offset, 0), i + builtins.max(offset, 0)]


@implements(np.diag)
def diag(x, k=0):
    """Return the k-th diagonal of a matrix or, for a vector, the matrix with this diagonal."""
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(
            f"diag: x must be a vector or a matrix, got shape {x.shape}. Use np.diagonal with the "
            "numbers of two axes"
        )
    n = x.shape[0] + abs(k)
    i = np.arange(x.shape[0])
    return scatter_add(x, (i - builtins.min(k, 0), i + builtins.max(k, 0)), (n, n))


@implements(np.rot90)
def rot90(x, k=1):
    """Rotate x by k quarter turns to the left (counter-clockwise), in its first two axes."""
    for _ in range(k % 4):
        x = flip(swapaxes(x, 0, 1), 0)
    return x


@implements(np.fliplr)
def fliplr(x):
    """Return x with its columns (the second axis) in reverse order."""
    return flip(x, 1)


@implements(np.flipud)
def flipud(x):
    """Return x with its rows (the first axis) in reverse order."""
    return flip(x, 0)


@implements(np.diff)
def diff(x, n=1, axis=-1):
    """Return the differences of neighbours along `axis`, yᵢ = xᵢ₊₁ - xᵢ, taken n times.

    Raises ValueError if n is negative.
    """
    if n < 0:
        raise ValueError(f"diff: expected n >= 0, the number of differences, got n={n}")
    axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    for _ in range(n):
        length = x.shape[axis]
        x = _slice(x, axis, 1, length) - _slice(x, axis, 0, length - 1)
    return x
