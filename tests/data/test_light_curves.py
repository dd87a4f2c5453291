"""The shipped stars: periods and shapes that astronomy knows, and when they were looked at."""

import numpy as np

from tinyattn import data
from tinyattn.data.light_curves import CLASSES, FILE, brightness

AB, C, CEPHEID, OVERTONE, SCUTI, MIRA, SEMI = range(len(CLASSES))


def fourier():
    """(label, numbers [10, B]) as they are stored."""
    with np.load(FILE) as stored:
        return stored["label"], stored["fourier"].astype(float)


def cycle(numbers, points=400):
    """One noiseless cycle of the main period of each star, [B, points]."""
    x = np.linspace(0, 1, points, endpoint=False)
    numbers = numbers.copy()
    numbers[4:6] = 0
    return brightness(numbers[0][:, None] * x, numbers, np.zeros((3, numbers.shape[1])))


def test_shapes_and_split():
    train, test, every = (data.light_curves(part) for part in ("train", "test", "all"))
    assert train.times.shape == (8400, 200)
    assert test.magnitudes.shape == (2100, 200)
    np.testing.assert_array_equal(np.concatenate([train.label, test.label]), every.label)
    np.testing.assert_array_equal(np.concatenate([train.period, test.period]), every.period)
    kinds = ["float32", "float32", "float32", "int64", "float32"]
    assert [x.dtype.name for x in every] == kinds
    np.testing.assert_array_equal(np.bincount(every.label), 1500)
    assert np.bincount(test.label).min() > 250


def test_seeds():
    a, again, other = (data.light_curves("test", 20, rng) for rng in (0, 0, 1))
    for x, y in zip(a, again, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(a.period, other.period)
    assert np.mean(np.abs(a.magnitudes - other.magnitudes)) > 0.05


def test_times_are_those_of_a_telescope():
    curves = data.light_curves("test")
    assert np.all(curves.times[:, 0] == 0)
    step = np.diff(curves.times, axis=1)
    assert step.min() >= 0
    assert 0.9 < np.median(step) < 1.1  # about once a night
    assert np.mean(step > 5) > 0.01  # with gaps
    fraction = curves.times.astype(float) % 1  # seldom far from full days: it must be dark
    assert np.mean((fraction < 0.25) | (fraction > 0.75)) > 0.75  # at random it would be 0.5


def test_some_of_many_nights_are_less_even():
    def unevenness(curves):
        assert np.all(np.diff(curves.times, axis=1) >= 0)
        straight = np.linspace(0, 1, 50) * curves.times[:, -1:]  # were all steps the same
        return np.median(np.abs(curves.times - straight).max(axis=1) / np.ptp(curves.times, axis=1))

    row, some = data.light_curves("test", 50), data.light_curves("test", 50, out_of=500)
    assert np.median(np.diff(row.times)) < 1.1 < 5 < np.median(np.diff(some.times))
    assert unevenness(row) < 0.14 < unevenness(some)


def test_noise_is_what_the_errors_say():
    clean, noisy = (data.light_curves("test", rng=3, noise=noise) for noise in (False, True))
    np.testing.assert_array_equal(clean.times, noisy.times)
    pull = (noisy.magnitudes - clean.magnitudes) / noisy.errors
    assert abs(pull.mean()) < 0.01
    assert abs(pull.std() - 1) < 0.01
    assert 0.001 < np.median(noisy.errors) < 0.05


def test_periods_are_those_of_the_classes():
    label, numbers = fourier()
    period = [np.median(numbers[0, label == k]) for k in range(len(CLASSES))]
    assert 0.5 < period[AB] < 0.65
    assert 0.28 < period[C] < 0.36
    assert 2 < period[CEPHEID] < 5
    assert 1 < period[OVERTONE] < 2.5
    assert 0.05 < period[SCUTI] < 0.12
    assert 250 < period[MIRA] < 420
    assert 50 < period[SEMI] < 150
    assert numbers[3, label == MIRA].min() > 0.8  # the definition of a Mira in this catalogue


def test_shapes_of_cycles():
    """Pulsating stars brighten fast and fade slowly; magnitudes fall when a star brightens."""
    label, numbers = fourier()
    m = cycle(numbers)
    np.testing.assert_allclose(np.ptp(m, axis=1), numbers[3], rtol=2e-3)  # from top to bottom
    rise = (m.argmin(axis=1) - m.argmax(axis=1)) % m.shape[1] / m.shape[1]
    assert np.median(rise[label == AB]) < 0.3
    assert np.median(rise[label == CEPHEID]) < 0.35
    assert 0.35 < np.median(rise[label == C]) < 0.5  # nearly a sine
    for k in (MIRA, SEMI):
        np.testing.assert_allclose(rise[label == k], 0.5, atol=0.01)


def test_brightness_by_hand():
    numbers = np.array([[2.0], [0], [0], [0.6], [0], [0], [0], [0], [0], [0]])
    m = brightness(np.array([[0.0, 0.5, 1, 2]]), numbers, np.zeros((3, 1)))
    np.testing.assert_allclose(m, [[0.3, 0, -0.3, 0.3]], atol=1e-4)
    numbers[[1, 4]] = [[8], [0.2]]  # and a second, slower one
    m = brightness(np.array([[0.0, 1, 4]]), numbers, np.zeros((3, 1)))
    np.testing.assert_allclose(m, [[0.4, -0.3 + 0.1 * np.cos(np.pi / 4), 0.2]], atol=1e-4)


def test_the_file_is_small():
    assert FILE.stat().st_size < 4e5
