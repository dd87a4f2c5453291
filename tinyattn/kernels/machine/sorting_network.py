"""A sorting network, which sorts a few vectors in registers without a branch.

In an ordinary sort, the processor predicts the outcome of each comparison. Half of the predictions
are wrong, and each wrong prediction takes as long as twenty instructions. A sorting network
compares the same positions in the same order for any numbers, so there is nothing to predict, and
one instruction compares one pair per lane. With 16 lanes, 64 numbers take 21 steps.

Source: Batcher, Sorting networks and their applications (1968), the bitonic sorter.
"""

import numpy as np

from tinyattn.kernels.machine.compile import helper, intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    Vector,
    call_subroutine,
    element_pointer,
    emit_masked_load,
    emit_masked_store,
    tail_mask,
)
from tinyattn.kernels.machine.simd import width

if numba is not None:
    from llvmlite import ir
    from numba import types

MAX_VECTORS = 8  # largest number of vectors, which fill 16 registers together with their ids


@helper
def fits_in_registers(dist, n):
    """Return whether `sort_in_registers` can sort n entries."""
    return n <= MAX_VECTORS * width(dist)


def steps(n):
    """Return the steps s that sort n = 2^m numbers, by comparing positions e and e XOR s.

    The smaller number goes to the lower position. Blocks of 2, 4, 8, … are sorted one after the
    other. The halves of a block are already sorted, and its first step compares the first half with
    the second half in reverse order. Then all numbers of the lower half are below those of the
    upper half, and each half rises and then falls (it is bitonic). The following steps split such
    sequences in the same way, down to single numbers.
    """
    size = 2
    while size <= n:
        yield size - 1
        for halvings in range(2, size.bit_length()):
            yield size >> halvings
        size *= 2


def _sort_reference(dist, ids, o, n):
    order = np.lexsort((ids[o : o + n], dist[o : o + n])) + o
    dist[o : o + n], ids[o : o + n] = dist[order], ids[order]


@intrinsic(_sort_reference)
def sort_in_registers(typing, dist, ids, o, n):
    """Sort dist[o : o + n], ties by id, and ids in the same order, for n ≤ MAX_VECTORS · width."""
    vector = Vector(dist.dtype)
    if ids.dtype != types.int32:
        return None

    def code(context, builder, signature, args):
        dist, ids, o, n = args
        first = element_pointer(context, builder, signature.args[0], dist, o, n)
        first_id = element_pointer(context, builder, signature.args[1], ids, o, n)
        call_subroutine(builder, f"sort_{vector.dtype}", [first, first_id, n], emit)
        return context.get_dummy_value()

    def emit(builder, first, first_id, n):
        def write(vectors):
            last = np.iinfo(np.int32).max
            columns = [
                [
                    emit_masked_load(builder, place, lanes, rest)
                    for place, lanes in _places(builder, pointer, n, vectors, vector.lanes)
                ]
                for pointer, rest in ((first, np.inf), (first_id, last))
            ]
            for pointer, values in zip(
                (first, first_id), _emit_network(builder, columns), strict=True
            ):
                places = _places(builder, pointer, n, vectors, vector.lanes)
                for value, (place, lanes) in zip(values, places, strict=True):
                    emit_masked_store(builder, value, place, lanes)

        _emit_by_size(builder, n, vector.lanes, write)

    return types.void(dist, ids, types.intp, types.intp), code


def _emit_by_size(builder, n, lanes, write):
    """Emit code for 1, 2, 4, … vectors by `write`. The smallest that holds n numbers runs."""
    vectors = 1
    while vectors <= MAX_VECTORS:
        with builder.if_then(builder.icmp_signed("<=", n, n.type(vectors * lanes))):
            write(vectors)
            builder.ret_void()
        vectors *= 2


def _places(builder, pointer, n, vectors, lanes):
    """Yield the address of each vector at `pointer`, and a mask of its lanes with an index < n."""
    kind = ir.VectorType(pointer.type.pointee, lanes)
    for v in range(vectors):
        i = n.type(v * lanes)
        place = builder.bitcast(builder.gep(pointer, [i]), kind.as_pointer())
        yield place, tail_mask(builder, kind, i, n)


def _emit_network(builder, columns):
    """Sort two columns of vectors, distances and ids, by distance, ties by id."""
    lanes, vectors = columns[0][0].type.count, len(columns[0])
    columns = [list(column) for column in columns]
    for step in steps(lanes * vectors):
        far, near = divmod(step, lanes)
        if far:  # element e is in another vector than element e XOR step
            for v in range(vectors):
                if v < v ^ far:
                    own = [column[v] for column in columns]
                    other = [_permute_xor(builder, column[v ^ far], near) for column in columns]
                    first = _emit_less(builder, own, other)
                    for column, a, b in zip(columns, own, other, strict=True):
                        # the upper vector stays in its partner's order, so it is still bitonic
                        column[v] = builder.select(first, a, b)
                        column[v ^ far] = builder.select(first, b, a)
        else:
            highest = 1 << (near.bit_length() - 1)  # the bit that is 0 at the lower index
            bits = ir.VectorType(ir.IntType(1), lanes)
            upper = bits([int(e & highest > 0) for e in range(lanes)])
            for v in range(vectors):
                own = [column[v] for column in columns]
                other = [_permute_xor(builder, x, near) for x in own]
                first = _emit_less(builder, own, other)
                for column, a, b in zip(columns, own, other, strict=True):
                    low, high = builder.select(first, a, b), builder.select(first, b, a)
                    column[v] = builder.select(upper, high, low)
    return columns


def _permute_xor(builder, x, near):
    """Permute x, so that lane l of the result is lane l XOR `near` of x."""
    if near == 0:
        return x
    lanes = ir.VectorType(ir.IntType(32), x.type.count)
    return builder.shuffle_vector(x, x, lanes([l ^ near for l in range(x.type.count)]))


def _emit_less(builder, own, other):
    """Return the lanes in which `own` has a smaller distance, or the same and a smaller id."""
    first = builder.fcmp_ordered("<", own[0], other[0])
    tied = builder.fcmp_ordered("==", own[0], other[0])
    earlier = builder.icmp_signed("<", own[1], other[1])
    return builder.or_(first, builder.and_(tied, earlier))
