"""All pairs of points of a cloud that are not farther apart than a radius, as loops.

    j is a neighbour of i  if  d²_ij = Σ_d (x_id - x_jd)² ≤ r²

x [N, D] is sorted by cloud (rows offsets[c] to offsets[c + 1]). Each point is one of its own
neighbours.
"""

import numpy as np

from tinyattn.kernels import jit_no_fma


@jit_no_fma
def count(x, offsets, r2):
    """Return the number of pairs with d² ≤ r2, which include each point with itself."""
    n = 0
    for c in range(len(offsets) - 1):
        for i in range(offsets[c], offsets[c + 1]):
            for j in range(offsets[c], offsets[c + 1]):
                distance = x.dtype.type(0)
                for d in range(x.shape[1]):
                    distance += (x[i, d] - x[j, d]) * (x[i, d] - x[j, d])
                n += distance <= r2
    return n


@jit_no_fma
def radius_loops(j_of, i_of, d2, x, offsets, r2):
    """Write j, i and d² of all pairs to j_of, i_of and d2, sorted by i, then by d², then by j."""
    n = 0
    for c in range(len(offsets) - 1):
        for i in range(offsets[c], offsets[c + 1]):
            first = n
            for j in range(offsets[c], offsets[c + 1]):
                distance = x.dtype.type(0)
                for d in range(x.shape[1]):
                    distance += (x[i, d] - x[j, d]) * (x[i, d] - x[j, d])
                if distance <= r2:
                    p = n  # j moves ahead of all neighbours of i that are farther
                    while p > first and distance < d2[p - 1]:
                        j_of[p], d2[p] = j_of[p - 1], d2[p - 1]
                        p -= 1
                    j_of[p], d2[p], i_of[n] = j, distance, i
                    n += 1


def radius(x, offsets, r2):
    """Return the j and the i of all pairs as two arrays, sorted by i, then by distance, then by j.

    r2 is the square of the radius.
    """
    n = count(x, offsets, r2)
    j_of, i_of, d2 = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, x.dtype)
    radius_loops(j_of, i_of, d2, x, offsets, r2)
    return j_of, i_of
