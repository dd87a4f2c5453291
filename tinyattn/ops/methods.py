"""The operators and methods of `Tensor`: each stands for the function of the same name.

`x + y` is `np.add(x, y)` and `x.sum(axis=0)` is `np.sum(x, axis=0)`, with the same arguments and
the same gradient. `ops/__init__.py` adds what stands in this class to `Tensor`.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING

import numpy as np

from tinyattn import guards
from tinyattn.autograd import is_grad_enabled
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

if TYPE_CHECKING:
    from tinyattn.autograd import Tensor


def _reversed(operation):
    def method(self, other) -> Tensor:
        return operation(other, self)

    return method


def _on_data(ufunc):
    """A ufunc without gradient as a method: comparisons and logic."""

    def method(self, other) -> Tensor:
        return ufunc(self, other)

    return method


def _equality(ufunc, operator):
    """== and !=; what keeps out of NumPy's functions, such as pytest.approx, gets the array."""

    def method(self, other) -> Tensor:
        if getattr(other, "__array_ufunc__", ufunc) is None:
            return operator(other, self._data)
        return ufunc(self, other)

    return method


def _in_place(operation):
    """p -= step: for a parameter inside no_grad() a write into p; for results a new tensor."""

    def method(self, other) -> Tensor:
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


class TensorMethods:
    """What a Tensor can do beside remembering how it was made."""

    # ---------------------------------------------------------------- operators

    # arithmetic
    __add__, __radd__ = elementwise.add, _reversed(elementwise.add)
    __sub__, __rsub__ = elementwise.subtract, _reversed(elementwise.subtract)
    __mul__, __rmul__ = elementwise.multiply, _reversed(elementwise.multiply)
    __truediv__, __rtruediv__ = elementwise.divide, _reversed(elementwise.divide)
    __pow__, __rpow__ = elementwise.power, _reversed(elementwise.power)
    __mod__, __rmod__ = elementwise.remainder, _reversed(elementwise.remainder)
    __floordiv__, __rfloordiv__ = _on_data(np.floor_divide), _reversed(np.floor_divide)
    __matmul__, __rmatmul__ = linalg.matmul, _reversed(linalg.matmul)
    __neg__, __pos__, __abs__ = elementwise.negative, elementwise.positive, elementwise.absolute
    __iadd__, __isub__ = _in_place(elementwise.add), _in_place(elementwise.subtract)
    __imul__, __itruediv__ = _in_place(elementwise.multiply), _in_place(elementwise.divide)

    # comparisons and logic: tensors of booleans, without gradient
    __eq__, __ne__ = _equality(np.equal, operator.eq), _equality(np.not_equal, operator.ne)
    __lt__, __le__ = _on_data(np.less), _on_data(np.less_equal)
    __gt__, __ge__ = _on_data(np.greater), _on_data(np.greater_equal)
    __and__, __rand__ = _on_data(np.bitwise_and), _reversed(np.bitwise_and)
    __or__, __ror__ = _on_data(np.bitwise_or), _reversed(np.bitwise_or)
    __xor__, __rxor__ = _on_data(np.bitwise_xor), _reversed(np.bitwise_xor)
    __hash__ = object.__hash__  # == compares elements, but a set or dict holds the tensor itself

    def __invert__(self) -> Tensor:
        return np.invert(self)

    # ---------------------------------------------------------------- as a container, as a number

    __getitem__ = index.getitem

    def __setitem__(self, key, value) -> None:
        """x[key] = value, into the same memory; noted, so that `backward` finds stale values."""
        if getattr(value, "requires_grad", False):
            raise TypeError(
                "x[...] = value would lose the gradient of value, because writing is not recorded: "
                "build a new tensor with np.where, np.concatenate or np.stack, or .detach() the "
                "value"
            )
        self._data[index.plain_index(key)] = unwrap(value)
        self._note_write()

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a Tensor without axes (a single number)")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._data)

    def __float__(self) -> float:
        if self.requires_grad and is_grad_enabled():
            guards.number_wanted(sys._getframe(1))
        return float(self._data)

    def __int__(self) -> int:
        return int(self._data)

    def __index__(self) -> int:
        return self._data.__index__()

    @property
    def grad(self) -> np.ndarray | Tensor | None:
        """dL/d(data) after `L.backward()`; None before, and on results, which keep none."""
        if self._operation is not None:
            return guards.no_gradient_kept(self._operation.name)
        return self._grad

    @grad.setter
    def grad(self, gradient):
        self._grad = gradient

    # ---------------------------------------------------------------- reductions

    def sum(self, axis=None, keepdims=False) -> Tensor:
        """The sum over `axis`: None for all axes, a number, or a tuple of numbers."""
        return reduce.sum(self, axis, keepdims)

    def mean(self, axis=None, keepdims=False) -> Tensor:
        """The mean over `axis`."""
        return reduce.mean(self, axis, keepdims)

    def max(self, axis=None, keepdims=False) -> Tensor:
        """The largest element along `axis`; tied ones share the gradient."""
        return reduce.max(self, axis, keepdims)

    def min(self, axis=None, keepdims=False) -> Tensor:
        """The smallest element along `axis`; tied ones share the gradient."""
        return reduce.min(self, axis, keepdims)

    def prod(self, axis=None, keepdims=False) -> Tensor:
        """The product over `axis`."""
        return reduce.prod(self, axis, keepdims)

    def var(self, axis=None, keepdims=False, ddof=0) -> Tensor:
        """The variance over `axis`: Σ (x - mean)² / (n - ddof)."""
        return reduce.var(self, axis, keepdims, ddof)

    def std(self, axis=None, keepdims=False, ddof=0) -> Tensor:
        """The standard deviation over `axis`, the root of `var`."""
        return reduce.std(self, axis, keepdims, ddof)

    def cumsum(self, axis=None) -> Tensor:
        """Running sums along `axis`; of all elements in reading order if None."""
        return reduce.cumsum(self, axis)

    def cumprod(self, axis=None) -> Tensor:
        """Running products along `axis`; of all elements in reading order if None."""
        return reduce.cumprod(self, axis)

    def trace(self, offset=0, axis1=0, axis2=1) -> Tensor:
        """The sum of a diagonal of two axes."""
        return compositions.trace(self, offset, axis1, axis2)

    def dot(self, other) -> Tensor:
        """Vectors: Σ xᵢyᵢ; matrices: X Y; else the last axis of x against the last but one of y."""
        return linalg.dot(self, other)

    def argmax(self, axis=None) -> Tensor:
        """The index of the largest element along `axis`, without gradient."""
        return np.argmax(self, axis=axis)

    def argmin(self, axis=None) -> Tensor:
        """The index of the smallest element along `axis`, without gradient."""
        return np.argmin(self, axis=axis)

    def all(self, axis=None, keepdims=False) -> Tensor:
        """Whether all elements along `axis` are true (not zero)."""
        return np.all(self, axis=axis, keepdims=keepdims)

    def any(self, axis=None, keepdims=False) -> Tensor:
        """Whether any element along `axis` is true (not zero)."""
        return np.any(self, axis=axis, keepdims=keepdims)

    # ---------------------------------------------------------------- shape and order

    def reshape(self, *lengths) -> Tensor:
        """The same elements in another shape: x.reshape(2, 3), x.reshape((2, -1))."""
        return shape.reshape(self, lengths[0] if len(lengths) == 1 else lengths)

    def ravel(self) -> Tensor:
        """All elements in reading order as one axis."""
        return shape.ravel(self)

    def flatten(self) -> Tensor:
        """The same as `ravel`."""
        return shape.ravel(self)

    def transpose(self, *axes) -> Tensor:
        """The axes in another order: x.transpose(1, 0, 2), x.transpose((1, 0, 2)); reversed: ()."""
        axes = axes[0] if len(axes) == 1 else axes
        if isinstance(axes, tuple | list) and 0 < len(axes) != self.ndim:
            raise ValueError(
                f"transpose: expected all {self.ndim} axes of shape {self.shape} in their new "
                f"order, got {tuple(axes)}; PyTorch's transpose(i, j) is swapaxes(i, j) here"
            )
        return shape.transpose(self, axes or None)

    def swapaxes(self, axis1, axis2) -> Tensor:
        """Two axes exchanged."""
        return shape.swapaxes(self, axis1, axis2)

    def squeeze(self, axis=None) -> Tensor:
        """Without the axes of length 1: all of them, or those named."""
        return shape.squeeze(self, axis)

    def repeat(self, repeats, axis=None) -> Tensor:
        """Each element `repeats` times in a row (a number, or one for each element)."""
        return shape.repeat(self, repeats, axis)

    def diagonal(self, offset=0, axis1=0, axis2=1) -> Tensor:
        """The elements x[i, i + offset] of two axes, as the last axis."""
        return shape.diagonal(self, offset, axis1, axis2)

    def take(self, indices, axis=None) -> Tensor:
        """The elements (or slices along `axis`) with the given numbers."""
        return index.take(self, indices, axis)

    def sort(self, axis=-1, *, kind="stable") -> Tensor:
        """The elements in ascending order along `axis`, as a new tensor."""
        return index.sort(self, axis, kind=kind)

    def argsort(self, axis=-1) -> Tensor:
        """The indices that would sort along `axis`, without gradient."""
        return np.argsort(self, axis=axis)

    # ---------------------------------------------------------------- each element by itself

    def exp(self) -> Tensor:
        """eˣ"""
        return elementwise.exp(self)

    def log(self) -> Tensor:
        """ln x"""
        return elementwise.log(self)

    def sqrt(self) -> Tensor:
        """√x"""
        return elementwise.sqrt(self)

    def tanh(self) -> Tensor:
        """tanh x"""
        return trigonometric.tanh(self)

    def abs(self) -> Tensor:
        """|x|"""
        return elementwise.absolute(self)

    def clip(self, a_min=None, a_max=None, *, min=None, max=None) -> Tensor:
        """x limited to [a_min, a_max]; None leaves a side open."""
        return elementwise.clip(self, a_min, a_max, min=min, max=max)

    def round(self, decimals=0) -> Tensor:
        """x rounded to a number of decimals, without gradient."""
        return np.round(self, decimals)

    # ---------------------------------------------------------------- another form

    def astype(self, dtype) -> Tensor:
        """The same numbers in another dtype; the gradient comes back in that of x."""
        return shape.astype(self, np.dtype(dtype))

    def copy(self) -> Tensor:
        """The same values in memory of their own; the gradient passes through."""
        return shape.copy(self)

    def tolist(self) -> list:
        """The values as nested lists of Python numbers."""
        return self._data.tolist()

    __repr__ = __str__ = display.to_repr
    __format__ = display.to_format
    _repr_html_ = display.to_html

    # ---------------------------------------------------------------- copy and pickle

    def __copy__(self) -> Tensor:
        self._must_be_leaf("copy")
        return self._twin(self._data, self._shared_time())  # the same memory

    def __deepcopy__(self, memo) -> Tensor:
        self._must_be_leaf("deepcopy")
        memo[id(self)] = twin = self._twin(self._data.copy(), [0])
        twin._time, twin._grad = 0, None
        return twin

    def __getstate__(self):
        self._must_be_leaf("pickle")
        return object.__getstate__(self)

    def __setstate__(self, state):
        for part in state:
            for name, value in (part or {}).items():
                setattr(self, name, value)
        self._time, self._written = 0, [0]  # the times were those of another process

    def _must_be_leaf(self, what):
        if self._operation is not None:
            raise RuntimeError(f"{what}: this tensor was computed from others; .detach() it first")

    def _twin(self, data, written):
        twin = object.__new__(type(self))
        for name, value in object.__getstate__(self)[1].items():
            setattr(twin, name, value)
        twin._data, twin._written = data, written
        return twin
