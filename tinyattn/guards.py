"""What the engine checks and puts right by itself, and what it refuses and in which words."""

import builtins
import dis
import sys
import warnings
from functools import lru_cache
from inspect import signature

import numpy as np

from tinyattn.hints import OF_FUNCTIONS, SCIPY
from tinyattn.memory import Block

DEFAULT_DTYPE = np.dtype(np.float32)  # of Python numbers and lists; arrays keep theirs
FLOAT64 = np.dtype(np.float64)

LOST = (
    "a Tensor that requires a gradient does not turn into a plain array by itself, because the "
    "gradient would be lost: say .numpy() (the plain array) or .detach()"
)
NO_GRAPH = (
    "backward: this tensor does not depend on anything that requires a gradient. Was "
    "requires_grad=True forgotten, or was it computed under no_grad() or from plain arrays "
    "(.data, .numpy(), .detach())?"
)
FREED = (
    "backward: this graph was freed by an earlier backward(), even if that raised an error. "
    "Compute the result again, or add the losses up and call backward() once"
)


class StateError(KeyError):
    """Saved values do not fit; unlike a bare KeyError it shows its message line by line."""

    def __str__(self):
        return self.args[0]


def written(name):
    """The message for an array that changed between its use in an operation and backward."""
    return (
        f"backward: an input or the result of {name} was written to after it was used, so its "
        f"derivative would be wrong. Write into a copy instead (np.copy), or after backward"
    )


def missing_rule(name, i=None):
    """A rule that says that there is none, for input i or for all inputs of f(*xs)."""
    which, add = ("", "defvjp_joint") if i is None else (f" for its input {i}", "defvjp")

    def missing(*_, **__):
        raise TypeError(
            f"backward: {name} has no derivative rule{which}: add one with {name}.{add}(...), "
            f"or .detach() that input if no gradient is wanted"
        )

    return missing


def name_of(f):
    """The name of a function that is to become an operation."""
    if not hasattr(f, "__name__"):
        raise TypeError(
            f"primitive: expected a function with a name, got a {type(f).__name__}; write it with "
            f"def"
        )
    return f.__name__.strip("_")


def no_rules(name, parameters):
    """(rules, joint) of a new operation: they raise, and say how to add a rule that is missing."""
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):  # f(*xs): one rule for all
        return (), missing_rule(name)
    return tuple([missing_rule(name, i) for i in range(len(parameters))]), None


def checked_rules(op, rules):
    """The rules given to an operation, and for each input without one a rule that says so."""
    if len(rules) > len(op.rules):
        raise ValueError(
            f"{op.name}.defvjp got {len(rules)} rules for {len(op.rules)} inputs; a function "
            f"f(*xs) takes one rule for all of them, with .defvjp_joint"
        )
    for rule in rules:
        callable_as_rule(op, rule)
    given = [rule or missing_rule(op.name, i) for i, rule in enumerate(rules)]
    return (*given, *op.rules[len(rules) :])


def by_position(f, name, inputs, options, Tensor):
    """The arguments of a call as (inputs, options), with every Tensor among the inputs."""
    if not any(isinstance(value, Tensor) for value in options.values()):
        return inputs, options
    try:
        bound = signature(f).bind(*inputs, **options)
    except TypeError:
        f(*inputs, **options)  # fails too, with a message that names the function
        raise
    bound.apply_defaults()
    for parameter, value in bound.kwargs.items():
        if isinstance(value, Tensor):
            raise TypeError(
                f"{name}: {parameter} is a Tensor, but what the function takes by name only has "
                f"no derivative rule: let it take {parameter} by position too, or pass "
                f"{parameter}.numpy()"
            )
    return bound.args, bound.kwargs


def callable_as_rule(op, rule):
    """Raise unless the rule of an operation is a function of g, y and what the operation takes."""
    if rule is None:
        return
    if not callable(rule):
        raise TypeError(f"{op.name}.defvjp: expected a function or None, got {rule!r}")
    code = getattr(rule, "__code__", None)
    if op.parameters is None or code is None or code.co_flags & 12:  # it takes *args or **kwargs
        return
    least = 2 + len([p for p in op.parameters if p.default is p.empty])  # 2: g and y
    takes = code.co_argcount + code.co_kwonlyargcount - hasattr(rule, "__self__")
    optional = len(rule.__defaults__ or ()) + len(rule.__kwdefaults__ or ())
    if takes < least or takes - optional > 2 + len(op.parameters):
        call = ", ".join(["g", "y", *[str(p) for p in op.parameters]])
        raise TypeError(
            f"{op.name}.defvjp: a rule is called as rule({call}), but {rule.__name__} takes "
            f"({', '.join(code.co_varnames[: code.co_argcount])})"
        )


def one_rule_each(op, inputs, needed, gradients):
    """The answer of a joint rule as one rule for each input, which returns what was found."""
    if not isinstance(gradients, tuple | list):
        raise TypeError(
            f"backward: the rule of {op.name} returned a {type(gradients).__name__}, expected a "
            f"list with the gradients of all inputs"
        )
    missing = [x for x in inputs[len(gradients) :] if x in needed]
    if missing or len(gradients) > len(inputs):
        raise ValueError(
            f"backward: the rule of {op.name} returned {len(gradients)} gradients for "
            f"{len(inputs)} inputs"
        )
    return [lambda *_, g=g, **__: g for g in gradients]


def no_ufunc_option(ufunc, method, options):
    """The error for np.add.reduce(x), np.add(x, y, out=...) and the like."""
    if method != "__call__":
        name = f"{ufunc.__name__}.{method}"
        other = OF_FUNCTIONS.get(name, "it with functions that have a rule, or pass x.numpy()")
        return TypeError(f"np.{name} has no derivative rule for Tensors: write {other}")
    return TypeError(
        f"np.{ufunc.__name__} on Tensors takes no {', '.join(options)}=; writing into an array or "
        f"leaving out elements would lose the gradient (use np.where)"
    )


def no_numpy_rule(function):
    """The error for a NumPy function that nobody has taught to record a graph."""
    name = function.__name__
    module = getattr(function, "__module__", None) or ("numpy" if hasattr(np, name) else "")
    name = f"{module}.{name}".replace("numpy", "np", 1).lstrip(".")
    new = "it with functions that have a rule, or as a new operation (@ta.primitive, then .defvjp)"
    return TypeError(
        f"{name} has no derivative rule for Tensors. Without gradient: pass x.numpy() in place of "
        f"the Tensor x. With one: write {SCIPY.get(name, new)}"  # its names have no module in front
    )


OWN = {np.ndarray, int, float, bool, type(None), tuple, str}  # what most operations are given
LIBRARIES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jaxlib": "JAX", "cupy": "CuPy"}


def own(x):
    """x as it is; TypeError if it is a tensor of another library, whose gradient would be lost."""
    library = LIBRARIES.get(type(x).__module__.partition(".")[0])
    if library is None:
        return x
    raise TypeError(
        f"an operation of tinyattn was given a {library} tensor: each library records its own "
        f"gradients. Turn it into an array first, with .detach().numpy() in PyTorch"
    )


def array_of(data, dtype=None, requires_grad=False):
    """A fresh array. Python floats become float32; so do integers that require a gradient."""
    if data is None:
        raise TypeError(
            "Tensor: expected numbers or booleans, got None; is `return` missing in the function "
            "that made it?"
        )
    try:
        array = np.array(data, dtype=dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            "Tensor: expected rows of one length, got a list with rows of several; all rows of a "
            "list must have the same length (data.tokenizers.padded fills up tokens)"
        ) from None
    if array.dtype.kind not in "fiubc":
        raise TypeError(
            f"Tensor: expected numbers or booleans, got {array.dtype} from a "
            f"{type(data).__name__}; all rows of a list must have the same length"
        )
    first = data
    while isinstance(first, list | tuple) and first:
        first = first[0]
    from_python = dtype is None and not hasattr(first, "dtype")  # arrays keep their dtype
    if from_python and (array.dtype.kind == "f" or (requires_grad and array.dtype.kind in "iub")):
        array = array.astype(DEFAULT_DTYPE)
    if requires_grad:
        differentiable(array.dtype)
    return array


def differentiable(dtype):
    """Raise unless numbers of this dtype can have a gradient."""
    if dtype.kind != "f":
        raise TypeError(
            f"Tensor: only floating-point data can require a gradient, got {dtype}; convert it "
            f"first, for example with .astype(np.float32)"
        )


def result_array(name, y, arrays):
    """The output of an operation as an array; float64 only if an operand array was.

    NumPy makes float64 of float32 with int64, and of float32 with np.float64(2). Here the arrays
    of floating-point numbers among the operands decide, as they do next to a Python number.
    """
    if isinstance(y, tuple | list):
        raise TypeError(f"{name}: expected one array as the result, got a {type(y).__name__}")
    y = np.asarray(y)
    if y.dtype.kind not in "fiubc":
        raise TypeError(f"{name}: expected a result of numbers, got {y.dtype}")
    if y.dtype is FLOAT64 and not any(
        a is FLOAT64 or (isinstance(a, np.ndarray) and a.dtype is FLOAT64) for a in arrays
    ):
        floats = [a.dtype for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        y = y.astype(np.result_type(*floats) if floats else DEFAULT_DTYPE)
    return y


def as_array(g):
    """A sum of two gradients as an array or Tensor: NumPy makes a scalar of two 0-d arrays."""
    return np.asarray(g) if isinstance(g, np.generic) else g


def share_memory(a, b):
    """Whether one of two arrays is a view of the other, or both are of a third."""
    return _owner(a) is _owner(b)


def _owner(array):
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def unbroadcast(d, a, name, kind):
    """The gradient d that a rule of `name` returned, in the shape and dtype of the input array a.

    Where NumPy broadcast the input every copy contributed, so the gradient is the sum over them.
    kind: Tensor if gradients are recorded, else np.ndarray.
    """
    if d is None:
        raise ValueError(f"backward: a rule of {name} returned None; is `return` missing?")
    d = d if hasattr(d, "requires_grad") else np.asarray(d)
    if d.dtype.kind not in "fiub":
        raise TypeError(f"backward: a rule of {name} returned {d.dtype}, expected real numbers")
    if d.shape != a.shape:
        extra = d.ndim - a.ndim
        if extra < 0 or any(n not in (1, m) for n, m in zip(a.shape, d.shape[extra:], strict=True)):
            turned = "is it transposed? " if d.shape == a.shape[::-1] else ""
            raise ValueError(
                f"backward: a rule of {name} returned shape {d.shape} for an input of shape "
                f"{a.shape}; {turned}A gradient has the shape of its input (broadcast axes may "
                f"be left in)"
            )
        copies = tuple(i for i, n in enumerate((1,) * extra + a.shape) if n == 1)
        d = d.sum(axis=copies, keepdims=True).reshape(a.shape)
    if d.dtype != a.dtype:
        differentiable(a.dtype)
        d = d.astype(a.dtype)
    return in_kind(d, kind)


def in_kind(g, kind):
    """The gradient g as `kind`, Tensor or np.ndarray, where it is the other of the two."""
    if kind is np.ndarray:
        return g.data if hasattr(g, "requires_grad") else g
    return g if isinstance(g, kind) else kind(g)


NO_SLOPE = {"isnan", "isinf", "isfinite", "isclose", "floor", "ceil", "trunc"}  # of math


def number_wanted(frame):
    """Check what asks for a Python number of a Tensor that requires a gradient.

    Python asks alike for float(x), math.exp(x) and array[i] = x, so we look at what the calling
    line is doing: float(x) is meant, in the others a gradient would get lost in silence.
    """
    does, names = _instruction(frame.f_code, frame.f_lasti)
    called = _named(frame, names) if does == "CALL" else None
    if does == "STORE_SUBSCR" or isinstance(getattr(called, "__self__", None), np.ndarray):
        raise TypeError(
            "array[...] = x would lose the gradient of x: collect the Tensors in a list and join "
            "them with np.stack or np.concatenate, or store x.item() if no gradient is wanted"
        )
    if isinstance(called, type) or getattr(called, "__module__", None) in (None, "builtins"):
        return  # float(x), sum(map(float, xs)), "%.3f" % x and the like
    name = called.__name__
    if called.__module__ != "math":
        warnings.warn(
            f"{name} took a Tensor that requires a gradient as a plain number, so its gradient is "
            f"lost: say x.item() if that is meant",
            stacklevel=3,
        )
    elif name not in NO_SLOPE:
        raise TypeError(
            f"math.{name}(x) would lose the gradient of x: use np.{name}(x), or "
            f"math.{name}(x.item()) if no gradient is wanted"
        )


@lru_cache(maxsize=512)
def _instruction(code, at):
    """What stands at a place in compiled code: ("CALL", ["math", "exp"]), or its name and []."""
    instructions = list(dis.get_instructions(code))
    here = next(i for i in instructions if i.offset == at)
    if not here.opname.startswith("CALL"):
        return here.opname, []
    # a call begins in the source where the name of its function does
    start = here.positions.lineno, here.positions.col_offset
    loads = [i for i in instructions if i.opname.startswith("LOAD_") and isinstance(i.argval, str)]
    loads = [i for i in loads if (i.positions.lineno, i.positions.col_offset) == start]
    return "CALL", [i.argval for i in loads] if None not in start else []


def _named(frame, names):
    """What `a.b` means at the place of a frame; None if that is nothing."""
    if not names:
        return None
    found = {**vars(builtins), **frame.f_globals, **frame.f_locals}.get(names[0])
    for name in names[1:]:
        found = getattr(found, name, None)
    return found


# Only there do the counts in `is_shared` mean what they say: later versions borrow references.
COUNTED = sys.implementation.name == "cpython" and sys.version_info < (3, 14)


def is_shared(g):
    """Whether anything but one variable of the caller may refer to the memory of the gradient g."""
    owner = g.base
    if not COUNTED or not g.flags.c_contiguous or not g.flags.writeable:
        return True
    if sys.getrefcount(g) > 3:  # the caller, this function and the question itself
        return True
    plain = type(owner) is Block or (type(owner) is np.ndarray and owner.base is None)
    return owner is not None and not (plain and sys.getrefcount(owner) <= 3)


def no_gradient_kept(name):
    """None, for `.grad` of a result, and a warning that says where gradients are."""
    warnings.warn(
        f".grad of a result is always None: this tensor was computed by {name}, and gradients are "
        f"kept on leaves only. ta.gradients(y, [x]) gives that of a result x",
        stacklevel=3,
    )


def first_gradient(root, gradient, kind):
    """dL/d(root) as `kind` in the shape and dtype of root; 1 for a single number if not given."""
    if gradient is None:
        if root.size != 1:
            raise RuntimeError(
                f"backward: only a single number has a gradient by itself, this tensor has shape "
                f"{root.shape}. Reduce it (sum, mean), or pass gradient= of that shape"
            )
        gradient = np.ones(root.shape, root.dtype)
    if not hasattr(gradient, "requires_grad"):
        gradient = np.asarray(gradient)
    if gradient.dtype.kind not in "fiub":
        raise TypeError(f"backward: expected a real gradient, got {gradient.dtype}")
    if gradient.dtype != root.dtype:
        gradient = gradient.astype(root.dtype)
    if gradient.shape != root.shape:
        raise ValueError(
            f"backward: gradient has shape {gradient.shape}, but the tensor has {root.shape}"
        )
    return in_kind(gradient, kind)


def leading_to(targets, results, needed):
    """Of a graph, what lies on a way from the root down to a target: (results, {x: None})."""
    on_the_way = {x: None for x in targets if x in needed}
    for t in reversed(results):  # oldest first
        if any(x in on_the_way for x in t._inputs):
            on_the_way[t] = None
    return [t for t in results if t in on_the_way and t not in targets], on_the_way
