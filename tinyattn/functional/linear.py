"""Weighted sums and look-ups: linear, embedding, one_hot, normalize, cosine_similarity."""

import math

import numpy as np

from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.ranges import check_range, is_number
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.ops import matmul
from tinyattn.ops.index import getitem


def linear(x, weight, bias=None):
    """Return the linear map of the last axis of x, x Wᵀ + b.

    Args:
        x        vectors with `in` features [..., in]
        weight   W [out, in]
        bias     b [out], or None for 0

    Returns:
        [..., out]

    Raises:
        ValueError: W is not a matrix, x does not have `in` features, or b is not [out]
    """
    bias = None if bias is None else as_tensor(bias)
    return matmul.linear(as_tensor(x), as_tensor(weight), bias)


def check_indices(name, ids, n, ignore=None, what="ids"):
    """Return `ids` as an array, after a check that all are whole numbers in [0, n) or `ignore`.

    `name` begins the message of an error, and `what` is the name of the argument. Raises TypeError
    for other numbers, IndexError for whole numbers outside of the range, and ValueError for rows of
    different lengths.
    """
    given, ids = ids, ids_of(name, ids, what)
    expected = f"integers from 0 to {n - 1}" if n > 1 else "integers"
    if ids.dtype.kind not in "iu":
        how = f"Write {what}.astype(int)"
        if isinstance(given, list | tuple):
            how = f"Write np.array({what}, int)"
        if ids.dtype == object:
            whole = [isinstance(i, int | np.integer) for i in ids.flat]
            if all(whole):
                raise TypeError(
                    f"{name}: {what} must be {expected}, got an array of objects. {how}"
                )
            wrong = np.array([not w for w in whole]).reshape(ids.shape)
            got = type(ids[wrong][0]).__name__
            raise TypeError(f"{name}: {what} must be {expected}, got {got}{first_index(wrong)}")
        if ids.dtype.kind in "US":
            how = "Write names, labels = np.unique(names_of_examples, return_inverse=True)"
            if name.lower().endswith("embedding"):
                how = "Encode texts first, with a tokenizer of data.tokenizers"
        raise TypeError(f"{name}: {what} must be {expected}, got {ids.dtype}. {how}")
    wrong = (ids < 0) | (ids >= n)
    if ignore is not None:
        wrong &= ids != ignore
    if wrong.any():
        if n < 2:
            expected = "0, because there is only one row or class"
            if n == 0:
                expected = "empty, because there are no rows or classes"
        got = int(ids[wrong].flat[0])
        raise IndexError(f"{name}: {what} must be {expected}, got {got}{first_index(wrong)}")
    return ids


def ids_of(name, ids, what="ids"):
    """Return ids as an array, or raise ValueError for a list of rows of different lengths."""
    try:
        return np.asarray(to_array(ids))
    except ValueError:
        raise ValueError(
            f"{name}: {what} must be an array, got rows of different lengths. Make all rows "
            "equally long (data.tokenizers.padded pads tokens)"
        ) from None


def first_index(wrong):
    """Return " at index (...)" for the first True of an array, or "" for a single one."""
    return f" at index {tuple(map(int, np.argwhere(wrong)[0]))}" if wrong.ndim else ""


@with_torch_hints
def embedding(ids, weight, padding_idx=None):
    """Return the row of a table for each id, weight[ids].

    Args:
        ids           whole numbers [...] from 0 to V - 1
        weight        the table [V, D], with V rows of D features
        padding_idx   index of a row that gets no gradient, or None. A negative number counts from
                      the end

    Returns:
        the rows [..., D]

    Raises:
        ValueError: weight is not a table, ids has rows of different lengths, or padding_idx is
            outside of [-V, V)
        TypeError: the ids or padding_idx are not whole numbers
        IndexError: an id is outside of [0, V)
    """
    weight = as_tensor(weight)
    if weight.ndim != 2:
        raise ValueError(
            f"embedding: weight must be a table [V, D], got shape {weight.shape}. Write "
            "embedding(ids, weight)"
        )
    V = len(weight.data)
    check_range(
        "embedding", -V, below=V, whole=True, optional=("padding_idx",), padding_idx=padding_idx
    )
    ids = check_indices("embedding", ids, weight.shape[0])
    y = getitem(weight, ids)
    if padding_idx is None:
        return y
    padding = (ids == padding_idx % weight.shape[0])[..., None]
    return np.where(padding, to_array(y), y)


@with_torch_hints
def one_hot(ids, num_classes=None):
    """Return, for each id, a vector that is 1 at the index id and 0 elsewhere.

    Args:
        ids           whole numbers [...] in [0, num_classes)
        num_classes   length of each vector, or None for the largest id + 1

    Returns:
        a Tensor [..., num_classes] of int64

    Raises:
        TypeError: the ids or num_classes are not whole numbers
        IndexError: an id is negative, or not below num_classes
        ValueError: num_classes is negative, or ids has rows of different lengths
    """
    given, ids = ids, ids_of("one_hot", ids)
    if num_classes is None:
        number = ids.size and ids.dtype.kind in "iu"
        if number and ids.min() < 0:
            wrong = ids < 0
            raise IndexError(
                f"one_hot: ids must be integers >= 0, got {ids[wrong].flat[0]}{first_index(wrong)}"
            )
        num_classes = max(int(ids.max()) + 1, 1) if number else 0
    check_range("one_hot", 0, whole=True, num_classes=num_classes)
    ids = check_indices("one_hot", given, num_classes)
    return as_tensor((ids[..., None] == np.arange(num_classes)).astype(np.int64))


def check_axis(name, x, axis, what="x"):
    """Raise unless `axis` is an axis of x, a tuple of different axes, or None for all axes.

    `name` begins the message of an error, and `what` is the name of x.
    """
    if axis is None or (type(axis) is int and -x.ndim <= axis < x.ndim):
        return
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not all(is_number(a, whole=True) for a in axes):
        raise TypeError(
            f"{name}: axis must be a whole number, a tuple of them, or None, got {axis!r}"
        )
    wrong = [int(a) for a in axes if not -x.ndim <= a < x.ndim]
    if wrong:
        advice = ". For the last axis, pass axis=-1" if x.ndim else ""
        raise ValueError(f"{name}: {what} of shape {x.shape} has no axis {wrong[0]}{advice}")
    if len({a % x.ndim for a in axes}) < len(axes):
        raise ValueError(f"{name}: axis must not name an axis twice, got {axis!r}")


def _length(name, x, p, axis, eps, what="x"):
    """Return (Σ|x|ᵖ)^(1/p) along an axis, but at least eps, so that 0/0 cannot occur."""
    check_range(name, 0, below=math.inf, eps=eps)
    check_axis(name, x, axis, what)
    if p == 2:
        s = np.sum(x * x, axis=axis, keepdims=True)
        small = np.less(to_array(s), eps * eps)
        return np.where(small, eps, np.sqrt(np.where(small, 1, s)))
    if (x.ndim if axis is None else np.size(axis)) > 1:
        raise NotImplementedError(
            f"{name}: p={p} with several axes is not implemented. Pass a single axis, or p=2"
        )
    s = np.linalg.norm(x, p, axis=axis, keepdims=True)
    return np.where(np.less(to_array(s), eps), eps, s)


@with_torch_hints
def normalize(x, p=2.0, axis=1, eps=1e-12):
    """Return x divided by its norm along an axis, x / max(‖x‖_p, eps).

    Args:
        x      numbers [...]
        p      order p > 0 of the norm ‖x‖_p = (Σ |x|ᵖ)^(1/p), where 2 is the Euclidean norm and
               np.inf the maximum of |x|
        axis   axis of the sum or, for p = 2, a tuple of axes or None for all axes. The default 1 is
               for rows [N, D]
        eps    smallest divisor, eps >= 0

    Returns:
        a Tensor in the shape of x

    Raises:
        ValueError: p is not positive, eps is negative or not finite, or x has no such axis
        TypeError: p or eps is not a number, or axis is not a whole number, a tuple of them, or None
        NotImplementedError: p is not 2, and there are several axes
    """
    check_range("normalize", above=0, p=p)
    x = as_tensor(x)
    if x.dtype == np.float16:  # in float16, squares overflow from 256 on, and 1e-12 is 0
        return normalize(x.astype(np.float32), p, axis, eps).astype(x.dtype)
    return x / _length("normalize", x, p, axis, eps)


@with_torch_hints
def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    """Return the cosine of the angle between vectors, x₁·x₂ / (max(‖x₁‖, ε) max(‖x₂‖, ε)).

    Args:
        x1     x₁ [...]
        x2     x₂, which broadcasts with x₁
        axis   axis of the vectors after broadcasting, a tuple of axes, or None for all. The result
               does not have these axes. The default 1 is for rows [N, D]
        eps    ε >= 0, the smallest value of each length in the divisor

    Raises:
        ValueError: the shapes do not broadcast or have no such axis, or eps is negative or not
            finite
        TypeError: eps is not a number, or axis is not a whole number, a tuple of them, or None
    """
    x1, x2 = as_tensor(x1), as_tensor(x2)
    try:
        x1, x2 = np.broadcast_arrays(x1, x2)
    except ValueError:
        pairs = x1.ndim == x2.ndim == 2 and x1.shape[1] == x2.shape[1]
        advice = ". For all pairs of rows, pass x1[:, None], x2 and axis=-1" if pairs else ""
        raise ValueError(
            f"cosine_similarity: x1 {x1.shape} and x2 {x2.shape} do not broadcast{advice}"
        ) from None
    if x1.dtype == x2.dtype == np.float16:
        wide = [x.astype(np.float32) for x in (x1, x2)]
        return cosine_similarity(*wide, axis, eps).astype(np.float16)
    name = "cosine_similarity"
    lengths = _length(name, x1, 2, axis, eps, "x1") * _length(name, x2, 2, axis, eps, "x2")
    return np.squeeze(np.sum(x1 * x2, axis=axis, keepdims=True) / lengths, axis)
