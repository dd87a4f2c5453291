"""The tape of a computation, copied step by step, with the gradient of every array on it.

`backward` forgets the gradients of intermediate results and frees the graph. Here, both are kept.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tinyattn.engine import messages
from tinyattn.engine.autograd import (
    Operation,
    Tensor,
    no_grad,
    split_joint_vjp,
    topological_order,
    unbroadcast,
)
from tinyattn.engine.invalid import where_none_arrives
from tinyattn.engine.ranges import is_number, type_with_article

FREED = (
    "trace: this graph was freed by an earlier backward pass. Compute the result again, and trace "
    "it before backward(), or keep the graph with backward(create_graph=True)"
)


class Step(NamedTuple):
    """One operation that ran, y = operation(*values, **options).

    Attributes:
        tensor      the result, a Tensor
        operation   the operation
        inputs      the Tensors among the inputs, with None for other inputs
        values      all inputs as plain arrays and numbers, as they were during the step
        options     options of the operation
        y           the result as an array
    """

    tensor: Tensor
    operation: Operation
    inputs: list
    values: list
    options: dict
    y: np.ndarray


class Tape:
    """All steps that lead to one number, oldest first, and the gradient of every array.

    Args:
        root        Tensor with a single number L

    Attributes:
        steps       list of `Step`
        gradients   {tensor: dL/d(tensor)}
    """

    def __init__(self, root):
        _check_root(root)
        try:
            results, _ = topological_order(root)
        except RuntimeError as error:
            if str(error) != messages.FREED:
                raise
            raise RuntimeError(FREED) from None
        self.root, self._copies = root, {}
        self.steps = [self._step(t) for t in reversed(results)]
        self.gradients = self._all_gradients()

    def _step(self, t):
        values = [self.copy_of(v) for v in t._values]
        return Step(t, t._operation, list(t._inputs), values, dict(t._options), self.copy_of(t))

    def copy_of(self, x):
        """Return a copy of x, a Tensor or an array, as it was when the tape was read."""
        array = x._data if isinstance(x, Tensor) else x
        if not isinstance(array, np.ndarray):
            return array
        if id(array) not in self._copies:
            self._copies[id(array)] = (
                array,
                array.copy(),
            )  # keep this object, so that its id is not reused
        return self._copies[id(array)][1]

    def _all_gradients(self):
        gradients = {self.root: np.ones(self.root.shape, self.root.dtype)}
        with no_grad():
            for step in reversed(self.steps):
                found = pull(step, gradients[step.tensor])
                for x, g in zip(step.inputs, found, strict=True):
                    if x is not None and x.requires_grad:
                        gradients[x] = gradients[x] + g if x in gradients else g
        return gradients


def _check_root(root):
    if not isinstance(root, Tensor):
        advice = "Did you forget its `return`?" if root is None else "Return the loss itself"
        if is_number(root):
            advice += ", without .item() or float()"
        raise TypeError(
            "trace: the function must return a Tensor, but it returned "
            f"{'None' if root is None else type_with_article(root)}. {advice}"
        )
    if not root.requires_grad:
        raise RuntimeError(messages.NO_GRAPH.replace("backward", "trace", 1))
    if root.size != 1:
        raise ValueError(
            f"trace: the result must be a single number, got shape {root.shape}. Take its sum or "
            "mean, or select one element"
        )


def pull(step, g, constants=False):
    """Return the gradient of each input of a step, a list with None for inputs without one.

    Args:
        step        the `Step`
        g           gradient of its result
        constants   True: include floating-point inputs that require no gradient, if the operation
                    has a rule for them
    """
    asked = [
        _is_float(v) and (constants or _wanted(x))
        for x, v in zip(step.inputs, step.values, strict=True)
    ]
    options, op = step.options, step.operation
    if "needs_grad" in options:  # this option belongs to a compiled kernel
        options = options | {"needs_grad": tuple(asked)}
    rules = op.rules
    if op.joint is not None:
        together = op.joint(g, step.y, *step.values, **options)
        needed = {x for x in step.inputs if x is not None and x.requires_grad}
        rules = split_joint_vjp(op, step.inputs, needed, together)
    found = []
    for k, (x, v) in enumerate(zip(step.inputs, step.values, strict=True)):
        rule = rules[k] if asked[k] and k < len(rules) else None
        found.append(_one(rule, g, step, options, v, must=_wanted(x)) if rule else None)
    return found


def _one(rule: Callable, g, step, options, value, must):
    """Return the gradient of the input `value`, or None if its rule fails and `must` is False."""
    try:
        d = rule(g, step.y, *step.values, **options)
        d = where_none_arrives(step.operation, g, d)
    except Exception:
        if must:
            raise
        return None
    if d is None and not must:
        return None
    return unbroadcast(d, np.asarray(value), step.operation.name, np.ndarray)


def _is_float(value):
    return (
        isinstance(value, np.ndarray | np.floating | float) and np.asarray(value).dtype.kind == "f"
    )


def _wanted(x):
    return x is not None and x.requires_grad
