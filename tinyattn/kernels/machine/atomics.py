"""Atomic instructions, with which threads inside kernels agree on which thread does what.

In Python, only one thread runs at a time, so a kernel that returned to Python to ask for its next
piece of work would wait for the others. With these instructions, it need not return.

`fetch_add`, `atomic_load` and `atomic_store` work on one number of an array that several threads
share. No thread ever sees a half-finished operation, and all threads see the operations in the same
order (*sequentially consistent* in the C standard). Therefore, a thread that loads a number also
sees everything that was written before that number was stored.

A waiting thread loads a number repeatedly (it spins) instead of sleeping. Therefore, wait only for
something short that another thread is already doing.
"""

import platform

from tinyattn.kernels.machine.compile import helper, intrinsic, numba
from tinyattn.kernels.machine.llvm import element_pointer

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

HAS_YIELD = platform.system() in ("Linux", "Darwin")
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")


def _fetch_add_reference(x, i, n):
    x[i] += n
    return x[i] - n


@intrinsic(_fetch_add_reference)
def fetch_add(typing, x, i, n):
    """Add n to x[i] of an int64 array, and return the old x[i]."""

    def code(context, builder, signature, args):
        place = element_pointer(context, builder, x, *args[:2], 1)
        return builder.atomic_rmw("add", place, args[2], "seq_cst")

    return types.int64(x, types.intp, types.int64), code


@intrinsic(lambda x, i: x[i])
def atomic_load(typing, x, i):
    """Load x[i] of an int64 array."""

    def code(context, builder, signature, args):
        return builder.load_atomic(element_pointer(context, builder, x, *args, 1), "seq_cst", 8)

    return types.int64(x, types.intp), code


@intrinsic(lambda x, i, value: x.__setitem__(i, value))
def atomic_store(typing, x, i, value):
    """Store a value to x[i] of an int64 array."""

    def code(context, builder, signature, args):
        builder.store_atomic(
            args[2], element_pointer(context, builder, x, *args[:2], 1), "seq_cst", 8
        )
        return context.get_dummy_value()

    return types.void(x, types.intp, types.int64), code


@intrinsic(lambda: None)
def pause(typing):
    """Wait for a moment, in which a second thread on the same processor core runs faster."""

    def code(context, builder, signature, args):
        if IS_X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), code


@intrinsic(lambda: None)
def yield_processor(typing):
    """Let another thread run on this processor, if one is waiting for it."""

    def code(context, builder, signature, args):
        if HAS_YIELD:
            kind = ir.FunctionType(ir.IntType(32), [])
            yield_ = cgutils.get_or_insert_function(builder.module, kind, "sched_yield")
            builder.call(yield_, [])
        return context.get_dummy_value()

    return types.void(), code


@helper
def wait_for(x, i, value):
    """Wait until x[i], which another thread changes, is equal to `value`."""
    while atomic_load(x, i) != value:
        yield_processor()
