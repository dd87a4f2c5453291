"""Memory of large arrays that is used again, so that the next array need not ask the system for it.

A training step makes and drops hundreds of arrays of some megabytes. The C library gives such
memory back to the system and gets it again page by page, each page filled with zeros first, which
can take longer than the work itself. Arrays above LARGEST, which the C library never keeps, come
from `empty_pooled`; for smaller ones `keep_memory` changes what the C library does, in the whole
process, so it is called only by programs that want it.
"""

import ctypes
import math
import os
import sys
from itertools import count
from tracemalloc import is_tracing

import numpy as np

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of malloc.h
LARGEST = 32 * 2**20  # bytes; larger blocks are asked for and given back one by one (its maximum)
LINE = 64  # bytes of a line of the cache
KEPT = 2**30  # bytes at the end of the heap that may be free before they are given back
SPARE = 2**29  # bytes of large blocks that may wait for another array


def keep_memory() -> bool:
    """Let the C library keep freed memory for the next array, in the whole process.

    Up to 1 GB that is free stays with the process, so training that makes many arrays of a few
    megabytes becomes faster. Returns whether the C library was told: glibc only, on Linux.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST)) and bool(mallopt(TRIM_THRESHOLD, KEPT))


def fork_safe(lock):
    """The lock, and no fork while another thread holds it: the child has no such thread."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


# {number: memory}, what has waited longest first. There is no lock, which a forked child could
# find closed for ever: each step on a dictionary is done as a whole, whatever other threads do.
_spare, _numbers = {}, count()


def empty_pooled(shape, dtype):
    """np.empty; where a large array of as many bytes is gone, its memory serves again.

    Not while tracemalloc looks on: it counts what it saw being asked for.
    """
    size = math.prod(shape) * dtype.itemsize
    if size <= LARGEST or is_tracing():
        return np.empty(shape, dtype)
    return np.asarray(PooledBuffer(size, shape, dtype))


def aligned(n, dtype):
    """An array of n numbers that begins with a line of the cache."""
    size = n * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE, np.uint8)
    return memory[-memory.ctypes.data % LINE :][:size].view(dtype)


def address(x):
    """Where the memory of an array begins."""
    return x.__array_interface__["data"][0]


class PooledBuffer:
    """The memory of one large array. When the array and all its views are gone, it is spare."""

    def __init__(self, size, shape, dtype):
        self.memory = _taken(size)
        if self.memory is None:
            self.memory = aligned(size, np.uint8)
        data = self.memory.ctypes.data, False  # False: may be written to
        self.__array_interface__ = {
            "version": 3,
            "data": data,
            "shape": shape,
            "typestr": dtype.str,
        }

    def __del__(self, spare=_spare, numbers=_numbers):  # when Python ends, the module may be gone
        spare[next(numbers)] = self.memory
        for number in list(spare):
            if sum([len(memory) for memory in list(spare.values())]) <= SPARE:
                return
            spare.pop(number, None)


def _taken(size):
    """Spare memory of that size, the newest; None if there is none."""
    for number in reversed(list(_spare)):
        memory = _spare.get(number)
        # it is ours if nobody was quicker
        if memory is not None and len(memory) == size and _spare.pop(number, None) is not None:
            return memory
    return None
