"""Metrics for scores of two classes: the ROC curve, the area under it, background rejection.

scores [N] are larger where the signal is more likely, and labels [N] are 1 (signal) or 0
(background). An event passes a threshold if its score is at least as large.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import check_range, is_number


class Rejection(NamedTuple):
    """The background rejection 1/ε_B with its statistical error.

    Attributes:
        value    1/ε_B, where ε_B is the fraction of the background events that passed the
                 threshold, or infinity if none of them passed
        error    standard error of 1/ε_B, or infinity if none of them passed
        passed   number of background events that passed the threshold
    """

    value: float
    error: float
    passed: int


def roc_curve(scores, labels):
    """Return the efficiencies of signal and background for every threshold.

    An efficiency is the fraction of the events of a class whose score reaches the threshold. Events
    with equal scores pass the same thresholds, so they form one step of the curve.

    Args:
        scores   score of each event [N], larger where signal is more likely
        labels   class of each event [N], 1 for signal and 0 for background

    Returns:
        (ε_S [T], ε_B [T]), the efficiencies of signal and background for T thresholds in descending
        order: a threshold above all scores, then each different score. Both therefore grow from 0
        to 1

    Raises:
        ValueError: scores and labels are not both [N], a score is not finite, a label is neither 0
            nor 1, or a class has no events
        TypeError: the scores are not real numbers
    """
    return _curve("roc_curve", scores, labels)


def _curve(name, scores, labels):
    """Return the result of `roc_curve`. Errors begin with `name`, the calling function."""
    scores, signal = _check_scores_and_labels(name, scores, labels)
    order = np.argsort(-scores, kind="stable")
    # True for the last score of each group of ties
    last = np.append(scores[order][1:] != scores[order][:-1], True)
    passed = [np.append(0, np.cumsum(x[order])[last]) for x in (signal, ~signal)]
    return passed[0] / signal.sum(), passed[1] / (~signal).sum()


def roc_auc(scores, labels):
    """Return the area under the ROC curve (AUC).

    The area is the probability that a random signal event has a larger score than a random
    background event, where equal scores count half. Random scores give 0.5, and a perfect score
    gives 1.

    Args:
        scores   score of each event [N], larger where signal is more likely
        labels   class of each event [N], 1 for signal and 0 for background

    Returns:
        the area, a float from 0 to 1

    Raises:
        ValueError: scores and labels are not both [N], a score is not finite, a label is neither 0
            nor 1, or a class has no events
        TypeError: the scores are not real numbers
    """
    signal, background = _curve("roc_auc", scores, labels)
    return float(np.sum(np.diff(background) * (signal[1:] + signal[:-1]) / 2))


def background_rejection(scores, labels, efficiency):
    """Return 1/ε_B at the highest threshold that a given fraction of the signal passes.

    The threshold is the highest score that at least this fraction of the signal events reaches, and
    ε_B is the fraction of the background events that reach it. If n of B background events pass,
    1/ε_B is B/n, and its standard error is B/n · √((1 - n/B) / n), which follows from the binomial
    distribution. For n = 0, both are infinite, because there are too few background events.

    Args:
        scores       score of each event [N], larger where signal is more likely
        labels       class of each event [N], 1 for signal and 0 for background
        efficiency   ε_S, the fraction of the signal events that must pass, with 0 < ε_S <= 1

    Returns:
        a `Rejection`, a named tuple (value, error, passed)

    Raises:
        ValueError: scores and labels are not both [N], a score is not finite, a label is neither 0
            nor 1, or a class has no events
        ValueError: the efficiency is outside its range
        TypeError: the scores are not real numbers, or the efficiency is not a single number

    Source: slide K28.
    """
    scores, signal = _check_scores_and_labels("background_rejection", scores, labels)
    check_range("background_rejection", None, 1, above=0, efficiency=efficiency)
    wanted = max(1, int(np.ceil(efficiency * signal.sum() - 1e-9)))
    threshold = np.sort(scores[signal])[-wanted]
    return rejection(int(np.sum(scores[~signal] >= threshold)), int(np.sum(~signal)))


def rejection(passed, total):
    """Return the background rejection 1/ε_B = total/passed, for counts of background events.

    The counts may be sums over several folds.

    Args:
        passed   number of background events that passed the threshold, 0 <= passed <= total
        total    number of background events

    Returns:
        a `Rejection`, a named tuple (value, error, passed)

    Raises:
        ValueError: total is not positive and finite, or passed is not from 0 to total
        TypeError: total or passed is not a number
    """
    check_range("rejection", above=0, below=math.inf, total=total)
    if not is_number(passed):
        check_range("rejection", passed=passed)
    if not 0 <= passed <= total:
        raise ValueError(
            f"rejection: expected 0 <= passed <= total, got passed={passed!r}, total={total}"
        )
    if passed == 0:
        return Rejection(np.inf, np.inf, 0)
    value = total / passed
    return Rejection(value, value * float(np.sqrt((1 - passed / total) / passed)), passed)


def _check_scores_and_labels(name, scores, labels):
    scores, labels = np.asarray(to_array(scores)), np.asarray(to_array(labels))
    if scores.ndim != 1 or labels.shape != scores.shape:
        use = {
            ("scores", 1): "scores.ravel()",
            ("labels", 1): "labels.ravel()",
            ("scores", 2): "scores[:, 1] - scores[:, 0]",
            ("labels", 2): "labels[:, 1]",
        }
        columns = [
            (argument, given.shape[1])
            for argument, given in (("scores", scores), ("labels", labels))
            if given.ndim == 2 and given.shape[1] in (1, 2)
        ]
        advice = f". Write {' and '.join(use[c] for c in columns)}" if columns else ""
        if any(n == 2 for _, n in columns):
            advice += ", where column 1 is the signal"
        raise ValueError(
            f"{name}: scores and labels must both be [N], got shapes {scores.shape} and "
            f"{labels.shape}{advice}"
        )
    if scores.dtype.kind not in "fiub":
        raise TypeError(f"{name}: scores must be real numbers, got dtype {scores.dtype}")
    if not np.isfinite(scores).all():
        bad = np.flatnonzero(~np.isfinite(scores))
        raise ValueError(
            f"{name}: scores must be finite, got {scores[bad[0]]} for event {bad[0]} (NaN or "
            f"infinite: {len(bad)} of {len(scores)}). Look for a logarithm of 0, or for a training "
            "that diverged"
        )
    wrong = ~np.isin(labels, (0, 1))
    if wrong.any():
        advice = "Pass labels == s, where s is the label of the signal"
        if labels.dtype.kind == "f" and (labels % 1 != 0).any() and np.isin(scores, (0, 1)).all():
            advice = "Did you exchange scores and labels?"
        raise ValueError(
            f"{name}: labels must be 0 (background) or 1 (signal), got "
            f"{labels[wrong][0].item()!r}. {advice}"
        )
    if not 0 < labels.sum() < len(labels):
        found = f"only {int(labels[0])}" if len(labels) else "no events"
        raise ValueError(
            f"{name}: labels must contain both 0 (background) and 1 (signal), got {found}"
        )
    # -scores of unsigned integers would wrap around
    scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    return scores, labels.astype(bool)


torch_hints.hint_functions(globals(), torch_hints.public_names(sys.modules[__name__]))


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
