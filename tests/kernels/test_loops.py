"""The readable loops against array algebra and the fast kernels: values, gradients, odd shapes.

Attention, convolution, pooling and recurrent cells have tests of their own, where `impl="sums"` is
one of the implementations; here are the loops that are called as they are.
"""

import ast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import ROOT
from tinyattn import Tensor, graph
from tinyattn.graph import neighbours as operations
from tinyattn.kernels import matmul, neighbours, numba, pool, radius, segment
from tinyattn.kernels import recurrent as recurrent_loops

needs_numba = pytest.mark.skipif(numba is None, reason="without Numba there is no kernel")
ARRAYS = "numpy"  # the implementation of array algebra
OTHERS = (ARRAYS, "kernel") if numba else (ARRAYS,)
DTYPES = st.sampled_from([np.float64, np.float32])
TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


def assert_close(found, expected, note=""):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, note
        size = max(1, np.abs(b[np.isfinite(b)]).max(initial=0))
        limit = TOLERANCE[b.dtype] * size
        np.testing.assert_allclose(a, b, rtol=0, atol=limit, err_msg=note)


def with_gradients(f, g, *inputs):
    """The result of an operation, and the gradients of its inputs, as plain arrays."""
    tensors = [Tensor(x, requires_grad=True) for x in inputs]
    y = f(*tensors)
    y.backward(g)
    return y.data, *[t.grad for t in tensors]


# ---------------------------------------------------------------- segments


def loops_of_segments(name, values, ids, n, g):
    """The result and the gradient of values [E, C]."""
    if name == "sum":
        y = np.zeros((n, values.shape[1]), values.dtype)
        segment.segment_sum(y, values, ids)
        return y, segment.segment_sum_backward(g, ids)
    if name == "max":
        y = segment.largest(values, ids, n)
        return y, segment.largest_backward(g, y, values, ids)
    if name == "min":
        y = segment.largest(-values, ids, n)
        return -y, -segment.largest_backward(-g, y, -values, ids)
    if name == "prod":
        return segment.product(values, ids, n), segment.product_backward(g, values, ids)
    a = segment.softmax(values, ids, n)
    return a, segment.softmax_backward(g, a, ids, n)


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "softmax"])
@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 40),
    st.integers(1, 12),
    st.sampled_from([0, 1, 3, 17]),
    DTYPES,
    st.integers(0, 99),
)
def test_segments(name, E, n, C, dtype, seed):
    """Empty segments, ties, zeros, no rows, no features; ids in any order."""
    rng = np.random.default_rng(seed)
    values, ids = rng.integers(-2, 3, (E, C)).astype(dtype), rng.integers(0, n, E)
    g = rng.standard_normal((E if name == "softmax" else n, C)).astype(dtype)
    found = loops_of_segments(name, values, ids, n, g)
    f = getattr(graph, f"segment_{name}")
    for options in ({},) if name == "sum" else [{"impl": impl} for impl in OTHERS]:
        expected = with_gradients(lambda x, o=options: f(x, ids, n, **o), g, values)
        assert_close(found, expected, str(options))


def test_segments_do_not_hide_nan():
    values, ids = np.array([[1.0], [np.nan], [3.0], [2.0]]), np.array([0, 0, 0, 1])
    for y in (segment.largest(values, ids, 3), segment.product(values, ids, 3)):
        np.testing.assert_array_equal(np.isnan(y), [[True], [False], [False]])
    a = segment.softmax(values, ids, 3)
    np.testing.assert_array_equal(a, [[np.nan], [np.nan], [np.nan], [1]])


# ---------------------------------------------------------------- neighbours


NEIGHBOURS = {  # operation, its loops: forward; backward of (g, result, inputs, index)
    "mean_max": (
        operations.mean_max,
        neighbours.mean_max,
        neighbours.mean_max_backward,
    ),
    "neighbour_max": (
        operations.neighbour_max,
        neighbours.largest,
        lambda *arguments: [neighbours.largest_backward(*arguments)],
    ),
    "squared_distances": (
        operations.squared_distances,
        neighbours.squared_distances,
        lambda g, y, x, index: [neighbours.squared_distances_backward(g, x, index)],
    ),
    "pair_sums": (
        operations.pair_sums,
        neighbours.pair_sums,
        lambda g, y, p, q, index: neighbours.pair_sums_backward(g, index),
    ),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 20),
    st.integers(1, 5),
    st.sampled_from([0, 1, 3, 17]),
    st.booleans(),
    DTYPES,
    st.integers(0, 99),
)
def test_neighbours(name, N, K, F, tied, dtype, seed):
    """Points that are several neighbours of one, or nobody's; ties; no points, no features."""
    rng = np.random.default_rng(seed)

    def numbers(*shape):
        return (rng.integers(-1, 2, shape) if tied else rng.standard_normal(shape)).astype(dtype)

    h, index = numbers(N, F), rng.integers(0, max(N, 1), (N, K))
    weights = np.ones((N, K), dtype) if tied else rng.uniform(0.5, 1, (N, K)).astype(dtype)
    inputs = {"mean_max": (weights, h), "pair_sums": (numbers(N, F), h)}.get(name, (h,))
    operation, forward, backward = NEIGHBOURS[name]
    y = forward(*inputs, index)
    g = rng.standard_normal(y.shape).astype(dtype)
    found = y, *backward(g, y, *inputs, index)
    for impl in OTHERS:
        expected = with_gradients(lambda *x, r=impl: operation(*x, index, r), g, *inputs)
        assert_close(found, expected, impl)


@needs_numba
def test_mean_max_has_the_bits_of_the_kernel():
    """The largest message is found again by its value, so every version must round alike."""
    from tinyattn.kernels.fast import neighbours as kernel

    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        w, h = rng.uniform(size=(50, 7)).astype(dtype), rng.normal(size=(40, 19)).astype(dtype)
        index = rng.integers(0, 40, (50, 7))
        found, expected = neighbours.mean_max(w, h, index), kernel.mean_max(w, h, index)
        np.testing.assert_array_equal(found[:, 19:], expected[:, 19:])


# ---------------------------------------------------------------- points within a radius


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_radius(dtype):
    """Pairs by sorting all distances: (i, distance, j); a point is its own neighbour."""
    rng = np.random.default_rng(0)
    for x in (rng.normal(size=(40, 3)), rng.integers(0, 3, (40, 2)), np.zeros((5, 0))):
        x, offsets = x.astype(dtype), np.array([0, len(x) // 3, len(x)])
        cloud = np.searchsorted(offsets, np.arange(len(x)), "right")
        d2 = np.sum(np.square(x[:, None] - x), axis=-1)
        for r2 in (dtype(0), dtype(1), dtype(1e9)):
            i, j = np.nonzero((d2 <= r2) & (cloud[:, None] == cloud))
            order = np.lexsort((j, d2[i, j], i))
            j_of, i_of = radius.radius(x, offsets, r2)
            np.testing.assert_array_equal(j_of, j[order])
            np.testing.assert_array_equal(i_of, i[order])
    assert [len(a) for a in radius.radius(np.zeros((0, 2), dtype), np.array([0]), 1)] == [0, 0]


# ---------------------------------------------------------------- product of matrices


@settings(max_examples=30, deadline=None)
@given(*[st.sampled_from([0, 1, 2, 7, 33])] * 3, DTYPES)
def test_product(rows, columns, terms, dtype):
    rng = np.random.default_rng(0)
    shapes = (rows, terms), (terms, columns), (rows, columns)
    a, b, g = (rng.standard_normal(s).astype(dtype) for s in shapes)
    found = matmul.matmul_loops(a, b), *matmul.matmul_loops_backward(g, a, b)
    assert_close(found, (a @ b, g @ b.T, a.T @ g), "array algebra")
    if numba:
        from tinyattn.kernels.fast.matmul import matmul as kernel

        assert_close(found, (kernel(a, b), kernel(g, b.T), kernel(a.T, g)), "kernel")


# ---------------------------------------------------------------- what they are


LOOPS = sorted((ROOT / "tinyattn/kernels").glob("[!_]*.py"))


@pytest.mark.parametrize("path", LOOPS, ids=lambda path: path.stem)
def test_loops_are_read_without_other_rooms(path):
    """They use the compiler and each other, no vectors, and fit on a page each."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            assert {name.name for name in node.names} <= {"math", "numpy"}
        elif isinstance(node, ast.ImportFrom):
            assert node.module == "tinyattn.kernels" or node.module in {
                f"tinyattn.kernels.{other.stem}" for other in LOOPS
            }
        elif isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 45, f"{node.name} does not fit on a page"


@needs_numba
def test_compiled_loops_are_the_same_loops_as_python():
    """Python runs what the page says; the compiler must not have made something else of it."""
    rng = np.random.default_rng(0)
    values, ids = rng.standard_normal((9, 2)), rng.integers(0, 4, 9)
    x, index = rng.standard_normal((6, 3)), rng.integers(0, 6, (6, 2))
    table = np.array([[-1, 0, 1], [1, 2, 3], [3, 4, -1]])
    calls = [
        (segment.largest, values, ids, 5),
        (segment.product, values, ids, 5),
        (segment.product_backward, np.ones((5, 2)), values, ids),
        (neighbours.mean_max, rng.random((6, 2)), x, index),
        (neighbours.squared_distances, x, index),
        (matmul.matmul_loops, values, values.T.copy()),
    ]
    for loop, *arguments in calls:
        np.testing.assert_allclose(loop(*arguments), loop.py_func(*arguments), rtol=1e-13)
    picture = rng.standard_normal((2, 3, 5))
    for loop in (pool.mean, pool.largest):
        found, expected = np.empty((2, 2, 3, 3))
        loop(found, picture, table)
        loop.py_func(expected, picture, table)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_recurrent_loops_keep_no_gates():
    """The backward pass computes the gates again from p and q, which are sums."""
    rng = np.random.default_rng(0)
    x, h, c = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5)), rng.normal(size=(2, 5))
    w = [rng.normal(size=s) for s in ((20, 4), (20, 5), (20,), (20,))]
    _, (p, q, all_h, all_c) = recurrent_loops.recurrent_loops(
        recurrent_loops.LSTM, x, h, c, *w, np.array([3, 2]), False
    )
    np.testing.assert_allclose(p[:, :2], (x @ w[0].T + w[2])[:, :2], rtol=1e-12)
    np.testing.assert_allclose(q[:, :2], (all_h @ w[1].T + w[3])[:, :2], rtol=1e-12)
    np.testing.assert_array_equal(all_c[:, 0], c)
