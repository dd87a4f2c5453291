"""Arguments of NumPy's functions: right, and nothing is silently detached."""

import warnings

import numpy as np
import pytest

from tests.cases.ops import normal
from tinyattn import Tensor
from tinyattn.check import gradcheck

X, MASK = normal(3, 4), np.arange(12).reshape(3, 4) % 3 > 0
W = np.array([True, False, True, True])

RIGHT = {
    "sum where": lambda x: np.sum(x, axis=1, where=MASK),
    "sum where, broadcast": lambda x: np.sum(x, where=W, keepdims=True),
    "sum initial": lambda x: np.sum(x, axis=0, initial=2.5),
    "sum dtype": lambda x: np.sum(x, dtype=np.float64),
    "prod where, initial": lambda x: np.prod(x, axis=1, where=MASK, initial=2.0),
    "mean where": lambda x: np.mean(x, axis=0, where=MASK),
    "mean where, all": lambda x: np.mean(x, where=W),
    "mean dtype": lambda x: np.mean(x, dtype=np.float64),
    "max where, initial": lambda x: np.max(x, axis=1, where=MASK, initial=-0.1),
    "max initial": lambda x: np.max(x, initial=0.37),
    "min where, initial": lambda x: np.min(x, axis=0, where=MASK, initial=0.2),
    "amax where": lambda x: np.amax(x, where=MASK, initial=-9.0),
    "std correction": lambda x: np.std(x, axis=1, correction=1),
    "var correction": lambda x: np.var(x, correction=1.5),
    "cumsum dtype": lambda x: np.cumsum(x, 1, dtype=np.float64),
    "full_like of a number": lambda x: np.full_like(x, x[0, 0]),
    "full_like of a row": lambda x: np.full_like(x, x[0]),
    "full_like of itself": lambda x: np.full_like(x, x),
    "full_like, another shape": lambda x: np.full_like(x, x[:, 0], shape=(2, 3)),
    "bincount": lambda x: np.bincount([3, 0, 3, 1], weights=x[0], minlength=6),
    "unique": lambda x: np.unique(x),
    "unique of equal ones": lambda x: np.unique(np.concatenate([x, x])),
    "unique, with more": lambda x: np.unique(x, return_inverse=True, return_counts=True)[0],
    "out=None": lambda x: np.clip(x, -1, 1, out=None),
}


def plain(y):
    return y.numpy() if isinstance(y, Tensor) else y


@pytest.mark.parametrize("name", RIGHT)
def test_right(name):
    f = RIGHT[name]
    x = Tensor(X, requires_grad=True)
    y = f(x)
    assert y.requires_grad
    np.testing.assert_allclose(plain(y), f(X), rtol=1e-12)
    assert plain(y).dtype == f(X).dtype
    report = gradcheck(f, X, order=2)
    assert report, report


def test_row_stack_is_vstack():
    if not hasattr(np, "row_stack"):
        pytest.skip("this NumPy has none any more")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        y = getattr(np, "row_stack")([Tensor(X, requires_grad=True), X])  # noqa: B009
    assert y.requires_grad and y.shape == (6, 4)


def test_numbers_of_one_kind_stay_of_it():
    x = Tensor(X.astype(np.float32))
    assert np.sum(x, where=MASK, initial=1.0).dtype == np.float32
    assert np.mean(x, axis=0, where=MASK).dtype == np.float32
    assert np.full_like(x, 2).dtype == np.float32
    assert np.bincount([0, 1, 1, 0], weights=x[0]).dtype == np.float32
    assert np.bincount([0, 2]).tolist() == [1, 0, 1]
    assert np.unique(Tensor(np.array([3, 1, 3]))).tolist() == [1, 3]
