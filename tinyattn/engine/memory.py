"""Reuse the memory of large arrays, so that the next array need not request it from the system.

A training step creates and drops hundreds of arrays of some megabytes. The C library returns such
memory to the system and gets it back page by page. Each page is first filled with zeros, which can
take longer than the computation itself. Arrays above LARGEST, which the C library never keeps, come
from `empty_pooled`. For smaller arrays, `keep_memory` changes the behaviour of the C library in the
whole process, so the library itself never calls it.
"""

import ctypes
import math
import os
import sys
from itertools import count
from tracemalloc import is_tracing

import numpy as np

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # constants of malloc.h
# bytes; malloc requests and frees larger blocks one by one, and allows no higher limit
LARGEST = 32 * 2**20
LINE = 64  # bytes of a cache line
KEPT = 2**30  # free bytes at the end of the heap before they are returned
SPARE = 2**29  # bytes of large blocks that may wait for reuse


def keep_memory() -> bool:
    """Make the C library keep freed memory for the next array, in the whole process.

    Up to 1 GB of free memory stays with the process, so training that creates many arrays of a few
    megabytes becomes faster.

    Returns:
        True if the C library allows this, as glibc does on Linux, and False otherwise
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST)) and bool(mallopt(TRIM_THRESHOLD, KEPT))


def fork_safe(lock):
    """Return the lock, and prevent forks while another thread holds it.

    The child process would not have this thread, so the lock would never be released.
    """
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


# {number: memory}, the oldest first. A forked child could find a lock that stays closed forever, so
# there is none. Each operation on a dictionary is atomic.
_spare, _numbers = {}, count()


def empty_pooled(shape, dtype):
    """Return an array as np.empty does, but reuse the memory of a deleted array of the same size.

    `dtype` is an np.dtype. Arrays of at most LARGEST bytes are left to NumPy, and so are all arrays
    while tracemalloc is active, because it counts requests for memory.
    """
    size = math.prod(shape) * dtype.itemsize
    if size <= LARGEST or is_tracing():
        return np.empty(shape, dtype)
    return np.asarray(PooledBuffer(size, shape, dtype))


def aligned(n, dtype):
    """Return an array of n numbers that begins at a cache line in memory."""
    size = n * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE, np.uint8)
    return memory[-memory.ctypes.data % LINE :][:size].view(dtype)


def address(x):
    """Return the address of an array's memory."""
    return x.__array_interface__["data"][0]


class PooledBuffer:
    """The memory of one large array, which can be reused when no array uses it any more.

    Args:
        size    number of bytes
        shape   shape of the array
        dtype   dtype of the array
    """

    def __init__(self, size, shape, dtype):
        self.memory = _taken(size)
        if self.memory is None:
            self.memory = aligned(size, np.uint8)
        at = self.memory.ctypes.data, False  # False: may be written to
        self.__array_interface__ = {"version": 3, "data": at, "shape": shape, "typestr": dtype.str}

    # when Python ends, the module may already be gone
    def __del__(self, spare=_spare, numbers=_numbers):
        spare[next(numbers)] = self.memory
        for number in list(spare):
            if sum([len(memory) for memory in list(spare.values())]) <= SPARE:
                return
            spare.pop(number, None)


def _taken(size):
    """Return the memory of this size that was released last, or None."""
    for number in reversed(list(_spare)):
        memory = _spare.get(number)
        # the memory is ours unless another thread was faster
        if memory is not None and len(memory) == size and _spare.pop(number, None) is not None:
            return memory
    return None
