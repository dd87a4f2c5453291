"""The compiled reductions over segments against array algebra and plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from tests.machine import same_bits_on_any_threads
from tinyattn import Tensor, graph
from tinyattn.engine import memory
from tinyattn.kernels import segment as loops
from tinyattn.kernels.fast import gather_scatter
from tinyattn.kernels.machine import prefetch
from tinyattn.ops.index import scatter_add

NAMES = ["max", "min", "prod", "softmax"]
SHAPES = [(), (1,), (3,), (2, 9), (17,), (40,)]
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}


def run(name, values, ids, n, impl):
    """The result, and the gradient of values."""
    x = Tensor(values, requires_grad=True)
    y = getattr(graph, f"segment_{name}")(x, ids, n, impl=impl)
    y.backward(np.random.default_rng(1).normal(size=y.shape).astype(values.dtype))
    return y.data, x.grad


@pytest.mark.parametrize("name", NAMES)
@given(
    st.integers(0, 60),
    st.integers(1, 20),
    st.sampled_from(SHAPES),
    st.booleans(),
    st.sampled_from(list(TOLERANCE)),
    st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_kernel_is_array_algebra(name, E, n, shape, in_order, dtype, seed):
    r = np.random.default_rng(seed)
    values = r.integers(-2, 3, (E, *shape)).astype(dtype)  # many ties and zeros
    ids = r.integers(0, n, E)
    ids = np.sort(ids) if in_order else ids
    found, expected = (run(name, values, ids, n, impl) for impl in ("kernel", "numpy"))
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == dtype
        scale = max(1, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_on_any_number_of_threads(name):
    r = np.random.default_rng(0)
    values, ids = r.normal(size=(9000, 20)).astype(np.float32), r.integers(0, 500, 9000)
    same_bits_on_any_threads(lambda: run(name, values, ids, 500, "kernel"))


# ---------------------------------------------------------------- rows: sums, and taking


ROWS = [(0, 3, 4), (1, 1, 1), (7, 3, 5), (400, 9, 16), (60, 50, 37), (900, 70, 8), (9, 4, 203)]


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("shape", ROWS, ids=str)  # E, n, C
def test_adding_and_taking_rows_are_the_loops(shape, dtype):
    E, n, C = shape
    r = np.random.default_rng(0)
    values, ids = r.normal(size=(E, C)).astype(dtype), r.integers(0, n, E)
    expected = np.zeros((n, C), dtype)
    loops.segment_sum(expected, values, ids)
    y, back = np.zeros((n, C), dtype), np.full((E, C), 7, dtype)
    gather_scatter.add_rows(y, values, ids)
    np.testing.assert_array_equal(y, expected)  # the same sums in the same order
    gather_scatter.take_rows(back, y, ids)
    np.testing.assert_array_equal(back, y[ids])
    everything = np.zeros((1, C), dtype)
    loops.segment_sum(everything, values, np.zeros(E, int))
    np.testing.assert_array_equal(gather_scatter.sum_rows(values), everything[0])


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_rows_past_the_cache(monkeypatch, dtype):
    monkeypatch.setattr(prefetch, "LARGEST", 1000)
    monkeypatch.setattr(memory, "LARGEST", 1000)
    r = np.random.default_rng(0)
    values, ids = r.normal(size=(600, 48)).astype(dtype), r.integers(0, 40, 600)
    y = memory.empty_pooled((600, 48), values.dtype)
    assert prefetch.use_nontemporal(y, 48) and not prefetch.use_nontemporal(y[:1], 48)
    # 41 numbers are not whole vectors at any width
    assert not prefetch.use_nontemporal(y, 41)
    assert not prefetch.use_nontemporal(y.reshape(-1)[1:], 48)
    gather_scatter.take_rows(y, values, ids)
    np.testing.assert_array_equal(y, values[ids])
    found, expected = (run("softmax", values, ids, 40, impl) for impl in ("kernel", "numpy"))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[dtype])
    same_bits_on_any_threads(lambda: run("softmax", values, ids, 40, "kernel"))


def test_rows_have_the_same_bits_on_any_number_of_threads():
    r = np.random.default_rng(0)
    values, ids = r.normal(size=(9000, 40)).astype(np.float32), r.integers(0, 500, 9000)

    def run():
        y, back = np.zeros((500, 40), np.float32), np.empty((9000, 40), np.float32)
        gather_scatter.add_rows(y, values, ids)
        gather_scatter.take_rows(back, y, ids)
        return [y, back, gather_scatter.sum_rows(values)]

    same_bits_on_any_threads(run)


def test_many_rows_by_their_numbers():
    """Numbers from the end, of few bits, in tables; and numbers of rows that there are not."""
    x = Tensor(np.random.default_rng(0).normal(size=(300, 64)), requires_grad=True)
    for ids in (
        np.arange(-300, 3000) % 300 - 300,
        np.arange(4000, dtype=np.uint8),
        np.arange(2400).reshape(40, 60) % 300,
    ):
        y = x[ids]
        np.testing.assert_array_equal(y.data, x.data[ids])
        x.grad = None
        y.backward(y.data)
        times = np.bincount(ids.reshape(-1).astype(int) % 300, minlength=300)
        np.testing.assert_allclose(x.grad, x.data * times[:, None], rtol=1e-12)
    for wrong in (300, -301):
        ids = np.zeros(3000, int)
        ids[7] = wrong
        for rows_of in (x, x.data):
            with pytest.raises(IndexError, match=f"index {wrong} "):
                rows_of[ids]
        with pytest.raises(IndexError, match=f"index {wrong} "):
            scatter_add(x.data[np.zeros(3000, int)], ids, x.shape)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_and_means_are_the_loops(name):
    r = np.random.default_rng(0)
    values, ids = r.normal(size=(3000, 50)), r.integers(0, 90, 3000)
    expected = np.zeros((95, 50))
    loops.segment_sum(expected, values, ids)
    if name == "mean":
        expected /= np.maximum(np.bincount(ids, minlength=95), 1)[:, None]
    y = getattr(graph, f"segment_{name}")(values, ids, 95).numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-12)


# ---------------------------------------------------------------- what comes in


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("impl", ["numpy", "kernel"])
def test_nan_is_not_lost(name, impl):
    values, ids = np.array([[1.0], [np.nan], [3.0], [2.0]]), np.array([0, 0, 0, 1])
    y = getattr(graph, f"segment_{name}")(values, ids, 2, impl=impl).numpy()
    assert np.isnan(y[0, 0]) and y[1, 0] == 2


ODD = [
    [0.0, 2, 3],
    [0.0, 0, 3],
    [np.inf, 0, 2],
    [np.inf, 2, 3],
    [-np.inf, np.inf, 1],
    [np.inf, np.inf, 1],
    [np.nan, 1, 2],
    [np.nan, 0, np.nan],
    [-np.inf, -np.inf, -np.inf],
    [-np.inf, 1, 2],
    [-0.0, 0, 1],
]


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("values", ODD, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_the_implementations_agree_at_zeros_infinity_and_nan(name, values):
    values, ids = np.array([*values, 5.0])[:, None], np.array([0, 0, 0, 1])
    found, expected = (run(name, values, ids, 3, impl) for impl in ("kernel", "numpy"))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("impl", ["numpy", "kernel"])
@pytest.mark.parametrize("values", ODD, ids=str)
def test_the_derivative_of_a_product_is_the_product_of_the_others(values, impl):
    """Also where the product over the value would be 0/0 or ∞/∞."""
    x = Tensor(np.array(values), requires_grad=True)
    graph.segment_prod(x, np.zeros(3, int), 1, impl=impl).backward(np.ones(1))
    others = [np.prod(np.delete(values, i)) for i in range(3)]
    np.testing.assert_array_equal(x.grad, others)


@pytest.mark.parametrize("name", NAMES)
def test_strided_and_read_only_values(name):
    values, ids = np.random.default_rng(0).normal(size=(6, 8))[::2, ::3], np.array([1, 0, 1])
    values.flags.writeable = False
    found, expected = (run(name, values, ids, 3, impl) for impl in ("kernel", "numpy"))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("impl", ["numpy", "kernel", "auto"])
@pytest.mark.parametrize("width", [(), (1,), (2,), (5,), (20,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_of_a_segment_of_nothing_but_minus_infinity(impl, width, dtype):
    """0 with gradient 0, as attention gives a query that may see no key."""
    ids = np.array([0, 1, 0, 2, 2])
    values = np.random.default_rng(0).normal(size=(5, *width)).astype(dtype)
    values[[0, 2]] = -np.inf
    values[3] = -np.inf
    x = Tensor(values, requires_grad=True)
    y = graph.segment_softmax(x, ids, 4, impl=impl)
    np.testing.assert_array_equal(
        y.numpy()[:, ...],
        np.broadcast_to(
            np.array([0, 1, 0, 0, 1], dtype).reshape(-1, *(1,) * len(width)), values.shape
        ),
    )
    y.backward(np.random.default_rng(1).normal(size=y.shape))
    np.testing.assert_allclose(x.grad, np.zeros(x.shape), atol=1e-6)


def test_large_inputs_take_the_kernel_by_themselves():
    x = Tensor(np.ones((100, 64), np.float32), requires_grad=True)
    by_choice, by_numpy, by_kernel = [
        graph.segment_max(x, np.repeat(np.arange(10), 10), 10, impl=impl)._operation
        for impl in ("auto", "numpy", "kernel")
    ]
    assert by_choice is by_kernel is not by_numpy
