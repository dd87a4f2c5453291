"""The error messages of the engine."""

import warnings
from inspect import signature

import numpy as np

from tinyattn.engine.dtypes import check_differentiable
from tinyattn.engine.read_only import protected
from tinyattn.engine.torch_hints import OF_FUNCTIONS, SCIPY

LOST = (
    "a Tensor that requires a gradient does not become a plain array automatically, because its "
    "gradient would be lost. Write .numpy() for the plain array, .detach() for a Tensor, or "
    "np.stack(list) for a list of Tensors (to print losses, collect loss.item() instead of loss)"
)
LOST_NUMBER = (
    "a Tensor that requires a gradient does not become a Python number, because its gradient would "
    "be lost. Write x.item() if you do not need the gradient, and otherwise np.exp(x) instead of "
    "math.exp(x), or np.stack of a list of Tensors instead of array[...] = x"
)
WRITE_RECORDED = (
    "x[...] = value would lose the gradient of value, because writing is not recorded. Build a new "
    "tensor with np.where, np.concatenate or np.stack, or write value.detach()"
)
UPDATE_RECORDED = (
    "p += ... (also -=, *= and /=) would make a new tensor and leave p, which requires a gradient, "
    "unchanged. Update parameters inside no_grad(), or write y = p + ... for a new tensor"
)
# what to write instead of an option of NumPy's functions
INSTEAD = {
    "out": "Write y = {name}(...), a new Tensor (array += x would lose the gradient of x)",
    "where": "Select elements with x[mask], or replace the others with np.where(mask, x, value)",
    "by position": "Pass the first by position and the others by name",
    "dtype": "Convert before or after, with x.astype(dtype)",
    "order": "Leave it out",
    "np.reshape order": "Leave it out (to reshape column by column, use x.T)",
    "np.ravel order": "Leave it out (to go column by column, use x.T)",
    "casting": "Convert before, with x.astype(dtype)",
    "descending": "Write -np.sort(-x), or np.argsort(-x) for the indices",
}
NO_GRAPH = (
    "backward: this tensor does not depend on anything that requires a gradient. Did you forget "
    "requires_grad=True, or compute it under no_grad(), from plain arrays (.numpy(), .detach()) or "
    "from whole numbers?"
)
FREED = (
    "backward: this graph was freed by an earlier backward pass. Compute the result again, or add "
    "up the losses and call backward() once (for a state of an earlier batch: nn.detach(state))"
)


def complex_result(name):
    """Return the message for a complex result, which would lose the gradient of its operands."""
    return (
        f"{name}: the result is complex, but gradients are real here. Compute two real Tensors (as "
        "np.cos(x) and np.sin(x), or .real and .imag of np.fft.fft(x)), or pass x.detach()"
    )


def stale_value(name):
    """Return the message for an array that changed between its use in an operation and backward."""
    return (
        f"backward: an input or the result of {name} was written to after it was used, so its "
        f"derivative would be wrong. Write into a copy (np.copy), or only after backward"
    )


def missing_rule(name, i=None):
    """Return a rule for input i of the operation `name` that raises TypeError, because it has none.

    If i is None, the rule is for all inputs.
    """
    which, add = ("", "defvjp_joint") if i is None else (f" for its input {i}", "defvjp")

    def missing(*_, **__):
        raise TypeError(
            f"backward: {name} has no derivative rule{which}. Add one with {name}.{add}(...), or "
            "call .detach() on the Tensor that it receives if you do not need this gradient"
        )

    return missing


def name_of(f):
    """Return the name of a function that becomes an operation."""
    if not hasattr(f, "__name__"):
        raise TypeError(
            "primitive: expected a function with a name, got an object of type "
            f"{type(f).__name__}. Write the function with def"
        )
    return f.__name__.strip("_")


def no_rules(name, parameters):
    """Return (rules, joint) of a new operation, which raise errors until they are set."""
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):  # f(*xs) has one rule for all inputs
        return (), missing_rule(name)
    return tuple([missing_rule(name, i) for i in range(len(parameters))]), None


def checked_rules(op, rules):
    """Return the rules of an operation. An input without a rule gets one that raises an error."""
    if len(rules) > len(op.rules):
        raise ValueError(
            f"{op.name}.defvjp: expected at most one rule for each input ({len(op.rules)}), got "
            f"{len(rules)}. For a function f(*xs), set a single rule for all inputs with "
            ".defvjp_joint"
        )
    for rule in rules:
        callable_as_rule(op, rule)
    given = [protected(r, op.name, "rule") or missing_rule(op.name, i) for i, r in enumerate(rules)]
    return (*given, *op.rules[len(rules) :])


def by_position(f, name, inputs, options, Tensor):
    """Return the arguments of f(*inputs, **options) as (inputs, options), with Tensors in inputs.

    Raises TypeError if a keyword-only argument is a Tensor. `name` is the name of the operation,
    and `Tensor` is the class.
    """
    try:
        bound = signature(f).bind(*inputs, **options)
    except TypeError:
        f(*inputs, **options)  # this fails too, with a message that names the function
        raise
    bound.apply_defaults()
    for parameter, value in bound.kwargs.items():
        if isinstance(value, Tensor):
            raise TypeError(
                f"{name}: {parameter} is a Tensor, but a keyword-only argument has no derivative "
                f"rule. Let the function take it by position too, or pass {parameter}.numpy()"
            )
    return bound.args, bound.kwargs


def callable_as_rule(op, rule, setter="defvjp"):
    """Raise TypeError unless a rule is None or a function of g, y and the operation's arguments.

    `setter` is the name of the method that received the rule.
    """
    if rule is None:
        return
    if not callable(rule):
        raise TypeError(f"{op.name}.{setter}: expected a function or None, got {rule!r}")
    code = getattr(rule, "__code__", None)
    # the rule takes *args or **kwargs
    if op.parameters is None or code is None or code.co_flags & 12:
        return
    least = 2 + len([p for p in op.parameters if p.default is p.empty])  # 2: g and y
    takes = code.co_argcount + code.co_kwonlyargcount - hasattr(rule, "__self__")
    optional = len(rule.__defaults__ or ()) + len(rule.__kwdefaults__ or ())
    if takes < least or takes - optional > 2 + len(op.parameters):
        call = ", ".join(["g", "y", *[str(p) for p in op.parameters]])
        raise TypeError(
            f"{op.name}.{setter}: a rule is called as rule({call}), but {rule.__name__} takes "
            f"({', '.join(code.co_varnames[: code.co_argcount])})"
        )


def no_ufunc_option(ufunc, method, options):
    """Return the error for np.add.reduce(x), np.add(x, y, out=...) and similar calls."""
    if method != "__call__":
        name = f"{ufunc.__name__}.{method}"
        other = OF_FUNCTIONS.get(name, "it with functions that have a rule, or pass x.numpy()")
        return TypeError(f"np.{name} has no derivative rule for Tensors. Write {other}")
    option = next(iter(options))
    advice = INSTEAD.get(option, "Leave it out").format(name=f"np.{ufunc.__name__}")
    return TypeError(f"np.{ufunc.__name__} on Tensors takes no {option}=. {advice}")


def no_numpy_rule(function):
    """Return the error for a NumPy function that cannot record a graph."""
    name = function.__name__
    module = getattr(function, "__module__", None) or ("numpy" if hasattr(np, name) else "")
    name = f"{module}.{name}".replace("numpy", "np", 1).lstrip(".")
    new = "it with functions that have a rule, or as a new operation (@ta.primitive, then .defvjp)"
    return TypeError(
        f"{name} has no derivative rule for Tensors. Without a gradient, pass x.numpy() instead of "
        f"the Tensor x, and with a gradient, write {SCIPY.get(name, new)}"
    )


def warn_no_gradient_kept(name):
    """Warn that only leaves keep gradients, for `.grad` of a result of `name`, and return None."""
    warnings.warn(
        f".grad of a non-leaf tensor is always None: this tensor was computed by {name}, and only "
        f"leaves keep gradients. Call ta.gradients(y, [x]) for the gradient of a result x",
        stacklevel=3,
    )


def no_first_gradient(shape):
    """Return the message for `backward` of a result that is not a single number."""
    return (
        f"backward: this tensor has shape {shape}, but without gradient= it must be a single "
        f"number. Reduce it (sum, mean), or pass gradient=, an array of shape {shape}"
    )


def check_first_gradient(gradient, root):
    """Raise unless `gradient` is a real array with the shape of root."""
    if gradient.dtype.kind not in "fiub":
        raise TypeError(f"backward: gradient must be real numbers, got {gradient.dtype}")
    if gradient.shape != root.shape:
        raise ValueError(f"backward: gradient must have shape {root.shape}, got {gradient.shape}")


def check_joint_vjp(op, inputs, needed, gradients):
    """Raise unless a joint rule returned a gradient for each input that needs one."""
    if not isinstance(gradients, tuple | list):
        raise TypeError(
            f"backward: the rule of {op.name} returned an object of type "
            f"{type(gradients).__name__}. Return a list with the gradients of all inputs"
        )
    missing = [x for x in inputs[len(gradients) :] if x in needed]
    if missing or len(gradients) > len(inputs):
        raise ValueError(
            f"backward: the rule of {op.name} must return a gradient for each input "
            f"({len(inputs)}), got {len(gradients)}. Return them in the order of the inputs"
        )


def check_gradient(d, a, name):
    """Raise unless d, which a rule of `name` returned, can be the gradient of the input array a."""
    if d is None:
        raise ValueError(f"backward: a rule of {name} returned None. Did you forget its `return`?")
    if d.dtype.kind not in "fiub":
        raise TypeError(f"backward: a rule of {name} returned {d.dtype}. Return real numbers")
    extra = d.ndim - a.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(a.shape, d.shape[extra:], strict=True)):
        turned = "Is it transposed? " if d.shape == a.shape[::-1] else ""
        raise ValueError(
            f"backward: a rule of {name} returned shape {d.shape} for an input of shape {a.shape}. "
            f"{turned}Return a gradient of the input's shape (broadcast axes may stay in it)"
        )
    if d.dtype != a.dtype:
        check_differentiable(a.dtype)
