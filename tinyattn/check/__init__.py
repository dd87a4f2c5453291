"""Checks of whether code is right. If it is not, they name the place and a likely cause.

    check.gradcheck(f, x, w)             is the gradient right? (against central differences)
    check.equivariant(f, x)              does permuting the rows of x permute the rows of f(x)?
    check.invariant(f, x)                does permuting the rows of x leave f(x) unchanged?
    check.causal(f, x)                   does no position depend on a later one?
    check.padding(f, x)                  does padding leave f(x, keep) of a sequence unchanged?
    check.isolated(f, x)                 does each member of a batch depend only on itself?
    check.trains(model, (x, y))          do all parameters move, and can one batch be memorized?
    check.same({"a": f, "b": g}, x)      do two implementations agree, in values and gradients?
    with check.watch(model, optimizer):  does the training loop have a mistake that runs silently?
    with ta.detect_anomaly():            which operation made the first NaN or infinity?

Each check returns a report that prints the comparison and its largest difference. The report is
true if the check passed, and `.expect()` raises AssertionError with the same text if it failed.
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
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
