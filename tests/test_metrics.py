"""ROC curve, its area, and background rejection, against known answers and scikit-learn."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyattn import metrics
from tinyattn.engine.autograd import tensor


def test_by_hand():
    scores, labels = np.array([0.9, 0.8, 0.7, 0.6, 0.2]), np.array([1, 0, 1, 0, 0])
    signal, background = metrics.roc_curve(scores, labels)
    np.testing.assert_allclose(signal, [0, 0.5, 0.5, 1, 1, 1])
    np.testing.assert_allclose(background, [0, 0, 1 / 3, 1 / 3, 2 / 3, 1])
    assert metrics.roc_auc(scores, labels) == pytest.approx(5 / 6)  # of six pairs one is wrong
    found = metrics.background_rejection(scores, labels, 1.0)
    assert found == pytest.approx((3, 3 * np.sqrt(2 / 3), 1))
    assert metrics.background_rejection(scores, labels, 0.5) == (np.inf, np.inf, 0)
    assert metrics.background_rejection(tensor(scores), labels.astype(bool), 0.51).passed == 1


def test_two_bell_curves():
    rng, d = np.random.default_rng(0), 1.5
    labels = np.arange(200_000) % 2
    scores = rng.normal(size=labels.size) + d * labels
    bell = NormalDist()
    assert metrics.roc_auc(scores, labels) == pytest.approx(bell.cdf(d / np.sqrt(2)), abs=0.003)
    for efficiency in (0.3, 0.5):
        passing = 1 - bell.cdf(d + bell.inv_cdf(1 - efficiency))
        found = metrics.background_rejection(scores, labels, efficiency)
        assert abs(found.value - 1 / passing) < 4 * found.error
        assert found.error == pytest.approx(found.value / np.sqrt(1e5 * passing), rel=0.1)


def test_ties():
    labels = np.array([1, 0, 1, 0])
    assert metrics.roc_auc(np.zeros(4), labels) == 0.5
    assert metrics.background_rejection(np.zeros(4), labels, 0.5) == (1, 0, 2)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_like_scikit_learn(pairs):
    peer = pytest.importorskip("sklearn.metrics")
    scores, labels = (np.array(x) for x in zip(*pairs, strict=True))
    if labels.all() or not labels.any():
        with pytest.raises(ValueError, match="both"):
            metrics.roc_auc(scores, labels)
        return
    assert metrics.roc_auc(scores, labels) == pytest.approx(peer.roc_auc_score(labels, scores))
    background, signal, _ = peer.roc_curve(labels, scores, drop_intermediate=False)
    ours = metrics.roc_curve(scores, labels)
    np.testing.assert_allclose(ours, (signal, background))
    for efficiency in (0.3, 0.5, 1.0):
        wanted = background[np.argmax(signal >= efficiency - 1e-12)]  # the first that reaches it
        found = metrics.background_rejection(scores, labels, efficiency).value
        assert found == pytest.approx(1 / wanted if wanted else np.inf)
