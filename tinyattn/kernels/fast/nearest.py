"""A list of the k nearest so far, made for vectors: candidates are appended, and sifted at times.

Inserting each candidate where it belongs means a branch that the processor guesses wrong half of
the time. Here a list just grows at its end by whatever is within its limit. The first limits come
from a few candidates that many points look at together, a lane for each point. When a list has
grown long, a new limit is found that k of its entries keep, and those beyond it go. Only the few
that are left at the end are sorted, in registers if they fit.

A list is found[o : o + n] and names[o : o + n]: squared distances, and the rows they belong to.
Behind its end is room for one vector more.
"""

from functools import partial

import numpy as np

from tinyattn.kernels import exact_helper, numba
from tinyattn.kernels.machine.simd import (
    at,
    broadcast,
    broadcasted,
    highest,
    instruction,
    load,
    maximum,
    minimum,
    once,
    short,
    store,
    width,
)
from tinyattn.kernels.machine.sorting_network import fits, sort_few

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils


def _within_meaning(v, limit):
    return int(np.sum(v <= limit))


@instruction(_within_meaning)
def within(typing, v, limit):
    """How many lanes of v are not above the limit."""

    def code(context, builder, signature, args):
        v, limit = args
        mask = builder.fcmp_ordered("<=", v, broadcasted(builder, limit, v.type))
        return _ones(builder, mask)

    return types.int64(v, v.dtype), code


def _ones(builder, mask):
    """How many lanes of a mask are true."""
    number = ir.IntType(mask.type.count)
    kind = ir.FunctionType(number, [number])
    name = f"llvm.ctpop.i{mask.type.count}"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.zext(builder.call(function, [builder.bitcast(mask, number)]), ir.IntType(64))


@instruction(lambda v, w: sum(1 << i for i in range(len(v)) if v[i] <= w[i]))
def not_above(typing, v, w):
    """The lanes where v ≤ w, as bits of an integer."""

    def code(context, builder, signature, args):
        mask = builder.fcmp_ordered("<=", *args)
        bits = builder.bitcast(mask, ir.IntType(mask.type.count))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(v, v), code


@instruction(lambda bits: (int(bits) & -int(bits)).bit_length() - 1)
def lowest_bit(typing, bits):
    """The number of the lowest bit that is 1."""

    def code(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), code


def _keep_meaning(found, names, o, v, own, i, limit, kept=np.less_equal):
    kept = np.flatnonzero(kept(v, limit))
    found[o : o + len(kept)] = v[kept]
    names[o : o + len(kept)] = own[i + kept]
    return len(kept)


@instruction(_keep_meaning)
def keep(typing, found, names, o, v, own, i, limit):
    """Append the lanes of v that are within the limit, named own[i], own[i + 1], …; how many.

    A whole vector is written: what is behind the end of the list is lost.
    """
    return _kept("<=", found, names, o, v, own, i, limit)


@instruction(partial(_keep_meaning, kept=np.greater))
def keep_above(typing, found, names, o, v, own, i, limit):
    """The same with the lanes that are above the limit."""
    return _kept(">", found, names, o, v, own, i, limit)


def _kept(comparison, found, names, o, v, own, i, limit):
    if names.dtype != types.int32 or own.dtype != types.int32:
        return None

    def code(context, builder, signature, args):
        found, names, o, v, own, i, limit = args
        lanes = v.type.count
        mask = builder.fcmp_ordered(comparison, v, broadcasted(builder, limit, v.type))
        kinds = signature.args
        to = at(context, builder, kinds[0], found, o, lanes)
        to_names = at(context, builder, kinds[1], names, o, lanes)
        source = at(context, builder, kinds[4], own, i, lanes)
        integers = ir.VectorType(ir.IntType(32), lanes)
        name = builder.load(builder.bitcast(source, integers.as_pointer()), align=4)
        # packed in a register and stored as a whole: storing only some lanes takes far longer
        for value, place in ((v, to), (name, to_names)):
            kind = value.type
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(kind, [kind, mask.type, kind]),
                f"llvm.experimental.vector.compress.v{lanes}{short(kind.element)}",
            )
            packed = builder.call(function, [value, mask, kind(ir.Undefined)])
            place = builder.bitcast(place, kind.as_pointer())
            builder.store(packed, place, align=4)
        return _ones(builder, mask)

    size = types.intp
    return types.int64(found, names, size, v, own, size, v.dtype), code


BEST = 16  # places of a list that is kept in order, at most


@exact_helper
def lists_of(k):
    """How many lists of how many places hold k: (number, places of each)."""
    number = max((k + BEST - 1) // BEST, 1)
    return number, (k + number - 1) // number


@exact_helper
def clear(best, k):
    """Empty lists for the k nearest of several points; each place is a vector, a lane a point.

    For k of more than a list has places there are several, and candidates take turns with them.
    """
    number, places = lists_of(k)
    for i in range(0, number * places * width(best), width(best)):
        store(best, i, broadcast(best, best.dtype.type(np.inf)))


@exact_helper
def enter(best, k, j, v):
    """Put candidate j of each of the points where it belongs, at the distances v.

    The candidates go from place to place: the nearer one stays, the farther one goes on, and out
    at the end. No branch depends on who that is.
    """
    number, places = lists_of(k)
    first = j % number * places * width(best)
    for i in range(first, first + places * width(best), width(best)):
        here = load(best, i)
        store(best, i, minimum(here, v))
        v = maximum(here, v)


@exact_helper
def reach(best, k):
    """A limit for each point that k candidates keep, since all lists together hold so many; inf if
    one of them is not full.
    """
    number, places = lists_of(k)
    last = (places - 1) * width(best)
    limit = load(best, last)
    for i in range(1, number):
        limit = maximum(limit, load(best, i * places * width(best) + last))
    return limit


@exact_helper
def close(found, o, n):
    """Fill the room behind the end of the list, so that whole vectors can be read."""
    store(found, o + n, broadcast(found, found.dtype.type(np.inf)))


@exact_helper
def count(found, o, n, limit):
    """How many of the list are within the limit."""
    total = 0
    for i in range(o, o + n, width(found)):
        total += within(load(found, i), limit)
    return total


@exact_helper
def limit_of(found, o, n, k, limit):
    """A number that at least k of the n ≥ k keep, and not many more.

    Between two numbers that too few and too many keep, the next is where it would be if the
    distances were spread evenly, and every other time the middle.
    """
    low, high, below, above = found.dtype.type(0), limit, 0, n
    if high == np.inf:  # the first time
        top = load(found, o)
        for i in range(o, o + n - width(found) + 1, width(found)):
            top = maximum(load(found, i), top)
        high = highest(top) if n >= width(found) else low
        for i in range(o + n // width(found) * width(found), o + n):
            high = max(high, found[i])
    for step in range(50):  # at least k keep `high`, fewer than k keep `low`
        if above <= k + spare_of(k):
            break
        part = found.dtype.type(0.5)
        if step % 2 == 0:
            part = found.dtype.type(k + spare_of(k) // 2 - below) / found.dtype.type(above - below)
        middle = low + (high - low) * part
        kept = count(found, o, n, middle)
        if kept < k:
            low, below = middle, kept
        else:
            high, above = middle, kept
    return high


@exact_helper
def spare_of(k):
    """So many more than k are left in a list without looking closer."""
    return k // 4 + 2


@exact_helper
def shell_sort(found, names, o, n):
    """By distance, ties by name: entries move in steps that get smaller and smaller (Shell)."""
    once()
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(o + gap, o + n):
            d, name, p = found[i], names[i], i
            while p - gap >= o and (
                d < found[p - gap] or (d == found[p - gap] and name < names[p - gap])
            ):
                found[p], names[p] = found[p - gap], names[p - gap]
                p -= gap
            found[p], names[p] = d, name
        gap //= 3


@exact_helper
def sort(found, names, o, n):
    """The same, without a branch where the list fits into registers."""
    once()
    if fits(found, n):
        sort_few(found, names, o, n)
    else:
        shell_sort(found, names, o, n)


@exact_helper
def cut(found, names, o, n, k, limit):
    """Keep the k best of the list and a few more at most; returns (their number, the limit)."""
    once()
    if n < k:
        return n, limit
    close(found, o, n)
    limit = limit_of(found, o, n, k, limit)
    end = np.int64(0)  # to the compiler 0 alone is a type of its own
    for i in range(0, n, width(found)):  # what is kept never gets ahead of what is read
        end += keep(found, names, o + end, load(found, o + i), names, o + i, limit)
    if end > k + spare_of(k):  # many are tied, or nearly so: the order decides
        sort(found, names, o, end)
        end, limit = k, found[o + k - 1]
    return end, limit
