"""The operations, and the operators and methods of `Tensor` bound from one table."""

import numpy as np

from tinyattn.autograd import Tensor
from tinyattn.ops import (
    compositions,
    display,
    elementwise,
    index,
    linalg,
    reduce,
    shape,
    trigonometric,
)
from tinyattn.ops.elementwise import unwrap


def _reversed(operation):
    return lambda self, other: operation(other, self)


def _compare(ufunc):
    return lambda self, other: ufunc(self, other)


def _reshape(self, *shape_):
    """x.reshape(2, 3) or x.reshape((2, 3))."""
    return shape.reshape(self, shape_[0] if len(shape_) == 1 else shape_)


def _transpose(self, *axes):
    """x.transpose(1, 0, 2), x.transpose((1, 0, 2)) or x.transpose()."""
    axes = axes[0] if len(axes) == 1 else axes
    return shape.transpose(self, axes or None)


def _setitem(self, key, value):
    """x[key] = value, into the same memory; noted, so that `backward` finds stale values."""
    if isinstance(value, Tensor) and value.requires_grad:
        raise TypeError(
            "x[...] = value would lose the gradient of value, because writing is not recorded: "
            "build a new tensor with np.where, np.concatenate or np.stack, or .detach() the value"
        )
    self._data[index.plain_index(key)] = unwrap(value)
    self._note_write()


def _in_place(operation):
    """p -= step: for a parameter inside no_grad() a write into p; for results a new tensor."""

    def method(self, other):
        y = operation(self, other)
        if not self.requires_grad or self._operation is not None:
            return y
        if y.requires_grad:
            raise TypeError(
                "p += ... or p -= ... would make a new tensor and leave p, which needs a gradient, "
                "as it was: update parameters inside no_grad(), else write y = p + ..."
            )
        self[...] = y
        return self

    return method


def _length(self):
    if self.ndim == 0:
        raise TypeError("len() of a Tensor without axes (a single number)")
    return self.shape[0]


def _deepcopy(self, memo):
    if self._operation is not None:
        raise RuntimeError("deepcopy: this tensor was computed from others; .detach() it first")
    twin = object.__new__(type(self))
    twin._data, twin._time, twin._written = self._data.copy(), 0, [0]
    twin._operation, twin._inputs, twin._call = None, (), None
    twin.grad, twin.requires_grad = None, self.requires_grad
    memo[id(self)] = twin
    return twin


def _copy(self):
    if self._operation is not None:
        raise RuntimeError("copy: this tensor was computed from others; .detach() it first")
    twin = object.__new__(type(self))
    for name, value in object.__getstate__(self)[1].items():
        setattr(twin, name, value)
    twin._written = self._shared()  # the same memory
    return twin


def _getstate(self):
    if self._operation is not None:
        raise RuntimeError("pickle: this tensor was computed from others; .detach() it first")
    return object.__getstate__(self)


def _setstate(self, state):
    for part in state:
        for name, value in (part or {}).items():
            setattr(self, name, value)
    self._time, self._written = 0, [0]  # the times were those of another process


METHODS = {
    # arithmetic
    "__add__": elementwise.add, "__radd__": _reversed(elementwise.add),
    "__sub__": elementwise.subtract, "__rsub__": _reversed(elementwise.subtract),
    "__mul__": elementwise.multiply, "__rmul__": _reversed(elementwise.multiply),
    "__truediv__": elementwise.divide, "__rtruediv__": _reversed(elementwise.divide),
    "__pow__": elementwise.power, "__rpow__": _reversed(elementwise.power),
    "__mod__": elementwise.remainder, "__rmod__": _reversed(elementwise.remainder),
    "__floordiv__": _compare(np.floor_divide), "__rfloordiv__": _reversed(np.floor_divide),
    "__matmul__": linalg.matmul, "__rmatmul__": _reversed(linalg.matmul),
    "__iadd__": _in_place(elementwise.add), "__isub__": _in_place(elementwise.subtract),
    "__imul__": _in_place(elementwise.multiply), "__itruediv__": _in_place(elementwise.divide),
    "__neg__": elementwise.negative, "__pos__": elementwise.positive,
    "__abs__": elementwise.absolute,
    # comparisons and logic: boolean tensors without gradient
    "__eq__": _compare(np.equal), "__ne__": _compare(np.not_equal),
    "__lt__": _compare(np.less), "__le__": _compare(np.less_equal),
    "__gt__": _compare(np.greater), "__ge__": _compare(np.greater_equal),
    "__and__": _compare(np.bitwise_and), "__rand__": _reversed(np.bitwise_and),
    "__or__": _compare(np.bitwise_or), "__ror__": _reversed(np.bitwise_or),
    "__xor__": _compare(np.bitwise_xor), "__rxor__": _reversed(np.bitwise_xor),
    "__invert__": lambda self: np.invert(self),
    # as a container and as a number
    "__getitem__": index.getitem, "__setitem__": _setitem, "__len__": _length,
    "__iter__": lambda self: (self[i] for i in range(len(self))),
    "__bool__": lambda self: bool(self._data), "__float__": lambda self: float(self._data),
    "__int__": lambda self: int(self._data), "__index__": lambda self: self._data.__index__(),
    "__deepcopy__": _deepcopy, "__getstate__": _getstate,
    "__copy__": _copy, "__setstate__": _setstate,
    # NumPy's methods
    "sum": reduce.sum, "mean": reduce.mean, "max": reduce.max, "min": reduce.min,
    "prod": reduce.prod, "var": reduce.var, "std": reduce.std, "cumsum": reduce.cumsum,
    "cumprod": reduce.cumprod, "trace": compositions.trace, "dot": linalg.dot,
    "reshape": _reshape, "ravel": shape.ravel, "flatten": shape.ravel, "transpose": _transpose,
    "swapaxes": shape.swapaxes, "squeeze": shape.squeeze, "repeat": shape.repeat,
    "astype": lambda self, dtype: shape.astype(self, np.dtype(dtype)), "copy": shape.copy,
    "diagonal": shape.diagonal, "take": index.take, "clip": elementwise.clip,
    "sort": index.sort, "argsort": lambda self, axis=-1: np.argsort(self, axis=axis),
    "argmax": lambda self, axis=None: np.argmax(self, axis=axis),
    "argmin": lambda self, axis=None: np.argmin(self, axis=axis),
    "all": lambda self, axis=None, keepdims=False: np.all(self, axis=axis, keepdims=keepdims),
    "any": lambda self, axis=None, keepdims=False: np.any(self, axis=axis, keepdims=keepdims),
    "round": lambda self, decimals=0: np.round(self, decimals),
    "tolist": lambda self: self._data.tolist(),
    "exp": elementwise.exp, "log": elementwise.log, "sqrt": elementwise.sqrt,
    "tanh": trigonometric.tanh, "abs": elementwise.absolute,
    # attributes
    "shape": property(lambda self: self._data.shape),
    "ndim": property(lambda self: self._data.ndim),
    "dtype": property(lambda self: self._data.dtype),
    "size": property(lambda self: self._data.size),
    "T": property(shape.transpose), "mT": property(lambda self: shape.swapaxes(self, -1, -2)),
    # how it shows itself
    "__repr__": display.to_repr, "__str__": display.to_repr, "__format__": display.to_format,
    "_repr_html_": display.to_html,
}  # fmt: skip

for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
