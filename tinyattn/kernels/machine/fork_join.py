"""All threads on one kernel, without Python between them: fork and join.

A kernel that can be shared does the items start … stop of its work. These are its last arguments,
behind the team, and it begins with

    if together(team, start, stop):
        return  # everything is done

With a team, `together` cuts start … stop into pieces and calls this same kernel for one piece
after the other, with the same arguments but nobody for a team. Meanwhile the helpers do so too.
They are threads in `serve`, who watch the team, take pieces as long as there are any, and go back
to sleep only when nothing has come for about a millisecond: to wake a thread takes longer than
many a kernel. One half of the threads begins with the first piece, the other with the last: then
who comes back to the same numbers, such as weights, finds most of them in the cache of its own.

A kernel of several steps lends the team on to the kernels that it calls, one after the other; see
`threads.lend`. For those that have little to do it passes team[:0], which is nobody.

A team is an array of int64. A number that several threads watch stands in a line of memory of its
own (8 numbers, 64 bytes): two processors cannot write to one line at the same time.
"""

import numpy as np

from tinyattn.kernels import helper, jit, numba
from tinyattn.kernels.machine.atomics import (
    atomic_load,
    atomic_store,
    fetch_add,
    pause,
    wait_for,
    yield_processor,
)
from tinyattn.kernels.machine.simd import instruction

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

NOBODY = np.zeros(0, np.int64)
PIECES = 4  # pieces of work for each thread: the faster thread takes more of them
LOOKS, ASIDE = 16_000, 16  # looks before a helper sleeps, and how often it steps aside meanwhile

STATE = 0  # CLOSED, OPEN while helpers may join, OVER when they shall end
INSIDE = 8  # how many of them have
TAKEN = 16  # pieces that somebody has begun
FRONT, BACK = 24, 32  # how many of them from the first one on, and from the last one back
COUNT, START, STOP = 40, 41, 42  # pieces, and the items that they are made of
PIECE, GIVEN = 43, 44  # where the code for a piece is, and the kernel's arguments
FAILED = 45  # 1 if a piece ended with an error
PLACES = 46  # helpers that may join: those before this number
HELPERS = 48  # and behind it, for each helper: ASLEEP, CALLED or SERVING

CLOSED, OPEN, OVER = 0, 1, 2
ASLEEP, CALLED, SERVING = 0, 1, 2


def team_of(most):
    """A team of at most so many helpers, all asleep."""
    return np.zeros(HELPERS + most, np.int64)


@instruction(lambda team, start, stop: False)
def together(typing, team, start, stop):
    """Whether start … stop have been done by the team; without one they are left to the caller."""

    def code(context, builder, signature, args):
        if any(isinstance(kind, types.Literal) for kind in context.fndesc.argtypes[-2:]):
            raise TypeError(
                "together: a kernel is called with a constant for start or stop, and would be "
                "compiled for just these items; its pieces begin and end elsewhere, so pass a "
                "variable, first() for 0"
            )
        size = context.make_array(team)(context, builder, args[0]).nitems
        shared = builder.icmp_signed(">", size, size.type(0))
        with builder.if_then(shared):
            kernel, address = builder.function, ir.IntType(64)
            given = kernel.args[BEFORE:-BEHIND]
            place = cgutils.alloca_once(builder, ir.LiteralStructType([a.type for a in given]))
            for i, argument in enumerate(given):
                builder.store(argument, cgutils.gep_inbounds(builder, place, 0, i))
            piece = _piece(builder.module, kernel, place.type)
            numbers = [builder.ptrtoint(x, address) for x in (piece, place)]
            kind = types.void(team, *[types.intp] * 4)
            context.compile_internal(builder, lead, kind, [args[0], *numbers, *args[1:]])
        return shared

    return types.boolean(team, types.intp, types.intp), code


@instruction(lambda: 0)
def first(typing):
    """The number of the first item, for kernels that call others: 0, but not as a constant."""
    return types.intp(), lambda context, builder, signature, args: ir.IntType(64)(0)


@instruction(lambda: False)
def no(typing):
    """False, but not as a constant: a kernel called with that would be compiled once more."""
    return types.boolean(), lambda context, builder, signature, args: ir.IntType(1)(0)


# A compiled function has two arguments more in front, for its result and for an error. Behind
# them an array is seven numbers and pointers; so the last three, team, start and stop, are nine.
BEFORE, BEHIND = 2, 9


def _piece(module, kernel, kind):
    """A function (given, start, stop) that calls the kernel for a piece; 0 or its error."""
    number, byte = ir.IntType(64), ir.IntType(8)
    signature = ir.FunctionType(ir.IntType(32), [byte.as_pointer(), number, number])
    f = ir.Function(module, signature, kernel.name + ".piece")
    f.linkage = "internal"
    builder = ir.IRBuilder(f.append_basic_block())
    place, start, stop = builder.bitcast(f.args[0], kind), *f.args[1:]
    given = [
        builder.load(cgutils.gep_inbounds(builder, place, 0, i))
        for i in range(len(kind.pointee.elements))
    ]
    outs = [cgutils.alloca_once(builder, a.type.pointee) for a in kernel.args[:BEFORE]]
    nobody = [ir.Constant(a.type, None) for a in kernel.args[-BEHIND:-2]]  # zeros: no items
    builder.ret(builder.call(kernel, [*outs, *given, *nobody, start, stop]))
    return f


@instruction(None)  # without Numba nobody calls it
def call(typing, piece, given, start, stop):
    """The function at the address `piece`, of (given, start, stop)."""

    def code(context, builder, signature, args):
        number, byte = ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [byte, number, number])
        f = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(f, [builder.inttoptr(args[1], byte), *args[2:]])

    return types.int32(piece, given, start, stop), code


def lead(team, piece, given, start, stop):
    """Open the team, work along, and return when all pieces are done and all helpers gone."""
    team[PIECE], team[GIVEN], team[START], team[STOP] = piece, given, start, stop
    team[COUNT] = min(stop - start, PIECES * (team[PLACES] + 1))
    atomic_store(team, TAKEN, 0)
    atomic_store(team, FRONT, 0)
    atomic_store(team, BACK, 0)
    atomic_store(team, STATE, OPEN)
    work(team, FRONT)
    atomic_store(team, STATE, CLOSED)  # who joins from now on sees this and leaves
    wait_for(team, INSIDE, 0)


@helper
def work(team, end):
    """Do pieces until none is left; `end` is FRONT or BACK."""
    n, count, start = team[STOP] - team[START], team[COUNT], team[START]
    while fetch_add(team, TAKEN, 1) < count:
        i = fetch_add(team, end, 1)
        i = i if end == FRONT else count - 1 - i
        low, high = start + i * n // count, start + (i + 1) * n // count
        status = call(team[PIECE], team[GIVEN], low, high)
        if status != 0 and status != NOTHING:
            team[FAILED] = 1


@helper
def edge(n, unit, i, parts):
    """Where part i of n items begins; parts are multiples of a unit, so that no tile is cut."""
    return min(n, unit * (i * ((n + unit - 1) // unit) // parts))


NOTHING = -2  # how Numba's functions say that they return None


@jit
def serve(team, me):
    """What helper number `me` does from when it wakes to when it sleeps again."""
    atomic_store(team, HELPERS + me, SERVING)
    quiet, state = 0, CLOSED
    while quiet < LOOKS and state != OVER:
        state = atomic_load(team, STATE)
        if state == OPEN and me < team[PLACES] and atomic_load(team, TAKEN) < team[COUNT]:
            fetch_add(team, INSIDE, 1)
            # still open? Then what is to be done stays as it is until we leave
            if atomic_load(team, STATE) == OPEN:
                work(team, BACK if me % 2 == 0 else FRONT)
            fetch_add(team, INSIDE, -1)
            quiet = 0
        else:
            quiet += 1
            pause()
            if quiet % ASIDE == 0:
                yield_processor()
    atomic_store(team, HELPERS + me, ASLEEP)
