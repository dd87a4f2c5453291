"""The pool of worker threads that share the work of one kernel.

A compiled kernel releases the interpreter, so ordinary threads can run it at the same time.
fork_join.py divides the work among them. Numba's own parallel loops are not used, because they
abort when two threads call them at the same time, or hang after a fork.
"""

import atexit
import ctypes
import os
import sys
import time
from contextlib import suppress
from threading import Lock, RLock, Thread

from tinyattn.kernels.machine.compile import numba
from tinyattn.kernels.machine.fork_join import (
    ADMITTED,
    FAILED,
    NO_TEAM,
    RUNNING,
    SHUTDOWN,
    SLEEPING,
    STATE,
    WAKING,
    WORKERS,
    make_team,
    worker_loop,
)

MAX_WORKERS = 255

# The thread that uses the team holds the lock. An RLock knows its thread, so after an interrupt
# right after `acquire` the thread can see that it still has the lock.
_lock, _workers, _team = RLock(), [], make_team(MAX_WORKERS)


def available_processors():
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def requested_threads():
    """Return how many threads the environment requests, or 0 for one on each processor."""
    value = os.environ.get("TINYATTN_THREADS") or "0"
    if not value.isdecimal():
        raise ValueError(
            "TINYATTN_THREADS in the environment must be a whole number of threads (0: one on each "
            f"processor), got {value!r}"
        )
    return int(value)


_threads = requested_threads() or available_processors()


def set_threads(n):
    """Run kernels on n threads from now on, and return the previous number of threads."""
    global _threads
    before, _threads = _threads, n
    return before


def num_threads():
    """Return how many threads kernels run on."""
    return _threads


def parallel_for(kernel, n, *arguments, serial=False):
    """Call kernel(*arguments, team, 0, n), which shares the items 0 … n - 1 among all threads.

    With `serial`, one thread does all the work, because sharing so little work would take longer.
    Two items must never write to the same element. Then the result does not depend on the number of
    threads, or on which thread did which item. If several threads call this function at the same
    time, the first gets the workers, and the others do their work alone. `fork_join.fork_join` has
    the details.

    Arguments that belong together are passed as one plain tuple, and the kernel begins by naming
    them, as in x = Inputs(*inputs), where Inputs is a NamedTuple. A plain tuple takes no longer
    than single arguments. A NamedTuple as an argument takes half a microsecond more, because Numba
    reads the names of its fields at each call.
    """
    if serial or n <= 1:
        return kernel(*arguments, NO_TEAM, 0, n)
    return _run_with_team(kernel, arguments, (0, n))


def parallel_region(kernel, *arguments, serial=False):
    """Call kernel(*arguments, team), which passes the team on to the kernels that it calls.

    With `serial`, the team is empty, so one thread does all the work.
    """
    if serial:
        return kernel(*arguments, NO_TEAM)
    return _run_with_team(kernel, arguments, ())


def _run_with_team(kernel, arguments, items):
    """Run the kernel with the team, or without it if there is none or another thread uses it."""
    if (
        _threads == 1
        or numba is None
        or (_lock._is_owned() and _uses_the_team())
        or not _lock.acquire(blocking=False)
    ):
        return kernel(*arguments, NO_TEAM, *items)
    team = _team
    try:
        team[FAILED] = 0  # an interrupt may have kept the previous call from reading it
        _wake_workers(min(_threads - 1, MAX_WORKERS))
        kernel(*arguments, team, *items)
    finally:
        failed, team[FAILED] = team[FAILED], 0
        _lock.release()
    if failed:
        raise RuntimeError(
            f"{kernel.__name__}: an error occurred in a kernel that runs on several threads. Set "
            "TINYATTN_THREADS=1 in the environment to see the error"
        )


def _uses_the_team():
    """Return whether this thread, which has the lock, is already using the team.

    In this case, the call comes from a finalizer or a signal handler inside another call.
    Otherwise, an interrupt kept the thread from releasing the lock, and this function releases it.
    """
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code is _run_with_team.__code__:
            return True
        frame = frame.f_back
    while _lock._is_owned():
        _lock.release()
    return False


def _wake_workers(n):
    """Let n workers join, and wake those that sleep."""
    while len(_workers) < n:
        _workers.append(_Worker(_team, len(_workers)))
    _team[ADMITTED] = n
    states = _team[WORKERS : WORKERS + n].tolist()
    if SLEEPING in states:
        _pin_workers(_workers[:n])
    if states.count(RUNNING) < n:
        for worker, state in zip(_workers, states, strict=False):
            if state != RUNNING:
                worker.wake()


def _pin_workers(workers):
    """Pin each worker to a separate processor, different from that of this thread (Linux only).

    Otherwise, a virtual machine often wakes a thread on the processor of the waking thread, because
    the other processors are in a deep sleep and seem to be busy. Then both threads share one
    processor, and the second does not help.
    """
    if _current_processor is None:
        return
    here = _current_processor()
    if workers[-1].away_from != here:
        others = sorted(os.sched_getaffinity(0) - {here})
        for i, worker in enumerate(workers):
            if others:
                with suppress(OSError):  # without permission, the threads keep their processors
                    os.sched_setaffinity(worker.thread.native_id, {others[i % len(others)]})
            worker.away_from = here


def _find_sched_getcpu():
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None


_current_processor = _find_sched_getcpu()


class _Worker:
    """A thread that sleeps until it is woken to work for the team."""

    def __init__(self, team, me):
        self.team, self.me, self.away_from = team, me, -1
        # locked while the worker sleeps, and released by the thread that wakes it
        self.awake = Lock()
        self.awake.acquire()
        self.thread = Thread(target=self.run, name="tinyattn", daemon=True)
        self.thread.start()

    def wake(self):
        self.team[WORKERS + self.me] = WAKING
        # a worker that is WAKING has been released, unless an interrupt came before that
        if self.awake.locked():
            with suppress(RuntimeError):  # a finalizer that ran meanwhile has released it
                self.awake.release()

    def run(self):
        while True:
            self.awake.acquire()
            worker_loop(self.team, self.me)


def _shut_down():
    """Stop the workers before Python ends and removes the machine code that they run."""
    set_threads(1)
    _team[STATE] = SHUTDOWN
    for _ in range(1000):  # wait at most a second
        if (_team[WORKERS : WORKERS + len(_workers)] == SLEEPING).all():
            return
        time.sleep(0.001)


# A forked child has no copies of its parent's threads, so it creates its own.
def _reset_after_fork():
    global _lock, _workers, _team
    _lock, _workers, _team = RLock(), [], make_team(MAX_WORKERS)


atexit.register(_shut_down)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
