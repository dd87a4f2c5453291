"""The exact k nearest neighbours of every point, for many clouds at the same time.

    d²_ij = Σ_d (x_id - x_jd)²,     the k smallest of row i in ascending order, ties by index j

kernels/knn.py has these sums as loops, with the same arguments and the same results to the last
bit. In this file, the points of a cloud are sorted into the leaves of a k-d tree, which are boxes
of at most LEAF_SIZE neighbouring points. The search for all points of a leaf is done together, and
leaves that are too far away are skipped. With many features, hardly any box is too far away, so a
matrix product finds the candidates instead.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.engine.memory import aligned
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.fast.candidate_list import (
    INSERTION_PLACES,
    clear_lists,
    insert,
    prune,
    sort,
    tolerance,
    upper_bound,
)
from tinyattn.kernels.fast.knn_product import knn_by_product
from tinyattn.kernels.machine.compile import alwaysinline, helper_no_fma, jit_no_fma, noinline
from tinyattn.kernels.machine.compress import (
    compress_greater,
    compress_less_equal,
    mask_less_equal,
    trailing_zeros,
)
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.load_store import alloc_aligned, load, load_partial, store
from tinyattn.kernels.machine.simd import broadcast, maximum, width
from tinyattn.kernels.machine.thread_pool import parallel_for

# With up to this many features, the boxes of a k-d tree exclude most leaves. In a large cloud, they
# do so with more features, too.
MAX_TREE_FEATURES, MAX_TREE_FEATURES_OF_LARGE_CLOUDS, LARGE_CLOUD = 6, 8, 10_000
LEAF_SIZE = 64  # largest number of points in a leaf, a few vectors


class Forest(NamedTuple):
    """A k-d tree for each cloud, with 2^levels leaves. Node i has the children 2i + 1 and 2i + 2.

    The points of a leaf are stored one feature after the other: feature d of point t of leaf l is
    block[(l · D + d) · LEAF_SIZE + t], and rows[l · LEAF_SIZE + t] is its row in x. After the last
    point of a leaf, elements of `block` are inf and elements of `rows` are 0.
    """

    block: np.ndarray
    rows: np.ndarray  # int32
    size: np.ndarray  # [leaves]
    cloud: np.ndarray  # [leaves]
    levels: np.ndarray  # [clouds]
    leaf: np.ndarray  # [clouds], the first leaf of the cloud
    node: np.ndarray  # [clouds], its root
    low: np.ndarray  # [nodes, D], the box around the points of the node
    high: np.ndarray


def forest(x, offsets):
    """Return the `Forest` of x: each cloud is halved along its longest side, down to the leaves."""
    if x.shape[1] == 0:  # all points are at the same position
        x = np.zeros((len(x), 1), x.dtype)
    N, D = x.shape
    n = np.diff(offsets)
    # number of times that n is halved until LEAF_SIZE points are left: the binary digits of (n - 1)
    # // LEAF_SIZE
    levels = np.frexp(np.maximum(n - 1, 0) // LEAF_SIZE)[1].astype(np.int64)
    leaves = 1 << levels
    end = leaves.cumsum()
    first, node = end - leaves, 2 * (end - leaves) - np.arange(len(n))
    cloud = np.arange(len(n)).repeat(leaves)
    L, nodes = len(cloud), 2 * len(cloud) - len(n)
    f = Forest(
        aligned(L * D * LEAF_SIZE, x.dtype),
        np.zeros(L * LEAF_SIZE, np.int32),
        np.zeros(L, np.int64),
        cloud,
        levels,
        first,
        node,
        np.empty((nodes, D), x.dtype),
        np.empty((nodes, D), x.dtype),
    )
    # To keep all threads busy, the halves of a large cloud become separate items in some levels.
    order, shared = np.arange(N, dtype=np.int32), 3 if N > thresholds.KNN_SORT else 0
    for level in range(shared):
        parallel_for(split_clouds, len(n) << level, order, x, offsets, levels, level, level + 1)
    few = N <= thresholds.KNN_SORT
    parallel_for(split_clouds, len(n) << shared, order, x, offsets, levels, shared, 64, serial=few)
    parallel_for(fill_leaves, L, f, x, order, offsets, serial=few)
    compute_boxes(f, 0, len(n))
    return f


@helper_no_fma
def quickselect(key, rows, n, middle):
    """Reorder n keys and rows until the keys before index `middle` are ≤ the keys after it.

    Source: Hoare 1961, the algorithm FIND.
    """
    noinline()
    a, b = 0, n - 1
    while a < b:
        pivot = median_of_three(key[a], key[(a + b) // 2], key[b])
        i, j = a, b
        while i <= j:
            while key[i] < pivot:
                i += 1
            while pivot < key[j]:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if middle <= j:
            b = j
        elif middle >= i:
            a = i
        else:
            return


@helper_no_fma
def median_of_three(p, q, r):
    """Return the median of three numbers."""
    return max(min(p, q), min(max(p, q), r))


class Keys(NamedTuple):
    """Coordinates to select by, and their rows in x, with room for two more vectors."""

    key: np.ndarray
    rows: np.ndarray


MAX_PASSES = 48  # about two passes halve the number of keys, so this is enough for 16 million


@helper_no_fma
def quickselect_vectors(order, first, part, other, n, middle):
    """Do the same as `quickselect` for the n keys of `part`, with vectors.

    The reordered rows are written to order[first : first + n]. No branch depends on a single key:
    keys up to the pivot move to the front of `part`, and keys above the pivot to `other`, one
    vector at a time. The side without the middle is finished. Because keys keep their order, a bad
    pivot may be followed by more bad pivots. After MAX_PASSES passes, the rest is selected one by
    one.
    """
    W, passes = width(part.key), 0
    while n > 2 * W and passes < MAX_PASSES:
        passes += 1
        pivot = median_of_three(part.key[n // 4], part.key[n // 2], part.key[n // 4 * 3])
        low, high = 0, 0
        for i in range(0, n, W):
            v = load_partial(part.key, i, n, np.nan)  # nan is neither ≤ the pivot nor > it
            high += compress_greater(other.key, other.rows, high, v, part.rows, i, pivot)
            low += compress_less_equal(part.key, part.rows, low, v, part.rows, i, pivot)
        if high == 0:  # all keys are ≤ the pivot, because too many are equal to it
            break
        if middle < low:
            copy_rows(order, first + low, other.rows, high)
            n = low
        else:
            copy_rows(order, first, part.rows, low)
            part, other, n, first, middle = other, part, high, first + low, middle - low
    quickselect(part.key, part.rows, n, middle)
    copy_rows(order, first, part.rows, n)


@helper_no_fma
def copy_rows(order, first, rows, n):
    """Copy rows[:n] to order[first : first + n]."""
    for i in range(n):
        order[first + i] = rows[i]


@helper_no_fma
def widest_axis(x, order, first, last):
    """Return the feature in which a sample of the rows order[first : last] of x differs most."""
    side, most, step = 0, x.dtype.type(-1), (last - first + LEAF_SIZE - 1) // LEAF_SIZE
    for d in range(x.shape[1]):
        low = high = x[order[first], d]
        for i in range(first + step, last, step):
            v = x[order[i], d]
            low, high = min(low, v), max(high, v)
        if high - low > most:
            side, most = d, high - low
    return side


@jit_no_fma
def split_clouds(order, x, offsets, levels, level, until, team, first, last):
    """Halve parts first … last - 1 of this level, and the halves again, down to level `until`.

    Part p is number p mod 2^level of cloud ⌊p / 2^level⌋. In `order`, the points with the smaller
    coordinates along the widest axis of a part move before its middle.
    """
    if fork_join(team, first, last):
        return
    longest_cloud = 0
    for p in range(first, last):
        longest_cloud = max(longest_cloud, offsets[(p >> level) + 1] - offsets[p >> level])
    size = (longest_cloud >> level) + 1 + 2 * width(x)
    part = Keys(np.empty(size, x.dtype), np.empty(size, np.int32))
    other = Keys(np.empty(size, x.dtype), np.empty(size, np.int32))
    for p in range(first, last):
        c, own = p >> level, p & ((1 << level) - 1)
        n, o = offsets[c + 1] - offsets[c], offsets[c]
        for l in range(level, min(until, levels[c])):
            for m in range(own << (l - level), (own + 1) << (l - level)):
                a, b = o + (n * m >> l), o + (n * (m + 1) >> l)
                middle = o + (n * (2 * m + 1) >> (l + 1))
                side = widest_axis(x, order, a, b)
                for i in range(b - a):
                    row = order[a + i]
                    part.key[i], part.rows[i] = x[row, side], row
                quickselect_vectors(order, a, part, other, b - a, middle - a)


@jit_no_fma
def fill_leaves(f, x, rows, offsets, team, first, last):
    """Copy the points into their leaves, and compute the box of each leaf."""
    if fork_join(team, first, last):
        return
    D = x.shape[1]
    for l in range(first, last):
        c = f.cloud[l]
        n, level, own = offsets[c + 1] - offsets[c], f.levels[c], l - f.leaf[c]
        a, b = n * own >> level, n * (own + 1) >> level
        node = f.node[c] + (1 << level) - 1 + own
        f.size[l] = b - a
        for t in range(LEAF_SIZE):
            f.rows[l * LEAF_SIZE + t] = rows[offsets[c] + a + t] if t < b - a else 0
        for d in range(D):
            low, high = x.dtype.type(np.inf), x.dtype.type(-np.inf)
            for t in range(LEAF_SIZE):
                v = x.dtype.type(np.inf)
                if t < b - a:
                    v = x[rows[offsets[c] + a + t], d]
                    low, high = min(low, v), max(high, v)
                f.block[(l * D + d) * LEAF_SIZE + t] = v
            f.low[node, d], f.high[node, d] = low, high


@jit_no_fma
def compute_boxes(f, first, last):
    """Compute the box of each node that is not a leaf, which contains the boxes of its children."""
    for c in range(first, last):
        o = f.node[c]
        for node in range((1 << f.levels[c]) - 2, -1, -1):
            for d in range(f.low.shape[1]):
                f.low[o + node, d] = min(f.low[o + 2 * node + 1, d], f.low[o + 2 * node + 2, d])
                f.high[o + node, d] = max(f.high[o + 2 * node + 1, d], f.high[o + 2 * node + 2, d])


@helper_no_fma
def box_distance(f, a, b):
    """Return the squared distance between the boxes of the nodes a and b.

    It is rounded like d², so it is never larger than d² for a point in a and a point in b.
    """
    alwaysinline()
    total = f.low.dtype.type(0)
    for d in range(f.low.shape[1]):
        g = max(f.low[a, d] - f.high[b, d], f.low[b, d] - f.high[a, d])
        g = g if g > 0 else f.low.dtype.type(0)
        total += g * g
    return total


@helper_no_fma
def mask_within_limit(f, l, node, limit):
    """Return, as bits, for which points q of leaf l the box of `node` is within limit[q]."""
    alwaysinline()
    D, bits = f.low.shape[1], np.uint64(0)
    for t in range(0, f.size[l], width(limit)):
        total = broadcast(limit, limit.dtype.type(0))
        for d in range(D):
            v = load(f.block, (l * D + d) * LEAF_SIZE + t)
            g = maximum(f.low[node, d] - v, v - f.high[node, d])
            g = maximum(g, broadcast(limit, limit.dtype.type(0)))
            total = total + g * g
        bits |= mask_less_equal(total, load(limit, t)) << np.uint64(t)
    return bits


@helper_no_fma
def distances(f, l, q, other, t):
    """Return d² from point q of leaf l to the points t, t + 1, … of leaf `other`, as a vector."""
    alwaysinline()
    D = f.low.shape[1]
    total = broadcast(f.block, f.block.dtype.type(0))
    for d in range(D):
        v = load(f.block, (other * D + d) * LEAF_SIZE + t) - f.block[(l * D + d) * LEAF_SIZE + q]
        total = total + v * v
    return total


@helper_no_fma
def scan_leaf(dist, ids, o, n, f, l, q, other, limit):
    """Append the points of leaf `other` within `limit` of point q of leaf l, return the new n."""
    alwaysinline()
    for t in range(0, f.size[other], width(dist)):
        d2 = distances(f, l, q, other, t)
        n += compress_less_equal(dist, ids, o + n, d2, f.rows, other * LEAF_SIZE + t, limit)
    return n


@helper_no_fma
def initial_limits(limit, best, f, l, k):
    """Set, for each point of leaf l, a limit within which are k points of the leaf, or inf."""
    size = f.size[l]
    for t in range(0, size, width(limit)):
        clear_lists(best, k)
        for j in range(size if size >= k else 0):
            insert(best, k, j, distances(f, l, j, l, t))
        store(limit, t, upper_bound(best, k))
    for q in range(size, LEAF_SIZE):
        limit[q] = -1  # there is no point in this lane, so nothing is within the limit


@helper_no_fma
def max_limit(limit, size):
    """Return the largest of the first `size` limits."""
    largest = limit[0]
    for q in range(size):
        largest = max(largest, limit[q])
    return largest


@jit_no_fma
def search(index, d2, f, k, team, first, last):
    """Find the neighbours of all points of a leaf, in all leaves that may contain some.

    A task is one leaf. The tree is searched from the root down, the nearer child first. A node is
    skipped if the distance between its box and the box of the leaf exceeds the largest limit of the
    points. For a leaf, the limit of each point is used.
    """
    if fork_join(team, first, last):
        return
    slack = tolerance(k) + max(k // 2, 16)  # a list is pruned when it exceeds k by this many
    # A list gets at most LEAF_SIZE points from each leaf, and is pruned after each leaf except the
    # first. It has room for one more vector, because whole vectors are stored.
    list_size = max(k + slack, LEAF_SIZE) + LEAF_SIZE + width(f.block)
    dist = alloc_aligned(LEAF_SIZE * list_size, f.block)
    ids, n = np.empty(LEAF_SIZE * list_size, np.int32), np.zeros(LEAF_SIZE, np.int64)
    limit = alloc_aligned(LEAF_SIZE, f.block)
    best = alloc_aligned((k + INSERTION_PLACES) * width(f.block), f.block)
    stack, distance = np.empty(130, np.int64), alloc_aligned(130, f.block)
    highest = np.finfo(limit.dtype).max  # finite, because padding has the distance inf
    for l in range(first, last):
        c, size = f.cloud[l], f.size[l]
        root, inner = f.node[c], (1 << f.levels[c]) - 1  # nodes with an index >= inner are leaves
        own = l - f.leaf[c] + inner
        initial_limits(limit, best, f, l, k)
        n[:] = 0
        for q in range(size):
            o = q * list_size
            n[q] = scan_leaf(dist, ids, o, n[q], f, l, q, l, min(limit[q], highest))
        largest, top = max_limit(limit, size), 1
        stack[0], distance[0] = 0, 0
        while top > 0:
            top -= 1
            node = stack[top]
            if distance[top] > largest or node == own:
                continue
            if node < inner:
                a = box_distance(f, root + own, root + 2 * node + 1)
                b = box_distance(f, root + own, root + 2 * node + 2)
                swap = 1 if a < b else 0  # the nearer node comes last, because it is taken first
                stack[top + swap], distance[top + swap] = 2 * node + 1, a
                stack[top + 1 - swap], distance[top + 1 - swap] = 2 * node + 2, b
                top += 2
                continue
            bits = mask_within_limit(f, l, root + node, limit)
            if bits == 0:
                continue
            while bits != 0:
                q = trailing_zeros(bits)
                bits &= bits - np.uint64(1)
                o, other = q * list_size, f.leaf[c] + node - inner
                n[q] = scan_leaf(dist, ids, o, n[q], f, l, q, other, min(limit[q], highest))
                if n[q] > k + slack or limit[q] == np.inf:
                    n[q], limit[q] = prune(dist, ids, o, n[q], k, limit[q])
            largest = max_limit(limit, size)
        for q in range(size):
            o, row = q * list_size, f.rows[l * LEAF_SIZE + q]
            m = n[q]
            if m > 2 * k + width(dist):  # sorting this many takes longer than pruning them first
                m, _ = prune(dist, ids, o, m, k, limit[q])
            sort(dist, ids, o, m)
            for i in range(k):
                index[row, i], d2[row, i] = ids[o + i], dist[o + i]


def knn(x, offsets, k):
    """Return the k nearest neighbours of each point in its cloud, and their squared distances."""
    if k == 0 or len(x) == 0:
        return np.empty((len(x), k), np.int64), np.empty((len(x), k), x.dtype)
    large = np.diff(offsets).max() > LARGE_CLOUD
    if x.shape[1] > (MAX_TREE_FEATURES_OF_LARGE_CLOUDS if large else MAX_TREE_FEATURES):
        found = knn_by_product(x, offsets, k)
        if found is not None:
            return found
    index, d2 = np.empty((len(x), k), np.int64), np.empty((len(x), k), x.dtype)
    f = forest(x, offsets)
    parallel_for(search, len(f.size), index, d2, f, k)
    return index, d2
