"""Metrics for two-class scores: the ROC curve, the area under this curve, background rejection.

scores [N] are larger where the signal is more likely, and labels [N] are 1 (signal) or 0
(background).
"""

import sys
from typing import NamedTuple

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.convert import to_array


class Rejection(NamedTuple):
    """The background rejection 1/ε_B with its statistical error.

    Attributes:
        value    1/ε_B
        error    standard error of 1/ε_B
        passed   number of background events that passed
    """

    value: float
    error: float
    passed: int


def roc_curve(scores, labels):
    """Return the efficiencies (ε_S, ε_B) for every threshold, from (0, 0) to (1, 1), each [T].

    Events with equal scores pass the same thresholds, so they form one step of the curve.

    Args:
        scores   score of each event [N], larger where signal is more likely
        labels   1 for signal, 0 for background [N]
    """
    scores, signal = _check_scores_and_labels("roc_curve", scores, labels)
    order = np.argsort(-scores, kind="stable")
    # True for the last score of each group of ties
    last = np.append(scores[order][1:] != scores[order][:-1], True)
    passed = [np.append(0, np.cumsum(x[order])[last]) for x in (signal, ~signal)]
    return passed[0] / signal.sum(), passed[1] / (~signal).sum()


def roc_auc(scores, labels):
    """Return the area under the ROC curve, the probability that signal scores above background.

    Pairs with equal scores count half. Random scores give 0.5, and a perfect score gives 1.

    Args:
        scores   score of each event [N], larger where signal is more likely
        labels   1 for signal, 0 for background [N]
    """
    signal, background = roc_curve(scores, labels)
    return float(np.sum(np.diff(background) * (signal[1:] + signal[:-1]) / 2))


def background_rejection(scores, labels, efficiency):
    """Return 1/ε_B at the threshold that lets at least a fraction of the signal pass.

    If n of B background events pass, 1/ε_B is B/n, and its standard error is B/n · √((1 - n/B) /
    n), which follows from the binomial distribution. For n = 0, both are infinite, because there
    are too few background events.

    Args:
        scores       score of each event [N], larger where signal is more likely
        labels       1 for signal, 0 for background [N]
        efficiency   ε_S, the fraction of the signal that passes, between 0 and 1

    Returns:
        a `Rejection`

    Source: slide K28.
    """
    scores, signal = _check_scores_and_labels("background_rejection", scores, labels)
    if not 0 < efficiency <= 1:
        raise ValueError(
            f"background_rejection: expected 0 < efficiency <= 1, got efficiency={efficiency}"
        )
    wanted = int(np.ceil(efficiency * signal.sum() - 1e-9))
    threshold = np.sort(scores[signal])[-wanted]
    return rejection(int(np.sum(scores[~signal] >= threshold)), int(np.sum(~signal)))


def rejection(passed, total):
    """Return the `Rejection` for counts, which may be sums over several folds.

    Args:
        passed   number of background events that passed
        total    number of background events
    """
    if not 0 <= passed <= total or total == 0:
        raise ValueError(
            f"rejection: expected 0 <= passed <= total, got passed={passed}, total={total}"
        )
    if passed == 0:
        return Rejection(np.inf, np.inf, 0)
    value = total / passed
    return Rejection(value, value * float(np.sqrt((1 - passed / total) / passed)), passed)


def _check_scores_and_labels(name, scores, labels):
    scores, labels = np.asarray(to_array(scores)), np.asarray(to_array(labels))
    if scores.ndim != 1 or labels.shape != scores.shape:
        raise ValueError(
            f"{name}: scores and labels must both be [N], got {scores.shape} and {labels.shape}"
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"{name}: scores must be finite, got nan or infinite ones")
    if not np.isin(labels, (0, 1)).all() or not 0 < labels.sum() < len(labels):
        raise ValueError(
            f"{name}: labels must be 0 (background) and 1 (signal), and both must occur"
        )
    # -scores of unsigned integers would wrap around
    scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    return scores, labels.astype(bool)


torch_hints.hint_functions(globals(), torch_hints.public_names(sys.modules[__name__]))


def __getattr__(name):
    """Raise the error for a missing name, with its name in this library."""
    raise torch_hints.no_such_name(__name__, name)
