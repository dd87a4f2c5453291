"""Memory that is freed stays with the process, so that the next array need not ask for it again.

A training step makes and drops hundreds of arrays of some megabytes. By default the C library
gives such memory back to the system at once and gets it again page by page, each page filled with
zeros first: that can take as long as the work itself.
"""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of malloc.h
LARGEST = 32 * 2**20  # bytes; larger blocks are asked for and given back one by one (its maximum)
KEPT = 2**30  # bytes at the end of the heap that may be free before they are given back


def keep():
    """Let the C library keep freed memory (glibc only; elsewhere nothing happens)."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST)) and bool(mallopt(TRIM_THRESHOLD, KEPT))
