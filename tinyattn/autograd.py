"""Reverse-mode automatic differentiation on NumPy arrays: the whole engine.

An operation is a NumPy function, and its derivative rule stands right under it:

    @primitive
    def tanh(x):
        return np.tanh(x)
    tanh.defvjp(lambda g, y, x: g * (1 - y * y))

Read the file from top to bottom:

1. `Tensor`     an array that remembers which operation made it, from which inputs
2. `primitive`  turns a NumPy function into an operation that remembers
3. `sweep`      goes back through what was remembered and applies the rules (the chain rule)
4. `implements` lets NumPy's own functions (np.tanh) run the operation when they meet a Tensor

Letters: y is the output of an operation and g = dL/dy the gradient that arrives at it; a rule
returns g · dy/dx, the gradient with respect to the input x, in the shape of x.

`guards` holds the checks and their words, and `fit`, which sums a gradient over broadcast axes.
"""

from contextlib import contextmanager
from functools import wraps
from inspect import signature
from itertools import count
from operator import attrgetter
from threading import get_ident

import numpy as np

from tinyattn import guards

ndarray, FLOAT32 = np.ndarray, np.dtype(np.float32)

_new = object.__new__
_clock = count(1).__next__
NEVER = (0,)  # a time before all others, which nobody can write to
_silent = set()  # the threads (their numbers) that record nothing at the moment


# ---------------------------------------------------------------- 1. an array with a memory


class Tensor:
    """An array, its gradient, and the operation that made it.

    data           the plain NumPy array
    grad           dL/d(data) after `L.backward()`; None before. Only on tensors made by hand
    requires_grad  whether gradients are wanted; results inherit it, except under no_grad()
    _operation     the operation that made it; None for a tensor made by hand
    _inputs        its inputs as Tensors, None in place of any other; () for a tensor made by
                   hand, and None for a result whose graph was forgotten
    _call          what its rule is called with: (inputs as plain values, keyword arguments or
                   None). A shortcut is None: one or two Tensors, whose values are their `data`
    _time          when it was made, 0 if by hand; every input is older than its output
    _written       [when its values were last written to], one list for all tensors that share
                   the same memory; NEVER for a result that nobody wrote to or made a view of

    Time is counted in results and writes (`_clock`).

    Writing through a Tensor (`x[...] = v`, `x.data = v`, `x.data -= v`) is noted, so that
    `backward` can refuse values that are younger than the result computed from them. Writing into
    the bare array (`x.data[0] = v`, `x.numpy()[0] = v`) cannot be seen: do it only between two
    graphs. `x.data = array` takes the array over: write to it through x alone from then on.
    """

    __slots__ = ("__weakref__", "_call", "_data", "_inputs", "_operation", "_time", "_written",
                 "grad", "requires_grad")  # fmt: skip

    def __init__(self, data, dtype=None, requires_grad=False):
        if isinstance(data, Tensor):
            data = np.asarray(data)  # refuses if a gradient would be lost
        self._data = guards.array_of(data, dtype)
        if requires_grad:
            guards.differentiable(self._data.dtype)
        self._operation, self._inputs, self._call = None, (), None
        self._time, self._written, self.grad = 0, [0], None
        self.requires_grad = bool(requires_grad)

    @property
    def data(self):
        return self._data

    @data.setter
    def data(self, value):
        value = value if type(value) is ndarray else guards.array_of(value)
        if self.requires_grad:
            guards.differentiable(value.dtype)
        self._data = value
        self._note_write()

    def _note_write(self):
        self._shared()[0] = _clock()

    def _shared(self):
        """The list `_written`, ready to be shared with a view."""
        if self._written is NEVER:
            self._written = [0]
        return self._written

    def backward(self, gradient=None, create_graph=False):
        """Set `.grad` of every tensor that this one was computed from and that was made by hand.

        gradient: dL/d(self), array of this shape; may be left out for a single number (then 1).
        create_graph: record the backward pass too, so that gradients can be differentiated.
        Gradients add up over several calls; set `.grad = None` (or `zero_grad()`) in between.
        """
        if not self.requires_grad:
            raise RuntimeError(guards.NO_GRAPH)
        g = guards.seed(self, gradient)
        if create_graph:
            g = g if isinstance(g, Tensor) else Tensor(g)
        elif isinstance(g, Tensor):
            g = g._data
        found = sweep(self, g, create_graph)
        while found:  # and not for x in found: what `held_elsewhere` counts must be all
            x, g_x = found.popitem()
            if create_graph or guards.held_elsewhere(g_x):
                g_x = g_x.copy()  # it may be the gradient of another tensor too
            x.grad = g_x if x.grad is None else x.grad + g_x
            if isinstance(x.grad, np.generic):  # NumPy made a scalar of two 0-d arrays
                x.grad = np.asarray(x.grad)

    def detach(self):
        """The same values (shared memory) as a tensor that remembers nothing."""
        return _result(self._data, self._shared())

    def numpy(self):
        """The plain array, not a copy. What is computed from it has no gradient."""
        return self._data

    def item(self):
        """The only element, as a Python number."""
        return self._data.item()

    # NumPy hands its functions over to these two (NEP 13 and NEP 18)

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
            raise TypeError(guards.LOST)
        return np.array(self._data, dtype=dtype, copy=copy)


def tensor(data, dtype=None, requires_grad=False):
    """A new tensor with a copy of `data`: a number, a list, an array."""
    return Tensor(data, dtype, requires_grad)


def taken_over(y):
    """A tensor around the array y itself, without gradient: for kernels, which made y for it."""
    return _result(y, NEVER)


def _result(y, written):
    """A tensor without a gradient around the array y."""
    t = _new(Tensor)  # past __init__ and its checks
    t._data = y
    t._operation = t._call = t.grad = None
    t._inputs = ()
    t._time = 0
    t._written = written
    t.requires_grad = False
    return t


# ---------------------------------------------------------------- 2. operations


@contextmanager
def recording(on):
    """Record or not inside the block, in this thread; what was before comes back at its end."""
    thread = get_ident()
    before = thread not in _silent
    try:
        _record(thread, on)
        yield
    finally:
        _record(thread, before)


def _record(thread, on):
    if on:
        _silent.discard(thread)
    else:
        _silent.add(thread)


def no_grad():
    """`with no_grad():` nothing is recorded, in this thread and inside the block only."""
    return recording(False)


def silent():
    """Whether nothing is recorded in this thread at the moment."""
    return get_ident() in _silent


class Operation:
    """What the engine knows of a primitive: its name, and how gradients pass through it.

    rules       one function per input: (g, y, *inputs) -> gradient of that input
    joint       or one function for all: (g, y, *inputs) -> gradients of all inputs
    parameters  what the function takes, as inspect.Parameter; None if its rules are not checked
    """

    __slots__ = ("joint", "name", "parameters", "rules")

    def __init__(self, name, parameters=None):
        self.name, self.parameters, self.joint, self.rules = name, parameters, None, ()
        if any(p.kind is p.VAR_POSITIONAL for p in parameters or ()):  # f(*xs): one rule for all
            self.joint = guards.missing_rule(name)
        else:
            self.rules = tuple([guards.missing_rule(name, i) for i in range(len(parameters or ()))])

    def defvjp(self, *rules):
        """Set the rules (vjp: vector-Jacobian product), in the order of the inputs."""
        if len(rules) > len(self.rules):
            raise guards.too_many_rules(self.name, len(rules), len(self.rules))
        for rule in rules:
            guards.callable_as_rule(self, rule)
        rest = self.rules[len(rules) :]
        given = (r or guards.missing_rule(self.name, i) for i, r in enumerate(rules))
        self.rules, self.joint = (*given, *rest), None

    def defvjp_joint(self, rule):
        """Set one rule that returns a sequence with the gradients of all inputs."""
        guards.callable_as_rule(self, rule)
        self.joint = rule


def record(op, y, inputs, values, named=None):
    """Wrap the output y of an operation; remember how it was made if a gradient is wanted.

    values: the inputs, with plain arrays in place of Tensors; named: the keyword arguments.
    """
    if type(y) is not ndarray or y.dtype is not FLOAT32:
        y = guards.settle(op.name, y, values)
    tensors, wanted, written = [], False, NEVER
    for a in inputs:
        if not isinstance(a, Tensor):
            tensors.append(None)
            continue
        tensors.append(a)
        wanted = wanted or a.requires_grad
        if (y is a._data or y.base is not None) and _owner(y) is _owner(a._data):
            written = a._shared()  # a view: a write to the one is a write to the other
    t = _result(y, written)
    if wanted and get_ident() not in _silent and y.dtype.kind == "f":
        t._operation, t._inputs, t._call = op, tuple(tensors), (values, named or None)
        t._time, t.requires_grad = _clock(), True
    return t


def _owner(array):
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


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

    Tensors are seen among the inputs that f takes by position; for a list of them take *xs.
    """
    parameters = tuple(signature(f).parameters.values())
    op = Operation(guards.name_of(f), parameters)

    @wraps(f)
    def apply(*inputs, **kwargs):
        if kwargs and any(isinstance(v, Tensor) for v in kwargs.values()):
            bound = signature(f).bind(*inputs, **kwargs)  # only inputs by position have rules
            bound.apply_defaults()
            inputs, kwargs = bound.args, bound.kwargs
            guards.no_tensor_by_name(op.name, kwargs, Tensor)
        values = tuple([a._data if isinstance(a, Tensor) else a for a in inputs])
        return record(op, f(*values, **kwargs), inputs, values, kwargs)

    # The same as `apply` and `record` for one and for two operands, without loops: most operations
    # are these. The rest takes the long way: dtypes that may have to be put right, and views.

    @wraps(f)
    def apply_one(a):
        if not isinstance(a, Tensor):
            a = taken_over(a) if type(a) is ndarray else Tensor(a)
        x = a._data
        y = f(x)
        if type(y) is not ndarray or y.dtype is not FLOAT32 or y.base is not None or y is x:
            return record(op, y, (a,), (x,))
        if a.requires_grad and (not _silent or get_ident() not in _silent):
            t = _new(Tensor)
            t._data = y
            t._operation = op
            t._inputs = (a,)
            t._call = t.grad = None
            t._time = _clock()
            t._written = NEVER
            t.requires_grad = True
            return t
        return _result(y, NEVER)

    @wraps(f)
    def apply_two(a, b):
        mixed = False  # with a plain operand
        if isinstance(a, Tensor):
            x1, wanted = a._data, a.requires_grad
        else:
            x1, a, wanted, mixed = a, None, False, True
        if isinstance(b, Tensor):
            x2 = b._data
            wanted = wanted or b.requires_grad
        else:
            x2, b, mixed = b, None, True
        y = f(x1, x2)
        if (
            type(y) is not ndarray
            or y.dtype is not FLOAT32
            or y.base is not None
            or y is x1
            or y is x2
        ):
            return record(op, y, (a, b), (x1, x2))
        if wanted and (not _silent or get_ident() not in _silent):
            t = _new(Tensor)
            t._data = y
            t._operation = op
            t._inputs = (a, b)
            t._call = ((x1, x2), None) if mixed else None
            t.grad = None
            t._time = _clock()
            t._written = NEVER
            t.requires_grad = True
            return t
        return _result(y, NEVER)

    simple = all([p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters])
    out = apply
    if simple and len(parameters) in (1, 2):
        out = apply_one if len(parameters) == 1 else apply_two
        # Call a and b in the compiled function what f calls its parameters: then f(x=...) works and
        # Python's own errors name x. Only names change, the code finds its variables by position.
        names, code = [p.name for p in parameters], out.__code__
        out.__code__ = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
    out.operation, out.defvjp, out.defvjp_joint = op, op.defvjp, op.defvjp_joint
    return out


# ---------------------------------------------------------------- 3. the chain rule, backwards

_time = attrgetter("_time")
NOT_NEEDED = object()  # in place of a gradient that nobody asked for


def sweep(root, seed, create_graph=False, keep=False, targets=None):
    """dL/dx for every x made by hand (or for the `targets` only), as a dict {x: gradient}.

    Every result is younger than its inputs, so going through the graph from the youngest to the
    oldest meets each tensor after everything that was computed from it: when its turn comes,
    its gradient is complete. No recursion, so a chain may be as long as memory allows. In short:

        grads = {root: seed}
        for t in results:                                      # youngest first
            g = grads.pop(t)                                   # dL/dt
            for x, rule in zip(t.inputs, t.operation.rules):
                grads[x] += rule(g, t.data, *values of t.inputs)
        return grads                                           # left: those made by hand

    The rest is for speed, for checks, and for rules that answer for all inputs at once.

    With create_graph the rules get Tensors instead of arrays; being NumPy code they run just the
    same, and are recorded. Otherwise the graph is forgotten on the way, unless `keep`: then another
    sweep can follow (a Jacobian takes one for each row). At the targets the sweep ends; what does
    not lead to them is neither computed nor forgotten.
    """
    nodes, grads = reachable(root)
    if targets is not None:
        grads = _leading_to(targets, nodes, grads)
        nodes = [t for t in nodes if t in grads and t not in targets]
    # grads[x]: None as long as nothing arrived, then the sum of what did; no x that nobody needs
    grads[root] = seed
    owned, forget = set(), not (create_graph or keep)
    kind = Tensor if create_graph else ndarray
    pop, get, add = grads.pop, grads.get, np.add  # looked up once: this loop is the hot path
    with recording(create_graph):
        for t in nodes:
            g, y = pop(t), t._data
            op, inputs, call = t._operation, t._inputs, t._call
            rules, joint, n = op.rules, op.joint, 0  # n: 1 or 2 values, or 0 for the long way
            if call is None and joint is None and not create_graph:
                n, first, second = len(inputs), inputs[0]._data, inputs[-1]._data  # or first twice
            else:
                values, named = call or ([a._data for a in inputs], None)
                if create_graph:
                    y = t
                    values = [x if a is None else a for a, x in zip(inputs, values, strict=True)]
                if joint is not None:  # one rule for all: its answers stand in place of the rules
                    rules = joint(g, y, *values, **(named or {}))
                    guards.one_for_each(op.name, rules, [a in grads for a in inputs])
                elif len(values) == 2 and named is None:
                    n, (first, second) = 2, values
            i = -1
            for a in inputs:
                i += 1  # enumerate would cost more
                total = get(a, NOT_NEEDED)
                if total is NOT_NEEDED:
                    continue
                if n == 2:  # unpacking one or two values would cost more
                    d = rules[i](g, y, first, second)
                elif n == 1:
                    d = rules[0](g, y, first)
                elif joint is not None:
                    d = rules[i]
                elif named is not None:
                    d = rules[i](g, y, *values, **named)
                else:
                    d = rules[i](g, y, *values)
                x = a._data
                if type(d) is not kind or d.shape != x.shape or d.dtype is not x.dtype:
                    d = guards.fit(d, x, op.name)  # the sum over axes that NumPy broadcast
                    if isinstance(d, Tensor) != create_graph:
                        d = Tensor(d) if create_graph else d._data
                if total is None:
                    grads[a] = d  # perhaps shared with another tensor: never written to
                elif a in owned:
                    add(total, d, total)
                else:
                    total = total + d
                    if type(total) is ndarray:
                        owned.add(a)  # this sum is ours alone: later terms are added in place
                    elif not create_graph:
                        total = np.asarray(total)  # NumPy made a scalar of two 0-d arrays
                    grads[a] = total
            if forget:
                t._inputs = t._call = None
    if targets is not None:  # one target may have been reached through another one only
        grads = {x: g for x, g in grads.items() if g is not None}
    return grads


def reachable(root):
    """All results below root, youngest first, and {x: None} for all x that need a gradient."""
    nodes, needed = ([] if root._operation is None else [root]), {root: None}
    append = nodes.append
    for t in nodes:  # grows while we walk
        time, inputs = t._time, t._inputs
        if inputs is None:
            raise RuntimeError(guards.FREED)
        if t._written[0] > time:
            raise RuntimeError(guards.written(t._operation.name))
        for a in inputs:
            if a is None:
                continue
            if a._written[0] > time:
                raise RuntimeError(guards.written(t._operation.name))
            if a.requires_grad and a not in needed:
                needed[a] = None
                if a._operation is not None:
                    append(a)
    nodes.sort(key=_time, reverse=True)
    return nodes, needed


def _leading_to(targets, nodes, needed):
    """{x: None} for all x on a way from the root down to a target, the targets included."""
    on_the_way = {x: None for x in targets if x in needed}
    for t in reversed(nodes):  # oldest first
        if any(a in on_the_way for a in t._inputs):
            on_the_way[t] = None
    return on_the_way


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
