"""Row-wise kernels against the compositions that they stand for, values and gradients."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

import tinyattn.functional as F
from tests.machine import same_bits_on_any_threads
from tinyattn import Tensor, optim
from tinyattn.ops.activations import gelu
from tinyattn.ops.backends import IMPLEMENTATIONS
from tinyattn.ops.losses import cross_entropy
from tinyattn.ops.norms import batch_norm, norm
from tinyattn.ops.softmax import log_softmax, softmax

DTYPES = [np.float32, np.float64]
# numbers up to 10 and differences of them: some ten roundings
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-13}


def normal(*shape, dtype=np.float64, seed=0):
    return (2 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def ids_for(x):
    return np.random.default_rng(1).integers(0, x.shape[1], len(x))


def statistics_for(x):
    return np.linspace((-1, 1), (1, 2), x.shape[1], dtype=x.dtype).T.copy()


# name: (how many weights of the length of a row, function)
FUNCTIONS = {
    "softmax": (0, F.softmax),
    "log_softmax": (0, F.log_softmax),
    "cross_entropy": (0, lambda x: F.cross_entropy(x, ids_for(x), reduction="none")),
    "cross_entropy, weights": (
        0,
        lambda x: F.cross_entropy(x, ids_for(x), weight=np.linspace(0.5, 2, x.shape[1])),
    ),
    "layer_norm": (2, lambda x, w, b: F.layer_norm(x, x.shape[-1], w, b)),
    "layer_norm, no weight": (0, lambda x: F.layer_norm(x, x.shape[-1])),
    "layer_norm, no bias": (1, lambda x, w: F.layer_norm(x, x.shape[-1], w)),
    "rms_norm": (1, lambda x, w: F.rms_norm(x, x.shape[-1], w, eps=1e-5)),
    "rms_norm, no weight": (0, lambda x: F.rms_norm(x, x.shape[-1])),
    "batch_norm": (2, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "batch_norm, no weight": (0, lambda x: F.batch_norm(x, None, None, training=True)),
    "batch_norm, no bias": (1, lambda x, w: F.batch_norm(x, None, None, w, training=True)),
    "batch_norm, evaluation": (2, lambda x, w, b: F.batch_norm(x, *statistics_for(x), w, b)),
    "batch_norm of sequences": (
        0,
        lambda x: F.batch_norm(np.stack([x, 2 * x, -0.5 * x]), None, None, training=True),
    ),
    "gelu": (0, F.gelu),
    "gelu, tanh": (0, lambda x: F.gelu(x, "tanh")),
}
KERNELS = {
    f.implementations["kernel"].operation
    for f in (softmax, log_softmax, cross_entropy, norm, batch_norm, gelu)
}
widths = st.sampled_from([2, 3, 15, 16, 17, 33, 64, 100])
layouts = st.sampled_from(["rows", "columns", "every second"])
names = pytest.mark.parametrize("name", FUNCTIONS)


def kernels_from(work):
    """Inside the block all operations take their kernel from this much work on."""
    return patch.dict(
        IMPLEMENTATIONS,
        {n: e._replace(least=work) for n, e in IMPLEMENTATIONS.items() if "kernel" in e.names},
    )


def both(name, x):
    """`result` by kernels, and by compositions."""
    with kernels_from(1):
        found = result(name, x)
    with kernels_from(10**9):
        return found, result(name, x)


def result(name, x):
    """y and the gradients of all inputs."""
    n_weights, f = FUNCTIONS[name]
    arrays = [x, *normal(n_weights, x.shape[-1], dtype=x.dtype, seed=5)]
    inputs = [Tensor(a, requires_grad=True) for a in arrays]
    for t, a in zip(inputs, arrays, strict=True):
        t.data = a  # as it lies in memory
    y = f(*inputs)
    y.backward(normal(*y.shape, dtype=y.dtype, seed=7))
    return [y.data, *[t.grad for t in inputs]]


def assert_same(found, expected, dtype):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype == dtype
        size = max(1, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[dtype] * size)


@names
@settings(max_examples=25, deadline=None)
@given(st.sampled_from(DTYPES), st.integers(1, 70), widths, layouts)
def test_kernel_is_the_composition(name, dtype, rows, columns, layout):
    if dtype == np.float32 and columns == 2:
        columns = 5  # a normalised pair is ±1: the gradient is what rounding leaves of 0
    if "batch" in name:
        rows = max(rows, 5)  # the same for a pair of items, and one alone has no variance
    x = normal(rows, columns, dtype=dtype)
    if layout == "columns":
        x = np.asfortranarray(x)
    elif layout == "every second":
        x = np.repeat(x, 2, axis=1)[:, ::2]
    assert_same(*both(name, x), dtype)


@names
def test_one_column_no_rows_and_read_only(name):
    x = normal(3, 1)
    if "layer" not in name:  # (x - mean) is nothing but rounding
        assert_same(*both(name, x), np.float64)
    x = normal(5, 7)
    x.flags.writeable = False
    assert_same(*both(name, x), np.float64)


@names
def test_the_same_bits_on_any_number_of_threads(name):
    x = normal(900, 300, dtype=np.float32)
    with kernels_from(1):  # around all threads, as the table is one for all of them
        same_bits_on_any_threads(lambda: result(name, x))


def test_large_inputs_take_kernels_and_differentiate_twice():
    x = Tensor(normal(64, 65), requires_grad=True)
    for name, (n_weights, f) in FUNCTIONS.items():
        weights = [Tensor(w, requires_grad=True) for w in normal(n_weights, 65, seed=5)]
        y = f(x, *weights)
        operations, todo = set(), [y]
        while todo:
            t = todo.pop()
            if t._operation is not None:
                operations.add(t._operation)
                todo += [a for a in t._inputs if a is not None]
        assert operations & KERNELS, name
        x.grad = None
        (y * y).sum().backward(create_graph=True)
        first, x.grad = x.grad, None
        (first * first).sum().backward()
        second, x.grad = x.grad, None
        with kernels_from(10**9):
            (f(x, *weights) ** 2).sum().backward(create_graph=True)
            expected, x.grad = x.grad, None
            (expected * expected).sum().backward()
        np.testing.assert_allclose(first.data, expected.data, rtol=0, atol=1e-10)
        np.testing.assert_allclose(second, x.grad, rtol=1e-8, atol=1e-9)


def test_one_tensor_in_two_places_has_both_gradients():
    def gradient(enough):
        x = Tensor(normal(70), requires_grad=True)
        with kernels_from(enough):
            F.layer_norm(x, 70, x, x).sum().backward(create_graph=True)
        return x.grad.data

    np.testing.assert_allclose(gradient(1), gradient(10**9), rtol=1e-12)


@pytest.mark.parametrize("x", [[0.0, -np.inf, 3.0], [np.nan, 1.0, 2.0], [-np.inf] * 3, [1e4, 0, 1]])
def test_softmax_of_numbers_at_the_edge(x):
    x = np.array([x, [1.0, 2.0, 3.0]])
    for f in (F.softmax, F.log_softmax):
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = f(x).data
            with kernels_from(1):
                np.testing.assert_allclose(f(x).data, expected, rtol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
def test_rows_of_an_embedding_add_up(dtype):
    ids = np.random.default_rng(0).integers(-7, 7, (40, 5))
    x = Tensor(normal(7, 33, dtype=dtype), requires_grad=True)
    g = normal(40, 5, 33, dtype=dtype)
    assert g.size >= IMPLEMENTATIONS["add_rows"].least
    x[ids].backward(g)
    expected = np.zeros((7, 33))
    np.add.at(expected, ids, g)
    np.testing.assert_allclose(x.grad, expected, rtol=0, atol=1e3 * np.finfo(dtype).eps)


# ---------------------------------------------------------------- AdamW


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
@pytest.mark.parametrize("cls", [optim.Adam, optim.AdamW])
def test_optimizers(cls, dtype):
    shapes = [(70, 100), (33,), (), (1, 5), (0,)]
    gradients = [[normal(*s, dtype=dtype, seed=i) for s in shapes] for i in range(3)]
    found = []
    for enough in (0, 10**9):
        parameters = [Tensor(normal(*s, dtype=dtype, seed=9), requires_grad=True) for s in shapes]
        groups = [{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.1}]
        optimizer = cls(groups, lr=0.01, weight_decay=0.1)
        old = [p.data.copy() for p in parameters]
        kept = [p.data for p in parameters]
        for step in gradients:
            for p, g in zip(parameters, step, strict=True):
                p.grad = g
            parameters[1].grad = None  # no gradient, no step
            with kernels_from(enough):
                optimizer.step()
        for a, b in zip(old, kept, strict=True):
            np.testing.assert_array_equal(a, b)  # the arrays of before are not written to
        found.append([p.data for p in parameters])
        found[-1] += [v for s in optimizer.state for v in s.values() if isinstance(v, np.ndarray)]
    assert_same(*found, dtype)
