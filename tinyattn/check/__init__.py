"""Checks that say right or wrong at once, and where and perhaps why.

    check.gradcheck(f, x, w)             is the gradient right? (against central differences)
    check.equivariant(f, x)              does permuting the rows of x permute the rows of f(x)?
    check.invariant(f, x)                does permuting the rows of x leave f(x) as it is?
    check.causal(f, x)                   does no position see a later one?
    check.padding(f, x)                  is a padded sequence what it is alone? f(x, keep)
    check.isolated(f, x)                 does no member of a batch see another one?
    check.trains(model, (x, y))          do all parameters move, is one batch learned by heart?
    check.same({"a": f, "b": g}, x)      do two implementations agree, in values and gradients?
    with check.watch(model, optimizer):  does the training loop have a slip that runs silently?
    with ta.detect_anomaly():            which operation made the first nan or infinity?

Each check returns a report that prints what was compared and where it differs most, is true if all
is well, and raises AssertionError with the same text by `.expect()`.
"""

from tinyattn.check.anomaly import detect_anomaly
from tinyattn.check.gradients import gradcheck
from tinyattn.check.influence import causal, isolated, padding
from tinyattn.check.report import Report
from tinyattn.check.symmetry import equivariant, invariant, same
from tinyattn.check.trains import trains
from tinyattn.check.watch import SlipWarning, watch
from tinyattn.engine import torch_hints

__all__ = [
    "Report",
    "SlipWarning",
    "causal",
    "detect_anomaly",
    "equivariant",
    "gradcheck",
    "invariant",
    "isolated",
    "padding",
    "same",
    "trains",
    "watch",
]


torch_hints.hint_functions(globals(), __all__)


def __getattr__(name):
    """Only asked for what there is not: say what it is called here."""
    raise torch_hints.no_such_name(__name__, name)
