"""Reverse-mode automatic differentiation on NumPy arrays: the whole engine.

An operation is a NumPy function, and its derivative rule stands right under it:

    @primitive
    def tanh(x):
        return np.tanh(x)
    tanh.defvjp(lambda g, y, x: g * (1 - y * y))

Read the file from top to bottom:

1. `Tensor`         an array that remembers which operation made it, from which inputs
2. `primitive`      turns a NumPy function into an operation that remembers
3. `backward_pass`  goes back through what was remembered and applies the rules (the chain rule)
4. `implements`     lets NumPy's own functions (np.tanh) run the operation when they meet a Tensor

Letters: y is the output of an operation and g = dL/dy the gradient that arrives at it; a rule
returns g · dy/dx, the gradient with respect to the input x, in the shape of x.

`guards` holds the checks and their messages. The operators and methods of Tensor (x + y, x.sum())
are written in `ops/methods.py` and added to the class in `ops/__init__.py`.
"""

from contextlib import contextmanager
from functools import wraps
from inspect import signature
from itertools import count
from operator import attrgetter
from threading import RLock, local
from typing import TYPE_CHECKING

import numpy as np

from tinyattn import guards
from tinyattn.guards import OWN, own
from tinyattn.memory import fork_safe

if TYPE_CHECKING:  # editors find the methods here; when the program runs they are added later
    from tinyattn.ops.methods import TensorMethods
    from tinyattn.types import Primitive
else:
    from tinyattn.hints import NamesElsewhere as TensorMethods

ndarray = np.ndarray
FLOAT32 = np.dtype(np.float32)
new = object.__new__

_clock = count(1).__next__
NEVER = (0,)  # shared constant: never written to


# ---------------------------------------------------------------- 1. an array with a memory


class Tensor(TensorMethods):
    """An array, its gradient, and the operation that made it.

    data           the plain NumPy array
    grad           dL/d(data) after `L.backward()`; None before. Only on leaves. Kept in _grad
    requires_grad  whether gradients are wanted; results inherit it, except under no_grad()
    _operation     the operation that made it; None for a leaf, a tensor made by hand
    _inputs        the inputs of the operation as Tensors, None in place of any other; () for a
                   leaf, and None for a result whose graph was freed
    _values        the inputs as plain values, and ...
    _options       ... the keyword arguments: what its rule is called with
    _time          when it was made, 0 for a leaf; every input is older than its output
    _written       [when its values were last written to], one list for all tensors that share
                   the same memory; NEVER for a result that nobody wrote to or made a view of

    Time is counted in results and writes (`_clock`).

    Writing through a Tensor (`x[...] = v`, `x.data = v`, `x.data -= v`) is noted, so that
    `backward` can refuse values that are younger than the result computed from them. Writing into a
    bare array (`x.data[0] = v`) cannot be seen: do it only between two graphs. A plain array that
    took part must not be changed before backward (`ta.tensor` copies it). `x.data = array` takes
    the array over: write to it through x alone from then on.
    """

    __slots__ = ("__weakref__", "_data", "_grad", "_inputs", "_operation", "_options", "_time",
                 "_values", "_written", "requires_grad")  # fmt: skip
    requires_grad: bool

    def __init__(self, data, dtype=None, requires_grad=False):
        if isinstance(data, Tensor):
            data = np.asarray(data)  # refuses if a gradient would be lost
        self._data = guards.array_of(data, dtype, requires_grad)
        self._operation, self._inputs, self._values, self._options = None, (), None, None
        self._time, self._written, self._grad = 0, [0], None
        self.requires_grad = bool(requires_grad)

    @property
    def data(self) -> ndarray:
        """The plain NumPy array. What is computed from it has no gradient."""
        return self._data

    @data.setter
    def data(self, value):
        """The plain NumPy array. An array that is assigned is taken over, not copied."""
        if type(value) is not ndarray:
            value = guards.array_of(value, None, self.requires_grad)
        if self.requires_grad:
            guards.differentiable(value.dtype)
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
        """The tensor with its last two axes swapped: each matrix transposed."""
        return np.swapaxes(self, -1, -2)

    def _note_write(self):
        self._shared_time()[0] = _clock()

    def _shared_time(self):
        """The list `_written`, ready to be shared with a view."""
        if self._written is NEVER:
            self._written = [0]
        return self._written

    def backward(self, gradient=None, create_graph=False) -> None:
        """Add dL/dx to `.grad` of every leaf x that this tensor L was computed from.

        gradient: dL/d(self), array of this shape; may be left out for a single number (then 1).
        create_graph: record the backward pass too, so that gradients can be differentiated.
        Gradients add up over several calls; set `.grad = None` (or `zero_grad()`) in between.
        """
        if not self.requires_grad:
            raise RuntimeError(guards.NO_GRAPH)
        g = guards.first_gradient(self, gradient, Tensor if create_graph else ndarray)
        grads = backward_pass(self, g, create_graph)
        with _accumulating:
            while grads:  # not a for loop: `is_shared` counts every reference to the array
                x, g = grads.popitem()
                if create_graph or guards.is_shared(g):
                    g = g.copy()  # it may be the gradient of another tensor too
                x._grad = g if x._grad is None else guards.as_array(x._grad + g)

    def detach(self) -> "Tensor":
        """The same values (shared memory) as a tensor that remembers nothing."""
        return from_numpy(self._data, self._shared_time())

    def numpy(self) -> ndarray:
        """The plain array, not a copy. What is computed from it has no gradient."""
        return self._data

    def item(self) -> float:
        """The only element, as a Python number."""
        return self._data.item()

    # NumPy hands its functions over to these two (NEP 13 and NEP 18)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or kwargs:
            raise guards.no_ufunc_option(ufunc, method, kwargs)
        return _implementation(ufunc)(*inputs)

    def __array_function__(self, func, types, args, kwargs):
        return _implementation(func)(*args, **kwargs)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise TypeError(guards.LOST)
        return np.array(self._data, dtype=dtype, copy=copy)


def tensor(data, dtype=None, requires_grad=False) -> Tensor:
    """A new tensor with a copy of `data`: a number, a list, an array.

    Python floats become float32; integers stay integers and booleans booleans, but both become
    float32 with requires_grad. Arrays and NumPy's own numbers keep their dtype.
    """
    return Tensor(data, dtype, requires_grad)


def from_numpy(array, written=NEVER) -> Tensor:
    """A tensor around the array itself, not a copy, without gradient."""
    t = new(Tensor)  # without __init__ and its checks
    t._data, t._written = array, written
    t._operation = t._values = t._options = t._grad = None
    t._inputs, t._time, t.requires_grad = (), 0, False
    return t


_accumulating = fork_safe(RLock())  # one thread at a time adds to `.grad`


# ---------------------------------------------------------------- 2. operations


class _Mode(local):
    grad_enabled = True  # each thread starts so


_mode = _Mode()


@contextmanager
def set_grad_enabled(enabled):
    """Record operations or not inside the block, in this thread; afterwards as before."""
    mine, before = _mode.__dict__, _mode.grad_enabled  # of this thread, wherever the block ends
    try:
        mine["grad_enabled"] = enabled
        yield
    finally:
        mine["grad_enabled"] = before


def no_grad():
    """`with no_grad():` nothing is recorded, in this thread and inside the block only."""
    return set_grad_enabled(False)


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread at the moment."""
    return _mode.grad_enabled


class Operation:
    """What the engine knows of a primitive: its name, and how gradients pass through it.

    rules       one function per input: (g, y, *inputs) -> gradient of that input
    joint       or one function for all: (g, y, *inputs) -> gradients of all inputs
    parameters  what the function takes, as inspect.Parameter; None if its rules are not checked
    """

    __slots__ = ("joint", "name", "parameters", "rules")

    def __init__(self, name, parameters=None):
        self.name, self.parameters = name, parameters
        self.rules, self.joint = guards.no_rules(name, parameters or ())

    def defvjp(self, *rules):
        """Set the rules (vjp: vector-Jacobian product), in the order of the inputs."""
        self.rules, self.joint = guards.checked_rules(self, rules), None

    def defvjp_joint(self, rule):
        """Set one rule that returns a sequence with the gradients of all inputs."""
        guards.callable_as_rule(self, rule)
        self.joint = rule


def primitive(f) -> "Primitive":
    """Make a NumPy function differentiable. Its rules are added with `.defvjp`.

        @primitive
        def scale(x, c):
            return x * c
        scale.defvjp(lambda g, y, x, c: g * c,      # dL/dx
                     lambda g, y, x, c: g * x)      # dL/dc, or None if c never has a gradient

    f sees plain arrays and returns one array. A rule gets the gradient g of the output, the
    output y, and the arguments of the call; it returns an array in the shape of its input
    (if NumPy broadcast the input, the engine sums that up again) and must not change what it
    gets. Written with NumPy functions, a rule can itself be differentiated.

    Tensors are seen among the inputs that f takes by position; for a list of them take *xs.
    """
    op = Operation(guards.name_of(f), tuple(signature(f).parameters.values()))

    @wraps(f)
    def apply(*inputs, **options):
        if options:
            inputs, options = guards.by_position(f, op.name, inputs, options, Tensor)
        values = []
        for x in inputs:
            values.append(x._data if isinstance(x, Tensor) else x if type(x) in OWN else own(x))
        # an empty ** takes time too
        return record(op, f(*values, **options) if options else f(*values), inputs, values, options)

    apply.operation, apply.defvjp, apply.defvjp_joint = op, op.defvjp, op.defvjp_joint
    return apply


def record(op, y, inputs, values, options):
    """Wrap the output y of an operation; remember how it was made if a gradient is wanted.

    values: the inputs, with plain arrays in place of Tensors; options: the keyword arguments.
    """
    if type(y) is not ndarray or y.dtype is not FLOAT32:
        y = guards.result_array(op.name, y, values)
    tensors, wanted, written, base = [], False, NEVER, y.base
    for x in inputs:
        if isinstance(x, Tensor):
            tensors.append(x)
            wanted = wanted or x.requires_grad
            if (base is not None or y is x._data) and guards.share_memory(y, x._data):
                written = x._shared_time()  # y is a view: a write to the one is one to the other
        else:
            tensors.append(None)
    if not (wanted and _mode.grad_enabled and (y.dtype is FLOAT32 or y.dtype.kind == "f")):
        return from_numpy(y, written)
    t = new(Tensor)
    t._data, t._written, t._time, t._grad, t.requires_grad = y, written, _clock(), None, True
    t._operation, t._inputs, t._values, t._options = op, tensors, values, options
    return t


# ---------------------------------------------------------------- 3. the chain rule, backwards


def backward_pass(root, gradient, create_graph=False, retain_graph=False, targets=None):
    """dL/dx for every leaf x below root (or for the `targets` only), as a dict {x: gradient}.

    Every result is younger than its inputs, so going through the graph from the youngest to the
    oldest meets each tensor after everything that was computed from it: when its turn comes,
    its gradient is complete. No recursion, so a chain may be as long as memory allows.

        for t in results:                                     # youngest first
            g = grads.pop(t)                                  # dL/dt
            for x, rule in zip(t._inputs, t._operation.rules):
                if x in grads:                                # its gradient is needed
                    grads[x] += rule(g, t, *values of the inputs)
        return grads                                          # left: those of the leaves

    With create_graph the rules get Tensors instead of arrays; being NumPy code they run just the
    same, and are recorded. Otherwise the graph is freed on the way, unless `retain_graph`: then
    another backward pass can follow (a Jacobian takes one for each row). The pass ends at the
    targets; what does not lead to them is neither computed nor freed.
    """
    results, grads = collect_graph(root)
    if targets is not None:
        results, grads = guards.leading_to(targets, results, grads)
    grads[root] = gradient  # of the others: None until the first term arrives
    # owned: tensors whose gradient is a sum made here, so that later terms are added in place
    owned, kind = set(), Tensor if create_graph else ndarray
    with set_grad_enabled(create_graph):
        for t in results:  # youngest first
            g = grads.pop(t)  # dL/dt
            op, inputs, y, values, options = t._operation, t._inputs, t._data, t._values, t._options
            if create_graph:
                y, values = t, [v if x is None else x for x, v in zip(inputs, values, strict=True)]
            rules, arguments = op.rules, (g, y, *values)
            if op.joint is not None:
                rules = guards.one_rule_each(op, inputs, grads, op.joint(*arguments, **options))
            for x, rule in zip(inputs, rules):  # noqa: B905 - optional inputs have rules too
                if x in grads:  # its gradient is needed
                    g_x = rule(*arguments, **options) if options else rule(*arguments)
                    v, total = x._data, grads[x]
                    if type(g_x) is not kind or g_x.shape != v.shape or g_x.dtype is not v.dtype:
                        g_x = guards.unbroadcast(g_x, v, op.name, kind)
                    if total is None:  # g_x may be shared with another tensor: never written to
                        grads[x] = g_x
                    elif x in owned:
                        total += g_x  # in place
                    else:
                        grads[x] = guards.as_array(total + g_x)
                        if not create_graph:
                            owned.add(x)
            if not (create_graph or retain_graph):
                t._inputs = t._values = t._options = None
    if targets is not None:  # one target may have been reached through another one only
        grads = {x: g for x, g in grads.items() if g is not None}
    return grads


def collect_graph(root):
    """All results below root, youngest first, and {x: None} for all x that need a gradient."""
    results, needed = ([] if root._operation is None else [root]), {root: None}
    for t in results:  # grows while we walk
        if t._inputs is None:
            raise RuntimeError(guards.FREED)
        if t._written[0] > t._time:
            raise RuntimeError(guards.written(t._operation.name))
        for x in t._inputs:
            if x is None:
                continue
            if x._written[0] > t._time:
                raise RuntimeError(guards.written(t._operation.name))
            if x.requires_grad and x not in needed:
                needed[x] = None
                if x._operation is not None:
                    results.append(x)
    results.sort(key=attrgetter("_time"), reverse=True)
    return results, needed


# ---------------------------------------------------------------- 4. NumPy's functions on Tensors

NUMPY = {}  # NumPy function -> what a Tensor does in its place


def implements(*functions):
    """Let NumPy's `functions`, called on a Tensor, run the decorated function instead."""

    def register(f):
        NUMPY.update(dict.fromkeys(functions, f))
        return f

    return register


def _implementation(function):
    if function not in NUMPY:
        raise guards.no_numpy_rule(function)
    return NUMPY[function]
