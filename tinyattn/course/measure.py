"""Measure time, memory, and their growth with the size of the problem, for the lectures."""

import time
import tracemalloc

import numpy as np


def seconds(work, at_least=0.05, rounds=3):
    """Return the shortest time of several calls in seconds, because other programs only add time.

    One more call comes first and is not measured, because it may compile a kernel.

    Args:
        work       function without arguments
        at_least   smallest total time of the measured calls in seconds
        rounds     smallest number of measured calls
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
    """Return the largest number of bytes that are allocated at the same time while `work` runs.

    Args:
        work   function without arguments. It is called three times, and the lower of the last two
               results is returned, because now and then Python allocates memory of its own
    """
    work()  # the first call may compile a kernel
    return min(_largest(work), _largest(work))


def _largest(work):
    """Return the largest number of bytes that are allocated at the same time in a single call."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def slope(x, y):
    """Return the power p in y ~ x^p, the slope of a straight line through (ln x, ln y).

    Args:
        x   positive numbers [N], at least two of them different
        y   positive numbers [N]

    Raises:
        ValueError: the numbers are not positive and finite, not both [N] with N >= 2, or all x are
            the same
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2 or not (_positive(x) and _positive(y)):
        raise ValueError(
            "slope: x and y must be positive finite numbers [N] with N >= 2, got "
            f"x={x.tolist()} and y={y.tolist()}"
        )
    if np.ptp(x) == 0:
        raise ValueError(f"slope: x must contain different numbers, got x={x.tolist()}")
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def _positive(x):
    return bool(((x > 0) & np.isfinite(x)).all())
