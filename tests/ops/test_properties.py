"""Every recorded NumPy function at arrays of any shape, layout and dtype: values and gradients.

Values are NumPy's, also at zeros, ties, infinities and nan; gradients agree with differences to
second order, have the shape and dtype of their input, and nothing that was given is changed.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.linalg import CASES
from tinyattn import Tensor
from tinyattn.check import gradcheck
from tinyattn.engine.convert import NONDIFFERENTIABLE
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS

RECORDED = [f for f in HANDLED_FUNCTIONS if f not in NONDIFFERENTIABLE]
UFUNCS = [f for f in RECORDED if isinstance(f, np.ufunc) and f.signature is None]
UFUNCS.remove(np.float_power)  # NumPy makes float64 of all numbers, here float32 stays
REDUCTIONS = [
    np.sum,
    np.mean,
    np.max,
    np.min,
    np.prod,
    np.var,
    np.std,
    np.ptp,
    np.median,
    np.nansum,
    np.nanmean,
    np.nanmax,
    np.nanmin,
]
RUNNING = [np.cumsum, np.cumprod]
# random operands meet where these have a kink or a jump; tests/cases has them with chosen ones
KINKED = {
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
    np.fmod,
    np.remainder,
    np.copysign,
    np.float_power,
    np.power,
    np.hypot,
    np.arctan2,
    np.heaviside,
}
SPECIAL = np.array([0.0, -0.0, 1, 1, -1, 2, 0.5, np.inf, -np.inf, np.nan, 1e-30, -3e30, 7])
name = pytest.mark.parametrize
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def laid_out(draw, array):
    """The same numbers, as they may lie in memory."""
    how = draw(st.sampled_from(["C", "F", "reversed", "strided", "read-only", "swapped"]))
    if how == "F":
        array = np.asfortranarray(array)
    elif how == "reversed":
        array = np.ascontiguousarray(array[..., ::-1])[..., ::-1] if array.ndim else array
    elif how == "strided" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        array = wide[..., ::2]
    elif how == "read-only":
        array = array.copy()
        array.flags.writeable = False
    elif how == "swapped" and array.ndim > 1:
        array = np.ascontiguousarray(array.swapaxes(0, -1)).swapaxes(0, -1)
    return array


def tensor_of(array):
    """A tensor around the array as it lies in memory."""
    t = Tensor(np.zeros(()), requires_grad=True)
    t.data = array
    return t


def broadcastable(draw, shape):
    """A shape that broadcasts to `shape`."""
    shorter = shape[draw(st.integers(0, len(shape))) :]
    return tuple(n if draw(st.booleans()) else 1 for n in shorter)


def pool_of(f, i):
    """Numbers for input i of f, away from the ends of its domain: those of tests/cases."""
    inputs = [c.inputs[i] for c in CASES[f] if len(c.inputs) == f.nin]
    found = [np.ravel(x) for x in inputs if np.ndim(x) and np.size(x)]
    numbers = np.concatenate([x for x in found if x.dtype.kind == "f"])
    return numbers[np.abs(numbers) > 1e-3]


def filled(draw, shape, numbers, dtype):
    chosen = np.random.default_rng(draw(st.integers(0, 99))).choice(numbers, shape)
    return laid_out(draw, np.asarray(chosen, dtype))


def same(found, expected, dtype):
    """Equal in shape, dtype and value, nan for nan, up to a few roundings."""
    found, expected = np.asarray(found.data), np.asarray(expected)
    assert found.shape == expected.shape and found.dtype == expected.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=20 * np.finfo(dtype).eps)


def no_change_and_fitting_gradients(y, tensors, before):
    """The inputs are as they were, and each has a gradient of its own shape and dtype."""
    if y.size:
        np.sum(np.where(np.isfinite(y.data), y, 0)).backward()
    for t, old in zip(tensors, before, strict=True):
        np.testing.assert_array_equal(t.data, old)
        if t.grad is not None:
            assert (t.grad.shape, t.grad.dtype) == (t.shape, t.dtype)
            assert t.grad.flags.writeable and not np.shares_memory(t.grad, t.data)


@name("f", UFUNCS, ids=lambda f: f.__name__)
@settings(max_examples=12, deadline=None)
@given(data=st.data(), shape=SHAPES, dtype=st.sampled_from([np.float32, np.float64]))
def test_values_of_elementwise_functions(f, data, shape, dtype):
    shapes = [shape, *(broadcastable(data.draw, shape) for _ in range(f.nin - 1))]
    arrays = [filled(data.draw, s, SPECIAL, dtype) for s in shapes]
    with np.errstate(all="ignore"):
        before = [a.copy() for a in arrays]
        tensors = [tensor_of(a) for a in arrays]
        y = f(*tensors)
        same(y, f(*arrays), dtype)
        no_change_and_fitting_gradients(y, tensors, before)


@name("f", [f for f in UFUNCS if f not in KINKED], ids=lambda f: f.__name__)
@settings(max_examples=6, deadline=None)
@given(data=st.data(), shape=SHAPES)
def test_gradients_of_elementwise_functions(f, data, shape):
    shapes = [shape, *(broadcastable(data.draw, shape) for _ in range(f.nin - 1))]
    arrays = [filled(data.draw, s, pool_of(f, i), np.float64) for i, s in enumerate(shapes)]
    gradcheck(f, *arrays, order=2).expect()


@name("f", REDUCTIONS, ids=lambda f: f.__name__)
@settings(max_examples=15, deadline=None)
@given(data=st.data(), shape=SHAPES, dtype=st.sampled_from([np.float32, np.float64]))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_values_of_reductions(f, data, shape, dtype):
    array = filled(data.draw, shape, SPECIAL[:7] if f is np.var or f is np.std else SPECIAL, dtype)
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    keepdims = data.draw(st.booleans())
    if f is np.median and not array.size:
        return  # NumPy gives nan, here it is refused
    with np.errstate(all="ignore"):
        try:
            expected = f(array, axis=axis, keepdims=keepdims)
        except ValueError:  # of nothing there is no largest
            with pytest.raises(ValueError, match="zero-size"):
                f(tensor_of(array), axis=axis, keepdims=keepdims)
            return
        t, before = tensor_of(array), array.copy()
        y = f(t, axis=axis, keepdims=keepdims)
        same(y, expected, dtype)
        no_change_and_fitting_gradients(y, [t], [before])


@name("f", [np.sum, np.mean, np.prod, np.var, np.std, *RUNNING], ids=lambda f: f.__name__)
@settings(max_examples=8, deadline=None)
@given(data=st.data(), shape=SHAPES.filter(lambda s: 0 not in s))
def test_gradients_of_reductions(f, data, shape):
    numbers = np.linspace(-2, 2, 24) + 0.013
    array = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(numbers)
    array = laid_out(data.draw, np.resize(array, shape))
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    length = array.size if axis is None else shape[axis]
    if f is np.std and length == 1:
        return  # the root of 0 has no derivative
    gradcheck(lambda x: f(x, axis=axis), array, order=2).expect()


@name("f", RUNNING, ids=lambda f: f.__name__)
@settings(max_examples=12, deadline=None)
@given(data=st.data(), shape=SHAPES, dtype=st.sampled_from([np.float32, np.float64]))
def test_values_of_running_sums_and_products(f, data, shape, dtype):
    array = filled(data.draw, shape, SPECIAL, dtype)
    axis = data.draw(st.sampled_from([None, *range(-len(shape), len(shape))]))
    with np.errstate(all="ignore"):
        same(f(tensor_of(array), axis=axis), f(array, axis=axis), dtype)


def test_how_many_functions_are_tried():
    assert len(UFUNCS) >= 49 and len(REDUCTIONS) + len(RUNNING) == 15
    print(f"\n{len(UFUNCS)} elementwise functions, {len(REDUCTIONS) + len(RUNNING)} reductions")
