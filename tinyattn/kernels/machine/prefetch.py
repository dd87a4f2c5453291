"""Nontemporal stores and prefetching, for arrays that are larger than the cache.

An ordinary store first reads the cache line that it changes. If a large result is written from
front to back and does not fit into the cache, these reads are a third of all memory traffic. A
nontemporal store bypasses the cache, so it writes whole lines without reading them.
"""

from tinyattn.engine.memory import LARGEST, LINE
from tinyattn.kernels.machine.compile import helper, intrinsic, noinline, numba
from tinyattn.kernels.machine.llvm import element_pointer, emit_prefetch, vector_pointer
from tinyattn.kernels.machine.simd import width

if numba is not None:
    from llvmlite import ir
    from numba import types


def use_nontemporal(x, C):
    """Return whether to store rows of C numbers of x past the cache."""
    return bool(x.nbytes > LARGEST and C % width(x) == 0 and x.ctypes.data % LINE == 0)


@intrinsic(lambda x, i, v: x.__setitem__(slice(i, i + width(x)), v))
def store_nontemporal(typing, x, i, v):
    """Store v to x[i], x[i + 1], … past the cache. x[i] must be aligned to the size of a vector.

    Other threads may see this store later than the stores after it, so call `fence` before they
    read it.
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
    """Make all earlier stores visible to all threads."""

    def code(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), code


@intrinsic(lambda x, i: None)
def prefetch(typing, x, i):
    """Start loading the cache line of x[i] into the second cache, without waiting for it.

    i may be any number. After the end of x, nothing is loaded, or a line that is not needed.
    """

    def code(context, builder, signature, args):
        begin = context.make_array(x)(context, builder, args[0]).data
        emit_prefetch(builder, builder.gep(begin, [args[1]]), cache=2)
        return context.get_dummy_value()

    return types.void(x, types.intp), code


@helper
def prefetch_rows(x, x0, x_row, rows, columns):
    """Prefetch x[x0 + i · x_row + j] for i < rows, j < columns.

    The processor automatically prefetches the next few lines, but not rows that are far apart.
    """
    noinline()
    for i in range(rows):
        for j in range(0, columns, LINE // x.itemsize):
            prefetch(x, x0 + i * x_row + j)
