"""Several Python threads at once: who records nothing, and gradients that add up."""

import os
import sys
import threading

import numpy as np
import pytest

from tinyattn import Tensor, no_grad
from tinyattn.engine import memory
from tinyattn.engine.autograd import is_grad_enabled, set_grad_enabled


def recorded():
    return (Tensor([1.0], requires_grad=True) * 2).requires_grad


def in_thread(f):
    """What f returns in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(f()))
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_that_ends_inside_no_grad_harms_no_later_thread():
    """Numbers of threads are used again, so nothing may be kept under them."""
    kept = []

    def leave_suspended():
        def batches():
            with no_grad():
                yield recorded()

        kept.append(batches())
        return next(kept[-1])

    for _ in range(50):
        assert in_thread(leave_suspended) is False
        assert in_thread(recorded) is True
    assert recorded()
    with no_grad():
        kept.clear()  # the generators end here, in another thread than they began
        assert not recorded()
    assert recorded()


def test_set_grad_enabled_nests():
    assert is_grad_enabled()
    with no_grad():
        assert not is_grad_enabled()
        with set_grad_enabled(True):
            assert is_grad_enabled() and recorded()
        assert not is_grad_enabled()
        assert in_thread(is_grad_enabled)  # another thread starts with recording on
    assert is_grad_enabled()


@pytest.fixture
def _quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_quick_switches")
def test_gradients_of_several_threads_add_up():
    w = Tensor(np.zeros(300_000, np.float32), requires_grad=True)  # long enough to be interrupted
    threads, steps = 8, 50

    def work():
        for _ in range(steps):
            np.sum(w * 1.0).backward()

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(w.grad, threads * steps)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("what", ["gradients", "memory"])
def test_a_fork_while_another_thread_works(what, monkeypatch):
    """The child must not find a lock taken by a thread that it does not have."""
    monkeypatch.setattr(memory, "LARGEST", 1000)
    w = Tensor(np.zeros(100_000), requires_grad=True)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            if what == "gradients":
                np.sum(w * 1.0).backward()
            else:
                memory.empty_pooled((50, 50), w.dtype)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                x = Tensor([3.0], requires_grad=True)
                np.sum(x * x).backward()
                memory.empty_pooled((50, 50), w.dtype)
                os._exit(0 if x.grad[0] == 6 else 1)
            assert wait(child) == 0
    finally:
        stop.set()
        worker.join()


def wait(child, seconds=20):
    """The exit code of a child process; None, and its end, if it hangs."""
    killer = threading.Timer(seconds, os.kill, (child, 9))
    killer.start()
    _, status = os.waitpid(child, 0)
    killer.cancel()
    return os.waitstatus_to_exitcode(status)
