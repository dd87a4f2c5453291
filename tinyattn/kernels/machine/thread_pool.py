"""The pool of worker threads that share the work of one kernel.

A compiled kernel releases the interpreter, so ordinary threads run it side by side; fork_join.py
divides the work among them. Numba's own parallel loops are not used, because they abort when two
threads call them at the same time, or hang after a fork.
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
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def requested_threads():
    """How many threads the environment asks for; 0 for one on each processor."""
    value = os.environ.get("TINYATTN_THREADS") or "0"
    if not value.isdecimal():
        raise ValueError(
            "TINYATTN_THREADS in the environment must be a whole number of threads (0: one on each "
            f"processor), got {value!r}"
        )
    return int(value)


_threads = requested_threads() or available_processors()


def set_threads(n):
    """Run kernels on n threads from now on; returns the number before."""
    global _threads
    before, _threads = _threads, n
    return before


def num_threads():
    """How many threads kernels run on."""
    return _threads


def parallel_for(kernel, n, *arguments, serial=False):
    """kernel(*arguments, team, 0, n): the items 0 … n on all threads; see `fork_join.fork_join`.

    serial: there is so little to do that sharing it would take longer; one thread does it.
    Each of the n items must write to its own place only. Then the result does not depend on the
    number of threads or on which of them did what. Called by several threads at once, the first
    gets the workers; the others do their work by themselves.

    Arguments that belong together are passed as one tuple, and the kernel begins with giving them
    their names: x = Inputs(*inputs), where Inputs is a NamedTuple. As a plain tuple they cost no
    more than one by one. A NamedTuple as an argument costs half a microsecond: at each call Numba
    reads the names of its fields to know its type.
    """
    if serial or n <= 1:
        return kernel(*arguments, NO_TEAM, 0, n)
    return _run_with_team(kernel, arguments, (0, n))


def parallel_region(kernel, *arguments, serial=False):
    """kernel(*arguments, team): it passes the team on to the kernels that it calls in turn."""
    if serial:
        return kernel(*arguments, NO_TEAM)
    return _run_with_team(kernel, arguments, ())


def _run_with_team(kernel, arguments, items):
    """The kernel with the team, or without one if there is none or another thread uses it."""
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
            "TINYATTN_THREADS=1 in the environment to see which error"
        )


def _uses_the_team():
    """Whether this thread, which has the lock, is using the team: then this call comes from a
    finalizer or a signal handler inside of another one.

    If it is not, an interrupt kept it from releasing the lock, and the lock is released here.
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
    """Give each worker a processor of its own, not the one that this thread is on (Linux only).

    By itself a virtual machine often wakes a thread on the processor of the thread that woke it,
    because the other processors are in a deep sleep and look busy. Then both share one processor,
    and nothing is gained.
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
        # locked while the worker sleeps; the thread that wakes it releases the lock
        self.awake = Lock()
        self.awake.acquire()
        self.thread = Thread(target=self.run, name="tinyattn", daemon=True)
        self.thread.start()

    def wake(self):
        self.team[WORKERS + self.me] = WAKING
        if self.awake.locked():  # after an interrupt it may be marked, but not yet released
            with suppress(RuntimeError):  # a finalizer that ran meanwhile has released it
                self.awake.release()

    def run(self):
        while True:
            self.awake.acquire()
            worker_loop(self.team, self.me)


def _shut_down():
    """Stop the workers before Python ends: the machine code that they run goes with it."""
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
