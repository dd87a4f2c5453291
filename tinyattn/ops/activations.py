"""Nonlinear elementwise functions that NumPy does not have, each with its rule (x̄ is dL/dx)."""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.kernels import fast
from tinyattn.ops.backends import operation
from tinyattn.ops.erf import erf_of
from tinyattn.ops.marks import elementwise

TWO_OVER_ROOT_PI = float(2 / np.sqrt(np.pi))
ROOT_HALF, ROOT_TWO_OVER_PI = float(np.sqrt(0.5)), float(np.sqrt(2 / np.pi))


@primitive
def relu(x):
    """Return y = max(x, 0), with the gradient x̄ = ȳ where x > 0 and 0 otherwise."""
    return np.maximum(x, 0)


def _where_positive(g, y):
    """Return g where y > 0, otherwise 0 (also where g is inf or NaN).

    np.where has a branch for every element, which the processor predicts wrongly half of the time.
    Therefore, a mask of 1...1 or 0...0 keeps or clears the bits of g instead.
    """
    if type(g) is not np.ndarray or g.dtype not in (np.float32, np.float64):
        return np.where(y > 0, g, 0)
    whole = np.dtype(f"i{g.itemsize}")  # integers as wide as the numbers of g
    mask = np.array(np.greater(y, 0), whole)
    np.negative(mask, mask)  # 1 becomes -1: all bits are 1
    mask &= g.view(whole)
    return mask.view(g.dtype)


relu.defvjp(lambda g, y, x: _where_positive(g, y))


@elementwise
def sigmoid(x):
    """Return y = 1 / (1 + e⁻ˣ) = eˣ / (1 + eˣ), with the gradient x̄ = ȳ y (1 - y).

    Of the two forms, the one whose exponent is not positive is used, because it never overflows,
    and it returns eˣ instead of 0 for very negative x. The expression exp(min(x, 0)) / (1 +
    exp(-|x|)) combines both forms.
    """
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


sigmoid.defvjp(lambda g, y, x: g * y * (1 - y))


@elementwise
def softplus(x):
    """Return y = ln(1 + eˣ), with the gradient x̄ = ȳ / (1 + e⁻ˣ)."""
    return np.logaddexp(x, np.zeros((), x.dtype))


softplus.defvjp(lambda g, y, x: g * sigmoid(x))


@elementwise
def erf(x):
    """Return the error function y = 2/√π ∫₀ˣ exp(-t²) dt, with the gradient x̄ = ȳ 2/√π exp(-x²)."""
    return erf_of(x)


erf.defvjp(lambda g, y, x: g * np.exp(-x * x) * TWO_OVER_ROOT_PI)


@operation("gelu", work=lambda x, tanh: x.size)
def gelu(x, tanh):
    """Return y = x Φ(x), where Φ is the distribution function of the standard normal distribution.

    If `tanh` is True, Φ(x) is approximated by (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.
    """
    if tanh:
        return 0.5 * x * (1 + np.tanh(ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * ROOT_HALF))


gelu.implement(
    "kernel",
    lambda x, tanh: (fast.activations.gelu(x, tanh), None),
    lambda g, y, residuals, needs_grad, x, tanh: [fast.activations.gelu_backward(g, x, tanh)],
)
