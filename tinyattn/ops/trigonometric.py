"""Elementwise trigonometric and hyperbolic operations.

As in elementwise.py, g is the incoming gradient, and the engine handles broadcasting.
"""

import numpy as np

from tinyattn.engine.dispatch import implements
from tinyattn.ops.marks import elementwise


@implements(np.sin)
@elementwise
def sin(x):
    """y = sin x;   x̄ = ȳ cos x."""
    return np.sin(x)


sin.defvjp(lambda g, y, x: g * np.cos(x))


@implements(np.cos)
@elementwise
def cos(x):
    """y = cos x;   x̄ = -ȳ sin x."""
    return np.cos(x)


cos.defvjp(lambda g, y, x: -g * np.sin(x))


@implements(np.tan)
@elementwise
def tan(x):
    """y = tan x;   x̄ = ȳ (1 + y²)."""
    return np.tan(x)


tan.defvjp(lambda g, y, x: g * (1 + y * y))


@implements(np.arcsin)
@elementwise
def arcsin(x):
    """y = arcsin x;   x̄ = ȳ / √(1 - x²)."""
    return np.arcsin(x)


arcsin.defvjp(lambda g, y, x: g / np.sqrt(1 - x * x))


@implements(np.arccos)
@elementwise
def arccos(x):
    """y = arccos x;   x̄ = -ȳ / √(1 - x²)."""
    return np.arccos(x)


arccos.defvjp(lambda g, y, x: -g / np.sqrt(1 - x * x))


@implements(np.arctan)
@elementwise
def arctan(x):
    """y = arctan x;   x̄ = ȳ / (1 + x²)."""
    return np.arctan(x)


arctan.defvjp(lambda g, y, x: g / (1 + x * x))


@implements(np.arctan2)
@elementwise
def arctan2(a, b):
    """y = angle of the point (b, a);   ā = ȳ b / (a² + b²),  b̄ = -ȳ a / (a² + b²).

    At the origin there is no angle, and the gradient is 0.
    """
    return np.arctan2(a, b)


def _over_square(x, a, b):
    square = a * a + b * b
    return x / np.where(np.equal(square, 0), 1, square)


arctan2.defvjp(
    lambda g, y, a, b: g * _over_square(b, a, b), lambda g, y, a, b: -g * _over_square(a, a, b)
)


@implements(np.hypot)
@elementwise
def hypot(a, b):
    """y = √(a² + b²);   ā = ȳ a / y,  b̄ = ȳ b / y (0 at the origin)."""
    return np.hypot(a, b)


def _direction(a, y):
    return a / np.where(np.equal(y, 0), 1, y)


hypot.defvjp(lambda g, y, a, b: g * _direction(a, y), lambda g, y, a, b: g * _direction(b, y))


@implements(np.sinh)
@elementwise
def sinh(x):
    """y = sinh x;   x̄ = ȳ cosh x."""
    return np.sinh(x)


sinh.defvjp(lambda g, y, x: g * np.cosh(x))


@implements(np.cosh)
@elementwise
def cosh(x):
    """y = cosh x;   x̄ = ȳ sinh x."""
    return np.cosh(x)


cosh.defvjp(lambda g, y, x: g * np.sinh(x))


@implements(np.tanh)
@elementwise
def tanh(x):
    """y = tanh x;   x̄ = ȳ (1 - y²) = ȳ - ȳ y²."""
    return np.tanh(x)


tanh.defvjp(lambda g, y, x: g - g * y * y)  # faster than 1 - y * y, which has a number as operand


@implements(np.arcsinh)
@elementwise
def arcsinh(x):
    """y = arsinh x;   x̄ = ȳ / √(x² + 1)."""
    return np.arcsinh(x)


arcsinh.defvjp(lambda g, y, x: g / np.sqrt(x * x + 1))


@implements(np.arccosh)
@elementwise
def arccosh(x):
    """y = arcosh x;   x̄ = ȳ / √(x² - 1)."""
    return np.arccosh(x)


arccosh.defvjp(lambda g, y, x: g / np.sqrt(x * x - 1))


@implements(np.arctanh)
@elementwise
def arctanh(x):
    """y = artanh x;   x̄ = ȳ / (1 - x²)."""
    return np.arctanh(x)


arctanh.defvjp(lambda g, y, x: g / (1 - x * x))
