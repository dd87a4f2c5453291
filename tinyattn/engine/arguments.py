"""Calls of NumPy's functions on Tensors, and the errors for arguments without a rule."""

from inspect import Parameter, signature

import numpy as np

from tinyattn.engine.dispatch import HANDLED_FUNCTIONS
from tinyattn.engine.messages import INSTEAD


def run(function, args, options):
    """Return the result of the operation that belongs to a function of NumPy.

    Args:
        function   the function of NumPy, called with a Tensor
        args       its positional arguments
        options    its keyword arguments, as a dict

    Raises:
        TypeError: the function has no derivative rule, or an argument is used that the operation
            does not have
    """
    f = HANDLED_FUNCTIONS[function]
    try:
        return f(*args, **options)
    except TypeError as error:
        unknown = [k for k in options if not _takes(f, k)]
        if not unknown and _fits(f, args, options):
            raise  # the arguments fit, so something else is wrong
        cause = error
    # NumPy passes its own defaults on, as row_stack does to vstack. They change nothing.
    asked = {k: v for k, v in options.items() if k not in unknown or not _default(function, k, v)}
    if len(asked) < len(options) and not [k for k in unknown if k in asked]:
        return f(*args, **asked)
    name = f"{getattr(function, '__module__', None) or 'numpy'}.{function.__name__}"
    name = name.replace("numpy", "np", 1)
    takes, wrong = ", ".join(signature(f).parameters), [k for k in unknown if k in asked]
    what = f"no {', '.join(wrong)}=, only" if wrong else "fewer arguments by position, and only"
    option = wrong[0] if wrong else "by position"
    hint = INSTEAD.get(option, "Without a gradient, pass x.numpy()")
    hint = INSTEAD.get(f"{name} {option}", hint)
    raise TypeError(f"{name} on Tensors takes {what} {takes}. {hint.format(name=name)}") from cause


def _takes(f, name):
    """Return whether a function has an argument of this name."""
    parameters = signature(f).parameters
    return name in parameters or any([p.kind is p.VAR_KEYWORD for p in parameters.values()])


def _fits(f, args, options):
    """Return whether a function can be called with these arguments."""
    try:
        signature(f).bind(*args, **options)
    except TypeError:
        return False
    return True


def _default(function, name, value):
    """Return whether the value of an argument has the same effect as omitting the argument."""
    try:
        default = signature(function).parameters[name].default
    except (KeyError, TypeError, ValueError):
        return False
    if default is Parameter.empty or isinstance(value, np.ndarray):
        return False
    return value is default or (type(value) is type(default) and value == default)
