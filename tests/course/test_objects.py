"""The measures of lecture 12 against counts by hand, and against slower ways to get them."""

import numpy as np
import pytest

from tinyattn import graph
from tinyattn.course import objects

RNG = np.random.default_rng(0)


def test_quality_and_balance_by_hand():
    truth = np.array([0, 0, 0, 1, 1, 2, 2, -1])
    found = np.array([5, 5, 5, 6, -1, 7, 8, 9])  # 5 is 0; 6, 7, 8 are halves: not above 0.5
    assert objects.quality(found, truth).tolist() == [1 / 3, 1 / 5]
    assert objects.balance(1 / 3, 1 / 5) == pytest.approx(2 / (3 + 5))
    assert objects.balance(0, 0) == 0
    assert objects.quality(np.full(8, -1), truth).tolist() == [0, 0]  # nothing found, no nan


def test_condensation_points_are_the_strongest():
    beta = np.array([0.2, 0.9, 0.9, 0.3, 0.8, 1.0])
    truth = np.array([4, 4, 4, 0, 0, -1])
    assert objects.condensation_points(beta, truth).tolist() == [4, 1]  # of equal ones, the first


def test_silhouette_by_hand():
    x = np.array([[0.0], [1.0], [3.0], [3.0], [9.0]])
    truth = np.array([0, 0, 1, 1, -1])
    expected = [(3 - 1) / 3, (2 - 1) / 2, 1, 1]  # distances 0-1, to the other object 3 and 2
    assert objects.silhouette(x, truth, np.zeros(5, int)) == pytest.approx(np.mean(expected))


def test_silhouette_omits_points_that_are_alone():
    x = np.array([[0.0], [1.0], [3.0]])
    truth = np.array([0, 0, 1])
    expected = [(3 - 1) / 3, (2 - 1) / 2]  # the third point has no other one in its object
    assert objects.silhouette(x, truth, np.zeros(3, int)) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("truth", [[0, 0, -1], [0, 1, 2], [-1, -1, -1], []])
def test_silhouette_without_a_point_to_measure_is_nan(truth):
    x, truth = np.arange(len(truth), dtype=float)[:, None], np.array(truth, int)
    assert np.isnan(objects.silhouette(x, truth, np.zeros(len(truth), int)))


def test_scan_and_neighbourhood():
    beta, x = np.array([0.9, 0.5, 0.8, 0.05]), np.array([[0.0], [0.5], [2.0], [9.0]])
    truth, event = np.array([0, 0, 1, -1]), np.zeros(4, int)
    values = objects.scan(beta, x, truth, event, [0.1, 0.85], [0.2, 0.6])
    assert values[:, 0, 1].tolist() == [1, 1]
    assert values[:, 1, 1].tolist() == [1 / 2, 1]  # the second object is too weak
    assert values[:, 0, 0].tolist() == [1 / 2, 1 / 3]  # the first object is split
    assert objects.best_pair(values) == (0, 1)
    low = objects.one_step_aside(values, (0, 1))
    np.testing.assert_allclose(low, values.min(axis=(1, 2)))
    best = objects.best_setting(
        lambda d: graph.condense(beta, x, 0.1, d)[0], [(0.2,), (0.6,), (5.0,)], truth
    )
    assert best == (0.6,)


def test_counts_add_up_to_the_quality_of_all():
    event = np.repeat(np.arange(6), 10)
    truth = RNG.integers(-1, 3, 60) + 3 * event
    truth[RNG.uniform(size=60) < 0.2] = -1
    found = np.where(RNG.uniform(size=60) < 0.7, truth, RNG.integers(-1, 2, 60) + 2 * event)
    counted = objects.counts(found, truth, event)
    one = graph.match(found, truth, batch=event)
    true, got, both = counted.sum(axis=0)
    assert (both / true, both / got) == pytest.approx((one.efficiency, one.purity))
    assert objects.counted_balance(counted.sum(axis=0)) == pytest.approx(
        objects.balance(one.efficiency, one.purity)
    )
    order = RNG.permutation(60)
    assert np.array_equal(objects.counts(found[order], truth[order], event[order]), counted)
    assert objects.counts(*np.zeros((3, 0), int)).shape == (0, 3)


def test_redrawn_events_have_the_spread_of_a_mean():
    sums = np.column_stack([RNG.normal(2, 3, 400), np.ones(400)])
    mean = objects.redrawn(sums, lambda s: s[..., 0] / s[..., 1], draws=2000)
    assert mean[0] == pytest.approx(sums[:, 0].mean())
    # 2000 draws give the standard deviation to 1/sqrt(4000) = 1.6%; five of these are 8%
    assert mean[1:].std() == pytest.approx(sums[:, 0].std() / 20, rel=0.08)
    low, high = objects.interval(mean)
    assert (high - low) / 2 == pytest.approx(1.96 * sums[:, 0].std() / 20, rel=0.1)
    again = objects.redrawn(sums, lambda s: s[..., 0] / s[..., 1], draws=2000)
    np.testing.assert_array_equal(mean, again)  # the same draws for every system


def test_correlation_from_sums_is_numpys():
    a, b, event = RNG.normal(size=50), RNG.normal(size=50), RNG.integers(0, 5, 50)
    columns = [np.ones(50), a, b, a * a, b * b, a * b]
    sums = objects.per_event(event, columns, 5)
    assert objects.correlation(sums.sum(axis=0)) == pytest.approx(np.corrcoef(a, b)[0, 1])
    np.testing.assert_array_equal(objects.ranks(np.array([3.0, 1.0, 2.0])), [2, 0, 1])


def test_outcome_and_bins_by_hand():
    truth = np.array([0, 0, 0, 1, 1, 2, 2, -1, -1])
    found = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4])
    event = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])
    found[5] = -1
    o = objects.outcome(found, truth, event, 3)
    # 0 takes two of three points of object 0, 2 both of object 1; 3 has half of object 2
    assert o.hit.tolist() == [True, True, False]
    assert o.right.tolist() == [True, False, True, False, False]
    assert o.holds.tolist() == [0, 0, 1, 2, -1]
    assert o.home.tolist() == [0, 0, 0, 1, 1]
    counted = objects.binned(o, np.array([0, 1, 0]), np.array([0, 0, 1]), 2, 2)
    assert counted[0].tolist() == [[1, 1, 2, 1], [1, 1, 1, 1]]
    assert counted[1].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0]]
    quality = objects.efficiency_purity(counted.sum(axis=0))
    np.testing.assert_allclose(quality, [[1 / 2, 1 / 3], [1, 1]])
    heavy = objects.outcome(found, truth, event, 3, np.array([1, 1, 9, 1, 1, 1, 5, 1, 1.0]))
    assert heavy.right.tolist() == [False, True, True, True, False]


def test_redrawn_values_repeat_whole_events():
    values, event = np.array([1.0, 1.0, 5.0]), np.array([0, 0, 1])
    found = objects.redrawn_values(values, event, 2, np.sum, draws=50)
    assert found[0] == 7
    assert set(found[1:]) == {4.0, 7.0, 10.0}  # an event comes twice, or each once
