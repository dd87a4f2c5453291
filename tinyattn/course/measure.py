"""Time, memory, and how they grow with the size of the problem, as the lectures measure them."""

import time
import tracemalloc

import numpy as np


def seconds(work, at_least=0.05, rounds=3):
    """Time of a call: the shortest of several, which was disturbed least by other programs.

    The first call does not count, since it may compile. Repeated until `rounds` calls and
    `at_least` seconds are reached.
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
    """Bytes of all arrays that are alive at once while `work` runs, at most."""
    work()  # the first time may compile
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def slope(x, y):
    """The power p in y ~ x^p: the slope of a straight line in logarithms."""
    return np.polyfit(np.log(x), np.log(y), 1)[0]
