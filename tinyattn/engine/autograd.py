"""Reverse-mode automatic differentiation on NumPy arrays: recording, and the chain rule.

An operation is a NumPy function, and its derivative rule is defined right below it:

    @primitive
    def tanh(x):
        return np.tanh(x)
    tanh.defvjp(lambda g, y, x: g * (1 - y * y))

Read the file from top to bottom:

1. `Tensor`         an array that remembers the operation and the inputs it was computed from
2. `primitive`      turns a NumPy function into an operation that is recorded
3. `backward_pass`  goes backwards through the record and applies the rules (the chain rule)

NumPy's own functions, such as np.tanh, run an operation when they receive a Tensor, as
`dispatch.py` shows.

Letters: y is the output of an operation and g = dL/dy its incoming gradient. A rule returns g ·
dy/dx, the gradient with respect to the input x, in the shape of x.

The operators and methods of a Tensor (x + y, x.sum()) are in `methods.py`, and the error messages
are in `messages.py`.
"""

from collections.abc import Callable
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from itertools import count
from operator import attrgetter
from threading import RLock, local
from typing import Protocol

import numpy as np

from tinyattn.engine import dtypes, messages
from tinyattn.engine.arguments import run
from tinyattn.engine.dtypes import COMMON_TYPES, reject_foreign_tensor
from tinyattn.engine.invalid import Noted
from tinyattn.engine.memory import fork_safe
from tinyattn.engine.methods import TensorMethods
from tinyattn.engine.read_only import protected
from tinyattn.engine.torch_hints import with_torch_hints

ndarray = np.ndarray
FLOAT32 = np.dtype(np.float32)
new = object.__new__

_clock = count(1).__next__
NEVER_WRITTEN = (0,)  # a shared constant, which is never written to


# ---------------------------------------------------------------- 1. an array with a memory


class Tensor(TensorMethods):
    """An array, its gradient, and the operation that computed it.

    A leaf is a tensor that was not computed from others by a recorded operation.

    Args:
        data            number, list or array, which is copied
        dtype           dtype of the array. None: arrays and NumPy's own numbers keep their dtype,
                        Python floats become float32, and Python integers and booleans keep their
                        type unless requires_grad is True (then they become float32 too)
        requires_grad   True: differentiable operations on the tensor are recorded, and their
                        results require a gradient too, except in a block of no_grad()

    Raises:
        TypeError: data does not consist of numbers or booleans, or contains a Tensor that requires
            a gradient, dtype is not a type of numbers, or requires_grad is True and the dtype is
            not floating point
        ValueError: the rows of a list have different lengths

    Attributes:
        data           the plain NumPy array
        grad           dL/d(data) after `L.backward()`, and None before. Only leaf tensors have a
                       gradient, which is stored in _grad
        requires_grad  whether operations on the tensor are recorded
        _operation     the operation that computed the tensor, or None for a leaf
        _inputs        the inputs of the operation as Tensors, with None for inputs that are not
                       Tensors. It is () for a leaf, and None if the graph of a result was freed
        _values        the inputs of the operation with plain arrays instead of Tensors, for the
                       rule. It is None for a leaf
        _options       the keyword arguments of the operation, for the rule. It is None for a leaf
        _created       time of its creation, or 0 for a leaf. Inputs are older than outputs
        _version       [time when its values were last written to], one list for all tensors that
                       share the same memory, or NEVER_WRITTEN for a result without views or writes

    Time is counted in results and writes (`_clock`).

    The time of a write through a Tensor (`x[...] = v`, `x.data = v`, `x.data -= v`) is noted, so
    `backward` can raise an error if values have changed since a result was computed from them. The
    write itself is not part of the graph. Writing into a plain array (`x.data[0] = v`) cannot be
    detected, so do it only between two graphs. An array that took part in a computation must not be
    changed before backward (`ta.tensor` copies it). `x.data = array` keeps the array without a
    copy, so afterwards write to the array only through x.
    """

    __slots__ = (
        "__weakref__",
        "_created",
        "_data",
        "_grad",
        "_inputs",
        "_operation",
        "_options",
        "_values",
        "_version",
        "requires_grad",
    )
    requires_grad: bool

    def __init__(self, data, dtype=None, requires_grad=False):
        if isinstance(data, Tensor):
            data = np.asarray(data)  # this raises an error if a gradient would be lost
        self._data = dtypes.array_of(data, dtype, requires_grad)
        self._operation, self._inputs, self._values, self._options = None, (), None, None
        self._created, self._version, self._grad = 0, [0], None
        self.requires_grad = bool(requires_grad)

    @property
    def data(self) -> ndarray:
        """The values as a plain NumPy array. Results computed from this array have no gradient."""
        return self._data

    @data.setter
    def data(self, value):
        """Replace the values. An array is kept without a copy."""
        if type(value) is not ndarray:
            value = dtypes.array_of(value, None, self.requires_grad)
        if self.requires_grad:
            dtypes.check_differentiable(value.dtype)
        self._data = value
        self._note_write()

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._data.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._data.size

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements, such as float32."""
        return self._data.dtype

    @property
    def T(self) -> "Tensor":
        """The tensor with its axes in reverse order."""
        return np.transpose(self)

    @property
    def mT(self) -> "Tensor":
        """The tensor with its last two axes exchanged, so that each matrix is transposed."""
        return np.swapaxes(self, -1, -2)

    def _note_write(self):
        self._shared_version()[0] = _clock()

    def _shared_version(self):
        """Return `_version` as a list that a view can share, which NEVER_WRITTEN cannot be."""
        if self._version is NEVER_WRITTEN:
            self._version = [0]
        return self._version

    @with_torch_hints
    def backward(self, gradient=None, create_graph=False) -> None:
        """Add dL/dx to the `.grad` of every leaf tensor x that requires a gradient.

        L is this tensor or, with `gradient`, a number that was computed from it. Leaf tensors from
        which L was not computed do not change. Gradients add up over several calls, so set
        `.grad = None` (or call `zero_grad()`) in between. The graph is freed, so a second call
        raises an error, unless create_graph is True.

        Args:
            gradient       None: L is this tensor, a single number. Or an array dL/d(self) in the
                           shape of this tensor, for an L that was computed from it
            create_graph   True: record the backward pass too, so that gradients are Tensors that
                           can be differentiated

        Raises:
            RuntimeError: nothing that this tensor depends on requires a gradient, the graph was
                freed, values were overwritten, or this tensor is not a single number and gradient
                is None
            ValueError: gradient or the result of a rule has a wrong shape, or a rule writes into
                its arguments
            TypeError: gradient or the result of a rule is not real, or an operation has no
                derivative rule
            NotImplementedError: create_graph is True, and an operation ran as compiled code that
                cannot be differentiated twice
        """
        if not self.requires_grad:
            raise RuntimeError(messages.NO_GRAPH)
        g = first_gradient(self, gradient, Tensor if create_graph else ndarray)
        owned = set()
        grads = backward_pass(self, g, create_graph, owned=owned)
        with _accumulating:
            for x, g in grads.items():
                if x._grad is not None:
                    x._grad = as_array(x._grad + g)
                else:  # unless this pass owns g, it may be the gradient of another tensor too
                    x._grad = g if x in owned and g.flags.c_contiguous else g.copy()

    def detach(self) -> "Tensor":
        """Return a tensor with the same values (in shared memory) but without a graph."""
        return from_numpy(self._data, self._shared_version())

    def numpy(self) -> ndarray:
        """Return the values as a plain array in shared memory, without a gradient."""
        return self._data

    def item(self) -> float:
        """Return the only element as a Python number, without a gradient.

        Raises ValueError if the tensor does not have exactly one element.
        """
        return self._data.item()

    # NumPy passes its functions on to these two methods (NEP 13 and NEP 18)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or kwargs:
            raise messages.no_ufunc_option(ufunc, method, kwargs)
        return run(ufunc, inputs, {})

    def __array_function__(self, func, types, args, kwargs):
        return run(func, args, kwargs)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise TypeError(messages.LOST)
        return np.array(self._data, dtype=dtype, copy=copy)

    def __float__(self) -> float:
        if self.requires_grad and _mode.grad_enabled:
            raise TypeError(messages.LOST_NUMBER)
        return float(self._data)


def tensor(data, dtype=None, requires_grad=False) -> Tensor:
    """Return a new tensor with a copy of `data`.

    Args:
        data            number, list or array. Python floats become float32. Python integers and
                        booleans keep their type, but become float32 if requires_grad is True.
                        Arrays and NumPy's own numbers keep their dtype
        dtype           dtype of the tensor, or None to choose it as described above
        requires_grad   True: operations on the tensor are recorded, and `backward` computes its
                        gradient

    Raises:
        TypeError: data does not consist of numbers or booleans, or contains a Tensor that requires
            a gradient, dtype is not a type of numbers, or requires_grad is True and the dtype is
            not floating point
        ValueError: the rows of a list have different lengths
    """
    return Tensor(data, dtype, requires_grad)


def from_numpy(array, written=NEVER_WRITTEN) -> Tensor:
    """Return a tensor without gradient that shares its memory with the array.

    `written` is its `_version`, which it has in common with other tensors of this memory.
    """
    t = new(Tensor)  # this skips __init__ and its checks
    t._data, t._version = array, written
    t._operation = t._values = t._options = t._grad = None
    t._inputs, t._created, t.requires_grad = (), 0, False
    return t


_accumulating = fork_safe(RLock())  # only one thread at a time adds to `.grad`


# ---------------------------------------------------------------- 2. operations


class _Mode(local):
    grad_enabled = True  # the value at the start of each thread


_mode = _Mode()


@contextmanager
def set_grad_enabled(enabled):
    """Switch recording on (`enabled` is True) or off inside a `with` block, in this thread only."""
    # the block may end in another thread, so keep this thread's mode
    mine, before = _mode.__dict__, _mode.grad_enabled
    try:
        mine["grad_enabled"] = enabled
        yield
    finally:
        mine["grad_enabled"] = before


def no_grad():
    """Switch off recording inside the block `with no_grad():`, in this thread only.

    Results that are computed there require no gradient. As a decorator, `@no_grad()` does the same
    for all calls of a function.
    """
    return set_grad_enabled(False)


def is_grad_enabled() -> bool:
    """Return whether this thread currently records operations."""
    return _mode.grad_enabled


class Operation:
    """The engine's description of a primitive, with its name and its derivative rules.

    Args:
        name         name of the operation in messages
        parameters   parameters of the function, as inspect.Parameter, or None if its rules are not
                     checked

    Attributes:
        rules         one function for each input, (g, y, *inputs) -> gradient of this input
        joint         one function for all inputs, (g, y, *inputs) -> gradients of all inputs, or
                      None if the rules are used
        elementwise   whether element i of a gradient depends only on element i of g, see
                      `invalid.py`
        fresh         whether each array that a rule returns was allocated for it, so that it shares
                      no memory with g, y, an input or another gradient, and may be written to
        widened       a version of the function that computes in signed 64-bit integers, for whole
                      numbers whose result might not fit into their own type, or None
    """

    __slots__ = ("elementwise", "fresh", "joint", "name", "parameters", "rules", "widened")

    def __init__(self, name, parameters=None):
        self.name, self.parameters = name, parameters
        self.elementwise, self.fresh, self.widened = False, False, None
        self.rules, self.joint = messages.no_rules(name, parameters or ())

    def defvjp(self, *rules):
        """Set the rules (vjp: vector-Jacobian product), in the order of the inputs.

        None stands for an input that never has a gradient, and rules at the end may be left out.
        Raises TypeError if a rule cannot be called like this, and ValueError for too many rules.
        """
        self.rules, self.joint = messages.checked_rules(self, rules), None

    def defvjp_joint(self, rule):
        """Set one rule that returns a list or tuple with the gradients of all inputs.

        Raises TypeError if the rule cannot be called like those of `defvjp`.
        """
        messages.callable_as_rule(self, rule, "defvjp_joint")
        self.joint = protected(rule, self.name, "rule")


class Primitive(Protocol):
    """The result of `primitive`, a function from arrays and Tensors to a Tensor."""

    operation: Operation
    __name__: str

    def __call__(self, *inputs, **options) -> Tensor: ...

    def __get__(self, instance, owner) -> Callable[..., Tensor]: ...  # as a method: x + y

    def defvjp(self, *rules) -> None:
        """Set the derivative rules, one for each input, (g, y, *inputs) -> its gradient."""

    def defvjp_joint(self, rule) -> None:
        """Set one rule for all inputs, (g, y, *inputs) -> list of the gradients of all inputs."""


def primitive(f) -> Primitive:
    """Return a differentiable version of a NumPy function. Add its derivative rules with `.defvjp`.

        @primitive
        def scale(x, c):
            return x * c
        scale.defvjp(lambda g, y, x, c: g * c,      # dL/dx
                     lambda g, y, x, c: g * x)      # dL/dc, or None if c never has a gradient

    f receives plain arrays and returns one array. A rule receives the gradient g of the output, the
    output y, and the arguments of the call. It returns an array in the shape of its input (if NumPy
    broadcast the input, the engine sums over the copies). A rule written with NumPy functions can
    itself be differentiated. f and its rules must not change their arguments, which are read-only.

    Keyword-only arguments of f must not be Tensors. For a list of Tensors, use *xs and a single
    rule, which `.defvjp_joint` sets.

    If an argument of f has a default value, give the rules the same default.

    Raises TypeError if f is not a function with a name. A call of the returned function raises
    TypeError if f returns anything but one array of numbers or if a keyword-only argument is a
    Tensor, and ValueError if f changes an argument.
    """
    op = Operation(messages.name_of(f), tuple(signature(f).parameters.values()))
    compute = protected(f, op.name, "function")

    @wraps(f)
    def apply(*inputs, **options):
        if options and any([isinstance(x, Tensor) for x in options.values()]):
            inputs, options = messages.by_position(f, op.name, inputs, options, Tensor)
        values = []
        for x in inputs:
            if isinstance(x, Tensor):
                values.append(x._data)
            else:
                values.append(x if type(x) in COMMON_TYPES else reject_foreign_tensor(x))
        # calling f(*values, **{}) would be slower than f(*values)
        y = compute(*values, **options) if options else compute(*values)
        return record(op, y, inputs, values, options)

    apply.operation, apply.defvjp, apply.defvjp_joint = op, op.defvjp, op.defvjp_joint
    return apply


def record(op, y, inputs, values, options):
    """Return the output of an operation as a Tensor, and record it if a gradient is needed.

    Args:
        op        the `Operation`
        y         its output, an array
        inputs    its inputs, of which some may be Tensors
        values    the inputs with plain arrays instead of Tensors
        options   its keyword arguments, as a dict
    """
    if type(y) is not ndarray or y.dtype is not FLOAT32:
        y = dtypes.result_array(op, y, values, options)
    tensors, wanted, written = [], False, NEVER_WRITTEN
    owner = y if y.base is None else owner_of(y)
    for x in inputs:
        if isinstance(x, Tensor):
            tensors.append(x)
            wanted = wanted or x.requires_grad
            v = x._data
            if v is owner or (v.base is not None and owner_of(v) is owner):
                # y is a view, so writing to y writes to x and vice versa
                written = x._shared_version()
        else:
            tensors.append(None)
    if not (wanted and _mode.grad_enabled and (y.dtype is FLOAT32 or y.dtype.kind == "f")):
        if y.dtype.kind == "c" and wanted and _mode.grad_enabled:
            raise TypeError(messages.complex_result(op.name))
        return from_numpy(y, written)
    t = new(Tensor)
    t._data, t._version, t._created, t._grad, t.requires_grad = y, written, _clock(), None, True
    t._operation, t._inputs, t._values, t._options = op, tensors, values, options
    return t


def owner_of(array):
    """Return the owner of an array's memory: the array itself, or the array it is a view of."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


# ---------------------------------------------------------------- 3. the chain rule, backwards


def backward_pass(root, gradient, create_graph=False, retain_graph=False, targets=None, owned=None):
    """Return {x: dL/dx} for every leaf x from which the root was computed.

    Every result is younger than its inputs. Going through the graph from the youngest to the oldest
    result therefore reaches each tensor after everything that was computed from it, when its
    gradient is complete. The function does not use recursion, so a chain may be as long as memory
    allows.

        for t in results:                                     # youngest first
            g = grads.pop(t)                                  # dL/dt
            for x, rule in zip(t._inputs, t._operation.rules):
                if x in grads:                                # its gradient is needed
                    grads[x] += rule(g, t, *values of the inputs)
        return grads                                          # left: those of the leaves

    Args:
        root           the tensor at which the pass begins
        gradient       dL/d(root), an array, or a Tensor with create_graph
        create_graph   True: the rules receive Tensors instead of arrays. Since they are NumPy code,
                       they run in the same way and are recorded
        retain_graph   True: keep the graph for another backward pass (a Jacobian needs one for each
                       row). False: free it during the pass, unless create_graph is True
        targets        tensors whose gradients are returned, or None for all leaves. The pass ends
                       at the targets, and parts of the graph that do not lead to a target are
                       neither computed nor freed
        owned          set to which each tensor is added whose gradient is an array that this pass
                       allocated and that nothing else refers to, or None
    """
    results, grads = topological_order(root)
    if targets is not None:
        results, grads = prune_to_targets(targets, results, grads)
    grads[root] = gradient  # the other gradients are None until their first term arrives
    # later terms are added in place to the gradients of the tensors in `owned`
    owned, kind = set() if owned is None else owned, Tensor if create_graph else ndarray
    with set_grad_enabled(create_graph), Noted() as noted:
        for t in results:  # youngest first
            g = grads.pop(t)  # dL/dt
            op, inputs, y, values, options = t._operation, t._inputs, t._data, t._values, t._options
            if create_graph:
                y, values = t, [v if x is None else x for x, v in zip(inputs, values, strict=True)]
            rules, arguments = op.rules, (g, y, *values)
            if op.joint is not None:
                rules = split_joint_vjp(op, inputs, grads, op.joint(*arguments, **options))
            for x, rule in zip(inputs, rules):  # noqa: B905 - optional inputs have rules too
                if x in grads:  # the gradient of x is needed
                    g_x = rule(*arguments, **options) if options else rule(*arguments)
                    if noted:  # a 0 · ∞ occurred somewhere
                        g_x = noted.mended(op, op.joint or rule, arguments, options, g_x)
                    v, total = x._data, grads[x]
                    if type(g_x) is not kind or g_x.shape != v.shape or g_x.dtype is not v.dtype:
                        g_x = unbroadcast(g_x, v, op.name, kind)
                    if total is None:  # another tensor may share g_x unless it is fresh
                        grads[x] = g_x
                        if op.fresh and not create_graph:
                            owned.add(x)
                    elif x in owned:
                        total += g_x
                    else:
                        grads[x] = as_array(total + g_x)
                        if not create_graph:
                            owned.add(x)
            if not (create_graph or retain_graph):
                t._inputs = t._values = t._options = None
    if targets is not None:  # a target may have been reached only through another target
        grads = {x: g for x, g in grads.items() if g is not None}
    return grads


def topological_order(root):
    """Return (results, {x: None}) for the graph of root.

    The results are root and all others from which it was computed, youngest first. The keys x of
    the dict are all tensors that need a gradient, including root and leaves. Raises RuntimeError if
    the graph was freed, or if values were written to after they were used.
    """
    results, needed = ([] if root._operation is None else [root]), {root: None}
    for t in results:  # the list grows during the loop
        if t._inputs is None:
            raise RuntimeError(messages.FREED)
        if t._version[0] > t._created:
            raise RuntimeError(messages.stale_value(t._operation.name))
        for x in t._inputs:
            if x is None:
                continue
            if x._version[0] > t._created:
                raise RuntimeError(messages.stale_value(t._operation.name))
            if x.requires_grad and x not in needed:
                needed[x] = None
                if x._operation is not None:
                    results.append(x)
    results.sort(key=attrgetter("_created"), reverse=True)
    return results, needed


def prune_to_targets(targets, results, needed):
    """Return the part of a graph that leads from the root to a target: (results, {x: None}).

    results and needed are those of `topological_order`, and the part has the same form. It contains
    the targets only as keys, because the pass ends there.
    """
    on_the_way = {x: None for x in targets if x in needed}
    for t in reversed(results):  # oldest first
        if any(x in on_the_way for x in t._inputs):
            on_the_way[t] = None
    return [t for t in results if t in on_the_way and t not in targets], on_the_way


def first_gradient(root, gradient, kind):
    """Return the argument `gradient` of `backward` in the dtype of root. None means 1.

    `kind` is Tensor or np.ndarray, the class of the result. Raises an error unless the gradient is
    real and has the shape of root.
    """
    if gradient is None:
        if root.size != 1:
            raise RuntimeError(messages.no_first_gradient(root.shape))
        gradient = np.ones(root.shape, root.dtype)
    if not isinstance(gradient, Tensor):
        gradient = np.asarray(gradient)
    messages.check_first_gradient(gradient, root)
    if gradient.dtype != root.dtype:
        gradient = gradient.astype(root.dtype)
    return as_array_or_tensor(gradient, kind)


def split_joint_vjp(op, inputs, needed, gradients):
    """Return one rule for each input, which returns its part of the result of a joint rule.

    `gradients` is this result, and `needed` contains the inputs whose gradients are needed.
    """
    messages.check_joint_vjp(op, inputs, needed, gradients)
    return [lambda *_, g=g, **__: g for g in gradients]


def unbroadcast(d, a, name, kind):
    """Return a rule's gradient d in the shape and dtype of the input array a.

    If NumPy broadcast the input, every copy contributed, so the gradient is the sum over the
    copies. `name` is the name of the operation, and `kind` is Tensor if gradients are recorded,
    otherwise np.ndarray.
    """
    d = d if d is None or isinstance(d, Tensor) else np.asarray(d)
    messages.check_gradient(d, a, name)
    if d.shape != a.shape:
        extra = d.ndim - a.ndim
        copies = tuple(i for i, n in enumerate((1,) * extra + a.shape) if n == 1)
        d = d.sum(axis=copies, keepdims=True).reshape(a.shape)
    return as_array_or_tensor(d if d.dtype == a.dtype else d.astype(a.dtype), kind)


def as_array_or_tensor(g, kind):
    """Return the gradient g as `kind`, Tensor or np.ndarray."""
    if kind is ndarray:
        return g.data if isinstance(g, Tensor) else g
    return g if isinstance(g, kind) else kind(g)


def as_array(g):
    """Return g, the sum of two gradients, as an array or Tensor.

    NumPy's sum of two 0-d arrays is a scalar, which would be neither.
    """
    return np.asarray(g) if isinstance(g, np.generic) else g
