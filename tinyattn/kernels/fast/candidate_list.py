"""A list of the k nearest candidates so far, designed for vectors: append, and prune occasionally.

Inserting each candidate at its position needs a branch that the processor predicts wrongly half of
the time. Here, every candidate within the limit of a list is appended to it, without a branch. The
first limits are found for many points together, one in each lane, from a few candidates. When a
list has grown long, a smaller limit is found that still keeps k of its entries, and the others are
removed. Only the few that remain at the end are sorted, in registers if they fit.

A list is dist[o : o + n] and ids[o : o + n]: squared distances, and their rows of x. There must be
room for one vector after its end.
"""

import numpy as np

from tinyattn.kernels.machine.compile import helper_no_fma, noinline
from tinyattn.kernels.machine.compress import compress_less_equal, count_less_equal
from tinyattn.kernels.machine.load_store import load, store
from tinyattn.kernels.machine.simd import broadcast, hmax, maximum, minimum, width
from tinyattn.kernels.machine.sorting_network import fits_in_registers, sort_in_registers

INSERTION_PLACES = 16  # largest number of elements of a sorted list


@helper_no_fma
def insertion_lists(k):
    """Return the number of sorted lists that k candidates need, and the length of each list."""
    number = max((k + INSERTION_PLACES - 1) // INSERTION_PLACES, 1)
    return number, (k + number - 1) // number


@helper_no_fma
def clear_lists(best, k):
    """Empty the sorted lists `best` of several points. A position has one lane for each point.

    If k is larger than INSERTION_PLACES, each point has several lists, which take turns.
    """
    number, places = insertion_lists(k)
    for i in range(0, number * places * width(best), width(best)):
        store(best, i, broadcast(best, best.dtype.type(np.inf)))


@helper_no_fma
def insert(best, k, j, v):
    """Insert candidate j, at the distances v from the points, into their sorted lists `best`.

    At each position, the nearer of two candidates stays and the farther one moves to the next
    position. The farthest candidate is dropped after the last position. No branch depends on the
    distances.
    """
    number, places = insertion_lists(k)
    first = j % number * places * width(best)
    for i in range(first, first + places * width(best), width(best)):
        here = load(best, i)
        store(best, i, minimum(here, v))
        v = maximum(here, v)


@helper_no_fma
def upper_bound(best, k):
    """Return an upper bound of each point's k-th smallest distance, or inf if a list has room."""
    number, places = insertion_lists(k)
    last = (places - 1) * width(best)
    limit = load(best, last)
    for i in range(1, number):
        limit = maximum(limit, load(best, i * places * width(best) + last))
    return limit


@helper_no_fma
def pad_end(dist, o, n):
    """Write inf after the end of the list, so that whole vectors can be read."""
    store(dist, o + n, broadcast(dist, dist.dtype.type(np.inf)))


@helper_no_fma
def count_within(dist, o, n, limit):
    """Return how many distances of the list are at most `limit`."""
    total = 0
    for i in range(o, o + n, width(dist)):
        total += count_less_equal(load(dist, i), limit)
    return total


@helper_no_fma
def find_limit(dist, o, n, k, limit):
    """Return a limit within which are at least k of the n ≥ k distances, and not many more.

    All n distances are within the old `limit`, which may be inf. The search narrows an interval
    between a limit that keeps too few and one that keeps too many. The next limit to try is where k
    would be if the distances were spread evenly between the two (regula falsi), and every other
    time the middle (bisection).
    """
    low, high, below, above = dist.dtype.type(0), limit, 0, n
    if high == np.inf:  # this is the first call
        top = load(dist, o)
        for i in range(o, o + n - width(dist) + 1, width(dist)):
            top = maximum(load(dist, i), top)
        high = hmax(top) if n >= width(dist) else low
        for i in range(o + n // width(dist) * width(dist), o + n):
            high = max(high, dist[i])
    for step in range(50):  # at least k are within `high`, fewer than k within `low`
        if above <= k + tolerance(k):
            break
        part = dist.dtype.type(0.5)
        if step % 2 == 0:
            part = dist.dtype.type(k + tolerance(k) // 2 - below) / dist.dtype.type(above - below)
        middle = low + (high - low) * part
        kept = count_within(dist, o, n, middle)
        if kept < k:
            low, below = middle, kept
        else:
            high, above = middle, kept
    return high


@helper_no_fma
def tolerance(k):
    """Return how many candidates more than k may stay in a list after pruning."""
    return k // 4 + 2


@helper_no_fma
def shell_sort(dist, ids, o, n):
    """Sort a list by distance, ties by id, with Shell's sort (in ever smaller steps)."""
    noinline()
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(o + gap, o + n):
            d, id_, p = dist[i], ids[i], i
            while p - gap >= o and (
                d < dist[p - gap] or (d == dist[p - gap] and id_ < ids[p - gap])
            ):
                dist[p], ids[p] = dist[p - gap], ids[p - gap]
                p -= gap
            dist[p], ids[p] = d, id_
        gap //= 3


@helper_no_fma
def sort(dist, ids, o, n):
    """Sort a list by distance, ties by id, with a sorting network if it fits into registers."""
    noinline()
    if fits_in_registers(dist, n):
        sort_in_registers(dist, ids, o, n)
    else:
        shell_sort(dist, ids, o, n)


@helper_no_fma
def prune(dist, ids, o, n, k, limit):
    """Keep the k nearest of the list and at most a few more. Return (their number, the limit)."""
    noinline()
    if n < k:
        return n, limit
    pad_end(dist, o, n)
    limit = find_limit(dist, o, n, k, limit)
    end = np.int64(0)  # the constant 0 would have a different type in Numba
    for i in range(0, n, width(dist)):  # the write position is never ahead of the read position
        end += compress_less_equal(dist, ids, o + end, load(dist, o + i), ids, o + i, limit)
    if end > k + tolerance(k):  # many distances are (nearly) equal, so sort them
        sort(dist, ids, o, end)
        end, limit = k, dist[o + k - 1]
    return end, limit
