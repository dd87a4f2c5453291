"""Looking on while operations are recorded: what `detect_anomaly` and `watch` have in common."""

import contextlib
import os
import sys
from threading import local

from tinyattn.engine import autograd
from tinyattn.ops import backends

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

OURS = (HERE, contextlib.__file__)  # a block that is entered is called from there

_record = autograd.record
_blocks = 0  # in which somebody looks on, in any thread


class _Observers(local):
    """The functions that this thread calls for each operation that is recorded."""

    def __init__(self):
        self.functions = ()


_observers = _Observers()


def observe(look):
    """Call look(t, op, values, inputs) for each result t that this thread records from now on.

    Ends with `stop_observing(look)`. While nobody looks on, recording costs what it always costs.
    """
    _observers.functions = (*_observers.functions, look)
    _count(+1)


def stop_observing(look):
    """Take back one `observe(look)`."""
    functions = list(_observers.functions)
    functions.remove(look)
    _observers.functions = tuple(functions)
    _count(-1)


def _count(change):
    global _blocks
    _blocks += change
    autograd.record = backends.record = _observed if _blocks else _record


def _observed(op, y, inputs, values, options):
    """`autograd.record`, and a call of everybody who looks on."""
    t = _record(op, y, inputs, values, options)
    for look in _observers.functions:
        look(t, op, values, inputs)
    return t


def library_frames(depth=1):
    """(The frames of this library that lead here, the inner ones first, and the caller's frame)."""
    frame, inside = sys._getframe(depth + 1), []
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        inside.append(frame)
        frame = frame.f_back
    return inside, frame
