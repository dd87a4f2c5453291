"""The k nearest neighbours of every point as loops.

    d²_ij = Σ_d (x_id - x_jd)²,     the k smallest of row i in ascending order, ties by index j

x [N, D] contains the points of several clouds, one after the other. Cloud c has the rows from
offsets[c] up to offsets[c + 1]. Neighbours are in the same cloud, and each point is one of its own
neighbours. All numbers must be finite, and a cloud that is not empty must have at least k points.

The choice of the nearest points is discrete and has no gradient. The gradient of the distances is
in neighbours.py.

The terms of d² are added in the order of the features, and a·b + c is rounded twice instead of once
as in an FMA instruction, so `jit_no_fma` is used instead of `jit`. Therefore, all versions have the
same rounding errors and the same ties.
"""

import numpy as np

from tinyattn.kernels import jit_no_fma


@jit_no_fma
def knn_loops(index, d2, x, offsets, k):
    """Write the k nearest neighbours of each i to index [N, k], and their d² to d2 [N, k].

    For each i, every j of its cloud is inserted into the sorted list of the k nearest so far.
    """
    for c in range(len(offsets) - 1):
        for i in range(offsets[c], offsets[c + 1]):
            found = 0
            for j in range(offsets[c], offsets[c + 1]):
                distance = x.dtype.type(0)
                for d in range(x.shape[1]):
                    distance += (x[i, d] - x[j, d]) * (x[i, d] - x[j, d])
                if found < k:
                    found += 1
                elif not distance < d2[i, k - 1]:
                    continue
                p = found - 1  # j moves before all points that are farther, but not before a tie
                while p > 0 and distance < d2[i, p - 1]:
                    index[i, p], d2[i, p] = index[i, p - 1], d2[i, p - 1]
                    p -= 1
                index[i, p], d2[i, p] = j, distance


def knn(x, offsets, k):
    """Return the indices of the k nearest neighbours of each point [N, k], and their d² [N, k]."""
    index, d2 = np.empty((len(x), k), np.intp), np.empty((len(x), k), x.dtype)
    if k > 0:
        knn_loops(index, d2, x, offsets, k)
    return index, d2
