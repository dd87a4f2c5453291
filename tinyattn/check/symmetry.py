"""Check the effect of permutations, and whether implementations agree."""

import numpy as np

from tinyattn.check.report import (
    Report,
    at,
    check_callable,
    check_floating,
    name_of,
    number,
    one_result,
)
from tinyattn.engine.autograd import Tensor, backward_pass, no_grad
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range

# Another order of summation rounds differently. A sum of n terms is off by at most n roundings
# of its largest partial sum, so a thousand roundings of the largest value leave room for rows
# of a few hundred and for several layers, while a real difference shows in the first digits.
ROUNDINGS = 1000


def equivariant(f, x, axis=-2, out_axis=None, rng=0, times=5):
    """Check that f(permuted x) equals the permuted f(x).

    Args:
        f          module or function of x. If there are several results, check one of them: lambda
                   x: f(x)[0]. A module with dropout fails the check, so call .eval() first
        x          array or Tensor of numbers or integer tokens, with which f is called
        axis       axis of x that is permuted, where -2 means the rows
        out_axis   axis of the result that must be permuted in the same way. If None, it is `axis`
        rng        seed or numpy.random.Generator for the permutations
        times      number of permutations

    Returns:
        a `Report`

    Raises:
        TypeError: f is not a function or does not return one array of floating-point numbers, or
            axis, out_axis or times is not a whole number
        ValueError: x does not have this axis with at least 2 entries, the result does not have
            out_axis with the same length, or times < 1
    """
    out_axis = axis if out_axis is None else out_axis
    return _permuted(
        f,
        x,
        axis,
        rng,
        times,
        f"equivariant: {name_of(f)}",
        lambda y, p: np.take(y, p, out_axis),
        out_axis,
    )


def invariant(f, x, axis=-2, rng=0, times=5):
    """Check that f(permuted x) equals f(x).

    Args:
        f       module or function of x. If there are several results, check one of them: lambda x:
                f(x)[0]. A module with dropout fails the check, so call .eval() first
        x       array or Tensor of numbers or integer tokens, with which f is called
        axis    axis of x that is permuted, where -2 means the rows
        rng     seed or numpy.random.Generator for the permutations
        times   number of permutations

    Returns:
        a `Report`

    Raises:
        TypeError: f is not a function or does not return one array of floating-point numbers, or
            axis or times is not a whole number
        ValueError: x does not have this axis with at least 2 entries, or times < 1
    """
    return _permuted(f, x, axis, rng, times, f"invariant: {name_of(f)}", lambda y, p: y, None)


def _permuted(f, x, axis, rng, times, title, expected, out_axis):
    name = title.partition(":")[0]
    check_callable(name, f)
    x, rng = _array(x), generator(rng)
    check_range(name, 1, whole=True, times=times)
    check_range(name, whole=True, axis=axis, out_axis=out_axis, optional=("out_axis",))
    n = x.shape[axis] if -x.ndim <= axis < x.ndim else 0
    if n < 2:
        raise ValueError(
            f"{name}: x must have an axis {axis} with at least 2 entries, got shape {x.shape}. "
            "Otherwise there is nothing to permute, so choose another axis with axis="
        )
    y, worst = _value(name, f, x), (-1.0,)
    if out_axis is not None and not (-y.ndim <= out_axis < y.ndim and y.shape[out_axis] == n):
        raise ValueError(
            f"equivariant: axis {out_axis} of the result {y.shape} must have length {n}, the same "
            f"as axis {axis} of x {x.shape}. Pass the permuted axis of the result as out_axis="
        )
    check_floating(name, y)
    tolerance = ROUNDINGS * np.finfo(y.dtype).eps * np.abs(y).max(initial=0)
    for _ in range(times):
        p = rng.permutation(n)
        while np.array_equal(p, np.arange(n)):
            p = rng.permutation(n)
        came, wanted = _value(name, f, np.take(x, p, axis)), expected(y, p)
        difference = _distance(came, wanted)
        if difference.max(initial=0) > worst[0]:
            worst = difference.max(initial=0), p, came, wanted, difference
    error = worst[0] / max(np.abs(y).max(initial=0), np.finfo(y.dtype).tiny)
    what = f"{times} permutations of axis {axis} of x, shape {x.shape}"
    if worst[0] <= tolerance:
        text = f"{title}: yes ({what}, largest difference {error:.1e} of the largest value)"
        return Report(True, text, error, times * y.size)
    _, p, came, wanted, difference = worst
    i = np.unravel_index(np.argmax(difference), y.shape)
    text = [f"{title}: NO ({what})", f"  permutation {_short(p)}"]
    if out_axis is not None:
        others = tuple(k for k in range(y.ndim) if k != out_axis % y.ndim)
        rows = np.flatnonzero((difference > tolerance).any(axis=others))
        text.append(f"  {len(rows)} of {n} positions differ: {_short(rows)}")
    else:
        text.append(f"  {(difference > tolerance).sum()} of {y.size} numbers differ")
    text.append(
        f"  most at {at('f(x permuted)', i)} = {number(came[i])}, expected {number(wanted[i])}"
    )
    return Report(False, "\n".join(text), error, times * y.size)


def same(impls, inputs, gradients=True):
    """Check that all implementations give the same values and gradients as the first one.

    Args:
        impls       {name: function}, or a list of functions, at least two
        inputs      the arguments of the functions as a list or tuple, or one array. Gradients are
                    computed for all floating-point arrays and Tensors among them
        gradients   True: also compare the gradients of a randomly weighted sum of the results.
                    False: compare only the values

    Returns:
        a `Report`

    Raises:
        ValueError: there are fewer than two implementations
        TypeError: an implementation is not a function, or does not return one or several arrays of
            numbers
    """
    if not isinstance(impls, dict | list | tuple) or len(impls) < 2:
        got = type(impls).__name__
        if isinstance(impls, dict | list | tuple):
            got = f"{len(impls)} function{'s' * (len(impls) != 1)}"
        raise ValueError(
            f"same: impls must be a list or dictionary of at least two functions, got {got}. Write "
            "same([f, g], x)"
        )
    impls = impls if isinstance(impls, dict) else _named(impls)
    if wrong := [type(f).__name__ for f in impls.values() if not callable(f)]:
        raise TypeError(f"same: impls must consist of functions, got a value of type {wrong[0]}")
    inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    (first, *_), results = impls, {n: _results(n, f, inputs, gradients) for n, f in impls.items()}
    lines, worst, compared = [], 0.0, 0
    for name in list(impls)[1:]:
        for what, wanted in results[first].items():
            came = results[name].get(what)
            difference, line = _difference(name, first, what, came, wanted)
            compared += np.size(wanted)
            worst = max(worst, difference)
            lines += [line] if line else []
    title = f"same: {', '.join(impls)}"
    if lines:
        return Report(False, "\n".join([f"{title}: NO", *lines]), worst, compared)
    what = f"{compared} number{'s' * (compared != 1)}"
    text = f"{title}: yes ({what} compared, largest difference {worst:.1e})"
    return Report(True, text, worst, compared)


def _named(impls):
    """Return {name: function} for a list of functions, numbering names that occur twice."""
    names = [name_of(f) for f in impls]
    return {
        n if names.count(n) == 1 else f"{n} {i}": f
        for i, (n, f) in enumerate(zip(names, impls, strict=True))
    }


def _results(name, f, inputs, gradients):
    """Return {what: array} of the values, and of the gradients of all floating-point inputs.

    The function f is the implementation `name`.
    """
    tensors = [Tensor(_array(x), requires_grad=gradients) if _is_floating(x) else x for x in inputs]
    out = f(*tensors)
    outs = list(out) if isinstance(out, tuple | list) else [out]
    many = len(outs) > 1
    found = {f"value {i}" if many else "value": _array(y) for i, y in enumerate(outs)}
    for y, value in zip(outs, found.values(), strict=True):
        if value.dtype.kind not in "fiubc":
            raise TypeError(
                f"same: {name} must return an array of numbers, or several of them, got "
                + ("None. Did you forget its `return`?" if y is None else type(y).__name__)
            )
    if not gradients:
        return found
    rng = np.random.default_rng(0)
    wanted = {i: x for i, x in enumerate(tensors) if isinstance(x, Tensor) and x.requires_grad}
    total = {i: np.zeros(x.shape, x.dtype) for i, x in wanted.items()}
    connected = False
    for y in outs:
        seed = rng.normal(size=np.shape(y))
        if isinstance(y, Tensor) and y.requires_grad:
            connected = True
            grads = backward_pass(
                y, seed.astype(y.dtype), retain_graph=True, targets=set(wanted.values())
            )
            total = {
                i: t + _array(grads[wanted[i]]) if wanted[i] in grads else t
                for i, t in total.items()
            }
    return found | {f"gradient of input {i}": g if connected else None for i, g in total.items()}


def _difference(name, first, what, came, wanted):
    """Return the relative difference, and a line of text if it is too large, otherwise None."""
    if came is None or wanted is None:
        missing = [n for n, v in ((name, came), (first, wanted)) if v is None]
        return (
            (0.0, None)
            if came is wanted
            else (np.inf, f"  {what}: {', '.join(missing)} has none (not connected to its inputs)")
        )
    if came.shape != wanted.shape:
        return np.inf, f"  {what}: {name} has shape {came.shape}, {first} has {wanted.shape}"
    if came.dtype.kind != "f" and wanted.dtype.kind != "f":
        came, wanted = came.astype(float), wanted.astype(float)
    eps = max(np.finfo(v.dtype).eps for v in (came, wanted) if v.dtype.kind == "f")
    difference, size = _distance(came, wanted), np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    if not difference.max(initial=0) > ROUNDINGS * eps * size:
        return difference.max(initial=0) / (size or 1), None
    i = np.unravel_index(np.argmax(difference), wanted.shape)
    n_wrong = int((difference > ROUNDINGS * eps * size).sum())
    return difference.max() / (size or 1), (
        f"  {what}: {n_wrong} of {wanted.size} numbers differ, most {at('', i) or 'it'}: "
        f"{name} {number(came[i])}, {first} {number(wanted[i])}"
    )


def _distance(a, b):
    """Return |a - b|, where two NaN or two equal infinities differ by 0, and one alone by inf."""
    with np.errstate(invalid="ignore"):
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.where(equal, 0, np.nan_to_num(np.abs(a - b), nan=np.inf))


def _value(name, f, x):
    with no_grad():
        return _array(one_result(name, f(Tensor(x))))


def _array(x):
    return x.data if isinstance(x, Tensor) else np.asarray(x)


def _is_floating(x):
    return isinstance(x, Tensor | np.ndarray | np.generic) and x.dtype.kind == "f"


def _short(values):
    values = [int(v) for v in values]
    return str(values) if len(values) <= 30 else f"{str(values[:30])[:-1]}, …]"
