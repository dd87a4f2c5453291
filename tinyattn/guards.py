"""What the engine puts right by itself, and what it refuses and in which words."""

import sys

import numpy as np

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
    "backward: this graph was already used and forgotten by an earlier backward(), be it one that "
    "failed on its way. Compute the result again, or add the losses up and call backward() once"
)


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


def no_tensor_by_name(name, named, Tensor):
    """Raise if an argument that is given by name only is a Tensor: nobody would watch it."""
    for parameter, value in named.items():
        if isinstance(value, Tensor):
            raise TypeError(
                f"{name}: {parameter} is a Tensor, but what the function takes by name only has "
                f"no derivative rule: let it take {parameter} by position too, or pass "
                f"{parameter}.numpy()"
            )


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


def too_many_rules(name, given, n_inputs):
    """The error for more rules than inputs."""
    return ValueError(
        f"{name}.defvjp got {given} rules for {n_inputs} inputs; a function f(*xs) takes one "
        f"rule for all of them, with .defvjp_joint"
    )


def one_for_each(name, gradients, needed):
    """Raise unless a joint rule returned gradients for all inputs that need one."""
    if not isinstance(gradients, tuple | list):
        raise TypeError(
            f"backward: the rule of {name} returned a {type(gradients).__name__}, expected a list "
            f"with the gradients of all inputs"
        )
    if any(needed[len(gradients) :]) or len(gradients) > len(needed):
        raise ValueError(
            f"backward: the rule of {name} returned {len(gradients)} gradients for "
            f"{len(needed)} inputs"
        )


def no_numpy_rule(function):
    """The error for a NumPy function that nobody has taught to record a graph."""
    module = getattr(function, "__module__", None) or "numpy"
    name = f"{module}.{function.__name__}".replace("numpy", "np", 1)
    return TypeError(
        f"{name} has no derivative rule for Tensors. Without gradient: {name}(x.numpy()). With "
        f"one: write it with functions that have a rule, or as a new operation (@ta.primitive, "
        f"then .defvjp)"
    )


def array_of(data, dtype=None):
    """A fresh array; Python numbers and lists of them become the default float type."""
    array = np.array(data, dtype=dtype)
    if array.dtype.kind not in "fiubc":
        raise TypeError(
            f"Tensor: expected numbers or booleans, got {array.dtype} from a "
            f"{type(data).__name__}; all rows of a list must have the same length"
        )
    if dtype is not None or hasattr(data, "dtype"):
        return array
    while isinstance(data, list | tuple) and data:
        data = data[0]
    if not hasattr(data, "dtype") and array.dtype.kind in "fiu":
        array = array.astype(DEFAULT_DTYPE)
    return array


def differentiable(dtype):
    """Raise unless numbers of this dtype can have a gradient."""
    if dtype.kind != "f":
        raise TypeError(
            f"Tensor: only floating-point data can require a gradient, got {dtype}; convert it "
            f"first, for example with .astype(np.float32)"
        )


def settle(name, y, arrays):
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


def fit(d, a, name):
    """The gradient d that a rule of `name` returned, in the shape and dtype of the input a.

    Where NumPy broadcast the input every copy contributed, so the gradient is the sum over them.
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
    if d.dtype == a.dtype:
        return d
    differentiable(a.dtype)
    return d.astype(a.dtype)


# Only there do the counts in `held_elsewhere` mean what they say: later versions borrow references.
COUNTED = sys.implementation.name == "cpython" and sys.version_info < (3, 14)


def held_elsewhere(g):
    """Whether anybody but the caller, who holds it once, may hold the memory of the gradient g."""
    owner = g.base
    if not COUNTED or not g.flags.c_contiguous:
        return True
    if sys.getrefcount(g) > 3:  # the caller, this function and the question itself
        return True
    plain = type(owner) is Block or (type(owner) is np.ndarray and owner.base is None)
    return owner is not None and not (plain and sys.getrefcount(owner) <= 3)


def seed(root, gradient):
    """dL/d(root), in the shape and dtype of root; 1 for a single number."""
    if gradient is None:
        if root.size != 1:
            raise RuntimeError(
                f"backward: only a single number has a gradient by itself, this tensor has shape "
                f"{root.shape}. Reduce it (sum, mean), or pass gradient= of that shape"
            )
        return np.ones(root.shape, root.dtype)
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
    return gradient
