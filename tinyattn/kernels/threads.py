"""A pool of Python threads that share the work of one kernel.

A compiled kernel releases the interpreter, so ordinary threads run it side by side. Numba's own
parallel loops are not used: they abort when two threads call them at once, or hang after a fork.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Lock

PIECES = 4  # pieces of work for each thread: the faster thread takes more of them

_pool, _lock = None, Lock()


def available():
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = int(os.environ.get("TINYATTN_THREADS", 0)) or available()


def set_threads(n):
    """Run kernels on n threads from now on; returns the number before."""
    global _threads, _pool
    with _lock:
        before, _threads, _pool = _threads, n, None
    return before


def share(work, n):
    """work(start, stop) for pieces of 0 … n, until all are done, on all threads.

    Each of the n items must write to its own place only. Then the result does not depend on the
    number of threads or on which of them did what.
    """
    pieces = min(n, PIECES * _threads)
    if _threads == 1 or pieces <= 1:
        return work(0, n)
    number = count().__next__  # hands out the pieces; one bytecode, so safe without a lock

    def take():
        while (i := number()) < pieces:
            work(i * n // pieces, (i + 1) * n // pieces)

    helpers = [_helpers().submit(take) for _ in range(min(_threads, pieces) - 1)]
    take()
    for helper in helpers:
        helper.result()


def _helpers():
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(_threads - 1, 1), thread_name_prefix="tinyattn")
        return _pool


def _forget():  # a forked child has no copies of its parent's threads: it makes its own
    global _pool, _lock
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
