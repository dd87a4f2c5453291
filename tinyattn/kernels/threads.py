"""A pool of Python threads that share the work of one kernel.

A compiled kernel releases the interpreter, so ordinary threads run it side by side. Numba's own
parallel loops are not used: they abort when two threads call them at once, or hang after a fork.
"""

import ctypes
import os
from contextlib import suppress
from itertools import count
from threading import Lock, Thread

from tinyattn.kernels.memory import keep

PIECES = 4  # pieces of work for each thread: the faster thread takes more of them

_lock, _helpers = Lock(), []  # the lock is held by the one who has work for the helpers


def available():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = int(os.environ.get("TINYATTN_THREADS", 0)) or available()


def set_threads(n):
    """Run kernels on n threads from now on; returns the number before."""
    global _threads
    before, _threads = _threads, n
    return before


def number():
    """How many threads kernels run on."""
    return _threads


def share(work, n, alone=False):
    """work(start, stop) for pieces of 0 … n, until all are done, on all threads.

    alone: there is so little to do that waking the others would take longer; one thread does it.
    Each of the n items must write to its own place only. Then the result does not depend on the
    number of threads or on which of them did what. Called by several threads at once, it lets
    the first have the helpers; the others work alone.
    """
    threads = _threads
    pieces = min(n, PIECES * threads)
    if alone or threads == 1 or pieces <= 1 or not _lock.acquire(blocking=False):
        return work(0, n)
    number = count().__next__  # hands out the pieces; one bytecode, so safe without a lock

    def take():
        while (i := number()) < pieces:
            work(i * n // pieces, (i + 1) * n // pieces)

    try:
        while len(_helpers) < threads - 1:
            _helpers.append(_Helper())
        helpers = _helpers[: min(threads, pieces) - 1]
        _apart(helpers)
        for helper in helpers:
            helper.start(take)
        try:
            take()
        finally:  # also after an error: nobody may go on writing when this returns
            errors = [helper.wait() for helper in helpers]
    finally:
        _lock.release()
    for error in errors:
        if error is not None:
            raise error


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
            helper.away_from = here
            if others:
                with suppress(OSError):  # where that is not allowed, they stay where they are
                    os.sched_setaffinity(helper.thread.native_id, {others[i % len(others)]})


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
    """A thread that sleeps until it is given something to do."""

    def __init__(self):
        self.work, self.error, self.away_from = None, None, -1
        self.given, self.done = Lock(), Lock()  # closed locks, opened by one and closed by another
        self.given.acquire()
        self.done.acquire()
        self.thread = Thread(target=self.serve, name="tinyattn", daemon=True)
        self.thread.start()

    def start(self, work):
        self.work = work
        self.given.release()

    def wait(self):
        """Return when the work is done, by this helper or by the others without it."""
        if self.given.acquire(blocking=False):  # not awake yet: let it sleep on
            self.work = None
            return None
        self.done.acquire()
        error, self.error, self.work = self.error, None, None
        return error

    def serve(self):
        while True:
            self.given.acquire()
            try:
                self.work()
            except BaseException as error:
                self.error = error
            self.done.release()


def _forget():  # a forked child has no copies of its parent's threads: it makes its own
    global _lock, _helpers
    _lock, _helpers = Lock(), []


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
