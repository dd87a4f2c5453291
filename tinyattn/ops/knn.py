"""The k nearest neighbours of points, and all neighbours within a radius.

The arguments are arrays that have been checked. x [N, D] is ordered by cloud, and cloud c has the
rows from offsets[c] to offsets[c + 1] - 1. The neighbours are a discrete choice, so they have no
gradient. All implementations agree to the last bit.
"""

import numpy as np

from tinyattn import kernels
from tinyattn.kernels import fast
from tinyattn.ops.backends import operation

ROOM = 1 << 22  # numbers in a block of rows, so that the N×N distances are never stored together


@operation("knn", work=lambda x, offsets, k: len(x))
def knn(x, offsets, k):
    """Return the k nearest points of the same cloud for each point, the nearest first.

    Equal distances are ordered by row. A matrix product finds candidates, whose distances are then
    computed exactly.

    Args:
        x         points [N, D], ordered by cloud
        offsets   row at which each cloud begins, followed by N
        k         number of neighbours. Each point is one of its own

    Returns:
        (index [N, k], d² [N, k]), the rows of the neighbours in x and their squared distances
    """
    index, d2 = np.empty((len(x), k), np.intp), np.empty((len(x), k), x.dtype)
    if k == 0:
        return index, d2
    for first, rows, roughly, margin in _rough_distances(x, offsets):
        limit = np.partition(roughly, k - 1, axis=1)[:, k - 1 : k] + margin
        i, j, exactly = _exact(x, rows, first, roughly <= limit)
        best = np.lexsort((j, exactly, i))
        number = np.bincount(i - rows[0], minlength=len(rows))
        best = best[(np.cumsum(number) - number)[:, None] + np.arange(k)]  # [rows, k]
        index[rows], d2[rows] = j[best], exactly[best]
    return index, d2


knn.implement("sums", lambda x, offsets, k: kernels.knn.knn(x, offsets, k))
knn.implement("kernel", lambda x, offsets, k: fast.knn.knn(x, offsets, k))


@operation("radius_graph", work=lambda x, offsets, r2: len(x))
def radius(x, offsets, r2):
    """Return all pairs of points of the same cloud whose squared distance is at most r2.

    x and offsets are those of `knn`. The result is (j [E], i [E]), ordered by i, then by distance,
    then by j. It contains each point with itself.
    """
    src, dst = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for first, rows, roughly, margin in _rough_distances(x, offsets):
        i, j, exactly = _exact(x, rows, first, roughly <= r2 + margin)
        order = np.lexsort((j, exactly, i))
        order = order[exactly[order] <= r2]
        src.append(j[order])
        dst.append(i[order])
    return np.concatenate(src), np.concatenate(dst)


radius.implement("sums", lambda x, offsets, r2: kernels.radius.radius(x, offsets, r2))
radius.implement("kernel", lambda x, offsets, r2: fast.radius.radius(x, offsets, r2))


def _rough_distances(x, offsets):
    """Yield |x_i|² + |x_j|² - 2 x_i·x_j in blocks, with twice the largest rounding error.

    Where x_i and x_j are close, large numbers cancel and few digits remain correct. The loss is
    smallest for points around 0, so the mean is subtracted first. The function yields (first row of
    the cloud, rows of the block, distances, margin).
    """
    for a, b in zip(offsets[:-1], offsets[1:], strict=True):
        if b == a:
            continue
        z = x[a:b] - x[a:b].mean(axis=0)
        square = np.sum(z * z, axis=1)
        info = np.finfo(x.dtype)  # near 0, rounding errors are as large as the smallest number
        margin = 8 * (x.shape[1] + 8) * (info.eps * square.max() + info.smallest_subnormal)
        step = max(1, ROOM // (b - a))
        for start in range(0, b - a, step):
            stop = min(start + step, b - a)
            roughly = square[start:stop, None] + square - 2 * (z[start:stop] @ z.T)
            yield a, np.arange(a + start, a + stop), roughly, margin


def _exact(x, rows, first, wanted):
    """Return the pairs (i, j) of a mask, and Σ_d (x_id - x_jd)² summed in the order of d.

    The mask `wanted` has a row for each of the `rows` of x, and its columns are the points of a
    cloud, which begins at the row `first` of x.
    """
    i, j = np.nonzero(wanted)
    i, j = i + rows[0], j + first
    total = np.zeros(len(i), x.dtype)
    for d in range(x.shape[1]):
        difference = x[i, d] - x[j, d]
        total += difference * difference
    return i, j, total
