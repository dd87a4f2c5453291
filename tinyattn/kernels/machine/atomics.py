"""How threads agree, inside of kernels, on who does what and on what is ready.

Between two pieces of work that Python hands out, a thread waits until the others let it run
Python: one at a time. With these instructions it goes on without.

`fetch_add`, `atomic_load` and `atomic_store` work on one number of an array that several threads
have in common. Each happens at once, and all threads find them in the same order ("sequentially
consistent" in the words of the C standard): who loads a number sees all that was written before it
was stored there.

Who waits here does not sleep. So one may wait only for what another thread is already doing, and
for a short time.
"""

import platform

from tinyattn.kernels import helper, numba
from tinyattn.kernels.machine.simd import at, instruction

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

HAS_YIELD = platform.system() in ("Linux", "Darwin")
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")


def _added(x, i, n):
    x[i] += n
    return x[i] - n


@instruction(_added)
def fetch_add(typing, x, i, n):
    """x[i] += n, for x of int64; returns the number before."""

    def code(context, builder, signature, args):
        place = at(context, builder, x, *args[:2], 1)
        return builder.atomic_rmw("add", place, args[2], "seq_cst")

    return types.int64(x, types.intp, types.int64), code


@instruction(lambda x, i: x[i])
def atomic_load(typing, x, i):
    """x[i], for x of int64."""

    def code(context, builder, signature, args):
        return builder.load_atomic(at(context, builder, x, *args, 1), "seq_cst", 8)

    return types.int64(x, types.intp), code


@instruction(lambda x, i, value: x.__setitem__(i, value))
def atomic_store(typing, x, i, value):
    """x[i] = value, for x of int64."""

    def code(context, builder, signature, args):
        builder.store_atomic(args[2], at(context, builder, x, *args[:2], 1), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(x, types.intp, types.int64), code


@instruction(lambda: None)
def pause(typing):
    """Nothing, for a moment: a thread on the same core goes faster meanwhile."""

    def code(context, builder, signature, args):
        if IS_X86:
            kind = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), code


@instruction(lambda: None)
def yield_processor(typing):
    """Let another thread that wants this very processor have it."""

    def code(context, builder, signature, args):
        if HAS_YIELD:
            kind = ir.FunctionType(ir.IntType(32), [])
            yield_ = cgutils.get_or_insert_function(builder.module, kind, "sched_yield")
            builder.call(yield_, [])
        return context.get_dummy_value()

    return types.void(), code


@helper
def wait_for(x, i, value):
    """Return when x[i] is the value."""
    while atomic_load(x, i) != value:
        yield_processor()
