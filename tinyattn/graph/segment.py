"""Reductions over segments, where row e of `values` belongs to segment ids[e].

    y_n = □_{e: ids_e = n} values_e        □ = sum, mean, max, min, prod

In message passing, the segments are the receivers. The order of the rows does not matter, so the
reductions are suitable for sets. An empty segment gives 0, or 1 for prod. Slides K35, K37.

All functions of segments except segment_sum and segment_mean take `impl`, which is "numpy" (array
algebra), "kernel" (compiled loops) or "auto" ("kernel" where it is faster).
"""

import numpy as np

from tinyattn.engine.convert import as_float, as_tensor, to_array
from tinyattn.engine.ranges import is_number
from tinyattn.graph.graph import check_not_negative
from tinyattn.graph.validation import check_indices
from tinyattn.ops import segment as ops


def segment_sum(values, ids, num_segments):
    """Return the sum of each segment, y_n = Σ values_e over the rows e with ids_e = n.

    Args:
        values         numbers [E, ...], whose rows are grouped into segments
        ids            segment of each row [E], whole numbers from 0 to num_segments - 1
        num_segments   number of segments, including empty ones, which give 0

    Returns:
        y [num_segments, ...]

    Raises:
        TypeError: values are bool, or ids are not whole numbers
        ValueError: ids do not have the shape [E], an id is outside of [0, num_segments), or
            num_segments is not a whole number >= 0
    """
    return ops.segment_sum(*_check_segments("segment_sum", values, ids, num_segments))


def segment_mean(values, ids, num_segments):
    """Return the mean of each segment, y_n = mean of values_e over the rows e with ids_e = n.

    Args:
        values         numbers [E, ...], whose rows are grouped into segments
        ids            segment of each row [E], whole numbers from 0 to num_segments - 1
        num_segments   number of segments, including empty ones, which give 0

    Returns:
        y [num_segments, ...]

    Raises:
        TypeError: values are bool, or ids are not whole numbers
        ValueError: ids do not have the shape [E], an id is outside of [0, num_segments), or
            num_segments is not a whole number >= 0
    """
    return ops.segment_mean(*_check_segments("segment_mean", values, ids, num_segments))


def global_add_pool(x, batch, size=None):
    """Return the sum over the nodes of each graph, `segment_sum(x, batch, size)`.

    Args:
        x       features of the nodes [N, ...]
        batch   index of each node's graph [N], whole numbers, or None for a single graph
        size    number of graphs, including graphs without nodes. None: count up to the last graph
                that has a node. If batch is None, size is ignored

    Returns:
        [size, ...], with 0 for a graph without nodes, or [1, ...] if batch is None

    Raises:
        TypeError: batch does not consist of whole numbers, or x is bool
        ValueError: x is a single number, batch does not have one index for each node, an index is
            outside of [0, size), or size is not a whole number >= 0
    """
    return segment_sum(x, *_graphs("global_add_pool", x, batch, size))


def global_mean_pool(x, batch, size=None):
    """Return the mean over the nodes of each graph.

    Args:
        x       features of the nodes [N, ...]
        batch   index of each node's graph [N], whole numbers, or None for a single graph
        size    number of graphs, including graphs without nodes. None: count up to the last graph
                that has a node. If batch is None, size is ignored

    Returns:
        [size, ...], with 0 for a graph without nodes, or [1, ...] if batch is None

    Raises:
        TypeError: batch does not consist of whole numbers, or x is bool
        ValueError: x is a single number, batch does not have one index for each node, an index is
            outside of [0, size), or size is not a whole number >= 0
    """
    return segment_mean(x, *_graphs("global_mean_pool", x, batch, size))


def global_max_pool(x, batch, size=None):
    """Return the maximum over the nodes of each graph.

    Args:
        x       features of the nodes [N, ...]
        batch   index of each node's graph [N], whole numbers, or None for a single graph
        size    number of graphs, including graphs without nodes. None: count up to the last graph
                that has a node. If batch is None, size is ignored

    Returns:
        [size, ...], with 0 for a graph without nodes, or [1, ...] if batch is None

    Raises:
        TypeError: batch does not consist of whole numbers, or x is bool
        ValueError: x is a single number, batch does not have one index for each node, an index is
            outside of [0, size), or size is not a whole number >= 0
    """
    return segment_max(x, *_graphs("global_max_pool", x, batch, size))


def _graphs(name, x, batch, size):
    """Return (the graph of each node, the number of graphs), after a check of the arguments."""
    shape = np.shape(to_array(x))
    if not shape:
        advice = ". Pass its features, graph.x" if type(x).__name__ == "Graph" else ""
        raise ValueError(f"{name}: x must have a row for each node, got {type(x).__name__}{advice}")
    if np.asarray(to_array(x)).dtype == bool:
        raise TypeError(f"{name}: x must be numbers, got bool. Convert it with .astype(int)")
    if batch is None:
        return np.zeros(shape[0], np.intp), 1
    given, batch = batch, np.asarray(to_array(batch))
    if batch.size and batch.dtype.kind not in "iu":
        advice = ". Convert it with .astype(int)" if batch.dtype.kind == "f" else ""
        got = batch.dtype
        if batch.ndim == 0:
            got = type(given).__name__
            advice = ". Pass the batch of the graph, graph.batch" if got == "Graph" else ""
        raise TypeError(
            f"{name}: batch must be whole numbers, the graph of each node, got {got}{advice}"
        )
    if batch.shape != shape[:1]:
        n = shape[0]
        raise ValueError(
            f"{name}: batch must be {n} whole number{'' if n == 1 else 's'}, the graph of each "
            f"node, got shape {batch.shape}"
        )
    if size is None:
        check_not_negative(name, batch)
        size = max(int(batch.max(initial=-1)) + 1, int(batch.size > 0))
    elif not is_number(size, whole=True) or size < 0:
        raise ValueError(f"{name}: size must be a whole number of graphs >= 0, got {size!r}")
    check_indices(name, "batch", "graphs", batch, size)
    return batch, size


def segment_max(values, ids, num_segments, impl="auto"):
    """Return the maximum of each segment, y_n = max values_e over the rows e with ids_e = n.

    Equal maxima share the gradient equally.

    Args:
        values         numbers [E, ...], whose rows are grouped into segments
        ids            segment of each row [E], whole numbers from 0 to num_segments - 1
        num_segments   number of segments, including empty ones, which give 0
        impl           "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster one)

    Returns:
        y [num_segments, ...]

    Raises:
        TypeError: values are bool, or ids are not whole numbers
        ValueError: ids do not have the shape [E], an id is outside of [0, num_segments),
            num_segments is not a whole number >= 0, or impl is unknown
    """
    return ops.segment_max(*_check_segments("segment_max", values, ids, num_segments), impl=impl)


def segment_min(values, ids, num_segments, impl="auto"):
    """Return the minimum of each segment, y_n = min values_e over the rows e with ids_e = n.

    Equal minima share the gradient equally.

    Args:
        values         numbers [E, ...], whose rows are grouped into segments
        ids            segment of each row [E], whole numbers from 0 to num_segments - 1
        num_segments   number of segments, including empty ones, which give 0
        impl           "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster one)

    Returns:
        y [num_segments, ...]

    Raises:
        TypeError: values are bool, or ids are not whole numbers
        ValueError: ids do not have the shape [E], an id is outside of [0, num_segments),
            num_segments is not a whole number >= 0, or impl is unknown
    """
    return ops.segment_min(*_check_segments("segment_min", values, ids, num_segments), impl=impl)


def segment_prod(values, ids, num_segments, impl="auto"):
    """Return the product of each segment, y_n = Π values_e over the rows e with ids_e = n.

    Args:
        values         numbers [E, ...], whose rows are grouped into segments
        ids            segment of each row [E], whole numbers from 0 to num_segments - 1
        num_segments   number of segments, including empty ones, which give 1
        impl           "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster one)

    Returns:
        y [num_segments, ...]

    Raises:
        TypeError: values are bool, or ids are not whole numbers
        ValueError: ids do not have the shape [E], an id is outside of [0, num_segments),
            num_segments is not a whole number >= 0, or impl is unknown
    """
    return ops.segment_prod(*_check_segments("segment_prod", values, ids, num_segments), impl=impl)


def segment_softmax(values, ids, num_segments, impl="auto"):
    """Return the softmax within each segment, y_e = exp(values_e) / Σ_e' exp(values_e').

    The sum runs over all rows e' of the segment of row e. A value of -inf gives 0, even if all
    values of the segment are -inf.

    Args:
        values         numbers [E, ...], whose rows are grouped into segments
        ids            segment of each row [E], whole numbers from 0 to num_segments - 1
        num_segments   number of segments, including empty ones
        impl           "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster one)

    Returns:
        y [E, ...]

    Raises:
        TypeError: values are bool, or ids are not whole numbers
        ValueError: ids do not have the shape [E], an id is outside of [0, num_segments),
            num_segments is not a whole number >= 0, or impl is unknown
    """
    values, ids, n = _check_segments("segment_softmax", values, ids, num_segments)
    return ops.segment_softmax(as_float(values), ids, n, impl=impl)


SEGMENT = {
    "sum": segment_sum,
    "mean": segment_mean,
    "max": segment_max,
    "min": segment_min,
    "prod": segment_prod,
}


def _check_segments(name, values, ids, n):
    """Return values as a Tensor, ids as an array and n as an int, after a check of all three."""
    values = as_tensor(values)
    if values.dtype.kind == "b":
        raise TypeError(f"{name}: values must be numbers, got bool. Convert them with .astype(int)")
    ids = np.asarray(to_array(ids))
    if ids.size and ids.dtype.kind not in "iu":
        how = "Convert them with .astype(int)"
        if ids.dtype.kind in "US":
            how = "Write names, ids = np.unique(names_of_rows, return_inverse=True)"
        raise TypeError(f"{name}: ids must be integers, got {ids.dtype}. {how}")
    if values.ndim == 0 or ids.shape != values.shape[:1]:
        raise ValueError(
            f"{name}: expected an id for each row of values, got ids of shape {ids.shape} and "
            f"values of shape {values.shape}"
        )
    if not is_number(n, whole=True) or n < 0:
        raise ValueError(f"{name}: num_segments must be a whole number >= 0, got {n!r}")
    check_indices(name, "ids", "segments", ids, n)
    return values, ids.astype(np.intp, copy=False), int(n)
