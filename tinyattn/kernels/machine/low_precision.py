"""Load numbers of 4, 8 and 16 bits, and convert them to the float32 or float64 of a kernel.

Quantized weights are read in this way, so little data is read from memory and is converted to a
vector of ordinary numbers in registers. `raw` is an array of bytes (uint8). Indices count bytes and
need not be aligned. `like` has the dtype of the result.
"""

import numpy as np

from tinyattn.kernels.machine.compile import intrinsic, numba
from tinyattn.kernels.machine.llvm import Vector, element_pointer, llvm_type
from tinyattn.kernels.machine.simd import width

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core.registry import cpu_target

    BYTE, WORD, FLOAT = ir.IntType(8), ir.IntType(32), ir.FloatType()


@intrinsic(lambda raw, i, like: (raw[i : i + width(like)] & 15).astype(like.dtype))
def load_low_halves(typing, raw, i, like):
    """Return the lower 4 bits of the bytes raw[i], raw[i + 1], … as a vector."""
    return _load(raw, like, lambda builder, v: builder.and_(builder.zext(v, _words(v)), _15(v)))


@intrinsic(lambda raw, i, like: (raw[i : i + width(like)] >> 4).astype(like.dtype))
def load_high_halves(typing, raw, i, like):
    """Return the upper 4 bits of the bytes raw[i], raw[i + 1], … as a vector."""
    four = lambda v: _words(v)([4] * v.type.count)
    return _load(raw, like, lambda builder, v: builder.lshr(builder.zext(v, _words(v)), four(v)))


@intrinsic(lambda raw, i, like: raw[i : i + width(like)].astype(like.dtype))
def load_bytes(typing, raw, i, like):
    """Return the bytes raw[i], raw[i + 1], … as numbers from 0 to 255."""
    return _load(raw, like, lambda builder, v: builder.zext(v, _words(v)))


@intrinsic(lambda raw, i, like: raw[i : i + width(like)].view(np.int8).astype(like.dtype))
def load_signed_bytes(typing, raw, i, like):
    """Return the bytes raw[i], raw[i + 1], … as numbers from -128 to 127."""
    return _load(raw, like, lambda builder, v: builder.sext(v, _words(v)))


@intrinsic(lambda raw, i, like: like.dtype.type(raw[i : i + 2].view(np.float16)[0]))
def load_float16(typing, raw, i, like):
    """Return the float16 with the bytes raw[i] and raw[i + 1], in the dtype of `like`."""

    def code(context, builder, signature, args):
        x = _load_float16(context, builder, raw, args, 1, like.dtype)
        return builder.extract_element(x, WORD(0))

    return like.dtype(raw, types.intp, like), code


@intrinsic(lambda raw, i, y, j: y.__setitem__(slice(j, j + 2), raw[i : i + 4].view(np.float16)))
def copy_two_float16(typing, raw, i, y, j):
    """Write the two float16 with the bytes raw[i], …, raw[i + 3] to y[j] and y[j + 1]."""

    def code(context, builder, signature, args):
        x = _load_float16(context, builder, raw, args, 2, y.dtype)
        pointer = element_pointer(context, builder, y, *args[2:], 2)
        pointer = builder.bitcast(pointer, x.type.as_pointer())
        builder.store(x, pointer, align=y.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(raw, types.intp, y, types.intp), code


def _load(raw, like, widen):
    """Return (signature, code) that loads one byte for each lane and widens it to a number."""
    vector = Vector(like.dtype)

    def code(context, builder, signature, args):
        pointer = element_pointer(context, builder, raw, *args[:2], vector.lanes)
        few = ir.VectorType(BYTE, vector.lanes)
        found = builder.load(builder.bitcast(pointer, few.as_pointer()), align=1)
        return builder.sitofp(widen(builder, found), llvm_type(vector))

    return vector(raw, types.intp, like), code


def _words(v):
    return ir.VectorType(WORD, v.type.count)


def _15(v):
    return _words(v)([15] * v.type.count)


def has_float16():
    """Return whether the processor has an instruction that converts float16.

    For other processors, LLVM would call a function of the C library that may be missing.
    """
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()[:3]
    return "+f16c" in features or triple.startswith(("aarch64", "arm64"))


def _load_float16(context, builder, raw, args, n, dtype):
    """Return n float16, of two bytes each, as a vector of n numbers of the dtype."""
    pointer = element_pointer(context, builder, raw, *args[:2], 2 * n)
    kind = ir.VectorType(ir.IntType(16), n)
    bits = builder.load(builder.bitcast(pointer, kind.as_pointer()), align=1)
    x = emit_float16(builder, bits) if has_float16() else emit_float16_by_bits(builder, bits)
    return x if dtype.bitwidth == 32 else builder.fpext(x, ir.VectorType(ir.DoubleType(), n))


def emit_float16(builder, bits):
    """Emit the conversion of float16 to float32 with the processor's instruction."""
    n = bits.type.count
    halves = builder.bitcast(bits, ir.VectorType(ir.HalfType(), n))
    return builder.fpext(halves, ir.VectorType(FLOAT, n))


def emit_float16_by_bits(builder, bits):
    """Emit the conversion with integers: shift exponent and fraction, then multiply by 2¹¹².

    The factor is 2¹¹² because the bias of the exponent is 15 in a float16 and 127 in a float32.
    Infinity and nan have the largest possible exponent in both.
    """
    n = bits.type.count
    words, floats = ir.VectorType(WORD, n), ir.VectorType(FLOAT, n)
    all_lanes = lambda number: words([number] * n)
    bits = builder.zext(bits, words)
    size = builder.shl(builder.and_(bits, all_lanes(0x7FFF)), all_lanes(13))
    sign = builder.shl(builder.and_(bits, all_lanes(0x8000)), all_lanes(16))
    number = builder.fmul(builder.bitcast(size, floats), floats([2.0**112] * n))
    no_number = builder.or_(size, all_lanes(0x7F800000))
    finite = builder.icmp_unsigned("<", size, all_lanes(0x7C00 << 13))
    found = builder.select(finite, builder.bitcast(number, words), no_number)
    return builder.bitcast(builder.or_(found, sign), floats)
