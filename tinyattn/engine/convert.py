"""Tensors, arrays and numbers turned into one another."""

import numpy as np

from tinyattn.engine.autograd import Tensor, from_numpy
from tinyattn.engine.dispatch import implements
from tinyattn.engine.dtypes import reject_foreign_tensor


def to_array(x):
    """The bare array of a Tensor; anything else as it is. What follows has no gradient."""
    if isinstance(x, Tensor):
        return x.data
    if isinstance(x, list | tuple):
        return type(x)(to_array(v) for v in x)
    return x


def as_tensor(x):
    """x as a Tensor. An array is not copied: the Tensor shares its memory."""
    if isinstance(x, Tensor):
        return x
    if type(x) is np.ndarray and x.dtype.kind in "fiub":
        return from_numpy(x)
    return Tensor(reject_foreign_tensor(x))


def as_tensors(*xs):
    """`as_tensor` of each; what is given twice is one and the same Tensor."""
    made = {id(x): as_tensor(x) for x in xs}
    return [made[id(x)] for x in xs]


def as_float(x):
    """x as a Tensor of floating-point numbers: whole numbers and booleans become float32."""
    x = as_tensor(x)
    return x.astype(np.float32) if x.dtype.kind in "iub" else x


def of_one_dtype(*xs):
    """Tensors of the dtype that NumPy gives their sum; None stays None. See `as_tensor`."""
    xs = [x if x is None else as_tensor(x) for x in xs]
    dtypes = [x.dtype for x in xs if x is not None]
    if dtypes.count(dtypes[0]) == len(dtypes):
        return xs
    dtype = np.result_type(*dtypes)
    return [x if x is None or x.dtype == dtype else x.astype(dtype) for x in xs]


NONDIFFERENTIABLE = set()  # NumPy's functions whose result has no gradient


def nondifferentiable(*functions):
    """Let NumPy's functions run on the bare data; an array that comes back becomes a Tensor."""
    NONDIFFERENTIABLE.update(functions)
    for f in functions:

        def on_data(*args, _f=f, **kwargs):
            if "out" in kwargs:
                raise TypeError(f"np.{_f.__name__} on Tensors takes no out=")
            y = _f(*to_array(args), **{k: to_array(v) for k, v in kwargs.items()})
            return Tensor(y) if isinstance(y, np.ndarray | np.generic) else y

        implements(f)(on_data)
