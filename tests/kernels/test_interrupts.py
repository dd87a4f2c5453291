"""Ctrl-C at any moment, and forks while others allocate: what comes later runs as before."""

import os

import pytest

from tests.machine import fresh_python
from tinyattn.kernels import numba

needs_numba = pytest.mark.skipif(numba is None, reason="without Numba there are no helpers")
# what the programs below share: a kernel that tells who leads, and one that needs the helpers
COMMON = """
    import signal, sys, time
    import numpy as np
    from tinyattn.kernels import jit
    from tinyattn.kernels.machine import thread_pool as threads
    from tinyattn.kernels.machine.fork_join import RUNNING, WORKERS, fork_join

    @jit
    def square(y, x, team, start, stop):
        if fork_join(team, start, stop):
            return
        for i in range(start, stop):
            y[i] = x[i] * x[i]

    threads.set_threads(3)
    x = np.arange(1e5)
    y = np.zeros_like(x)

    def right():
        y[:] = 0
        threads.parallel_for(square, len(x), y, x)
        return bool((y == x * x).all())

    def all_serve():
        # each helper is awake at some time; on a busy machine that may take a while
        awake, end = np.zeros(2, bool), time.monotonic() + 20
        while not awake.all() and time.monotonic() < end:
            threads.parallel_for(square, len(x), y, x)
            awake |= threads._team[WORKERS : WORKERS + 2] == RUNNING
        return bool(awake.all())

    def leads():
        teams = []
        threads.parallel_for(lambda team, start, stop: teams.append(len(team)), 2)
        return teams[0] > 0
"""


@needs_numba
def test_an_interrupt_before_any_instruction_leaves_all_threads_usable():
    """As if Ctrl-C came before instruction 0, 1, 2, … of the pool, each in a pool of its own."""
    words = fresh_python(
        COMMON
        + """
    import numpy
    class At:
        def __init__(self, place): self.left = place
        def __call__(self, frame, event, argument):
            if frame.f_code.co_filename != threads.__file__ or frame.f_code.co_name == "run":
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                self.left -= 1
                if self.left == -1:
                    raise KeyboardInterrupt
            return self

    right()
    place, interrupted, fresh = 0, 0, False  # first with helpers that sleep, then without any
    while True:
        if fresh:
            threads._reset_after_fork()
        else:
            time.sleep(0.003)
        at = At(place)
        sys.settrace(at)
        try:
            threads.parallel_for(square, 100, y, x)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(None)
        assert leads(), place
        assert right(), place
        assert all_serve(), place
        assert not threads._lock._is_owned(), place
        place += 1
        if at.left >= 0:  # it came to its end before
            if fresh:
                break
            place, fresh = 0, True
    print(interrupted)
    """
    )
    print(f"{words[0]} instructions were interrupted")
    assert int(words[0]) > 200


@needs_numba
@pytest.mark.skipif(os.name != "posix", reason="Windows has no timers that send signals")
def test_a_thousand_interrupts_leave_all_threads_usable():
    words = fresh_python(
        COMMON
        + """
    right()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    rng, interrupted, stop = np.random.default_rng(0), 0, time.time() + 40
    small = x[:50]
    for delay in rng.uniform(2e-5, 4e-4, 1000):
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            while True:
                threads.parallel_for(square, 50, y, small)
        except KeyboardInterrupt:
            interrupted += 1
        assert leads(), interrupted
        assert interrupted % 50 or (right() and all_serve())
        if time.time() > stop:
            break
    print(interrupted)
    """
    )
    print(f"{words[0]} interrupts")
    assert int(words[0]) > 200


@needs_numba
def test_a_kernel_in_a_finalizer_within_a_kernel_call_works_alone():
    assert fresh_python(
        COMMON
        + """
    inside = []
    def from_a_signal(team, start, stop):  # Python in place of a kernel: something comes between
        inside.append(right())
        threads.parallel_for(lambda team, start, stop: inside.append(len(team)), 2)
    threads.parallel_for(from_a_signal, 2)
    print(*inside, leads(), threads._lock._is_owned())
    """
    ) == ["True", "0", "True", "False"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_children_can_allocate_while_a_thread_of_the_parent_does():
    words = fresh_python("""
    import os, signal, sys, threading, time, warnings
    import numpy as np
    from tinyattn.engine import memory
    warnings.simplefilter("ignore")  # newer Pythons warn of a fork with threads
    memory.LARGEST, dtype, ended = 1000, np.dtype(np.float32), False
    sys.setswitchinterval(1e-6)

    def allocate(times):
        for _ in range(times):
            x = memory.empty_pooled((20, 20), dtype)
            x[...] = 1
            if ended or not (x == 1).all():
                break

    workers = [threading.Thread(target=allocate, args=(10**9,)) for _ in range(2)]
    [worker.start() for worker in workers]
    right = 0
    for _ in range(60):
        child = os.fork()
        if child == 0:
            allocate(20)
            os._exit(7)
        for _ in range(1000):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        right += done == child and os.waitstatus_to_exitcode(status) == 7
    ended = True
    [worker.join() for worker in workers]
    print(right)
    """)
    assert words == ["60"]
