"""A list of the k nearest so far, made for vectors: candidates are appended, and sifted at times.

Inserting each candidate where it belongs means a branch that the processor guesses wrong half of
the time. Here a list just grows at its end by whatever is within its limit. When it has grown
long, a new limit is found that k of its entries keep, and those beyond it go. Only the few that
are left at the end are sorted.

A list is found[o : o + n] and names[o : o + n]: squared distances, and the rows they belong to.
Behind its end is room for one vector more.
"""

from functools import partial

import numpy as np

from tinyattn.kernels import jit, numba
from tinyattn.kernels.simd import (
    Vector,
    at,
    broadcast,
    broadcasted,
    highest,
    instruction,
    load,
    maximum,
    once,
    spread,
    store,
    width,
)

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

exact = partial(jit, fastmath=False)  # never a·b + c in one step: all versions round alike


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


def _earlier_meaning(found, names, i, d, name):
    v, own = found[i : i + width(found)], names[i : i + width(found)]
    return int(np.sum((v < d) | ((v == d) & (own < name))))


@instruction(_earlier_meaning)
def earlier(typing, found, names, i, d, name):
    """How many of found[i], found[i + 1], … come before (d, name), ties by name."""
    if names.dtype != types.int32:
        return None
    lanes = Vector(found.dtype).lanes

    def code(context, builder, signature, args):
        found, names, i, d, name = args
        v = builder.load(
            spread(builder, at(context, builder, signature.args[0], found, i, lanes)),
            align=4,
        )
        own = at(context, builder, signature.args[1], names, i, lanes)
        integers = ir.VectorType(ir.IntType(32), lanes)
        own = builder.load(builder.bitcast(own, integers.as_pointer()), align=4)
        d, name = broadcasted(builder, d, v.type), broadcasted(builder, name, integers)
        tied = builder.and_(builder.fcmp_ordered("==", v, d), builder.icmp_signed("<", own, name))
        return _ones(builder, builder.or_(builder.fcmp_ordered("<", v, d), tied))

    return types.int64(found, names, types.intp, found.dtype, types.int32), code


def _keep_meaning(found, names, o, v, own, i, limit):
    kept = np.flatnonzero(v <= limit)
    found[o : o + len(kept)] = v[kept]
    names[o : o + len(kept)] = own[i + kept]
    return len(kept)


@instruction(_keep_meaning)
def keep(typing, found, names, o, v, own, i, limit):
    """Append the lanes of v that are within the limit, named own[i], own[i + 1], …; how many."""
    if names.dtype != types.int32 or own.dtype != types.int32:
        return None

    def code(context, builder, signature, args):
        found, names, o, v, own, i, limit = args
        lanes = v.type.count
        mask = builder.fcmp_ordered("<=", v, broadcasted(builder, limit, v.type))
        kinds = signature.args
        to = at(context, builder, kinds[0], found, o, lanes)
        to_names = at(context, builder, kinds[1], names, o, lanes)
        source = at(context, builder, kinds[4], own, i, lanes)
        integers = ir.VectorType(ir.IntType(32), lanes)
        name = builder.load(builder.bitcast(source, integers.as_pointer()), align=4)
        for value, place, suffix in ((v, to, v.type.element), (name, to_names, None)):
            short = "i32" if suffix is None else "f32" if suffix == ir.FloatType() else "f64"
            kind = ir.FunctionType(ir.VoidType(), [value.type, place.type, mask.type])
            function = cgutils.get_or_insert_function(
                builder.module, kind, f"llvm.masked.compressstore.v{lanes}{short}"
            )
            builder.call(function, [value, place, mask])
        return _ones(builder, mask)

    size = types.intp
    return types.int64(found, names, size, v, own, size, v.dtype), code


@exact
def close(found, o, n):
    """Fill the room behind the end of the list, so that whole vectors can be read."""
    store(found, o + n, broadcast(found, found.dtype.type(np.inf)))


@exact
def count(found, o, n, limit):
    """How many of the list are within the limit."""
    total = 0
    for i in range(o, o + n, width(found)):
        total += within(load(found, i), limit)
    return total


@exact
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


@exact
def spare_of(k):
    """So many more than k are left in a list without looking closer."""
    return k // 4 + 2


@exact
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


RANK = 192  # up to so many entries counting is quicker, though it takes n² steps


@exact
def sort(found, names, o, n, spare, spare_names):
    """The same. The place of an entry is the number of those before it."""
    once()
    if n > RANK:
        return shell_sort(found, names, o, n)
    for i in range(n):
        spare[i], spare_names[i] = found[o + i], names[o + i]
    close(spare, 0, n)
    for i in range(n):
        d, name, place = spare[i], spare_names[i], 0
        for j in range(0, n, width(found)):
            place += earlier(spare, spare_names, j, d, name)
        found[o + place], names[o + place] = d, name


@exact
def cut(found, names, o, n, k, limit, spare, spare_names):
    """Keep the k best of the list and a few more at most; returns (their number, the limit)."""
    once()
    if n < k:
        return n, limit
    close(found, o, n)
    limit, end = limit_of(found, o, n, k, limit), 0
    for i in range(0, n, width(found)):  # what is kept never gets ahead of what is read
        end += keep(found, names, o + end, load(found, o + i), names, o + i, limit)
    if end > k + spare_of(k):  # many are tied, or nearly so: the order decides
        sort(found, names, o, end, spare, spare_names)
        end, limit = k, found[o + k - 1]
    return end, limit
