"""The building blocks of the kernels: vectors, tiles, matrix product; each against its meaning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

numba = pytest.importorskip("numba")

from tests.machine import fresh_python, from_python, same_bits_on_any_threads  # noqa: E402
from tinyattn.kernels import jit  # noqa: E402
from tinyattn.kernels import matmul as loops  # noqa: E402
from tinyattn.kernels.fast import matmul as kernel  # noqa: E402
from tinyattn.kernels.fast import matvec  # noqa: E402
from tinyattn.kernels.machine import packing, tiles  # noqa: E402
from tinyattn.kernels.machine.llvm import VECTOR_BYTES  # noqa: E402
from tinyattn.kernels.machine.load_store import (  # noqa: E402
    load,
    load_bitmask,
    load_partial,
    store,
    store_partial,
)
from tinyattn.kernels.machine.simd import (  # noqa: E402
    broadcast,
    concat_even,
    exp,
    fma,
    hmax,
    hmin,
    hsum,
    interleave_high,
    interleave_low,
    maximum,
    maximum_or_nan,
    select_bit,
    select_equal,
    select_greater,
    sqrt,
    width,
)
from tinyattn.ops import matmul as ops  # noqa: E402

DTYPES = [np.float32, np.float64]
PRECISION = {np.float32: 1e-6, np.float64: 1e-14}
both_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# ---------------------------------------------------------------- vectors


@jit
def arithmetic(out, x, words):
    W = width(x)
    a, b = load(x, 0), load(x, 1)
    store(out, 0, fma(a, b, broadcast(x, 2)))
    store(out, W, a + b)
    store(out, 2 * W, a - b * out.dtype.type(3))
    store(out, 3 * W, a / b)
    store(out, 4 * W, maximum(a, b))
    store(out, 5 * W, sqrt(a * a))
    store(out, 6 * W, select_greater(a, broadcast(a, 0), b, a))
    store(out, 7 * W, select_bit(words, 0, 5, a, b))
    store(out, 8 * W, load_partial(x, 0, W // 2, -1))
    store(out, 9 * W, a)
    store_partial(out, 9 * W, 9 * W + 1, b)
    return hsum(a), hmax(a), hmin(a), W


@jit
def comparisons(out, x):
    W = width(x)
    a, b = load(x, 0), load(x, W)
    store(out, 0, select_greater(a, b, a, b + b))
    store(out, W, select_equal(a, b, a, b + b))
    store(out, 2 * W, maximum_or_nan(a, b))
    store(out, 3 * W, concat_even(a, b))
    store(out, 4 * W, interleave_low(a, b))
    store(out, 5 * W, interleave_high(a, b))
    return W


@both_dtypes
def test_comparisons_and_orders(dtype):
    x = normal(64, dtype=dtype)
    W = VECTOR_BYTES // x.itemsize
    x[W] = x[0]
    x[1], x[W + 2], x[3], x[W + 3] = np.nan, np.nan, np.nan, np.nan
    out, (a, b) = np.zeros(6 * W, dtype), x[: 2 * W].reshape(2, W)
    assert comparisons(out, x) == W
    both = np.stack([a, b], axis=1).reshape(-1)
    larger = np.where(np.isnan(a) | (a > b), a, b)  # nan from either side
    expected = [
        np.where(a > b, a, b + b),
        np.where(a == b, a, b + b),
        larger,
        np.concatenate([a, b])[::2],
        both[:W],
        both[W:],
    ]
    np.testing.assert_array_equal(out.reshape(6, W), expected)


@both_dtypes
def test_arithmetic(dtype):
    x, words = normal(64, dtype=dtype), np.arange(64, dtype=np.uint64) * 13
    out = np.zeros(200, dtype)
    *folded, W = arithmetic(out, x, words)
    a, b = x[:W], x[1 : W + 1]
    bit = (words[:W] >> np.uint64(5)) & np.uint64(1) == 1
    half = np.arange(W) < W // 2
    expected = [
        a * b + 2,
        a + b,
        a - 3 * b,
        a / b,
        np.maximum(a, b),
        abs(a),
        np.where(a > 0, b, a),
        np.where(bit, a, b),
        np.where(half, a, -1),
        [b[0], *a[1:]],
    ]
    for i, e in enumerate(expected):
        np.testing.assert_allclose(out[i * W : (i + 1) * W], e, rtol=PRECISION[dtype], atol=1e-7)
    np.testing.assert_allclose(folded, [a.sum(), a.max(), a.min()], rtol=1e-5)


@jit
def exp_of(y, x):
    for i in range(0, len(x), width(x)):
        store(y, i, exp(load(x, i)))


@pytest.mark.parametrize(
    ("dtype", "low", "high", "error"), [(np.float32, -87, 88, 2e-7), (np.float64, -708, 709, 4e-16)]
)
def test_exp(dtype, low, high, error):
    x = np.linspace(low, high, 4096).astype(dtype)
    y = np.empty_like(x)
    exp_of(y, x)
    np.testing.assert_allclose(y, np.exp(x.astype(np.float64)), rtol=error)
    x[:4] = 0, -np.inf, np.nan, low - 10
    exp_of(y, x)
    assert y[0] == 1
    assert np.isnan(y[2])
    assert y[1] == y[3] == 0


def test_bits():
    x = (normal(100) > 0).view(np.uint8)
    word = jit(lambda x: load_bitmask(x, 7))(x)
    assert [word >> i & 1 for i in range(64)] == x[7:71].tolist()


# ---------------------------------------------------------------- tiles


@jit
def run_product(c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add):
    tiles.product(c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add)


@jit
def run_moves(turned, copied, x, rows, columns, factor):
    tiles.transpose(turned, 3, rows + 2, x, 0, columns, rows, columns, factor)
    tiles.copy(copied, 1, columns + 1, x, 0, columns, rows, columns, factor)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.integers(0, 20),
    st.integers(0, 9),
    st.integers(0, 20),
    st.booleans(),
    st.booleans(),
)
def test_product(dtype, rows, vectors, n, turned, add):
    columns = vectors * (VECTOR_BYTES // np.dtype(dtype).itemsize)
    a, b, c = (normal(*s, dtype=dtype) for s in ((rows, n), (n, columns), (rows, columns + 3)))
    memory, steps = (a.T.copy(), (1, rows)) if turned else (a, (n, 1))
    found = c.copy()
    run_product(
        found.reshape(-1),
        0,
        columns + 3,
        memory.reshape(-1),
        0,
        *steps,
        b.reshape(-1),
        0,
        columns,
        rows,
        columns,
        n,
        add,
    )
    c[:, :columns] = (c[:, :columns] if add else 0) + a @ b
    np.testing.assert_allclose(found, c, rtol=0, atol=40 * PRECISION[dtype])


round_up_to_tile, packed_size = map(from_python, (packing.round_up_to_tile, packing.packed_size))


@jit
def run_packed(out, c, d, d_row, a, a_row, a_col, b, rows, high, columns, n, add):
    packing.pack(out, a, 0, a_row, a_col, rows, n)
    packing.packed_product(c, 0, columns + 3, d, 0, d_row, out, b, 0, high, columns, n, add)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.integers(0, 20),
    st.integers(0, tiles.TILES[0][0]),
    st.sampled_from([0, 1, 5, 16, 35]),
    st.booleans(),
    st.sampled_from(["c", "row", ""]),
)
def test_packed_product(dtype, rows, vectors, n, turned, onto):
    W, high = VECTOR_BYTES // np.dtype(dtype).itemsize, round_up_to_tile(rows)
    columns, panel = vectors * W, tiles.TILES[0][0] * W
    a, b, c = (normal(*s, dtype=dtype) for s in ((rows, n), (n, panel), (high, columns + 3)))
    memory, steps = (a.T.copy(), (1, rows)) if turned else (a, (n, 1))
    found, row = c.copy(), normal(columns, dtype=dtype)
    d, d_row = (row, 0) if onto == "row" else (found.reshape(-1), columns + 3)
    packed = np.full(packed_size(rows, n, W), np.nan, dtype)
    run_packed(
        packed,
        found.reshape(-1),
        d,
        d_row,
        memory.reshape(-1),
        *steps,
        b.reshape(-1),
        rows,
        high,
        columns,
        n,
        bool(onto),
    )
    a = np.concatenate([a, *[a[-1:]] * (high - rows)])  # the last row again
    before = {"c": c[:, :columns], "row": row, "": 0}[onto]
    c[:, :columns] = before + a @ b[:, :columns]
    np.testing.assert_allclose(found, c, rtol=0, atol=60 * PRECISION[dtype])


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(DTYPES), st.integers(0, 40), st.integers(0, 40))
def test_transpose_and_copy(dtype, rows, columns):
    x = normal(rows, columns, dtype=dtype)
    turned = np.zeros(columns * (rows + 2) + 3, dtype)
    copied = np.zeros(rows * (columns + 1) + 1, dtype)
    run_moves(turned, copied, x.reshape(-1), rows, columns, dtype(2))
    np.testing.assert_array_equal(turned[3:].reshape(columns, rows + 2)[:, :rows], 2 * x.T)
    np.testing.assert_array_equal(copied[1:].reshape(rows, columns + 1)[:, :columns], 2 * x)
    assert not turned[3:].reshape(columns, rows + 2)[:, rows:].any()


# ---------------------------------------------------------------- matrix product

sizes = st.sampled_from([0, 1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 100, 257])
more_than_a_block = [kernel.MAX_BLOCK_DEPTH + 1, 2 * kernel.MAX_BLOCK_DEPTH + 1]
terms = sizes | st.sampled_from(more_than_a_block)


@settings(max_examples=80, deadline=None)
@given(sizes, sizes, terms, st.sampled_from(DTYPES), st.booleans(), st.booleans(), st.booleans())
def test_matmul_is_the_sum(M, N, K, dtype, a_turned, b_turned, with_bias):
    a, b, bias = normal(M, K, dtype=dtype), normal(K, N, dtype=dtype), normal(N, dtype=dtype)
    expected = loops.matmul_loops(a, b) + (bias if with_bias else 0)
    size = 1 + np.abs(a) @ np.abs(b)  # of all terms: roundings grow with it
    a = np.asfortranarray(a) if a_turned else a
    b = np.asfortranarray(b) if b_turned else b
    found = kernel.matmul(a, b, bias if with_bias else None)
    assert found.dtype == dtype
    assert (np.abs(found - expected) <= 2 * PRECISION[dtype] * size).all()


def test_matmul_of_odd_arrays():
    a, b = normal(40, 30)[::2, ::3], normal(20, 10)[::-2].copy()
    b.flags.writeable = False
    np.testing.assert_allclose(kernel.matmul(a, b), a @ b, rtol=0, atol=1e-13)


def test_matmul_gives_the_same_bits_on_any_number_of_threads():
    a, b = normal(400, 300, dtype=np.float32), normal(300, 200, dtype=np.float32)
    same_bits_on_any_threads(lambda: [kernel.matmul(a.T.copy().T, b)])


@settings(max_examples=80, deadline=None)
@given(sizes, sizes, sizes, st.sampled_from(DTYPES), st.booleans())
def test_matvec_is_the_sum(M, N, K, dtype, with_bias):
    x, w = normal(M, K, dtype=dtype), normal(N, K, dtype=dtype, seed=1)
    bias = normal(N, dtype=dtype, seed=2) if with_bias else np.zeros(N, dtype)
    found = matvec.product(x, w.T, bias if with_bias else None)
    expected = x.astype(np.float64) @ w.T + bias
    error = PRECISION[dtype] * 10 * np.sqrt(K + 1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=error)
    assert found.dtype == dtype


def test_matvec_of_odd_arrays():
    x, w = normal(20, 90)[::4, ::3], normal(60, 60)[::2, ::2]
    np.testing.assert_allclose(matvec.product(x, w.T), x @ w.T, rtol=0, atol=1e-13)
    w = np.ascontiguousarray(w)
    w.flags.writeable = False
    np.testing.assert_allclose(matvec.product(x, w.T), x @ w.T, rtol=0, atol=1e-13)


def test_a_row_has_the_same_bits_among_few_or_many():
    x, w = normal(24, 300, dtype=np.float32), normal(201, 300, dtype=np.float32, seed=1)
    all_rows = matvec.product(x, w.T)
    for i in range(24):
        for height in (1, 3, 7):
            rows = x[i : i + height]
            assert np.array_equal(matvec.product(rows, w.T), all_rows[i : i + height])
    same_bits_on_any_threads(lambda: [matvec.product(x, w.T)])


@pytest.fixture
def taken(monkeypatch):
    """Which kernels `ops.gemm` calls."""
    calls = []
    for module, name in ((kernel, "matmul"), (matvec, "product")):
        run = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, n=name, run=run: calls.append(n) or run(*a))
    return calls


def test_large_products_take_a_kernel(taken):
    for M, N, K, expected in (
        (80, 80, 80, []),
        (81, 81, 81, ["matmul"]),
        (8, 256, 255, []),
        (8, 256, 256, ["product"]),
        (1, 1024, 512, ["product"]),
        (24, 160, 160, ["product"]),
        (25, 160, 160, ["matmul"]),
    ):
        x, w = normal(M, K, dtype=np.float32), normal(N, K, dtype=np.float32)
        taken.clear()
        np.testing.assert_allclose(ops.gemm(x, w.T), x @ w.T, rtol=1e-5, atol=1e-4)
        assert taken == expected
    x, w = normal(8, 128, dtype=np.float32), normal(512, 128, dtype=np.float32)
    for wrong in (np.zeros(1, np.float32), np.zeros(512), np.zeros(100, np.float32)):
        taken.clear()
        if wrong.size == 100:
            with pytest.raises(ValueError, match="broadcast"):
                ops.gemm(x, w.T, wrong)
        else:
            ops.gemm(x, w.T, wrong)
        assert taken == []
    ops.gemm(x, np.ascontiguousarray(w.T))  # its columns are not in one piece
    ops.gemm(normal(8, 1), normal(1, 2**16))  # nothing to sum up
    w.flags.writeable = False
    ops.gemm(x, w.T)
    assert taken == ["matmul", "matmul", "matmul"]
    taken.clear()
    ops.gemm(x, np.ascontiguousarray(w.T))
    ops.gemm(normal(64, 64).astype(np.float16), normal(64, 64).astype(np.float16))
    assert taken == ["matmul"]


# ---------------------------------------------------------------- without Numba

REFERENCES = """
import sys
sys.modules["numba"] = None
import numpy as np
from tinyattn.graph import knn
from tinyattn.kernels import attention as loops
from tinyattn.kernels.fast import attention
from tinyattn.kernels.fast import matvec
from tinyattn.kernels.fast import matmul
from tinyattn.kernels.fast import rowwise
rng = np.random.default_rng(0)
q, k, v, g = rng.standard_normal((4, 1, 2, 66, 3))
mask, bias = rng.random((66, 66)) < 0.7, rng.standard_normal((2, 66, 66))
rest = mask, bias, True, 0.5
y, saved = attention.attention(q, k, v, *rest)
z, a = loops.heads_by_loops(q, k, v, *rest)
found = y, *attention.attention_backward(g, y, saved, q, k, v, *rest)
expected = z, *loops.heads_by_loops_backward(g, a, q, k, v, 0.5)
print(all(np.allclose(f, e, rtol=0, atol=1e-12) for f, e in zip(found, expected)))
a = rng.standard_normal((66, 17))
print(np.allclose(matmul.matmul(a.T, a), a.T @ a, rtol=0, atol=1e-12))
print(np.allclose(rowwise.softmax(a, False).sum(axis=1), 1))
print(np.allclose(matvec.product(a[:7], a.T), a[:7] @ a.T, rtol=0, atol=1e-12))
for x, k in ((a, 20), (a, 5), (rng.standard_normal((100, 2)), 20), (a[:, :2], 5)):
    found = zip(knn(x, k, impl="kernel"), knn(x, k, impl="sums"))
    print(all(np.array_equal(f, e) for f, e in found))
"""


def test_references_of_intrinsics_mean_the_same():
    """Without Numba the same kernels run as Python, on the NumPy reference of each intrinsic."""
    assert fresh_python(REFERENCES, PYTHONWARNINGS="ignore") == ["True"] * 8
