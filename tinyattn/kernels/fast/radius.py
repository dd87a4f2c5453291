"""All pairs of points of a cloud that are not farther apart than a radius.

    j is a neighbour of i  if  d²_ij = Σ_d (x_id - x_jd)² ≤ r²

kernels/radius.py tries all pairs, with the same results. Here the k-d tree of knn.py is walked
twice, once to count the neighbours of each point and once to write them down. x [N, D] is ordered
by cloud (rows offsets[c] to offsets[c + 1]); the result is j and i of all pairs, ordered by i, then
by distance, ties by j. A point is its own neighbour.
"""

import numpy as np

from tinyattn.kernels import exact
from tinyattn.kernels.fast.knn import LEAF, forest, gap, look, who_reaches
from tinyattn.kernels.fast.nearest import lowest_bit, sort
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.simd import room, width
from tinyattn.kernels.machine.thread_pool import share


@exact
def search(f, r2, number, j_of, d2, starts, team, first, last):
    """One task: the points of one leaf against all leaves whose box is within the radius."""
    if together(team, first, last):
        return
    W = width(f.block)
    limit, stack = room(LEAF, f.block), np.empty(130, np.int64)
    found, names = room(LEAF + W, f.block), np.empty(LEAF + W, np.int32)
    for l in range(first, last):
        c, size = f.cloud[l], f.size[l]
        root, inner = f.node[c], (1 << f.levels[c]) - 1
        own = l - f.leaf[c] + inner
        limit[:] = -1  # no points, nothing within reach
        for q in range(size):
            limit[q] = r2
            number[f.rows[l * LEAF + q]] = 0
        stack[0], top = 0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if gap(f, root + own, root + node) > r2:
                continue
            if node < inner:
                stack[top], stack[top + 1] = 2 * node + 1, 2 * node + 2
                top += 2
                continue
            bits = who_reaches(f, l, root + node, limit)
            other = f.leaf[c] + node - inner
            while bits != 0:
                q = lowest_bit(bits)
                bits &= bits - np.uint64(1)
                row, none = f.rows[l * LEAF + q], np.int64(0)  # 0 alone is a type of its own
                n = look(found, names, none, none, f, l, q, other, r2)
                if len(j_of) > 0:
                    o = starts[row] + number[row]
                    for i in range(n):
                        j_of[o + i], d2[o + i] = names[i], found[i]
                number[row] += n
        if len(j_of) > 0:
            for q in range(size):
                row = f.rows[l * LEAF + q]
                sort(d2, j_of, starts[row], number[row])


def radius(x, offsets, r2):
    """The pairs (j, i) with d²_ij ≤ r², ordered by i, then by distance, ties by j."""
    if len(x) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    f = forest(x, offsets)
    r2 = min(r2, np.finfo(x.dtype).max)  # the places behind the last point of a leaf are at inf

    number, starts = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
    share(search, len(f.size), f, r2, number, np.zeros(0, np.int32), np.zeros(0, x.dtype), starts)
    starts[1:] = np.cumsum(number)[:-1]
    total = int(number.sum())
    j_of, d2 = np.empty(total, np.int32), np.empty(total, x.dtype)
    if total:
        share(search, len(f.size), f, r2, number, j_of, d2, starts)
    return j_of.astype(np.int64), np.repeat(np.arange(len(x)), number)
