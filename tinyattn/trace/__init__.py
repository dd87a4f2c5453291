"""Explain where a number comes from, on one HTML page that steps through a recorded computation.

    ta.trace(loss)                      a result that has already been computed
    ta.trace(loss, model)               the same, if no variable here holds the model
    ta.trace(f, x, y)                   runs f(x, y), and also records its lines and layers
    with ta.trace() as t: ...           the same for the lines of a block

A notebook displays the result, and `.save("trace.html")` writes a file that needs no network. Click
any number on the page to see the terms it was computed from, and how its gradient dL/d(number) was
computed.

The files, in reading order: `tape` copies the steps and their gradients. `jacobian_rows` uses each
operation's rule to find the inputs of an element and their slopes, and `forward` measures the same
slopes. `patterns` stores them in few numbers, and `terms` finds out which results are sums.
`record` notes names, lines and layers, and `build` and `page` combine everything.
"""

import sys
from types import ModuleType

from tinyattn.trace.view import Block, Trace, trace

__all__ = ["Block", "Trace", "trace"]


class _Callable(ModuleType):
    """The class of this package, `ta.trace`, which makes it callable like its main function."""

    def __call__(self, *args, **options):
        return trace(*args, **options)


_Callable.__call__.__doc__ = trace.__doc__
sys.modules[__name__].__class__ = _Callable
