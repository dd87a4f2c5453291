"""Operations on the K neighbours of each point that check their arguments.

The operations are in `ops/neighbours.py`.
"""

import numpy as np

from tinyattn.engine.convert import of_one_dtype, to_array
from tinyattn.ops import neighbours as ops


def mean_max(w, h, index, impl="auto"):
    """Return the mean and the maximum of the weighted features of each point's neighbours.

        y_n = [1/K Σ_k w_nk h_j, max_k w_nk h_j]  with j = index_nk

    GravNet uses this function to aggregate its messages. Equal maxima share the gradient.

    Args:
        w       weights w_nk, a number for each neighbour of each point [N, K]
        h       features [M, F] of the points that may be neighbours
        index   rows of h that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "sums" (loops), "numpy" (can be differentiated more than once), "kernel" (compiled)
                or "auto" (the faster of "numpy" and "kernel")

    Returns:
        y [N, 2F], the means followed by the maxima

    Raises:
        ValueError: the shapes do not fit, or the index does not consist of whole numbers or
            contains a row that h does not have

    Source: slide K48.
    """
    w, h, index = _check("mean_max", index, w, h)
    if w.shape != index.shape:
        raise ValueError(
            f"mean_max: weights must have the shape of the index {index.shape}, got {w.shape}"
        )
    return ops.mean_max(w, h, index, impl=impl)


def neighbour_max(h, index, impl="auto"):
    """Return the maximum of the features of each point's neighbours, y_nf = max_k h_jf.

    Here j = index_nk. Equal maxima share the gradient.

    Args:
        h       features [M, F] of the points that may be neighbours
        index   rows of h that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "numpy" (can be differentiated more than once), "kernel" (compiled) or "auto" (the
                faster one)

    Returns:
        y [N, F]

    Raises:
        ValueError: the index does not consist of whole numbers, or contains a row that h does not
            have
    """
    h, index = _check("neighbour_max", index, h)
    return ops.neighbour_max(h, index, impl=impl)


def squared_distances(x, index, impl="auto"):
    """Return the squared distances of each point to its neighbours, d²_nk = Σ_s (x_ns - x_js)².

    Here j = index_nk.

    Args:
        x       points [N, S]
        index   rows of x that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "numpy" (can be differentiated more than once), "kernel" (compiled) or "auto" (the
                faster one)

    Returns:
        d² [N, K]

    Raises:
        ValueError: the index does not have one row for each point, does not consist of whole
            numbers, or contains a point that x does not have
    """
    x, index = _check("squared_distances", index, x)
    if len(index) != x.shape[0]:
        raise ValueError(
            f"squared_distances: the index must have {x.shape[0]} rows, one for each point of x, "
            f"got shape {index.shape}"
        )
    return ops.squared_distances(x, index, impl=impl)


def pair_sums(p, q, index, impl="auto"):
    """Return a sum for each point and neighbour, y_nk = p_n + q_j with j = index_nk.

    Args:
        p       summand of each point [N, F]
        q       summand of each point as a neighbour [N, F]
        index   rows of q that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "numpy" (can be differentiated more than once), "kernel" (compiled) or "auto" (the
                faster one)

    Returns:
        y [N, K, F]

    Raises:
        ValueError: the shapes do not fit, or the index does not consist of whole numbers from 0 to
            N - 1
    """
    p, q, index = _check("pair_sums", index, p, q)
    if p.shape != q.shape or len(index) != p.shape[0]:
        raise ValueError(
            f"pair_sums: p and q must both be [{len(index)}, F], got {p.shape} and {q.shape}"
        )
    return ops.pair_sums(p, q, index, impl=impl)


def _check(name, index, *arrays):
    """Return arrays [N, F] as Tensors of one dtype, and the index checked against the last one."""
    arrays = of_one_dtype(*arrays)
    return *arrays, index_table(name, index, len(arrays[-1]))


def index_table(name, index, n):
    """Return a table of neighbours as an array [N, K] of int64, after a check of its numbers.

    Args:
        name    function that is called, for the error message
        index   the table [N, K], K ≥ 1
        n       number of rows to which it may point

    Raises:
        ValueError: the table has a different shape, or its numbers are not whole and from 0 to
            n - 1
    """
    index = np.asarray(to_array(index))
    if index.dtype.kind not in "iu":
        how = (
            ". Write index.astype(int) if that is what you want" if index.dtype.kind == "f" else ""
        )
        raise ValueError(
            f"{name}: the index must hold whole numbers (rows), got {index.dtype}{how}"
        )
    index = np.array(index, np.int64, order="C")  # a copy is not affected by later changes
    if index.ndim != 2 or index.shape[1] < 1:
        raise ValueError(f"{name}: the index must be [N, K] with K >= 1, got shape {index.shape}")
    if index.size and not 0 <= index.min() <= index.max() < n:
        raise ValueError(
            f"{name}: the index must hold rows from 0 to {n - 1}, got {index.min()} to "
            f"{index.max()}"
        )
    return index
