"""Sorting without a branch: a few vectors are sorted where they are, in registers.

A sort that asks and then jumps guesses wrong half of the time, and each wrong guess costs as much
as twenty instructions. A sorting network compares the same places in the same order whatever is
in them, so nothing is guessed, and one instruction compares as many pairs as a vector has lanes.
With 16 lanes, 64 numbers take 21 steps.

Source: Batcher, Sorting networks and their applications (1968), the bitonic sorter.
"""

import numpy as np

from tinyattn.kernels import helper, numba
from tinyattn.kernels.machine.simd import (
    Vector,
    at,
    instruction,
    lanes_before,
    load_lanes,
    store_lanes,
    width,
)
from tinyattn.kernels.machine.tiles import subroutine

if numba is not None:
    from llvmlite import ir
    from numba import types

VECTORS = 8  # so many are sorted at most; with their names they fill 16 registers


@helper
def fits(found, n):
    """Can n entries be sorted here?"""
    return n <= VECTORS * width(found)


def steps(n):
    """The steps that sort n = 2^m numbers. In the step s, place e is compared with place e XOR s;
    the smaller number goes to the lower place.

    Blocks of 2, 4, 8, … are sorted one after the other. A block's halves are in order already: its
    first step compares them, one of them from behind. Then the numbers of the lower half are below
    those of the upper one, and each half rises and falls once; the following steps split such
    sequences in the same way, until single numbers are left.
    """
    size = 2
    while size <= n:
        yield size - 1
        for halvings in range(2, size.bit_length()):
            yield size >> halvings
        size *= 2


def _sort_meaning(found, names, o, n):
    order = np.lexsort((names[o : o + n], found[o : o + n])) + o
    found[o : o + n], names[o : o + n] = found[order], names[order]


@instruction(_sort_meaning)
def sort_few(typing, found, names, o, n):
    """Sort found[o : o + n], ties by name, and names along; n ≤ VECTORS · width."""
    vector = Vector(found.dtype)
    if names.dtype != types.int32:
        return None

    def code(context, builder, signature, args):
        found, names, o, n = args
        first = at(context, builder, signature.args[0], found, o, n)
        name = at(context, builder, signature.args[1], names, o, n)
        subroutine(builder, f"sort_{vector.dtype}", [first, name, n], emit)
        return context.get_dummy_value()

    def emit(builder, first, name, n):
        def write(vectors):
            last = np.iinfo(np.int32).max
            columns = [
                [load_lanes(builder, place, lanes, rest)
                 for place, lanes in _places(builder, pointer, n, vectors, vector.lanes)]
                for pointer, rest in ((first, np.inf), (name, last))
            ]  # fmt: skip
            for pointer, values in zip((first, name), _sorted(builder, columns), strict=True):
                places = _places(builder, pointer, n, vectors, vector.lanes)
                for value, (place, lanes) in zip(values, places, strict=True):
                    store_lanes(builder, value, place, lanes)

        _by_size(builder, n, vector.lanes, write)

    return types.void(found, names, types.intp, types.intp), code


def _by_size(builder, n, lanes, write):
    """`write` code for 1, 2, 4, … vectors; what runs is the first that has room for n."""
    vectors = 1
    while vectors <= VECTORS:
        with builder.if_then(builder.icmp_signed("<=", n, n.type(vectors * lanes))):
            write(vectors)
            builder.ret_void()
        vectors *= 2


def _places(builder, pointer, n, vectors, lanes):
    """Where each vector is in memory, and which of its lanes are before n."""
    kind = ir.VectorType(pointer.type.pointee, lanes)
    for v in range(vectors):
        i = n.type(v * lanes)
        place = builder.bitcast(builder.gep(pointer, [i]), kind.as_pointer())
        yield place, lanes_before(builder, kind, i, n)


def _sorted(builder, columns):
    """Two columns of vectors, values and names, in the order of the values, ties by name."""
    lanes, vectors = columns[0][0].type.count, len(columns[0])
    columns = [list(column) for column in columns]
    for step in steps(lanes * vectors):
        far, near = divmod(step, lanes)
        if far:  # place e is in another vector than e XOR step
            for v in range(vectors):
                if v < v ^ far:
                    own = [column[v] for column in columns]
                    other = [_crossed(builder, column[v ^ far], near) for column in columns]
                    first = _before(builder, own, other)
                    for column, a, b in zip(columns, own, other, strict=True):
                        # the upper ones stay in the order of their partners: still up and down
                        column[v] = builder.select(first, a, b)
                        column[v ^ far] = builder.select(first, b, a)
        else:
            highest = 1 << (near.bit_length() - 1)  # the bit that is 0 in the lower place
            bits = ir.VectorType(ir.IntType(1), lanes)
            upper = bits([int(e & highest > 0) for e in range(lanes)])
            for v in range(vectors):
                own = [column[v] for column in columns]
                other = [_crossed(builder, x, near) for x in own]
                first = _before(builder, own, other)
                for column, a, b in zip(columns, own, other, strict=True):
                    low, high = builder.select(first, a, b), builder.select(first, b, a)
                    column[v] = builder.select(upper, high, low)
    return columns


def _crossed(builder, x, near):
    """Lane l of x where lane l XOR `near` was."""
    if near == 0:
        return x
    lanes = ir.VectorType(ir.IntType(32), x.type.count)
    return builder.shuffle_vector(x, x, lanes([l ^ near for l in range(x.type.count)]))


def _before(builder, own, other):
    """The lanes where `own` comes first."""
    first = builder.fcmp_ordered("<", own[0], other[0])
    tied = builder.fcmp_ordered("==", own[0], other[0])
    earlier = builder.icmp_signed("<", own[1], other[1])
    return builder.or_(first, builder.and_(tied, earlier))
