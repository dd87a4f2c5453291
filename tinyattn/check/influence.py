"""Find out which inputs influence which results: causality, padding, isolated members of a batch.

Every position of the input is changed in turn, and the gradient of every position of the result is
computed. The dependencies form a table, which is compared with the allowed ones.
"""

from copy import deepcopy
from inspect import signature

import numpy as np

from tinyattn.check.report import Report, check_callable, check_floating, name_of, one_result
from tinyattn.check.symmetry import ROUNDINGS
from tinyattn.engine.autograd import Tensor, backward_pass, no_grad
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range


def causal(f, x, axis=None, rng=0):
    """Check that each position depends only on itself and on earlier positions.

    Args:
        f      module or function of x, whose result has the T positions on the same axis as x. If
               there are several results, check one of them: lambda x: f(x)[0]. A module is checked
               in float64 and in its current mode, so call .eval() first if it has dropout
        x      numbers [B, T, D], integer tokens [B, T], or an array of any shape with the `axis`
        axis   axis of the positions. If None, the last axis of tokens, and the second to last axis
               of numbers
        rng    seed or numpy.random.Generator for the random numbers that replace those of x

    Returns:
        a `Report`

    Raises:
        TypeError: f is not a function or does not return one array of floating-point numbers, or
            axis is not a whole number
        ValueError: x does not have the axis with at least 2 positions, or has fewer than 2
            different tokens
        ValueError: f is not deterministic, or its result has a different number of positions
    """
    check_callable("causal", f)
    x = _array(x)
    check_range("causal", whole=True, axis=axis, optional=("axis",))
    least = 1 if x.dtype.kind in "iu" else 2
    if x.ndim < least if axis is None else not -x.ndim <= axis < x.ndim:
        raise ValueError(
            "causal: expected numbers [B, T, D] or integer tokens [B, T] as x, or an axis= that x "
            f"has, got x of shape {x.shape} and axis={axis}"
        )
    axis = (x.ndim - 1 if x.dtype.kind in "iu" else x.ndim - 2) if axis is None else axis % x.ndim
    places = np.arange(x.shape[axis])
    found = _influence("causal", f, x, axis, places, axis, places, rng)
    leaks = found.seen & (places > places[:, None])  # [to, from]
    title, T = f"causal: {name_of(f)}", len(places)
    if not leaks.any():
        return Report(True, f"{title}: yes ({T} positions, none sees a later one)", 0.0, T * T)
    lines = _lines(leaks, found.size, "position", "sees the later")
    causes = _why_not_causal(found.seen, leaks, found.size)
    return _no(
        title,
        f"{leaks.any(axis=1).sum()} of {T} positions see the future",
        lines,
        causes,
        found.size[leaks].max(),
        T * T,
    )


def isolated(f, x, batch=None, rng=0):
    """Check that the result of each member of a batch depends on this member only.

    A module is checked in float64 and in its current mode, so batch norm in training mode fails the
    check.

    Args:
        f       module or function of x, whose result has the members on axis 0
        x       numbers or integer tokens, with the members of the batch on axis 0
        batch   for graphs and point clouds: [N], the number of the member to which each row of x
                belongs. f(x) then has a row for each row of x, or a row for each member. If None,
                each row is a member of its own
        rng     seed or numpy.random.Generator for the random numbers that replace those of x

    Returns:
        a `Report`

    Raises:
        TypeError: f is not a function or does not return one array of floating-point numbers
        ValueError: x is a single number, has fewer than 2 members or fewer than 2 different tokens,
            or batch is not [N]
        ValueError: f is not deterministic, or its result has a different number of rows
    """
    check_callable("isolated", f)
    x = _array(x)
    if x.ndim == 0:
        raise ValueError("isolated: x must have the members of a batch on axis 0, got one number")
    batch = np.arange(len(x)) if batch is None else np.asarray(batch)
    if batch.shape != x.shape[:1]:
        raise ValueError(
            f"isolated: batch must be [N], with the member of each of the N = {len(x)} rows of x, "
            f"got shape {batch.shape}"
        )
    found = _influence("isolated", f, x, 0, batch, 0, None, rng)
    B = len(found.seen)
    leaks = found.seen & ~np.eye(B, dtype=bool)
    title = f"isolated: {name_of(f)}"
    if not leaks.any():
        return Report(True, f"{title}: yes ({B} members, none sees another)", 0.0, B * B)
    lines = _lines(leaks, found.size, "member", "sees")
    causes = []
    if found.seen.all():
        causes.append(
            "every member sees every other one: a mean, maximum, softmax or norm over "
            "axis 0, or batch norm in training mode"
        )
    elif (leaks.sum(axis=1) <= 1).all() or not found.seen.diagonal().all():
        causes.append(
            "axes of the batch and of something else were mixed up: a reshape without "
            "the transpose before it, or the number of members (or of rows) taken for "
            "another number"
        )
    return _no(
        title,
        f"{leaks.any(axis=1).sum()} of {B} members see others",
        lines,
        causes,
        found.size[leaks].max(),
        B * B,
    )


def padding(f, x, rng=0, times=3):
    """Check that padding does not change the result of a sequence.

    Each row is cut to a random length, padded with arbitrary numbers, and compared with the
    unpadded row, position by position or, if f pools, as a whole. In addition, the gradient of the
    result with respect to the padding must be 0.

    Args:
        f       module or function of (x, keep), where keep is bool [B, T], True for positions that
                are not padding. A module is checked in float64 and in its current mode, so call
                .eval() first if it has dropout. The result has B rows
        x       numbers or integer tokens [B, T, ...] without padding
        rng     seed or numpy.random.Generator for lengths and padding
        times   number of trials

    Returns:
        a `Report`

    Raises:
        TypeError: f is not a function of (x, keep) or does not return one array of floating-point
            numbers, or times is not a whole number
        ValueError: x is not [B, T, ...] with B >= 1 and T >= 2, or has fewer than 2 different
            tokens
        ValueError: times < 1, or the result does not have B rows
    """
    check_callable("padding", f)
    check_range("padding", 1, whole=True, times=times)
    _check_takes_keep(f)
    x, rng, g = _array(x), generator(rng), _precise("padding", f)
    if x.ndim < 2 or x.shape[1] < 2 or not len(x):
        raise ValueError(
            f"padding: x must be [B, T, ...] with B >= 1 and T >= 2, got shape {x.shape}"
        )
    T, title, leak, rows = x.shape[1], f"padding: {name_of(f)}", 0.0, []
    for _ in range(times):
        lengths = rng.integers(1, T + 1, size=len(x))
        lengths[rng.integers(len(x))] = rng.integers(1, T)  # at least one sequence is padded
        keep = np.arange(T) < lengths[:, None]
        padded = np.where(
            keep.reshape(keep.shape + (1,) * (x.ndim - 2)), x, _other("padding", x, rng)
        )
        together = _value(lambda v, keep=keep: g(v, keep), padded)
        if together.shape[:1] != x.shape[:1]:
            raise ValueError(
                f"padding: the result must have a row for each of the {len(x)} rows of x, got "
                f"shape {together.shape}"
            )
        check_floating("padding", together)
        rows += [_Row(g, x, together, b, int(n)) for b, n in enumerate(lengths)]
        leak = max(leak, _reaches_padding(g, padded, keep, any(r.by_position for r in rows)))
    wrong = [row for row in rows if row.wrong.any()]
    lines = [row.text(T) for row in wrong[:6]]
    if leak > ROUNDINGS * np.finfo(float).eps:
        lines.append(f"  a gradient arrives at the padding, {leak:.1e} of the largest one")
    compared = sum(row.wrong.size for row in rows)
    if not lines:
        text = f"{title}: yes ({times} paddings of {len(x)} rows, {compared} numbers compared)"
        return Report(True, text, 0.0, compared)
    worst = max((row.difference.max() for row in wrong), default=0.0)
    causes = list(dict.fromkeys(c for row in wrong for c in row.causes(T)))
    return _no(
        title,
        f"largest difference {worst:.1e} of the largest value",
        lines,
        causes,
        worst or leak,
        compared,
    )


class _Row:
    """A row of a batch with and without padding. Its first n positions are kept."""

    def __init__(self, g, x, together, b, n):
        self.b, self.n = b, n
        self.alone = _value(lambda v: g(v, np.ones((1, n), bool)), x[b : b + 1, :n])[0]
        self.by_position = self.alone.shape != together[b].shape
        self.came = together[b][:n] if self.by_position else together[b]
        size = max(np.abs(self.alone).max(initial=0), 1e-300)
        self.difference = np.nan_to_num(np.abs(self.came - self.alone), nan=np.inf) / size
        self.wrong = self.difference > ROUNDINGS * np.finfo(self.alone.dtype).eps

    def text(self, T):
        where = f"{int(self.wrong.sum())} of {self.wrong.size} numbers differ from"
        if self.by_position or self.wrong.shape[:1] == (T,):
            places = np.flatnonzero(self.wrong.reshape(len(self.wrong), -1).any(axis=1))
            where = f"positions {_list(places)} differ from those of"
        return f"  row {self.b}, {self.n} of {T} kept: {where} the row alone"

    def causes(self, T):
        came, alone = self.came, self.alone
        if not self.by_position and np.allclose(came * T, alone * self.n, rtol=1e-6, atol=0):
            return ["a mean was divided by the padded length instead of the number of elements"]
        if self.difference.max() < 1e-3:
            return [
                "the padding is damped, but not hidden: the mask contains a finite number such "
                "as -10 instead of minus infinity"
            ]
        return []


def _reaches_padding(g, padded, keep, by_position):
    """Return the largest gradient at a padded position, relative to the largest of all.

    If `by_position`, only the results at positions to keep are differentiated.
    """
    weights = None
    if by_position:  # results at padded positions may depend on the padding
        y = _value(lambda v: g(v, keep), padded)
        weights = np.random.default_rng(1).normal(size=y.shape)
        weights *= keep.reshape(keep.shape + (1,) * (y.ndim - 2))
    _, gradient = _with_gradient(lambda v: g(v, keep), padded, weights)
    if gradient is None:
        return 0.0
    gradient = np.nan_to_num(np.abs(gradient), nan=np.inf)
    return gradient[~keep].max(initial=0) / max(gradient.max(initial=0), 1e-300)


# ---------------------------------------------------------------- the table


class _Found:
    """Relative influences `size` [to, from], and `seen`, where they exceed rounding errors."""

    def __init__(self, size, eps):
        self.size, self.seen = size, size > ROUNDINGS * eps


def _influence(name, f, x, axis, groups, out_axis, out_groups, rng):
    """Return the influence of each group of x (on `axis`) on each group of the result (`out_axis`).

    Each group of x is changed, and each group of the result is differentiated.
    """
    f, rng = _precise(name, f), generator(rng)
    y = _value(f, x)
    again = _value(f, x)
    if not np.array_equal(y, again, equal_nan=True):
        raise ValueError(
            f"{name}: f gives a different result each time for the same input. Switch dropout off "
            "with .eval(), or seed its random numbers, for example with rng=0"
        )
    names = np.unique(groups)
    if len(names) < 2:
        if len(groups) > 1:
            raise ValueError(
                f"{name}: batch must contain at least 2 members, got only {names.tolist()}"
            )
        raise ValueError(
            f"{name}: axis {axis} of x must have at least 2 entries, but x has shape {x.shape}"
        )
    if out_groups is None:
        out_groups = {len(groups): groups, len(names): names}.get(y.shape[0] if y.ndim else 0)
    if out_groups is None or y.ndim <= out_axis or y.shape[out_axis] != len(out_groups):
        members = f" (or {len(names)}, one for each member)" * (len(names) < len(groups))
        raise ValueError(
            f"{name}: axis {out_axis} of the result must have length {len(groups)}, as in x of "
            f"shape {x.shape}{members}, but the result has shape {y.shape}"
        )
    largest = max(np.abs(y).max(initial=0), 1e-300)
    table, other = np.zeros((len(names), len(names))), _other(name, x, rng)
    check_floating(name, y)
    for j, group in enumerate(names):
        inside = _along(groups == group, axis, x.ndim)
        change = np.abs(_value(f, np.where(inside, other, x)) - y)
        change = np.nan_to_num(change, nan=np.inf) / largest
        for i, g in enumerate(names):
            table[i, j] = change.compress(out_groups == g, out_axis).max(initial=0)
    for i, g in enumerate(names):
        weights = rng.normal(size=y.shape) * _along(out_groups == g, out_axis, y.ndim)
        _, gradient = _with_gradient(f, x, weights)
        if gradient is None:
            break
        gradient = np.nan_to_num(np.abs(gradient), nan=np.inf)
        for j, group in enumerate(names):
            part = gradient.compress(groups == group, axis).max(initial=0)
            table[i, j] = max(table[i, j], part / max(gradient.max(initial=0), 1e-300))
    return _Found(table, np.finfo(y.dtype).eps)


def _check_takes_keep(f):
    try:
        signature(getattr(f, "forward", f)).bind("x", "keep")
    except TypeError:
        raise TypeError(
            "padding: f must be a function of two arguments (x, keep), where keep is bool [B, T]. "
            "For a transformer, write lambda x, keep: model(x, mask=keep[:, None, :])"
        ) from None
    except ValueError:  # the arguments of a compiled function may be unknown
        pass


def _precise(name, f):
    """Return f, or a copy of a module in float64, with the check that it has one result."""
    if hasattr(f, "astype") and hasattr(f, "state_dict"):
        f = deepcopy(f).astype(np.float64)
    return lambda *inputs: one_result(name, f(*inputs))


def _other(name, x, rng):
    """Replace every element of x by a different number, or a different integer found in x."""
    if x.dtype.kind == "f":
        return x + rng.normal(size=x.shape) * max(float(x.std()), 1.0)
    values = np.unique(x)
    if len(values) < 2:
        raise ValueError(
            f"{name}: x must contain at least two different tokens, because tokens are replaced by "
            f"other ones, got only {values.tolist()}. Pass different tokens, or real numbers"
        )
    place = np.searchsorted(values, x)
    return values[(place + rng.integers(1, len(values), size=x.shape)) % len(values)]


def _with_gradient(f, x, weights=None):
    """Return f(x), and the gradient of its sum with random weights, or None for integers."""
    if x.dtype.kind != "f":
        return _value(f, x), None
    leaf = Tensor(x.astype(np.float64), requires_grad=True)
    y = f(leaf)
    if not (isinstance(y, Tensor) and y.requires_grad):
        return _array(y), None
    weights = np.random.default_rng(1).normal(size=y.shape) if weights is None else weights
    gradients = backward_pass(y, weights.astype(y.dtype), targets={leaf})
    gradient = gradients.get(leaf)
    return y.data, np.zeros(x.shape) if gradient is None else _array(gradient)


def _value(f, x):
    with no_grad():
        return _array(f(Tensor(x.astype(np.float64)) if x.dtype.kind == "f" else x))


def _array(x):
    return x.data if isinstance(x, Tensor) else np.asarray(x)


def _along(chosen, axis, ndim):
    """Return the vector chosen [n] with axes of length 1 added before and after its axis."""
    return chosen.reshape([-1 if k == axis else 1 for k in range(ndim)])


# ---------------------------------------------------------------- words


def _no(title, what, lines, causes, error, compared):
    text = [f"{title}: NO ({what})", *lines, *(f"  perhaps: {c}" for c in causes)]
    return Report(False, "\n".join(text), float(error), compared, tuple(causes))


def _lines(leaks, size, who, sees):
    lines = []
    for t in np.flatnonzero(leaks.any(axis=1))[:6]:
        largest = size[t][leaks[t]].max()
        lines.append(
            f"  {who} {t} {sees} {_list(np.flatnonzero(leaks[t]))} "
            f"(by up to {largest:.1e} of the largest output or gradient)"
        )
    if leaks.any(axis=1).sum() > 6:
        lines.append("  …")
    return lines


def _list(values):
    values = [int(v) for v in values]
    return ", ".join(map(str, values[:10])) + (", …" if len(values) > 10 else "")


def _why_not_causal(seen, leaks, size):
    T = len(seen)
    later = np.triu(np.ones((T, T), bool), 1)
    for H in range(2, T):
        last = (np.arange(T) * H) % T + H - 1
        if T % H == 0 and np.array_equal(leaks, later & (np.arange(T) <= last[:, None])):
            return [
                f"{H} heads were merged by a reshape alone: [B, H, T, d] must become "
                f"[B, T, H, d] (np.swapaxes) before it becomes [B, T, H·d]"
            ]
    if size[leaks].max() < 1e-3:
        return [
            "the future is damped, but not hidden: the mask contains a finite number such as -10 "
            "instead of minus infinity"
        ]
    if np.array_equal(leaks, later & ~np.triu(later, 2)):
        return [
            "the mask is shifted by one: np.tri(T) hides all after position t, np.tri(T, k=1) "
            "lets it see the next one"
        ]
    if leaks[later].all():
        if not seen[np.tril_indices(T, -1)].any():
            return ["the mask is the wrong way round: the past is hidden (True means: may be seen)"]
        return [
            "each position sees the whole future, because there is no mask (set causal=True) or "
            "because something is computed over all positions, such as a mean or the denominator "
            "of the softmax"
        ]
    return []
