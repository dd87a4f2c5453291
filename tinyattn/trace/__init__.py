"""Where does this number come from? One HTML page that goes through a recorded computation.

    ta.trace(loss)                      a result that was computed before
    ta.trace(loss, model)               the same, with the names of the model's parameters
    ta.trace(f, x, y)                   runs f(x, y) and knows its lines and layers, too
    with ta.trace() as t: ...           the same for the lines of a block

What comes back shows itself in a notebook; `.save("trace.html")` writes a file without network.
On the page any number can be clicked: what it was made of, term by term, and how dL/d(it) came.

The files, in the order of reading: `tape` copies the steps and their gradients, `jacobian_rows`
asks each rule what an element is made of, `forward` measures the same slopes, `patterns` and
`terms` say it in few numbers, `record` notes names, lines and layers, `build` and `page` put it
together.
"""

import sys
from types import ModuleType

from tinyattn.trace.view import Block, Trace, trace

__all__ = ["Block", "Trace", "trace"]


class _Callable(ModuleType):
    """`ta.trace` is this package and can be called, as its main function has the same name."""

    def __call__(self, *args, **options):
        return trace(*args, **options)


_Callable.__call__.__doc__ = trace.__doc__
sys.modules[__name__].__class__ = _Callable
