"""Vector comparisons that return a bit mask, and a compress store of the selected lanes.

With them, the near ones among 16 candidates are appended to a list without a branch. The selected
lanes are moved together in a register and stored at the end of the list. The list grows by the
number of bits in the mask.
"""

from functools import partial

import numpy as np

from tinyattn.kernels.machine.compile import intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    VECTOR_BYTES,
    element_pointer,
    emit_broadcast,
    size_of,
    type_suffix,
)

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.registry import cpu_target


def _count_reference(v, limit):
    return int(np.sum(v <= limit))


@intrinsic(_count_reference)
def count_less_equal(typing, v, limit):
    """Return how many lanes of v are at most the limit."""

    def code(context, builder, signature, args):
        v, limit = args
        mask = builder.fcmp_ordered("<=", v, emit_broadcast(builder, limit, v.type))
        return _emit_popcount(builder, mask)

    return types.int64(v, v.dtype), code


def _emit_popcount(builder, mask):
    """Return how many lanes of a mask are true."""
    number = ir.IntType(mask.type.count)
    kind = ir.FunctionType(number, [number])
    name = f"llvm.ctpop.i{mask.type.count}"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.zext(builder.call(function, [builder.bitcast(mask, number)]), ir.IntType(64))


@intrinsic(lambda v, w: sum(1 << i for i in range(len(v)) if v[i] <= w[i]))
def mask_less_equal(typing, v, w):
    """Return the lanes where v ≤ w, as bits of an integer."""

    def code(context, builder, signature, args):
        mask = builder.fcmp_ordered("<=", *args)
        bits = builder.bitcast(mask, ir.IntType(mask.type.count))
        return builder.zext(bits, ir.IntType(64))

    return types.uint64(v, v), code


@intrinsic(lambda bits: (int(bits) & -int(bits)).bit_length() - 1)
def trailing_zeros(typing, bits):
    """Return the index of the lowest bit that is 1."""

    def code(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.uint64), code


def _compress_reference(dist, ids, o, v, source, i, limit, comparison=np.less_equal):
    kept = np.flatnonzero(comparison(v, limit))
    dist[o : o + len(kept)] = v[kept]
    ids[o : o + len(kept)] = source[i + kept]
    return len(kept)


@intrinsic(_compress_reference)
def compress_less_equal(typing, dist, ids, o, v, source, i, limit):
    """Store the lanes of v that are ≤ limit from dist[o] on without gaps, and return their number.

    The ids of the lanes of v are source[i], source[i + 1], …. The ids of the stored lanes are
    written to ids[o], ids[o + 1], …. A whole vector is written, so the numbers after the list are
    overwritten.
    """
    return _emit_compress("<=", dist, ids, o, v, source, i, limit)


@intrinsic(partial(_compress_reference, comparison=np.greater))
def compress_greater(typing, dist, ids, o, v, source, i, limit):
    """Do the same as `compress_less_equal`, but with the lanes that are > limit."""
    return _emit_compress(">", dist, ids, o, v, source, i, limit)


def _emit_compress(comparison, dist, ids, o, v, source, i, limit):
    if ids.dtype != types.int32 or source.dtype != types.int32:
        return None

    def code(context, builder, signature, args):
        dist, ids, o, v, source, i, limit = args
        lanes = v.type.count
        mask = builder.fcmp_ordered(comparison, v, emit_broadcast(builder, limit, v.type))
        kinds = signature.args
        to = element_pointer(context, builder, kinds[0], dist, o, lanes)
        to_ids = element_pointer(context, builder, kinds[1], ids, o, lanes)
        from_ids = element_pointer(context, builder, kinds[4], source, i, lanes)
        integers = ir.VectorType(ir.IntType(32), lanes)
        id_ = builder.load(builder.bitcast(from_ids, integers.as_pointer()), align=4)
        # packed in a register and stored as a whole vector, because a masked store is much slower
        for value, place in ((v, to), (id_, to_ids)):
            packed = emit_packed(builder, value, mask)
            builder.store(packed, builder.bitcast(place, value.type.as_pointer()), align=4)
        return _emit_popcount(builder, mask)

    size = types.intp
    return types.int64(dist, ids, size, v, source, size, v.dtype), code


# ---------------------------------------------------------------- packing the lanes of a register


def emit_packed(builder, value, mask):
    """Emit code that moves the lanes of `value` where `mask` is true to the front of the register.

    The lanes after them are arbitrary. AVX-512 has an instruction for this. Without it, LLVM would
    store lane by lane. But there are only 4, 16 or 256 masks, so the order of the lanes can be read
    from a table.
    """
    lanes, size = value.type.count, size_of(value.type.element)
    way = _way_to_permute(lanes * size)
    if way is None or VECTOR_BYTES == 64:
        suffix = f"v{lanes}{type_suffix(value.type.element)}"
        name, rest = f"llvm.experimental.vector.compress.{suffix}", value.type(ir.Undefined)
        return _call(builder, value.type, name, value, mask, rest)
    name, unit = way  # unit: number of bytes that stay together
    n, each = lanes * size // unit, size // unit
    orders = [
        [lane * each + part for lane in _chosen_first(bits, lanes) for part in range(each)]
        for bits in range(1 << lanes)
    ]
    few = ir.VectorType(ir.IntType(8), n)
    table = ir.Constant(ir.ArrayType(few, len(orders)), [few(order) for order in orders])
    table = cgutils.global_constant(builder.module, f"tinyattn_packing_{lanes}_{size}", table)
    bits = builder.zext(builder.bitcast(mask, ir.IntType(lanes)), ir.IntType(64))
    order = builder.load(builder.gep(table, [bits.type(0), bits]), align=n)
    units = ir.VectorType(ir.IntType(8 * unit), n)
    if unit > 1:
        order = builder.zext(order, units)
    found = _call(builder, units, name, builder.bitcast(value, units), order)
    return builder.bitcast(found, value.type)


def _chosen_first(bits, lanes):
    """Return the indices of the lanes with bit 1, followed by those with bit 0."""
    return sorted(range(lanes), key=lambda lane: not bits >> lane & 1)


def _way_to_permute(nbytes):
    """Return (LLVM's name of an instruction, number of bytes that stay together), or None.

    The instruction permutes the parts of a vector of `nbytes` bytes. None means that the processor
    does not have such an instruction.
    """
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()[:3]
    if triple.startswith(("aarch64", "arm64")):
        return {16: ("llvm.aarch64.neon.tbl1.v16i8", 1)}.get(nbytes)
    ways = {32: ("llvm.x86.avx2.permd", 4)} if "+avx2" in features else {}
    if "+ssse3" in features:
        ways[16] = "llvm.x86.ssse3.pshuf.b.128", 1
    return ways.get(nbytes)


def _call(builder, kind, name, *args):
    function = ir.FunctionType(kind, [x.type for x in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)
