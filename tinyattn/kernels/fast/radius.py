"""All pairs of points of a cloud that are not farther apart than a radius.

    j is a neighbour of i  if  d²_ij = Σ_d (x_id - x_jd)² ≤ r²

kernels/radius.py compares all pairs, with the same results. In this file, the k-d tree of knn.py is
searched twice, first to count the neighbours of each point and then to store them. x [N, D] is
sorted by cloud (rows offsets[c] to offsets[c + 1]). The result is j and i of all pairs, sorted by
i, then by distance, then by j. Each point is one of its own neighbours.
"""

import numpy as np

from tinyattn.kernels.fast.candidate_list import sort
from tinyattn.kernels.fast.knn import (
    LEAF_SIZE,
    box_distance,
    forest,
    mask_within_limit,
    scan_leaf,
)
from tinyattn.kernels.machine.compile import jit_no_fma
from tinyattn.kernels.machine.compress import trailing_zeros
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.load_store import alloc_aligned
from tinyattn.kernels.machine.simd import width
from tinyattn.kernels.machine.thread_pool import parallel_for


@jit_no_fma
def search(f, r2, number, j_of, d2, starts, team, first, last):
    """Compare the points of a leaf (a task) with all leaves that have a box within the radius.

    If j_of is empty, neighbours are only counted in `number`. Otherwise, they are also stored.
    """
    if fork_join(team, first, last):
        return
    W = width(f.block)
    limit, stack = alloc_aligned(LEAF_SIZE, f.block), np.empty(130, np.int64)
    dist, ids = alloc_aligned(LEAF_SIZE + W, f.block), np.empty(LEAF_SIZE + W, np.int32)
    for l in range(first, last):
        c, size = f.cloud[l], f.size[l]
        root, inner = f.node[c], (1 << f.levels[c]) - 1
        own = l - f.leaf[c] + inner
        limit[:] = -1  # there is no point in this lane, so nothing is within the limit
        for q in range(size):
            limit[q] = r2
            number[f.rows[l * LEAF_SIZE + q]] = 0
        stack[0], top = 0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if box_distance(f, root + own, root + node) > r2:
                continue
            if node < inner:
                stack[top], stack[top + 1] = 2 * node + 1, 2 * node + 2
                top += 2
                continue
            bits = mask_within_limit(f, l, root + node, limit)
            other = f.leaf[c] + node - inner
            while bits != 0:
                q = trailing_zeros(bits)
                bits &= bits - np.uint64(1)
                row, none = (
                    f.rows[l * LEAF_SIZE + q],
                    np.int64(0),
                )  # the constant 0 would have a different type in Numba
                n = scan_leaf(dist, ids, none, none, f, l, q, other, r2)
                if len(j_of) > 0:
                    o = starts[row] + number[row]
                    for i in range(n):
                        j_of[o + i], d2[o + i] = ids[i], dist[i]
                number[row] += n
        if len(j_of) > 0:
            for q in range(size):
                row = f.rows[l * LEAF_SIZE + q]
                sort(d2, j_of, starts[row], number[row])


def radius(x, offsets, r2):
    """Return the pairs (j, i) with d²_ij ≤ r², ordered by i, then by distance, ties by j."""
    if len(x) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    f = forest(x, offsets)
    r2 = min(r2, np.finfo(x.dtype).max)  # finite, because padding has the distance inf

    number, starts = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
    no_ids, no_distances = np.zeros(0, np.int32), np.zeros(0, x.dtype)
    parallel_for(search, len(f.size), f, r2, number, no_ids, no_distances, starts)
    starts[1:] = np.cumsum(number)[:-1]
    total = int(number.sum())
    j_of, d2 = np.empty(total, np.int32), np.empty(total, x.dtype)
    if total:
        parallel_for(search, len(f.size), f, r2, number, j_of, d2, starts)
    return j_of.astype(np.int64), np.repeat(np.arange(len(x)), number)
