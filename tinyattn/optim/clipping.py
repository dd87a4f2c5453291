"""`clip_grad_norm`, which limits the norm of all gradients before a step."""

import math

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.ranges import check_range
from tinyattn.engine.tracebacks import warn_caller
from tinyattn.optim.optimizer import how_to_pass, list_parameters


@torch_hints.with_torch_hints
def clip_grad_norm(parameters, max_norm):
    """Scale all gradients by the same factor so that their norm ‖g‖₂ is at most max_norm.

    ‖g‖₂ is the root of the sum of the squares of all elements of all gradients. Gradients with a
    smaller norm do not change. Squares of large numbers cannot make the norm overflow. If the norm
    is not finite, you get a warning and the gradients do not change, because an infinite gradient
    has no direction.

    Args:
        parameters   parameters, such as model.parameters(), or a single one. Parameters without a
                     gradient are ignored
        max_norm     largest norm allowed, > 0. With np.inf, the norm is only computed

    Returns:
        the norm ‖g‖₂ before the scaling, a float (0.0 if no parameter has a gradient)

    Raises:
        ValueError: max_norm is not positive, or NaN
        TypeError: parameters are not tensors, or max_norm is not a number
    """
    check_range("clip_grad_norm", above=0, max_norm=max_norm)
    one = isinstance(parameters, Tensor)
    parameters = [parameters] if one else list_parameters("clip_grad_norm", parameters)
    for p in parameters:
        if not isinstance(p, Tensor):
            raise TypeError(
                f"clip_grad_norm: expected Tensors as parameters, got {torch_hints.kind_of(p)}. "
                f"{how_to_pass(p)}"
            )
    with_gradient = [p for p in parameters if p.grad is not None]
    grads = [p.grad.data if isinstance(p.grad, Tensor) else p.grad for p in with_gradient]
    total = _norm(grads)
    scale = max_norm / (total + 1e-6)
    if not math.isfinite(total):
        warn_caller(
            f"clip_grad_norm: the norm of the gradients is {total}, so they do not change. To find "
            "the operation that caused it, run the step in `with ta.detect_anomaly():`"
        )
    elif scale < 1:
        for p, g in zip(with_gradient, grads, strict=True):
            small = scale < np.finfo(g.dtype).tiny  # a subnormal number has few digits
            wide = np.multiply(g, scale, dtype=np.float64) if small else None
            p.grad = g * g.dtype.type(scale) if wide is None else wide.astype(g.dtype)
    return total


def _norm(arrays):
    """Return the root of the sum of all squares, recomputed in float64 if they overflow."""
    with np.errstate(over="ignore"):
        square = sum(float(np.vdot(a, a)) for a in arrays)
    if not math.isfinite(square):
        largest = max(float(np.abs(a).max(initial=0)) for a in arrays)
        if math.isfinite(largest):
            wide = [np.divide(a, largest, dtype=np.float64) for a in arrays]
            return largest * math.sqrt(sum(float(np.vdot(a, a)) for a in wide))
    return math.sqrt(square)
