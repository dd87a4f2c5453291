"""Matrices in blocks of few bits: all implementations against the unpacked matrix."""

import warnings

import numpy as np
import pytest

import tinyattn as ta
from tests.cases.ops import blocks, normal, positive
from tests.machine import same_bits_on_any_threads
from tinyattn import kernels
from tinyattn.kernels.machine import low_precision
from tinyattn.ops import backends
from tinyattn.ops.quantized import Q4_1, Q8_0, QuantizedMatrix, quantized_linear

KINDS = pytest.mark.parametrize("kind", [Q4_1, Q8_0])
IMPLS = ("sums", "numpy", "kernel")
LIMIT = {np.float32: 1e-6, np.float64: 1e-14}  # of the sum of all |w x|


def by_definition(matrix):
    """W from its bytes, number by number."""
    w = np.zeros(matrix.shape)
    for r, row in enumerate(matrix.raw):
        for b, block in enumerate(row):
            d, m = (float(x) for x in block[:4].view(np.float16))
            for i in range(32):
                if matrix.kind is Q8_0:
                    w[r, 32 * b + i] = d * int(block[2 + i].view(np.int8))
                else:
                    byte = int(block[4 + i % 16])
                    w[r, 32 * b + i] = d * (byte % 16 if i < 16 else byte // 16) + m
    return w


@KINDS
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize(
    ("T", "R", "n"),
    [(1, 1, 1), (1, 64, 18), (1, 13, 3), (2, 8, 1), (7, 33, 3), (30, 40, 2), (0, 5, 1)],
)
def test_every_implementation_is_the_product_with_the_unpacked_matrix(kind, dtype, T, R, n):
    matrix, x = blocks(kind, R, n), normal(T, 32 * n).astype(dtype)
    w = by_definition(matrix)
    np.testing.assert_allclose(matrix.unpack(), w, rtol=3e-7, atol=3e-7)
    limit = LIMIT[dtype] * (np.abs(x) @ np.abs(w).T).max(initial=1)
    exact = matrix.unpack().astype(np.float64)
    for impl in IMPLS:
        y = quantized_linear(x, matrix, impl=impl)
        assert y.dtype == dtype and y.shape == (T, R)
        np.testing.assert_allclose(y.data, x @ exact.T, rtol=0, atol=limit, err_msg=impl)


@KINDS
@pytest.mark.parametrize("impl", IMPLS)
def test_one_wrong_byte_in_a_block_is_seen(kind, impl):
    """The limit of the test above is far below what any planted error does."""
    matrix, x = blocks(kind, 8, 2), positive(1, 64).astype(np.float32)
    right = quantized_linear(x, matrix, impl=impl).data
    size = np.abs(x) @ np.abs(matrix.unpack()).T
    for byte in range(kind.nbytes):
        raw = matrix.raw.copy()
        raw[5, 1, byte] ^= 1 << 4  # a middle bit: of a scale, or of a number
        error = np.abs(quantized_linear(x, QuantizedMatrix(kind, raw), impl=impl).data - right)[0]
        assert error[5] > 10 * LIMIT[np.float32] * size.max(), f"byte {byte}"
        assert (np.delete(error, 5) == 0).all()


@KINDS
def test_the_same_bits_on_any_threads(kind):
    matrix = blocks(kind, 900, 18)
    for T in (1, 3):
        x = normal(T, 576).astype(np.float32)
        same_bits_on_any_threads(lambda x=x: [quantized_linear(x, matrix, impl="kernel").data])


@KINDS
def test_unpacking_by_the_kernel_gives_the_bits_of_numpy(kind):
    from tinyattn.kernels.fast import quantized as fast

    matrix = blocks(kind, 37, 3)
    found = fast.unpacked(matrix.raw, np.dtype(np.float32))
    assert np.array_equal(found, matrix.unpack())
    assert np.array_equal(matrix.unpack([4, 4, 0]), matrix.unpack()[[4, 4, 0]])


@KINDS
@pytest.mark.parametrize("impl", IMPLS)
def test_nan_and_infinity_reach_the_same_rows(kind, impl):
    matrix, x = blocks(kind, 4, 2), normal(1, 64).astype(np.float32)
    raw = matrix.raw.copy()
    raw[2, 1, :2] = [0, 0x7C]  # infinity as a float16
    with np.errstate(all="ignore"):
        y = quantized_linear(x, QuantizedMatrix(kind, raw), impl=impl).data[0]
        x[0, 40] = np.nan
        z = quantized_linear(x, matrix, impl=impl).data[0]
    assert np.isfinite(y).tolist() == [True, True, False, True]
    assert np.isnan(z).all()


@pytest.mark.skipif(kernels.numba is None, reason="it is about machine code")
@pytest.mark.parametrize("by_bits", [False, True])
def test_all_numbers_of_two_bytes(monkeypatch, by_bits):
    """By the processor's instruction, and by the integers that stand in for it."""
    import numba

    if by_bits:
        monkeypatch.setattr(low_precision, "has_float16", lambda: False)
    elif not low_precision.has_float16():
        pytest.skip("this processor has no instruction for it")

    @numba.njit
    def run(raw, y):
        for i in range(0, len(y), 2):
            low_precision.copy_two_float16(raw, 2 * i, y, i)

    every = np.arange(2**16, dtype=np.uint16)
    y = np.zeros(2**16, np.float32)
    run(every.view(np.uint8), y)
    expected = every.view(np.float16).astype(np.float32)
    assert np.array_equal(y, expected, equal_nan=True)
    assert np.array_equal(np.signbit(y), np.signbit(expected))


def test_gradients_reach_x_and_nothing_else():
    matrix, x = blocks(Q4_1, 5, 2), ta.tensor(normal(3, 64), requires_grad=True)
    g = normal(3, 5)
    quantized_linear(x, matrix).backward(g)
    np.testing.assert_allclose(x.grad, g @ matrix.unpack(), rtol=1e-12)


def test_without_numba_arrays_compute(monkeypatch):
    monkeypatch.setattr(backends, "_numba", False)
    matrix, x = blocks(Q4_1, 40, 18), normal(2, 576).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = quantized_linear(x, matrix)
    assert np.array_equal(found.data, quantized_linear(x, matrix, impl="numpy").data)
