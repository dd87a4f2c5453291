"""The pool of threads that kernels share, and kernels without Numba."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

from tests.machine import fresh_python, kernels_on
from tinyattn.kernels import jit, numba
from tinyattn.kernels.machine import thread_pool
from tinyattn.kernels.machine.fork_join import (
    SLEEPING,
    WAKING,
    WORKERS,
    fork_join,
    make_team,
    runtime_zero,
)

needs_numba = pytest.mark.skipif(numba is None, reason="without Numba nothing is shared")


@jit
def square(done, y, x, number, pair, shape, team, start, stop):
    """y = number · x² + pair[1] + shape.left, and one more in done for each item."""
    if fork_join(team, start, stop):
        return
    for i in range(start, stop):
        done[i] += 1
        y[i] = number * x[i, 0] * x[i, 0] + pair[1] + shape.left


class Shape(NamedTuple):
    left: float
    right: bool


def shared(n, times=1):
    """How often each of n items was done; the results must be right."""
    x = np.arange(2.0 * n).reshape(n, 2)[:, ::2]  # not contiguous
    done, y = np.zeros(n, np.int64), np.zeros(n)
    for _ in range(times):
        thread_pool.parallel_for(square, n, done, y, x, 3.0, (1, 2.5), Shape(0.5, True))
    assert np.array_equal(y, 3 * x[:, 0] ** 2 + 3)
    return done


def test_parallel_for_does_everything_once():
    for helpers in (1, 2, 6):
        with kernels_on(1 + helpers):
            for n in (0, 1, 2, 3, 7, 100):
                assert (shared(n) == 1).all()


def test_parallel_for_from_several_threads_at_once():
    with kernels_on(3), ThreadPoolExecutor(4) as pool:
        for done in pool.map(shared, [1000] * 20, [50] * 20):
            assert (done == 50).all()


@jit
def fails_at(place, team, start, stop):
    if fork_join(team, start, stop):
        return
    if start <= place < stop:
        raise ZeroDivisionError


@needs_numba
def test_an_error_in_a_piece_of_work_arrives():
    for place in (0, 5, 7):
        with kernels_on(2), pytest.raises(RuntimeError, match="fails_at.*TINYATTN_THREADS=1"):
            thread_pool.parallel_for(fails_at, 8, place)
        with kernels_on(1), pytest.raises(ZeroDivisionError):
            thread_pool.parallel_for(fails_at, 8, place)
    with kernels_on(2):
        assert (shared(100) == 1).all()  # and is forgotten


@jit
def squares_in_turn(done, y, x, team):
    square(done, y, x, 3.0, (1, 2.5), Shape(0.5, True), team, runtime_zero(), y.size // 2)
    square(done, y, x, 3.0, (1, 2.5), Shape(0.5, True), team, y.size // 2, y.size)
    zero = runtime_zero()
    square(done, y, x, 3.0, (1, 2.5), Shape(0.5, True), team[:0], zero, zero + 1)


@needs_numba
def test_a_team_is_lent_to_several_kernels_in_turn():
    x = np.arange(200.0).reshape(100, 2)[:, ::2]
    for helpers in (0, 1, 3):
        for serial in (False, True):
            done, y = np.zeros(100, np.int64), np.zeros(100)
            with kernels_on(1 + helpers):
                thread_pool.parallel_region(squares_in_turn, done, y, x, serial=serial)
            assert np.array_equal(y, 3 * x[:, 0] ** 2 + 3)
            assert done[0] == 2
            assert (done[1:] == 1).all()


@jit
def fails_first(done, place, n, team):
    fails_at(place, team, runtime_zero(), n)
    done[0] += 1
    fails_at(-1, team, runtime_zero(), n)


@needs_numba
def test_an_error_in_the_first_of_several_kernels_arrives():
    done = np.zeros(1)
    with kernels_on(2):
        with pytest.raises(RuntimeError, match="fails_first.*TINYATTN_THREADS=1"):
            thread_pool.parallel_region(fails_first, done, 3, 8)
        thread_pool.parallel_region(fails_first, done, -1, 8)
        assert (shared(100) == 1).all()


class Asleep(thread_pool._Worker):
    """A helper that other programs keep from its processor: it never wakes."""

    def run(self):
        pass


@needs_numba
def test_a_helper_that_does_not_wake_holds_nobody_up(monkeypatch):
    team = make_team(2)
    monkeypatch.setattr(thread_pool, "_team", team)
    monkeypatch.setattr(thread_pool, "_workers", [Asleep(team, 0), Asleep(team, 1)])
    with kernels_on(3):
        assert (shared(50, times=3) == 3).all()
    assert (team[WORKERS:] == WAKING).all()


@needs_numba
def test_helpers_that_have_nothing_to_do_fall_asleep_and_wake_again():
    with kernels_on(2):
        for _ in range(3):
            assert (shared(100) == 1).all()
            for _ in range(1000):
                if (
                    thread_pool._team[WORKERS : WORKERS + len(thread_pool._workers)] == SLEEPING
                ).all():
                    break
                time.sleep(0.005)
            else:
                pytest.fail("a helper was still awake after five seconds")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_after_a_kernel_ran():
    assert fresh_python("""
        import os, warnings, numpy as np
        from tinyattn.functional.attention import scaled_dot_product_attention
        from tinyattn.kernels.machine import thread_pool
        thread_pool.set_threads(2)
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork with threads
        x = np.random.default_rng(0).standard_normal((4, 200, 8))
        run = lambda: scaled_dot_product_attention(x, x, x, impl="kernel").data
        before = run()
        child = os.fork()
        if child == 0:
            os._exit(0 if (run() == before).all() else 1)
        _, status = os.waitpid(child, 0)
        print(status, (run() == before).all())
    """) == ["0", "True"]


# ---------------------------------------------------------------- Numba is optional and lazy


def test_numba_is_imported_by_the_first_kernel_only():
    assert fresh_python("""
        import sys, numpy as np
        import tinyattn
        from tinyattn.functional.attention import scaled_dot_product_attention
        x = np.ones((4, 20, 8))
        scaled_dot_product_attention(x, x, x)
        print("numba" in sys.modules)
        scaled_dot_product_attention(x, x, x, impl="kernel")
        print("numba" in sys.modules)
    """) == ["False", "True"]


def test_without_numba_everything_runs():
    out = fresh_python("""
        import sys, warnings
        sys.modules["numba"] = None
        import numpy as np
        from tinyattn.engine.autograd import Tensor
        from tinyattn.functional.attention import scaled_dot_product_attention
        x = np.random.default_rng(0).standard_normal((2, 70, 3))
        results = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for impl in ("numpy", "sums", "kernel", "kernel", "auto"):
                t = Tensor(x, requires_grad=True)
                y = scaled_dot_product_attention(t, t, t, causal=True, impl=impl)
                y.backward(x)
                results.append(np.concatenate([y.data, t.grad]))
        print(all(np.allclose(r, results[0], rtol=0, atol=1e-12) for r in results))
        print(len(caught), caught[0].message)
    """)
    assert out[:2] == ["True", "1"]
    assert "numba" in " ".join(out).lower()
