"""Operations compared with PyTorch: values and gradients, also where there is a choice."""

import operator

import numpy as np
import pytest

from tinyattn import Tensor

rng = np.random.default_rng(0)

TORCH = [
    ("exp", np.exp),
    ("log", np.log),
    ("log1p", np.log1p),
    ("expm1", np.expm1),
    ("sqrt", np.sqrt),
    ("rsqrt", lambda x: 1 / np.sqrt(x)),
    ("sin", np.sin),
    ("cos", np.cos),
    ("tan", np.tan),
    ("asin", np.arcsin),
    ("acos", np.arccos),
    ("atan", np.arctan),
    ("sinh", np.sinh),
    ("cosh", np.cosh),
    ("tanh", np.tanh),
    ("asinh", np.arcsinh),
    ("atanh", np.arctanh),
    ("abs", np.abs),
    ("square", np.square),
    ("reciprocal", np.reciprocal),
    ("sinc", np.sinc),
    ("exp2", np.exp2),
    ("log2", np.log2),
    ("log10", np.log10),
    ("deg2rad", np.deg2rad),
    ("sum", np.sum),
    ("mean", np.mean),
    ("prod", np.prod),
    ("amax", np.max),
    ("amin", np.min),
    ("flatten", np.ravel),
    ("trace", lambda x: np.trace(x)),
    ("tril", np.tril),
    ("triu", np.triu),
    ("diag", np.diag),
    ("det", lambda x: np.linalg.det(x)),
    ("inverse", np.linalg.inv),
    ("fliplr", np.fliplr),
    ("rot90", np.rot90),
    ("diff", np.diff),
    ("nansum", np.nansum),
    ("cov", np.cov),
]
TORCH_TWO = [
    ("add", np.add),
    ("sub", np.subtract),
    ("mul", np.multiply),
    ("div", np.divide),
    ("pow", np.power),
    ("maximum", np.maximum),
    ("minimum", np.minimum),
    ("atan2", np.arctan2),
    ("hypot", np.hypot),
    ("logaddexp", np.logaddexp),
    ("matmul", np.matmul),
    ("kron", np.kron),
    ("fmax", np.fmax),
    ("fmin", np.fmin),
    ("remainder", np.remainder),
    ("fmod", np.fmod),
    ("logaddexp2", np.logaddexp2),
    ("copysign", np.copysign),
    ("inner", np.inner),
    ("cross", np.cross),
    ("float_power", np.float_power),
    ("linalg.solve", np.linalg.solve),
]


@pytest.mark.parametrize("name", [n for n, _ in TORCH])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_operand_against_torch(name, dtype):
    torch = pytest.importorskip("torch")
    from tests.parity import both

    x = rng.uniform(0.1, 0.9, (3, 3)).astype(dtype) + 2 * np.eye(3, dtype=dtype) * (
        name in ("det", "inverse")
    )
    both(
        dict(TORCH)[name],
        operator.attrgetter(name)(torch),
        x,
        tolerance=1e-4 if dtype == np.float32 else None,
    )


@pytest.mark.parametrize("name", [n for n, _ in TORCH_TWO])
def test_two_operands_against_torch(name):
    torch = pytest.importorskip("torch")
    from tests.parity import both

    a, b = rng.uniform(0.5, 2, (2, 3, 3))
    if name == "cross":
        theirs = lambda a, b: torch.linalg.cross(a, b)
    else:
        theirs = operator.attrgetter(name)(torch)
    both(dict(TORCH_TWO)[name], theirs, a, b)


def test_conventions_of_torch():
    """Ties, kinks and zeros: where PyTorch has a convention, ours is the same."""
    torch = pytest.importorskip("torch")
    from tests.parity import both

    zeros, ties = np.array([0.0, -1.0, 2.0, 0.0]), np.array([1.0, 3.0, 3.0, 2.0])
    both(np.abs, torch.abs, zeros)
    both(np.max, torch.amax, ties)
    both(np.min, torch.amin, -ties)
    both(np.maximum, torch.maximum, ties, ties[::-1].copy())
    both(np.minimum, torch.minimum, ties, ties[::-1].copy())
    both(np.prod, torch.prod, zeros)
    both(np.cumprod, lambda x: torch.cumprod(x, 0), zeros)
    both(lambda x: x**2, lambda x: x**2, zeros)
    both(lambda x: x**0, lambda x: x**0, zeros)
    both(np.sinc, torch.sinc, zeros)
    both(lambda x: np.clip(x, -1, 2), lambda x: torch.clamp(x, -1, 2), zeros)
    both(np.linalg.norm, torch.linalg.norm, np.zeros(3))
    both(np.sign, torch.sign, zeros)
    both(lambda x: x % 1.5, lambda x: x % 1.5, ties)
    both(lambda x: np.where(x > 0, x, 0.0), lambda x: torch.where(x > 0, x, 0.0), zeros)


def test_quantiles_of_nan():
    x = Tensor([[1.0, np.nan, 2], [3, 4, 5]], requires_grad=True)
    np.testing.assert_array_equal(np.median(x, axis=1).data, [np.nan, 4])
    np.median(x[1]).backward()
    np.testing.assert_array_equal(x.grad, [[0, 0, 0], [0, 1, 0]])


def test_log_determinant_where_the_determinant_underflows():
    x = Tensor(1e-3 * np.eye(200), requires_grad=True)
    sign, y = np.linalg.slogdet(x)
    y.backward()
    assert sign.item() == 1
    assert not sign.requires_grad
    np.testing.assert_allclose(y.item(), 200 * np.log(1e-3), rtol=1e-10)
    np.testing.assert_allclose(x.grad, 1e3 * np.eye(200), rtol=1e-10)
