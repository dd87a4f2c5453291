"""Derivatives of functions: `grad`, `value_and_grad`, `jacobian`, `hessian`.

They run the function on fresh tensors and go back, so they nest: `grad(grad(f))` is f''.
"""

from functools import wraps

import numpy as np

from tinyattn.autograd import Tensor, backward_pass, collect_graph, primitive, set_grad_enabled


def grad(f, argnum=0):
    """The function x -> df/dx, for a function f with a single number as result.

    `argnum` is the number of the argument, or a tuple of them (then a tuple comes back). An
    array gives an array. A Tensor gives a Tensor that can be differentiated again, so
    `grad(grad(f))` works. No other tensor's `.grad` is touched.
    """
    both = value_and_grad(f, argnum)
    return wraps(f)(lambda *args, **kwargs: both(*args, **kwargs)[1])


def value_and_grad(f, argnum=0):
    """Like `grad`, but the function returns (f(x), df/dx)."""

    @wraps(f)
    def both(*args, **kwargs):
        y, xs, as_tensor, again = _trace(f, argnum, args, kwargs)
        if y.size != 1:
            raise ValueError(
                f"grad: the function must return a single number, got shape {y.shape}; "
                f"use ta.jacobian, or reduce the result (sum, mean)"
            )
        gradients = _pull(y, np.ones(y.shape, y.dtype), xs, again)
        gradients = gradients if as_tensor else [g.data for g in gradients]
        value = (y if again else y.detach()) if as_tensor else y.data
        return value, tuple(gradients) if isinstance(argnum, tuple) else gradients[0]

    return both


def jacobian(f, argnum=0):
    """The function x -> J with J[i, j] = df(x)[i] / dx[j]; its shape is f(x).shape + x.shape."""

    @wraps(f)
    def derivative(*args, **kwargs):
        y, xs, as_tensor, again = _trace(f, argnum, args, kwargs)
        rows = []
        for i in range(y.size):  # one backward pass for each element of the result
            one = np.zeros(y.shape, y.dtype)
            one.flat[i] = 1
            rows.append(_pull(y, one, xs, again, retain_graph=True))
        result = []
        for k, x in enumerate(xs):
            J = np.stack([row[k] for row in rows]) if rows else Tensor(np.zeros(0, x.dtype))
            J = J.reshape(y.shape + x.shape)
            result.append(J if as_tensor else J.data)
        return tuple(result) if isinstance(argnum, tuple) else result[0]

    return derivative


def hessian(f, argnum=0):
    """The function x -> H with H[i, j] = d²f / dx[i] dx[j], for f with a single number."""
    return jacobian(grad(f, argnum), argnum)


@primitive
def _stand_in(x):
    return x.view()


_stand_in.defvjp(lambda g, y, x: g)


_active = set()  # the stand-ins of derivatives that are being taken, while their function runs


def _trace(f, argnum, args, kwargs):
    """Run f on stand-ins for its arguments: (result, stand-ins, give Tensors, record again).

    A stand-in is connected to the tensor it stands for, so that an outer derivative sees it. The
    gradients are recorded in their turn if somebody may differentiate them: if f is being
    differentiated from outside (then its result depends on a stand-in of that derivative), or if
    Tensors were passed and f depends on tensors that require a gradient, as the weights of a model.
    """
    args, xs, as_tensor = list(args), [], False
    chosen = _chosen(argnum, len(args))
    recorded = _stand_in(Tensor(0.0, requires_grad=True)).requires_grad  # False inside no_grad()
    with set_grad_enabled(True):
        for i in chosen:
            x = args[i]
            as_tensor |= isinstance(x, Tensor)
            outside = x if isinstance(x, Tensor) and x.requires_grad else None
            x = outside if outside is not None else Tensor(x, requires_grad=True)
            args[i] = _stand_in(x)
            xs.append(args[i])
            x.requires_grad = outside is not None  # the stand-in is all that counts
        _active.update(xs)
        try:
            y = f(*args, **kwargs)
        finally:
            _active.difference_update(xs)
    if isinstance(y, tuple | list | dict):
        raise TypeError(
            f"grad, jacobian: the function must return one array, got {type(y).__name__}"
        )
    y = y if isinstance(y, Tensor) else Tensor(y)
    below = collect_graph(y)[1] if y.requires_grad else set()
    nested = not _active.isdisjoint(below)
    again = recorded and (nested or (as_tensor and any(t._operation is None for t in below)))
    return y, xs, as_tensor or again, again


def _chosen(argnum, n):
    """The numbers of the arguments to differentiate by, counted from 0, of n given by position."""
    numbers = argnum if isinstance(argnum, tuple) else (argnum,)
    if not all([isinstance(i, int) and -n <= i < n for i in numbers]):
        raise ValueError(
            f"grad, jacobian: argnum is the number of an argument given by position, counted from "
            f"0, or a tuple of such numbers; it is {argnum!r}, with {n} given by position"
        )
    chosen = [i % n for i in numbers]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"grad, jacobian: argnum={argnum!r} names an argument twice")
    return chosen


def _pull(y, gradient, xs, again, retain_graph=False):
    """Gradients of y for the stand-ins xs, as Tensors; zero where y does not depend on them."""
    found = {}
    if y.requires_grad:
        g = Tensor(gradient) if again else gradient
        found = backward_pass(y, g, again, retain_graph, targets=set(xs))
    gradients = [found[x] if x in found else np.zeros(x.shape, x.dtype) for x in xs]
    return [g if isinstance(g, Tensor) else Tensor(g) for g in gradients]
