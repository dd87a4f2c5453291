"""Operations on the K neighbours of each point, named by a table index [N, K].

Each is written as array algebra and as a kernel; the kernel never stores the N·K·F messages. For
the backward pass it saves the reverse of the table: for each point, where it is a neighbour.
"""

import numpy as np

from tinyattn.engine.convert import of_one_dtype, to_array
from tinyattn.ops.backends import select
from tinyattn.ops.fused import fused


def mean_max(w, h, index, impl="auto"):
    """y_n = [1/K Σ_k w_nk h_i, max_k w_nk h_i] with i = index_nk: what GravNet gathers.

    w [N, K], h [M, F], index [N, K] whole numbers with K ≥ 1, y [N, 2F]. Tied maxima share the
    gradient. impl: "sums", "numpy", "kernel" or "auto". Raises ValueError if the shapes do not
    fit, or the index names a row that h does not have. Slide K48.
    """
    w, h, index = _checked("mean_max", index, w, h)
    if w.shape != index.shape:
        raise ValueError(f"mean_max: expected weights {index.shape}, got {w.shape}")
    rung = select("mean_max", impl, h.dtype, index.size * h.shape[1])
    if rung == "numpy":
        messages = w[:, :, None] * h[index]  # [N, K, F]
        both = np.mean(messages, axis=1), np.max(messages, axis=1)
        return np.concatenate(both, axis=-1)
    return (_mean_max_sums if rung == "sums" else _mean_max)(w, h, index)


def neighbour_max(h, index, impl="auto"):
    """y_nf = max_k h_if with i = index_nk;   h [M, F], index [N, K] with K ≥ 1, y [N, F].

    Tied maxima share the gradient. impl: "numpy", "kernel" or "auto". Raises ValueError if the
    index names a row that h does not have.
    """
    h, index = _checked("neighbour_max", index, h)
    if select("neighbour_max", impl, h.dtype, index.size * h.shape[1]) == "numpy":
        return np.max(h[index], axis=1)
    return _neighbour_max(h, index)


def squared_distances(x, index, impl="auto"):
    """d²_nk = Σ_s (x_ns - x_is)² with i = index_nk;   x [N, S], index [N, K], d² [N, K].

    impl: "numpy", "kernel" or "auto". Raises ValueError if the index has not one row for each point
    of x, or names a row that x does not have.
    """
    x, index = _checked("squared_distances", index, x)
    if len(index) != x.shape[0]:
        raise ValueError(
            f"squared_distances: expected an index of {x.shape[0]} rows, one for each point of x, "
            f"got {index.shape}"
        )
    if select("squared_distances", impl, x.dtype, index.size * x.shape[1]) == "numpy":
        return np.sum(np.square(x[:, None] - x[index]), axis=-1)
    return _squared_distances(x, index)


def pair_sums(p, q, index, impl="auto"):
    """y_nk = p_n + q_i with i = index_nk;   p, q [N, F], index [N, K], y [N, K, F].

    impl: "numpy", "kernel" or "auto". Raises ValueError if the shapes do not fit.
    """
    p, q, index = _checked("pair_sums", index, p, q)
    if p.shape != q.shape or len(index) != p.shape[0]:
        raise ValueError(
            f"pair_sums: expected p and q of one shape [{len(index)}, F], got {p.shape}, {q.shape}"
        )
    if select("pair_sums", impl, q.dtype, index.size * q.shape[1]) == "numpy":
        return p[:, None] + q[index]
    return _pair_sums(p, q, index)


def _checked(name, index, *arrays):
    """Arrays [N, F] as Tensors of one dtype, and the index as an array of rows of the last one."""
    arrays = of_one_dtype(*arrays)
    return *arrays, index_table(name, index, len(arrays[-1]))


def index_table(name, index, n):
    """The index as an array [N, K] of int64; ValueError if it does not name rows 0 to n - 1."""
    index = np.asarray(to_array(index))
    if index.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: expected whole numbers in the index, the numbers of rows, got {index.dtype}; "
            f"index.astype(int) makes them if that is meant"
        )
    index = np.require(index, np.int64, ["C", "W"])
    if index.ndim != 2 or index.shape[1] < 1:
        raise ValueError(f"{name}: expected an index [N, K] with K ≥ 1, got {index.shape}")
    if index.size and not 0 <= index.min() <= index.max() < n:
        raise ValueError(f"{name}: expected rows 0 to {n - 1}, got {index.min()} to {index.max()}")
    return index


def _contiguous(*arrays):
    return [np.require(x, None, ["C", "W"]) for x in arrays]


@fused()
def _mean_max(w, h, index):
    from tinyattn.kernels.fast import neighbours as kernel

    w, h = _contiguous(w, h)
    return kernel.mean_max(w, h, index), kernel.reverse_index(index, len(h))


@fused()
def _mean_max_sums(w, h, index):
    from tinyattn.kernels import neighbours as loops

    w, h = _contiguous(w, h)
    return loops.mean_max(w, h, index), None


@_mean_max_sums.defvjp
def _mean_max_sums_rule(g, y, saved, wanted, w, h, index):
    from tinyattn.kernels import neighbours as loops

    g, w, h = _contiguous(g, w, h)
    return (*loops.mean_max_backward(g, y, w, h, index), None)


@_mean_max.defvjp
def _mean_max_rule(g, y, reverse, wanted, w, h, index):
    from tinyattn.kernels.fast import neighbours as kernel

    g, w, h = _contiguous(g, w, h)
    return (*kernel.mean_max_backward(g, y, w, h, index, reverse, wanted[0]), None)


@fused()
def _neighbour_max(h, index):
    from tinyattn.kernels.fast import neighbours as kernel

    (h,) = _contiguous(h)
    y, tied = kernel.maximum(h, index)
    return y, (tied, kernel.reverse_index(index, len(h)))


@_neighbour_max.defvjp
def _neighbour_max_rule(g, y, saved, wanted, h, index):
    from tinyattn.kernels.fast import neighbours as kernel

    g, h = _contiguous(g, h)
    return kernel.maximum_backward(g, y, saved[0], h, index, saved[1]), None


@fused()
def _squared_distances(x, index):
    from tinyattn.kernels.fast import neighbours as kernel

    (x,) = _contiguous(x)
    return kernel.squared_distances(x, index), kernel.reverse_index(index, len(x))


@_squared_distances.defvjp
def _squared_distances_rule(g, y, reverse, wanted, x, index):
    from tinyattn.kernels.fast import neighbours as kernel

    g, x = _contiguous(g, x)
    return kernel.squared_distances_backward(g, x, index, reverse), None


@fused()
def _pair_sums(p, q, index):
    from tinyattn.kernels.fast import neighbours as kernel

    p, q = _contiguous(p, q)
    return kernel.pair_sums(p, q, index), kernel.reverse_index(index, len(q))


@_pair_sums.defvjp
def _pair_sums_rule(g, y, reverse, wanted, p, q, index):
    from tinyattn.kernels.fast import neighbours as kernel

    (g,) = _contiguous(g)
    return (*kernel.pair_sums_backward(g, reverse), None)
