"""Operations on the K neighbours of each point that check their arguments.

The operations are in `ops/neighbours.py`.
"""

from tinyattn.engine.convert import of_one_dtype
from tinyattn.graph.validation import check_table, rows_for_each
from tinyattn.ops import neighbours as ops


def mean_max(w, h, index, impl="auto"):
    """Return the mean and the maximum of the weighted features of each point's neighbours.

        y_n = [1/K Σ_k w_nk h_j, max_k w_nk h_j]  with j = index_nk

    GravNet uses this function to aggregate its messages. Equal maxima share the gradient.

    Args:
        w       weights w_nk, a number for each neighbour of each point [N, K]
        h       features [M, F] of the points that may be neighbours
        index   rows of h that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster
                of "numpy" and "kernel")

    Returns:
        y [N, 2F], the means followed by the maxima

    Raises:
        ValueError: w or h is not a matrix, w and index differ in shape, index does not consist of
            whole numbers from 0 to M - 1, or impl is unknown

    Source: slide K48.
    """
    w, h, index = _check_arrays("mean_max", index, w=w, h=h)
    if w.shape != index.shape:
        raise ValueError(f"mean_max: w must have the shape of index, {index.shape}, got {w.shape}")
    return ops.mean_max(w, h, index, impl=impl)


def neighbour_max(h, index, impl="auto"):
    """Return the maximum of the features of each point's neighbours, y_nf = max_k h_jf.

    Here j = index_nk. Equal maxima share the gradient.

    Args:
        h       features [M, F] of the points that may be neighbours
        index   rows of h that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster one)

    Returns:
        y [N, F]

    Raises:
        ValueError: h is not a matrix, index is not a matrix of whole numbers from 0 to M - 1, or
            impl is unknown
    """
    h, index = _check_arrays("neighbour_max", index, h=h)
    return ops.neighbour_max(h, index, impl=impl)


def squared_distances(x, index, impl="auto"):
    """Return the squared distances of each point to its neighbours, d²_nk = Σ_s (x_ns - x_js)².

    Here j = index_nk.

    Args:
        x       points [N, S]
        index   rows of x that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster one)

    Returns:
        d² [N, K]

    Raises:
        ValueError: x is not a matrix, index does not have one row for each point, index does not
            consist of whole numbers from 0 to N - 1, or impl is unknown
    """
    x, index = _check_arrays("squared_distances", index, x=x)
    if len(index) != x.shape[0]:
        raise ValueError(
            f"squared_distances: index must have {rows_for_each(x.shape[0], 'point of x')}, got "
            f"shape {index.shape}"
        )
    return ops.squared_distances(x, index, impl=impl)


def pair_sums(p, q, index, impl="auto"):
    """Return a sum for each point and neighbour, y_nk = p_n + q_j with j = index_nk.

    Args:
        p       summand of each point [N, F]
        q       summand that each point contributes as a neighbour [N, F]
        index   rows of q that are the neighbours of each point [N, K], whole numbers, K ≥ 1
        impl    "numpy" (array algebra), "kernel" (compiled) or "auto" (the faster one)

    Returns:
        y [N, K, F]

    Raises:
        ValueError: p and q are not matrices of one shape with a row for each row of index, index
            does not consist of whole numbers from 0 to N - 1, or impl is unknown
    """
    p, q, index = _check_arrays("pair_sums", index, p=p, q=q)
    if p.shape != q.shape or len(index) != p.shape[0]:
        raise ValueError(
            f"pair_sums: p and q must both be [{len(index)}, F], a row for each row of index, got "
            f"{p.shape} and {q.shape}"
        )
    return ops.pair_sums(p, q, index, impl=impl)


def _check_arrays(name, index, **arrays):
    """Return matrices as Tensors of one dtype, and the index checked against the last one."""
    tensors = of_one_dtype(*arrays.values())
    for argument, tensor in zip(arrays, tensors, strict=True):
        if tensor.ndim != 2:
            raise ValueError(
                f"{name}: {argument} must be a matrix with a row for each point, got shape "
                f"{tensor.shape}"
            )
    return *tensors, check_table(name, index, len(tensors[-1]))
