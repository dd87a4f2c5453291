"""What is checked for each operation: functions and inputs at awkward shapes.

`CASES[what]` is a list of (note, function, inputs, order); `what` is a NumPy function, a function
of tinyattn or a layer. Values keep away from kinks and from the ends of the domain, where no
derivative exists; zeros and ties stand where a derivative does exist.
"""

from collections import defaultdict
from functools import partial
from typing import NamedTuple

import numpy as np

from tinyattn.ops.quantized import Q4_1, Q8_0, QuantizedMatrix, quantized_linear


class Case(NamedTuple):
    note: str
    f: object
    inputs: tuple
    order: int


CASES = defaultdict(list)


def case(what, *inputs, note="", f=None, order=2, **options):
    """Check f(*inputs) of the operation `what`; f is `what` with the options unless given."""
    f = f or (partial(what, **options) if options else what)
    shapes = " ".join(str(np.shape(x)) for x in inputs if isinstance(x, np.ndarray))
    note = note or ", ".join([shapes, *(f"{k}={v}" for k, v in options.items())])
    CASES[what].append(Case(note, f, inputs, order))


# ---------------------------------------------------------------- numbers


def _rng(*shape):
    return np.random.default_rng([7, *shape])


def normal(*shape):
    return _rng(*shape).normal(size=shape)


def positive(*shape):
    return _rng(*shape).uniform(0.5, 2, size=shape)


def above_one(*shape):
    return _rng(*shape).uniform(1.2, 2, size=shape)


def unit(*shape):
    return _rng(*shape).uniform(-0.8, 0.8, size=shape)


def apart(*shape):
    """Numbers at least 0.1 apart from each other and from 0, so that none is tied."""
    n = int(np.prod(shape))
    values = 0.15 * (1 + np.arange(n)) * np.where(np.arange(n) % 2, 1, -1)
    return _rng(*shape).permutation(values).reshape(shape)


def with_zeros(*shape):
    x = normal(*shape)
    x.flat[:: max(1, x.size // 2)] = 0
    return x


SHAPES = [(), (1,), (3,), (2, 3), (2, 0), (0,), (2, 1, 3)]
WELL = 3 * np.eye(3) + unit(3, 3)  # far from a matrix without an inverse
PAIRS = [
    ((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((2, 3), ()),
    ((0, 3), (1, 3)), ((1,), (2, 3)), ((2, 1, 2), (3, 1)), ((1, 1), ()),
]  # fmt: skip


def shapes(words):
    """The shapes in "23 3 .": (2, 3), (3,) and ()."""
    return [tuple(int(n) for n in word if n != ".") for word in words.split()]


def products(function, *pairs, **options):
    for pair in pairs:
        a, b = shapes(pair)
        case(function, normal(*a), normal(*b) + 0.1, **options)


def elementwise(function, numbers=normal):
    """One operand: every shape, a view with strides, a transposed matrix."""
    for shape in SHAPES:
        case(function, numbers(*shape))
    case(function, numbers(5, 4), f=lambda x: function(x[::2, ::-2]), note="strided view")
    case(function, numbers(2, 3), f=lambda x: function(x.T), note="transposed")
    case(function, numbers(2, 3, 2), order=3, f=lambda x: function(x[:, 1]), note="third order")


def binary(function, first=normal, second=normal):
    """Two operands: every pair of shapes, the same operand twice, numbers and arrays as one."""
    for a, b in PAIRS:
        case(function, first(*a), second(*b) + 0.01)
    case(function, first(2), second(2) + 0.02, order=3, note="third order")
    case(
        function,
        first(4, 3),
        second(6, 2),
        note="strided views",
        f=lambda a, b: function(a[::2, ::-1], b[::2, ::-1].T[:2]),
    )
    number, array = 1.25, second(1, 3) + 0.03
    case(function, first(2, 3), f=lambda a: function(a, number), note="number on the right")
    case(function, second(2, 3), f=lambda b: function(number, b), note="number on the left")
    case(function, first(2, 3), f=lambda a: function(a, array), note="array on the right")
    case(function, second(2, 3), f=lambda b: function(array, b), note="array on the left")


# ---------------------------------------------------------------- elementwise

for f in (
    np.negative,
    np.positive,
    np.square,
    np.exp,
    np.exp2,
    np.expm1,
    np.sin,
    np.cos,
    np.sinh,
    np.cosh,
    np.tanh,
    np.arctan,
    np.arcsinh,
):
    elementwise(f)
for f in (np.sqrt, np.log, np.log2, np.log10, np.log1p, np.reciprocal, np.cbrt):
    elementwise(f, positive)
for f in (np.tan, np.arcsin, np.arccos, np.arctanh):
    elementwise(f, unit)
elementwise(np.arccosh, above_one)
for f in (np.absolute, np.fabs, np.sign):
    elementwise(f, apart)
for f in (np.add, np.subtract, np.multiply, np.logaddexp):
    binary(f)
    case(f, normal(3), f=lambda x, f=f: f(x, x), note="one operand twice")
for f in (np.divide, np.arctan2, np.hypot):
    binary(f, second=positive)
    case(f, positive(3), f=lambda x, f=f: f(x, x), note="one operand twice")
for f in (np.power, np.float_power):
    binary(f, positive)
    case(f, positive(3), f=lambda x, f=f: f(x, x), note="x ** x", order=3)
for f in (np.maximum, np.minimum):
    binary(f, apart, lambda *s: apart(*s) + 0.05)
binary(np.remainder, lambda *s: apart(*s) + 0.03, above_one)

case(np.multiply, with_zeros(4), with_zeros(4), note="zeros")
case(np.hypot, np.array([0.0, 1.0]), np.array([2.0, 0.0]), note="zero in one operand")
case(np.square, with_zeros(4), order=3, note="zeros")
case(np.reciprocal, -positive(3), note="negative")
case(np.cbrt, -positive(3), note="negative")
case(np.log1p, 1e-9 * normal(3), note="tiny")
case(np.expm1, 1e-9 * normal(3), note="tiny")
case(np.logaddexp, np.array([700.0, -700.0, 0.0]), np.array([-700.0, 700.0, 0.0]), note="far apart")
case(np.arctan2, np.array([1.0, -1.0, 0.5]), np.array([-1.0, -1.0, 0.5]), note="all quadrants")
for n in (0, 1, 2, 3):
    case(np.power, with_zeros(2, 3), f=lambda x, n=n: x**n, order=3, note=f"x**{n} with zeros")
    case(
        np.power,
        with_zeros(2, 3),
        f=lambda x, n=n: x ** np.float64(n),
        order=3,
        note=f"x**{n}. with zeros",
    )
case(np.power, -positive(3), f=lambda x: x**3, note="negative base")
case(np.power, -positive(3), f=lambda x: x**-2, note="negative base, negative exponent")
case(np.power, normal(3), f=lambda x: 2**x, order=3, note="2**x")
case(np.power, positive(3), f=lambda x: x**0.5, order=3, note="x**0.5")
case(np.power, with_zeros(4), f=lambda x: x ** np.array([0, 1, 2, 3]), note="array of exponents")
case(np.power, positive(2), f=lambda x: 0.0**x, note="0**x for x > 0")

MASK = np.array([[True, False, True], [False, False, True]])
for a, b in (((), (3,)), ((2, 3), ()), ((2, 1), (1, 3)), ((2, 3), (2, 3)), ((1, 2, 3), (1,))):
    case(
        np.where, normal(*a), normal(*b), f=lambda a, b: np.where(MASK, a, b), note=f"mask {a} {b}"
    )
case(np.where, apart(2, 3), f=lambda x: np.where(x > 0, x * x, 2.0), note="condition of x")
case(np.where, normal(3), f=lambda x: np.where([True, False, True], 1.0, x), note="number, tensor")
case(np.where, normal(2, 3), f=lambda x: np.where(True, x, 0), note="condition a number")
case(np.where, normal(3), f=lambda x: np.where(x, x * x, 1.0), note="condition x itself")

for low, high in ((-0.4, 0.95), (None, 0.95), (-0.4, None)):
    case(np.clip, apart(2, 5), a_min=low, a_max=high)
case(np.clip, apart(0, 3), a_min=-0.4, a_max=0.9)
case(np.clip, np.array(0.3), a_min=-0.4, a_max=0.95, note="0-d")
case(np.clip, apart(2, 3), min=-0.4, max=0.5)
case(
    np.clip,
    apart(2, 3),
    np.array([-0.2, -0.3, -0.4]),
    np.array([[0.27], [0.51]]),
    note="limits with gradient, broadcast",
)

# ---------------------------------------------------------------- reductions

AXES = [
    ((2, 3), None), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), (0, 2)), ((2, 3, 2), (-1, 0)),
    ((), None), ((1, 3, 1), (0, 2)), ((2, 3), ()), ((4,), 0), ((2, 1), 1),
]  # fmt: skip
for f in (np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.ptp):
    numbers = apart if f in (np.max, np.min, np.ptp) else normal
    for shape, axis in AXES:
        spread = f is np.std and (shape == () or axis == () or shape in ((1, 3, 1), (2, 1)))
        if spread:  # no spread: the root has a kink
            continue
        for keepdims in (False, True):
            case(f, numbers(*shape), axis=axis, keepdims=keepdims)
    case(f, numbers(2, 3), f=f, note="no axis")
    case(f, numbers(3, 2), f=lambda x, f=f: f(x.T, axis=0), note="transposed")
    case(f, numbers(4, 6), f=lambda x, f=f: f(x[::2, ::-2], axis=1), note="strided view")
    case(f, numbers(2, 2), f=lambda x, f=f: f(x, axis=0), order=3, note="third order")
for f in (np.sum, np.prod):
    case(f, normal(0, 3), axis=0, note="empty axis")
    case(f, normal(0, 3), note="empty")
for f in (np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std):
    case(f, normal(0, 3), axis=1, note="no rows")
for f in (np.var, np.std):
    case(f, normal(2, 3), axis=1, ddof=1)
case(np.max, np.array([[1.0, 3, 3], [2, 2, 1]]), axis=1, order=1, note="pairs of ties")
case(np.min, np.array([[1.0, 1, 3], [2, 1, 1]]), axis=1, order=1, note="pairs of ties")
for zeros in ([0.0, 2, 3], [0.0, 0, 3], [0.0, 0, 0], [1.0, 0, 3]):
    case(np.prod, np.array(zeros), order=3, note=f"{zeros}")
    case(np.cumprod, np.array(zeros), order=3, note=f"{zeros}")
case(np.prod, np.array([[0.0, 2, 3], [4, 0, 0]]), axis=0, note="zeros, axis 0")
case(np.prod, with_zeros(2, 3, 2), axis=(0, 2), note="zeros, two axes")

for f in (np.cumsum, np.cumprod):
    for shape, axis in (
        ((4,), None),
        ((2, 3), None),
        ((2, 3), 0),
        ((2, 3), -1),
        ((2, 3, 2), 1),
        ((0, 2), 0),
        ((0, 2), 1),
        ((), None),
        ((1, 1), 0),
    ):
        case(f, normal(*shape), axis=axis)
    case(f, normal(3, 2), f=lambda x, f=f: f(x.T, axis=1), order=3, note="transposed, third order")

for shape in ((3, 3), (2, 4), (4, 2), (0, 0)):
    case(np.trace, normal(*shape))
case(np.average, normal(2, 3), axis=1)
case(np.average, normal(2, 3), axis=0, weights=positive(2, 3))
case(
    np.average,
    normal(3),
    positive(3),
    f=lambda x, w: np.average(x, weights=w),
    note="weights with gradient",
)

# ---------------------------------------------------------------- shapes

for old, new in (
    ((2, 3), (3, 2)),
    ((2, 3), -1),
    ((6,), (2, -1)),
    ((), (1, 1)),
    ((1,), ()),
    ((0, 3), (3, 0)),
    ((2, 3), (1, 6, 1)),
):
    case(np.reshape, normal(*old), new)
case(np.reshape, normal(2, 3), f=lambda x: np.reshape(x.T, (2, 3)), note="transposed")
case(np.ravel, normal(2, 3))
case(np.ravel, normal(), note="0-d")
for shape, axes in (
    ((2, 3), None),
    ((2, 3, 4), (2, 0, 1)),
    ((2, 3, 4), (-1, 0, -2)),
    ((), None),
    ((3,), None),
    ((0, 2), (1, 0)),
):
    case(np.transpose, normal(*shape), axes)
case(np.swapaxes, normal(2, 3, 2), 0, -1)
case(np.swapaxes, normal(2, 2), 1, 1)
for source, destination in ((0, -1), (-1, 0), ((0, 1), (-1, 0)), ((2, 0), (0, 1))):
    case(np.moveaxis, normal(2, 3, 2), source, destination)
for axis in (0, -1, (0, 2)):
    case(np.expand_dims, normal(2, 3), axis)
case(np.expand_dims, normal(), 0)
for shape, axis in (
    ((1, 3, 1), None),
    ((1, 3, 1), 0),
    ((1, 3, 1), (0, -1)),
    ((1,), 0),
    ((3,), None),
):
    case(np.squeeze, normal(*shape), axis)
for old, new in (((3,), (2, 3)), ((1, 3), (2, 3)), ((), (2, 2)), ((2, 1, 3), (2, 2, 3)),
                 ((1,), (0,)), ((2, 3), (2, 3)), ((1, 1), (1, 1))):  # fmt: skip
    case(np.broadcast_to, normal(*old), new)
case(np.broadcast_arrays, normal(2, 1), normal(3))
for axis in (None, 0, -1, (0, 2)):
    case(np.flip, normal(2, 3, 2), axis)
for shift, axis in ((1, None), (-2, 0), (7, -1), ((1, -1), (0, 1)), (1, (0, 1))):
    case(np.roll, normal(2, 3), shift, axis)
case(np.roll, normal(0), 1)
case(np.astype, normal(2, 3), np.float64)
case(np.copy, normal(2, 3))

for axis in (0, -1):
    case(
        np.concatenate,
        normal(2, 3),
        normal(2, 3) + 1,
        f=lambda a, b, axis=axis: np.concatenate([a, b, a], axis=axis),
        note=f"axis={axis}, one twice",
    )
    case(
        np.stack,
        normal(2, 3),
        normal(2, 3) + 1,
        f=lambda a, b, axis=axis: np.stack([a, b, a], axis=axis),
        note=f"axis={axis}, one twice",
    )
case(np.concatenate, normal(2, 3), normal(1, 3), normal(0, 3), f=lambda *x: np.concatenate(x))
case(np.concatenate, normal(2, 3), normal(4), f=lambda *x: np.concatenate(x, axis=None))
case(np.concatenate, normal(2), f=lambda x: np.concatenate([[1.0], x, np.ones(2)]), note="arrays")
case(np.stack, normal(), f=lambda x: np.stack([x, x * x, 1.0]), note="numbers")
case(np.stack, normal(2, 0), f=lambda x: np.stack([x, x], axis=1), note="empty")
for f in (np.hstack, np.vstack, np.column_stack):
    case(f, normal(3), normal(3) + 1, f=lambda a, b, f=f: f([a, b]), note="vectors")
    case(f, normal(2, 3), normal(2, 3) + 1, f=lambda a, b, f=f: f((a, b)), note="matrices")
case(np.hstack, normal(2, 1), normal(2, 3), f=lambda *x: np.hstack(x))
case(np.vstack, normal(3), normal(2, 3), f=lambda *x: np.vstack(x))
case(np.column_stack, normal(2), normal(2, 3), f=lambda *x: np.column_stack(x))
case(np.append, normal(2, 3), normal(2), f=np.append)
case(np.append, normal(2, 3), normal(1, 3), axis=0)
case(np.full_like, normal(2, 3), f=lambda x: np.full_like(x, x[0]))
case(np.bincount, normal(3), f=lambda w: np.bincount([2, 0, 2], weights=w, minlength=4))
case(np.unique, apart(2, 3))
case(np.histogram, normal(9), f=lambda x: x * np.histogram(x)[0][0])
for f in (np.atleast_1d, np.atleast_2d):
    for shape in ((), (3,), (2, 3)):
        case(f, normal(*shape))
for f in (np.split, np.array_split):
    case(f, normal(4, 3), 2)
    case(f, normal(4, 3), [1, 3])
    case(f, normal(4, 3), 3, axis=1)
    case(f, normal(4, 3), [2, 9], axis=-1)
case(np.array_split, normal(5), 3)
case(np.array_split, normal(4, 5), 3, axis=1)
case(np.hsplit, normal(2, 4), 2)
case(np.hsplit, normal(4), [1])
case(np.vsplit, normal(4, 2), 2)
for repeats, axis in ((2, None), (3, 0), (2, -1), (0, 0), (np.array([1, 0, 2]), 1)):
    case(np.repeat, normal(2, 3), repeats, axis)
case(np.repeat, normal(2, 3), np.array([1, 0, 2, 3, 1, 1]))
case(np.repeat, normal(), 3)
for reps in (2, (2, 1), (3, 1, 2), (1,), (0, 2), ()):
    case(np.tile, normal(2, 3), reps)
case(np.tile, normal(), 2)
for width in (1, (1, 2), ((0, 1), (2, 0)), 0, [(1, 1), (0, 0)]):
    case(np.pad, normal(2, 3), width)
case(np.pad, normal(3), 2, constant_values=1.5)
case(np.pad, normal(0, 2), 1)
for f in (np.tril, np.triu):
    for k in (-1, 0, 1, 5):
        case(f, normal(3, 4), k)
    case(f, normal(2, 3, 3))
    case(f, normal(3), 1)
for offset in (-2, -1, 0, 1, 3, 4, -5):
    case(np.diagonal, normal(3, 4), offset)
    case(np.diag, normal(3, 4), offset)
    case(np.diag, normal(3), offset)
case(np.diagonal, normal(2, 3, 4), 1, 0, 2)
case(np.diagonal, normal(2, 3, 4), axis1=-1, axis2=0)
case(np.diag, normal(0))
for k in (0, 1, 2, 3, -1, 5):
    case(np.rot90, normal(2, 3), k)
case(np.fliplr, normal(2, 3))
case(np.flipud, normal(2, 3))
case(np.flipud, normal(3))
for n, axis in ((1, -1), (2, 0), (0, 1), (1, 0)):
    case(np.diff, normal(3, 4), n, axis)

# ---------------------------------------------------------------- picking elements

GETITEM = {
    "number": 1,
    "negative number": -1,
    "slice": slice(1, None),
    "step": slice(None, None, -2),
    "ellipsis": (..., 0),
    "newaxis": (None, slice(None), None),
    "two numbers": (1, -1),
    "array, repeated": np.array([0, 2, 0, -1, 2]),
    "matrix of numbers": np.array([[0, 1], [1, 0]]),
    "list": [2, 0, 0],
    "empty list": [],
    "mask": np.array([True, False, True]),
    "no element": slice(2, 2),
    "two arrays": (np.array([0, 1, 0]), np.array([1, 1, 1])),
    "array and slice": (slice(None), np.array([1, 1, 0])),
    "everything": (),
    "dots": ...,
    "array around a slice": (np.array([0, 0]), slice(None), np.array([1, 0])),
    "array and newaxis": (None, np.array([0, -1, -1])),
    "true": True,
    "false": False,
}
GETITEM = {note: (normal(3, 4, 2), index) for note, index in GETITEM.items()}
GETITEM["full mask"] = normal(2, 3), MASK
GETITEM["mask and newaxis"] = normal(2, 3), (MASK, None)
GETITEM["vector, repeated"] = normal(3), np.array([0, -1, 2, 2])
GETITEM["0-d by ..."] = normal(), ...
GETITEM["0-d by ()"] = normal(), ()
GETITEM["0-d by None"] = normal(), None
GETITEM["strided rows"] = normal(2, 3), (slice(None), [[0, 2], [2, 2]])
GETITEM["0-d array"] = normal(3), np.array(1)
GETITEM["no rows"] = normal(0, 3), np.zeros(0, int)
GETITEM["no columns"] = normal(3, 0), np.array([0, 0, 1])
GETITEM["unsigned"] = normal(3, 2), np.array([2, 0, 2], np.uint8)
GETITEM["small integers, long axis"] = normal(300, 1), np.array([2, -1, 2], np.int8)
GETITEM["small unsigned, long axis"] = normal(300, 1), np.array([2, 0, 2], np.uint8)

for axis, indices in ((None, [0, 5, 5]), (0, [1, 0, 1]), (-1, [[0, 2], [2, 2]]), (1, -1)):
    case(np.take, normal(2, 3), np.array(indices), axis)
case(np.take, normal(2, 3), 1, 0)
case(np.take_along_axis, normal(2, 3), np.array([[0, 2, 2], [1, 1, 0]]), axis=1)
case(np.take_along_axis, normal(2, 3), np.array([[0, 1, 1]]), axis=0)
case(np.take_along_axis, normal(2, 3), np.array([0, 5, 0]), axis=None)
case(np.take_along_axis, normal(1, 3), np.array([[0, 2, 2], [1, 1, 0]]), axis=1, note="broadcast")
case(np.take_along_axis, normal(2, 3), np.array([[-1], [1]]), axis=-1)
for axis in (0, -1, None):
    case(np.sort, apart(2, 3), axis=axis)
case(np.sort, apart(0, 3), axis=0)

# ---------------------------------------------------------------- put together from the others

for f in (np.radians, np.deg2rad, np.degrees, np.rad2deg, np.conjugate, np.real, np.real_if_close):
    case(f, normal(2, 3))
for axis in (None, 0, -1, (0, 2)):
    for keepdims in (False, True):
        case(np.median, apart(3, 2, 4), axis=axis, keepdims=keepdims)
        case(np.quantile, apart(3, 2, 4), q=0.3, axis=axis, keepdims=keepdims)
case(np.median, apart(3, 5), axis=1, note="of an odd number")
for q in (0, 75, 100):
    case(np.percentile, apart(3, 5), q=q, axis=0)
case(np.logaddexp2, normal(2, 3), normal(3) + 0.1)
case(np.fmod, apart(2, 3), above_one(3))
case(np.copysign, apart(2, 3), f=lambda x: np.copysign(x, [1.0, -1, 2]), note="signs of an array")
case(np.copysign, apart(2, 3), apart(2, 3)[::-1].copy())
for f in (np.fmax, np.fmin):
    case(f, apart(2, 3), apart(3) + 0.05)
    case(f, apart(2), f=lambda x, f=f: f(x, [np.nan, 0.0]), note="nan")
case(np.sinc, normal(2, 3), order=3)
case(np.sinc, np.array([0.0, 1.0, 2.5]), order=1, note="zero and a root")
case(np.nan_to_num, normal(2, 3))
case(np.select, apart(2, 3), f=lambda x: np.select([x > 0.5, x > 0], [x * x, 2 * x], x**3))
case(np.select, apart(3), f=lambda x: np.select([x > 0], [x]), note="default")
for f in (np.amax, np.amin, np.nanmax, np.nanmin):
    case(f, apart(2, 3), axis=1)
    case(f, apart(2, 3), f=f, note="all")
for f in (np.nansum, np.nanmean):
    case(f, normal(2, 3), axis=0, keepdims=True)
    case(f, normal(2, 3), f=f, note="all")
for f in (np.nansum, np.nanmean, np.nanmax, np.nanmin):
    case(f, apart(2, 3), f=lambda x, f=f: f(np.where(MASK, x, np.nan), axis=1), note="nan")
case(np.trapezoid, normal(2, 4))
case(np.trapezoid, normal(4, 2), dx=0.5, axis=0)
case(np.trapezoid, normal(2, 4), positive(4), note="points with gradient")
case(np.trapezoid, normal(4, 2), positive(4), axis=0)
case(np.cov, normal(2, 4))
case(np.cov, normal(4, 2), rowvar=False, ddof=0)
case(np.cov, normal(4))
for f in (np.vecdot, np.linalg.vecdot):
    products(f, "23 3", "3 3", "213 23")
products(np.linalg.vecdot, "23 23", axis=0)
products(np.matvec, "23 3", "223 23")
products(np.vecmat, "2 23", "22 223")
for f in (np.cross, np.linalg.cross):
    products(f, "3 3", "23 3", "23 23")
    products(f, "32 32", axis=0)
for mode in ("full", "same", "valid"):
    products(np.convolve, "5 3", "2 4", "3 3", "4 1", mode=mode)
    products(np.correlate, "5 3", "2 4", "3 3", mode=mode)
products(np.polyval, "3 2", "1 2", "3 .")
case(
    np.linalg.multi_dot, normal(2, 3), normal(3, 2), normal(2), f=lambda *x: np.linalg.multi_dot(x)
)
for n in (-2, -1, 0, 1, 2, 3, 5):
    case(
        np.linalg.matrix_power,
        WELL[:2, :2],
        note=f"power {n}",
        f=lambda x, n=n: np.linalg.matrix_power(x, n) + 0 * x,
    )
case(np.linalg.vector_norm, apart(2, 3))
case(np.linalg.vector_norm, apart(2, 3), axis=1, ord=1)
case(np.linalg.vector_norm, apart(2, 3), keepdims=True)
products(np.linalg.matmul, "23 32")
products(np.linalg.outer, "2 3")
products(np.linalg.tensordot, "23 32", axes=1)
for f in (np.matrix_transpose, np.linalg.matrix_transpose):
    case(f, normal(2, 3, 2))
case(np.linalg.diagonal, normal(2, 3, 3), offset=1)
case(np.linalg.trace, normal(2, 3, 3), offset=-1)
for axis, start in ((2, 0), (0, 3), (1, 1), (-1, 1), (0, -1)):
    case(np.rollaxis, normal(2, 3, 2), axis, start)
case(np.dstack, normal(2, 3), normal(2, 3) + 1, f=lambda *x: np.dstack(x))
case(np.dstack, normal(3), normal(1, 3, 2), f=lambda *x: np.dstack(x))
for shape in ((), (2,), (2, 3), (2, 3, 2)):
    case(np.atleast_3d, normal(*shape))
case(np.dsplit, normal(2, 3, 4), 2)
case(np.unstack, normal(2, 3), axis=1)
for indexing in ("xy", "ij"):
    case(np.meshgrid, normal(2), normal(3), indexing=indexing)
    case(np.meshgrid, normal(2), normal(3), normal(1), indexing=indexing)
    case(np.meshgrid, normal(2), indexing=indexing)
case(np.delete, normal(4, 3), 1, 0)
case(np.delete, normal(4, 3), [0, -1], axis=0)
case(np.delete, normal(4), slice(1, 3))
case(np.lib.stride_tricks.sliding_window_view, normal(5), 3)
case(np.lib.stride_tricks.sliding_window_view, normal(3, 4), (2, 2))
case(np.lib.stride_tricks.sliding_window_view, normal(3, 4), 2, axis=0)


# ---------------------------------------------------------------- matrices of few bits


def blocks(kind, R, n):
    """A matrix [R, 32 n] in blocks with scales and offsets near 1."""
    raw = _rng(R, n).integers(0, 256, (R, n, kind.nbytes)).astype(np.uint8)
    raw[..., :4] = positive(R, n, 2).astype(np.float16).view(np.uint8)
    return QuantizedMatrix(kind, raw)


for kind in (Q4_1, Q8_0):
    for impl in ("sums", "numpy", "kernel"):
        for shape in ((32,), (2, 32), (0, 32), (2, 1, 32)):
            case(quantized_linear, normal(*shape), blocks(kind, 3, 1), impl=impl)
