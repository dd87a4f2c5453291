"""Conversions between Tensors, arrays and numbers."""

import numpy as np

from tinyattn.engine.autograd import Tensor, from_numpy
from tinyattn.engine.dispatch import implements
from tinyattn.engine.dtypes import reject_foreign_tensor


def to_array(x):
    """Return the plain array of a Tensor, without gradient, and anything else unchanged.

    In lists and tuples, each Tensor is replaced by its array.
    """
    if isinstance(x, Tensor):
        return x.data
    if isinstance(x, list | tuple):
        return type(x)(to_array(v) for v in x)
    return x


def as_tensor(x):
    """Return x as a Tensor. A Tensor is returned unchanged, and a real array is not copied."""
    if isinstance(x, Tensor):
        return x
    if type(x) is np.ndarray and x.dtype.kind in "fiub":
        return from_numpy(x)
    return Tensor(reject_foreign_tensor(x))


def as_tensors(*xs):
    """Return a list with `as_tensor` of each argument. The same object becomes the same Tensor."""
    made = {id(x): as_tensor(x) for x in xs}
    return [made[id(x)] for x in xs]


def as_float(x):
    """Return x as a floating-point Tensor, with float32 for whole numbers and booleans."""
    x = as_tensor(x)
    return x.astype(np.float32) if x.dtype.kind in "iub" else x


def of_one_dtype(*xs):
    """Return a list of the arguments as Tensors of one dtype, the one that their sum would have.

    An argument that is None stays None.
    """
    xs = [x if x is None else as_tensor(x) for x in xs]
    dtypes = [x.dtype for x in xs if x is not None]
    if dtypes.count(dtypes[0]) == len(dtypes):
        return xs
    dtype = np.result_type(*dtypes)
    return [x if x is None or x.dtype == dtype else x.astype(dtype) for x in xs]


NONDIFFERENTIABLE = set()  # NumPy's functions whose results have no gradient


def nondifferentiable(*functions):
    """Make NumPy's functions run on the plain data, and turn a resulting array into a Tensor."""
    NONDIFFERENTIABLE.update(functions)
    for f in functions:

        def on_data(*args, _f=f, **kwargs):
            if "out" in kwargs:
                raise TypeError(f"np.{_f.__name__} on Tensors takes no out=. Use its result")
            y = _f(*to_array(args), **{k: to_array(v) for k, v in kwargs.items()})
            return Tensor(y) if isinstance(y, np.ndarray | np.generic) else y

        implements(f)(on_data)
