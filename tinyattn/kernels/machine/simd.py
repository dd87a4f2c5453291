"""Vector instructions for kernels (SIMD), each of which processes 4, 8 or 16 numbers.

A compiler finds vector instructions on its own where a loop is simple. Where it does not, or uses
too few registers, a kernel requests them with the functions of this file and load_store.py:

    x = load(a, i)                  the vector a[i], a[i + 1], …, a[i + width - 1]
    y = fma(x, x, broadcast(x, 2))  x · x + 2 in each lane (x + y, x - y, x * y work too)
    store(b, i, y)

Each of these functions is an `intrinsic`. The function in its first line is the reference in NumPy,
which runs if Numba is missing. The code below generates the machine code for Numba, as LLVM's
intermediate language, which is written through its `builder`.

The width of a vector depends on the processor: 64 bytes with AVX-512, 32 with AVX2, otherwise 16
(NEON, SSE). `width(x)` is the number of lanes for the dtype of x. Numba compiles for the current
processor, and its cache on disk distinguishes processors.
"""

import operator

import numpy as np

from tinyattn.kernels.machine.compile import intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    HAS_FMA,
    VECTOR_BYTES,
    Vector,
    call_intrinsic,
    element_pointer,
    emit_broadcast,
    llvm_type,
)

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import lower_builtin, overload, type_callable


def width(x):
    """Return how many numbers of x's dtype fill a vector."""
    return VECTOR_BYTES // x.dtype.itemsize


if numba is not None:

    @overload(width)
    def _width(x):
        lanes = VECTOR_BYTES // (x.dtype.bitwidth // 8)
        return lambda x: lanes


@intrinsic(lambda like, number: np.full(width(like), number, like.dtype))
def broadcast(typing, like, number):
    """Return a vector with a number in all lanes, in the dtype of `like` (array or vector)."""
    vector = Vector(like.dtype)

    def code(context, builder, signature, args):
        return emit_broadcast(builder, args[1], llvm_type(vector))

    return vector(like, like.dtype), code


# ---------------------------------------------------------------- arithmetic


def _arithmetic(function, emit):
    """Let `function` (operator.add …) take two vectors, or a vector and a number."""

    @type_callable(function)
    def typer(context):
        def type_of(a, b):
            for v, other in ((a, b), (b, a)):
                if isinstance(v, Vector) and isinstance(other, Vector | types.Number):
                    return v if other in (v, v.dtype) else None
            return None

        return type_of

    def code(context, builder, signature, args):
        vector = llvm_type(signature.return_type)
        a, b = (x if x.type == vector else emit_broadcast(builder, x, vector) for x in args)
        return getattr(builder, emit)(a, b)

    for pair in ((Vector, Vector), (Vector, types.Float), (types.Float, Vector)):
        lower_builtin(function, *pair)(code)


if numba is not None:
    _arithmetic(operator.add, "fadd")
    _arithmetic(operator.sub, "fsub")
    _arithmetic(operator.mul, "fmul")
    _arithmetic(operator.truediv, "fdiv")


@intrinsic(lambda a, b, c: a * b + c)
def fma(typing, a, b, c):
    """Return a · b + c, rounded once if the processor supports it."""

    def code(context, builder, signature, args):
        return call_intrinsic(builder, "llvm.fmuladd", *args)

    return a(a, a, a), code


@intrinsic(np.sqrt)
def sqrt(typing, a):
    """Return the square root of each lane."""
    return a(a), lambda context, builder, signature, args: call_intrinsic(
        builder, "llvm.sqrt", *args
    )


@intrinsic(lambda a, b: np.where(a > b, a, b))
def maximum(typing, a, b):
    """Return a where a > b, else b (also where a or b is nan)."""

    def code(context, builder, signature, args):
        return _emit_extremum(builder, "max", ">", *args)

    return a(a, a), code


@intrinsic(lambda a, b: np.where(a < b, a, b))
def minimum(typing, a, b):
    """Return a where a < b, else b (also where a or b is nan)."""

    def code(context, builder, signature, args):
        return _emit_extremum(builder, "min", "<", *args)

    return a(a, a), code


def _emit_extremum(builder, name, comparison, a, b):
    """Return a if the comparison with b holds, and b otherwise, in each lane.

    With AVX2, the instruction is named explicitly. If the result of a comparison is stored where a
    was loaded, LLVM would otherwise generate a masked store, which takes 12 times as long on AMD
    processors.
    """
    if VECTOR_BYTES != 32:
        return builder.select(builder.fcmp_ordered(comparison, a, b), a, b)
    suffix = "ps" if isinstance(a.type.element, ir.FloatType) else "pd"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(a.type, [a.type] * 2), f"llvm.x86.avx.{name}.{suffix}.256"
    )
    return builder.call(function, [a, b])


@intrinsic(lambda a, b: np.where((a > b) | (a != a), a, b))
def maximum_or_nan(typing, a, b):
    """Return the maximum of a and b in each lane, and nan where a or b is nan."""

    def code(context, builder, signature, args):
        a, b = args
        nan = builder.fcmp_unordered("uno", a, a)
        return builder.select(builder.or_(builder.fcmp_ordered(">", a, b), nan), a, b)

    return a(a, b), code


# ---------------------------------------------------------------- selection


@intrinsic(lambda x, y, a, b: np.where(x > y, a, b))
def select_greater(typing, x, y, a, b):
    """Return a where x > y, else b."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args[:2]), *args[2:])

    return a(x, y, a, b), code


@intrinsic(lambda x, y, a, b: np.where(x == y, a, b))
def select_equal(typing, x, y, a, b):
    """Return a where x = y, else b."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("==", *args[:2]), *args[2:])

    return a(x, y, a, b), code


@intrinsic(lambda words, i, bit, a, b: np.where(words[i : i + len(a)] >> bit & 1, a, b))
def select_bit(typing, words, i, bit, a, b):
    """Return, in each lane l, a where bit `bit` of words[i + l] is 1, and b elsewhere."""

    def code(context, builder, signature, args):
        many = ir.VectorType(ir.IntType(64), a.lanes)
        pointer = element_pointer(context, builder, words, *args[:2], a.lanes)
        found = builder.load(builder.bitcast(pointer, many.as_pointer()), align=8)
        place = builder.shl(ir.IntType(64)(1), args[2])
        chosen = builder.and_(found, emit_broadcast(builder, place, many))
        return builder.select(builder.icmp_unsigned("!=", chosen, many(None)), *args[3:])

    return a(words, types.intp, types.uint64, a, a), code


# ---------------------------------------------------------------- order of lanes


@intrinsic(lambda a, b: np.concatenate([a, b])[::2])
def concat_even(typing, a, b):
    """Return the even lanes of both vectors, a[0], a[2], …, b[0], b[2], …"""
    lanes = range(0, 2 * a.lanes, 2)
    return a(a, b), lambda context, builder, signature, args: _shuffle(builder, *args, lanes)


@intrinsic(lambda a, b: np.stack([a, b], axis=1).reshape(-1)[: len(a)])
def interleave_low(typing, a, b):
    """Interleave the first halves of two vectors, a[0], b[0], a[1], b[1], …"""
    lanes = [i // 2 + i % 2 * a.lanes for i in range(a.lanes)]
    return a(a, b), lambda context, builder, signature, args: _shuffle(builder, *args, lanes)


@intrinsic(lambda a, b: np.stack([a, b], axis=1).reshape(-1)[len(a) :])
def interleave_high(typing, a, b):
    """Interleave the second halves of two vectors, as `interleave_low` does with the first."""
    half = a.lanes // 2
    lanes = [half + i // 2 + i % 2 * a.lanes for i in range(a.lanes)]
    return a(a, b), lambda context, builder, signature, args: _shuffle(builder, *args, lanes)


def _shuffle(builder, a, b, lanes):
    order = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return builder.shuffle_vector(a, b, order)


# ---------------------------------------------------------------- all lanes as one number


def _horizontal(emit):
    """Return the typing of an intrinsic that combines halves by `emit` until one lane is left."""

    def typing_of(typing, v):
        def code(context, builder, signature, args):
            x = args[0]
            while x.type.count > 1:
                half = x.type.count // 2
                parts = [
                    builder.shuffle_vector(x, x, ir.VectorType(ir.IntType(32), half)(list(part)))
                    for part in (range(half), range(half, 2 * half))
                ]
                x = emit(builder, *parts)
            return builder.extract_element(x, ir.IntType(32)(0))

        return v.dtype(v), code

    return typing_of


@intrinsic(np.sum)
def hsum(typing, v):
    """Return the sum of all lanes."""
    return _horizontal(lambda builder, a, b: builder.fadd(a, b))(typing, v)


@intrinsic(np.max)
def hmax(typing, v):
    """Return the largest of all lanes, none of which may be nan."""
    return _horizontal(lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))(typing, v)


@intrinsic(np.min)
def hmin(typing, v):
    """Return the smallest of all lanes, none of which may be nan."""
    return _horizontal(lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y))(typing, v)


# ---------------------------------------------------------------- exp

# eˣ = 2ⁿ eʳ with x = n ln 2 + r and |r| ≤ ln 2 / 2. A polynomial in r gives eʳ. In float32, it has
# degree 5 and an error of at most 9e-8, about the last bit. Without FMA, products are rounded
# before they are added, so it has degree 6 (error 4e-9). In float64, it is the Taylor series of
# degree 13. Adding 1.5 · 2²³ (float64: 1.5 · 2⁵²) to x / ln 2 rounds it to n, because no bits are
# left for a fraction, and n is in the lowest bits. The bias of exponents (127, 1023) is added too,
# so these bits, shifted to the place of the exponent, are the number 2ⁿ. ln 2 is split in two, so
# that n ln 2 is exact.
EXP = {
    32: (
        "float",
        23,
        127,
        -87.0,
        (0.693359375, -2.12194440e-4),
        (8.290311104e-3, 4.189816853e-2, 1.666763738e-1, 4.999914775e-1, 9.999997067e-1, 1.0)
        if HAS_FMA
        else (
            1.381459413e-3,
            8.368719369e-3,
            4.166838899e-2,
            1.666652113e-1,
            4.999999404e-1,
            1.0,
            1.0,
        ),
    ),
    64: (
        "double",
        52,
        1023,
        -708.0,
        (0.693147180369123816490, 1.90821492927058770002e-10),
        tuple(1 / float(np.prod(np.arange(1.0, i + 1))) for i in range(13, -1, -1)),
    ),
}


@intrinsic(np.exp)
def exp(typing, x):
    """Return eˣ for x ≤ 88 (float64: 709), 0 for x < -87 (-708), and nan for nan.

    In float32, the error is at most 2.0 units in the last place (tests/scripts/all_floats.py).
    """

    def code(context, builder, signature, args):
        kind, (x,) = llvm_type(signature.return_type), args
        bits = signature.return_type.dtype.bitwidth
        _, digits, bias, lowest, ln2, polynomial = EXP[bits]
        integers = ir.VectorType(ir.IntType(bits), kind.count)

        def constant(number):
            return kind([number] * kind.count)

        def fma(a, b, c):
            return call_intrinsic(builder, "llvm.fmuladd", a, b, c)

        shift = constant(1.5 * 2.0**digits + bias)
        tiny = builder.fcmp_ordered("<", x, constant(lowest))
        shifted = fma(x, constant(float(np.log2(np.e))), shift)
        n = builder.fsub(shifted, shift)
        r = fma(n, constant(-ln2[1]), fma(n, constant(-ln2[0]), x))
        y = constant(polynomial[0])
        for c in polynomial[1:]:
            y = fma(y, r, constant(c))
        places = integers([digits] * kind.count)
        power = builder.bitcast(builder.shl(builder.bitcast(shifted, integers), places), kind)
        return builder.select(tiny, constant(0.0), builder.fmul(y, power))

    return x(x), code
