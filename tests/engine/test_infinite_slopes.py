"""0 · ∞ = 0: a branch of np.where that was not taken has no influence, however steep it is."""

import warnings

import numpy as np
import pytest

import tinyattn as ta
from tests.engine.leaves import leaf
from tinyattn import Tensor
from tinyattn.check import gradcheck
from tinyattn.engine.invalid import PROCESSOR_NOTES
from tinyattn.models.particle_transformer import pair_features

# (operation, where its slope is infinite or no number)
STEEP = {
    "sqrt": (np.sqrt, 0.0),
    "sqrt of a negative number": (np.sqrt, -1.0),
    "cbrt": (np.cbrt, 0.0),
    "x**0.5": (lambda x: x**0.5, 0.0),
    "x**0.5 of a negative number": (lambda x: x**0.5, -2.0),
    "x**-1": (lambda x: x**-1, 0.0),
    "x**-0.5": (lambda x: x**-0.5, 0.0),
    "x**x": (lambda x: x**x, 0.0),
    "1/x": (lambda x: 1 / x, 0.0),
    "x/|x|": (lambda x: x / np.abs(x), 0.0),
    "x/x": (lambda x: x / x, 0.0),
    "sin(x)/x": (lambda x: np.sin(x) / x, 0.0),
    "reciprocal": (np.reciprocal, 0.0),
    "2 (1/x)": (lambda x: 2 * (1 / x), 0.0),
    "x (1/x)": (lambda x: x * (1 / x), 0.0),
    "log": (np.log, 0.0),
    "log of a negative number": (np.log, -1.0),
    "x log x": (lambda x: x * np.log(x), 0.0),
    "log2": (np.log2, 0.0),
    "log10": (np.log10, 0.0),
    "log1p": (np.log1p, -1.0),
    "arccos": (np.arccos, 1.0),
    "arccos outside": (np.arccos, 2.0),
    "arcsin": (np.arcsin, -1.0),
    "arcsin outside": (np.arcsin, 2.0),
    "arccosh": (np.arccosh, 1.0),
    "arctanh": (np.arctanh, 1.0),
    "arctan2": (lambda x: np.arctan2(x, x), 0.0),
    "hypot": (lambda x: np.hypot(x, x), 0.0),
    "norm": (lambda x: np.linalg.norm(x[:, None], axis=1), 0.0),
    "std": (lambda x: np.std(np.stack([x, x]), axis=0), 0.0),
    "exp that overflows": (lambda x: np.exp(np.exp(x)), 1000.0),
    "sinh that overflows": (np.sinh, 1e5),
    "square that overflows": (lambda x: np.square(np.square(x)), 1e300),
    "exp(1/x)": (lambda x: np.exp(1 / x), 0.0),
    "product with a nan": (lambda x: np.log(x) * np.exp(x) * 2, -1.0),
    "tanh of a nan": (lambda x: np.tanh(np.log(x)), -1.0),
    "log of a root": (lambda x: np.log(np.sqrt(x)), 0.0),
}
INSIDE = 1.5, 0.5  # one of them is in the domain of each of them

needs_notes = pytest.mark.skipif(
    not PROCESSOR_NOTES,
    reason="NumPy does not warn where the processor notes nothing",
)


@pytest.mark.parametrize("name", STEEP)
def test_what_was_not_taken_has_no_influence(name):
    """Beside an element that was taken, whose gradient is what it is without the other one."""
    f, bad = STEEP[name]
    with np.errstate(all="ignore"):
        inside = next(x for x in INSIDE if np.isfinite(f(np.array([x]))).all())
        x = Tensor(np.array([bad, inside]), requires_grad=True)
        np.sum(np.where([False, True], f(x), 3.0)).backward()
        alone = ta.grad(lambda x: np.sum(f(x)))(np.array([inside]))
    assert np.isfinite(alone).all()
    np.testing.assert_array_equal(x.grad, [0, alone[0]])


@pytest.mark.parametrize("name", STEEP)
def test_nor_in_the_second_derivative(name):
    f, bad = STEEP[name]
    with np.errstate(all="ignore"):
        inside = next(x for x in INSIDE if np.isfinite(f(np.array([x]))).all())
        x = np.array([bad, inside])
        H = ta.hessian(lambda x: np.sum(np.where([False, True], f(x), 3.0)))(x)
        alone = ta.hessian(lambda x: np.sum(f(x)))(x[1:])
    np.testing.assert_allclose(H, [[0, 0], [0, alone[0, 0]]], rtol=1e-12)


def test_elements_that_were_picked():
    """x[mask] after a logarithm of all, and the larger of two."""
    x = leaf(3)
    x.data = np.array([0.0, 2.0, 4.0])
    with np.errstate(all="ignore"):
        np.sum(np.log(x)[[1, 2]]).backward()
        np.testing.assert_array_equal(x.grad, [0, 0.5, 0.25])
        x.grad = None
        np.sum(np.maximum(np.log(x), -1)).backward()
    np.testing.assert_array_equal(x.grad, [0, 0.5, 0.25])


@pytest.mark.parametrize("f", [lambda x: (np.sqrt(x) - 1) ** 2, lambda x: np.log(x) ** 2])
def test_a_gradient_of_zero_alone_does_not_cut_the_second_derivative(f):
    """At x = 1 the gradient that arrives at the root is 0, but it changes with x."""
    x = np.array([1.0, 2.0])
    assert gradcheck(f, x, order=2)
    H = ta.hessian(lambda x: np.sum(f(x)))(x)
    assert H[0, 0] == pytest.approx({0: 0.5, 1: 2.0}[int(f(np.e) == 1)])


@needs_notes
def test_where_a_gradient_arrives_it_is_infinite_and_numpy_warns():
    x = Tensor(np.array([0.0]), requires_grad=True)
    with np.errstate(divide="ignore"):
        y = np.log(x)
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        y.backward(np.array([1.0]))
    np.testing.assert_array_equal(x.grad, [np.inf])
    x = Tensor(np.array([0.0]), requires_grad=True)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        np.sum(np.sqrt(x)).backward()


@needs_notes
def test_a_gradient_that_is_no_number_stays_one():
    """inf · 0 where the gradient itself is infinite; and nan in an operation on whole rows."""
    x = Tensor(np.array([0.0, 1.0]), requires_grad=True)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        (x * x).backward(np.array([np.inf, 1.0]))
    assert np.isnan(x.grad[0])
    rows = Tensor(np.ones((2, 2)), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (rows @ np.array([[np.inf, -np.inf], [1.0, 1.0]])).backward(np.array([[1.0, 1], [0, 0]]))
    assert np.isnan(rows.grad[0, 0])
    assert np.isnan(rows.grad[1, 0])


def test_anomalies_are_found_only_where_there_are_some():
    x = Tensor(np.array([0.0, 2.0]), requires_grad=True)
    with ta.detect_anomaly():
        y = np.where(np.array([False, True]), np.arccos(x - 1), 0.5)
        np.sum(np.where(np.array([False, False]), y, 0.5)).backward()
        assert np.array_equal(x.grad, [0, 0])
        with pytest.raises(FloatingPointError, match="arccos is infinity"):
            np.sum(np.arccos(x - 1)).backward()


def test_the_trace_says_the_same():
    x = Tensor(np.array([0.0, 2.0]), requires_grad=True)
    with np.errstate(all="ignore"):
        loss = np.sum(np.where([False, True], np.log(x), 0.0))
        ta.trace(loss)
        loss.backward()
    np.testing.assert_array_equal(x.grad, [0, 0.5])


def test_without_the_notes_of_the_processor(monkeypatch):
    """In the browser every rule is looked at."""
    monkeypatch.setattr("tinyattn.engine.invalid.PROCESSOR_NOTES", False)
    x = Tensor(np.array([0.0, 2.0]), requires_grad=True)
    with np.errstate(all="ignore"):
        np.sum(np.where([False, True], np.log(x), 0.0)).backward()
    np.testing.assert_array_equal(x.grad, [0, 0.5])


@pytest.mark.parametrize("other", [np.zeros(4), np.array([50.0, 30.0, 20.0, 10.0])])
def test_pair_features_of_a_particle_without_momentum(other):
    """Padding: finite gradients, and none for what is clipped."""
    a = Tensor(np.array([other, np.zeros(4)]), requires_grad=True)
    b = Tensor(np.array([np.zeros(4), np.array([60.0, 1.0, 2.0, 3.0])]), requires_grad=True)
    np.sum(pair_features(a, b)).backward()
    assert np.isfinite(a.grad).all()
    assert np.isfinite(b.grad).all()
