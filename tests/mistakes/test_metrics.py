"""Mistakes with metrics: the error that each must raise."""

import numpy as np
import pytest

from tinyattn import metrics


@pytest.mark.parametrize(
    ("scores", "labels", "says"),
    [
        (np.zeros((2, 2)), np.zeros((2, 2)), r"scores and labels must both be \[N\]"),
        (np.zeros((3, 2)), np.zeros(3), r"Write scores\[:, 1\] - scores\[:, 0\], where"),
        (np.zeros((3, 2)), np.zeros((3, 2)), r"and labels\[:, 1\], where column 1 is the signal$"),
        (np.zeros((3, 1)), np.zeros((3, 1)), r"Write scores.ravel\(\) and labels"),
        (np.zeros(3), np.zeros((3, 1)), r"\(3, 1\). Write labels.ravel\(\)$"),
        (np.array([0, 1]), np.array([0.2, 0.7]), "got 0.2. Did you exchange scores and labels"),
        (np.zeros(3), np.zeros(2), r"got shapes \(3,\) and \(2,\)"),
        (np.array([1, np.nan]), np.array([0, 1]), "scores must be finite, got nan for event 1"),
        (np.zeros(2), np.array([-1, 1]), r"labels must be 0 .* or 1 .*, got -1. Pass labels == s"),
        (np.zeros(2), np.array([1, 1]), "must contain both 0 .* and 1 .*, got only 1$"),
        (np.zeros(0), np.zeros(0), "must contain both .*, got no events"),
    ],
)
def test_wrong_input(scores, labels, says):
    for f in (metrics.roc_curve, metrics.roc_auc):
        with pytest.raises(ValueError, match=says):
            f(scores, labels)


def test_wrong_numbers():
    labels = np.array([0, 1])
    for efficiency in (0, -1, 1.1, np.nan):
        with pytest.raises(ValueError, match="0 < efficiency <= 1"):
            metrics.background_rejection(labels, labels, efficiency)
    for passed, total in ((-1, 5), (6, 5), (0, 0)):
        message = "0 <= passed <= total" if total else "0 < total < inf, got total=0"
        with pytest.raises(ValueError, match=message):
            metrics.rejection(passed, total)
    for passed in ("a", True, None):
        with pytest.raises(TypeError, match="rejection: passed must be a number"):
            metrics.rejection(passed, 5)
    assert metrics.background_rejection([1, 2, 3], [1, 0, 1], 1e-12).passed == 0
