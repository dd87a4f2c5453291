"""The k nearest neighbours of every point of a cloud, exact, for many clouds at once.

    d²_ij = Σ_d (x_id - x_jd)²,     the k smallest of row i in ascending order, ties by index j

kernels/knn.py has these sums as loops, with the same arguments and the same results to the last
bit. Here the points of a cloud are sorted into boxes of at most LEAF neighbours, the leaves of a
k-d tree; the points of one leaf ask together, and leaves that are too far away are skipped. With
many features boxes rule out nothing: then a matrix product finds the candidates.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.kernels import exact, exact_helper
from tinyattn.kernels.fast.knn_product import by_product
from tinyattn.kernels.fast.nearest import (
    BEST,
    clear,
    cut,
    enter,
    keep,
    keep_above,
    lowest_bit,
    not_above,
    reach,
    sort,
    spare_of,
)
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.simd import (
    broadcast,
    load,
    load_until,
    maximum,
    once,
    room,
    store,
    width,
)
from tinyattn.kernels.machine.thread_pool import share
from tinyattn.memory import aligned

LEAF = 64  # points of a leaf at most: a few vectors


class Forest(NamedTuple):
    """A k-d tree for each cloud, with 2^levels leaves; node i has the children 2i + 1 and 2i + 2.

    The points of a leaf stand side by side: feature d of point t of leaf l is
    block[(l · D + d) · LEAF + t], and rows[l · LEAF + t] is its row in x. Behind the last is inf.
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
    """Halve each cloud along its longest side, and the halves again, down to the leaves."""
    if x.shape[1] == 0:  # the points are all at the same place
        x = np.zeros((len(x), 1), x.dtype)
    N, D = x.shape
    n = np.diff(offsets)
    # so many times n is halved until LEAF are left: the digits of (n - 1) // LEAF in base 2
    levels = np.frexp(np.maximum(n - 1, 0) // LEAF)[1].astype(np.int64)
    leaves = 1 << levels
    end = leaves.cumsum()
    first, node = end - leaves, 2 * (end - leaves) - np.arange(len(n))
    cloud = np.arange(len(n)).repeat(leaves)
    L, nodes = len(cloud), 2 * len(cloud) - len(n)
    f = Forest(
        aligned(L * D * LEAF, x.dtype), np.zeros(L * LEAF, np.int32), np.zeros(L, np.int64),
        cloud, levels, first, node, np.empty((nodes, D), x.dtype), np.empty((nodes, D), x.dtype),
    )  # fmt: skip
    # all threads work on all levels: the halves of a big cloud are parts, from some level on
    order, shared = np.arange(N, dtype=np.int32), 3 if N > SMALL else 0
    for level in range(shared):
        share(halve, len(n) << level, order, x, offsets, levels, level, level + 1)
    few = N <= SMALL
    share(halve, len(n) << shared, order, x, offsets, levels, shared, 64, alone=few)
    share(fill, L, f, x, order, offsets, alone=few)
    enclose(f, 0, len(n))
    return f


SMALL = 2048  # so few points are sooner sorted than handed to other threads


@exact_helper
def select(key, rows, n, middle):
    """Reorder until no key before the middle is above one behind it (Hoare's FIND, 1961)."""
    once()
    a, b = 0, n - 1
    while a < b:
        pivot = middle_of(key[a], key[(a + b) // 2], key[b])
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


@exact_helper
def middle_of(p, q, r):
    """The middle one of three numbers."""
    return max(min(p, q), min(max(p, q), r))


class Part(NamedTuple):
    """Keys and the rows they belong to, with room for two vectors more."""

    key: np.ndarray
    rows: np.ndarray


PASSES = 48  # half of the keys are left after two passes or so: enough for 16 million


@exact_helper
def select_in_vectors(order, first, part, other, n, middle):
    """The same for the n keys of a part; their rows go to order[first], order[first + 1], …

    No branch depends on a single key: those up to the pivot move to the front of the part, those
    above it go to the other part, as many at a time as a vector has lanes. The side without the
    middle is done. Keys stay in their order, so a bad pivot may be followed by more of them:
    after too many passes the rest is done one by one.
    """
    W, passes = width(part.key), 0
    while n > 2 * W and passes < PASSES:
        passes += 1
        pivot = middle_of(part.key[n // 4], part.key[n // 2], part.key[n // 4 * 3])
        low, high = 0, 0
        for i in range(0, n, W):
            v = load_until(part.key, i, n, np.nan)  # nan is neither up to the pivot nor above it
            high += keep_above(other.key, other.rows, high, v, part.rows, i, pivot)
            low += keep(part.key, part.rows, low, v, part.rows, i, pivot)
        if high == 0:  # so many are equal to the pivot that nothing was won
            break
        if middle < low:
            copy_rows(order, first + low, other.rows, high)
            n = low
        else:
            copy_rows(order, first, part.rows, low)
            part, other, n, first, middle = other, part, high, first + low, middle - low
    select(part.key, part.rows, n, middle)
    copy_rows(order, first, part.rows, n)


@exact_helper
def copy_rows(order, first, rows, n):
    """order[first : first + n] = rows[:n]"""
    for i in range(n):
        order[first + i] = rows[i]


@exact_helper
def longest(x, order, first, last):
    """The feature in which the rows of x from order[first] on differ most, as some of them tell."""
    side, most, step = 0, x.dtype.type(-1), (last - first + LEAF - 1) // LEAF
    for d in range(x.shape[1]):
        low = high = x[order[first], d]
        for i in range(first + step, last, step):
            v = x[order[i], d]
            low, high = min(low, v), max(high, v)
        if high - low > most:
            side, most = d, high - low
    return side


@exact
def halve(order, x, offsets, levels, level, until, team, first, last):
    """Sort part after part of the clouds at this level: small coordinates before the middle, the
    others after. Then their halves, down to the level `until`.

    Part p is number p mod 2^level of cloud p / 2^level.
    """
    if together(team, first, last):
        return
    longest_cloud = 0
    for p in range(first, last):
        longest_cloud = max(longest_cloud, offsets[(p >> level) + 1] - offsets[p >> level])
    size = (longest_cloud >> level) + 1 + 2 * width(x)
    part = Part(np.empty(size, x.dtype), np.empty(size, np.int32))
    other = Part(np.empty(size, x.dtype), np.empty(size, np.int32))
    for p in range(first, last):
        c, own = p >> level, p & ((1 << level) - 1)
        n, o = offsets[c + 1] - offsets[c], offsets[c]
        for l in range(level, min(until, levels[c])):
            for m in range(own << (l - level), (own + 1) << (l - level)):
                a, b = o + (n * m >> l), o + (n * (m + 1) >> l)
                middle = o + (n * (2 * m + 1) >> (l + 1))
                side = longest(x, order, a, b)
                for i in range(b - a):
                    row = order[a + i]
                    part.key[i], part.rows[i] = x[row, side], row
                select_in_vectors(order, a, part, other, b - a, middle - a)


@exact
def fill(f, x, rows, offsets, team, first, last):
    """Copy the points into their leaves, and draw a box around each leaf."""
    if together(team, first, last):
        return
    D = x.shape[1]
    for l in range(first, last):
        c = f.cloud[l]
        n, level, own = offsets[c + 1] - offsets[c], f.levels[c], l - f.leaf[c]
        a, b = n * own >> level, n * (own + 1) >> level
        node = f.node[c] + (1 << level) - 1 + own
        f.size[l] = b - a
        for t in range(LEAF):
            f.rows[l * LEAF + t] = rows[offsets[c] + a + t] if t < b - a else 0
        for d in range(D):
            low, high = x.dtype.type(np.inf), x.dtype.type(-np.inf)
            for t in range(LEAF):
                v = x.dtype.type(np.inf)
                if t < b - a:
                    v = x[rows[offsets[c] + a + t], d]
                    low, high = min(low, v), max(high, v)
                f.block[(l * D + d) * LEAF + t] = v
            f.low[node, d], f.high[node, d] = low, high


@exact
def enclose(f, first, last):
    """The box of a node holds those of its children."""
    for c in range(first, last):
        o = f.node[c]
        for node in range((1 << f.levels[c]) - 2, -1, -1):
            for d in range(f.low.shape[1]):
                f.low[o + node, d] = min(f.low[o + 2 * node + 1, d], f.low[o + 2 * node + 2, d])
                f.high[o + node, d] = max(f.high[o + 2 * node + 1, d], f.high[o + 2 * node + 2, d])


@exact_helper
def gap(f, a, b):
    """The squared distance of the boxes of two nodes. Rounded like d², so never above one."""
    total = f.low.dtype.type(0)
    for d in range(f.low.shape[1]):
        g = max(f.low[a, d] - f.high[b, d], f.low[b, d] - f.high[a, d])
        g = g if g > 0 else f.low.dtype.type(0)
        total += g * g
    return total


@exact_helper
def who_reaches(f, l, node, limit):
    """The points of leaf l whose distance from the box of a node is within their limit, as bits."""
    D, bits = f.low.shape[1], np.uint64(0)
    for t in range(0, f.size[l], width(limit)):
        total = broadcast(limit, limit.dtype.type(0))
        for d in range(D):
            v = load(f.block, (l * D + d) * LEAF + t)
            g = maximum(f.low[node, d] - v, v - f.high[node, d])
            g = maximum(g, broadcast(limit, limit.dtype.type(0)))
            total = total + g * g
        bits |= not_above(total, load(limit, t)) << np.uint64(t)
    return bits


@exact_helper
def distances(f, l, q, other, t):
    """d² of point q of leaf l from the points t, t + 1, … of another leaf, as a vector."""
    D = f.low.shape[1]
    total = broadcast(f.block, f.block.dtype.type(0))
    for d in range(D):
        v = load(f.block, (other * D + d) * LEAF + t) - f.block[(l * D + d) * LEAF + q]
        total = total + v * v
    return total


@exact_helper
def look(found, names, o, n, f, l, q, other, limit):
    """Append the points of the leaf `other` within the limit of point q of leaf l; the new n."""
    for t in range(0, f.size[other], width(found)):
        d2 = distances(f, l, q, other, t)
        n += keep(found, names, o + n, d2, f.rows, other * LEAF + t, limit)
    return n


@exact_helper
def first_limits(limit, best, f, l, k):
    """For each point of leaf l, a limit that k points of it keep; inf if that is not known."""
    size = f.size[l]
    for t in range(0, size, width(limit)):
        clear(best, k)
        for j in range(size if size >= k else 0):
            enter(best, k, j, distances(f, l, j, l, t))
        store(limit, t, reach(best, k))
    for q in range(size, LEAF):
        limit[q] = -1  # no points, nothing within reach


@exact_helper
def worst_of(limit, size):
    """The highest limit."""
    worst = limit[0]
    for q in range(size):
        worst = max(worst, limit[q])
    return worst


@exact
def search(index, d2, f, k, team, first, last):
    """One task: the points of one leaf, together, against all leaves that may hold neighbours.

    From the root down, the nearer child first. A node is left out when its box is farther from
    the leaf's box than the worst limit of its points; a leaf also asks each point by itself.
    """
    if together(team, first, last):
        return
    slack = spare_of(k) + max(k // 2, 16)  # a list is cut when it has so many more than k
    # Its own leaf gives a list LEAF points at most, uncut; each further leaf as many, and then it
    # is cut. One vector more, because whole vectors are stored.
    room_of_list = max(k + slack, LEAF) + LEAF + width(f.block)
    found = room(LEAF * room_of_list, f.block)
    names, n = np.empty(LEAF * room_of_list, np.int32), np.zeros(LEAF, np.int64)
    limit, best = room(LEAF, f.block), room((k + BEST) * width(f.block), f.block)
    stack, distance = np.empty(130, np.int64), room(130, f.block)
    highest = np.finfo(limit.dtype).max  # below inf, at which the places behind the last point are
    for l in range(first, last):
        c, size = f.cloud[l], f.size[l]
        root, inner = f.node[c], (1 << f.levels[c]) - 1  # nodes from `inner` on are leaves
        own = l - f.leaf[c] + inner
        first_limits(limit, best, f, l, k)
        n[:] = 0
        for q in range(size):
            o = q * room_of_list
            n[q] = look(found, names, o, n[q], f, l, q, l, min(limit[q], highest))
        worst, top = worst_of(limit, size), 1
        stack[0], distance[0] = 0, 0
        while top > 0:
            top -= 1
            node = stack[top]
            if distance[top] > worst or node == own:
                continue
            if node < inner:
                a = gap(f, root + own, root + 2 * node + 1)
                b = gap(f, root + own, root + 2 * node + 2)
                swap = 1 if a < b else 0  # the nearer one last: it is taken first
                stack[top + swap], distance[top + swap] = 2 * node + 1, a
                stack[top + 1 - swap], distance[top + 1 - swap] = 2 * node + 2, b
                top += 2
                continue
            bits = who_reaches(f, l, root + node, limit)
            if bits == 0:
                continue
            while bits != 0:
                q = lowest_bit(bits)
                bits &= bits - np.uint64(1)
                o, other = q * room_of_list, f.leaf[c] + node - inner
                n[q] = look(found, names, o, n[q], f, l, q, other, min(limit[q], highest))
                if n[q] > k + slack or limit[q] == np.inf:
                    n[q], limit[q] = cut(found, names, o, n[q], k, limit[q])
            worst = worst_of(limit, size)
        for q in range(size):
            o, row = q * room_of_list, f.rows[l * LEAF + q]
            m = n[q]
            if m > 2 * k + width(found):  # sorting so many takes longer than leaving some out
                m, _ = cut(found, names, o, m, k, limit[q])
            sort(found, names, o, m)
            for i in range(k):
                index[row, i], d2[row, i] = names[o + i], found[o + i]


def knn(x, offsets, k):
    """The k nearest neighbours of each point in its cloud, and their squared distances."""
    if k == 0 or len(x) == 0:
        return np.empty((len(x), k), np.int64), np.empty((len(x), k), x.dtype)
    if x.shape[1] > (BOXES if np.diff(offsets).max() <= MANY else BOXES_OF_MANY):
        found = by_product(x, offsets, k)
        if found is not None:
            return found
    index, d2 = np.empty((len(x), k), np.int64), np.empty((len(x), k), x.dtype)
    f = forest(x, offsets)
    share(search, len(f.size), index, d2, f, k)
    return index, d2


MANY = 10_000
BOXES, BOXES_OF_MANY = 6, 8  # features up to which boxes rule out enough, also for many points
