"""Non-linear functions of single numbers, and the softmax family."""

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import as_float, as_tensor
from tinyattn.engine.random import generator
from tinyattn.engine.torch_hints import with_torch_hints
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
    """y = max(x, 0)."""
    return activations.relu(as_tensor(x))


def sigmoid(x) -> Tensor:
    """y = 1 / (1 + e⁻ˣ), without overflow."""
    return activations.sigmoid(as_tensor(x))


def erf(x) -> Tensor:
    """y = 2/√π ∫₀ˣ exp(-t²) dt, the error function."""
    return activations.erf(as_tensor(x))


@with_torch_hints
def leaky_relu(x, negative_slope=0.01):
    """y = x for x > 0, else negative_slope · x."""
    x = as_tensor(x)
    return np.where(np.greater(x.data, 0), x, negative_slope * x)


@with_torch_hints
def elu(x, alpha=1.0):
    """y = x for x > 0, else α (eˣ - 1)."""
    x = as_tensor(x)
    negative = np.where(np.greater(x.data, 0), 0, x)  # keeps exp from overflowing
    return np.where(np.greater(x.data, 0), x, alpha * np.expm1(negative))


def gelu(x, approximate="none"):
    """y = x Φ(x) with Φ(x) = (1 + erf(x/√2)) / 2; "tanh": the approximation with tanh.

    Raises ValueError for another `approximate` than "none" and "tanh".
    Source: Hendrycks, Gimpel 2016.
    """
    if approximate in ("none", "tanh"):
        return activations.gelu(as_tensor(x), approximate == "tanh")
    raise ValueError(f'gelu: approximate is "none" or "tanh", got {approximate!r}')


@with_torch_hints
def silu(x):
    """y = x σ(x)."""
    x = as_tensor(x)
    return x * sigmoid(x)


def softplus(x, beta=1.0, threshold=20.0) -> Tensor:
    """y = ln(1 + exp(βx)) / β, and y = x where βx > threshold."""
    x = as_float(x)
    y = activations.softplus(beta * x) / beta
    return np.where(beta * x.data > threshold, x, y)


def tanh(x):
    """y = tanh x."""
    return np.tanh(as_tensor(x))


@with_torch_hints
def softmax(x, axis=-1):
    """yᵢ = exp xᵢ / Σⱼ exp xⱼ along `axis`; a row of nothing but -inf gives nan."""
    return ops.softmax(as_float(x), axis)


@with_torch_hints
def log_softmax(x, axis=-1):
    """yᵢ = xᵢ - ln Σⱼ exp xⱼ along `axis`."""
    return ops.log_softmax(as_float(x), axis)


@with_torch_hints
def logsumexp(x, axis=-1, keepdims=False):
    """y = ln Σ exp x along `axis`, without overflow; -inf for a row of -inf."""
    x = as_float(x)
    top = np.max(x.data, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore"):  # ln 0 = -inf is the right answer
        y = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return y if keepdims else np.squeeze(y, axis)


@with_torch_hints
def dropout(x, p=0.5, training=True, rng=None):
    """In training each number is 0 with probability p, else divided by 1 - p; x itself otherwise.

    Raises ValueError if p is not a probability.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: expected a probability between 0 and 1, got {p}")
    x = as_tensor(x)
    if not training or p == 0:
        return x
    kept = generator(rng).random(x.shape) >= p
    return np.where(kept, x / (1 - p) if p < 1 else 0 * x, 0)
