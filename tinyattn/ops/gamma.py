"""ln Γ and its derivatives for positive numbers, accurate to the last digits of float64.

For x ≥ 10, Stirling's series is used. A smaller x is increased by ten steps of Γ(x + 1) = x Γ(x).
Around 1 and 2, where ln Γ is 0, digits would cancel, so the Taylor series is used. Source:
Abramowitz, Stegun 1964, 6.1.33, 6.1.41, 6.3.18, 6.4.11.

No lecture, homework or layer uses F.lgamma and F.digamma, which are based on this file. They are
complete, and no other special functions are planned.
"""

from functools import cache
from math import factorial

import numpy as np

from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.ops.marks import elementwise

START = 10  # from here on, eight terms of the series are accurate to 1e-16
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
EULER = 0.57721566490153286061
NEAR, TERMS = 0.3, 32  # the Taylor series is used up to this distance from 1 and 2


@elementwise
def polygamma(x, n):
    """Return y = dⁿ/dxⁿ ln Γ(x) for x > 0, with the gradient dL/dx = dL/dy dⁿ⁺¹/dxⁿ⁺¹ ln Γ(x).

    n = 0 gives ln Γ, and n = 1 gives the digamma function, which is SciPy's polygamma(0, x).
    """
    x = np.asarray(x)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return _value(x.astype(np.float64), n).astype(
            x.dtype if x.dtype.kind == "f" else DEFAULT_DTYPE
        )


polygamma.defvjp(lambda g, y, x, n: g * polygamma(x, n + 1), None)


def _value(x, n):
    steps = np.where(x < START, START, 0)
    y = _series(x + steps, n)
    below = x[..., None] + np.arange(START)  # x, x + 1, … x + 9
    if n == 0:
        fall = np.log(np.prod(below, axis=-1))
    else:
        fall = (-1) ** (n + 1) * factorial(n - 1) * np.sum(below ** float(-n), axis=-1)
    y = np.where(steps > 0, y - fall, y)
    return _near_its_zeros(x, y) if n == 0 else y


def _series(z, n):
    """Return Stirling's series for ln Γ(z), differentiated n times."""
    if n == 0:
        y = (z - 0.5) * np.log(z) - z + 0.5 * np.log(2 * np.pi)
        y = np.where(z == np.inf, z, y)
    elif n == 1:
        y = np.log(z) - 0.5 / z
    else:
        y = (-1) ** n * (
            factorial(n - 2) * z ** float(1 - n) + factorial(n - 1) / 2 * z ** float(-n)
        )
    for i, b in enumerate(BERNOULLI):
        k = 2 * i + 2  # add the n-th derivative of b / (k (k - 1)) z^(1 - k)
        y = y + (-1) ** n * b * (factorial(k + n - 2) / factorial(k)) * z ** float(1 - k - n)
    return y


def _near_its_zeros(x, y):
    """Return ln Γ near 1 and 2, ln Γ(1 + t) = -γ t + Σ ζ(k) (-t)ᵏ / k, and y elsewhere.

    Near 2, ln Γ(2 + t) = ln(1 + t) + ln Γ(1 + t).
    """
    second = x > 1.5
    t = np.clip(x - np.where(second, 2.0, 1.0), -NEAR, NEAR)
    total = np.zeros_like(t)
    for k in range(TERMS, 1, -1):
        total = -t * (total + _zeta(k) / k)
    total = t * -EULER + -t * total
    total = total + np.where(second, np.log1p(t), 0)
    return np.where(np.abs(x - np.where(second, 2.0, 1.0)) < NEAR, total, y)


@cache
def _zeta(k):
    """Return ζ(k) = Σ n⁻ᵏ, which is (-1)ᵏ ψ⁽ᵏ⁻¹⁾(1) / (k - 1)!"""
    return float((-1) ** k * _value(np.array(1.0), k) / factorial(k - 1))
