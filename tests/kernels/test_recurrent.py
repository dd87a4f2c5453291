"""The three implementations of recurrent layers against each other."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyattn as ta
from tests.machine import fresh_python, same_bits_on_any_threads
from tinyattn import Tensor, nn
from tinyattn.ops import backends

# sums of some hundred products of numbers of size 1, carried on over a few steps
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
CELLS = {
    "RNN": nn.RNNCell,
    "relu": lambda *sizes, **options: nn.RNNCell(*sizes, nonlinearity="relu", **options),
    "GRU": nn.GRUCell,
    "LSTM": nn.LSTMCell,
}
MAKE = {
    "RNN": nn.RNN,
    "relu": lambda *sizes, **options: nn.RNN(*sizes, nonlinearity="relu", **options),
    "GRU": nn.GRU,
    "LSTM": nn.LSTM,
}


def everything(name, impl, B, T, D, H, lengths=None, dtype="float64", **options):
    """Outputs, last states and all gradients, as one list of arrays."""
    layer = MAKE[name](D, H, impl=impl, rng=0, **options).astype(dtype)
    rng = np.random.default_rng(1)
    x = Tensor(rng.normal(size=(B, T, D)).astype(dtype), requires_grad=True)
    shape = (layer.num_layers * (1 + layer.bidirectional), B, H)
    state = [
        Tensor(rng.normal(size=shape).astype(dtype), requires_grad=True)
        for _ in range(layer.cell.states)
    ]
    y, last = layer(x, tuple(state) if len(state) > 1 else state[0], lengths)
    outputs = [y, *(last if isinstance(last, tuple) else [last])]
    sum((o * rng.normal(size=o.shape).astype(dtype)).sum() for o in outputs).backward()
    leaves = [x, *state, *layer.parameters()]
    gradients = [np.zeros(p.shape, dtype) if p.grad is None else p.grad for p in leaves]
    return [o.data for o in outputs] + gradients


def assert_close(found, expected, dtype):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        size = max(1.0, np.abs(b).max(initial=0))
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE[dtype] * size)


# B, T, D, H: nothing, one of everything, less and more than a vector, a tile, a part of the batch
SHAPES = [(0, 3, 2, 2), (2, 0, 2, 3), (1, 1, 1, 1), (3, 5, 1, 1), (2, 9, 17, 16), (5, 17, 3, 33),
          (35, 3, 5, 70), (3, 2, 130, 66)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MAKE)
def test_implementations_agree(name, shape, dtype):
    for lengths in (None, np.random.default_rng(0).integers(0, shape[1] + 1, shape[0])):
        expected = everything(name, "numpy", *shape, lengths, dtype, bidirectional=True)
        for impl in ("sums", "kernel"):
            found = everything(name, impl, *shape, lengths, dtype, bidirectional=True)
            assert_close(found, expected, dtype)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_implementations_agree_on_any_shape(data):
    B, T, D, H = (
        data.draw(st.integers(low, high)) for low, high in ((0, 9), (0, 20), (1, 20), (1, 40))
    )
    lengths = data.draw(
        st.none()
        | st.lists(st.integers(0, T), min_size=B, max_size=B).map(
            lambda numbers: np.array(numbers, int)
        )
    )
    name = data.draw(st.sampled_from(sorted(MAKE)))
    options = {
        "bidirectional": data.draw(st.booleans()),
        "bias": data.draw(st.booleans()),
        "num_layers": data.draw(st.integers(1, 2)),
    }
    expected = everything(name, "numpy", B, T, D, H, lengths, **options)
    for impl in ("sums", "kernel"):
        assert_close(everything(name, impl, B, T, D, H, lengths, **options), expected, "float64")


@pytest.mark.parametrize("name", MAKE)
def test_extreme_numbers(name):
    """Saturated gates and numbers near zero, where 2σ(2x) - 1 would cancel."""
    for size in (1e-12, 1e-3, 0.3, 30.0, 1e4):
        x = np.random.default_rng(0).normal(size=(3, 4, 5)) * size
        for dtype in ("float64", "float32"):
            layer = MAKE[name](5, 6, bias=False, rng=0).astype(dtype)
            found, expected = [], []
            for impl, out in (("kernel", found), ("numpy", expected)):
                layer.impl = impl
                out.append(layer(x.astype(dtype))[0].data)
            scale = np.abs(expected[0]).max()
            limit = TOLERANCE[dtype] * scale
            np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=limit)


@pytest.mark.parametrize("impl", ["sums", "numpy", "kernel"])
@pytest.mark.parametrize("name", MAKE)
def test_nan_and_infinity_are_not_hidden(name, impl):
    layer = MAKE[name](2, 3, impl=impl, rng=0)
    x = np.zeros((2, 4, 2), np.float32)
    x[0, 2] = np.nan
    y = layer(x)[0].data
    assert np.isfinite(y[1]).all() and np.isfinite(y[0, :2]).all() and np.isnan(y[0, 2:]).all()


# ---------------------------------------------------------------- one step


def one_step(name, impl, B, D, H, dtype="float64", size=1.0, bias=True, as_is=lambda x: x):
    """The next state of a cell and all gradients, as one list of arrays."""
    cell = CELLS[name](D, H, impl=impl, bias=bias, rng=0).astype(dtype)
    rng = np.random.default_rng(1)
    x, *state = (
        Tensor(as_is(rng.normal(0, size, (B, n)).astype(dtype)), requires_grad=True)
        for n in (D, *[H] * cell.cell.states)
    )
    after = cell(x, tuple(state) if len(state) > 1 else state[0])
    after = after if isinstance(after, tuple) else (after,)
    sum((a * rng.normal(size=a.shape).astype(dtype)).sum() for a in after).backward()
    leaves = [x, *state, *cell.parameters()]
    return [a.data for a in after] + [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CELLS)
def test_implementations_of_one_step_agree(name, dtype):
    for shape in ((0, 2, 2), (1, 1, 1), (3, 2, 7), (2, 17, 16), (5, 3, 33), (70, 5, 64)):
        expected = one_step(name, "numpy", *shape, dtype)
        for impl in ("sums", "auto") if name in ("RNN", "relu") else ("sums", "kernel", "auto"):
            assert_close(one_step(name, impl, *shape, dtype), expected, dtype)


@pytest.mark.parametrize("name", ["GRU", "LSTM"])
def test_one_step_of_extreme_numbers_and_nan(name):
    for size in (1e-12, 1e-3, 0.3, 30.0, 1e4):
        for dtype in ("float64", "float32"):
            found, expected = (
                one_step(name, impl, 3, 5, 6, dtype, size, bias=False)[0]
                for impl in ("kernel", "numpy")
            )
            limit = TOLERANCE[dtype] * np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=0, atol=limit)
    x = np.zeros((3, 2), np.float32)
    x[1, 0] = np.nan
    h = CELLS[name](2, 40, impl="kernel", rng=0)(x)
    h = (h[0] if name == "LSTM" else h).data
    assert np.isnan(h[1]).all() and np.isfinite(h[::2]).all()


@pytest.mark.parametrize("name", ["GRU", "LSTM"])
def test_one_step_of_arrays_of_any_kind(name):
    def turned(x):
        return np.asfortranarray(x)

    def read_only(x):
        x.flags.writeable = False
        return x

    for as_is in (turned, read_only):
        found, expected = (
            one_step(name, impl, 5, 4, 9, as_is=as_is) for impl in ("kernel", "numpy")
        )
        assert_close(found, expected, "float64")


@pytest.mark.parametrize("name", ["GRU", "LSTM"])
def test_one_step_has_the_same_bits_on_any_number_of_threads(name):
    same_bits_on_any_threads(lambda: one_step(name, "kernel", 300, 16, 70, "float32"))


@pytest.mark.parametrize("name", ["GRU", "LSTM"])
def test_one_step_has_second_derivatives_on_every_implementation_of_products(name):
    second = []
    for impl in ("numpy", "kernel", "auto"):
        cell = CELLS[name](3, 64, impl=impl, rng=0).astype(np.float64)
        x = Tensor(np.random.default_rng(0).normal(size=(64, 3)), requires_grad=True)
        h = cell(x)
        ((h[0] * h[1] if name == "LSTM" else h) ** 2).sum().backward(create_graph=True)
        first, x.grad = x.grad, None
        (first**2).sum().backward()
        second.append(x.grad)
    for found in second[1:]:
        np.testing.assert_allclose(found, second[0], rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="got impl='fast'"):
        nn.GRUCell(3, 64, impl="fast", rng=0)(np.ones((2, 3), np.float32))


# ---------------------------------------------------------------- whole sequences


def test_arrays_of_any_kind():
    """Read-only, reversed, transposed, and float64 next to float32."""
    x = np.random.default_rng(0).normal(size=(3, 7, 4))
    for view in (x[:, ::-1], x.transpose(1, 0, 2), x[::2], x[:, :, ::-1]):
        view.flags.writeable = False
        for name in MAKE:
            results = []
            for impl in ("numpy", "kernel"):
                layer = MAKE[name](4, 5, impl=impl, rng=0)
                x_t = Tensor(view, requires_grad=True)
                y, _ = layer(x_t)
                y.backward(np.broadcast_to(np.float64(1), y.shape))
                results.append([y.data, x_t.grad, *[p.grad for p in layer.parameters()]])
            for a, b in zip(*results, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, atol=1e-6)


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize("name", MAKE)
def test_the_same_bits_on_any_number_of_threads(name):
    shape, lengths = (19, 40, 24, 50), np.random.default_rng(0).integers(0, 41, 19)
    same_bits_on_any_threads(lambda: everything(name, "kernel", *shape, lengths, "float32"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_after_a_kernel_ran():
    fresh_python("""
        import os, warnings, numpy as np
        from tinyattn import nn
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork with threads
        layer, x = nn.GRU(40, 40, rng=0), np.ones((16, 50, 40), np.float32)
        y = layer(x)[0].data
        pid = os.fork()
        if pid == 0:
            os._exit(0 if np.array_equal(layer(x)[0].data, y) else 1)
        assert os.waitpid(pid, 0)[1] == 0
    """)


# ---------------------------------------------------------------- derivatives


def test_jacobian_runs_the_rule_many_times():
    """What the kernel keeps for its backward pass is still there the second time."""
    x = np.random.default_rng(0).normal(size=(1, 3, 2))
    found = []
    for impl in ("kernel", "numpy"):
        layer = nn.GRU(2, 2, impl=impl, rng=0).astype(np.float64)
        found.append(ta.jacobian(lambda x, layer=layer: layer(x)[0])(x))
    np.testing.assert_allclose(*[f.numpy() for f in found], atol=1e-12)


def test_only_wanted_gradients():
    layer = nn.LSTM(2, 3, impl="kernel", rng=0)
    layer(np.ones((1, 4, 2), np.float32))[0].sum().backward()  # x wants none
    assert all(p.grad is not None for p in layer.parameters())
    layer.zero_grad()
    layer.requires_grad_(False)
    x = Tensor(np.ones((1, 4, 2), np.float32), requires_grad=True)
    layer(x)[0].sum().backward()
    assert x.grad is not None and all(p.grad is None for p in layer.parameters())


# ---------------------------------------------------------------- what is refused

X = np.zeros((2, 3, 4), np.float32)


def test_half_precision_takes_the_array_implementation():
    y, _ = nn.GRU(4, 2).astype(np.float16)(X.astype(np.float16))
    assert y.dtype == np.float16


def test_without_numba(monkeypatch):
    monkeypatch.setattr(backends, "_numba", False)
    expected = nn.GRU(4, 2, impl="numpy", rng=0)(X)[0].data
    for impl in ("auto", "kernel"):
        np.testing.assert_array_equal(nn.GRU(4, 2, impl=impl, rng=0)(X)[0].data, expected)


def test_the_kernel_without_numba_is_python():
    """The same loops, run as ordinary Python with NumPy's meaning of each instruction."""
    fresh_python("""
        import sys
        sys.modules["numba"] = None
        import numpy as np
        from tinyattn.kernels.fast import recurrent as kernel
        from tinyattn.kernels import recurrent as loops
        rng = np.random.default_rng(0)
        for kind, G in enumerate(loops.GATES):
            x, h, c = (rng.normal(size=s) for s in ((2, 3, 3), (2, 5), (2, 5)))
            w = [rng.normal(size=s) for s in ((5 * G, 3), (5 * G, 5), (5 * G,), (5 * G,))]
            ends = np.array([3, 1])
            (a, kept_a), (b, kept_b) = (run(kind, x, h, c, *w, ends, True)
                                        for run in (loops.recurrent_loops, kernel.sequence))
            np.testing.assert_allclose(a, b, atol=1e-12)
            g = rng.normal(size=a.shape)
            rest = True, x, *w[:2], ends, True
            for s, k in zip(loops.recurrent_loops_backward(kind, g, kept_a, *rest),
                            kernel.sequence_gradients(kind, g, kept_b, *rest), strict=True):
                np.testing.assert_allclose(s, k, atol=1e-12)

        from tinyattn.functional.recurrent import GRU, LSTM
        from tinyattn.kernels.fast import recurrent_cells as cells
        for cell in GRU, LSTM:
            p, q = rng.normal(size=(2, 3, cell.gates * 5))
            h, c = rng.normal(size=(2, 3, 5))
            after = cell.step(p, q, (h, c)[: cell.states])
            y, _ = cells.gated(cell.kind, p, q, (h, c)[cell.states - 1])
            np.testing.assert_allclose(y.reshape(-1, 3, 5), after, atol=1e-12)
    """)
