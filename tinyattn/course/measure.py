"""Measure time, memory, and their growth with the size of the problem, for the lectures."""

import time
import tracemalloc

import numpy as np


def seconds(work, at_least=0.05, rounds=3):
    """Return the shortest time of several calls, which other programs disturbed least.

    The first call does not count, because it may compile. Calls are repeated until `rounds` calls
    and `at_least` seconds are reached.
    """
    work()
    best, spent, done = np.inf, 0.0, 0
    while done < rounds or spent < at_least:
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        best, spent, done = min(best, took), spent + took, done + 1
    return best


def memory(work):
    """Return the largest number of bytes that all arrays together take while `work` runs."""
    work()  # the first call may compile a kernel
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def slope(x, y):
    """Return the power p in y ~ x^p: the slope of a straight line in logarithms."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]
