"""Edges to the k nearest points or to all points within a radius.

A small change of x does not change which points are neighbours, so this choice has no gradient. The
results are therefore plain arrays, with the indices of points and their distances. A layer that
weights its neighbours computes their distances again, as a Tensor.
"""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.graph.graph import Graph, check_not_negative
from tinyattn.graph.validation import check_batch
from tinyattn.ops import knn as ops


def knn(x, k, batch=None, impl="auto"):
    """Find the k nearest neighbours of every point i among all points j.

        d²_ij = Σ_d (x_id - x_jd)², in ascending order

    A point is its own neighbour, at distance 0. Points at equal distances are ordered by their
    index, so another point at the same position may come before it.

    Args:
        x       points [N, D]
        k       number of neighbours, including the point itself
        batch   index of each point's cloud [N], whole numbers, or None for a single cloud.
                Neighbours are in the same cloud
        impl    which implementation to use. All results agree to the last bit
                "sums"    every pair, one after the other
                "numpy"   a matrix product finds candidates, and their distances are computed
                          exactly
                "kernel"  compiled code that searches for all points of a box together and skips
                          boxes that are too far away
                "auto"    "kernel" where it is faster, otherwise "numpy"

    Returns:
        (index [N, k] int, squared distances [N, k]), plain arrays, with the nearest first. The
        indices are rows of x

    Raises:
        ValueError: x is not a matrix of real numbers, a coordinate is not finite or too large to be
            squared, or batch is not N whole numbers
        ValueError: k is not a whole number >= 0, a cloud has fewer than k points, or impl is
            unknown

    Source: slides K44, K50.
    """
    return _knn("knn", x, _count("knn", k), batch, impl)


def _knn(name, x, k, batch, impl, besides=0):
    """Run `knn`. If the caller removes the point itself, besides=1 corrects the k in the error."""
    x, offsets, order = _clouds(name, x, batch)
    few = (offsets[1:] - offsets[:-1]).min(initial=k)
    if few < k:
        cloud = "the cloud has" if batch is None else "the smallest cloud of the batch has"
        own = "and only loop=True counts" if besides else "including"
        raise ValueError(
            f"{name}: expected k <= {few - besides}, because {cloud} only {few} "
            f"point{'' if few == 1 else 's'}, {own} the point itself, got k={k - besides}"
        )
    index, d2 = ops.knn(x, offsets, k, impl=impl, name=name)
    if order is None:
        return index, d2
    result = np.empty_like(index), np.empty_like(d2)
    result[0][order], result[1][order] = order[index], d2
    return result


def knn_graph(x, k, batch=None, loop=False, impl="auto"):
    """Return the graph with edges from the k nearest neighbours to each point, the nearest first.

    Args:
        x       points [N, D]
        k       number of neighbours of each point. Each cloud needs more than k points, or with
                loop=True at least k
        batch   index of each point's cloud [N], whole numbers >= 0, or None for a single cloud.
                Neighbours are in the same cloud
        loop    True: count the point itself as one of the k neighbours
        impl    "sums" (loops over all pairs), "numpy" (a matrix product and exact distances),
                "kernel" (compiled) or "auto" (the faster of "numpy" and "kernel")

    Returns:
        a `Graph` without features, with its edges ordered by receiver

    Raises:
        ValueError: x is not a matrix of real numbers, a coordinate is not finite or too large to be
            squared, or batch is not N whole numbers >= 0
        ValueError: k is not a whole number >= 0, a cloud has too few points, or impl is unknown
    """
    x = to_array(x)
    k = _count("knn_graph", k)
    besides = 0 if loop else 1
    index, _ = _knn("knn_graph", x, k + besides, batch, impl, besides)
    N = len(index)
    if not loop:
        # Other points at the same position may come before the point itself, or even replace it.
        own = index == np.arange(N)[:, None]
        own[:, -1] |= ~own.any(axis=1)
        index = index[~own]
    return _graph("knn_graph", x, index.reshape(-1), np.repeat(np.arange(N), k), batch)


def radius_graph(x, r, batch=None, loop=False, impl="auto"):
    """Return the graph in which each point receives edges from all points within distance r.

    The edges of a point begin with the nearest one.

    Args:
        x       points [N, D]
        r       largest distance of a neighbour, r >= 0
        batch   index of each point's cloud [N], whole numbers >= 0, or None for a single cloud.
                Neighbours are in the same cloud
        loop    True: add an edge from each point to itself
        impl    "sums" (loops over all pairs), "numpy" (array algebra), "kernel" (compiled) or
                "auto" (the faster of "numpy" and "kernel")

    Returns:
        a `Graph` without features, with its edges ordered by receiver and then by distance

    Raises:
        ValueError: x is not a matrix of real numbers, a coordinate is not finite or too large to be
            squared, or batch is not N whole numbers >= 0
        ValueError: r is not a number >= 0, or impl is unknown

    Source: slide K43.
    """
    x, offsets, order = _clouds("radius_graph", to_array(x), batch)
    given, r = r, np.asarray(to_array(r))
    if r.ndim or r.dtype.kind not in "fiu" or not r >= 0:
        raise ValueError(f"radius_graph: r must be one number >= 0 (a radius), got r={given!r}")
    r2 = x.dtype.type(r) * x.dtype.type(r)
    src, dst = ops.radius(x, offsets, r2, impl=impl)
    if not loop:
        src, dst = src[src != dst], dst[src != dst]
    if order is not None:
        src, dst = order[src], order[dst]
        by_centre = np.argsort(dst, kind="stable")
        src, dst = src[by_centre], dst[by_centre]
    return _graph("radius_graph", to_array(x), src, dst, batch)


def knn_edges(x, k, batch):
    """Return the edges from the k nearest neighbours to each point, as senders and receivers.

    In a cloud with at most k points, all other points are neighbours. No point is its own
    neighbour.

    Args:
        x       points [N, D]
        k       number of neighbours of each point
        batch   index of each point's cloud [N], whole numbers in ascending order

    Returns:
        (sender [E], receiver [E]), arrays of whole numbers, ordered by receiver. In a cloud with
        more than k points, the senders of a receiver are in order of distance, and otherwise in
        order of index

    Raises:
        ValueError: x is not a matrix of real numbers, a coordinate is not finite or too large to be
            squared, batch is not N whole numbers in ascending order, or k is not a whole number
            >= 0
    """
    k, given = _count("knn_edges", k), batch
    x, _, order = _clouds("knn_edges", x, np.zeros(len(x), np.intp) if batch is None else batch)
    batch, N = np.asarray(to_array(given)), len(x)
    if given is None or order is not None:
        got = f"None. For a single cloud, pass np.zeros({N}, int)"
        if order is not None:
            e = int(np.argmax(batch[1:] < batch[:-1]))
            got = f"{batch[e]} before {batch[e + 1]} at index {e}. Sort x and batch with "
            got += "order = np.argsort(batch)"
        raise ValueError(
            f"knn_edges: batch must be {N} whole numbers in ascending order, the cloud of each "
            f"point, got {got}"
        )
    _, start, size = np.unique(batch, return_index=True, return_counts=True)
    pairs = []
    large = np.repeat(size > k, size)
    if large.any():
        rows = np.flatnonzero(large)
        index, _ = knn(x[rows], k + 1, batch[rows])
        own = index == np.arange(len(rows))[:, None]
        # with many points at one position, the point itself may be missing
        own[:, -1] |= ~own.any(axis=1)
        pairs.append((rows[index[~own]], np.repeat(rows, k)))
    # in all clouds of n points, every point is a neighbour of every other
    for n in np.unique(size[size <= k]):
        members = start[size == n][:, None, None] + np.arange(n)[:, None]  # [clouds, n, 1]
        sender = np.broadcast_to(members.swapaxes(1, 2), (len(members), n, n))
        receiver = np.broadcast_to(members, (len(members), n, n))
        others = sender != receiver
        pairs.append((sender[others], receiver[others]))
    nothing = np.zeros(0, np.intp)
    sender, receiver = (
        np.concatenate(part) for part in zip((nothing, nothing), *pairs, strict=True)
    )
    order = np.argsort(receiver, kind="stable")
    return sender[order], receiver[order]


def group_by_k(name, N, k, batch, strict=False):
    """Group the points by the number of neighbours that they can have in their cloud.

    Args:
        name     layer that is called, for the error message
        N        number of points
        k        number of neighbours
        batch    index of each point's cloud [N], or None for a single cloud
        strict   True: all points form one group with k neighbours

    Returns:
        a list of groups (rows, number), where rows are the points whose cloud gives them this
        number of neighbours, which is min(k, size of the cloud). rows is None if it contains all
        points

    Raises:
        ValueError: batch is not N whole numbers, or strict is True and a cloud has fewer than k
            points
    """
    batch = None if batch is None else check_batch(name, batch, N)
    if strict:
        smallest = N if batch is None else np.unique(batch, return_counts=True)[1].min(initial=N)
        if smallest < k:
            cloud = "the cloud has" if batch is None else "the smallest cloud of the batch has"
            raise ValueError(
                f"{name}: expected k <= {smallest}, because strict=True and {cloud} only "
                f"{smallest} point{'' if smallest == 1 else 's'}, got k={k}. Use strict=False or a "
                "smaller k"
            )
    if strict or k == 0:
        return [(None, k)]
    if batch is None:
        return [(None, min(k, N))]
    if not np.any(batch[1:] < batch[:-1]) and np.diff(_offsets(batch)).min(initial=k) >= k:
        return [(None, k)]
    _, cloud, size = np.unique(batch, return_inverse=True, return_counts=True)
    number = np.minimum(size, k)
    if len(set(number.tolist())) == 1:
        return [(None, int(number[0]))]
    return [(np.flatnonzero(number[cloud] == n), int(n)) for n in np.unique(number)]


def split_clouds(batch, N, name="split_clouds"):
    """Return a table of the points of each cloud, and the cloud of each point.

    Args:
        batch   id of each point's cloud [N], whole numbers, or None for a single cloud
        N       number of points
        name    function or layer that is called, for the error message

    Returns:
        (points of each cloud [B, largest number of points], padded with -1, cloud of each
        point [N]). The B clouds are numbered from 0 in ascending order of their ids

    Raises:
        ValueError: batch is not N whole numbers
    """
    if batch is None:
        return np.arange(N)[None], np.zeros(N, np.intp)
    batch = check_batch(name, batch, N)
    _, cloud, size = np.unique(batch, return_inverse=True, return_counts=True)
    order = np.argsort(cloud, kind="stable")
    table = np.full((len(size), size.max(initial=0)), -1)
    table[np.arange(table.shape[1]) < size[:, None]] = order
    return table, cloud


def _graph(name, x, src, dst, batch):
    batch = None if batch is None else np.asarray(to_array(batch))
    if batch is not None:
        check_not_negative(name, batch)
    return Graph(src, dst, len(x), batch=batch)


# ---------------------------------------------------------------- checks


def _clouds(name, x, batch):
    """Return x ordered by cloud, the offsets of the clouds, and the order (None if sorted)."""
    given, x = x, np.asarray(to_array(x))
    if x.ndim != 2:
        advice = ". For points on a line, pass x[:, None]" if x.ndim == 1 else ""
        got = f"shape {x.shape}" if x.ndim else type(given).__name__
        raise ValueError(f"{name}: x must be points [N, D], got {got}{advice}")
    if len(x) > np.iinfo(np.int32).max:  # kernels count rows with 32 bits
        raise ValueError(
            f"{name}: expected fewer than 2^31 points, got {len(x)}. Split them into several clouds"
        )
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{name}: x must consist of real numbers, got {x.dtype}")
    x = np.require(x, np.result_type(x.dtype, np.float32), ["C", "W"])
    if x.dtype.itemsize > 8:
        raise ValueError(f"{name}: x must be float32 or float64, got {x.dtype}")
    low, high = float(x.min(initial=0)), float(x.max(initial=0))
    if not (np.isfinite(low) and np.isfinite(high)):
        bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
        raise ValueError(
            f"{name}: x is NaN or infinite in {len(bad)} of {len(x)} points, first at index "
            f"{bad[0]}. Remove these points, or look for NaN in the weights if x comes from a layer"
        )
    largest = max(-low, high)
    if 4 * largest * largest * max(x.shape[1], 1) > float(np.finfo(x.dtype).max) / 4:
        raise ValueError(
            f"{name}: x has coordinates up to {largest:.1e}, whose squared distances do not fit "
            f"into {x.dtype}. Scale the points down"
        )
    if batch is None:
        return x, np.array([0, len(x)] if len(x) else [0]), None  # without points there is no cloud
    batch, order = check_batch(name, batch, len(x)), None
    if np.any(batch[1:] < batch[:-1]):
        order = np.argsort(batch, kind="stable")
        x, batch = x[order], batch[order]
    return x, _offsets(batch), order


def _offsets(batch):
    """Return an array of the starts of all clouds and, at its end, the number of points.

    `batch` must be in ascending order.
    """
    starts = np.flatnonzero(batch[1:] != batch[:-1]) + 1
    return np.unique(np.concatenate([[0], starts, [len(batch)]]))


def _count(name, k):
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or k < 0:
        got = repr(k) if np.ndim(k) == 0 else f"an array of shape {np.shape(k)}"
        raise ValueError(f"{name}: k must be a whole number >= 0, got {got}")
    return int(k)
