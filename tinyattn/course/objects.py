"""Measure objects that were found in events of points, as lecture 12 does.

The arrays are as in `graph.condense` and `graph.match`: found and truth [N] hold the object of each
point (negative: none), and event [N] holds the event of each point. Read `quality` first, and then
`redrawn`, which measures how much a figure depends on the choice of events.
"""

from typing import NamedTuple

import numpy as np

from tinyattn import graph
from tinyattn.engine.ranges import check_range


def quality(found, truth, weights=None):
    """Return efficiency and purity of the objects found.

        efficiency = true objects that were found / true objects, or 0 if there are none
        purity     = found objects that match a true one / found objects, or 0 if there are none

    A found and a true object match if their intersection over union exceeds 0.5 (`graph.match`).
    Objects are numbered from 0 across all events, so no index occurs in two events.

    Args:
        found     index of the object that each point was assigned to [N] int, negative for none
        truth     index of the object that each point belongs to [N] int, negative for noise
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        [2], efficiency and purity. Weights affect which objects match, but every object counts
        once

    Raises:
        TypeError: found is the whole pair that `graph.condense` returns. Pass its first element
        ValueError: found and truth are not whole numbers [N], or weights are not finite numbers
            >= 0 [N]
    """
    m = graph.match(found, truth, weights=weights)
    return np.nan_to_num([m.efficiency, m.purity])


def balance(efficiency, purity):
    """Return the harmonic mean of efficiency and purity, or 0 if both are 0.

    Args:
        efficiency   efficiency, a number or an array
        purity       purity, a number or an array of the same shape

    Returns:
        2 · efficiency · purity / (efficiency + purity), a number or an array of this shape
    """
    total = np.asarray(efficiency) + np.asarray(purity)
    return 2 * np.multiply(efficiency, purity) / np.where(total > 0, total, 1)


def condensation_points(beta, truth):
    """Return, for each true object, the index of its point with the highest β.

    Args:
        beta    condensation strength of each point [N]
        truth   index of each point's object [N] int, negative for noise. No index occurs in two
                events

    Returns:
        indices of the points [M] int, in the order of the indices of the M objects. Among equal β,
        the first point counts

    Raises:
        ValueError: beta and truth are not both [N]
    """
    beta, truth = np.asarray(beta), np.asarray(truth)
    if beta.ndim != 1 or beta.shape != truth.shape:
        raise ValueError(
            "condensation_points: beta and truth must both be [N], one for each point, got shapes "
            f"{beta.shape} and {truth.shape}"
        )
    order = np.argsort(-beta, kind="stable")
    return first_of_each(order, truth)


def first_of_each(order, truth):
    """Return the first point of each true object in a given order.

    Args:
        order   indices of all points in this order [N] int
        truth   index of each point's object [N] int, negative for noise. No index occurs in two
                events

    Returns:
        the indices of the points [M] int, in the order of the indices of the M objects
    """
    order, truth = np.asarray(order), np.asarray(truth)
    order = order[truth[order] >= 0]
    return order[np.unique(truth[order], return_index=True)[1]]


def silhouette(x, truth, event):
    """Return the mean silhouette, (b - a) / max(a, b), of the points that belong to objects.

    For each point, a is the mean distance to the other points of its object, and b is the mean
    distance to the points of the nearest other object of the event, the one for which this mean is
    smallest. Points that are alone in their object are omitted, and so are events with fewer than
    two objects.

    Args:
        x       positions of the points [N, C]
        truth   index of each point's object [N] int, negative for noise
        event   index of each point's event [N] int

    Returns:
        a number from -1 (mixed) to 1 (separate), or NaN if no point remains
    """
    x, truth, event = np.asarray(x), np.asarray(truth), np.asarray(event)
    values = [np.zeros(0)]
    for e in np.unique(event):
        rows = np.flatnonzero((event == e) & (truth >= 0))
        names, own = np.unique(truth[rows], return_inverse=True)
        if len(names) < 2:
            continue
        d = np.linalg.norm(x[rows, None] - x[rows], axis=-1)
        member = np.eye(len(names))[own]  # [points, objects]
        others = member.sum(axis=0) - member  # how many other points each object has
        mean = np.where(others > 0, d @ member / np.maximum(others, 1), np.nan)
        a = mean[np.arange(len(rows)), own]
        mean[np.arange(len(rows)), own] = np.inf
        b = mean.min(axis=1)
        values.append((b - a) / np.maximum(np.maximum(a, b), 1e-9))
    values = np.concatenate(values)
    values = values[~np.isnan(values)]
    return values.mean() if len(values) else np.nan


# ---------------------------------------------------------------- thresholds


def scan(beta, x, truth, event, t_beta, t_d, weights=None):
    """Return the `quality` of the objects that `graph.condense` finds, for all pairs of thresholds.

    Args:
        beta      condensation strength of each point [N]
        x         positions of the points [N, C]
        truth     index of each point's object [N] int, negative for noise. No index occurs in two
                  events
        event     index of each point's event [N] int
        t_beta    list of thresholds of β, as in `graph.condense`
        t_d       list of distances within which a condensation point claims other points
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        [2, len(t_beta), len(t_d)], the efficiency and the purity of each pair

    Raises:
        ValueError: as in `graph.condense` and `graph.match`
    """
    found = [
        [quality(graph.condense(beta, x, b, d, event)[0], truth, weights) for d in t_d]
        for b in t_beta
    ]
    return np.moveaxis(np.array(found), -1, 0)


def best_pair(values):
    """Return the indices (i, j) of the thresholds (t_beta, t_d) with the highest `balance`.

    Args:
        values   the result of `scan`

    Returns:
        two indices, into t_beta and into t_d. Among equal pairs, the first one counts
    """
    balanced = balance(*values)
    return np.unravel_index(np.argmax(balanced), balanced.shape)


def one_step_aside(values, place):
    """Return the lowest efficiency and the lowest purity near a pair of thresholds.

    The lowest are taken over the pair (i, j) and its neighbours, at most eight, whose two indices
    differ from i and j by at most 1.

    Args:
        values   the result of `scan`
        place    indices (i, j) of the pair, such as the result of `best_pair`

    Returns:
        [2], the lowest efficiency and the lowest purity, which may belong to different pairs
    """
    i, j = place
    return values[:, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2].min(axis=(1, 2))


def best_setting(collect, settings, truth, weights=None):
    """Return the setting for which the objects found by `collect` have the highest `balance`.

    Args:
        collect    function that is called as collect(*setting), and returns the index of the object
                   to which each point is assigned [N] int, negative for none
        settings   list of settings, each a tuple of arguments of `collect`
        truth      index of each point's object [N] int, negative for noise. No index occurs in two
                   events
        weights    weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        one of the settings, the first among equally good ones

    Raises:
        TypeError: as in `quality`
        ValueError: settings is empty, or as in `quality`
    """
    settings = list(settings)
    if not settings:
        raise ValueError("best_setting: settings is empty. Pass at least one tuple of arguments")
    return max(settings, key=lambda s: balance(*quality(collect(*s), truth, weights)))


# ---------------------------------------------------------------- the same figures for other events


def redrawn(sums, statistic, draws=1000, rng=0):
    """Return a statistic of the given events, and of random draws of events (the bootstrap).

    Each draw takes E of the E events at random, with replacement. With the same seed, two systems
    that are measured on the same events get the same draws, so the differences of their results
    show the distribution of the gap between them.

    Args:
        sums        contribution of each event to one or more sums [E, ...]
        statistic   function that receives the sums over the events of each draw [1 + draws, ...]
                    and returns, for example, the ratio of two of them
        draws       number of draws
        rng         seed of the draws

    Returns:
        the result of `statistic` [1 + draws, ...], of which row 0 belongs to the given events

    Raises:
        TypeError: draws is not a whole number
        ValueError: there are no events, or draws is negative
    """
    sums = np.asarray(sums, float)
    if sums.ndim == 0 or len(sums) == 0:
        raise ValueError(
            f"redrawn: sums must be [E, ...] with E >= 1 events, got shape {sums.shape}"
        )
    return statistic(np.tensordot(_times_drawn("redrawn", len(sums), draws, rng), sums, axes=1))


def redrawn_values(values, event, E, statistic, draws=200, rng=0):
    """Return a statistic of values, such as their median, for all events and for random draws.

    The draws are those of `redrawn`. If an event is drawn twice, its values count twice.

    Args:
        values      the values [n]
        event       index of each value's event [n] int, from 0 to E - 1
        E           number of events, including those without a value
        statistic   function that receives an array of values and returns a number
        draws       number of draws
        rng         seed of the draws

    Returns:
        the statistic [1 + draws], of which entry 0 belongs to the given events. It is NaN where
        there are no values

    Raises:
        TypeError: E or draws is not a whole number
        ValueError: E is below 1, draws is negative, values and event are not both [n], or event
            does not consist of whole numbers from 0 to E - 1
    """
    drawn = _times_drawn("redrawn_values", E, draws, rng)
    values, event = np.asarray(values), np.asarray(event)
    whole = event.dtype.kind in "iu" or not event.size
    if event.ndim != 1 or values.shape != event.shape or not whole:
        raise ValueError(
            "redrawn_values: values and event must both be [n], with whole numbers in event, got "
            f"shapes {values.shape} and {event.shape}, and {event.dtype} in event"
        )
    event = event.astype(np.intp)
    if event.size and not 0 <= event.min() <= event.max() < E:
        raise ValueError(
            f"redrawn_values: event must contain indices from 0 to {E - 1} (E={E}), got values "
            f"from {event.min()} to {event.max()}"
        )
    samples = (np.repeat(values, times[event]) for times in drawn)
    return np.array([statistic(v) if len(v) else np.nan for v in samples])


def times_drawn(E, draws=1000, rng=0):
    """Return how often each event occurs in each of several random draws (the bootstrap).

    Each draw takes E of the E events at random, with replacement. Row 0 belongs to the given
    events, so every event occurs once.

    Args:
        E       number of events
        draws   number of draws of E events
        rng     seed of the draws

    Returns:
        how often each of the E events is drawn [1 + draws, E] int. Each row sums to E

    Raises:
        TypeError: E or draws is not a whole number
        ValueError: E is below 1, or draws is negative
    """
    return _times_drawn("times_drawn", E, draws, rng)


def _times_drawn(owner, E, draws, rng):
    check_range(owner, 1, whole=True, E=E)
    check_range(owner, 0, whole=True, draws=draws)
    drawn = np.random.default_rng(rng).multinomial(E, np.full(E, 1 / E), size=draws)
    # np.repeat needs the type of an index, which has 32 bits in a browser
    return np.concatenate([np.ones((1, E)), drawn]).astype(np.intp)


def interval(values):
    """Return the bounds between which the central 95% of the draws lie.

    Args:
        values   the result of `redrawn` with at least one draw [1 + draws, ...]. Row 0 belongs to
                 the given events and is ignored

    Returns:
        [2, ...], the lower and the upper bound, NaN if the result of a draw is NaN

    Raises:
        ValueError: values contain no draw
    """
    if len(values) < 2:
        raise ValueError(
            "interval: values must be [1 + draws, ...] with draws >= 1, got shape "
            f"{np.shape(values)}"
        )
    return np.percentile(values[1:], [2.5, 97.5], axis=0)


def counts(found, truth, event, weights=None):
    """Count the true objects, the found objects and the matches in each event.

    Args:
        found     index of the object that each point was assigned to [N] int, negative for none
        truth     index of the object that each point belongs to [N] int, negative for noise
        event     index of each point's event [N] int, from 0
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        numbers of true objects, found objects and matches [E, 3] int, for the E events from 0 to
        the largest index in `event`

    Raises:
        TypeError: as in `graph.match`
        ValueError: an index in event is negative, or as in `graph.match`
    """
    matched = graph.match(found, truth, weights=weights, batch=event).event
    found, truth, event = np.asarray(found), np.asarray(truth), np.asarray(event)
    if event.min(initial=0) < 0:
        raise ValueError(
            f"counts: expected event >= 0, got {event.min()} at index {event.argmin()}"
        )
    E = event.max(initial=-1) + 1

    def objects(numbers):
        pairs = np.unique(np.stack([event, numbers])[:, numbers >= 0], axis=1)
        return np.bincount(pairs[0], minlength=E)

    return np.stack([objects(truth), objects(found), np.bincount(matched, minlength=E)], axis=1)


def counted_balance(sums):
    """Return the `balance` of efficiency and purity from counts of objects.

    Args:
        sums   sums of `counts` over events [..., 3]

    Returns:
        the balance [...], with 0 where there are no objects
    """
    return 2 * sums[..., 2] / np.maximum(sums[..., 0] + sums[..., 1], 1)


class Outcome(NamedTuple):
    """The comparison of F found objects with M true objects.

    Attributes:
        hit     whether each true object was found [M] bool
        right   whether each found object matches a true one [F] bool
        holds   index of the true object with the largest weight in each found object, where noise
                does not count, or -1 if the found object contains only noise [F] int
        home    index of the event of each found object [F] int
        pairs   indices of the found and the true object of each match [P, 2] int
    """

    hit: np.ndarray
    right: np.ndarray
    holds: np.ndarray
    home: np.ndarray
    pairs: np.ndarray


def outcome(found, truth, event, M, weights=None):
    """Compare the found objects with M true ones.

    A found and a true object match if their intersection over union exceeds 0.5 (`graph.match`).
    Objects are numbered from 0 across all events, so no index occurs in two events.

    Args:
        found     index of the object that each point was assigned to [N] int, negative for none
        truth     index from 0 to M - 1 of each point's object [N] int, negative for noise
        event     index of each point's event [N] int
        M         number of true objects
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        an `Outcome`

    Raises:
        ValueError: M is not above all indices in truth, event is not [N], or as in `graph.match`
        TypeError: found is the pair that `graph.condense` returns
    """
    pairs = graph.match(found, truth, weights=weights).pairs
    found, truth, event = np.asarray(found), np.asarray(truth), np.asarray(event)
    if event.shape != found.shape:
        raise ValueError(
            f"outcome: event must have shape {found.shape}, with the event of each point, got "
            f"shape {event.shape}"
        )
    if truth.max(initial=-1) >= M:
        raise ValueError(
            f"outcome: M must be above all indices in truth, whose largest is {truth.max()}, got "
            f"M={M}"
        )
    F = found.max(initial=-1) + 1
    hit, right = np.zeros(M, bool), np.zeros(F, bool)
    hit[pairs[:, 1]], right[pairs[:, 0]] = True, True
    held, both = np.zeros((F, M)), (found >= 0) & (truth >= 0)
    np.add.at(held, (found[both], truth[both]), 1 if weights is None else np.asarray(weights)[both])
    holds = np.where(held.sum(axis=1) > 0, held.argmax(axis=1) if M else -1, -1)
    home = np.zeros(F, int)
    home[found[found >= 0]] = event[found >= 0]
    return Outcome(hit, right, holds, home, pairs)


def binned(result, group, home, groups, E):
    """Count true, hit, found and right objects for each event and each group of true objects.

    A true object is hit if it was found, and a found object is right if it matches a true one. A
    found object counts in the group and in the event of the true object that has the largest weight
    in it. A found object that contains only noise does not count.

    Args:
        result   an `Outcome`
        group    index of each true object's group, such as its bin in energy [M] int, from 0
        home     index of each true object's event [M] int, from 0
        groups   number of groups
        E        number of events

    Returns:
        [E, groups, 4], the numbers of true, hit, found and right objects, for `efficiency_purity`
    """
    counted = np.zeros((E, groups, 4))
    held = result.holds >= 0
    of = result.holds[held]
    np.add.at(counted[..., 0], (home, group), 1)
    np.add.at(counted[..., 1], (home, group), result.hit)
    np.add.at(counted[..., 2], (home[of], group[of]), 1)
    np.add.at(counted[..., 3], (home[of], group[of]), result.right[held])
    return counted


def efficiency_purity(sums):
    """Return efficiency and purity from counts of objects.

    Args:
        sums   sums of `binned` over events [..., 4]

    Returns:
        [..., 2], efficiency and purity, with 0 where there are no true or no found objects
    """
    return sums[..., 1::2] / np.maximum(sums[..., 0::2], 1)


def per_event(event, columns, E):
    """Sum each column over the points of each event.

    Args:
        event     index of each point's event [N] int, from 0 to E - 1
        columns   list of C arrays [N] with a value for each point
        E         number of events

    Returns:
        the sums [E, C]
    """
    return np.stack([np.bincount(event, weights=c, minlength=E) for c in columns], axis=1)


def ranks(values):
    """Return the rank of each value, 0 for the smallest. Equal values keep their order.

    Args:
        values   numbers [n]

    Returns:
        the ranks [n] float
    """
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)


def correlation(sums):
    """Return Pearson's correlation of two quantities a and b from their sums.

    Args:
        sums   sums of (1, a, b, a², b², ab) over points [..., 6], such as sums of `per_event`

    Returns:
        the correlations [...], from -1 to 1, or NaN if a or b is the same for all points
    """
    n, a, b, aa, bb, ab = np.moveaxis(np.asarray(sums, float), -1, 0)
    spreads = n * aa - a * a, n * bb - b * b  # n² times the variances
    same = (spreads[0] <= 1e-12 * n * aa) | (spreads[1] <= 1e-12 * n * bb)  # 0 except for rounding
    return np.where(same, np.nan, n * ab - a * b) / np.sqrt(
        np.where(same, 1, spreads[0] * spreads[1])
    )
