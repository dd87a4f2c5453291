"""Elementwise trigonometric and hyperbolic operations.

As in elementwise.py, x̄ is dL/dx, g = ȳ is the incoming gradient, and the engine handles
broadcasting.
"""

import numpy as np

from tinyattn.engine.dispatch import implements
from tinyattn.ops.marks import elementwise


@implements(np.sin)
@elementwise
def sin(x):
    """Return y = sin x, with the gradient x̄ = ȳ cos x."""
    return np.sin(x)


sin.defvjp(lambda g, y, x: g * np.cos(x))


@implements(np.cos)
@elementwise
def cos(x):
    """Return y = cos x, with the gradient x̄ = -ȳ sin x."""
    return np.cos(x)


cos.defvjp(lambda g, y, x: -g * np.sin(x))


@implements(np.tan)
@elementwise
def tan(x):
    """Return y = tan x, with the gradient x̄ = ȳ (1 + y²)."""
    return np.tan(x)


tan.defvjp(lambda g, y, x: g * (1 + y * y))


@implements(np.arcsin)
@elementwise
def arcsin(x):
    """Return y = arcsin x, with the gradient x̄ = ȳ / √(1 - x²)."""
    return np.arcsin(x)


arcsin.defvjp(lambda g, y, x: g / np.sqrt(1 - x * x))


@implements(np.arccos)
@elementwise
def arccos(x):
    """Return y = arccos x, with the gradient x̄ = -ȳ / √(1 - x²)."""
    return np.arccos(x)


arccos.defvjp(lambda g, y, x: -g / np.sqrt(1 - x * x))


@implements(np.arctan)
@elementwise
def arctan(x):
    """Return y = arctan x, with the gradient x̄ = ȳ / (1 + x²)."""
    return np.arctan(x)


arctan.defvjp(lambda g, y, x: g / (1 + x * x))


@implements(np.arctan2)
@elementwise
def arctan2(a, b):
    """Return the angle of the point (b, a).

    The gradients are ā = ȳ b / (a² + b²) and b̄ = -ȳ a / (a² + b²), and 0 at the origin, where
    there is no angle.
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
    """Return y = √(a² + b²), with the gradients ā = ȳ a / y and b̄ = ȳ b / y, 0 at the origin."""
    return np.hypot(a, b)


def _direction(a, y):
    return a / np.where(np.equal(y, 0), 1, y)


hypot.defvjp(lambda g, y, a, b: g * _direction(a, y), lambda g, y, a, b: g * _direction(b, y))


@implements(np.sinh)
@elementwise
def sinh(x):
    """Return y = sinh x, with the gradient x̄ = ȳ cosh x."""
    return np.sinh(x)


sinh.defvjp(lambda g, y, x: g * np.cosh(x))


@implements(np.cosh)
@elementwise
def cosh(x):
    """Return y = cosh x, with the gradient x̄ = ȳ sinh x."""
    return np.cosh(x)


cosh.defvjp(lambda g, y, x: g * np.sinh(x))


@implements(np.tanh)
@elementwise
def tanh(x):
    """Return y = tanh x, with the gradient x̄ = ȳ (1 - y²) = ȳ - ȳ y²."""
    return np.tanh(x)


tanh.defvjp(lambda g, y, x: g - g * y * y)  # faster than 1 - y * y, which has a scalar operand


@implements(np.arcsinh)
@elementwise
def arcsinh(x):
    """Return y = arsinh x, with the gradient x̄ = ȳ / √(x² + 1)."""
    return np.arcsinh(x)


arcsinh.defvjp(lambda g, y, x: g / np.sqrt(x * x + 1))


@implements(np.arccosh)
@elementwise
def arccosh(x):
    """Return y = arcosh x, with the gradient x̄ = ȳ / √(x² - 1)."""
    return np.arccosh(x)


arccosh.defvjp(lambda g, y, x: g / np.sqrt(x * x - 1))


@implements(np.arctanh)
@elementwise
def arctanh(x):
    """Return y = artanh x, with the gradient x̄ = ȳ / (1 - x²)."""
    return np.arctanh(x)


arctanh.defvjp(lambda g, y, x: g / (1 - x * x))
