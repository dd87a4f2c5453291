"""The functions of `tinyattn.functional` as layers, for Sequential and MLP."""

import tinyattn.functional as F
from tinyattn.nn.module import Module


class ReLU(Module):
    """y = max(x, 0)."""

    def forward(self, x):
        """y, in the shape of x."""
        return F.relu(x)


class LeakyReLU(Module):
    """y = x for x > 0, else a small slope times x."""

    def __init__(self, negative_slope=0.01):
        self.negative_slope = negative_slope

    def forward(self, x):
        """y, in the shape of x."""
        return F.leaky_relu(x, self.negative_slope)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """y = x for x > 0, else α (eˣ - 1)."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def forward(self, x):
        """y, in the shape of x."""
        return F.elu(x, self.alpha)


class GELU(Module):
    """y = x Φ(x), Φ the cumulative normal distribution."""

    def __init__(self, approximate="none"):
        self.approximate = approximate

    def forward(self, x):
        """y, in the shape of x. Raises ValueError if `approximate` is neither "none" nor "tanh"."""
        return F.gelu(x, self.approximate)


class SiLU(Module):
    """y = x σ(x)."""

    def forward(self, x):
        """y, in the shape of x."""
        return F.silu(x)


class Sigmoid(Module):
    """y = 1 / (1 + e⁻ˣ)."""

    def forward(self, x):
        """y, in the shape of x."""
        return F.sigmoid(x)


class Tanh(Module):
    """y = tanh x."""

    def forward(self, x):
        """y, in the shape of x."""
        return F.tanh(x)


class Softmax(Module):
    """Positive numbers that sum to 1 along `axis`."""

    def __init__(self, axis=-1):
        self.axis = axis

    def forward(self, x):
        """y, in the shape of x."""
        return F.softmax(x, self.axis)
