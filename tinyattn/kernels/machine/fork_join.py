"""Fork and join inside of kernels: a team of threads shares the items of a loop, without Python.

A kernel that can be shared processes the items start … stop - 1 of its work. Its last arguments are
the team, start and stop, and it begins with

    if fork_join(team, start, stop):
        return  # all items are done

With a team, `fork_join` cuts these items into chunks and calls the same kernel for one chunk after
the other, with the same arguments but without a team. The workers do the same at the same time.
They are threads in `worker_loop`, which watch the team and take chunks as long as there are any.
They sleep only after about a millisecond without work, because waking a thread takes longer than
many kernels run. Half of the threads begin with the first chunk, the others with the last. When a
thread later uses the same numbers again, such as weights, it finds most of them in its own cache.

A kernel of several steps passes its team on to the kernels that it calls, one after the other (see
`thread_pool.parallel_region`). To kernels with little work, it passes team[:0], an empty team.

A team is an array of int64. Each number that several threads watch has its own cache line (8
numbers, 64 bytes), because a line that two processors write to is copied back and forth between
them.
"""

import numpy as np

from tinyattn.kernels.machine.atomics import (
    atomic_load,
    atomic_store,
    fetch_add,
    pause,
    wait_for,
    yield_processor,
)
from tinyattn.kernels.machine.compile import helper, intrinsic, jit, numba

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

NO_TEAM = np.zeros(0, np.int64)
CHUNKS_PER_THREAD = 4  # several chunks, so that a faster thread can take more of them
SPINS_BEFORE_SLEEP = 16_000  # times a worker looks for work before it sleeps
SPINS_BEFORE_YIELD = 16  # after this many looks, it lets other threads use its processor

# Indices of the elements of a team.
STATE = 0  # CLOSED, OPEN while workers may join, SHUTDOWN when they shall end
ACTIVE = 8  # the number of workers that have joined
CLAIMED = 16  # number of chunks that threads have begun
FRONT, BACK = 24, 32  # number of chunks taken from the front, and from the back
CHUNKS, START, STOP = 40, 41, 42  # number of chunks, and the range of items that they divide
FUNCTION, ARGUMENTS = 43, 44  # addresses of the function for a chunk and of the kernel's arguments
FAILED = 45  # 1 if a chunk ended with an error
ADMITTED = 46  # workers 0 … ADMITTED - 1 may join
WORKERS = 48  # first of the workers' elements, each SLEEPING, WAKING or RUNNING

CLOSED, OPEN, SHUTDOWN = 0, 1, 2
SLEEPING, WAKING, RUNNING = 0, 1, 2


def make_team(max_workers):
    """Return a team of at most max_workers workers, all asleep."""
    return np.zeros(WORKERS + max_workers, np.int64)


@intrinsic(lambda team, start, stop: False)
def fork_join(typing, team, start, stop):
    """Return True if the team has done the items start … stop - 1, and False without a team."""

    def code(context, builder, signature, args):
        if any(isinstance(kind, types.Literal) for kind in context.fndesc.argtypes[-2:]):
            raise TypeError(
                "fork_join: start and stop must be variables, got a constant. Numba would compile "
                "the kernel only for this number, but threads call it with other values. Pass, for "
                "example, runtime_zero() for 0"
            )
        size = context.make_array(team)(context, builder, args[0]).nitems
        shared = builder.icmp_signed(">", size, size.type(0))
        with builder.if_then(shared):
            kernel, address = builder.function, ir.IntType(64)
            arguments = kernel.args[LEADING_ARGUMENTS:-TRAILING_ARGUMENTS]
            place = cgutils.alloca_once(builder, ir.LiteralStructType([a.type for a in arguments]))
            for i, argument in enumerate(arguments):
                builder.store(argument, cgutils.gep_inbounds(builder, place, 0, i))
            function = _chunk_function(builder.module, kernel, place.type)
            numbers = [builder.ptrtoint(x, address) for x in (function, place)]
            kind = types.void(team, *[types.intp] * 4)
            context.compile_internal(builder, run_as_primary, kind, [args[0], *numbers, *args[1:]])
        return shared

    return types.boolean(team, types.intp, types.intp), code


@intrinsic(lambda: 0)
def runtime_zero(typing):
    """Return 0, the number of the first item, for kernels that call other kernels.

    For the constant 0, Numba would compile the called kernel once more, only for this number.
    """
    return types.intp(), lambda context, builder, signature, args: ir.IntType(64)(0)


@intrinsic(lambda: False)
def runtime_false(typing):
    """Return False, in a form that is not a constant for Numba."""
    return types.boolean(), lambda context, builder, signature, args: ir.IntType(1)(0)


@intrinsic(lambda: True)
def runtime_true(typing):
    """Return True, in a form that is not a constant for Numba."""
    return types.boolean(), lambda context, builder, signature, args: ir.IntType(1)(1)


# Numba's calling convention: a compiled function has two more arguments at the beginning, for its
# result and for an error. An array is passed as seven numbers and pointers, so the last three
# arguments of a kernel, team, start and stop, become nine of the compiled function.
LEADING_ARGUMENTS, TRAILING_ARGUMENTS = 2, 9


def _chunk_function(module, kernel, kind):
    """Return an LLVM function (address of arguments, start, stop) → status that calls `kernel`.

    `kind` is the LLVM type of a pointer to the arguments.
    """
    number, byte = ir.IntType(64), ir.IntType(8)
    signature = ir.FunctionType(ir.IntType(32), [byte.as_pointer(), number, number])
    f = ir.Function(module, signature, kernel.name + ".chunk")
    f.linkage = "internal"
    builder = ir.IRBuilder(f.append_basic_block())
    place, start, stop = builder.bitcast(f.args[0], kind), *f.args[1:]
    arguments = [
        builder.load(cgutils.gep_inbounds(builder, place, 0, i))
        for i in range(len(kind.pointee.elements))
    ]
    outs = [cgutils.alloca_once(builder, a.type.pointee) for a in kernel.args[:LEADING_ARGUMENTS]]
    no_team = [
        ir.Constant(a.type, None) for a in kernel.args[-TRAILING_ARGUMENTS:-2]
    ]  # zeros: an empty array
    builder.ret(builder.call(kernel, [*outs, *arguments, *no_team, start, stop]))
    return f


@intrinsic(None)  # the intrinsic needs no reference, because without Numba there is no team
def _call_chunk(typing, function, arguments, start, stop):
    """Return the status of the function at an address, called with (arguments, start, stop)."""

    def code(context, builder, signature, args):
        number, byte = ir.IntType(64), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.IntType(32), [byte, number, number])
        f = builder.inttoptr(args[0], kind.as_pointer())
        return builder.call(f, [builder.inttoptr(args[1], byte), *args[2:]])

    return types.int32(function, arguments, start, stop), code


def run_as_primary(team, function, arguments, start, stop):
    """Open the team, help with the chunks, and return when all are done and all workers have left.

    `function` and `arguments` are addresses, which `_chunk_function` explains.
    """
    team[FUNCTION], team[ARGUMENTS], team[START], team[STOP] = function, arguments, start, stop
    team[CHUNKS] = min(stop - start, CHUNKS_PER_THREAD * (team[ADMITTED] + 1))
    atomic_store(team, CLAIMED, 0)
    atomic_store(team, FRONT, 0)
    atomic_store(team, BACK, 0)
    atomic_store(team, STATE, OPEN)
    run_chunks(team, FRONT)
    atomic_store(team, STATE, CLOSED)  # a worker that joins from now on sees this and leaves
    wait_for(team, ACTIVE, 0)


@helper
def run_chunks(team, end):
    """Do chunks until none is left, from the first on (`end` is FRONT) or the last back (BACK)."""
    n, count, start = team[STOP] - team[START], team[CHUNKS], team[START]
    while fetch_add(team, CLAIMED, 1) < count:
        i = fetch_add(team, end, 1)
        i = i if end == FRONT else count - 1 - i
        low, high = start + i * n // count, start + (i + 1) * n // count
        status = _call_chunk(team[FUNCTION], team[ARGUMENTS], low, high)
        if status != 0 and status != RETURNED_NONE:
            team[FAILED] = 1


@helper
def chunk_start(n, unit, i, parts):
    """Return the start of part i of n items in `parts` parts, a multiple of `unit` or n.

    With the width of a tile as `unit`, no tile is divided.
    """
    return min(n, unit * (i * ((n + unit - 1) // unit) // parts))


RETURNED_NONE = -2  # the status of a function of Numba that returns None


@jit
def worker_loop(team, me):
    """Do the work of worker `me`, from waking up until it sleeps again."""
    atomic_store(team, WORKERS + me, RUNNING)
    idle, state = 0, CLOSED
    while idle < SPINS_BEFORE_SLEEP and state != SHUTDOWN:
        state = atomic_load(team, STATE)
        if state == OPEN and me < team[ADMITTED] and atomic_load(team, CLAIMED) < team[CHUNKS]:
            fetch_add(team, ACTIVE, 1)
            # if the team is still open, the primary thread waits for this worker
            if atomic_load(team, STATE) == OPEN:
                run_chunks(team, BACK if me % 2 == 0 else FRONT)
            fetch_add(team, ACTIVE, -1)
            idle = 0
        else:
            idle += 1
            pause()
            if idle % SPINS_BEFORE_YIELD == 0:
                yield_processor()
    atomic_store(team, WORKERS + me, SLEEPING)
