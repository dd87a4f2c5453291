"""Operations on the K neighbours of each point, given by a table index [N, K].

The arguments are checked and have one dtype (see `graph/neighbours.py`). The kernels never store
the N·K·F messages. For the backward pass, they keep the reverse of the table, which lists for each
point all points that have it as a neighbour.
"""

import numpy as np

from tinyattn import kernels
from tinyattn.kernels import fast
from tinyattn.ops import reduce
from tinyattn.ops.backends import operation
from tinyattn.ops.elementwise import add, multiply, square, subtract
from tinyattn.ops.index import gather
from tinyattn.ops.shape import concatenate, expand_dims


def _contiguous(*arrays):
    return [np.require(x, None, ["C", "W"]) for x in arrays]


# ---------------------------------------------------------------- mean and maximum of messages


def _messages(w, h, index):
    return index.size * h.shape[1] if w.dtype == h.dtype else 0


@operation("mean_max", work=_messages)
def mean_max(w, h, index):
    """Return GravNet's messages y_n = [1/K Σ_k w_nk h_j, max_k w_nk h_j] with j = index_nk.

    Equal maxima share the gradient. Source: slide K48.

    Args:
        w       weight of each neighbour [N, K]
        h       features of all points [M, F]
        index   rows in h of the K neighbours of each point [N, K]

    Returns:
        y [N, 2F], the mean and the maximum concatenated
    """
    messages = multiply(expand_dims(w, 2), gather(h, index))  # [N, K, F]
    return concatenate((reduce.mean(messages, 1), reduce.max(messages, 1)), -1)


def _loops(w, h, index):
    w, h = _contiguous(w, h)
    return kernels.neighbours.mean_max(w, h, index), None


def _loops_backward(g, y, residuals, needs_grad, w, h, index):
    g, w, h = _contiguous(g, w, h)
    return (*kernels.neighbours.mean_max_backward(g, y, w, h, index), None)


def _mean_max_kernel(w, h, index):
    w, h = _contiguous(w, h)
    return fast.neighbours.mean_max(w, h, index), fast.neighbours.reverse_index(index, len(h))


def _mean_max_kernel_backward(g, y, reverse, needs_grad, w, h, index):
    g, w, h = _contiguous(g, w, h)
    inputs = g, y, w, h, index, reverse, needs_grad[0]
    return (*fast.neighbours.mean_max_backward(*inputs), None)


mean_max.implement("sums", _loops, _loops_backward)
mean_max.implement("kernel", _mean_max_kernel, _mean_max_kernel_backward)


# ---------------------------------------------------------------- the maximum alone


@operation("neighbour_max", work=lambda h, index: index.size * h.shape[1])
def neighbour_max(h, index):
    """Return the maximum over the neighbours, y_nf = max_k h_if with i = index_nk, y [N, F].

    h [M, F] are the features of all points, and index [N, K] contains the rows of the neighbours
    in h. Equal maxima share the gradient.
    """
    return reduce.max(gather(h, index), 1)


def _neighbour_max_kernel(h, index):
    (h,) = _contiguous(h)
    y, tied = fast.neighbours.maximum(h, index)
    return y, (tied, fast.neighbours.reverse_index(index, len(h)))


def _neighbour_max_kernel_backward(g, y, residuals, needs_grad, h, index):
    g, h = _contiguous(g, h)
    tied, reverse = residuals
    return fast.neighbours.maximum_backward(g, y, tied, h, index, reverse), None


neighbour_max.implement("kernel", _neighbour_max_kernel, _neighbour_max_kernel_backward)


# ---------------------------------------------------------------- distances


@operation("squared_distances", work=lambda x, index: index.size * x.shape[1])
def squared_distances(x, index):
    """Return the squared distances d² [N, K], d²_nk = Σ_s (x_ns - x_is)² with i = index_nk.

    x [N, S] are the points, and index [N, K] contains the rows of their neighbours in x.
    """
    return reduce.sum(square(subtract(expand_dims(x, 1), gather(x, index))), -1)


def _squared_distances_kernel(x, index):
    (x,) = _contiguous(x)
    return fast.neighbours.squared_distances(x, index), fast.neighbours.reverse_index(index, len(x))


def _squared_distances_kernel_backward(g, y, reverse, needs_grad, x, index):
    g, x = _contiguous(g, x)
    return fast.neighbours.squared_distances_backward(g, x, index, reverse), None


squared_distances.implement("kernel", _squared_distances_kernel, _squared_distances_kernel_backward)


# ---------------------------------------------------------------- sums of pairs


@operation("pair_sums", work=lambda p, q, index: index.size * q.shape[1])
def pair_sums(p, q, index):
    """Return the sums y [N, K, F], y_nk = p_n + q_j with j = index_nk.

    p [N, F] belongs to the receiving points and q [M, F] to their neighbours, whose rows in q are
    in index [N, K].
    """
    return add(expand_dims(p, 1), gather(q, index))


def _pair_sums_kernel(p, q, index):
    p, q = _contiguous(p, q)
    return fast.neighbours.pair_sums(p, q, index), fast.neighbours.reverse_index(index, len(q))


def _pair_sums_kernel_backward(g, y, reverse, needs_grad, p, q, index):
    (g,) = _contiguous(g)
    return (*fast.neighbours.pair_sums_backward(g, reverse), None)


pair_sums.implement("kernel", _pair_sums_kernel, _pair_sums_kernel_backward)
