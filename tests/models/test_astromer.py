"""Astromer: times in place of positions, hidden magnitudes, padding, and that it learns."""

import numpy as np

import tinyattn.functional as F
from tinyattn import data, models, optim
from tinyattn.models.astromer import time_encoding
from tinyattn.nn.positional_encoding import sinusoids


def curves(B, T, seed=0):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(size=(B, T)), axis=1)
    return times, rng.normal(size=(B, T))


def body(**options):
    return models.Astromer(8, 2, 2, 16, rng=0, **options)


def test_encoding_of_time():
    p = time_encoding(np.array([0.0, 0.5, 1, 2]), 4, shortest=2, longest=8)
    expected = [
        [0, 1, 0, 1],
        [1, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)],
        [0, -1, np.sin(np.pi / 4), np.cos(np.pi / 4)],
        [0, 1, 1, 0],
    ]
    np.testing.assert_allclose(p, expected, atol=1e-15)


def test_encoding_at_whole_numbers_is_that_of_sentences():
    d = 16
    slowest = 10000 ** ((d - 2) / d)
    p = time_encoding(np.arange(50.0), d, 2 * np.pi, 2 * np.pi * slowest)
    np.testing.assert_allclose(p, sinusoids(50, d), atol=1e-12)


def test_only_times_and_differences_count():
    """Another distance of the star, date of the first night, or order in the file: the same."""
    times, magnitudes = curves(3, 9)
    model = models.MaskedMagnitudes(body(), rng=1).astype(float)
    y = model(times, magnitudes).data
    np.testing.assert_allclose(model(times + 1000, magnitudes).data, y, atol=1e-9)
    np.testing.assert_allclose(model(times, magnitudes + 15).data, y + 15, atol=1e-9)
    p = np.random.default_rng(0).permutation(9)
    np.testing.assert_allclose(model(times[:, p], magnitudes[:, p]).data, y[:, p], atol=1e-12)
    shuffled = model(times[:, p], magnitudes).data  # the control: other times
    assert np.abs(shuffled - y).max() > 1e-3


def test_hidden_magnitudes_are_not_used():
    times, magnitudes = curves(3, 9)
    visible = np.random.default_rng(1).random((3, 9)) < 0.6
    model = models.MaskedMagnitudes(body(), rng=1).eval()
    y = model(times, magnitudes, visible=visible).data
    for other in (7.0, np.nan):
        changed = np.where(visible, magnitudes, other)
        np.testing.assert_array_equal(model(times, changed, visible=visible).data, y)
    assert np.abs(model(times, magnitudes).data - y).max() > 1e-3
    maps = model.astromer.attention_maps(times, magnitudes, visible=visible)
    assert [a.shape for a in maps] == [(3, 2, 9, 9)] * 2
    for a in maps:
        assert np.all(a.transpose(0, 3, 1, 2)[~visible] == 0)


def test_hidden_ones_differ_by_their_times():
    times, magnitudes = curves(2, 9)
    visible = np.arange(9) < 6
    model = models.MaskedMagnitudes(body(), rng=1)
    y = model(times, magnitudes, visible=np.broadcast_to(visible, (2, 9))).data
    assert np.ptp(y[0, 6:]) > 1e-3


def test_padding_is_not_seen():
    times, magnitudes = curves(3, 9)
    keep = np.arange(9) < np.array([[9], [6], [2]])
    for make in (models.MaskedMagnitudes, lambda b, rng: models.StarClassifier(b, 4, 8, rng)):
        model = make(body(), rng=1).astype(float)
        y = model(times, magnitudes, keep).data
        again = model(np.where(keep, times, 99.0), np.where(keep, magnitudes, np.nan), keep).data
        lost = model(np.where(keep, times, np.nan), np.where(keep, magnitudes, np.nan), keep)
        np.sum(lost[0, :4]).backward()
        assert all(np.isfinite(p.grad).all() for p in model.parameters())
        for b, n in enumerate([9, 6, 2]):
            alone = model(times[b : b + 1, :n], magnitudes[b : b + 1, :n]).data[0]
            found = (y[b, :n], again[b, :n]) if y.shape[1] == 9 else (y[b], again[b])
            for x in found:
                np.testing.assert_allclose(x, alone, atol=1e-12)


def test_a_curve_without_a_visible_magnitude():
    times, magnitudes = curves(2, 5)
    y = models.MaskedMagnitudes(body(), rng=1)(times, magnitudes, visible=np.zeros((2, 5), bool))
    assert np.isfinite(y.data).all()


def test_what_is_hidden():
    magnitudes = np.arange(200_000.0).reshape(200, 1000)
    task = models.hide_magnitudes(magnitudes, rng=0)
    same = task.magnitudes == magnitudes
    assert np.all(same[~task.asked])
    assert np.all(task.visible[~task.asked])
    assert abs(task.asked.mean() - 0.5) < 0.01
    asked = task.asked.sum()
    assert abs(np.sum(task.asked & ~task.visible) / asked - 0.6) < 0.01
    assert abs(np.sum(~same) / asked - 0.2) < 0.01  # of the same curve
    assert np.all(task.magnitudes // 1000 == magnitudes // 1000)
    assert np.all(task.visible[~same])


def test_what_is_hidden_with_padding():
    magnitudes = np.where(np.arange(20) < 7, np.arange(20.0), np.nan)[None].repeat(300, 0)
    task = models.hide_magnitudes(magnitudes, np.isfinite(magnitudes), rng=0)
    assert not task.asked[:, 7:].any()
    assert not task.visible[:, 7:].any()
    assert np.isfinite(task.magnitudes[:, :7]).all()


def test_learns_magnitudes_then_classes():
    few = data.light_curves("test", length=40)
    rows = np.flatnonzero(np.isin(few.label, (0, 5)))[:48]  # RR Lyrae and Mira
    times, magnitudes, label = few.times[rows], few.magnitudes[rows], few.label[rows] // 5
    astromer = models.Astromer(16, 2, 1, 32, rng=0)
    model = models.MaskedMagnitudes(astromer, rng=1)
    task = models.hide_magnitudes(magnitudes, rng=0)

    def train(model, loss_of, steps):
        optimizer, losses = optim.Adam(model.parameters(), lr=0.005), []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    losses = train(
        model,
        lambda: F.mse_loss(
            model(times, task.magnitudes, visible=task.visible)[task.asked], magnitudes[task.asked]
        ),
        60,
    )
    assert losses[-1] < 0.5 * losses[0]
    classifier = models.StarClassifier(astromer, 2, 16, rng=2)
    losses = train(classifier, lambda: F.cross_entropy(classifier(times, magnitudes), label), 60)
    assert losses[-1] < 0.3 * losses[0]
