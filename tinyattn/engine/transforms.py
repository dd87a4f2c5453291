"""Derivatives of functions (`grad`, `value_and_grad`, `jacobian`, `hessian`), and `gradients`.

The first four run the function on new tensors and then compute derivatives backwards, so they can
be nested. For example, `grad(grad(f))` is f''. `gradients` takes a result that has already been
computed.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np

from tinyattn.engine import messages
from tinyattn.engine.autograd import (
    Tensor,
    backward_pass,
    primitive,
    set_grad_enabled,
    topological_order,
)


def grad(f: Callable, argnum: int | tuple[int, ...] = 0) -> Callable:
    """Return the function x -> df/dx, the derivative of a function f with a scalar result.

    The derivative at an array is an array. It is a Tensor if x is a Tensor, or if f depends on
    other tensors that require a gradient, such as the weights of a model, so that the derivative
    can be differentiated with respect to these tensors. Inside `no_grad()`, the derivative is not
    recorded. The `.grad` of tensors does not change.

    Args:
        f        the function, which must return a single number
        argnum   position of x among the positional arguments, counted from 0, or a tuple of
                 positions for a tuple of derivatives

    Returns:
        a function with the arguments of f, of which x must be given by position

    Raises:
        TypeError: f is not a function, returns None or several arrays, or loses the gradient of x
            (as math.exp(x) does), or x is an array that is not floating point
        ValueError: f does not return a single number, or argnum is not the position of an argument
            or contains a position twice
    """
    _check_function("grad", f)
    both = value_and_grad(f, argnum)
    return wraps(f)(lambda *args, **kwargs: both(*args, **kwargs)[1])


def value_and_grad(f: Callable, argnum: int | tuple[int, ...] = 0) -> Callable:
    """Return the function x -> (f(x), df/dx), which computes a value and its derivative.

    The derivative is the one that `grad` computes, the value is an array or a Tensor in the same
    cases, and f is called only once.

    Args:
        f        the function, which must return a single number
        argnum   position of x among the positional arguments, counted from 0, or a tuple of
                 positions for a tuple of derivatives

    Returns:
        a function with the arguments of f, of which x must be given by position

    Raises:
        TypeError: f is not a function, returns None or several arrays, or loses the gradient of x
            (as math.exp(x) does), or x is an array that is not floating point
        ValueError: f does not return a single number, or argnum is not the position of an argument
            or contains a position twice
    """
    _check_function("value_and_grad", f)

    @wraps(f)
    def both(*args, **kwargs):
        y, xs, as_tensor, again = _trace(f, argnum, args, kwargs)
        if y.size != 1:
            raise ValueError(
                "grad, value_and_grad, hessian: f must return a single number, got shape "
                f"{y.shape}. Reduce the result (sum, mean), or use ta.jacobian for df/dx"
            )
        gradients = _vjp(y, np.ones(y.shape, y.dtype), xs, again)
        gradients = gradients if as_tensor else [g.data for g in gradients]
        value = (y if again else y.detach()) if as_tensor else y.data
        return value, tuple(gradients) if isinstance(argnum, tuple) else gradients[0]

    return both


def jacobian(f: Callable, argnum: int | tuple[int, ...] = 0) -> Callable:
    """Return the function x -> J, which computes the Jacobian J[i, j] = df(x)[i] / dx[j].

    J has the shape f(x).shape + x.shape. One backward pass is needed for each element of f(x).

    Args:
        f        the function, which must return one array
        argnum   position of x among the positional arguments, counted from 0, or a tuple of
                 positions for a tuple of Jacobians

    Returns:
        a function with the arguments of f, of which x must be given by position. Its result is an
        array or a Tensor, as explained in `grad`

    Raises:
        TypeError: f is not a function, returns None or several arrays, or loses the gradient of x
            (as math.exp(x) does), or x is an array that is not floating point
        ValueError: argnum is not the position of an argument or contains a position twice
    """
    _check_function("jacobian", f)

    @wraps(f)
    def derivative(*args, **kwargs):
        y, xs, as_tensor, again = _trace(f, argnum, args, kwargs)
        rows = []
        for i in range(y.size):  # one backward pass for each element of the result
            one = np.zeros(y.shape, y.dtype)
            one.flat[i] = 1
            rows.append(_vjp(y, one, xs, again, retain_graph=True))
        result = []
        for k, x in enumerate(xs):
            J = np.stack([row[k] for row in rows]) if rows else Tensor(np.zeros(0, x.dtype))
            J = J.reshape(y.shape + x.shape)
            result.append(J if as_tensor else J.data)
        return tuple(result) if isinstance(argnum, tuple) else result[0]

    return derivative


def hessian(f: Callable, argnum: int | tuple[int, ...] = 0) -> Callable:
    """Return the function x -> H, which computes the Hessian H[i, j] = d²f / dx[i] dx[j].

    H has the shape x.shape + x.shape.

    Args:
        f        the function, which must return a single number
        argnum   position of x among the positional arguments, counted from 0. For a tuple of
                 positions, H is a tuple of tuples, where H[m][n] is d²f / dx dy with the argument x
                 at the position argnum[m] and the argument y at argnum[n]

    Returns:
        a function with the arguments of f, of which x must be given by position. Its result is an
        array or a Tensor, as explained in `grad`

    Raises:
        TypeError: f is not a function, returns None or several arrays, or loses the gradient of x
            (as math.exp(x) does), or x is an array that is not floating point
        ValueError: f does not return a single number, or argnum is not the position of an argument
            or contains a position twice
        NotImplementedError: f runs compiled code that cannot be differentiated twice
    """
    _check_function("hessian", f)
    if not isinstance(argnum, tuple):
        return jacobian(grad(f, argnum), argnum)
    rows = [jacobian(grad(f, m), argnum) for m in argnum]
    return wraps(f)(lambda *args, **kwargs: tuple([row(*args, **kwargs) for row in rows]))


def gradients(y: Tensor, xs, create_graph: bool = False):
    """Return the gradients dy/dx of a single number y for each of the tensors xs.

    The `.grad` of tensors does not change. The graph between y and leaf tensors among the xs is
    freed, unless create_graph is True.

    Args:
        y              the result, a Tensor with one element
        xs             a tensor, or a list or tuple of tensors. Each of them is a leaf tensor that
                       requires a gradient, or an intermediate result
        create_graph   True: the gradients are Tensors that can be differentiated again

    Returns:
        the gradient, an array in the shape of the tensor (a Tensor with create_graph). If xs is a
        list or tuple, a list of gradients in the same order. If y does not depend on a tensor, its
        gradient consists of zeros

    Raises:
        TypeError: y is not a Tensor, or one of the xs is not a tensor that requires a gradient
        RuntimeError: y does not depend on anything that requires a gradient, its graph was freed,
            or values were overwritten after they were used
        ValueError: y has more than one element
    """
    several = isinstance(xs, list | tuple)
    targets = list(xs) if several else [xs]
    for x in targets:
        if not (isinstance(x, Tensor) and x.requires_grad):
            advice = "Create it with requires_grad=True, or leave it out"
            if hasattr(x, "parameters"):
                advice = "Write list(model.parameters())"
            elif isinstance(x, dict):
                advice = "Write list(xs.values())"
            elif not isinstance(x, Tensor):
                advice = "Make it with ta.tensor(x, requires_grad=True) before y is computed"
                if hasattr(x, "__next__"):
                    advice = "Write list(xs)"
            raise TypeError(
                f"gradients: xs must be a tensor that requires a gradient, or a list of such "
                f"tensors, got {_described(x)}. {advice}"
            )
    if not isinstance(y, Tensor):
        swapped = isinstance(y, list | tuple)
        raise TypeError(
            f"gradients: y must be a Tensor, got {type(y).__name__}. "
            + ("Write ta.gradients(y, xs)" if swapped else "Did you use .item() or .numpy()?")
        )
    if not y.requires_grad:
        raise RuntimeError(messages.NO_GRAPH.replace("backward: this tensor", "gradients: y", 1))
    if y.size != 1:
        raise ValueError(
            f"gradients: y must be a single number, got shape {y.shape}. Reduce it (sum, mean), or "
            "use ta.jacobian"
        )
    found = {}
    # A backward pass stops at its targets, so a result that depends on others gets its own pass.
    groups = [[x] for x in targets if x._operation is not None]
    groups.append([x for x in targets if x._operation is None])
    for group in groups:
        g = np.ones(y.shape, y.dtype)
        found.update(
            zip(group, _vjp(y, g, group, create_graph, group is not groups[-1]), strict=True)
        )
    result = [found[x] if create_graph else found[x].data for x in targets]
    return result if several else result[0]


def _described(x):
    """Return what x is, for a message."""
    if not isinstance(x, Tensor | np.ndarray):
        return f"an object of type {type(x).__name__}"
    kind = "a Tensor without gradient" if isinstance(x, Tensor) else "an array"
    return f"{kind} of shape {x.shape}"


@primitive
def _stand_in(x):
    return x.view()


_stand_in.defvjp(lambda g, y, x: g)


_NAMES = "grad, value_and_grad, jacobian, hessian"  # they share these checks
_active = set()  # the proxies of all derivatives that are running their function


def _trace(f, argnum, args, kwargs):
    """Run f on proxy tensors, and return (result, proxies, as_tensor, again).

    A proxy replaces an argument and is connected to it, so an outer derivative can follow the
    graph. `as_tensor` is True if the derivatives are returned as Tensors, and `again` if they are
    recorded as well, because they may be differentiated again. This is the case if f is part of an
    outer derivative (then its result depends on a proxy of that derivative), or if f depends on
    tensors that require a gradient, such as the weights of a model.
    """
    args, xs, as_tensor = list(args), [], False
    chosen = _chosen(argnum, len(args), kwargs)
    recorded = _stand_in(Tensor(0.0, requires_grad=True)).requires_grad  # False inside no_grad()
    with set_grad_enabled(True):
        for i in chosen:
            x = args[i]
            as_tensor |= isinstance(x, Tensor)
            outside = x if isinstance(x, Tensor) and x.requires_grad else None
            x = outside if outside is not None else Tensor(x, requires_grad=True)
            args[i] = _stand_in(x)
            xs.append(args[i])
            # a tensor made here required a gradient only so that _stand_in was recorded
            x.requires_grad = outside is not None
        _active.update(xs)
        try:
            y = f(*args, **kwargs)
        finally:
            _active.difference_update(xs)
    if y is None or isinstance(y, tuple | list | dict):
        what = "None. Did you forget its `return`?" if y is None else type(y).__name__
        advice = "" if y is None else ". Return one of them, or their np.concatenate"
        raise TypeError(f"{_NAMES}: f must return one array, got {what}{advice}")
    y = y if isinstance(y, Tensor) else Tensor(y)
    below = topological_order(y)[1] if y.requires_grad else set()
    nested = not _active.isdisjoint(below)
    again = recorded and (nested or any(t._operation is None for t in below))
    return y, xs, as_tensor or again, again


def _check_function(name, f):
    if not callable(f):
        raise TypeError(
            f"{name}: expected a function, got an object of type {type(f).__name__}. Write "
            f"ta.{name}(f)(x) for the derivative of f at x"
        )


def _chosen(argnum, n, named):
    """Return the positions, from 0 to n - 1, of the arguments by which f is differentiated."""
    numbers = argnum if isinstance(argnum, tuple) else (argnum,)
    if not all([isinstance(i, int) and -n <= i < n for i in numbers]):
        advice = ". Pass the argument by position, not by name" if named or not n else ""
        raise ValueError(
            f"{_NAMES}: argnum must be the position of an argument, counted from 0, or a tuple of "
            f"positions, but got argnum={argnum!r} and {n} positional argument{'s' * (n != 1)}"
            f"{advice}"
        )
    chosen = [i % n for i in numbers]
    if len(set(chosen)) < len(chosen):
        raise ValueError(
            f"{_NAMES}: argnum={argnum!r} names an argument twice. Name each argument once"
        )
    return chosen


def _vjp(y, gradient, xs, again, retain_graph=False):
    """Return the gradient of y for each proxy in xs, zeros if y does not depend on it."""
    found, targets = {}, set(xs)
    if y.requires_grad and again:
        try:
            found = backward_pass(y, Tensor(gradient), True, targets=targets)
        except NotImplementedError as error:  # a kernel has no second derivative
            found = backward_pass(y, gradient, retain_graph=True, targets=targets)
            found = {x: _once_differentiable(g, y, error=error) for x, g in found.items()}
    elif y.requires_grad:
        found = backward_pass(y, gradient, retain_graph=retain_graph, targets=targets)
    gradients = [found[x] if x in found else np.zeros(x.shape, x.dtype) for x in xs]
    return [g if isinstance(g, Tensor) else Tensor(g) for g in gradients]


@primitive
def _once_differentiable(g, y, error):
    """Return a gradient g of y that can be read, but raises the error when it is differentiated."""
    return g.copy()


@_once_differentiable.defvjp_joint
def _refuse(g, out, first, y, error):
    raise error
