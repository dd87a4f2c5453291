"""Load and store vectors, whole or in part, and allocate memory that is aligned for them."""

import numpy as np

from tinyattn.kernels.machine.compile import intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    Vector,
    element_pointer,
    emit_broadcast,
    emit_by_length,
    emit_masked_load,
    emit_masked_store,
    llvm_type,
    size_of,
    tail_length,
    vector_pointer,
)
from tinyattn.kernels.machine.simd import width

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.np.arrayobj import populate_array


def _alloc_reference(n, like):
    return np.zeros(n, like.dtype)


@intrinsic(_alloc_reference)
def alloc_aligned(typing, n, like):
    """Return an array of n numbers of the dtype of `like` that starts at a multiple of 64 bytes.

    The numbers are arbitrary until they are written. A vector that lies across two cache lines (64
    bytes each) takes twice as long to read.
    """
    dtype = getattr(like, "dtype", like)

    def code(context, builder, signature, args):
        size = context.get_constant(types.intp, dtype.bitwidth // 8)
        align = context.get_constant(types.uint32, 64)
        owner = context.nrt.meminfo_alloc_aligned(builder, builder.mul(args[0], size), align)
        start = context.nrt.meminfo_data(builder, owner)
        array = context.make_array(signature.return_type)(context, builder)
        start = builder.bitcast(start, array.data.type)
        populate_array(array, start, [args[0]], [size], size, owner)
        return array._getvalue()

    return types.Array(dtype, 1, "C")(types.intp, like), code


def _array_at_reference(address, n, like):
    kind = np.ctypeslib.as_ctypes_type(getattr(like, "dtype", type(like)))
    return np.ctypeslib.as_array((kind * n).from_address(address))


@intrinsic(_array_at_reference)
def array_at(typing, address, n, like):
    """Return the n numbers at an address of memory, of the dtype of `like`, as an array.

    A kernel can thus receive hundreds of arrays as one table of addresses. The code that made the
    table must keep the arrays alive in the meantime.
    """
    dtype = getattr(like, "dtype", like)

    def code(context, builder, signature, args):
        size = context.get_constant(types.intp, dtype.bitwidth // 8)
        array = context.make_array(signature.return_type)(context, builder)
        start = builder.inttoptr(args[0], array.data.type)
        populate_array(array, start, [args[1]], [size], size, None)
        return array._getvalue()

    return types.Array(dtype, 1, "C")(types.intp, types.intp, like), code


@intrinsic(lambda x, i: x[i : i + width(x)].copy())
def load(typing, x, i):
    """Return the vector x[i], x[i + 1], …"""
    vector = Vector(x.dtype)

    def code(context, builder, signature, args):
        pointer = element_pointer(context, builder, x, *args, vector.lanes)
        return builder.load(vector_pointer(builder, pointer), align=x.dtype.bitwidth // 8)

    return vector(x, types.intp), code


@intrinsic(lambda x, i, v: x.__setitem__(slice(i, i + width(x)), v))
def store(typing, x, i, v):
    """Store v to x[i], x[i + 1], …"""

    def code(context, builder, signature, args):
        pointer = element_pointer(context, builder, x, *args[:2], v.lanes)
        builder.store(args[2], vector_pointer(builder, pointer), align=x.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(x, types.intp, v), code


@intrinsic(lambda x, i, end, rest: np.array([*x[i:end], *[rest] * width(x)][: width(x)], x.dtype))
def load_partial(typing, x, i, end, rest):
    """Return the vector x[i], x[i + 1], … with the number `rest` in the lanes from x[end] on."""
    vector = Vector(x.dtype)

    def code(context, builder, signature, args):
        x, i, end, rest = args
        kind = llvm_type(vector)
        n = tail_length(builder, kind, i, end)
        place = vector_pointer(
            builder, element_pointer(context, builder, signature.args[0], x, i, n)
        )
        rest = emit_broadcast(builder, rest, kind)

        def whole():
            return builder.load(place, align=size_of(kind.element))

        def part(lanes):
            return emit_masked_load(builder, place, lanes, rest)

        return emit_by_length(builder, kind, i, end, whole, part)

    return vector(x, types.intp, types.intp, x.dtype), code


@intrinsic(lambda x, i, end, v: x[i:end].__setitem__(slice(width(x)), v[: end - i]))
def store_partial(typing, x, i, end, v):
    """Store v to x[i], x[i + 1], …, up to x[end - 1] at most."""

    def code(context, builder, signature, args):
        x, i, end, v = args
        n = tail_length(builder, v.type, i, end)
        place = vector_pointer(
            builder, element_pointer(context, builder, signature.args[0], x, i, n)
        )

        def whole():
            builder.store(v, place, align=size_of(v.type.element))

        def part(lanes):
            emit_masked_store(builder, v, place, lanes)

        emit_by_length(builder, v.type, i, end, whole, part)
        return context.get_dummy_value()

    return types.void(x, types.intp, types.intp, v), code


@intrinsic(lambda x, i: sum(1 << b for b in range(64) if x[i + b]))
def load_bitmask(typing, x, i):
    """Return 64 bytes from x[i] on as bits of an integer, where bit b is 1 if x[i + b] is not 0."""

    def code(context, builder, signature, args):
        pointer = element_pointer(context, builder, x, *args, 64)
        many = ir.VectorType(ir.IntType(8), 64)
        row = builder.load(builder.bitcast(pointer, many.as_pointer()), align=1)
        return builder.bitcast(builder.icmp_unsigned("!=", row, many(None)), ir.IntType(64))

    return types.uint64(x, types.intp), code
