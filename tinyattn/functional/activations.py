"""Elementwise nonlinear functions, and the softmax family."""

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.boxes import one_box
from tinyattn.engine.convert import as_float, as_tensor
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.functional.linear import check_axis
from tinyattn.ops import activations
from tinyattn.ops import softmax as ops

__all__ = [
    "dropout",
    "elu",
    "erf",
    "gelu",
    "leaky_relu",
    "log_softmax",
    "logsumexp",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


@with_torch_hints
def relu(x) -> Tensor:
    """Return the rectified linear unit of x, max(x, 0)."""
    return activations.relu(as_tensor(x))


@with_torch_hints
def sigmoid(x) -> Tensor:
    """Return the logistic function of x, 1 / (1 + e⁻ˣ), computed without overflow."""
    return activations.sigmoid(as_tensor(x))


def erf(x) -> Tensor:
    """Return the error function of x, 2/√π ∫₀ˣ exp(-t²) dt."""
    return activations.erf(as_tensor(x))


@with_torch_hints
def leaky_relu(x, negative_slope=0.01):
    """Return the leaky rectified linear unit of x, negative_slope · x for x < 0 and x otherwise.

    Args:
        x                numbers [...]
        negative_slope   factor of negative x. With 0, the function is `relu`

    Raises:
        TypeError: negative_slope is not a number
        ValueError: negative_slope is NaN
    """
    if not isinstance(negative_slope, np.ndarray | Tensor):
        check_range("leaky_relu", negative_slope=negative_slope)
    x = as_tensor(x)
    return np.where(np.greater(x.data, 0), x, negative_slope * x)


@with_torch_hints
@one_box
def elu(x, alpha=1.0):
    """Return the exponential linear unit of x, which is x for x > 0 and α (eˣ - 1) otherwise.

    Args:
        x       numbers [...]
        alpha   α, the factor of eˣ - 1, so the result approaches -α for very negative x

    Raises:
        TypeError: alpha is not a number
        ValueError: alpha is NaN
    """
    if not isinstance(alpha, np.ndarray | Tensor):
        check_range("elu", alpha=alpha)
    x = as_tensor(x)
    negative = np.where(np.greater(x.data, 0), 0, x)  # this keeps exp from overflowing
    return np.where(np.greater(x.data, 0), x, alpha * np.expm1(negative))


@with_torch_hints
@one_box
def gelu(x, approximate="none"):
    """Return the Gaussian error linear unit of x, x Φ(x) with Φ(x) = (1 + erf(x/√2)) / 2.

    Φ is the cumulative distribution function of the standard normal distribution.

    Args:
        x             numbers [...]
        approximate   "none", or "tanh" to replace erf(x/√2) by tanh(√(2/π) (x + 0.044715 x³))

    Raises:
        ValueError: `approximate` is neither "none" nor "tanh"

    Source: Hendrycks, Gimpel 2016.
    """
    if approximate in ("none", "tanh"):
        return activations.gelu(as_tensor(x), approximate == "tanh")
    raise ValueError(f'gelu: approximate must be "none" or "tanh", got {approximate!r}')


@with_torch_hints
@one_box
def silu(x):
    """Return the sigmoid linear unit of x, x / (1 + e⁻ˣ), which is also called swish."""
    x = as_tensor(x)
    return x * sigmoid(x)


@with_torch_hints
def softplus(x, beta=1.0, threshold=20.0) -> Tensor:
    """Return the softplus function of x, ln(1 + exp(βx)) / β, a smooth form of max(x, 0).

    Args:
        x           numbers [...]
        beta        β > 0. A larger β gives a sharper bend at 0
        threshold   if βx is larger than this number, the result is x itself. For the default 20,
                    the formula hardly differs from x there

    Raises:
        TypeError: beta or threshold is not a number
        ValueError: beta is not positive, or threshold is NaN
    """
    if not isinstance(beta, np.ndarray | Tensor):
        check_range("softplus", above=0, beta=beta)
    if not isinstance(threshold, np.ndarray | Tensor):
        check_range("softplus", threshold=threshold)
    x = as_float(x)
    y = activations.softplus(beta * x) / beta
    return np.where(beta * x.data > threshold, x, y)


def tanh(x):
    """Return the hyperbolic tangent of x."""
    return np.tanh(as_tensor(x))


@with_torch_hints
def softmax(x, axis=-1):
    """Return the softmax along an axis, exp xᵢ / Σⱼ exp xⱼ, in the shape of x.

    If all numbers along the axis are -inf, or one of them is +inf, the result is NaN.

    Args:
        x      numbers [...]
        axis   axis of i and j, along which the results sum to 1, a tuple of axes, or None for all

    Raises:
        ValueError: x has no such axis
        TypeError: axis is not a whole number, a tuple of them, or None
    """
    return ops.softmax(_float_along("softmax", x, axis), axis)


@with_torch_hints
def log_softmax(x, axis=-1):
    """Return the logarithm of the softmax along an axis, xᵢ - ln Σⱼ exp xⱼ, in the shape of x.

    The logarithm of `softmax` would be -inf where exp xᵢ is rounded to 0, but this function is
    accurate there too. If all numbers along the axis are -inf, or one of them is +inf, the result
    is NaN.

    Args:
        x      numbers [...]
        axis   axis of i and j, a tuple of axes, or None for all axes

    Raises:
        ValueError: x has no such axis
        TypeError: axis is not a whole number, a tuple of them, or None
    """
    return ops.log_softmax(_float_along("log_softmax", x, axis), axis)


@with_torch_hints
def logsumexp(x, axis=-1, keepdims=False):
    """Return ln Σ exp x along an axis, computed without overflow.

    If all numbers along the axis are -inf, the result is -inf.

    Args:
        x          numbers [...]
        axis       axis of the sum, a tuple of axes, or None for all axes
        keepdims   True: keep the axis with length 1. False: remove it

    Raises:
        ValueError: x has no such axis
        TypeError: axis is not a whole number, a tuple of them, or None
    """
    x = _float_along("logsumexp", x, axis)
    top = np.max(x.data, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the right answer
        y = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return y if keepdims else np.squeeze(y, axis)


def _float_along(name, x, axis):
    """Return x in floating point, after a check of `axis`. A single number has the axes 0 and -1.

    `name` begins the message of an error.
    """
    x = as_float(x)
    if x.ndim or not (isinstance(axis, int) and axis in (0, -1)):
        check_axis(name, x, axis)
    return x


@with_torch_hints
def dropout(x, p=0.5, training=True, rng=None):
    """Return x with random elements set to 0 and all other elements divided by 1 - p.

    The division keeps the expected value of each element, so x is used unchanged in evaluation.

    Args:
        x          numbers [...]
        p          probability with which each element becomes 0, 0 <= p <= 1
        training   False: return x unchanged
        rng        seed or numpy.random.Generator, or None for the default generator, which
                   `ta.seed` sets

    Raises:
        ValueError: p is not between 0 and 1, or rng is a negative seed
        TypeError: p is not a number, or rng is neither a seed nor a generator
    """
    check_range("dropout", 0, 1, p=p)
    x = as_tensor(x)
    if not training or p == 0:
        return x
    kept = generator(rng).random(x.shape) >= p
    return np.where(kept, x / (1 - p) if p < 1 else 0 * x, 0)
