"""Trigonometric and hyperbolic operations on each element by itself.

As in elementwise.py: g is the gradient that arrives, and operands are broadcast by the engine.
"""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.engine.dispatch import implements


@implements(np.sin)
@primitive
def sin(x):
    """y = sin x;   x̄ = ȳ cos x."""
    return np.sin(x)


sin.defvjp(lambda g, y, x: g * np.cos(x))


@implements(np.cos)
@primitive
def cos(x):
    """y = cos x;   x̄ = -ȳ sin x."""
    return np.cos(x)


cos.defvjp(lambda g, y, x: -g * np.sin(x))


@implements(np.tan)
@primitive
def tan(x):
    """y = tan x;   x̄ = ȳ (1 + y²)."""
    return np.tan(x)


tan.defvjp(lambda g, y, x: g * (1 + y * y))


@implements(np.arcsin)
@primitive
def arcsin(x):
    """y = arcsin x;   x̄ = ȳ / √(1 - x²)."""
    return np.arcsin(x)


arcsin.defvjp(lambda g, y, x: g / np.sqrt(1 - x * x))


@implements(np.arccos)
@primitive
def arccos(x):
    """y = arccos x;   x̄ = -ȳ / √(1 - x²)."""
    return np.arccos(x)


arccos.defvjp(lambda g, y, x: -g / np.sqrt(1 - x * x))


@implements(np.arctan)
@primitive
def arctan(x):
    """y = arctan x;   x̄ = ȳ / (1 + x²)."""
    return np.arctan(x)


arctan.defvjp(lambda g, y, x: g / (1 + x * x))


@implements(np.arctan2)
@primitive
def arctan2(a, b):
    """y = angle of the point (b, a);   ā = ȳ b / (a² + b²),  b̄ = -ȳ a / (a² + b²)."""
    return np.arctan2(a, b)


arctan2.defvjp(
    lambda g, y, a, b: g * b / (a * a + b * b), lambda g, y, a, b: -g * a / (a * a + b * b)
)


@implements(np.hypot)
@primitive
def hypot(a, b):
    """y = √(a² + b²);   ā = ȳ a / y,  b̄ = ȳ b / y (0 at the origin)."""
    return np.hypot(a, b)


def _direction(a, y):
    return a / np.where(np.equal(y, 0), 1, y)


hypot.defvjp(lambda g, y, a, b: g * _direction(a, y), lambda g, y, a, b: g * _direction(b, y))


@implements(np.sinh)
@primitive
def sinh(x):
    """y = sinh x;   x̄ = ȳ cosh x."""
    return np.sinh(x)


sinh.defvjp(lambda g, y, x: g * np.cosh(x))


@implements(np.cosh)
@primitive
def cosh(x):
    """y = cosh x;   x̄ = ȳ sinh x."""
    return np.cosh(x)


cosh.defvjp(lambda g, y, x: g * np.sinh(x))


@implements(np.tanh)
@primitive
def tanh(x):
    """y = tanh x;   x̄ = ȳ (1 - y²) = ȳ - ȳ y²."""
    return np.tanh(x)


tanh.defvjp(lambda g, y, x: g - g * y * y)  # a number as operand (1 - y * y) costs more


@implements(np.arcsinh)
@primitive
def arcsinh(x):
    """y = arsinh x;   x̄ = ȳ / √(x² + 1)."""
    return np.arcsinh(x)


arcsinh.defvjp(lambda g, y, x: g / np.sqrt(x * x + 1))


@implements(np.arccosh)
@primitive
def arccosh(x):
    """y = arcosh x;   x̄ = ȳ / √(x² - 1)."""
    return np.arccosh(x)


arccosh.defvjp(lambda g, y, x: g / np.sqrt(x * x - 1))


@implements(np.arctanh)
@primitive
def arctanh(x):
    """y = artanh x;   x̄ = ȳ / (1 - x²)."""
    return np.arctanh(x)


arctanh.defvjp(lambda g, y, x: g / (1 - x * x))
