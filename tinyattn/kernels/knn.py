"""The k nearest neighbours of every point as loops.

    d²_ij = Σ_d (x_id - x_jd)²,     the k smallest of row i in ascending order, ties by index j

x [N, D] holds the points of several clouds, one after the other: cloud c has the rows offsets[c] to
offsets[c + 1]. Neighbours are in the same cloud, and a point is its own neighbour. All numbers must
be finite, and each cloud has k points or more, or none.

Which points are nearest is a discrete choice, so it has no gradient. The distances have one, in
neighbours.py.

d² is summed in the order of the features, and a·b + c is rounded twice, never once as in an FMA
instruction (`jit_no_fma` instead of `jit`). All versions therefore round equally and have the same
ties.
"""

import numpy as np

from tinyattn.kernels import jit_no_fma


@jit_no_fma
def knn_loops(index, d2, x, offsets, k):
    """Go through all j for each i, and insert j into the list of the best where it belongs."""
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
                p = found - 1  # j moves ahead of all points that are farther; a tie stays behind
                while p > 0 and distance < d2[i, p - 1]:
                    index[i, p], d2[i, p] = index[i, p - 1], d2[i, p - 1]
                    p -= 1
                index[i, p], d2[i, p] = j, distance


def knn(x, offsets, k):
    """The rows of the neighbours [N, k], and their d² [N, k]."""
    index, d2 = np.empty((len(x), k), np.intp), np.empty((len(x), k), x.dtype)
    if k > 0:
        knn_loops(index, d2, x, offsets, k)
    return index, d2
