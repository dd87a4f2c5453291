"""Vector instructions for kernels: one instruction does the same with 4, 8 or 16 numbers.

A compiler finds vector instructions by itself where a loop is simple. Where it does not, or picks
too few registers, a kernel says what it wants with the functions of this file:

    x = load(a, i)                  the vector a[i], a[i + 1], …, a[i + WIDTH - 1]
    y = fma(x, x, broadcast(x, 2))  x · x + 2 in each lane (x + y, x - y, x * y work too)
    store(b, i, y)

Each of them is an `instruction`: the lambda in its first line says what it means, in NumPy; that
is what runs without Numba. Below it stands what Numba puts into the machine code: a piece of
LLVM's intermediate language, written through its `builder`. That is done at compile time, so a
Python loop in there unrolls.

How wide a vector is depends on the processor: 64 bytes with AVX-512, 32 with AVX2, else 16 (NEON,
SSE). `width(x)` is the number of lanes for the dtype of x. Numba compiles for the processor at
hand, and its cache on disk keeps the versions for different processors apart.
"""

import operator

import numpy as np

from tinyattn.kernels import numba

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.registry import cpu_target
    from numba.extending import (
        intrinsic,
        lower_builtin,
        models,
        overload,
        register_model,
        type_callable,
    )
    from numba.np.arrayobj import populate_array


def processor():
    """(bytes in a vector, number of vector registers) of the processor that Numba compiles for."""
    if numba is None:
        return 16, 16
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()[:3]
    if "+avx512f" in features:
        return 64, 32
    if "+avx2" in features:
        return 32, 16
    return 16, 32 if triple.startswith(("aarch64", "arm64")) else 16


BYTES, REGISTERS = processor()


def width(x):
    """How many numbers of x's dtype fill a vector."""
    return BYTES // x.dtype.itemsize


if numba is not None:

    @overload(width)
    def _width(x):
        lanes = BYTES // (x.dtype.bitwidth // 8)
        return lambda x: lanes

    class Vector(types.Type):
        """Numba's type of a vector of float32 or float64."""

        def __init__(self, dtype):
            self.dtype, self.lanes = dtype, BYTES * 8 // dtype.bitwidth
            super().__init__(name=f"Vector({dtype} x {self.lanes})")

        @staticmethod
        def lanes_of(number):
            """How many numbers of this type of LLVM fill a vector."""
            return BYTES // (4 if isinstance(number, ir.FloatType) else 8)

    @register_model(Vector)
    class _VectorModel(models.PrimitiveModel):
        def __init__(self, manager, vector):
            super().__init__(manager, vector, _llvm(vector))


else:
    Vector = None


def _llvm(vector):
    number = ir.FloatType() if vector.dtype.bitwidth == 32 else ir.DoubleType()
    return ir.VectorType(number, vector.lanes)


def instruction(meaning):
    """A function for kernels: `meaning` without Numba, else what the decorated function emits."""
    return lambda typing: meaning if numba is None else intrinsic(typing)


# ---------------------------------------------------------------- memory


def at(context, builder, x, array, i, n):
    """Where x[i] is in memory. With NUMBA_BOUNDSCHECK=1, x[i] … x[i + n - 1] must exist."""
    array = context.make_array(x)(context, builder, array)
    if numba.config.BOUNDSCHECK:
        size = cgutils.unpack_tuple(builder, array.shape)[0]
        n = n if isinstance(n, ir.Value) else size.type(n)
        low = builder.icmp_signed("<", i, i.type(0))
        high = builder.icmp_signed(">", builder.add(i, n), size)
        with builder.if_then(builder.or_(low, high)):
            context.call_conv.return_user_exc(builder, IndexError, ("vector outside of array",))
    return builder.gep(array.data, [i])


def spread(builder, pointer, i=0):
    """A pointer to a number as one to the vector that starts i numbers further on."""
    number = pointer.type.pointee
    kind = ir.VectorType(number, Vector.lanes_of(number))
    pointer = builder.gep(pointer, [ir.IntType(64)(i)]) if i else pointer
    return builder.bitcast(pointer, kind.as_pointer())


def fetch(builder, place, cache=1):
    """Ask for the line of memory at a place that will be read soon; any place is allowed."""
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    to_read, near, data = word(0), word(4 - cache), word(1)
    builder.call(prefetch, [builder.bitcast(place, byte), to_read, near, data])


def _room_meaning(n, like):
    return np.zeros(n, like.dtype)


@instruction(_room_meaning)
def room(typing, n, like):
    """Memory for n numbers of the dtype of `like`, starting at a multiple of 64 bytes.

    A vector that lies across two lines of the cache (64 bytes each) takes twice as long to read.
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


@instruction(lambda: None)
def once(typing):
    """First statement of a kernel that others call: its code is not repeated where it is called.

    Short functions are faster when repeated (inlined), long ones only take longer to compile.
    """

    def code(context, builder, signature, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code


@instruction(lambda x, i: sum(1 << b for b in range(64) if x[i + b]))
def bits(typing, x, i):
    """64 bytes x[i] … as the bits of one integer: bit b is 1 where x[i + b] is not 0."""

    def code(context, builder, signature, args):
        pointer = at(context, builder, x, *args, 64)
        many = ir.VectorType(ir.IntType(8), 64)
        row = builder.load(builder.bitcast(pointer, many.as_pointer()), align=1)
        return builder.bitcast(builder.icmp_unsigned("!=", row, many(None)), ir.IntType(64))

    return types.uint64(x, types.intp), code


@instruction(lambda x, i: x[i : i + width(x)].copy())
def load(typing, x, i):
    """The vector x[i], x[i + 1], …"""
    vector = Vector(x.dtype)

    def code(context, builder, signature, args):
        pointer = at(context, builder, x, *args, vector.lanes)
        return builder.load(spread(builder, pointer), align=x.dtype.bitwidth // 8)

    return vector(x, types.intp), code


@instruction(lambda x, i, v: x.__setitem__(slice(i, i + width(x)), v))
def store(typing, x, i, v):
    """x[i], x[i + 1], … = v"""

    def code(context, builder, signature, args):
        pointer = at(context, builder, x, *args[:2], v.lanes)
        builder.store(args[2], spread(builder, pointer), align=x.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(x, types.intp, v), code


@instruction(lambda like, number: np.full(width(like), number, like.dtype))
def broadcast(typing, like, number):
    """A vector with the same number in all lanes, of the dtype of `like` (array or vector)."""
    vector = Vector(like.dtype)

    def code(context, builder, signature, args):
        return broadcasted(builder, args[1], _llvm(vector))

    return vector(like, like.dtype), code


def broadcasted(builder, number, kind):
    """The same for other instructions: a vector of LLVM's type `kind`."""
    first = builder.insert_element(kind(ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.VectorType(ir.IntType(32), kind.count)(None)
    return builder.shuffle_vector(first, kind(ir.Undefined), zeros)


def lanes_before(builder, kind, i, end):
    """Which lanes l of a vector are at i + l < end, as a vector of bits."""
    integers = ir.VectorType(ir.IntType(64), kind.count)
    lanes = integers(list(range(kind.count)))
    left = broadcasted(builder, builder.sub(end, i), integers)
    return builder.icmp_signed("<", lanes, left)


def lanes_left(builder, kind, i, end):
    """How many lanes those are; 0 or less if there are none."""
    left, all_of_them = builder.sub(end, i), ir.IntType(64)(kind.count)
    return builder.select(builder.icmp_signed("<", left, all_of_them), left, all_of_them)


def load_lanes(builder, place, lanes, rest):
    """The vector at a place in memory, in these lanes; in the others `rest`, a vector or a number.
    Their memory is not touched.
    """
    kind = place.type.pointee
    rest = rest if isinstance(rest, ir.Value) else kind([rest] * kind.count)
    return _masked(builder, "load", kind, [place, _size(kind), lanes, rest])


def store_lanes(builder, v, place, lanes):
    """Put these lanes of a vector into memory."""
    _masked(builder, "store", ir.VoidType(), [v, place, _size(v.type), lanes])


def _masked(builder, name, result, args):
    kind = args[-1].type if name == "load" else args[0].type
    suffix = f"v{kind.count}{short(kind.element)}"
    function = ir.FunctionType(result, [x.type for x in args])
    name = f"llvm.masked.{name}.{suffix}.p0{suffix}"
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)


def _size(kind):
    """The bytes of one number of a vector, which a place in memory is a multiple of."""
    return ir.IntType(32)(8 if isinstance(kind.element, ir.DoubleType) else 4)


def short(number):
    """How a type of numbers is written in the names of LLVM's functions: f32, f64, i32."""
    if isinstance(number, ir.IntType):
        return f"i{number.width}"
    return "f32" if isinstance(number, ir.FloatType) else "f64"


@instruction(lambda x, i, end, rest: np.array([*x[i:end], *[rest] * width(x)][: width(x)], x.dtype))
def load_until(typing, x, i, end, rest):
    """The vector x[i], x[i + 1], … with the number `rest` in the lanes from x[end] on."""
    vector = Vector(x.dtype)

    def code(context, builder, signature, args):
        x, i, end, rest = args
        kind = _llvm(vector)
        n = lanes_left(builder, kind, i, end)
        place = spread(builder, at(context, builder, signature.args[0], x, i, n))
        rest = broadcasted(builder, rest, kind)
        return load_lanes(builder, place, lanes_before(builder, kind, i, end), rest)

    return vector(x, types.intp, types.intp, x.dtype), code


@instruction(lambda x, i, end, v: x[i:end].__setitem__(slice(width(x)), v[: end - i]))
def store_until(typing, x, i, end, v):
    """x[i], x[i + 1], … = v, up to x[end - 1] at most."""

    def code(context, builder, signature, args):
        x, i, end, v = args
        n = lanes_left(builder, v.type, i, end)
        place = spread(builder, at(context, builder, signature.args[0], x, i, n))
        store_lanes(builder, v, place, lanes_before(builder, v.type, i, end))
        return context.get_dummy_value()

    return types.void(x, types.intp, types.intp, v), code


# ---------------------------------------------------------------- arithmetic


def called(builder, name, *args):
    """LLVM's own function of this name, for the type of the arguments (llvm.sqrt.v16f32)."""
    kind = args[0].type
    suffix = f"v{kind.count}{short(kind.element)}"
    function = ir.FunctionType(kind, [kind] * len(args))
    return builder.call(
        cgutils.get_or_insert_function(builder.module, function, f"{name}.{suffix}"), args
    )


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
        vector = _llvm(signature.return_type)
        a, b = (x if x.type == vector else broadcasted(builder, x, vector) for x in args)
        return getattr(builder, emit)(a, b)

    for pair in ((Vector, Vector), (Vector, types.Float), (types.Float, Vector)):
        lower_builtin(function, *pair)(code)


if numba is not None:
    _arithmetic(operator.add, "fadd")
    _arithmetic(operator.sub, "fsub")
    _arithmetic(operator.mul, "fmul")
    _arithmetic(operator.truediv, "fdiv")


@instruction(lambda a, b, c: a * b + c)
def fma(typing, a, b, c):
    """a · b + c, rounded once where the processor can do that."""

    def code(context, builder, signature, args):
        return called(builder, "llvm.fmuladd", *args)

    return a(a, a, a), code


@instruction(lambda a, b: np.where(a > b, a, b))
def maximum(typing, a, b):
    """a where a > b, else b (also where a or b is nan)."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, a), code


@instruction(lambda a, b: np.where(a < b, a, b))
def minimum(typing, a, b):
    """a where a < b, else b (also where a or b is nan)."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return a(a, a), code


@instruction(lambda a, b: np.where((a > b) | (a != a), a, b))
def maximum_or_nan(typing, a, b):
    """a where a > b or a is nan, else b: the maximum, and nan where either is."""

    def code(context, builder, signature, args):
        a, b = args
        nan = builder.fcmp_unordered("uno", a, a)
        return builder.select(builder.or_(builder.fcmp_ordered(">", a, b), nan), a, b)

    return a(a, b), code


@instruction(lambda x, y, a, b: np.where(x > y, a, b))
def above(typing, x, y, a, b):
    """a where x > y, else b."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args[:2]), *args[2:])

    return a(x, y, a, b), code


@instruction(lambda x, y, a, b: np.where(x == y, a, b))
def same(typing, x, y, a, b):
    """a where x = y, else b."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("==", *args[:2]), *args[2:])

    return a(x, y, a, b), code


@instruction(lambda a, b: np.concatenate([a, b])[::2])
def every_second(typing, a, b):
    """a[0], a[2], …, b[0], b[2], …"""
    lanes = range(0, 2 * a.lanes, 2)
    return a(a, b), lambda context, builder, signature, args: _shuffled(builder, *args, lanes)


@instruction(lambda a, b: np.stack([a, b], axis=1).reshape(-1)[: len(a)])
def interleave_low(typing, a, b):
    """a[0], b[0], a[1], b[1], …: the first halves of both."""
    lanes = [i // 2 + i % 2 * a.lanes for i in range(a.lanes)]
    return a(a, b), lambda context, builder, signature, args: _shuffled(builder, *args, lanes)


@instruction(lambda a, b: np.stack([a, b], axis=1).reshape(-1)[len(a) :])
def interleave_high(typing, a, b):
    """The second halves of both in the same way."""
    half = a.lanes // 2
    lanes = [half + i // 2 + i % 2 * a.lanes for i in range(a.lanes)]
    return a(a, b), lambda context, builder, signature, args: _shuffled(builder, *args, lanes)


def _shuffled(builder, a, b, lanes):
    order = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return builder.shuffle_vector(a, b, order)


@instruction(np.sqrt)
def sqrt(typing, a):
    """The square root."""
    return a(a), lambda context, builder, signature, args: called(builder, "llvm.sqrt", *args)


@instruction(lambda words, i, bit, a, b: np.where(words[i : i + len(a)] >> bit & 1, a, b))
def select(typing, words, i, bit, a, b):
    """Lane l of a where this bit of words[i + l] is 1, else of b."""

    def code(context, builder, signature, args):
        many = ir.VectorType(ir.IntType(64), a.lanes)
        pointer = at(context, builder, words, *args[:2], a.lanes)
        found = builder.load(builder.bitcast(pointer, many.as_pointer()), align=8)
        place = builder.shl(ir.IntType(64)(1), args[2])
        chosen = builder.and_(found, broadcasted(builder, place, many))
        return builder.select(builder.icmp_unsigned("!=", chosen, many(None)), *args[3:])

    return a(words, types.intp, types.uint64, a, a), code


def _fold(emit):
    """All lanes of a vector as one number: halves upon each other until one lane is left."""

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


@instruction(np.sum)
def total(typing, v):
    """The sum of all lanes."""
    return _fold(lambda builder, a, b: builder.fadd(a, b))(typing, v)


@instruction(np.max)
def highest(typing, v):
    """The largest of all lanes (none of them nan)."""
    return _fold(lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))(typing, v)


@instruction(np.min)
def lowest(typing, v):
    """The smallest of all lanes (none of them nan)."""
    return _fold(lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y))(typing, v)


# ---------------------------------------------------------------- exp

# eˣ = 2ⁿ eʳ with x = n ln 2 + r and |r| ≤ ln 2 / 2. A polynomial in r gives eʳ (degree 5, 9e-8
# off at most, in float32: about the last bit; the Taylor series of degree 13 in float64), and 2ⁿ
# is n added to the exponent bits. Adding 1.5 · 2²³ (float64: 1.5 · 2⁵²) leaves no room for a
# fraction: it rounds, and n is in the lowest bits. ln 2 is split in two, so that n ln 2 is exact.
EXP = {
    32: (
        "float", 23, -87.0, (0.693359375, -2.12194440e-4),
        (8.290311104e-3, 4.189816853e-2, 1.666763738e-1, 4.999914775e-1, 9.999997067e-1, 1.0),
    ),
    64: (
        "double", 52, -708.0, (0.693147180369123816490, 1.90821492927058770002e-10),
        tuple(1 / float(np.prod(np.arange(1.0, i + 1))) for i in range(13, -1, -1)),
    ),
}  # fmt: skip


@instruction(np.exp)
def exp(typing, x):
    """eˣ for x ≤ 88 (float64: 709); 0 below -87 (-708), nan for nan."""

    def code(context, builder, signature, args):
        kind, (x,) = _llvm(signature.return_type), args
        bits = signature.return_type.dtype.bitwidth
        _, digits, lowest, ln2, polynomial = EXP[bits]
        integers = ir.VectorType(ir.IntType(bits), kind.count)

        def constant(number):
            return kind([number] * kind.count)

        def fma(a, b, c):
            return called(builder, "llvm.fmuladd", a, b, c)

        shift = constant(1.5 * 2.0**digits)
        tiny = builder.fcmp_ordered("<", x, constant(lowest))
        shifted = fma(x, constant(float(np.log2(np.e))), shift)
        n = builder.fsub(shifted, shift)
        r = fma(n, constant(-ln2[1]), fma(n, constant(-ln2[0]), x))
        y = constant(polynomial[0])
        for c in polynomial[1:]:
            y = fma(y, r, constant(c))
        places = integers([digits] * kind.count)
        exponent = builder.shl(builder.bitcast(shifted, integers), places)
        y = builder.bitcast(builder.add(builder.bitcast(y, integers), exponent), kind)
        return builder.select(tiny, constant(0.0), y)

    return x(x), code
