"""The shipped jets: what they promise, and physics that is easy to check."""

import numpy as np
import pytest

from tinyattn import data
from tinyattn.data.jets import FILE


def test_shapes_and_split():
    train, test, every = (data.jets(part) for part in ("train", "test", "all"))
    assert train.particles.shape == (4000, 40, 3)
    assert test.particles.shape == (1000, 40, 3)
    for a, b, both in zip(train, test, every, strict=True):
        np.testing.assert_array_equal(np.concatenate([a, b]), both)
    assert [x.dtype.name for x in train] == ["float32", "int64", "bool", "int64", "float32"]
    assert every.label.mean() == 0.5
    for part in (train, test):
        assert 0.45 < part.label.mean() < 0.55
    with pytest.raises(ValueError, match='"train", "test" or "all", got \'valid\''):
        data.jets("valid")


def test_physics():
    jets = data.jets("all")
    pt, eta, mass = jets.jet.T
    assert pt.min() > 500
    assert pt.max() < 700
    assert np.abs(eta).max() < 2
    assert 70 < np.median(mass[jets.label == 0]) < 90
    assert 168 < np.median(mass[jets.label == 1]) < 182
    pts, deta, dphi = np.moveaxis(jets.particles, -1, 0)
    assert np.all(np.diff(pts, axis=1) <= 0)  # the hardest first, padding last
    assert np.all((pts > 0) == jets.mask)
    assert np.all(jets.particles[~jets.mask] == 0)
    assert set(np.unique(jets.charge)) == {-1, 0, 1}
    radius = np.hypot(deta, dphi)
    assert np.percentile(radius[jets.mask], 99) < 0.85
    # the transverse momenta add up, as vectors, to nearly that of the jet
    share = np.hypot(np.sum(pts * np.cos(dphi), 1), np.sum(pts * np.sin(dphi), 1)) / pt
    assert 0.9 < np.median(share) < 1.0


def test_features():
    jets = data.jets("test")
    f = data.jet_features(jets)
    assert f.shape == (1000, 40, 7)
    assert f.dtype == np.float32
    assert np.isfinite(f).all()
    assert np.all(f[~jets.mask] == 0)
    np.testing.assert_allclose(f[0, 0, 2], np.log(jets.particles[0, 0, 0]), rtol=1e-5)
    np.testing.assert_allclose(
        f[0, 0, 4], np.log(jets.particles[0, 0, 0] / jets.jet[0, 0]), rtol=1e-4
    )
    assert np.all(f[..., 3][jets.mask] >= f[..., 2][jets.mask] - 1e-5)  # E ≥ pT


def test_the_file_is_small():
    assert FILE.stat().st_size < 1.5e6
