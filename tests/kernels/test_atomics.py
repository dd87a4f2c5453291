"""What threads tell each other inside of kernels: tasks are claimed once, flags come after data."""

from threading import Thread

import numpy as np
import pytest

pytest.importorskip("numba")
from tests.machine import kernels_on
from tinyattn.kernels import jit
from tinyattn.kernels.fast.matmul import matmul
from tinyattn.kernels.machine.atomics import atomic_store, fetch_add, wait_for


@jit
def take_all(counter, taken, tasks):
    task = fetch_add(counter, 0, 1)
    while task < tasks:
        taken[task] += 1
        task = fetch_add(counter, 0, 1)


@jit
def fill_and_give(row, flags, times):
    for i in range(times):
        row[:] = i
        atomic_store(flags, i, 1)


@jit
def await_and_check(row, flags, times):
    """The lowest number that was in the row when its flag came, less what it must be at least."""
    least = 0.0
    for i in range(times):
        wait_for(flags, i, 1)
        least = min(least, row.min() - i)
    return least


def in_threads(*works):
    every = [Thread(target=work) for work in works]
    for thread in every:
        thread.start()
    for thread in every:
        thread.join()


def test_each_task_is_claimed_once():
    n = 1_000_000
    counter, taken = np.zeros(1, np.int64), np.zeros(n, np.int64)
    take_all(counter, taken, 0)  # compiled before the race
    counter[:] = 0
    in_threads(*[lambda: take_all(counter, taken, n)] * 4)
    assert (taken == 1).all()


def test_who_sees_the_flag_sees_what_was_written_before():
    times, row, found = 2000, np.full(500, -1.0), []
    fill_and_give(row, np.zeros(1, np.int64), 1)
    await_and_check(row, np.ones(1, np.int64), 1)
    row[:], flags = -1.0, np.zeros(times, np.int64)
    in_threads(
        lambda: found.append(await_and_check(row, flags, times)),
        lambda: fill_and_give(row, flags, times),
    )
    assert found == [0.0]


def test_products_from_several_python_threads_at_once():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((600, 300)).astype(np.float32)
    b = rng.standard_normal((300, 200)).astype(np.float32)
    with kernels_on(2):
        expected, found = matmul(a, b), []
        in_threads(*[lambda: found.extend(matmul(a, b) for _ in range(20))] * 3)
    assert len(found) == 60
    assert all(np.array_equal(y, expected) for y in found)
