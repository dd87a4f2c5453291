"""Batches, splits, and the data sets."""

import subprocess
import sys

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import data

# ---------------------------------------------------------------- batches


def test_an_epoch_holds_every_example_once_and_keeps_pairs_together():
    x = np.arange(10.0)
    seen = np.concatenate([b for b, _ in data.batches(x, 10 * x, batch_size=3, rng=0)])
    np.testing.assert_array_equal(np.sort(seen), x)
    for a, b in data.batches(x, 10 * x, batch_size=3, rng=0):
        np.testing.assert_array_equal(10 * a, b)


def test_the_order_is_new_in_each_epoch_and_the_same_for_the_same_seed():
    x = np.arange(50)
    first = data.batches(x, batch_size=50, rng=7)
    second = data.batches(x, batch_size=50, rng=np.random.default_rng(7))
    epochs = [next(iter(first))[0] for _ in range(3)]
    again = [next(iter(second))[0] for _ in range(3)]
    np.testing.assert_array_equal(epochs, again)
    assert not np.array_equal(epochs[0], epochs[1])


def test_without_rng_the_default_generator_decides():
    x = np.arange(50)
    ta.seed(3)
    first = next(iter(data.batches(x, batch_size=50)))[0]
    ta.seed(3)
    np.testing.assert_array_equal(next(iter(data.batches(x, batch_size=50)))[0], first)


@pytest.mark.parametrize(
    ("n", "size", "drop_last", "lengths"),
    [
        (7, 3, False, [3, 3, 1]),
        (7, 3, True, [3, 3]),
        (6, 3, False, [3, 3]),
        (6, 3, True, [3, 3]),
        (2, 5, False, [2]),
    ],
)
def test_lengths(n, size, drop_last, lengths):
    cut = data.batches(np.arange(n), batch_size=size, shuffle=False, drop_last=drop_last)
    assert [len(b) for (b,) in cut] == lengths
    assert len(cut) == len(lengths)


def test_without_shuffle_the_order_is_kept():
    x = np.arange(7)
    cut = data.batches(x, batch_size=3, shuffle=False)
    np.testing.assert_array_equal(np.concatenate([b for (b,) in cut]), x)


def test_a_batch_is_a_copy():
    x = np.arange(4.0)
    (b,) = next(iter(data.batches(x, batch_size=4, shuffle=False)))
    b[:] = 9
    np.testing.assert_array_equal(x, np.arange(4.0))


def test_tensors_and_lists_are_welcome():
    ((a, b),) = data.batches(ta.tensor([1, 2]), [3, 4], batch_size=2, shuffle=False)
    assert type(a) is np.ndarray
    np.testing.assert_array_equal(a + b, [4, 6])


def test_repr_says_what_will_come():
    cut = data.batches(np.zeros((7, 2), np.float32), np.zeros(7, np.int64), batch_size=3)
    assert repr(cut) == ("batches of 3, shuffled, 3 per epoch, from [7, 2] float32, [7] int64")


# ---------------------------------------------------------------- split


@pytest.mark.parametrize(("held_out", "k"), [(0.2, 2), (3, 3), (np.int64(3), 3), (0.5, 5)])
def test_split_is_a_partition_that_keeps_pairs_together(held_out, k):
    x = np.arange(10)
    (x_train, y_train), (x_test, y_test) = data.split(x, 10 * x, held_out=held_out, rng=1)
    assert len(x_test) == k
    np.testing.assert_array_equal(np.sort(np.concatenate([x_train, x_test])), x)
    np.testing.assert_array_equal(10 * x_train, y_train)
    np.testing.assert_array_equal(10 * x_test, y_test)


def test_the_same_seed_sets_the_same_examples_aside():
    x = np.arange(100)
    np.testing.assert_array_equal(data.split(x, rng=4)[1][0], data.split(x, rng=4)[1][0])


# ---------------------------------------------------------------- data sets


def test_digits():
    images, labels = data.digits()
    assert (images.shape, images.dtype) == ((1797, 8, 8), np.float32)
    assert (labels.shape, labels.dtype) == ((1797,), np.int64)
    assert (images.min(), images.max()) == (0, 1)
    # class sizes as the UCI page gives them for the test part
    np.testing.assert_array_equal(
        np.bincount(labels), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    )


def test_digits_are_those_of_scikit_learn():
    found = pytest.importorskip("sklearn.datasets").load_digits()
    images, labels = data.digits()
    np.testing.assert_array_equal(images * 16, found.images)
    np.testing.assert_array_equal(labels, found.target)


def test_digits_are_a_fresh_array_each_time():
    data.digits()[0][:] = 5
    assert data.digits()[0].max() == 1


@pytest.mark.parametrize("make", [data.moons, data.spirals, data.sine])
def test_generated_sets_are_seeded_float32(make):
    x, y = make(n=31, rng=5)
    assert len(x) == len(y) == 31
    assert x.dtype == np.float32
    assert y.dtype in (np.float32, np.intp)
    again = make(n=31, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(x, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(x, make(n=31, rng=6)[0])


def test_moons_without_noise_are_half_circles():
    x, y = data.moons(n=50, noise=0, rng=0)
    centre = np.array([[0, 0], [1, 0.5]])[y]
    np.testing.assert_allclose(np.linalg.norm(x - centre, axis=1), 1, rtol=1e-6)


def test_spirals_without_noise_are_one_arm_turned():
    x, y = data.spirals(n=60, classes=4, noise=0, rng=0)
    np.testing.assert_array_equal(np.bincount(y), [15] * 4)
    radius = np.linalg.norm(x, axis=1)
    angle = np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi) - 0.75 * radius - y / 4
    np.testing.assert_allclose(angle, np.round(angle), atol=1e-6)


def test_sine_without_noise():
    x, y = data.sine(n=40, noise=0, rng=0)
    np.testing.assert_allclose(y, np.sin(x), atol=1e-6)
    assert x.shape == y.shape == (40, 1)
    assert np.all(np.diff(x[:, 0]) >= 0)


def test_the_maker_makes_what_is_shipped(tmp_path):
    pytest.importorskip("sklearn")
    from tinyattn.data.digits import FILE
    from tools.data.make_digits import make

    make(tmp_path / "digits.npz")
    with np.load(tmp_path / "digits.npz") as made, np.load(FILE) as shipped:
        for name in ("ink", "label"):
            np.testing.assert_array_equal(made[name], shipped[name])
    assert FILE.stat().st_size < 100_000


def test_importing_data_in_a_new_process_does_not_import_scikit_learn():
    code = (
        "import sys; from tinyattn import data; data.digits(); sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
