"""ln |Γ| and its derivative, for all numbers except the poles 0, -1, -2, …"""

import math

import numpy as np

from tinyattn.engine.convert import as_float
from tinyattn.ops.gamma import polygamma


def lgamma(x):
    """Return the log-gamma function of each element of x, ln |Γ(x)|.

    At the poles 0, -1, -2, …, the result is ∞. For x < ½, the function is computed as
    ln π - ln |sin πx| - ln Γ(1 - x).
    """
    x = as_float(x)
    left, inner = _mirrored(x)
    y = polygamma(inner, 0)
    with np.errstate(divide="ignore"):
        mirrored = math.log(math.pi) - np.log(np.absolute(np.sin(_from_pole(x, left)))) - y
    return np.where(np.equal(x.data, -np.inf), np.inf, np.where(left, mirrored, y))


def digamma(x):
    """Return the digamma function of each element of x, ψ(x) = d/dx ln |Γ(x)|.

    At the poles 0, -1, -2, …, where ψ has no value, the result is -inf. For x < ½, the function is
    computed as ψ(1 - x) - π / tan πx.
    """
    x = as_float(x)
    left, inner = _mirrored(x)
    y = polygamma(inner, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left, y - np.pi / np.tan(_from_pole(x, left)), y)


def _mirrored(x):
    """Return (x < ½, the larger of x and 1 - x), both for each element of x."""
    left = np.less(x.data, 0.5)
    return left, np.where(left, np.subtract(1, x), x)


def _from_pole(x, left):
    """Return π (x - nearest whole number), which has the same |sin| and tan as πx.

    Where `left` (x < ½) is False, the result is not used. It is π/2, so that sin and tan are not 0.
    """
    left = left & np.isfinite(x.data)
    near = np.where(left, np.rint(np.where(left, x.data, 0)), 0)
    return np.pi * np.where(left, np.subtract(x, near), 0.5)
