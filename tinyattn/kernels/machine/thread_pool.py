"""The pool of threads that share the work of one kernel.

A compiled kernel releases the interpreter, so ordinary threads run it side by side; how they agree
on who does what stands in `team`. Numba's own parallel loops are not used: they abort when two
threads call them at once, or hang after a fork.
"""

import atexit
import ctypes
import os
import sys
import time
from contextlib import suppress
from threading import Lock, RLock, Thread

from tinyattn.kernels import numba
from tinyattn.kernels.machine.fork_join import (
    ASLEEP,
    CALLED,
    FAILED,
    HELPERS,
    NOBODY,
    OVER,
    PLACES,
    SERVING,
    STATE,
    serve,
    team_of,
)
from tinyattn.memory import keep

MOST = 255  # helpers

# The lock is held by the one who leads the team. It knows its thread, so that after an interrupt
# right behind `acquire` the thread can see that it still has it.
_lock, _helpers, _team = RLock(), [], team_of(MOST)


def available():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def wanted():
    """How many threads the environment asks for; 0 for one on each processor."""
    value = os.environ.get("TINYATTN_THREADS") or "0"
    if not value.isdecimal():
        raise ValueError(
            f"TINYATTN_THREADS in the environment: expected a whole number of threads, 0 for one "
            f"on each processor, it is {value!r}"
        )
    return int(value)


_threads = wanted() or available()


def set_threads(n):
    """Run kernels on n threads from now on; returns the number before."""
    global _threads
    before, _threads = _threads, n
    return before


def number():
    """How many threads kernels run on."""
    return _threads


def share(kernel, n, *arguments, alone=False):
    """kernel(*arguments, team, 0, n): the items 0 … n on all threads; see `team.together`.

    alone: there is so little to do that handing it out would take longer; one thread does it.
    Each of the n items must write to its own place only. Then the result does not depend on the
    number of threads or on which of them did what. Called by several threads at once, it lets
    the first have the helpers; the others work alone.
    """
    if alone or n <= 1:
        return kernel(*arguments, NOBODY, 0, n)
    return _led(kernel, arguments, (0, n))


def lend(kernel, *arguments, alone=False):
    """kernel(*arguments, team): one that lends the team to the kernels it calls in turn."""
    if alone:
        return kernel(*arguments, NOBODY)
    return _led(kernel, arguments, ())


def _led(kernel, arguments, items):
    """The kernel with the team, or with nobody if there is none to be had."""
    if (_threads == 1 or numba is None or (_lock._is_owned() and _leads())
            or not _lock.acquire(blocking=False)):  # fmt: skip
        return kernel(*arguments, NOBODY, *items)
    team = _team
    try:
        team[FAILED] = 0  # an interrupt may have kept the last one from reading it
        _call_helpers(min(_threads - 1, MOST))
        kernel(*arguments, team, *items)
    finally:
        failed, team[FAILED] = team[FAILED], 0
        _lock.release()
    if failed:
        raise RuntimeError(
            f"{kernel.__name__}: an error in a kernel on several threads; "
            f"with TINYATTN_THREADS=1 in the environment it says which"
        )


def _leads():
    """Whether this thread, which has the lock, leads the team: a finalizer or signal came between.

    If it does not, an interrupt kept it from giving the lock back, and it does so now.
    """
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code is _led.__code__:
            return True
        frame = frame.f_back
    while _lock._is_owned():
        _lock.release()
    return False


def _call_helpers(n):
    """Let n helpers join, and wake those that sleep."""
    while len(_helpers) < n:
        _helpers.append(_Helper(_team, len(_helpers)))
    _team[PLACES] = n
    states = _team[HELPERS : HELPERS + n].tolist()
    if ASLEEP in states:
        _apart(_helpers[:n])
    if states.count(SERVING) < n:
        for helper, state in zip(_helpers, states, strict=False):
            if state != SERVING:
                helper.wake()


def _apart(helpers):
    """Give each helper a processor of its own, other than the one we are on (Linux only).

    Left to itself a virtual machine wakes a thread on the processor of the one who woke it: the
    others sleep so deeply that they look taken. Then both share one, and nothing is gained.
    """
    if _processor is None:
        return
    here = _processor()
    if helpers[-1].away_from != here:
        others = sorted(os.sched_getaffinity(0) - {here})
        for i, helper in enumerate(helpers):
            if others:
                with suppress(OSError):  # where that is not allowed, they stay where they are
                    os.sched_setaffinity(helper.thread.native_id, {others[i % len(others)]})
            helper.away_from = here


def _which_processor():
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None


_processor = _which_processor()
keep()


class _Helper:
    """A thread that sleeps until it is called to serve."""

    def __init__(self, team, me):
        self.team, self.me, self.away_from = team, me, -1
        self.called = Lock()  # a closed lock, opened by the one who calls
        self.called.acquire()
        self.thread = Thread(target=self.run, name="tinyattn", daemon=True)
        self.thread.start()

    def wake(self):
        self.team[HELPERS + self.me] = CALLED
        if self.called.locked():  # once is enough; after an interrupt it may not have been opened
            with suppress(RuntimeError):  # a finalizer that came between has opened it
                self.called.release()

    def run(self):
        while True:
            self.called.acquire()
            serve(self.team, self.me)


def _send_home():
    """Before Python ends, and with it the machine code that the helpers are in."""
    set_threads(1)
    _team[STATE] = OVER
    for _ in range(1000):  # no longer than a second
        if (_team[HELPERS : HELPERS + len(_helpers)] == ASLEEP).all():
            return
        time.sleep(0.001)


def _forget():  # a forked child has no copies of its parent's threads: it makes its own
    global _lock, _helpers, _team
    _lock, _helpers, _team = RLock(), [], team_of(MOST)


atexit.register(_send_home)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
