"""How threads agree, inside of kernels, on who does what and on what is ready.

Between two pieces of work that Python hands out, a thread waits until the others let it run
Python: one at a time. With these three instructions it goes on without.

`claim` hands out numbers of tasks. `give` sets a flag after all that was written before it; who
has seen the flag with `wait_for` sees all that too (release and acquire, in the words of the C
standard). The waiting thread does not sleep: it may wait only for what another thread is already
doing, and for a short time.
"""

import platform

from tinyattn.kernels import numba
from tinyattn.kernels.simd import at, instruction

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

HAS_YIELD = platform.system() in ("Linux", "Darwin")


def _claimed(counter):
    counter[0] += 1
    return counter[0] - 1


@instruction(_claimed)
def claim(typing, counter):
    """The number in counter[0], which is one more for whoever comes next: 0, 1, 2, …

    So threads share tasks without a word to Python, where each would have to wait for the other.
    """

    def code(context, builder, signature, args):
        place = at(context, builder, counter, args[0], ir.IntType(64)(0), 1)
        return builder.atomic_rmw("add", place, ir.IntType(64)(1), "monotonic")

    return types.int64(counter), code


@instruction(lambda flags, i: flags.__setitem__(i, 1))
def give(typing, flags, i):
    """flags[i] = 1, for flags of int64."""

    def code(context, builder, signature, args):
        place = at(context, builder, flags, *args, 1)
        builder.store_atomic(ir.IntType(64)(1), place, "release", 8)
        return context.get_dummy_value()

    return types.void(flags, types.intp), code


def _until_given(flags, i):
    while not flags[i]:
        pass


@instruction(_until_given)
def wait_for(typing, flags, i):
    """Return when flags[i] is 1."""

    def code(context, builder, signature, args):
        place = at(context, builder, flags, *args, 1)
        look, wait, done = (builder.append_basic_block(n) for n in ("look", "wait", "given"))
        builder.branch(look)
        builder.position_at_end(look)
        flag = builder.load_atomic(place, "acquire", 8)
        given = builder.icmp_signed("!=", flag, flag.type(0))
        builder.cbranch(given, done, wait)
        builder.position_at_end(wait)
        if HAS_YIELD:  # the one we wait for may want this very processor
            kind = ir.FunctionType(ir.IntType(32), [])
            yield_ = cgutils.get_or_insert_function(builder.module, kind, "sched_yield")
            builder.call(yield_, [])
        builder.branch(look)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(flags, types.intp), code
