"""Explain why a gradient is wrong by comparing it with the results of typical mistakes.

A is the Jacobian that the engine computes and N the numeric Jacobian, both [outputs, elements of
the input]. Each hypothesis consists of a sentence, and of the wrong Jacobian that this mistake
would give. If the Jacobian of a hypothesis equals A, it is a likely cause.
"""

from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from tinyattn.check.report import at, number


@dataclass(frozen=True)
class Case:
    """The known facts about a wrong Jacobian.

    A Jacobian is compared whole or, if it is large, by random projections of its rows.

    Attributes:
        name        name of the input
        x           value of the input
        y           all results as one vector, or None if projections were compared
        shape       shape of the result, or None if there are several results
        others      {name: value} of the other inputs
        jacobians   {name: numeric Jacobian} of the other inputs
        wrong       True for derivatives that differ [outputs, elements of x], or None if
                    projections were compared
        kinks       {index of an element of x: (left slope, right slope)} where these differ
    """

    name: str
    x: np.ndarray
    y: np.ndarray | None
    shape: tuple | None
    others: dict
    jacobians: dict
    wrong: np.ndarray | None = None
    kinks: dict = field(default_factory=dict)


def causes_of(case, A, N):
    """Return sentences about possible causes, the likeliest first.

    Args:
        case   the facts, a `Case`
        A      Jacobian that the engine computes [outputs, elements of the input]
        N      numeric Jacobian of the same shape
    """
    if not np.isfinite(N).all():
        return [
            "the function itself is not finite around this point (log or sqrt of a negative "
            "number, a division by zero)"
        ]
    if not np.isfinite(A).all():
        return [
            "the gradient is nan or inf where the function is smooth: somewhere 0 · inf or "
            "0 / 0, as from sqrt or log at 0, even if np.where selects other values there"
        ]
    if case.kinks and all(j in case.kinks for j in np.flatnonzero(case.wrong.any(axis=0))):
        return [_kink(case, A)]
    hypotheses = [_scaled]
    if case.wrong is not None:
        hypotheses += [_moved, _mixed_up, _ratio, _summed, _part]
    for hypothesis in hypotheses:
        found = hypothesis(case, A, N)
        if found:
            return [found]
    return [_where(case)] if case.wrong is not None else []


def _same(A, B):
    """Return whether A and B agree within the error of differences and are not both zero."""
    size = max(np.abs(A).max(initial=0), np.abs(B).max(initial=0))
    return size > 0 and np.abs(A - B).max(initial=0) <= 1e-4 * size


def _kink(case, A):
    j, (left, right) = next(iter(case.kinks.items()))
    i = int(np.argmax(np.abs(left - right)))
    low, high = sorted((left[i], right[i]))
    x = np.unravel_index(j, case.x.shape)
    text = (
        f"only where the function has a kink (a tie, abs at 0, the limit of a clip), as at "
        f"{at(case.name, x)} = {number(case.x[x])}: slope {number(left[i])} to the left, "
        f"{number(right[i])} to the right"
    )
    if low - 1e-3 <= A[i, j] <= high + 1e-3:
        return f"{text}. Every value between is allowed, so check at a point next to it"
    return f"{text}; {number(A[i, j])} is not between them"


# ---------------------------------------------------------------- everything times a factor


def _scaled(case, A, N):
    if not A.any():
        return (
            "no gradient arrives: the graph is cut (.data, .numpy(), .detach(), no_grad, "
            "writing into an array), or a rule returns zeros"
        )
    factor = (A * N).sum() / (N * N).sum() if N.any() else 0
    if abs(factor - 1) < 1e-4 or not _same(A, factor * N):
        return None
    if abs(factor + 1) < 1e-4:
        return "the sign is wrong"
    sign = "the sign is wrong, and " if factor < 0 else ""
    return f"{sign}everything is off by the factor {_factor(case, abs(factor))}"


def _factor(case, c):
    """Describe the factor c and guess its origin: the length of an axis, an input, ln 2, …"""
    reasons = []
    for name, v in case.others.items():
        if isinstance(v, int | float | np.ndarray | np.generic) and np.size(v) == 1:
            v = abs(float(np.reshape(v, ())))
            reasons += [(v, f"the value of {name}"), (1 / v if v else 0, f"1 / {name}")]
    for axis, n in enumerate(case.x.shape):
        of = f"the length of axis {axis} of {case.name}"
        reasons += [
            (n, of),
            (n and 1 / n, f"1 / {of}: a mean instead of a sum?"),
            (n**0.5, f"the root of {of}"),
        ]
    if case.x.size != 1:
        reasons += [
            (case.x.size, f"the number of elements of {case.name}"),
            (1 / case.x.size, f"1 / the number of elements of {case.name}"),
        ]
    for axis, n in enumerate(case.shape or ()):
        reasons += [
            (n, f"the length of axis {axis} of the result"),
            (n and 1 / n, f"1 / the length of axis {axis} of the result"),
        ]
    reasons += [
        (np.log(2), "ln 2"),
        (1 / np.log(2), "1 / ln 2"),
        (np.log(10), "ln 10"),
        (1 / np.log(10), "1 / ln 10"),
        (np.pi, "π"),
        (1 / np.pi, "1 / π"),
    ]
    fraction = next(
        (
            f"{p}/{q}" if q > 1 else f"{p}"
            for q in range(1, 13)
            for p in range(1, 65)
            if abs(c * q - p) < 1e-4 * p
        ),
        number(c),
    )
    found = [why for v, why in reasons if v not in (0, 1) and abs(c - v) < 1e-4 * v]
    return f"{fraction} ({', or '.join(found[:2])})" if found else fraction


# ---------------------------------------------------------------- the right numbers elsewhere


def _moved(case, A, N):
    """Find the right numbers at wrong positions: transposed, reversed, shifted."""
    n_out, n_in = N.shape
    x_shape, name = case.x.shape, case.name
    inner = N.reshape(n_out, *x_shape)
    for order in permutations(range(len(x_shape))):
        if len(order) > 4 or tuple(x_shape[i] for i in order) != x_shape or _sorted(order):
            continue
        if _same(A, np.transpose(inner, (0, *(i + 1 for i in order))).reshape(N.shape)):
            return f"the axes of the gradient are in the order {order}: a transpose is missing"
    for axis in range(len(x_shape)):
        if _same(A, np.flip(inner, axis + 1).reshape(N.shape)):
            return f"the gradient is reversed along axis {axis} of {name}"
        if any(_same(A, s.reshape(N.shape)) for s in _shifts(inner, axis + 1)):
            return f"the gradient is shifted by one along axis {axis} of {name}"
    for order in permutations(range(len(case.shape or ()))):
        if len(order) > 4 or tuple(case.shape[i] for i in order) != case.shape or _sorted(order):
            continue
        outer = N.reshape(*case.shape, n_in)
        if _same(A, np.transpose(outer, (*order, len(order))).reshape(N.shape)):
            return f"the axes of g are used in the order {order}: a transpose is missing"
    if n_out == n_in and _same(A, N.T):
        return (
            "the Jacobian is transposed: the rule applies the function itself to g, but a "
            "gradient goes backwards (Jᵀ g)"
        )
    return None


def _shifts(x, axis):
    """Shift x by one along an axis in both directions, with and without wrapping around."""
    for shift, edge in ((1, 0), (-1, -1)):
        rolled = np.roll(x, shift, axis)
        yield rolled
        lost = np.moveaxis(rolled.copy(), axis, 0)
        lost[edge] = 0
        yield np.moveaxis(lost, 0, axis)


def _sorted(order):
    return list(order) == sorted(order)


def _mixed_up(case, A, N):
    """Find the gradient of another input, or the sum with the gradient of another input."""
    for other, M in case.jacobians.items():
        if M.shape != N.shape:
            continue
        for sign, word in ((1, ""), (-1, "minus ")):
            if _same(A, sign * M):
                return f"this is {word}the gradient of {other}: rules in the wrong order?"
            if _same(A, N + sign * M):
                return (
                    f"{word}the gradient of {other} is added: does a rule change g in place "
                    f"(g += …)?"
                )
    return None


# ---------------------------------------------------------------- a factor that varies


def _ratio(case, A, N):
    """Find A = N · v or N · v / w, where v and w are the input, the result or another input."""
    known = {case.name: np.broadcast_to(case.x.reshape(1, -1), N.shape)}
    if case.y is not None:
        known["the result"] = np.broadcast_to(case.y.reshape(-1, 1), N.shape)
    for name, v in case.others.items():
        v = np.asarray(v)
        if v.dtype.kind not in "fiu" or v.size <= 1:
            continue
        if v.shape == case.x.shape:
            known[name] = np.broadcast_to(v.reshape(1, -1), N.shape)
        elif case.shape is not None and v.shape == case.shape:
            known[name] = np.broadcast_to(v.reshape(-1, 1), N.shape)
    for name, v in known.items():
        if _same(A, N * v):
            return f"there is an additional factor {name}"
        if _same(A * v, N):
            return f"the factor {name} is missing"
    for name, v in known.items():
        for other, w in known.items():
            if name != other and _same(A * w, N * v):
                return f"{name} was used instead of {other}"
    return None


# ---------------------------------------------------------------- sums and parts


def _summed(case, A, N):
    """Find a sum or mean over an axis that should have remained."""
    inner = N.reshape(len(N), *case.x.shape)
    for axis, n in enumerate(case.x.shape):
        if n < 2:
            continue
        total = inner.sum(axis + 1, keepdims=True)
        for wrong, word in ((total, "summed"), (total / n, "averaged")):
            if _same(A, np.broadcast_to(wrong, inner.shape).reshape(N.shape)):
                return f"the gradient is {word} over axis {axis} of {case.name}, which is wrong"
    return None


def _part(case, A, N):
    """Find a gradient that is right where it is not zero, which means that a part is missing."""
    lost = case.wrong & (A == 0)
    if not np.array_equal(lost, case.wrong):
        return None
    if case.shape and case.shape != case.x.shape:
        taken = (~lost).reshape(*case.shape, -1)
        for axis, n in enumerate(case.shape):
            others = tuple(i for i in range(taken.ndim) if i != axis)
            arrives = np.flatnonzero((taken | (N.reshape(taken.shape) == 0)).all(axis=others))
            if 0 < len(arrives) < n and lost.reshape(taken.shape).any():
                return (
                    f"only the results with index {', '.join(map(str, arrives))} on axis "
                    f"{axis} send a gradient back to {case.name}: is the sum over a broadcast "
                    f"axis missing?"
                )
    return f"part of the gradient does not arrive (it is 0): {_where(case)}"


def _where(case):
    """Describe the affected elements of the input if they follow a pattern."""
    elements = case.wrong.any(axis=0).reshape(case.x.shape)
    if elements.all():
        return f"all elements of {case.name} are affected"
    values, counts = np.unique(case.x, return_counts=True)
    if np.isin(case.x[elements], values[counts > 1]).all():
        return f"only elements of {case.name} that are equal to another one (ties) are affected"
    if (case.x[elements] == 0).all():
        return f"only zeros in {case.name} are affected"
    for axis in range(case.x.ndim):
        others = tuple(i for i in range(case.x.ndim) if i != axis)
        hit = np.flatnonzero(elements.any(axis=others))
        if len(hit) < case.x.shape[axis] and elements.take(hit, axis).all():
            return (
                f"only index {', '.join(map(str, hit))} on axis {axis} of {case.name} is affected"
            )
    return f"{elements.sum()} of {elements.size} elements of {case.name} are affected"
