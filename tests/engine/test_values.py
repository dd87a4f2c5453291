"""Numbers: ties, zeros, infinities and dtypes in gradients."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests import ROOT
from tests.engine.leaves import leaf
from tinyattn import Tensor, nn

rng = np.random.default_rng(0)


# ---------------------------------------------------------------- ties, zeros, infinities


def gradient(f, *values):
    xs = [Tensor(np.array(v, float), requires_grad=True) for v in values]
    with np.errstate(all="ignore"):
        np.sum(f(*xs)).backward()
    gradients = [x.grad for x in xs]
    return gradients if len(values) > 1 else gradients[0]


def test_ties_share_the_gradient():
    third = np.full(3, 1 / 3)
    np.testing.assert_allclose(gradient(np.max, [2, 2, 2]), third)
    np.testing.assert_allclose(gradient(np.min, [2, 2, 2]), third)
    np.testing.assert_allclose(gradient(np.max, [2, 2, 1]), [0.5, 0.5, 0])
    tied = gradient(lambda x: np.max(x, axis=(0, 2)), [[[1, 1], [3, 0]], [[1, 0], [3, 3]]])
    np.testing.assert_allclose(tied.sum(axis=(0, 2)), [1, 1])
    a, b = gradient(np.maximum, [1, 2, 3], [1, 3, 2])
    assert np.array_equal(a, [0.5, 0, 1])
    assert np.array_equal(b, [0.5, 1, 0])
    a, b = gradient(np.minimum, [1, 2, 3], [1, 3, 2])
    assert np.array_equal(a, [0.5, 1, 0])
    assert np.array_equal(gradient(np.absolute, [-1, 0, 2]), [-1, 0, 1])
    g = gradient(lambda x: np.sort(x) * np.array([1.0, 2, 3]), [5, 5, 5])
    assert np.array_equal(np.sort(g), [1, 2, 3])
    assert np.array_equal(gradient(np.ptp, [1, 1]), [0, 0])


def test_infinite_maximum():
    assert np.array_equal(gradient(np.max, [-np.inf, 1, np.inf]), [0, 0, 1])
    assert np.array_equal(gradient(np.max, [-np.inf, -np.inf]), [0.5, 0.5])
    a, b = gradient(np.logaddexp, [-np.inf, 0], [0, np.inf])
    assert np.array_equal(a, [0, 0])
    assert np.array_equal(b, [1, 1])


def test_zeros_in_products():
    assert np.array_equal(gradient(np.prod, [0, 2, 3]), [6, 0, 0])
    assert np.array_equal(gradient(np.prod, [0, 0, 3]), [0, 0, 0])
    assert np.array_equal(gradient(np.prod, [0.0]), [1])
    assert np.array_equal(gradient(np.cumprod, [2, 0, 3]), [1, 2 + 6, 0])


def test_zeros_under_roots():
    norm = lambda x: np.linalg.norm(x, axis=-1)
    np.testing.assert_allclose(gradient(norm, [[0, 0], [3, 4]]), [[0, 0], [0.6, 0.8]])
    assert np.array_equal(gradient(np.linalg.norm, [0, 0]), [0, 0])
    for ord in (1, 2, 3, np.inf):
        g = gradient(lambda x, ord=ord: np.linalg.norm(x, ord), [0, 0])
        assert np.isfinite(g).all(), ord
    a, b = gradient(np.hypot, [0, 3], [0, 4])
    assert np.array_equal(a, [0, 0.6])
    assert np.array_equal(b, [0, 0.8])
    assert gradient(np.sqrt, 0.0) == np.inf  # as PyTorch
    assert np.array_equal(gradient(lambda x: 0 * np.sqrt(x), [0, 1]), [0, 0])
    assert np.isinf(gradient(np.cbrt, 0.0))
    distances = lambda x: np.sqrt(
        np.sum((x[:, None] - x[None]) ** 2, axis=-1)[~np.eye(3, dtype=bool)]
    )
    assert np.isfinite(gradient(distances, np.eye(3))).all()


def test_zeros_in_powers():
    assert np.array_equal(gradient(lambda x: x**0, [0, 2, -1]), [0, 0, 0])
    assert np.array_equal(gradient(lambda x: x**1, [0, 2, -1]), [1, 1, 1])
    assert np.array_equal(gradient(lambda x: x**2, [0, 2, -1]), [0, 4, -2])
    assert np.array_equal(gradient(lambda x: x**2.0, [0, 2, -1]), [0, 4, -2])
    assert np.array_equal(gradient(lambda x: 0**x, [1, 2]), [0, 0])
    assert np.array_equal(gradient(lambda x: x ** np.array([0, 1, 2]), [0, 0, 0]), [0, 1, 0])
    a, b = gradient(lambda a, b: a**b, [0, 0], [2, 0])
    assert np.array_equal(a, [0, 0])
    assert np.array_equal(b, [0, 0])


def test_where_keeps_the_gradient_of_the_other_branch_out():
    """The branch that is not taken is not finite, but its gradient is multiplied by 0."""
    safe = lambda x: np.where(x > 0, x, 1.0)
    g = gradient(lambda x: np.where(x > 0, np.log(safe(x)), 0.0), [-1, 0, 2])
    assert np.array_equal(g, [0, 0, 0.5])
    g = gradient(lambda x: np.where(x > 0, np.sqrt(x), 0.0), [0, 4])
    assert np.array_equal(g, [0, 0.25])
    a, b = gradient(lambda a, b: np.where([True, False], a, b), [1, np.nan], [np.inf, 1])
    assert np.array_equal(a, [1, 0])
    assert np.array_equal(b, [0, 1])


# ---------------------------------------------------------------- dtypes

STAYS_FLOAT32 = {
    "float": lambda x: x * 2.0,
    "int": lambda x: x + 1,
    "power": lambda x: x**2,
    "half": lambda x: x**0.5,
    "float64 scalar": lambda x: x * np.float64(2),
    "float64 scalar left": lambda x: np.float64(2) - x,
    "root of an int": lambda x: x / np.sqrt(64),
    "int64 array": lambda x: x * np.arange(3),
    "int64 array left": lambda x: np.arange(3) / (x + 1),
    "int scalar": lambda x: x * np.int64(3),
    "list": lambda x: x + [1, 2, 3],
    "bool array": lambda x: x * np.array([True, False, True]),
    "float list": lambda x: x * [1.0, 2.0, 3.0],
    "mean": np.mean,
    "var": np.var,
    "sum": np.sum,
    "arctan2": lambda x: np.arctan2(x, 1),
    "where": lambda x: np.where(x > 0, x, 0.0),
    "where float64": lambda x: np.where(x > 0, x, np.float64(0)),
    "pad": lambda x: np.pad(x, 1),
    "clip": lambda x: np.clip(x, 0.1, 0.5),
    "clip float64": lambda x: np.clip(x, np.float64(0), 9),
    "maximum": lambda x: np.maximum(x, 0),
    "stack": lambda x: np.stack([x, x]),
    "concatenate list": lambda x: np.concatenate([x, [1.0]]),
    "exp2": np.exp2,
    "stack number": lambda x: np.stack([x[0], 1.0]),
    "append": lambda x: np.append(x, 1.0),
    "einsum": lambda x: np.einsum("i,i->", x, x),
    "repeat": lambda x: np.repeat(x, 2),
    "take": lambda x: np.take(x, [0, 0]),
    "log2": lambda x: np.log2(x + 1),
    "prod": np.prod,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "norm": np.linalg.norm,
    "std": np.std,
    "logaddexp": lambda x: np.logaddexp(x, 0),
    "max": np.max,
    "sort": np.sort,
    "tensor of ints": lambda x: x * Tensor(np.arange(3)),
    "radians": np.radians,
    "trace": lambda x: np.trace(np.outer(x, x)),
    "scatter": lambda x: x[[0, 0, 1]],
    "average": lambda x: np.average(x, weights=[1, 2, 3]),
    "scaled": lambda x: x * np.pi,
    "convolve": lambda x: np.convolve(x, [1, 2]),
    "divided by a length": lambda x: x / len(x),
    "count": lambda x: x / np.sum(np.array([True, True])),
    "sinc": np.sinc,
    "matrix of ints": lambda x: np.eye(3, dtype=int) @ x,
    "dot list": lambda x: np.dot(x, [1, 2, 3]),
    "einsum list": lambda x: np.einsum("i,i->i", x, [1, 2, 3]),
    "cov": np.cov,
    "outer list": lambda x: np.outer(x, [1.0, 2.0]),
    "nan": np.nan_to_num,
    "nanmean": np.nanmean,
    "polyval": lambda x: np.polyval([1, 2, 3], x),
    "select": lambda x: np.select([x > 0], [x], 1.0),
    "trapezoid": lambda x: np.trapezoid(x, dx=0.5),
    "interval": lambda x: np.diff(x) / 0.1,
    "normalized": lambda x: (x - np.mean(x)) / np.sqrt(np.var(x) + 1e-5),
}


@pytest.mark.parametrize("name", STAYS_FLOAT32)
def test_float64_does_not_creep_in(name):
    x = leaf(3, dtype=np.float32)
    x.data = np.abs(x.data)
    y = STAYS_FLOAT32[name](x)
    assert y.dtype == np.float32
    np.sum(y * y).backward()
    assert x.grad.dtype == np.float32
    x.grad = None
    np.sum(STAYS_FLOAT32[name](x)).backward(create_graph=True)
    assert x.grad.dtype == np.float32


def test_float64_arrays_keep_their_precision():
    x, big = leaf(3, dtype=np.float32), np.ones(3)
    y = x * big
    assert y.dtype == np.float64  # the user brought float64 data
    np.sum(y).backward()
    assert x.grad.dtype == np.float32
    assert (leaf(3) * 2).dtype == np.float64
    assert (leaf(3) * np.float32(2)).dtype == np.float64
    assert np.mean(leaf(3)).dtype == np.float64


def test_float16_stays():
    x = leaf(3, dtype=np.float16)
    for f in (
        lambda x: x * 2,
        np.mean,
        np.exp,
        np.var,
        lambda x: x * np.float64(2),
        lambda x: x[[0, 0]],
        lambda x: x * np.arange(3),
    ):
        y = f(x)
        assert y.dtype == np.float16, f
        x.grad = None
        np.sum(y).backward()
        assert x.grad.dtype == np.float16


def test_dtypes_of_new_tensors():
    for data in (1.5, [1, 2.0], [[1.0], [2]], (), [], [True, 2.0]):
        assert Tensor(data).dtype == np.float32, data
    for data in (1, [1, 2], [[0], [2]]):
        assert Tensor(data).dtype == np.int_, data  # NumPy's own: 32 bits in a browser
    for data in (True, [True, False]):
        assert Tensor(data).dtype == bool
    for data in (1, [1, 2], True, [[True], [False]]):
        assert Tensor(data, requires_grad=True).dtype == np.float32, data
    for dtype in (np.float64, np.float16, np.int64, np.uint8, bool, np.complex64):
        assert Tensor(np.zeros(2, dtype)).dtype == dtype
        assert Tensor(dtype(1)).dtype == dtype
        assert Tensor([1, 0], dtype).dtype == dtype
    assert Tensor([np.float64(1), np.float64(2)]).dtype == np.float64
    assert Tensor(Tensor(np.arange(3))).dtype == np.int_


def test_integers_serve_as_labels_and_as_an_index():
    labels = ta.tensor([0, 2, 1])
    assert F.cross_entropy(np.eye(3, dtype=np.float32), labels).shape == ()
    assert np.array_equal(ta.tensor([5.0, 6.0, 7.0])[labels].data, [5, 7, 6])
    assert nn.Embedding(3, 2, rng=0)(labels).shape == (3, 2)
    for fraction in (labels / 2, np.exp(labels), labels.mean(), labels * 0.5, (labels + 1) ** -1.0):
        assert fraction.dtype == np.float32
    x = Tensor([1, 2], requires_grad=True)
    x.data = [3, 4]
    assert x.dtype == np.float32


def test_mean_of_integers():
    assert np.mean(Tensor(np.arange(4))).data == 1.5
    assert (Tensor(np.arange(4)) / 2).dtype == np.float32
    assert np.sum(Tensor(np.arange(4))).dtype == np.int64
    assert (Tensor(np.arange(4)) @ Tensor(np.arange(4))).data == 14


def test_only_real_numbers_have_gradients():
    for data in (np.arange(3), np.array([True]), np.array([1j])):
        with pytest.raises(TypeError, match="floating-point"):
            Tensor(data, requires_grad=True)
    x = leaf(3)
    with pytest.raises(TypeError, match="floating-point"):
        x.data = np.arange(3)
    with pytest.raises(TypeError, match="multiply: .*complex"):
        x * np.array([1j, 1, 1])
    with ta.no_grad():
        assert (x * np.array([1j, 1, 1])).dtype == np.complex128
    assert (x.detach() * 1j).dtype == np.complex128
    ids = Tensor(np.arange(3))
    ids.requires_grad = True
    with pytest.raises(TypeError, match="floating-point"):
        np.sum(ids * 2.5).backward()
    assert not (x > 0).requires_grad
    assert not np.argsort(x).requires_grad
    assert not x.astype(np.int64).requires_grad


@pytest.mark.parametrize("f", [np.remainder, np.fmod])
def test_remainder_where_the_quotient_rounds_to_an_integer(f):
    # 1 / 0.1 rounds to 10, but 0.1 is a little more than a tenth: it goes into 1 only 9 times
    a, b = Tensor(np.array(1.0), requires_grad=True), Tensor(np.array(0.1), requires_grad=True)
    y = f(a, b)
    assert y.item() == f(1.0, 0.1) > 0.09
    y.backward()
    assert a.grad == 1 and b.grad == -9


def test_a_tensor_is_compared_with_pytest_approx():
    x = Tensor([1.0, 2.0], requires_grad=True)
    assert x == pytest.approx([1, 2]) and x == pytest.approx(np.array([1, 2.0000001]))
    assert x.sum() == pytest.approx(3) and x[0] == pytest.approx(1)
    assert x != pytest.approx([1, 3]) and not x[0] == pytest.approx(1.1)
    assert x.detach() == pytest.approx([1, 2]) and pytest.approx(1) == x.detach()[0]
    with pytest.raises(TypeError, match=r"Write .numpy\(\)"):
        assert pytest.approx(1) == x[0]


def test_a_file_of_the_students_that_hides_numpy(tmp_path):
    (tmp_path / "numpy.py").write_text("x = 1")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    ran = subprocess.run(
        [sys.executable, "-c", "import tinyattn.engine.dtypes"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert f"found {tmp_path / 'numpy.py'}, which is not NumPy. Rename this file" in ran.stderr
