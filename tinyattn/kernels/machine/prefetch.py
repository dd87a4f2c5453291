"""Nontemporal stores and prefetching, for arrays that are larger than the cache.

An ordinary store first reads the cache line that it changes a part of. For a result that is written
from front to back, and is too large to stay in the cache, that reading is a third of all traffic to
memory. A nontemporal store goes past the cache: it writes whole lines and reads none.
"""

from tinyattn.engine.memory import LARGEST, LINE
from tinyattn.kernels.machine.compile import helper, intrinsic, noinline, numba
from tinyattn.kernels.machine.llvm import element_pointer, emit_prefetch, vector_pointer
from tinyattn.kernels.machine.simd import width

if numba is not None:
    from llvmlite import ir
    from numba import types


def use_nontemporal(x, C):
    """Whether to store rows of C numbers of x past the cache: large, and rows are whole vectors."""
    return bool(x.nbytes > LARGEST and C % width(x) == 0 and x.ctypes.data % LINE == 0)


@intrinsic(lambda x, i, v: x.__setitem__(slice(i, i + width(x)), v))
def store_nontemporal(typing, x, i, v):
    """x[i], x[i + 1], … = v past the cache; x[i] must be at a multiple of the size of a vector.

    Other threads may see it later than what is stored after it: call `fence` before they look.
    """

    def code(context, builder, signature, args):
        pointer = element_pointer(context, builder, x, *args[:2], v.lanes)
        size = v.lanes * x.dtype.bitwidth // 8
        stored = builder.store(args[2], vector_pointer(builder, pointer), align=size)
        one = builder.module.add_metadata([ir.IntType(32)(1)])
        stored.set_metadata("nontemporal", one)
        return context.get_dummy_value()

    return types.void(x, types.intp, v), code


@intrinsic(lambda: None)
def fence(typing):
    """From here on all threads see what was stored before."""

    def code(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), code


@intrinsic(lambda x, i: None)
def prefetch(typing, x, i):
    """Let the cache line of x[i] be brought into the second cache, without waiting for it.

    i may be any number: behind the end of x nothing is brought, or something that nobody needs.
    """

    def code(context, builder, signature, args):
        begin = context.make_array(x)(context, builder, args[0]).data
        emit_prefetch(builder, builder.gep(begin, [args[1]]), cache=2)
        return context.get_dummy_value()

    return types.void(x, types.intp), code


@helper
def prefetch_rows(x, x0, x_row, rows, columns):
    """The same for x[x0 + i · x_row + j], i < rows, j < columns.

    The processor itself prefetches what lies close behind, but not rows that are far apart.
    """
    noinline()
    for i in range(rows):
        for j in range(0, columns, LINE // x.itemsize):
            prefetch(x, x0 + i * x_row + j)
