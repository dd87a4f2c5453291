"""Building blocks in LLVM's intermediate language for the intrinsics of this folder.

At compile time, an intrinsic chooses the instructions of the machine code through LLVM's `builder`.
A Python loop around `builder` calls is thus unrolled. The functions of this file emit code that
many intrinsics need, such as addresses of elements, loads and stores of some lanes, loops, and
functions.
"""

from tinyattn.kernels.machine.compile import numba

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.core.registry import cpu_target
    from numba.extending import models, register_model

    INT64 = ir.IntType(64)


def vector_unit():
    """Return (bytes in a vector, number of vector registers) of Numba's target processor."""
    if numba is None:
        return 16, 16
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()[:3]
    if "+avx512f" in features:
        return 64, 32
    if "+avx2" in features:
        return 32, 16
    return 16, 32 if triple.startswith(("aarch64", "arm64")) else 16


def has_fma():
    """Return whether the processor rounds a · b + c once. Without Numba, NumPy rounds it twice."""
    if numba is None:
        return False
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()[:3]
    if triple.startswith(("aarch64", "arm64")):
        return True
    return not {"+fma", "+avx512f"}.isdisjoint(features.split(","))


VECTOR_BYTES, VECTOR_REGISTERS = vector_unit()
HAS_FMA = has_fma()


if numba is not None:

    class Vector(types.Type):
        """Numba's type of a vector of float32 or float64."""

        def __init__(self, dtype):
            self.dtype, self.lanes = dtype, VECTOR_BYTES * 8 // dtype.bitwidth
            super().__init__(name=f"Vector({dtype} x {self.lanes})")

        @staticmethod
        def lanes_of(number):
            """Return how many numbers of this type of LLVM fill a vector."""
            return VECTOR_BYTES // size_of(number)

    @register_model(Vector)
    class _VectorModel(models.PrimitiveModel):
        def __init__(self, manager, vector):
            super().__init__(manager, vector, llvm_type(vector))


else:
    Vector = None


def llvm_type(vector):
    number = ir.FloatType() if vector.dtype.bitwidth == 32 else ir.DoubleType()
    return ir.VectorType(number, vector.lanes)


def size_of(number):
    """Return the bytes of a float32, float64 or integer, given as a type of LLVM."""
    if isinstance(number, ir.IntType):
        return number.width // 8
    return 4 if isinstance(number, ir.FloatType) else 8


# ---------------------------------------------------------------- memory


def element_pointer(context, builder, x, array, i, n):
    """Return the address of x[i]. With NUMBA_BOUNDSCHECK=1, x[i] … x[i + n - 1] must exist."""
    array = context.make_array(x)(context, builder, array)
    if numba.config.BOUNDSCHECK:
        size = cgutils.unpack_tuple(builder, array.shape)[0]
        n = n if isinstance(n, ir.Value) else size.type(n)
        low = builder.icmp_signed("<", i, i.type(0))
        high = builder.icmp_signed(">", builder.add(i, n), size)
        with builder.if_then(builder.or_(low, high)):
            context.call_conv.return_user_exc(builder, IndexError, ("vector outside of array",))
    return builder.gep(array.data, [i])


def vector_pointer(builder, pointer, i=0):
    """Return a pointer to the vector that starts i numbers after the number at `pointer`."""
    number = pointer.type.pointee
    kind = ir.VectorType(number, Vector.lanes_of(number))
    pointer = builder.gep(pointer, [INT64(i)]) if i else pointer
    return builder.bitcast(pointer, kind.as_pointer())


def emit_prefetch(builder, place, cache=1):
    """Prefetch the cache line at any address `place` into the first or second cache (1 or 2)."""
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    to_read, near, data = word(0), word(4 - cache), word(1)
    builder.call(prefetch, [builder.bitcast(place, byte), to_read, near, data])


def extent_of(builder, rows, row, columns, column):
    """Return how many numbers a matrix with the strides row and column spans, or 0 if empty."""
    one, zero = INT64(1), INT64(0)
    last = builder.mul(builder.sub(rows, one), row)
    last = builder.add(last, builder.mul(builder.sub(columns, one), column))
    none = builder.or_(*[builder.icmp_signed("<=", m, zero) for m in (rows, columns)])
    return builder.select(none, zero, builder.add(last, one))


def tail_mask(builder, kind, i, end):
    """Return which lanes l of a vector are at i + l < end, as a vector of bits.

    The compared integers are as wide as the numbers, because their result is then the mask that
    AVX2 uses for loads and stores, while integers of 64 bits would have to be narrowed first.
    """
    number = ir.IntType(8 * size_of(kind.element))
    integers = ir.VectorType(number, kind.count)
    left, none = tail_length(builder, kind, i, end), INT64(0)
    left = builder.select(builder.icmp_signed("<", left, none), none, left)
    left = emit_broadcast(builder, builder.trunc(left, number), integers)
    return builder.icmp_signed("<", integers(list(range(kind.count))), left)


def tail_length(builder, kind, i, end):
    """Return how many lanes l of a vector are at i + l < end, or a number ≤ 0 if none are."""
    left, all_of_them = builder.sub(end, i), INT64(kind.count)
    return builder.select(builder.icmp_signed("<", left, all_of_them), left, all_of_them)


def emit_by_length(builder, kind, i, end, whole, part):
    """Emit `whole()` if the vector at i ends before `end`, else `part(mask)`. Return the result.

    With AVX-512, only `part` is used, because a masked instruction is as fast as an unmasked one.
    With AVX2 on AMD processors, a masked store takes 12 times as long, and without masks (NEON,
    SSE) each lane has a branch.
    """
    if VECTOR_BYTES == 64:
        return part(tail_mask(builder, kind, i, end))
    found = []
    enough = builder.icmp_signed("<=", INT64(kind.count), builder.sub(end, i))
    with builder.if_else(enough, likely=True) as (then, instead):
        with then:
            found.append((whole(), builder.block))
        with instead:
            found.append((part(tail_mask(builder, kind, i, end)), builder.block))
    if found[0][0] is None:
        return None
    result = builder.phi(kind)
    for value, block in found:
        result.add_incoming(value, block)
    return result


def emit_masked_load(builder, place, lanes, rest):
    """Emit a load of the lanes that the mask `lanes` selects, with `rest` in the other lanes."""
    kind = place.type.pointee
    rest = rest if isinstance(rest, ir.Value) else kind([rest] * kind.count)
    return _call_masked(builder, "load", kind, [place, _alignment(kind), lanes, rest])


def emit_masked_store(builder, v, place, lanes):
    """Emit a store of the lanes of v that the mask `lanes` selects."""
    _call_masked(builder, "store", ir.VoidType(), [v, place, _alignment(v.type), lanes])


def _call_masked(builder, name, result, args):
    kind = args[-1].type if name == "load" else args[0].type
    suffix = f"v{kind.count}{type_suffix(kind.element)}"
    function = ir.FunctionType(result, [x.type for x in args])
    name = f"llvm.masked.{name}.{suffix}.p0{suffix}"
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)


# ---------------------------------------------------------------- instructions and functions


def _alignment(kind):
    return ir.IntType(32)(size_of(kind.element))


def type_suffix(number):
    """Return how a type of numbers is written in the names of LLVM's functions: f32, f64, i32."""
    if isinstance(number, ir.IntType):
        return f"i{number.width}"
    return "f32" if isinstance(number, ir.FloatType) else "f64"


def emit_broadcast(builder, number, kind):
    """Emit a vector of LLVM's type `kind` with `number` in all lanes."""
    first = builder.insert_element(kind(ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.VectorType(ir.IntType(32), kind.count)(None)
    return builder.shuffle_vector(first, kind(ir.Undefined), zeros)


def call_intrinsic(builder, name, *args):
    """Call LLVM's function of this name for the type of the arguments, such as llvm.sqrt.v16f32."""
    kind = args[0].type
    suffix = f"v{kind.count}{type_suffix(kind.element)}"
    function = ir.FunctionType(kind, [kind] * len(args))
    return builder.call(
        cgutils.get_or_insert_function(builder.module, function, f"{name}.{suffix}"), args
    )


def emit_loop(builder, start, stop, step):
    """Emit `for i in range(start, stop, step)` around a with statement, and yield (i, count)."""
    return cgutils.for_range_slice(builder, start, stop, INT64(step), inc=True)


def call_subroutine(builder, name, arguments, emit):
    """Call the function `name`, whose code `emit(its builder, *its arguments)` writes only once."""
    kinds = [x.type for x in arguments]
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), kinds), f"tinyattn_{name}"
    )
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        inside = ir.IRBuilder(function.append_basic_block())
        emit(inside, *function.args)
        inside.ret_void()
    builder.call(function, arguments)
