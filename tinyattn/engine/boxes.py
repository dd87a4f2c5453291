"""Remember the results of one call of a library function, so that a trace can show it as one box.

Only the last calls are remembered, as three small values each, so no array is kept alive.
"""

from collections import deque
from functools import wraps
from typing import NamedTuple

from tinyattn.engine import autograd


class Box(NamedTuple):
    """A function call that created its results after the time `begin` and up to `end`."""

    name: str  # name of the function
    begin: int  # counted in results and writes, as Tensor._created
    end: int


RECENT: deque[Box] = deque(maxlen=1000)  # a few steps of training of a model with many layers


def one_box(f):
    """Return f, whose calls are remembered in RECENT, so that a trace shows each as one box.

    Only calls whose result was recorded are remembered.
    """

    @wraps(f)
    def call(*args, **options):
        begin = autograd._clock()
        y = f(*args, **options)
        if isinstance(y, autograd.Tensor) and y._operation is not None and y._created > begin:
            RECENT.append(Box(f.__name__, begin, y._created))
        return y

    return call
