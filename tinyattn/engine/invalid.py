"""Zero times infinity: where no gradient arrives, none leaves, however steep an operation is there.

np.where(x > 0, np.log(x), 0) computes both branches. At x = 0 the branch that was not taken gets
the gradient 0, and the slope 1/x of the logarithm is infinite. NumPy's 0 · ∞ is nan, which would
spread to everything below; but what was not taken has no influence, so its gradient is 0. That
holds for all operations that work on each element by itself (`ops/marks.py`), and for all slopes
that are not finite.

Nobody looks for nan at first: the processor notes when it makes one of ordinary numbers, and NumPy
asks it after each function. So a backward pass without such numbers costs nothing. From the first
one on, and from an np.where on whose other branch is nan itself, each rule is looked at.
"""

from contextvars import copy_context
from threading import local

import numpy as np


class _Pass(local):
    noted = None  # what the backward pass that runs in this thread has noted


_pass = _Pass()


def _processor_notes():
    """Whether it does; in the browser it does not."""
    noted = []
    with np.errstate(invalid="call", call=lambda kind, flag: noted.append(kind)):
        np.multiply(np.zeros(1), np.inf)
    return bool(noted)


PROCESSOR_NOTES = _processor_notes()


class Noted(list):
    """`with Noted() as noted:` not empty as soon as a function of NumPy made nan or an infinity.

    Inside of the block NumPy does not warn; `mended` lets it warn of what is left.
    """

    __slots__ = ("before", "known", "outside", "state")

    def __enter__(self):
        self.outside, self.known = copy_context(), 0  # with what the user wants to be warned of
        self.before, _pass.noted = _pass.noted, self
        if not PROCESSOR_NOTES:
            self.append("perhaps")  # then every rule is looked at
        self.state = np.errstate(divide="call", invalid="call", call=self._note)
        self.state.__enter__()
        return self

    def __exit__(self, *error):
        _pass.noted = self.before
        self.state.__exit__(*error)

    def _note(self, kind, flag):
        self.append(kind)

    def mended(self, op, rule, arguments, options, g_x):
        """The gradient g_x that a rule gave, 0 in place of nan where none arrived.

        What is not finite elsewhere stays, and NumPy warns of it as if there were no block.
        """
        if not PROCESSOR_NOTES and np.isfinite(_array(g_x).sum()):
            return g_x  # the only look that every rule gets in a browser: a sum is quick
        g_x = where_none_arrives(op, arguments[0], g_x)
        if len(self) > self.known:
            self.known = len(self)
            if not np.isfinite(_array(g_x)).all():
                self.outside.run(rule, *arguments, **options)
        return g_x


def note_nan(branch):
    """Let the backward pass look at all rules from here on if the array `branch` has a nan."""
    if _pass.noted is not None and np.isnan(_array(branch)).any():
        _pass.noted.append("nan")


def where_none_arrives(op, g, g_x):
    """g_x with 0 in place of nan where g is 0, if the operation is an elementwise one."""
    array, g = _array(g_x), _array(g)
    if not op.elementwise or array.shape != g.shape:
        return g_x
    lost = np.isnan(array) & (g == 0)
    return np.where(lost, 0, g_x) if lost.any() else g_x


def _array(g):
    """The numbers of a gradient; no numbers for what a wrong rule returned."""
    array = np.asarray(g) if isinstance(g, np.ndarray | np.generic) else getattr(g, "data", None)
    is_real = isinstance(array, np.ndarray) and array.dtype.kind in "fiub"
    return array if is_real else np.zeros(0)
