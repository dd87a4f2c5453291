"""Stores that go past the cache, and a look ahead: for arrays that no cache can hold.

An ordinary store first reads the line of memory that it changes a part of. For a result that is
written from front to back, and is so large that it is gone from the cache before anyone reads it,
that costs a third of all traffic. A store past the cache writes whole lines and reads none.
"""

from tinyattn.kernels import helper, numba
from tinyattn.kernels.machine.simd import at, fetch, instruction, once, spread, width
from tinyattn.memory import LARGEST, LINE

if numba is not None:
    from llvmlite import ir
    from numba import types


def passes(x, C):
    """Whether rows of C numbers of x may be stored past the cache: many, in whole vectors."""
    return bool(x.nbytes > LARGEST and C % width(x) == 0 and x.ctypes.data % LINE == 0)


@instruction(lambda x, i, v: x.__setitem__(slice(i, i + width(x)), v))
def store_past(typing, x, i, v):
    """x[i], x[i + 1], … = v past the cache; where x[i] is must be a multiple of a vector's size.

    It may become visible later than what is stored after it: `fence` before others may look.
    """

    def code(context, builder, signature, args):
        pointer = at(context, builder, x, *args[:2], v.lanes)
        size = v.lanes * x.dtype.bitwidth // 8
        stored = builder.store(args[2], spread(builder, pointer), align=size)
        one = builder.module.add_metadata([ir.IntType(32)(1)])
        stored.set_metadata("nontemporal", one)
        return context.get_dummy_value()

    return types.void(x, types.intp, v), code


@instruction(lambda: None)
def fence(typing):
    """What was stored before is visible to all from here on."""

    def code(context, builder, signature, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), code


@instruction(lambda x, i: None)
def look_ahead(typing, x, i):
    """Let the line of x[i] come into the second cache, without waiting for it."""

    def code(context, builder, signature, args):
        fetch(builder, at(context, builder, x, *args, 1), cache=2)
        return context.get_dummy_value()

    return types.void(x, types.intp), code


@helper
def look_ahead_at_rows(x, x0, x_row, rows, columns):
    """The same for x[x0 + i · x_row + j], i < rows, j < columns.

    A processor sees by itself what is read next if that lies close by, but not rows far apart.
    """
    once()
    for i in range(rows):
        for j in range(0, columns, LINE // x.itemsize):
            look_ahead(x, x0 + i * x_row + j)
