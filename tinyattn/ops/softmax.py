"""The softmax and its logarithm, along one axis. In the docstrings, x̄ is dL/dx."""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.kernels import fast
from tinyattn.ops.backends import along_rows, operation


@operation("softmax", work=along_rows)
@primitive
def softmax(x, axis=-1):
    """Return yᵢ = exp xᵢ / Σⱼ exp xⱼ along `axis`, with the gradient x̄ᵢ = yᵢ (ȳᵢ - Σⱼ ȳⱼ yⱼ).

    The largest x is subtracted first, which does not change the result but keeps exp from
    overflowing. A row of only -inf has no defined result and gives NaN, as in PyTorch.
    """
    y = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return y / y.sum(axis=axis, keepdims=True)


softmax.defvjp(lambda g, y, x, axis=-1: y * (g - np.sum(g * y, axis=axis, keepdims=True)))
softmax.implement(
    "kernel",
    lambda x, axis=-1: (fast.rowwise.softmax(x, False), None),
    lambda g, y, residuals, needs_grad, x, axis=-1: [fast.rowwise.softmax_backward(g, y, False)],
)


@operation("log_softmax", work=along_rows)
@primitive
def log_softmax(x, axis=-1):
    """Return yᵢ = xᵢ - ln Σⱼ exp xⱼ along `axis`, with the gradient x̄ᵢ = ȳᵢ - exp(yᵢ) Σⱼ ȳⱼ."""
    x = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


log_softmax.defvjp(lambda g, y, x, axis=-1: g - np.exp(y) * np.sum(g, axis=axis, keepdims=True))
log_softmax.implement(
    "kernel",
    lambda x, axis=-1: (fast.rowwise.softmax(x, True), None),
    lambda g, y, residuals, needs_grad, x, axis=-1: [fast.rowwise.softmax_backward(g, y, True)],
)
