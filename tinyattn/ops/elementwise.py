"""Elementwise operations, whose operands may have different shapes and then broadcast.

In the rules, g = dL/dy is the incoming gradient, and each function returns g · dy/dx. Where an
operand was broadcast, the engine sums over the copies, so the rules never mention it. At a kink
(abs at 0, a tie of maximum), a rule returns a subgradient and names it. Where a slope is infinite
(log at 0) and no gradient arrives, the engine uses 0 · ∞ = 0, as engine/invalid.py explains.
"""

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import nondifferentiable, to_array
from tinyattn.engine.dispatch import implements
from tinyattn.engine.invalid import note_nan
from tinyattn.ops.marks import elementwise, of_whole_numbers

LN2, LN10 = float(np.log(2.0)), float(np.log(10.0))

# ---------------------------------------------------------------- arithmetic


@implements(np.add)
@of_whole_numbers
@elementwise
def add(a, b):
    """y = a + b;   ā = ȳ,  b̄ = ȳ."""
    return a + b


add.defvjp(lambda g, y, a, b: g, lambda g, y, a, b: g)


@implements(np.subtract)
@of_whole_numbers
@elementwise
def subtract(a, b):
    """y = a - b;   ā = ȳ,  b̄ = -ȳ."""
    return a - b


subtract.defvjp(lambda g, y, a, b: g, lambda g, y, a, b: -g)


@implements(np.multiply)
@of_whole_numbers
@elementwise
def multiply(a, b):
    """y = a b;   ā = ȳ b,  b̄ = ȳ a."""
    return a * b


multiply.defvjp(lambda g, y, a, b: g * b, lambda g, y, a, b: g * a)


@implements(np.divide)
@elementwise
def divide(a, b):
    """y = a / b;   ā = ȳ / b,  b̄ = -ȳ y / b."""
    return a / b


divide.defvjp(lambda g, y, a, b: g / b, lambda g, y, a, b: -(g / b) * y)


@implements(np.power, np.float_power)
@of_whole_numbers
@elementwise
def power(a, b):
    """y = aᵇ;   ā = ȳ b aᵇ⁻¹ (0 where b = 0),  b̄ = ȳ y ln a (0 where a ≤ 0)."""
    return np.power(a, b)


def _power_base(g, y, a, b):
    # For b = 0, the derivative is 0 everywhere. At a = 0, a**-1 would give inf * 0 = nan.
    return g * b * np.power(a, np.where(np.equal(b, 0), 1, np.subtract(b, 1)))


def _power_exponent(g, y, a, b):
    return g * y * np.log(np.where(np.greater(a, 0), a, 1))


power.defvjp(_power_base, _power_exponent)


@implements(np.remainder)
@elementwise
def remainder(a, b):
    """y = a mod b = a - b ⌊a/b⌋, with the sign of b;   ā = ȳ,  b̄ = -ȳ ⌊a/b⌋."""
    return np.remainder(a, b)


def _quotient(g, y, a, b):
    # This is not ⌊a/b⌋: 1 / 0.1 rounds to 10, but the stored 0.1 is slightly larger and fits only 9
    # times.
    return -g * np.rint((a - y) / b)


remainder.defvjp(lambda g, y, a, b: g, _quotient)


@implements(np.fmod)
@elementwise
def fmod(a, b):
    """y = a - b trunc(a/b), with the sign of a;   ā = ȳ,  b̄ = -ȳ trunc(a/b)."""
    return np.fmod(a, b)


fmod.defvjp(lambda g, y, a, b: g, _quotient)


@implements(np.negative)
@of_whole_numbers
@elementwise
def negative(x):
    """y = -x;   x̄ = -ȳ."""
    return np.negative(x)


negative.defvjp(lambda g, y, x: -g)


@implements(np.positive)
@elementwise
def positive(x):
    """y = x;   x̄ = ȳ."""
    return np.positive(x)


positive.defvjp(lambda g, y, x: g)


@implements(np.absolute, np.fabs)
@of_whole_numbers
@elementwise
def absolute(x):
    """y = |x|;   x̄ = ȳ sign x (0 at x = 0)."""
    return np.absolute(x)


absolute.defvjp(lambda g, y, x: g * np.sign(x))


@implements(np.sign)
@elementwise
def sign(x):
    """y = sign x;   x̄ = 0."""
    return np.sign(x)


sign.defvjp(lambda g, y, x: np.zeros_like(g))


@implements(np.reciprocal)
@elementwise
def reciprocal(x):
    """y = 1 / x;   x̄ = -ȳ y²."""
    return np.divide(1, x)


reciprocal.defvjp(lambda g, y, x: -g * (y * y))


@implements(np.square)
@of_whole_numbers
@elementwise
def square(x):
    """y = x²;   x̄ = 2 ȳ x."""
    return np.square(x)


square.defvjp(lambda g, y, x: g * 2 * x)


@implements(np.sqrt)
@elementwise
def sqrt(x):
    """y = √x;   x̄ = ȳ / 2y.  At x = 0 the slope is infinite: inf, or 0 where ȳ = 0."""
    return np.sqrt(x)


def _sqrt_rule(g, y, x):
    # Where the gradient of y is 0, the gradient of x is 0 too, even at a negative x. There, y is
    # already nan, and the engine notices only new nan.
    lost = np.logical_and(np.equal(g, 0), np.logical_not(np.greater(y, 0)))
    return g / np.where(lost, 1, 2 * y)


sqrt.defvjp(_sqrt_rule)


@implements(np.cbrt)
@elementwise
def cbrt(x):
    """y = ∛x;   x̄ = ȳ / 3y²."""
    return np.cbrt(x)


cbrt.defvjp(lambda g, y, x: g / (3 * y * y))


# ---------------------------------------------------------------- exponentials and logarithms


@implements(np.exp)
@elementwise
def exp(x):
    """y = eˣ;   x̄ = ȳ y."""
    return np.exp(x)


exp.defvjp(lambda g, y, x: g * y)


@implements(np.exp2)
@elementwise
def exp2(x):
    """y = 2ˣ;   x̄ = ȳ y ln 2."""
    return np.exp2(x)


exp2.defvjp(lambda g, y, x: g * y * LN2)


@implements(np.expm1)
@elementwise
def expm1(x):
    """y = eˣ - 1, exact near 0;   x̄ = ȳ (y + 1)."""
    return np.expm1(x)


expm1.defvjp(lambda g, y, x: g * (y + 1))


@implements(np.log)
@elementwise
def log(x):
    """y = ln x;   x̄ = ȳ / x."""
    return np.log(x)


log.defvjp(lambda g, y, x: g / x)


@implements(np.log2)
@elementwise
def log2(x):
    """y = log₂ x;   x̄ = ȳ / (x ln 2)."""
    return np.log2(x)


log2.defvjp(lambda g, y, x: g / (x * LN2))


@implements(np.log10)
@elementwise
def log10(x):
    """y = log₁₀ x;   x̄ = ȳ / (x ln 10)."""
    return np.log10(x)


log10.defvjp(lambda g, y, x: g / (x * LN10))


@implements(np.log1p)
@elementwise
def log1p(x):
    """y = ln(1 + x), exact near 0;   x̄ = ȳ / (1 + x)."""
    return np.log1p(x)


log1p.defvjp(lambda g, y, x: g / (1 + x))


@implements(np.logaddexp)
@elementwise
def logaddexp(a, b):
    """y = ln(eᵃ + eᵇ);   ā = ȳ eᵃ⁻ʸ,  b̄ = ȳ eᵇ⁻ʸ (½ each for two infinities of one sign)."""
    return np.logaddexp(a, b)


def _share(x, y):  # computes e^(x-y) without inf - inf
    return np.exp(np.where(np.equal(x, y), 0, x) - np.where(np.equal(x, y), 0, y))


def _share_of(x, other, y):
    both_infinite = np.logical_and(np.equal(x, other), np.isinf(x))
    return np.where(both_infinite, 0.5, _share(x, y))


logaddexp.defvjp(
    lambda g, y, a, b: g * _share_of(a, b, y), lambda g, y, a, b: g * _share_of(b, a, y)
)


# ---------------------------------------------------------------- choosing


@implements(np.maximum)
@elementwise
def maximum(a, b):
    """y = max(a, b);   the larger one gets ȳ, equal ones half each."""
    return np.maximum(a, b)


def _to_larger(g, a, b):
    return np.where(np.equal(a, b), g * 0.5, np.where(np.greater(a, b), g, 0))


maximum.defvjp(lambda g, y, a, b: _to_larger(g, a, b), lambda g, y, a, b: _to_larger(g, b, a))


@implements(np.minimum)
@elementwise
def minimum(a, b):
    """y = min(a, b);   the smaller one gets ȳ, equal ones half each."""
    return np.minimum(a, b)


minimum.defvjp(lambda g, y, a, b: _to_larger(g, b, a), lambda g, y, a, b: _to_larger(g, a, b))


@elementwise
def _where(condition, a, b):
    return np.where(condition, a, b)


def _to_first(g, y, c, a, b):
    note_nan(a)
    return np.where(c, g, 0)


def _to_second(g, y, c, a, b):
    note_nan(b)
    return np.where(c, 0, g)


_where.defvjp(None, _to_first, _to_second)


@implements(np.where)
def where(condition, a=None, b=None):
    """y = a where the condition holds, otherwise b;   ȳ goes to the operand that was selected.

    Both a and b are computed everywhere, so NumPy may warn of a division by 0 in the operand that
    is not selected. Its gradient is 0, whatever its slope.

    With only a condition, it returns the indices where it holds, as plain arrays (np.where).
    """
    if a is None and b is None:
        return np.where(to_array(condition))
    if isinstance(condition, Tensor) and condition.requires_grad:
        condition = to_array(condition) != 0
    return _where(condition, a, b)


@implements(np.clip)
def clip(x, a_min=None, a_max=None, *, min=None, max=None):
    """y = x limited to [a_min, a_max];   x̄ = ȳ inside and on the limits, 0 outside.

    None leaves a side open. A limit that is a Tensor receives the gradient where it is active.
    """
    low, high = a_min if min is None else min, a_max if max is None else max
    y = x
    if low is not None:
        y = where(np.less(to_array(y), to_array(low)), low, y)
    if high is not None:
        y = where(np.greater(to_array(y), to_array(high)), high, y)
    return y if isinstance(y, Tensor) and y is not x else positive(x)


# ---------------------------------------------------------------- without a gradient

nondifferentiable(
    np.floor,
    np.ceil,
    np.trunc,
    np.rint,
    np.fix,
    np.round,
    np.around,
    np.floor_divide,
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.logical_and,
    np.logical_or,
    np.logical_not,
    np.logical_xor,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.invert,
    np.isnan,
    np.isinf,
    np.isfinite,
    np.signbit,
    np.heaviside,
    np.isclose,
    np.allclose,
    np.array_equal,
    np.all,
    np.any,
    np.zeros_like,
    np.ones_like,
    np.empty_like,
    np.shape,
    np.ndim,
    np.size,
    np.result_type,
    np.may_share_memory,
    np.shares_memory,
    np.array_repr,
    np.array_str,
    np.array2string,
    np.iscomplexobj,
    np.isrealobj,
)
