"""Whole numbers of few bits: results that do not fit get more bits, they do not wrap."""

import numpy as np
import pytest

from tinyattn import Tensor, graph, metrics
from tinyattn.graph import segment_max, segment_mean, segment_min, segment_prod, segment_sum

SMALL = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", [*SMALL, np.int64])
@pytest.mark.parametrize("width", [(), (3,)], ids=["one number a row", "three"])
def test_segments(dtype, width):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    most = min(most, 2**62 - 1)
    least = max(least, -(2**62))
    values = np.array([most, most, least, least], dtype)
    ids = np.array([0, 0, 1, 1])
    wide = np.broadcast_to(values.reshape(-1, *(1,) * len(width)), (4, *width))
    for f, expected in [
        (segment_sum, [2 * most, 2 * least, 0]),
        (segment_max, [most, least, 0]),
        (segment_min, [most, least, 0]),
    ]:
        y = f(wide, ids, 3).numpy()
        assert y.shape == (3, *width)
        assert [int(v) for v in y.reshape(3, -1)[:, 0]] == expected
    mean = segment_mean(wide, ids, 3).numpy().reshape(3, -1)[:, 0]
    np.testing.assert_allclose(mean, [most, least, 0], rtol=1e-6)


def test_the_reports():
    assert segment_sum(np.array([100, 200], np.uint8), np.array([0, 0]), 1).numpy() == 300
    assert segment_min(np.array([0, 200], np.uint8), np.array([0, 0]), 1).numpy() == 0
    assert segment_min(np.array([-128, 5], np.int8), np.array([0, 0]), 1).numpy() == -128
    assert segment_prod(np.array([100, 100], np.uint8), np.array([0, 0]), 1).numpy() == 10000


@pytest.mark.parametrize("dtype", SMALL)
def test_arithmetic(dtype):
    most = min(int(np.iinfo(dtype).max), 2**62)
    least = int(np.iinfo(dtype).min)
    x, y = Tensor(np.array([most, least], dtype)), Tensor(np.array([most, most], dtype))
    cases = [
        (x - y, [0, least - most]),
        (-x, [-most, -least]),
        (0 - x, [-most, -least]),
        (np.diff(x), [least - most]),
        (np.abs(x), [most, abs(least)]),
        (np.sum(x) - np.sum(y), least - most),
        (np.ptp(x), most - least),
    ]
    if dtype != np.uint64:
        cases += [
            (x + y, [2 * most, least + most]),
            (x + 1, [most + 1, least + 1]),
            (np.cumsum(x), [most, most + least]),
        ]
    if np.iinfo(dtype).bits < 32:
        cases += [
            (x * y, [most * most, least * most]),
            (x**2, [most * most, least * least]),
            (np.square(x), [most * most, least * least]),
            (x @ y, most * most + least * most),
            (np.einsum("i,i", x, y), most * most + least * most),
            (np.dot(x, y), most * most + least * most),
            (np.linalg.norm(x), (most**2 + least**2) ** 0.5),
        ]
    for i, (found, expected) in enumerate(cases):
        np.testing.assert_allclose(found.numpy().astype(float), expected, rtol=1e-6, err_msg=str(i))
        assert found.dtype.kind == "f" or found.dtype == np.int64, i


def test_types_that_are_not_computed_with_stay():
    x = Tensor(np.array([[1, 2], [3, 4]], np.uint8))
    for y in (x[0], x.T, x.reshape(-1), np.concatenate([x, x]), np.max(x), np.flip(x), x.copy()):
        assert y.dtype == np.uint8
    assert (Tensor(np.array([True])) + Tensor(np.array([True]))).dtype == bool
    assert (x * np.float32(0.5)).dtype == np.float32


def test_scores_of_eight_bits():
    scores, labels = np.array([0, 1, 200, 255], np.uint8), np.array([0, 0, 1, 1])
    assert metrics.roc_auc(scores, labels) == 1
    assert metrics.roc_auc(np.array([-128, 0, 5], np.int8), np.array([0, 1, 1])) == 1


def test_messages_of_small_numbers():
    g = graph.fully_connected(4)
    x = np.full((4, 2), 100, np.uint8)
    y = graph.propagate(x, g, lambda x_j, x_i: x_i)
    np.testing.assert_array_equal(y.numpy(), np.full((4, 2), 300))
