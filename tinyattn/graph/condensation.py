"""Object condensation, which finds any number of objects in a cloud of points, without a grid.

A network places the points in a space where points of the same object are close together and
different objects are far apart. One point of each object becomes its condensation point, which
predicts the properties of the object. The letters are the same as in the paper, arXiv:2002.03605:

    β_i in [0, 1]                           the condensation strength of point i
    q_i = arctanh² β_i + q_min              its charge
    α_k                                     the condensation point of object k, its point of
                                            highest charge
    V̌_k(x) = |x - x_αk|² q_αk               attracts the points of object k
    V̂_k(x) = max(0, 1 - |x - x_αk|) q_αk    repels all other points closer than 1

Slides K55-K60, KB02.
"""

import math
from typing import NamedTuple

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.ranges import check_range
from tinyattn.graph.segment import segment_sum
from tinyattn.graph.validation import check_batch
from tinyattn.ops.condensation import repulsion

HIGHEST = 1 - 1e-4  # arctanh β has a pole at 1, so above this β the charge is constant
TOGETHER = 2**16  # number of distances in a block, which fits into a cache
PIECE, MOST_KEPT = 2**18, 8  # number of pairs in a block, and largest number of blocks to keep

OR_DIVERGED = ", or look for NaN in the weights of the network after a training that diverged"


class Terms(NamedTuple):
    """The five terms of the loss, each a scalar Tensor, averaged over the events of the batch.

    The symbols are explained in `condensation_loss`.

    Attributes:
        attraction            1/N Σ_j q_j Σ_k M_jk V̌_k(x_j)
        repulsion             1/N Σ_j q_j Σ_k (1 - M_jk) V̂_k(x_j)
        condensation_points   1/K Σ_k (1 - β_αk)
        noise                 1/N_B Σ_i n_i β_i
        properties            Σ_i L_i (1 - n_i) arctanh² β_i / Σ_i (1 - n_i) arctanh² β_i
    """

    attraction: Tensor
    repulsion: Tensor
    condensation_points: Tensor
    noise: Tensor
    properties: Tensor


def condensation_loss(beta, x, truth, property_loss=None, batch=None, q_min=0.1, s_B=1.0, s_C=1.0):
    """Return the object condensation loss, L = L_p + s_C (L_β + L_V).

        L_V = 1/N Σ_j q_j Σ_k (M_jk V̌_k(x_j) + (1 - M_jk) V̂_k(x_j))
        L_β = 1/K Σ_k (1 - β_αk) + s_B 1/N_B Σ_i n_i β_i
        L_p = Σ_i L_i (1 - n_i) arctanh² β_i / Σ_i (1 - n_i) arctanh² β_i

        q_j = arctanh² β_j + q_min                the charge of point j
        V̌_k(x) = |x - x_αk|² q_αk                 attracts the points of object k
        V̂_k(x) = max(0, 1 - |x - x_αk|) q_αk      repels all other points closer than 1

    In these formulas, N, K and N_B count the points, objects and noise points of one event. α_k is
    the point of object k with the highest charge. M_jk is 1 if point j belongs to object k and 0
    otherwise, and n_i is 1 if point i is noise and 0 otherwise. A β above 0.9999 counts as 0.9999
    in arctanh, whose pole is at 1.

    L_p is a weighted mean with the weights w(β) = arctanh² β, so it also gives β a gradient, which
    lowers β for a point that predicts worse than the mean:

        ∂L_p/∂β_i = w'(β_i) (L_i - L_p) / Σ w

    A term without any summands is 0. The time grows with the points × objects of each event, and
    the memory with points + objects.

    Args:
        beta            condensation strength β of each point [N], in [0, 1], for example a sigmoid.
                        Here N counts the points of all events
        x               coordinates of the points in the space where they condense [N, C]
        truth           index of each point's object [N] int, negative for noise. The same number in
                        two events means two different objects
        property_loss   L_i [N], the error of the properties predicted at point i. None: L_p is 0
        batch           index of each point's event [N] int, or None for a single event. The loss is
                        the mean over the events
        q_min           smallest charge, >= 0, which lets points of low β attract and repel too
        s_B             weight of the noise term in L_β
        s_C             weight of L_β + L_V relative to L_p

    Returns:
        a scalar Tensor

    Raises:
        ValueError: an argument does not have the shape above, truth or batch does not consist of
            whole numbers, there are no points, a β is not in [0, 1], or a coordinate is not finite
        ValueError: q_min is negative or not finite, or s_B or s_C is NaN
        TypeError: q_min, s_B or s_C is not a number

    Source: Kieseler 2020 and slide KB02.
    """
    for weight, value in (("s_B", s_B), ("s_C", s_C)):
        if not isinstance(value, np.ndarray | Tensor):
            check_range("condensation_loss", **{weight: value})
    t = _terms("condensation_loss", beta, x, truth, property_loss, batch, q_min)
    return t.properties + s_C * (t.attraction + t.repulsion + t.condensation_points + s_B * t.noise)


def condensation_terms(beta, x, truth, property_loss=None, batch=None, q_min=0.1):
    """Return the five terms of `condensation_loss` without the weights s_B and s_C.

    Args:
        beta            condensation strength β of each point [N], in [0, 1], for example a sigmoid
        x               coordinates of the points in the space where they condense [N, C]
        truth           index of each point's object [N] int, negative for noise. The same number in
                        two events means two different objects
        property_loss   L_i [N], the error of the properties predicted at point i. None: the term
                        `properties` is 0
        batch           index of each point's event [N] int, or None for a single event. The terms
                        are the means over the events
        q_min           smallest charge, >= 0, which lets points of low β attract and repel too

    Returns:
        `Terms`, a named tuple (attraction, repulsion, condensation_points, noise, properties)

    Raises:
        ValueError: an argument does not have the shape above, truth or batch does not consist of
            whole numbers, there are no points, a β is not in [0, 1], or a coordinate is not finite
        ValueError: q_min is negative or not finite
        TypeError: q_min is not a number
    """
    return _terms("condensation_terms", beta, x, truth, property_loss, batch, q_min)


def _terms(name, beta, x, truth, property_loss, batch, q_min):
    """Return `condensation_terms`, with the name of the called function in error messages."""
    beta, x = as_tensor(beta), as_tensor(x)
    property_loss = None if property_loss is None else as_tensor(property_loss)
    truth, events = _check_loss_arguments(name, beta, x, truth, property_loss, batch)
    check_range(name, 0, below=math.inf, q_min=q_min)
    E, event = len(events), np.empty(len(truth), np.intp)
    for e, rows in enumerate(events):
        event[rows] = e
    object_of_hit, event_of_object = _object_ids(truth, event)
    charge = np.square(np.arctanh(np.clip(beta, 0, HIGHEST)))  # [N]
    q = charge + q_min
    alpha = _condensation_points(to_array(q), object_of_hit)
    x_alpha, q_alpha = x[alpha], q[alpha]  # [K, C], [K]
    noise, hits = np.flatnonzero(object_of_hit < 0), np.flatnonzero(object_of_hit >= 0)
    weighed = q * _shares(event, E, q)  # q_j / N
    pairs = _Pairs(to_array(x), to_array(x_alpha), object_of_hit, event_of_object, events)
    nothing = np.sum(beta[:0])  # 0, of the dtype of β
    return Terms(
        _attraction(x, weighed, x_alpha, q_alpha, hits, object_of_hit[hits]),
        repulsion(x, weighed, x_alpha, q_alpha, pairs),
        np.sum((1 - beta[alpha]) * _shares(event_of_object, E, beta)),
        np.sum(beta[noise] * _shares(event[noise], E, beta)),
        nothing
        if property_loss is None
        else _properties(property_loss[hits], charge[hits], event[hits], E),
    )


def _object_ids(truth, event):
    """Return the object of each point (-1 for noise), and the event of each object.

    The objects of all events are numbered together.
    """
    hits = np.flatnonzero(truth >= 0)
    labels, label = np.unique(truth[hits], return_inverse=True)
    names, number = np.unique(event[hits] * len(labels) + label, return_inverse=True)
    object_of_hit = np.full(len(truth), -1)
    object_of_hit[hits] = number
    return object_of_hit, names // max(len(labels), 1)


def _condensation_points(q, object_of_hit):
    """Return the point of highest charge in each object, or the first of several equal ones."""
    order = np.lexsort((np.arange(len(q)), -q))
    order = order[object_of_hit[order] >= 0]
    _, first = np.unique(object_of_hit[order], return_index=True)
    return order[first]


def _shares(event, E, like):
    """Return the weights 1 / (E · n), where n counts the entries of `event` with the same event.

    They turn a sum over the entries into a mean over E events. Their dtype is that of `like`.
    """
    return (1 / (np.bincount(event, minlength=E)[event] * E)).astype(to_array(like).dtype)


def _attraction(x, q, x_alpha, q_alpha, hits, mine):
    away = np.sum(np.square(x[hits] - x_alpha[mine]), axis=1)
    return np.sum(q[hits] * away * q_alpha[mine])


class _Pairs:
    """The pairs of a point and a different object of its event that are less than 1 apart.

    The pairs are yielded in blocks. Few pairs are kept, but many are searched for again each time,
    because 100,000 points and 200 objects may give 20 million pairs. The search uses plain arrays,
    because a pair farther apart than 1 has neither a force nor a gradient.
    """

    def __init__(self, x, x_alpha, object_of_hit, event_of_object, events):
        self.given = x, x_alpha, object_of_hit, event_of_object, events
        self.kept, pieces = None, []
        for piece in self._found():
            pieces.append(piece)
            if len(pieces) > MOST_KEPT:
                return
        self.kept = pieces

    def __iter__(self):
        return self._found() if self.kept is None else iter(self.kept)

    def _found(self):
        points, objects, waiting = [], [], 0
        for rows, k in self._blocks():
            at, which = np.nonzero(self._near(rows, k))
            points.append(rows[at])
            objects.append(k.start + which)
            waiting += len(at)
            if waiting >= PIECE:
                yield np.concatenate(points), np.concatenate(objects)
                points, objects, waiting = [], [], 0
        if waiting:
            yield np.concatenate(points), np.concatenate(objects)

    def _blocks(self):
        """Yield (rows of points, slice of the objects of their event) in blocks of limited size."""
        _, _, _, event_of_object, events = self.given
        first = np.searchsorted(event_of_object, np.arange(len(events) + 1))
        for rows, start, stop in zip(events, first, first[1:], strict=False):
            step = max(1, TOGETHER // max(1, stop - start))
            for i in range(0, len(rows), step):
                yield rows[i : i + step], slice(start, stop)

    def _near(self, rows, k):
        x, x_alpha, object_of_hit, _, _ = self.given
        d2 = sum(np.square(a[:, None] - b) for a, b in zip(x[rows].T, x_alpha[k].T, strict=True))
        return (d2 < 1) & (object_of_hit[rows, None] != np.arange(k.start, k.stop))


def _properties(loss, charge, event, E):
    """Return the mean over E events of Σ L_i ξ_i / Σ ξ_i for losses L_i and charges ξ_i.

    An event in which all charges are 0 counts as 0.
    """
    weight = segment_sum(charge, event, E)
    some = to_array(weight) > 0
    total = segment_sum(loss * charge, event, E)
    return np.mean(np.where(some, total / np.where(some, weight, 1), 0))


def _check_loss_arguments(name, beta, x, truth, property_loss, batch):
    """Return truth as an array, and the rows of each event, after checking all arguments."""
    truth = np.asarray(to_array(truth))
    _check_points(name, beta, x)
    N = len(beta)
    if N == 0:
        raise ValueError(f"{name}: expected at least one point, got none")
    if truth.shape != (N,) or truth.dtype.kind not in "iu":
        floats = truth.shape == (N,) and truth.dtype.kind == "f"
        advice = ". Convert it with .astype(int)" if floats else ""
        raise ValueError(
            f"{name}: expected truth to be {N} whole number{'' if N == 1 else 's'}, the object of "
            f"each point (negative: noise), got {truth.dtype} of shape {truth.shape}{advice}"
        )
    if property_loss is not None and property_loss.shape != (N,):
        raise ValueError(
            f"{name}: expected property_loss [{N}], one for each point, got shape "
            f"{property_loss.shape}"
        )
    values = to_array(beta)
    if np.isnan(values).any():
        raise ValueError(
            f"{name}: expected beta between 0 and 1, got NaN at point "
            f"{np.flatnonzero(np.isnan(values))[0]} of {N}. Look for NaN in the inputs, or in the "
            "weights after a training that diverged"
        )
    _check_unit_interval(name, values)
    _finite(name, "x", to_array(x))
    return truth, _events(name, batch, N)


def _check_unit_interval(name, beta):
    """Raise ValueError unless all β are between 0 and 1."""
    if beta.size and not (beta.min() >= 0 and beta.max() <= 1):
        raise ValueError(
            f"{name}: expected beta between 0 and 1, got values from {beta.min():.3g} to "
            f"{beta.max():.3g}. Did you forget the sigmoid?"
        )


def _check_points(name, beta, x):
    """Raise ValueError unless beta is [N] and x is [N, C]."""
    if beta.ndim != 1 or x.ndim != 2 or len(x) != len(beta):
        advice = ". Pass beta[:, 0]" if beta.ndim == 2 and beta.shape[1] == 1 else ""
        raise ValueError(
            f"{name}: expected beta [N] and x [N, C], got shapes {beta.shape} and {x.shape}{advice}"
        )


def _events(name, batch, N):
    """Return a list with the rows of the points of each event."""
    if batch is None:
        return [np.arange(N)]
    batch = check_batch(name, batch, N, of="event")
    order = np.argsort(batch, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(batch[order])) + 1)


# ---------------------------------------------------------------- from points to objects


def condense(beta, x, t_beta=0.1, t_d=0.8, batch=None):
    """Assign points to objects, starting from the point with the highest β.

    If the β of this point is above t_beta, the point becomes the condensation point of an object,
    to which all points within the distance t_d are assigned. This is repeated with the points that
    have not been assigned yet, until none of them has a β above t_beta. Of several points with the
    same β, the first one is chosen.

    Args:
        beta     condensation strength β of each point [N], in [0, 1]
        x        coordinates of the points in the space where they condense [N, C]
        t_beta   a point starts an object only if its β is above this number
        t_d      largest distance of a point of the object from its condensation point, at least 0
        batch    index of each point's event [N] int, or None for a single event. All points of an
                 object are in the same event

    Returns:
        (found [N], points [K]), arrays of int64. found[i] is the object of point i, from 0 to
        K - 1, or -1 if it belongs to none, and points[k] is the index of the condensation point of
        object k. The objects of all events are numbered together, one event after the other

    Raises:
        ValueError: an argument does not have the shape above, a β is not in [0, 1], a coordinate is
            not finite, or batch does not consist of whole numbers
        ValueError: t_d < 0, or t_beta or t_d is NaN
        TypeError: t_beta or t_d is not a number

    Source: Kieseler 2020 and slide K58.
    """
    beta, x = np.asarray(to_array(beta)), np.asarray(to_array(x))
    _check_points("condense", beta, x)
    beta, x = _finite("condense", "beta", beta), _finite("condense", "x", x)
    _check_unit_interval("condense", beta)
    check_range("condense", 0, t_d=t_d)
    check_range("condense", t_beta=t_beta)
    found, points = np.full(len(beta), -1), []
    for rows in _events("condense", batch, len(beta)):
        free = rows[np.argsort(-beta[rows], kind="stable")]  # these points belong to no object yet
        while len(free) and beta[free[0]] > t_beta:
            near = np.sum(np.square(x[free] - x[free[0]]), axis=1) <= t_d * t_d
            found[free[near]] = len(points)
            points.append(free[0])
            free = free[~near]
    return found, np.array(points, np.intp)


def _finite(name, letter, values):
    """Return the argument `letter`, values of N points, as floats. NaN or infinity is an error."""
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name}: {letter} must consist of real numbers, got {values.dtype}")
    values = values.astype(np.result_type(values.dtype, np.float32))  # 0 - 1 is 255 in uint8
    bad = np.flatnonzero(~np.isfinite(values).all(axis=tuple(range(1, values.ndim))))
    if len(bad):
        raise ValueError(
            f"{name}: expected finite {letter}, got NaN or infinity at {len(bad)} of {len(values)} "
            f"points, first at point {bad[0]}. Remove these points"
            + ("" if letter == "weights" else OR_DIVERGED)
        )
    return values


class Matching(NamedTuple):
    """The result of `match`, the M pairs of an object that was found and a true object.

    Attributes:
        pairs        index of the object that was found (as in `found`) and of the true object (as
                     in `truth`) of each pair [M, 2], in descending order of the IoU
        iou          intersection over union of each pair [M]
        efficiency   fraction of the true objects that are in a pair, or NaN if there are no true
                     objects
        purity       fraction of the objects found that are in a pair, or NaN if no objects were
                     found
        event        index of each pair's event (as in `batch`) [M], or 0 without `batch`
    """

    pairs: np.ndarray
    iou: np.ndarray
    efficiency: float
    purity: float
    event: np.ndarray


def match(found, truth, threshold=0.5, weights=None, batch=None):
    """Match the objects that were found with the true objects, by the overlap of their points.

        IoU = Σ_{i in both} w_i / Σ_{i in either} w_i

    The IoU is the intersection over union of two objects, and w_i is the weight of point i. The
    pair with the highest IoU is matched first, and each object is matched at most once.

    Args:
        found       index of the object to which each point was assigned [N] int, negative for no
                    object, such as the first result of `condense`
        truth       index of each point's true object [N] int, negative for noise
        threshold   a pair matches only if its IoU is above this number
        weights     w_i >= 0 [N], for example the energies of the points, or None for w_i = 1
        batch       index of each point's event [N] int, or None for a single event. The same number
                    in two events means two different objects

    Returns:
        `Matching`, a named tuple (pairs, iou, efficiency, purity, event)

    Raises:
        TypeError: found or truth is the pair that `condense` returns (pass its first element), or
            threshold is not a number
        ValueError: an argument does not have the shape above, found, truth or batch does not
            consist of whole numbers, threshold is NaN, or a weight is negative, NaN or infinite

    Source: slide K59.
    """
    for name, given in (("found", found), ("truth", truth)):
        if isinstance(given, tuple) and any(np.ndim(part) for part in given):
            raise TypeError(
                f"match: expected {name} as an array [N], got a tuple of {len(given)} arrays. "
                f"Unpack both results of condense: found, points = condense(beta, x)"
            )
    found, truth = np.asarray(to_array(found)), np.asarray(to_array(truth))
    kinds = found.dtype.kind + truth.dtype.kind
    if found.shape != truth.shape or found.ndim != 1 or kinds.strip("iu"):
        raise ValueError(
            "match: found and truth must both be whole numbers [N], one for each point, got "
            f"{found.dtype} of shape {found.shape} and {truth.dtype} of shape {truth.shape}"
        )
    w = np.ones(len(found)) if weights is None else np.asarray(to_array(weights))
    if w.shape != found.shape:
        raise ValueError(
            f"match: expected weights of shape {found.shape}, one for each point, got shape "
            f"{w.shape}"
        )
    check_range("match", threshold=threshold)
    w = _finite("match", "weights", w)
    if w.min(initial=0) < 0:
        raise ValueError(
            f"match: expected weights >= 0, got {w.min():.3g} at point {w.argmin()} of {len(w)}"
        )
    event = np.zeros(len(found), np.intp)
    for number, rows in enumerate(_events("match", batch, len(found))):
        event[rows] = number
    (labels, of_found, f), (objects, _, t) = _by_event(found, event), _by_event(truth, event)
    both, pair = np.unique(f * max(len(objects), 1) + t, return_inverse=True)
    # without points, bincount returns integers
    shared = np.bincount(pair, weights=w).astype(np.float64)
    f_of, t_of = both // max(len(objects), 1), both % max(len(objects), 1)
    size_f, size_t = np.bincount(f, weights=w), np.bincount(t, weights=w)
    union = size_f[f_of] + size_t[t_of] - shared
    iou = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    chosen = _highest_first(iou, f_of, t_of, labels < 0, objects < 0, threshold)
    number_f, number_t, M = np.sum(labels >= 0), np.sum(objects >= 0), len(chosen)
    where = of_found[f_of[chosen]]
    return Matching(
        np.stack([labels[f_of[chosen]], objects[t_of[chosen]]], axis=1).astype(np.intp),
        iou[chosen],
        M / number_t if number_t else float("nan"),
        M / number_f if number_f else float("nan"),
        where if batch is None else np.unique(np.asarray(to_array(batch)))[where],
    )


def _highest_first(iou, f_of, t_of, used_f, used_t, threshold):
    """Return the pairs with an IoU above the threshold, the highest first, each object only once.

    Pair p is (f_of[p], t_of[p]). used_f and used_t are True for objects that are not available.
    """
    chosen = []
    for p in np.argsort(-iou, kind="stable"):
        if not iou[p] > threshold:
            break
        if not used_f[f_of[p]] and not used_t[t_of[p]]:
            used_f[f_of[p]] = used_t[t_of[p]] = True
            chosen.append(p)
    return np.array(chosen, np.intp)


def _by_event(labels, event):
    """Return the labels and events of all objects, and the object of each point."""
    kinds, label = np.unique(labels, return_inverse=True)
    each, number = np.unique(event * max(len(kinds), 1) + label, return_inverse=True)
    return kinds[each % max(len(kinds), 1)], each // max(len(kinds), 1), number
