"""Checks of arguments that several functions of this folder share, each with one error message."""

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.ranges import is_number


def check_points(name, x, features=None, what="x"):
    """Return points x as a Tensor, after a check of their shape and values.

    Args:
        name       layer that is called, for the error message
        x          points [N, features], N ≥ 1
        features   number of features, or None for any
        what       name of the argument, for the error message

    Raises:
        ValueError: x has a different shape or no points, or contains NaN or infinity
    """
    x = check_matrix(name, x, features, what)
    values = x.data
    if len(values) == 0:
        raise ValueError(
            f"{name}: {what} has no points (shape {values.shape}). Leave out events without points"
        )
    good = np.isfinite(values).all(axis=1)
    if not good.all():
        bad = np.flatnonzero(~good)
        more = ", ..." if len(bad) > 3 else ""
        raise ValueError(
            f"{name}: {what} is NaN or infinite in {len(bad)} of {len(values)} points (index "
            f"{', '.join(map(str, bad[:3]))}{more}). Remove these points, or look for weights that "
            "are too large or NaN in an earlier layer"
        )
    return x


def rows_for_each(n, of):
    """Return "3 rows, one for each node" for n = 3 and of = "node", for an error message."""
    return f"{n} row{'' if n == 1 else 's'}, one for each {of}"


def check_matrix(name, x, features=None, what="x"):
    """Return points x [N, features] as a Tensor, or raise ValueError.

    With features=None, x may have any number of features. `what` is the name of x in the error.
    """
    if x is None:
        raise ValueError(f"{name}: {what} must be points [N, {features or 'F'}], got None")
    x = as_tensor(x)
    shape = x.shape
    if len(shape) != 2 or (features is not None and shape[1] != features):
        wanted = "F" if features is None else features
        line = features is None and len(shape) == 1
        advice = f". For points with one feature, pass {what}[:, None]" if line else ""
        raise ValueError(f"{name}: {what} must be points [N, {wanted}], got shape {shape}{advice}")
    return x


def check_table(name, index, n):
    """Return a table of neighbours as an array [N, K] of int64, after a check of its numbers.

    Args:
        name    function that is called, for the error message
        index   the table [N, K], K ≥ 1
        n       number of rows to which it may point

    Raises:
        ValueError: the table has a different shape, or its numbers are not whole and from 0 to
            n - 1
    """
    if isinstance(index, tuple) and len(index) == 2 and np.ndim(index[0]) == 2:
        raise ValueError(
            f"{name}: index must be one array [N, K], got a tuple of two. Unpack both results of "
            "knn: index, d2 = knn(x, k)"
        )
    given, index = index, np.asarray(to_array(index))
    if index.dtype.kind not in "iu":
        advice = "Pass the first result of knn: index, d2 = knn(x, k)"
        if index.dtype.kind == "f" and index.size and (index == np.floor(index)).all():
            advice = "Convert it with .astype(int), unless it contains the distances of knn"
        got = index.dtype if index.ndim else type(given).__name__
        raise ValueError(
            f"{name}: index must contain indices of points, which are whole numbers, got {got}. "
            f"{advice}"
        )
    index = np.array(index, np.int64, order="C")  # a copy is not affected by later changes
    if index.ndim != 2 or index.shape[1] < 1:
        raise ValueError(f"{name}: index must be [N, K] with K >= 1, got shape {index.shape}")
    check_indices(name, "index", "rows", index, n)
    return index


def check_indices(owner, name, of, indices, n):
    """Raise ValueError unless all whole numbers of an array are from 0 to n - 1.

    Args:
        owner     function or class that is called, for the error message
        name      name of its argument
        of        name of the numbered things, such as "nodes"
        indices   the array
        n         number of nodes, rows, and so on, so the largest index is n - 1
    """
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        position = np.argwhere((indices < 0) | (indices >= n))[0].tolist()
        allowed = f"contain only {of} from 0 to {n - 1}"
        if n < 2:
            one = of.removesuffix("s")
            allowed = f"be 0, because there is only one {one}"
            if n == 0:
                allowed = f"be empty, because there are no {of}"
        raise ValueError(
            f"{owner}: {name} must {allowed}, but {name}{position} is {indices[tuple(position)]}"
        )


def check_batch(name, batch, N, of="cloud"):
    """Return batch as an array with a whole number for each of N points, or raise ValueError.

    `of` is the word for what the number represents, a cloud or an event.
    """
    given, batch = batch, np.asarray(to_array(batch))
    if batch.shape != (N,) or batch.dtype.kind not in "iu":
        floats = batch.shape == (N,) and batch.dtype.kind == "f"
        advice = ". Convert it with .astype(int)" if floats else ""
        got = f"{batch.dtype} of shape {batch.shape}" if batch.ndim else type(given).__name__
        raise ValueError(
            f"{name}: batch must be {N} whole number{'' if N == 1 else 's'}, the {of} of each "
            f"point, got {got}{advice}"
        )
    return batch


def check_widths(name, **widths):
    """Raise TypeError unless each argument is a tuple or list of numbers of features."""
    for argument, value in widths.items():
        if not isinstance(value, tuple | list):
            advice = "Write, for example, (64, 64)"
            if is_number(value, whole=True):
                advice = f"Write ({value!r},) for one layer"
            elif isinstance(value, np.ndarray | Tensor):
                advice = f"Write {argument}.tolist()"
            raise TypeError(
                f"{name}: {argument} must be a tuple with a number of features for each layer, got "
                f"{value!r}. {advice}"
            )


def check_callable(name, argument, value, shapes):
    """Raise TypeError unless an argument is a module or function, which maps these `shapes`."""
    if not callable(value):
        got = f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)
        raise TypeError(
            f"{name}: {argument} must be a module or function {shapes}, got {got}. Pass, for "
            "example, nn.MLP([...])"
        )


def check_choice(name, argument, value, choices):
    """Raise ValueError unless the value of an argument is one of the choices, which are strings."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}: {argument} must be one of {', '.join(choices)}, got {value!r}")
