"""The non-linear functions of networks that NumPy does not have, each with its rule."""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.ops.erf import erf_of
from tinyattn.ops.marks import elementwise

TWO_OVER_ROOT_PI = float(2 / np.sqrt(np.pi))


@primitive
def relu(x):
    """y = max(x, 0);   x̄ = ȳ where x > 0, else 0 (also at x = 0)."""
    return np.maximum(x, 0)


def _where_positive(g, y):
    """g where y > 0, else 0 (also where g is inf or nan).

    np.where asks at every element, and the processor, which guesses the answer, guesses wrong half
    of the time. So the bits of g are kept or struck out by a mask of 1...1 or 0...0.
    """
    if type(g) is not np.ndarray or g.dtype not in (np.float32, np.float64):
        return np.where(y > 0, g, 0)
    whole = np.dtype(f"i{g.itemsize}")  # whole numbers as long as those of g
    mask = np.array(np.greater(y, 0), whole)
    np.negative(mask, mask)  # 1 becomes -1: all bits are 1
    mask &= g.view(whole)
    return mask.view(g.dtype)


relu.defvjp(lambda g, y, x: _where_positive(g, y))


@elementwise
def sigmoid(x):
    """y = 1 / (1 + e⁻ˣ) = eˣ / (1 + eˣ);   x̄ = ȳ y (1 - y).

    Of the two forms the one whose exponent is not positive is taken: it never overflows, and far
    below 0 y is still eˣ, not 0. Both in one: exp(min(x, 0)) / (1 + exp(-|x|)).
    """
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


sigmoid.defvjp(lambda g, y, x: g * y * (1 - y))


@elementwise
def softplus(x):
    """y = ln(1 + eˣ);   x̄ = ȳ / (1 + e⁻ˣ)."""
    return np.logaddexp(x, np.zeros((), x.dtype))


softplus.defvjp(lambda g, y, x: g * sigmoid(x))


@elementwise
def erf(x):
    """y = 2/√π ∫₀ˣ exp(-t²) dt, the error function;   x̄ = ȳ 2/√π exp(-x²)."""
    return erf_of(x)


erf.defvjp(lambda g, y, x: g * np.exp(-x * x) * TWO_OVER_ROOT_PI)


@primitive
def softmax(x, axis=-1):
    """yᵢ = exp xᵢ / Σⱼ exp xⱼ along `axis`;   x̄ᵢ = yᵢ (ȳᵢ - Σⱼ ȳⱼ yⱼ).

    The largest x is subtracted first, which changes nothing but keeps exp from overflowing.
    A row of nothing but -inf has no answer and gives nan, as in PyTorch.
    """
    y = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return y / y.sum(axis=axis, keepdims=True)


softmax.defvjp(
    lambda g, y, x, axis=-1: y * (g - np.sum(g * y, axis=axis, keepdims=True)),
)


@primitive
def log_softmax(x, axis=-1):
    """yᵢ = xᵢ - ln Σⱼ exp xⱼ along `axis`;   x̄ᵢ = ȳᵢ - exp(yᵢ) Σⱼ ȳⱼ."""
    x = x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.exp(x).sum(axis=axis, keepdims=True))


log_softmax.defvjp(
    lambda g, y, x, axis=-1: g - np.exp(y) * np.sum(g, axis=axis, keepdims=True),
)
