"""The functions of `tinyattn.functional` as layers, for Sequential and MLP."""

import tinyattn.functional as F
from tinyattn.nn.module import Module


class ReLU(Module):
    """The rectified linear unit, y = max(x, 0)."""

    def forward(self, x):
        """Return max(x, 0) for each number. Shape: x [...] → [...]."""
        return F.relu(x)


class LeakyReLU(Module):
    """The leaky rectified linear unit, y = x for x > 0 and y = negative_slope · x otherwise.

    Args:
        negative_slope   slope of y for negative x
    """

    def __init__(self, negative_slope=0.01):
        self.negative_slope = negative_slope

    def forward(self, x):
        """Return x for x > 0 and negative_slope · x otherwise. Shape: x [...] → [...].

        Raises:
            TypeError: `negative_slope` is not a number
        """
        return F.leaky_relu(x, self.negative_slope)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """The exponential linear unit, y = x for x > 0 and y = α (eˣ - 1) otherwise.

    Args:
        alpha   α, the factor of eˣ - 1, so y approaches -α for very negative x
    """

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def forward(self, x):
        """Return x for x > 0 and alpha (eˣ - 1) otherwise. Shape: x [...] → [...].

        Raises:
            TypeError: `alpha` is not a number
        """
        return F.elu(x, self.alpha)


class GELU(Module):
    """The Gaussian error linear unit, y = x Φ(x), with the cumulative normal distribution Φ.

    Args:
        approximate   "none" for Φ itself, or "tanh" for GPT-2's approximation
                      Φ(x) ≈ (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2
    """

    def __init__(self, approximate="none"):
        self.approximate = approximate

    def forward(self, x):
        """Return x Φ(x), with the cumulative normal distribution Φ. Shape: x [...] → [...].

        Raises:
            ValueError: `approximate` is neither "none" nor "tanh"
        """
        return F.gelu(x, self.approximate)


class SiLU(Module):
    """The sigmoid linear unit, y = x σ(x) = x / (1 + e⁻ˣ), also called swish."""

    def forward(self, x):
        """Return x / (1 + e⁻ˣ) for each number. Shape: x [...] → [...]."""
        return F.silu(x)


class Sigmoid(Module):
    """The logistic function, y = 1 / (1 + e⁻ˣ)."""

    def forward(self, x):
        """Return 1 / (1 + e⁻ˣ) for each number. Shape: x [...] → [...]."""
        return F.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent, y = tanh x."""

    def forward(self, x):
        """Return tanh x for each number. Shape: x [...] → [...]."""
        return F.tanh(x)


class Softmax(Module):
    """The softmax, y_i = exp(x_i) / Σ_j exp(x_j): positive numbers that sum to 1.

    Args:
        axis   axis along which the results sum to 1 (by default the last one), a tuple of axes, or
               None for all axes
    """

    def __init__(self, axis=-1):
        self.axis = axis

    def forward(self, x):
        """Return the softmax of x along the axis. Shape: x [...] → [...].

        Raises:
            ValueError: x has no such axis
            TypeError: the axis is neither a whole number, a tuple of them, nor None
        """
        return F.softmax(x, self.axis)
