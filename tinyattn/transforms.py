"""Derivatives of functions: `grad`, `value_and_grad`, `jacobian`, `hessian`.

They run the function on fresh tensors and sweep back, so they nest: `grad(grad(f))` is f''.
"""

from functools import wraps

import numpy as np

from tinyattn.autograd import Tensor, primitive, reachable, recording, sweep


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
        rows = [np.zeros(xs[0].shape, xs[0].dtype)] if y.size == 0 else []
        for i in range(y.size):  # one sweep for each element of the result
            one = np.zeros(y.shape, y.dtype)
            one.flat[i] = 1
            rows.append(_pull(y, one, xs, again, keep=True)[0])
        J = np.stack(rows)[: y.size].reshape(y.shape + xs[0].shape)
        return J if as_tensor else getattr(J, "data", J)

    return derivative


def hessian(f, argnum=0):
    """The function x -> H with H[i, j] = d²f / dx[i] dx[j], for f with a single number."""
    return jacobian(grad(f, argnum), argnum)


@primitive
def _alias(x):
    return x.view()


_alias.defvjp(lambda g, y, x: g)


def _trace(f, argnum, args, kwargs):
    """Run f on fresh stand-ins for its arguments: (result, stand-ins, was Tensor, record again).

    A stand-in is connected to the tensor it stands for, so that an outer derivative sees it.
    """
    args, xs, as_tensor = list(args), [], False
    for i in argnum if isinstance(argnum, tuple) else (argnum,):
        x = args[i]
        as_tensor |= isinstance(x, Tensor)
        with recording(True):
            outer = isinstance(x, Tensor) and x.requires_grad
            args[i] = _alias(x) if outer else Tensor(x, requires_grad=True)
        xs.append(args[i])
    with recording(True):
        y = f(*args, **kwargs)
    y = y if isinstance(y, Tensor) else Tensor(y)
    others = (
        [t for t in reachable(y)[1] if t._node is None and t not in set(xs)]
        if y.requires_grad
        else []
    )
    return y, xs, as_tensor, as_tensor and bool(others)


def _pull(y, seed, xs, again, keep=False):
    """Gradients of y for the stand-ins xs, as Tensors; zero where y does not depend on them."""
    found = {}
    if y.requires_grad:
        found = sweep(y, Tensor(seed) if again else seed, again, keep, targets=set(xs))
    gradients = [found[x] if x in found else np.zeros(x.shape, x.dtype) for x in xs]
    return [g if isinstance(g, Tensor) else Tensor(g) for g in gradients]
