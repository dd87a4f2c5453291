"""Elementwise operations. Operands of different shapes broadcast.

In the docstrings, x̄ is dL/dx, the gradient of the loss L with respect to x. In the rules, g = ȳ is
the incoming gradient, and each rule returns g · dy/dx. Where an operand was broadcast, the engine
sums over the copies, so the rules never mention this. At a kink (abs at 0, equal operands of
maximum), a rule returns a subgradient, which its docstring names. Where a slope is infinite (log at
0) and no gradient arrives, the engine uses 0 · ∞ = 0, as engine/invalid.py explains.
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
    """Return y = a + b, with the gradients ā = ȳ and b̄ = ȳ."""
    return a + b


add.defvjp(lambda g, y, a, b: g, lambda g, y, a, b: g)


@implements(np.subtract)
@of_whole_numbers
@elementwise
def subtract(a, b):
    """Return y = a - b, with the gradients ā = ȳ and b̄ = -ȳ."""
    return a - b


subtract.defvjp(lambda g, y, a, b: g, lambda g, y, a, b: -g)


@implements(np.multiply)
@of_whole_numbers
@elementwise
def multiply(a, b):
    """Return y = a b, with the gradients ā = ȳ b and b̄ = ȳ a."""
    return a * b


multiply.defvjp(lambda g, y, a, b: g * b, lambda g, y, a, b: g * a)


@implements(np.divide)
@elementwise
def divide(a, b):
    """Return y = a / b, with the gradients ā = ȳ / b and b̄ = -ȳ y / b."""
    return a / b


divide.defvjp(lambda g, y, a, b: g / b, lambda g, y, a, b: -(g / b) * y)


@implements(np.power, np.float_power)
@of_whole_numbers
@elementwise
def power(a, b):
    """Return y = aᵇ, with the gradients ā = ȳ b aᵇ⁻¹ and b̄ = ȳ y ln a.

    For b = 0, ā is 0. For a ≤ 0, where ln a does not exist, b̄ is 0.
    """
    return np.power(a, b)


def _power_base(g, y, a, b):
    # For b = 0, the derivative is 0 everywhere. At a = 0, a**-1 would give inf * 0 = NaN.
    return g * b * np.power(a, np.where(np.equal(b, 0), 1, np.subtract(b, 1)))


def _power_exponent(g, y, a, b):
    return g * y * np.log(np.where(np.greater(a, 0), a, 1))


power.defvjp(_power_base, _power_exponent)


@implements(np.remainder)
@elementwise
def remainder(a, b):
    """Return y = a mod b = a - b ⌊a/b⌋, which has the sign of b.

    The gradients are ā = ȳ and b̄ = -ȳ ⌊a/b⌋.
    """
    return np.remainder(a, b)


def _quotient(g, y, a, b):
    # This is not ⌊a/b⌋: 1 / 0.1 rounds to 10, but the stored 0.1 is slightly larger and fits only 9
    # times.
    return -g * np.rint((a - y) / b)


remainder.defvjp(lambda g, y, a, b: g, _quotient)


@implements(np.fmod)
@elementwise
def fmod(a, b):
    """Return y = a - b trunc(a/b), which has the sign of a.

    The gradients are ā = ȳ and b̄ = -ȳ trunc(a/b).
    """
    return np.fmod(a, b)


fmod.defvjp(lambda g, y, a, b: g, _quotient)


@implements(np.negative)
@of_whole_numbers
@elementwise
def negative(x):
    """Return y = -x, with the gradient x̄ = -ȳ."""
    return np.negative(x)


negative.defvjp(lambda g, y, x: -g)


@implements(np.positive)
@elementwise
def positive(x):
    """Return y = x, with the gradient x̄ = ȳ."""
    return np.positive(x)


positive.defvjp(lambda g, y, x: g)


@implements(np.absolute, np.fabs)
@of_whole_numbers
@elementwise
def absolute(x):
    """Return y = |x|, with the gradient x̄ = ȳ sign x (0 at x = 0)."""
    return np.absolute(x)


absolute.defvjp(lambda g, y, x: g * np.sign(x))


@implements(np.sign)
@elementwise
def sign(x):
    """Return y = sign x, with the gradient x̄ = 0."""
    return np.sign(x)


sign.defvjp(lambda g, y, x: np.zeros_like(g))


@implements(np.reciprocal)
@elementwise
def reciprocal(x):
    """Return y = 1 / x, with the gradient x̄ = -ȳ y²."""
    return np.divide(1, x)


reciprocal.defvjp(lambda g, y, x: -g * (y * y))


@implements(np.square)
@of_whole_numbers
@elementwise
def square(x):
    """Return y = x², with the gradient x̄ = 2 ȳ x."""
    return np.square(x)


square.defvjp(lambda g, y, x: g * 2 * x)


@implements(np.sqrt)
@elementwise
def sqrt(x):
    """Return y = √x, with the gradient x̄ = ȳ / 2y, which at x = 0 is infinite, or 0 if ȳ = 0."""
    return np.sqrt(x)


def _sqrt_rule(g, y, x):
    # Where the gradient of y is 0, the gradient of x is 0 too, even at a negative x. There, y is
    # already NaN, and the engine notices only new NaN.
    lost = np.logical_and(np.equal(g, 0), np.logical_not(np.greater(y, 0)))
    return g / np.where(lost, 1, 2 * y)


sqrt.defvjp(_sqrt_rule)


@implements(np.cbrt)
@elementwise
def cbrt(x):
    """Return y = ∛x, with the gradient x̄ = ȳ / 3y²."""
    return np.cbrt(x)


cbrt.defvjp(lambda g, y, x: g / (3 * y * y))


# ---------------------------------------------------------------- exponentials and logarithms


@implements(np.exp)
@elementwise
def exp(x):
    """Return y = eˣ, with the gradient x̄ = ȳ y."""
    return np.exp(x)


exp.defvjp(lambda g, y, x: g * y)


@implements(np.exp2)
@elementwise
def exp2(x):
    """Return y = 2ˣ, with the gradient x̄ = ȳ y ln 2."""
    return np.exp2(x)


exp2.defvjp(lambda g, y, x: g * y * LN2)


@implements(np.expm1)
@elementwise
def expm1(x):
    """Return y = eˣ - 1, exact near 0, with the gradient x̄ = ȳ (y + 1)."""
    return np.expm1(x)


expm1.defvjp(lambda g, y, x: g * (y + 1))


@implements(np.log)
@elementwise
def log(x):
    """Return y = ln x, with the gradient x̄ = ȳ / x."""
    return np.log(x)


log.defvjp(lambda g, y, x: g / x)


@implements(np.log2)
@elementwise
def log2(x):
    """Return y = log₂ x, with the gradient x̄ = ȳ / (x ln 2)."""
    return np.log2(x)


log2.defvjp(lambda g, y, x: g / (x * LN2))


@implements(np.log10)
@elementwise
def log10(x):
    """Return y = log₁₀ x, with the gradient x̄ = ȳ / (x ln 10)."""
    return np.log10(x)


log10.defvjp(lambda g, y, x: g / (x * LN10))


@implements(np.log1p)
@elementwise
def log1p(x):
    """Return y = ln(1 + x), exact near 0, with the gradient x̄ = ȳ / (1 + x)."""
    return np.log1p(x)


log1p.defvjp(lambda g, y, x: g / (1 + x))


@implements(np.logaddexp)
@elementwise
def logaddexp(a, b):
    """Return y = ln(eᵃ + eᵇ), with the gradients ā = ȳ eᵃ⁻ʸ and b̄ = ȳ eᵇ⁻ʸ.

    For two infinities of the same sign, both gradients are ȳ/2.
    """
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
    """Return y = max(a, b). The larger operand gets ȳ, and equal operands get ȳ/2 each."""
    return np.maximum(a, b)


def _to_larger(g, a, b):
    return np.where(np.equal(a, b), g * 0.5, np.where(np.greater(a, b), g, 0))


maximum.defvjp(lambda g, y, a, b: _to_larger(g, a, b), lambda g, y, a, b: _to_larger(g, b, a))


@implements(np.minimum)
@elementwise
def minimum(a, b):
    """Return y = min(a, b). The smaller operand gets ȳ, and equal operands get ȳ/2 each."""
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
    """Return a where the condition holds, and b otherwise. The selected operand gets ȳ.

    Both a and b are computed everywhere, so NumPy may warn of a division by 0 in the operand that
    is not selected. The gradient of that operand is 0, even if its slope is infinite. If only a
    condition is given, the function returns the indices where it holds, as a tuple with a plain
    array for each axis. Raises TypeError if only one of a and b is given.
    """
    if a is None and b is None:
        return np.where(to_array(condition))
    if a is None or b is None:
        raise TypeError(
            "np.where: either both a and b must be given, or neither of them. Write "
            "np.where(condition, a, b)"
        )
    if isinstance(condition, Tensor) and condition.requires_grad:
        condition = to_array(condition) != 0
    return _where(condition, a, b)


@implements(np.clip)
def clip(x, a_min=None, a_max=None, *, min=None, max=None):
    """Return x limited to [a_min, a_max].

    The gradient x̄ is ȳ inside and on the limits, and 0 outside. None means that there is no limit
    on this side. A limit that is a Tensor receives the gradient where it replaces x. `min` and
    `max` are other names of a_min and a_max, as in NumPy. Raises ValueError if a limit is given
    under both names.
    """
    if (a_min is not None and min is not None) or (a_max is not None and max is not None):
        raise ValueError(
            "np.clip of Tensors: min is another name of a_min, and max of a_max. Give each limit "
            "only once"
        )
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
