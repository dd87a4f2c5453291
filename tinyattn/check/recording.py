"""Observe operations while they are recorded, for `detect_anomaly` and `watch`."""

import contextlib
import os
import sys
from threading import local

import numpy as np

from tinyattn.engine import autograd
from tinyattn.ops import backends

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Frames in these files count as the library's, because contextlib enters blocks for it, and because
# some of NumPy's functions are Python code that calls its operations.
OURS = (HERE, contextlib.__file__, os.path.dirname(np.__file__) + os.sep)

_record = autograd.record
_blocks = 0  # number of observers in all threads; with 0, recording has no additional cost


class _Observers(local):
    """The functions that the current thread calls for each recorded operation."""

    def __init__(self):
        self.functions = ()


_observers = _Observers()


def observe(look):
    """Call look(t, op, values, inputs) for each result t that this thread records from now on.

    `stop_observing(look)` ends this. Without observers, recording has no additional cost.
    """
    _observers.functions = (*_observers.functions, look)
    _count(+1)


def stop_observing(look):
    """Undo one `observe(look)`."""
    functions = list(_observers.functions)
    functions.remove(look)
    _observers.functions = tuple(functions)
    _count(-1)


def _count(change):
    global _blocks
    _blocks += change
    autograd.record = backends.record = _observed if _blocks else _record


def _observed(op, y, inputs, values, options):
    """Call `autograd.record` and all observers."""
    t = _record(op, y, inputs, values, options)
    for look in _observers.functions:
        look(t, op, values, inputs)
    return t


def library_frames(depth=1):
    """Return (the library's frames that lead here, innermost first; the frame of their caller).

    Args:
        depth   number of the innermost frames to skip. The caller is None if there is none
    """
    frame, inside = sys._getframe(depth + 1), []
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        inside.append(frame)
        frame = frame.f_back
    return inside, frame
