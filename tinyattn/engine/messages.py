"""What the engine refuses, and in which words."""

import warnings
from inspect import signature

import numpy as np

from tinyattn.engine.dtypes import check_differentiable
from tinyattn.engine.read_only import protected
from tinyattn.engine.torch_hints import OF_FUNCTIONS, SCIPY

LOST = (
    "a Tensor that requires a gradient does not turn into a plain array by itself, because the "
    "gradient would be lost: say .numpy() (the plain array) or .detach()"
)
LOST_NUMBER = (
    "a Tensor that requires a gradient does not turn into a Python number, because the gradient "
    "would be lost. If no gradient is wanted, write x.item(). If it is wanted: np.exp(x) instead "
    "of math.exp(x), and np.stack of a list of Tensors instead of array[...] = x"
)
WRITE_RECORDED = (
    "x[...] = value would lose the gradient of value, because writing is not recorded: build a new "
    "tensor with np.where, np.concatenate or np.stack, or .detach() the value"
)
UPDATE_RECORDED = (
    "p += ... or p -= ... would make a new tensor and leave p, which needs a gradient, as it was: "
    "update parameters inside no_grad(), else write y = p + ..."
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


def stale_value(name):
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
    given = [protected(r, op.name, "rule") or missing_rule(op.name, i) for i, r in enumerate(rules)]
    return (*given, *op.rules[len(rules) :])


def by_position(f, name, inputs, options, Tensor):
    """The arguments of a call as (inputs, options), with every Tensor among the inputs."""
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
        f"the Tensor x. With one: write {SCIPY.get(name, new)}"  # SciPy's ufuncs have no __module__
    )


def warn_no_gradient_kept(name):
    """None, for `.grad` of a result, and a warning that says where gradients are."""
    warnings.warn(
        f".grad of a result is always None: this tensor was computed by {name}, and gradients are "
        f"kept on leaves only. ta.gradients(y, [x]) gives that of a result x",
        stacklevel=3,
    )


def no_first_gradient(shape):
    """The message for `backward` of a result that is not a single number."""
    return (
        f"backward: only a single number has a gradient by itself, this tensor has shape {shape}. "
        f"Reduce it (sum, mean), or pass gradient= of that shape"
    )


def check_first_gradient(gradient, root):
    """Raise unless `gradient` is a real array of the shape of root."""
    if gradient.dtype.kind not in "fiub":
        raise TypeError(f"backward: expected a real gradient, got {gradient.dtype}")
    if gradient.shape != root.shape:
        raise ValueError(
            f"backward: gradient has shape {gradient.shape}, but the tensor has {root.shape}"
        )


def check_joint_vjp(op, inputs, needed, gradients):
    """Raise unless a joint rule of the operation gave a gradient for each input that needs one."""
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


def check_gradient(d, a, name):
    """Raise unless what a rule of `name` returned can be the gradient of the input array a."""
    if d is None:
        raise ValueError(f"backward: a rule of {name} returned None; is `return` missing?")
    if d.dtype.kind not in "fiub":
        raise TypeError(f"backward: a rule of {name} returned {d.dtype}, expected real numbers")
    extra = d.ndim - a.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(a.shape, d.shape[extra:], strict=True)):
        turned = "is it transposed? " if d.shape == a.shape[::-1] else ""
        raise ValueError(
            f"backward: a rule of {name} returned shape {d.shape} for an input of shape "
            f"{a.shape}; {turned}A gradient has the shape of its input (broadcast axes may "
            f"be left in)"
        )
    if d.dtype != a.dtype:
        check_differentiable(a.dtype)
