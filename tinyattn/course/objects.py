"""Measure objects that were found in events of points, as lecture 12 does.

The arrays are as in `graph.condense` and `graph.match`: found and truth [N] hold the object of each
point (negative: none), and event [N] holds the event of each point. Read `quality` first, and then
`redrawn`, which measures how much a figure depends on the choice of events.
"""

from typing import NamedTuple

import numpy as np

from tinyattn import graph


def quality(found, truth, weights=None):
    """Return efficiency and purity of the objects found, with 0 where they are undefined.

        efficiency = true objects that were found / true objects
        purity     = found objects that match a true one / found objects

    A found and a true object match if their intersection over union exceeds 0.5 (`graph.match`).

    Objects are numbered from 0 across all events, so no number occurs in two events.

    Args:
        found     index of the object that each point was assigned to [N] int, negative for none
        truth     index of the object that each point belongs to [N] int, negative for noise
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        [2], efficiency and purity. Weights enter the overlaps, not the counts of objects

    Raises:
        ValueError: found and truth are not whole numbers [N], or weights have another shape
    """
    m = graph.match(found, truth, weights=weights)
    return np.nan_to_num([m.efficiency, m.purity])


def balance(efficiency, purity):
    """Return the harmonic mean of efficiency and purity, or 0 if both are 0.

    Args:
        efficiency   efficiency, a number or an array
        purity       purity, a number or an array of the same shape
    """
    total = np.asarray(efficiency) + np.asarray(purity)
    return 2 * np.multiply(efficiency, purity) / np.where(total > 0, total, 1)


def condensation_points(beta, truth):
    """Return, for each true object, the index of its point with the highest β.

    Args:
        beta    condensation strength of each point [N]
        truth   index of each point's object [N] int, negative for noise, across all events

    Returns:
        [M] int, in the order of the indices of the M objects. Among equal β, the first point counts
    """
    order = np.argsort(-np.asarray(beta), kind="stable")
    return first_of_each(order, truth)


def first_of_each(order, truth):
    """Return the first point of each true object in a given order.

    Args:
        order   indices of all points in this order [N] int
        truth   index of each point's object [N] int, negative for noise, across all events

    Returns:
        the indices of the points [M] int, in the order of the indices of the M objects
    """
    order = order[truth[order] >= 0]
    return order[np.unique(truth[order], return_index=True)[1]]


def silhouette(x, truth, event):
    """Return the mean silhouette, (b - a) / max(a, b), of the points that belong to objects.

    For each point, a is the mean distance to the other points of its object, and b is the mean
    distance to the points of another object of the event, namely the one for which this mean is
    smallest. Points that are alone in their object are omitted, and so are events with fewer than
    two objects.

    Args:
        x       positions of the points [N, C]
        truth   object of each point [N] int, negative for noise
        event   event of each point [N] int

    Returns:
        a number from -1 (mixed) to 1 (separate), or NaN if no point remains
    """
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
    """Return efficiency and purity for all pairs of thresholds.

    Args:
        beta      condensation strength of each point [N]
        x         positions of the points [N, C]
        truth     index of each point's object [N] int, negative for noise, across all events
        event     event of each point [N] int
        t_beta    list of thresholds of β, as in `graph.condense`
        t_d       list of distances within which a condensation point claims others
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        [2, len(t_beta), len(t_d)], the efficiency and the purity of each pair
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
    """
    balanced = balance(*values)
    return np.unravel_index(np.argmax(balanced), balanced.shape)


def one_step_aside(values, place):
    """Return the lowest efficiency and the lowest purity within one step of a pair of thresholds.

    Args:
        values   the result of `scan`
        place    indices (i, j) of the pair

    Returns:
        [2], efficiency and purity, which may belong to different pairs
    """
    i, j = place
    return values[:, max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2].min(axis=(1, 2))


def best_setting(collect, settings, truth, weights=None):
    """Return the setting for which collect(*setting) has the highest `balance`.

    Args:
        collect    function that is called with the numbers of a setting, and returns the index of
                   the object to which each point is assigned [N], as `quality` expects it
        settings   list of tuples of numbers
        truth      index of each point's object [N] int, negative for noise, across all events
        weights    weight of each point [N], such as its energy. If None, all weights are 1
    """
    return max(settings, key=lambda s: balance(*quality(collect(*s), truth, weights)))


# ---------------------------------------------------------------- the same figures for other events


def redrawn(sums, statistic, draws=1000, rng=0):
    """Return a statistic of the given events, and of random draws of events (the bootstrap).

    Each draw takes E of the E events at random, with replacement. Two systems that are measured on
    the same events get the same draws, so the differences of their results show the distribution of
    the gap between them.

    Args:
        sums        contribution of each event to some sums [E, ...]
        statistic   function of the sums [1 + draws, ...], for example a ratio of two of them
        draws       number of draws
        rng         seed of the draws

    Returns:
        the statistic [1 + draws, ...], of which row 0 belongs to the given events
    """
    drawn = times_drawn(len(sums), draws, rng)
    return statistic(np.tensordot(drawn, np.asarray(sums, float), axes=1))


def redrawn_values(values, event, E, statistic, draws=200, rng=0):
    """Return a statistic of values, such as their median, for all events and for random draws.

    The draws are those of `redrawn`. If an event is drawn twice, its values count twice.

    Args:
        values      the values [n]
        event       event of each value [n] int, from 0 to E - 1
        E           number of events, including those without a value
        statistic   function of an array of values
        draws       number of draws. The result is NaN for a draw without values
        rng         seed of the draws

    Returns:
        the statistic [1 + draws], of which entry 0 belongs to the given events
    """
    drawn = times_drawn(E, draws, rng)
    samples = (np.repeat(values, times[event]) for times in drawn)
    return np.array([statistic(v) if len(v) else np.nan for v in samples])


def times_drawn(E, draws=1000, rng=0):
    """Return how often each event occurs in each of several random draws (the bootstrap).

    Each draw takes E of the E events at random, with replacement. Row 0 belongs to the given
    events, so every event occurs once.

    Args:
        E       number of events
        draws   number of draws
        rng     seed of the draws

    Returns:
        how often each of the E events is drawn [1 + draws, E] int
    """
    drawn = np.random.default_rng(rng).multinomial(E, np.full(E, 1 / E), size=draws)
    # np.repeat needs the type of an index, which has 32 bits in a browser
    return np.concatenate([np.ones((1, E)), drawn]).astype(np.intp)


def interval(values):
    """Return the bounds of the central 95% of the draws.

    Args:
        values   the result of `redrawn`, whose row 0 belongs to the given events and is omitted

    Returns:
        [2, ...], the lower and the upper bound, NaN if the result of a draw is NaN
    """
    return np.percentile(values[1:], [2.5, 97.5], axis=0)


def counts(found, truth, event, weights=None):
    """Count the true objects, the found objects and the matches in each event.

    Args:
        found     index of the object that each point was assigned to [N] int, negative for none
        truth     index of the object that each point belongs to [N] int, negative for noise
        event     event of each point [N] int, in ascending order
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        numbers of true objects, found objects and matches [E, 3] int, for the E = event[-1] + 1
        events up to the last one that has a point
    """

    def objects(numbers):
        pairs = np.unique(np.stack([event, numbers])[:, numbers >= 0], axis=1)
        return np.bincount(pairs[0], minlength=event[-1] + 1)

    matched = graph.match(found, truth, weights=weights, batch=event).event
    return np.stack(
        [objects(truth), objects(found), np.bincount(matched, minlength=event[-1] + 1)], axis=1
    )


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
        holds   true object with the largest weight in each found object, where noise does not
                count, or -1 if the found object contains only noise [F] int
        home    event of each found object [F] int
        pairs   found and true object of each match [P, 2] int
    """

    hit: np.ndarray
    right: np.ndarray
    holds: np.ndarray
    home: np.ndarray
    pairs: np.ndarray


def outcome(found, truth, event, M, weights=None):
    """Compare the found objects with M true ones, which `graph.match` pairs (IoU above 0.5).

    Objects are numbered from 0 across all events, so no number occurs in two events.

    Args:
        found     index of the object that each point was assigned to [N] int, negative for none
        truth     index from 0 to M - 1 of each point's object [N] int, negative for noise
        event     event of each point [N] int
        M         number of true objects
        weights   weight of each point [N], such as its energy. If None, all weights are 1

    Returns:
        an `Outcome`
    """
    pairs, F = graph.match(found, truth, weights=weights).pairs, found.max(initial=-1) + 1
    hit, right = np.zeros(M, bool), np.zeros(F, bool)
    hit[pairs[:, 1]], right[pairs[:, 0]] = True, True
    held, both = np.zeros((F, M)), (found >= 0) & (truth >= 0)
    np.add.at(held, (found[both], truth[both]), 1 if weights is None else weights[both])
    holds = np.where(held.sum(axis=1) > 0, held.argmax(axis=1) if M else -1, -1)
    home = np.zeros(F, int)
    home[found[found >= 0]] = event[found >= 0]
    return Outcome(hit, right, holds, home, pairs)


def binned(result, group, home, groups, E):
    """Count true, hit, found and right objects for each event and each group of true objects.

    A true object is hit if it was found, and a found object is right if it matches. A found object
    counts in the group of the true object that has the largest weight in it. An object that
    contains only noise counts in no group. See `efficiency_purity`.

    Args:
        result   an `Outcome`
        group    group of each true object [M] int
        home     event of each true object [M] int
        groups   number of groups
        E        number of events

    Returns:
        [E, groups, 4], the numbers of true, hit, found and right objects
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
    """Return efficiency and purity [..., 2], with 0 where there is nothing to count.

    Args:
        sums   sums of `binned` over events [..., 4]
    """
    return sums[..., 1::2] / np.maximum(sums[..., 0::2], 1)


def per_event(event, columns, E):
    """Sum each column over the points of each event.

    Args:
        event     event of each point [N] int, from 0 to E - 1
        columns   list of C arrays [N]
        E         number of events

    Returns:
        the sums [E, C]
    """
    return np.stack([np.bincount(event, weights=c, minlength=E) for c in columns], axis=1)


def ranks(values):
    """Return the rank of each value, from 0. Equal values are ranked in the order given.

    Args:
        values   numbers [n]

    Returns:
        the ranks [n] float
    """
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float)


def correlation(sums):
    """Return Pearson's correlation of a and b.

    Args:
        sums   sums of (1, a, b, a², b², ab) over points [..., 6]

    Returns:
        the correlations [...], from -1 to 1, or NaN if a or b is the same for all points
    """
    n, a, b, aa, bb, ab = np.moveaxis(np.asarray(sums, float), -1, 0)
    return (n * ab - a * b) / np.sqrt((n * aa - a * a) * (n * bb - b * b))
