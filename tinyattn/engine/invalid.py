"""Zero times infinity: if an operation receives the gradient 0, it passes on 0 for any slope.

np.where(x > 0, np.log(x), 0) computes both branches. At x = 0, the branch that was not taken
receives the gradient 0, and the slope 1/x of the logarithm is infinite. NumPy's 0 · ∞ is NaN, which
would spread to all inputs. But a branch that was not taken has no influence, so its gradient is 0.
This holds for all operations that act on each element separately (`ops/marks.py`), and for all
slopes that are not finite.

At first, gradients are not searched for NaN. The processor sets a flag when it makes a NaN from
operands that are not NaN, and NumPy reads this flag after each function, so a backward pass without
NaN costs nothing extra. After the first NaN, or after an np.where whose other branch is itself NaN,
the result of each rule is checked.
"""

from contextvars import copy_context
from threading import local

import numpy as np


class _Pass(local):
    noted = None  # the notes of the backward pass that runs in this thread


_pass = _Pass()


def _processor_notes():
    """Return whether the processor reports invalid numbers, which it does not do in a browser."""
    noted = []
    with np.errstate(invalid="call", call=lambda kind, flag: noted.append(kind)):
        np.multiply(np.zeros(1), np.inf)
    return bool(noted)


PROCESSOR_NOTES = _processor_notes()


class Noted(list):
    """A list that is empty until NumPy makes a NaN, or an infinity as in 1/0 and log 0.

    Inside the block `with Noted() as noted:`, NumPy does not warn about them. `mended` gives the
    warnings that are still needed.
    """

    __slots__ = ("before", "known", "outside", "state")

    def __enter__(self):
        # this context holds the user's warning settings
        self.outside, self.known = copy_context(), 0
        self.before, _pass.noted = _pass.noted, self
        if not PROCESSOR_NOTES:
            self.append("perhaps")  # without the processor's notes, check every rule
        self.state = np.errstate(divide="call", invalid="call", call=self._note)
        self.state.__enter__()
        return self

    def __exit__(self, *error):
        _pass.noted = self.before
        self.state.__exit__(*error)

    def _note(self, kind, flag):
        self.append(kind)

    def mended(self, op, rule, arguments, options, g_x):
        """Return the gradient g_x of a rule, with 0 instead of NaN where no gradient arrived.

        `op` is the operation, and `rule` was called with these arguments and options. Other values
        that are not finite remain, and NumPy warns about them as it does outside a block.
        """
        if not PROCESSOR_NOTES and np.isfinite(_array(g_x).sum()):
            return g_x  # in a browser, every rule is checked, so the usual case is a fast sum
        g_x = where_none_arrives(op, arguments[0], g_x)
        if len(self) > self.known:
            self.known = len(self)
            if not np.isfinite(_array(g_x)).all():
                self.outside.run(rule, *arguments, **options)
        return g_x


def note_nan(branch):
    """If the array `branch` contains NaN, make the backward pass check all rules from now on."""
    if _pass.noted is not None and np.isnan(_array(branch)).any():
        _pass.noted.append("nan")


def where_none_arrives(op, g, g_x):
    """Return g_x with 0 instead of NaN where g is 0, if the operation is elementwise."""
    array, g = _array(g_x), _array(g)
    if not op.elementwise or array.shape != g.shape:
        return g_x
    lost = np.isnan(array) & (g == 0)
    return np.where(lost, 0, g_x) if lost.any() else g_x


def _array(g):
    """Return the numbers of a gradient, or an empty array if a rule returned anything else."""
    array = np.asarray(g) if isinstance(g, np.ndarray | np.generic) else getattr(g, "data", None)
    is_real = isinstance(array, np.ndarray) and array.dtype.kind in "fiub"
    return array if is_real else np.zeros(0)
