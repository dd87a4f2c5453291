"""Reverse-mode automatic differentiation on NumPy arrays: the whole engine.

An operation is a NumPy function, and its derivative rule stands right under it:

    @primitive
    def tanh(x):
        return np.tanh(x)
    tanh.defvjp(lambda g, y, x: g * (1 - y * y))

Read the file from top to bottom:

1. `Tensor`    an array that remembers which operation made it, from which inputs
2. `primitive` turns a NumPy function into an operation that remembers
3. `sweep`     goes back through what was remembered and applies the rules (the chain rule)
4. `implements` lets NumPy's own functions (np.tanh) run the operation when they meet a Tensor

Letters: y is the output of an operation and g = dL/dy the gradient that arrives at it; a rule
returns g · dy/dx, the gradient with respect to the input x, in the shape of x.
"""

import threading
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from itertools import count
from operator import attrgetter

import numpy as np

DEFAULT_DTYPE = np.dtype(np.float32)  # of Python numbers and lists; arrays keep theirs
FLOAT64 = np.dtype(np.float64)
ndarray = np.ndarray

NUMPY = {}  # NumPy function -> what a Tensor does in its place; filled by `implements`


class _Mode(threading.local):  # one per thread
    recording = True


_mode = _Mode()
_clock = count(1).__next__  # creation order of results; every input is older than its output


# ---------------------------------------------------------------- 1. an array with a memory


class Tensor:
    """An array, its gradient, and the operation that made it.

    data           the plain NumPy array
    grad           dL/d(data) after `L.backward()`; None before. Only on tensors made by hand
    requires_grad  whether gradients are wanted; results inherit it from their inputs
    _node          None for a tensor made by hand, else (operation, inputs as Tensors or None,
                   inputs as arrays, keyword arguments, version of the memory they stand in)
    _version       [number of writes], one list for all tensors that share the same memory

    Writing through a Tensor (`x[...] = v`, `x.data = v`, `x.data -= v`) is counted, so that
    `backward` can refuse values that changed after they were used. Writing into the bare array
    (`x.data[0] = v`, `x.numpy()[0] = v`) cannot be seen: do it only between two graphs.
    """

    __slots__ = ("__weakref__", "_data", "_node", "_order", "_version", "grad", "requires_grad")

    def __init__(self, data, dtype=None, requires_grad=False):
        self._data = array_of(data, dtype)
        self._node, self._order, self._version, self.grad = None, 0, [0], None
        self.requires_grad = bool(requires_grad)
        if requires_grad and self._data.dtype.kind != "f":
            raise TypeError(
                f"Tensor: only floating-point data can require a gradient, got "
                f"{self._data.dtype}; convert it first, for example with .astype(np.float32)"
            )

    @property
    def data(self):
        return self._data

    @data.setter
    def data(self, value):
        self._data = value if type(value) is ndarray else array_of(value)
        self._version[0] += 1

    def backward(self, gradient=None, create_graph=False):
        """Set `.grad` of every tensor that this one was computed from and that was made by hand.

        gradient: dL/d(self), array of this shape; may be left out for a single number (then 1).
        create_graph: record the backward pass too, so that gradients can be differentiated.
        Gradients add up over several calls; set `.grad = None` (or `zero_grad()`) in between.
        """
        if not self.requires_grad:
            raise RuntimeError(
                "backward: this tensor does not depend on anything that requires a gradient. "
                "Was requires_grad=True forgotten, or was it computed under no_grad() or from "
                "plain arrays (.data, .numpy(), .detach())?"
            )
        found = sweep(self, _seed(self, gradient, create_graph), create_graph)
        for x, g in found.items():
            if not create_graph:  # the array may be shared with another tensor: take a copy
                x.grad = g.copy() if x.grad is None else x.grad + g
            else:
                x.grad = g if x.grad is None else x.grad + g

    def detach(self):
        """The same values (shared memory) as a tensor that remembers nothing."""
        return _result(self._data, False, None, 0, self._version)

    def numpy(self):
        """The plain array, not a copy. What is computed from it has no gradient."""
        return self._data

    def item(self):
        """The only element, as a Python number."""
        return self._data.item()

    # NumPy hands its functions over to these two (NEP 13 and NEP 18).

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__":
            raise TypeError(f"np.{ufunc.__name__}.{method} has no derivative rule for Tensors")
        if kwargs:
            raise TypeError(
                f"np.{ufunc.__name__} on Tensors takes no {', '.join(kwargs)}=; writing into an "
                f"array or leaving out elements would lose the gradient (use np.where)"
            )
        return _implementation(ufunc)(*inputs)

    def __array_function__(self, func, types, args, kwargs):
        return _implementation(func)(*args, **kwargs)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise TypeError(
                "a Tensor that requires a gradient does not turn into a plain array by itself, "
                "because the gradient would be lost: say .numpy() (plain array) or .detach()"
            )
        return np.array(self._data, dtype=dtype, copy=copy)


def tensor(data, dtype=None, requires_grad=False):
    """A new tensor with a copy of `data`: a number, a list, an array."""
    return Tensor(data, dtype, requires_grad)


def array_of(data, dtype=None):
    """A fresh array of `data`; Python numbers and lists of them become the default float type."""
    if isinstance(data, Tensor):
        if data.requires_grad:
            raise TypeError("a Tensor of a Tensor would lose the gradient: use it as it is, or "
                            ".detach() it first")  # fmt: skip
        data = data._data
    array = np.array(data, dtype=dtype)
    if array.dtype.kind not in "fiubc":
        raise TypeError(
            f"Tensor: expected numbers or booleans, got {array.dtype} from a "
            f"{type(data).__name__}; all rows of a list must have the same length"
        )
    if dtype is None and not _has_dtype(data) and array.dtype.kind != "b":
        array = array.astype(np.result_type(array, np.complex64) if array.dtype.kind == "c"
                             else DEFAULT_DTYPE)  # fmt: skip
    return array


def _has_dtype(data):
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return hasattr(data, "dtype")


def _result(y, requires_grad, node, order, version):
    t = object.__new__(Tensor)  # past __init__ and its checks: this is the hot path
    t._data = y
    t.grad = None
    t.requires_grad = requires_grad
    t._node = node
    t._order = order
    t._version = version
    return t


# ---------------------------------------------------------------- 2. operations


@contextmanager
def no_grad():
    """`with no_grad():` nothing is recorded, in this thread and inside the block only."""
    with recording(False):
        yield


@contextmanager
def recording(on):
    before, _mode.recording = _mode.recording, on
    try:
        yield
    finally:
        _mode.recording = before


class Operation:
    """What the engine knows of a primitive: its name, and how gradients pass through it.

    rules   one function per input: (g, y, *inputs) -> gradient of that input
    joint   or one function for all: (g, y, *inputs) -> gradients of all inputs
    """

    __slots__ = ("joint", "name", "rules")

    def __init__(self, name, n_inputs):
        self.name, self.joint = name, None
        self.rules = tuple(_missing_rule(name, i) for i in range(n_inputs))

    def defvjp(self, *rules):
        """Set the rules (vjp: vector-Jacobian product), in the order of the inputs."""
        rest = self.rules[len(rules) :]
        self.rules = (*[r or _missing_rule(self.name, i) for i, r in enumerate(rules)], *rest)

    def defvjp_joint(self, rule):
        """Set one rule that returns a sequence with the gradients of all inputs."""
        self.joint = rule


def _missing_rule(name, i):
    def missing(*_, **__):
        raise TypeError(
            f"backward: {name} has no derivative rule for its input {i}: add one with "
            f"{name}.defvjp(...), or .detach() that input if no gradient is wanted"
        )

    return missing


def primitive(f):
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
    """
    op = Operation(f.__name__, n_inputs=len(signature(f).parameters))

    @wraps(f)
    def apply(*inputs, **kwargs):
        if kwargs and any(isinstance(v, Tensor) for v in kwargs.values()):
            bound = signature(f).bind(*inputs, **kwargs)  # only inputs by position have rules
            inputs, kwargs = bound.args, bound.kwargs
        arrays = tuple([a._data if isinstance(a, Tensor) else a for a in inputs])
        return record(op, f(*arrays, **kwargs), inputs, arrays, kwargs)

    @wraps(f)
    def apply_two(a, b):  # the same for two operands, without loops: most operations are these
        if isinstance(a, Tensor):
            x, seen, wanted = a._data, a._version[0], a.requires_grad
        else:
            x, seen, wanted, a = a, 0, False, None
        if isinstance(b, Tensor):
            z = b._data
            seen += b._version[0]
            wanted = wanted or b.requires_grad
        else:
            z, b = b, None
        y = f(x, z)
        if type(y) is not ndarray or y.dtype is FLOAT64:
            y = _settle(op, y, (x, z))
        if y.base is not None:
            return record(op, y, (a, b), (x, z), {})
        if wanted and _mode.recording:
            return _result(y, True, (op, (a, b), (x, z), {}, seen), _clock(), [0])
        return _result(y, False, None, 0, [0])

    parameters = signature(f).parameters.values()
    plain = all(p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)
    out = apply_two if plain and len(parameters) == 2 else apply
    out.operation, out.defvjp, out.defvjp_joint = op, op.defvjp, op.defvjp_joint
    return out


def record(op, y, inputs, arrays, kwargs):
    """Wrap the output y of an operation; remember how it was made if a gradient is wanted."""
    if type(y) is not ndarray or y.dtype is FLOAT64:
        y = _settle(op, y, arrays)
    parents = tuple([a if isinstance(a, Tensor) else None for a in inputs])
    version = [0]
    if y.base is not None:  # a view: writes to it are writes to its input
        for a in parents:
            if a is not None and (y.base is a._data or y.base is a._data.base):
                version = a._version
    if not _mode.recording or not any([a is not None and a.requires_grad for a in parents]):
        return _result(y, False, None, 0, version)
    if y.dtype.kind != "f":  # comparisons, rounding to integers: no derivative
        return _result(y, False, None, 0, version)
    seen = version[0] + sum([a._version[0] for a in parents if a is not None])
    return _result(y, True, (op, parents, arrays, kwargs, seen), _clock(), version)


def _settle(op, y, arrays):
    """A plain array; float64 only if an operand was (NumPy makes it of float32 with int64)."""
    y = np.asarray(y)
    if y.dtype.kind not in "fiubc":
        raise TypeError(f"{op.name}: expected a result of numbers, got {y.dtype}")
    if y.dtype is FLOAT64 and not any(
        [a is FLOAT64 or (isinstance(a, ndarray) and a.dtype is FLOAT64) for a in arrays]
    ):
        y = y.astype(DEFAULT_DTYPE)
    return y


# ---------------------------------------------------------------- 3. the chain rule, backwards

_creation_order = attrgetter("_order")
_FREED = (None, (), (), {}, -1)  # stands in for a memory that was used up


def sweep(root, seed, create_graph=False, keep=False, targets=None):
    """dL/dx for every x made by hand (or for the `targets` only), as a dict {x: gradient}.

    Every result is younger than its inputs, so going through the graph from the youngest to the
    oldest meets each tensor after everything that was computed from it: when its turn comes,
    its gradient is complete. No recursion, so a chain may be as long as memory allows.

    With create_graph the rules get Tensors instead of arrays; being NumPy code they run just the
    same, and are recorded. Otherwise the graph is forgotten on the way, unless `keep`.
    """
    nodes, needed = reachable(root)
    if targets is not None:
        needed = _leading_to(targets, nodes)
        nodes = [t for t in nodes if t in needed and t not in targets]
    grads, owned = {root: seed}, set()
    with recording(create_graph):
        for t in nodes:
            g = grads.pop(t)
            op, parents, arrays, kwargs, _ = t._node
            y = t._data
            if create_graph:
                y = t
                arrays = [x if a is None else a for a, x in zip(parents, arrays, strict=True)]
            rules = op.rules if op.joint is None else op.joint(g, y, *arrays, **kwargs)
            for a, rule in zip(parents, rules):  # noqa: B905 - options behind have no rule
                if a not in needed:
                    continue
                d = rule(g, y, *arrays, **kwargs) if op.joint is None else rule
                x = a._data
                if type(d) is not ndarray or d.shape != x.shape or d.dtype is not x.dtype:
                    d = _fit(d, a, op, create_graph)
                if a not in grads:
                    grads[a] = d  # perhaps shared with another tensor: never written to
                elif a in owned:
                    np.add(grads[a], d, out=grads[a])
                else:
                    grads[a] = grads[a] + d
                    if not create_graph:
                        owned.add(a)  # this sum is ours alone: later terms are added in place
            if not (create_graph or keep):
                t._node = _FREED
    return grads


def reachable(root):
    """All results below root, youngest first, and the set of all tensors that need a gradient."""
    nodes, needed = ([] if root._node is None else [root]), {root}
    for t in nodes:  # grows while we walk
        op, parents, _, _, seen = t._node
        version = t._version[0]
        for a in parents:
            if a is None:
                continue
            version += a._version[0]
            if a.requires_grad and a not in needed:
                needed.add(a)
                if a._node is not None:
                    nodes.append(a)
        if version != seen:
            _refuse(t)
    nodes.sort(key=_creation_order, reverse=True)
    return nodes, needed


def _leading_to(targets, nodes):
    """The tensors through which the targets reach the result, the targets included."""
    on_the_way = set(targets)
    for t in reversed(nodes):  # oldest first
        if any([a in on_the_way for a in t._node[1]]):
            on_the_way.add(t)
    return on_the_way


def _refuse(t):
    if t._node is _FREED:
        raise RuntimeError(
            "backward: this graph was already used and forgotten by an earlier backward(). "
            "Compute the result again, or add the losses up and call backward() once"
        )
    raise RuntimeError(
        f"backward: an input or the result of {t._node[0].name} was written to after it was used, "
        f"so its derivative would be wrong. Write into a copy instead (np.copy), or after backward"
    )


def _seed(root, gradient, create_graph):
    """dL/d(root) in the shape and dtype of root."""
    if gradient is None:
        if root.size != 1:
            raise RuntimeError(
                f"backward: only a single number has a gradient by itself, this tensor has shape "
                f"{root.shape}. Reduce it (sum, mean), or pass gradient= of that shape"
            )
        gradient = np.ones_like(root._data)
    value = gradient if isinstance(gradient, Tensor) else np.asarray(gradient, root.dtype)
    if value.shape != root.shape:
        raise ValueError(
            f"backward: gradient has shape {value.shape}, but the tensor has shape {root.shape}"
        )
    if create_graph:
        return value if isinstance(value, Tensor) else Tensor(value)
    return value._data if isinstance(value, Tensor) else value


def _fit(d, a, op, create_graph):
    """Bring the gradient that a rule returned to the shape and dtype of the input a."""
    if not isinstance(d, Tensor):
        if d is None:
            raise ValueError(f"backward: a rule of {op.name} returned None; is `return` missing?")
        d = np.asarray(d)
    if d.dtype.kind not in "fiub":
        raise TypeError(f"backward: a rule of {op.name} returned {d.dtype}, expected real numbers")
    if d.shape != a.shape:  # was broadcast: every copy contributed, so sum over the copies
        extra = d.ndim - a.ndim
        ones = tuple([i + extra for i, n in enumerate(a.shape) if n == 1 and d.shape[i + extra] != 1]
                     if extra >= 0 else [])  # fmt: skip
        summed = d.sum(axis=(*range(extra), *ones), keepdims=True) if extra >= 0 else d
        if extra < 0 or summed.shape[extra:] != a.shape:
            raise ValueError(
                f"backward: a rule of {op.name} returned shape {d.shape} for an input of shape "
                f"{a.shape}; a gradient has the shape of its input (broadcast axes may be left in)"
            )
        d = summed.reshape(a.shape)
    if d.dtype != a.dtype:
        d = d.astype(a.dtype)
    return d if isinstance(d, Tensor) or not create_graph else Tensor(d)


# ---------------------------------------------------------------- 4. NumPy's functions on Tensors


def implements(*functions):
    """Let NumPy's `functions`, called on a Tensor, run the decorated function instead."""

    def register(f):
        NUMPY.update(dict.fromkeys(functions, f))
        return f

    return register


def _implementation(func):
    if func not in NUMPY:
        module = getattr(func, "__module__", None) or "numpy"
        name = f"{module}.{func.__name__}".replace("numpy", "np", 1)
        raise TypeError(
            f"{name} has no derivative rule for Tensors. Without gradient: {name}(x.numpy()). "
            f"With one: write it with functions that have a rule, or as a new operation "
            f"(@ta.primitive, then .defvjp)"
        )
    return NUMPY[func]
