"""The operators and methods of `Tensor`, each of which calls the NumPy function of the same name.

`x + y` is `np.add(x, y)` and `x.sum(axis=0)` is `np.sum(x, axis=0)`, with the same arguments and
the same gradient. The operators look up the operation in the table of `dispatch.py` directly,
because NumPy's own dispatch, which would find the same operation, is slower.
"""

from __future__ import annotations

import operator
from inspect import isfunction
from typing import TYPE_CHECKING

import numpy as np

from tinyattn.engine import messages
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS, PYTHON_METHODS
from tinyattn.engine.torch_hints import TensorTorchNames, with_torch_hints

if TYPE_CHECKING:
    from tinyattn.engine.autograd import Tensor


def _operator(function):
    """Return the method of an operator, such as x + y, for NumPy's `function`, such as np.add."""

    def method(self, other) -> Tensor:
        return HANDLED_FUNCTIONS[function](self, other)

    return method


def _reversed(function):
    """Return the method that Python calls for 1 + x, because the number 1 cannot add a Tensor."""

    def method(self, other) -> Tensor:
        return HANDLED_FUNCTIONS[function](other, self)

    return method


def _unary(function):
    def method(self) -> Tensor:
        return HANDLED_FUNCTIONS[function](self)

    return method


def _equality(function, on_data):
    """Return the method == or !=, where objects like pytest.approx get the array, by `on_data`."""

    def method(self, other) -> Tensor:
        if getattr(other, "__array_ufunc__", function) is None:
            return on_data(other, self._data)
        return HANDLED_FUNCTIONS[function](self, other)

    return method


def _in_place(function):
    """Return the method of an operator such as p -= step.

    Inside no_grad(), it writes into a leaf p that requires a gradient. Any other p becomes the name
    of a new tensor.
    """

    def method(self, other) -> Tensor:
        y = HANDLED_FUNCTIONS[function](self, other)
        if not self.requires_grad or self._operation is not None:
            return y
        if y.requires_grad:
            raise TypeError(messages.UPDATE_RECORDED)
        self[...] = y
        return self

    return method


class TensorMethods(TensorTorchNames):
    """The operators and methods of a Tensor."""

    __slots__ = ()
    # in Series * x and DataFrame @ x, pandas leaves the operation to x
    __pandas_priority__ = 5000

    # ---------------------------------------------------------------- operators

    # arithmetic
    __add__, __radd__ = _operator(np.add), _reversed(np.add)
    __sub__, __rsub__ = _operator(np.subtract), _reversed(np.subtract)
    __mul__, __rmul__ = _operator(np.multiply), _reversed(np.multiply)
    __truediv__, __rtruediv__ = _operator(np.divide), _reversed(np.divide)
    __pow__, __rpow__ = _operator(np.power), _reversed(np.power)
    __mod__, __rmod__ = _operator(np.remainder), _reversed(np.remainder)
    __floordiv__, __rfloordiv__ = _operator(np.floor_divide), _reversed(np.floor_divide)
    __matmul__, __rmatmul__ = _operator(np.matmul), _reversed(np.matmul)
    __neg__, __pos__, __abs__ = _unary(np.negative), _unary(np.positive), _unary(np.absolute)
    __iadd__, __isub__ = _in_place(np.add), _in_place(np.subtract)
    __imul__, __itruediv__ = _in_place(np.multiply), _in_place(np.divide)

    # comparisons and logic: tensors of booleans, without gradient
    __eq__, __ne__ = _equality(np.equal, operator.eq), _equality(np.not_equal, operator.ne)
    __lt__, __le__ = _operator(np.less), _operator(np.less_equal)
    __gt__, __ge__ = _operator(np.greater), _operator(np.greater_equal)
    __and__, __rand__ = _operator(np.bitwise_and), _reversed(np.bitwise_and)
    __or__, __ror__ = _operator(np.bitwise_or), _reversed(np.bitwise_or)
    __xor__, __rxor__ = _operator(np.bitwise_xor), _reversed(np.bitwise_xor)
    __invert__ = _unary(np.invert)
    # == compares elements, but a set or dict needs the identity of the tensor
    __hash__ = object.__hash__

    # ---------------------------------------------------------------- as a container, as a number

    def __getitem__(self, key) -> Tensor:
        return PYTHON_METHODS["getitem"](self, key)

    def __setitem__(self, key, value) -> None:
        """Write x[key] = value into the same memory, and record the time for `backward`."""
        if getattr(value, "requires_grad", False):
            raise TypeError(messages.WRITE_RECORDED)
        PYTHON_METHODS["setitem"](self._data, key, value)
        self._note_write()

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len: a Tensor without axes (a single number) has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._data)

    def __int__(self) -> int:
        return int(self._data)

    def __round__(self, digits=0) -> Tensor:
        return HANDLED_FUNCTIONS[np.round](self, digits or 0)

    def __index__(self) -> int:
        return self._data.__index__()

    @property
    def grad(self) -> np.ndarray | Tensor | None:
        """The gradient dL/d(data) of a leaf after `L.backward()`, otherwise None."""
        if self._operation is not None:
            return messages.warn_no_gradient_kept(self._operation.name)
        return self._grad

    @grad.setter
    def grad(self, gradient):
        self._grad = gradient

    # ---------------------------------------------------------------- reductions

    def sum(self, axis=None, keepdims=False) -> Tensor:
        """Return the sum of the elements along one or more axes.

        Args:
            axis       number of the axis, a tuple of numbers, or None for all axes
            keepdims   True: keep the summed axes with length 1. False: remove them
        """
        return np.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis=None, keepdims=False) -> Tensor:
        """Return the mean along axes. `axis` and `keepdims` mean the same as in `sum`."""
        return np.mean(self, axis=axis, keepdims=keepdims)

    def max(self, axis=None, keepdims=False) -> Tensor:
        """Return the largest element along axes. Equal maxima share the gradient.

        `axis` and `keepdims` mean the same as in `sum`.
        """
        return np.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis=None, keepdims=False) -> Tensor:
        """Return the smallest element along axes. Equal minima share the gradient.

        `axis` and `keepdims` mean the same as in `sum`.
        """
        return np.min(self, axis=axis, keepdims=keepdims)

    def prod(self, axis=None, keepdims=False) -> Tensor:
        """Return the product along axes. `axis` and `keepdims` mean the same as in `sum`."""
        return np.prod(self, axis=axis, keepdims=keepdims)

    def var(self, axis=None, keepdims=False, ddof=0) -> Tensor:
        """Return the variance along axes, Σ (x - mean)² / (n - ddof) of n elements.

        `axis` and `keepdims` mean the same as in `sum`. ddof=1 gives the unbiased estimate,
        which is the default in PyTorch.
        """
        return np.var(self, axis=axis, keepdims=keepdims, ddof=ddof)

    def std(self, axis=None, keepdims=False, ddof=0) -> Tensor:
        """Return the standard deviation along axes, √ of `var`, which has the same arguments."""
        return np.std(self, axis=axis, keepdims=keepdims, ddof=ddof)

    def cumsum(self, axis=None) -> Tensor:
        """Return the running sums along `axis`, or over all elements as one axis if it is None."""
        return np.cumsum(self, axis=axis)

    def cumprod(self, axis=None) -> Tensor:
        """Return the running products along `axis`, or over all elements as one axis if None."""
        return np.cumprod(self, axis=axis)

    def trace(self, offset=0, axis1=0, axis2=1) -> Tensor:
        """Return the sum Σᵢ x[i, i + offset] of a diagonal.

        The indices i and i + offset are on axis1 and axis2, and these axes are removed.
        """
        return np.trace(self, offset, axis1, axis2)

    def dot(self, other) -> Tensor:
        """Return Σ xᵢyᵢ for vectors and X Y for matrices, where x is this tensor and y is `other`.

        With more axes, the products are summed over the last axis of x and the last but one of y.
        """
        return np.dot(self, other)

    def argmax(self, axis=None) -> Tensor:
        """Return the index of the largest element along `axis`, without gradient.

        Among equal elements, the first is chosen. If `axis` is None, all elements are counted in
        reading order.
        """
        return np.argmax(self, axis=axis)

    def argmin(self, axis=None) -> Tensor:
        """Return the index of the smallest element along `axis`, without gradient.

        Among equal elements, the first is chosen. If `axis` is None, all elements are counted in
        reading order.
        """
        return np.argmin(self, axis=axis)

    def all(self, axis=None, keepdims=False) -> Tensor:
        """Return whether all elements along axes are true (not zero).

        `axis` and `keepdims` mean the same as in `sum`.
        """
        return np.all(self, axis=axis, keepdims=keepdims)

    def any(self, axis=None, keepdims=False) -> Tensor:
        """Return whether any element along axes is true (not zero).

        `axis` and `keepdims` mean the same as in `sum`.
        """
        return np.any(self, axis=axis, keepdims=keepdims)

    # ---------------------------------------------------------------- shape and order

    def reshape(self, *lengths) -> Tensor:
        """Return the same elements in a new shape, as in x.reshape(2, 3) or x.reshape((2, -1)).

        A length of -1 is computed from the number of elements. Raises ValueError if this number
        does not fit.
        """
        return np.reshape(self, lengths[0] if len(lengths) == 1 else lengths)

    def ravel(self) -> Tensor:
        """Return all elements in reading order as one axis."""
        return np.ravel(self)

    def flatten(self) -> Tensor:
        """Return all elements in reading order as one axis, as `ravel` does."""
        return np.ravel(self)

    def transpose(self, *axes) -> Tensor:
        """Return the tensor with its axes in a new order, as in x.transpose(1, 0, 2).

        The order may also be a tuple. Without an argument, the order is reversed. Raises ValueError
        unless all axes are given, each once.
        """
        axes = axes[0] if len(axes) == 1 and (axes[0] is None or np.ndim(axes[0])) else axes
        if axes is not None and 0 < len(axes) != self.ndim:
            raise ValueError(
                f"transpose: expected every axis of shape {self.shape} once, in the new order, got "
                f"{tuple(axes)}. PyTorch's transpose(i, j) is swapaxes(i, j) here"
            )
        return np.transpose(self, axes or None)

    def swapaxes(self, axis1, axis2) -> Tensor:
        """Return the tensor with the axes axis1 and axis2 exchanged."""
        return np.swapaxes(self, axis1, axis2)

    def squeeze(self, axis=None) -> Tensor:
        """Return the tensor without its axes of length 1, or without those given by `axis`.

        `axis` is a number or a tuple. Raises ValueError if one of these axes is longer than 1.
        """
        return np.squeeze(self, axis)

    def repeat(self, repeats, axis=None) -> Tensor:
        """Return the tensor with each slice along `axis` repeated.

        `repeats` is the number of copies, or a list with a number for each slice. If `axis` is
        None, each element is repeated, and the result has one axis.
        """
        return np.repeat(self, repeats, axis)

    def diagonal(self, offset=0, axis1=0, axis2=1) -> Tensor:
        """Return the elements x[i, i + offset] as the last axis.

        The indices i and i + offset are on axis1 and axis2.
        """
        return np.diagonal(self, offset, axis1, axis2)

    def take(self, indices, axis=None) -> Tensor:
        """Return the slices along `axis` with the given indices.

        If `axis` is None, the indices count all elements in reading order.
        """
        return np.take(self, indices, axis)

    def sort(self, axis=-1, *, kind="stable") -> Tensor:
        """Return a new tensor with the elements in ascending order along `axis`.

        If `axis` is None, all elements are sorted as one axis. `kind` is the algorithm, as in
        np.sort.
        """
        return np.sort(self, axis, kind=kind)

    def argsort(self, axis=-1) -> Tensor:
        """Return the indices that would sort the elements along `axis`, without gradient.

        If `axis` is None, the indices count all elements in reading order.
        """
        return np.argsort(self, axis=axis)

    # ---------------------------------------------------------------- each element by itself

    def exp(self) -> Tensor:
        """Return eˣ of each element."""
        return np.exp(self)

    def log(self) -> Tensor:
        """Return the natural logarithm ln x of each element."""
        return np.log(self)

    def sqrt(self) -> Tensor:
        """Return the square root √x of each element."""
        return np.sqrt(self)

    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent tanh x of each element."""
        return np.tanh(self)

    def abs(self) -> Tensor:
        """Return the absolute value |x| of each element."""
        return np.absolute(self)

    def clip(self, a_min=None, a_max=None, *, min=None, max=None) -> Tensor:
        """Return the elements limited to [a_min, a_max], where None means no limit.

        `min` and `max` are other names of a_min and a_max, as in NumPy. Raises ValueError if a
        limit is given under both names.
        """
        return HANDLED_FUNCTIONS[np.clip](self, a_min, a_max, min=min, max=max)

    def round(self, decimals=0) -> Tensor:
        """Return the elements rounded to `decimals` decimal places, without gradient."""
        return np.round(self, decimals)

    # ---------------------------------------------------------------- another form

    def astype(self, dtype) -> Tensor:
        """Return the same numbers in a different dtype, such as np.float64.

        The gradient keeps the dtype of this tensor. Whole numbers and booleans have no gradient.
        Raises TypeError if dtype is not a type of numbers or booleans.
        """
        return np.astype(self, np.dtype(dtype))

    def copy(self) -> Tensor:
        """Return a copy of the values in new memory, through which gradients pass."""
        return np.copy(self)

    def tolist(self) -> list:
        """Return the values as nested lists of Python numbers."""
        return self._data.tolist()

    def __repr__(self) -> str:
        return PYTHON_METHODS["repr"](self)

    def __format__(self, spec) -> str:
        return PYTHON_METHODS["format"](self, spec)

    def _repr_html_(self) -> str:
        return PYTHON_METHODS["html"](self)

    # ---------------------------------------------------------------- copy and pickle

    def __copy__(self) -> Tensor:
        self._must_be_leaf("copy")
        return self._twin(self._data, self._shared_version())  # the same memory

    def __deepcopy__(self, memo) -> Tensor:
        self._must_be_leaf("deepcopy")
        memo[id(self)] = twin = self._twin(self._data.copy(), [0])
        twin._created, twin._grad = 0, None
        return twin

    def __getstate__(self):
        self._must_be_leaf("pickle")
        return object.__getstate__(self)

    def __setstate__(self, state):
        for part in state:
            for name, value in (part or {}).items():
                setattr(self, name, value)
        self._created, self._version = 0, [0]  # the saved clock belonged to another process

    def _must_be_leaf(self, what):
        if self._operation is not None:
            raise RuntimeError(
                f"{what}: this tensor was computed from others, so it is not a leaf. Call "
                ".detach() on it first"
            )

    def _twin(self, data, written):
        twin = object.__new__(type(self))
        for name, value in object.__getstate__(self)[1].items():
            setattr(twin, name, value)
        twin._data, twin._version = data, written
        return twin


# PyTorch's `dim` is NumPy's `axis`, so x.sum(dim=0) gets a hint
for _name, _method in list(vars(TensorMethods).items()):
    if isfunction(_method) and not _name.startswith("_"):
        setattr(TensorMethods, _name, with_torch_hints(_method))
