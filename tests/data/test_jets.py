"""The shipped jets: what they promise, and physics that is easy to check."""

import numpy as np
import pytest

from tinyattn import data
from tinyattn.data.byte_planes import bytes_apart, bytes_together
from tinyattn.data.jets import FILE, HARD_FILE, momenta, steps_of


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


@pytest.mark.parametrize("part", ["train", "test", "all"])
def test_hard_jets(part):
    jets = data.hard_jets(part)
    assert len(jets.label) == {"train": 16000, "test": 4000, "all": 20000}[part]
    assert abs(jets.label.mean() - 0.5) < 0.02
    pt, eta, mass = jets.jet.T
    assert 700 < pt.min() < pt.max() < 1000
    assert np.abs(eta).max() < 2
    assert np.all((jets.particles[..., 0] > 0) == jets.mask)
    # the mass of a top jet is that of the quark at any pT; that of a QCD jet grows with pT
    softer = data.jets("all")
    for kind, low, high in ((0, 1.1, 1.4), (1, 1.0, 1.05)):
        middle = np.median(softer.jet[softer.label == kind, 2])
        assert low < np.median(mass[jets.label == kind]) / middle < high


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


def test_four_momenta():
    jets = data.jets("test")
    p = data.four_momenta(jets)
    assert p.shape == (1000, 40, 4)
    assert p.dtype == np.float64
    assert np.all(p[~jets.mask] == 0)
    E, px, py, pz = np.moveaxis(p, -1, 0)
    np.testing.assert_allclose(np.hypot(px, py), jets.particles[..., 0], rtol=1e-6)
    np.testing.assert_allclose(E**2, px**2 + py**2 + pz**2, rtol=1e-9)  # massless
    eta = np.arctanh(pz[jets.mask] / E[jets.mask]) - np.repeat(jets.jet[:, 1], jets.mask.sum(1))
    np.testing.assert_allclose(eta, jets.particles[jets.mask, 1], atol=1e-6)
    # the particles that were left out have little momentum, but lie far out and add to the mass
    total = p.sum(axis=1)
    mass = np.sqrt(total[:, 0] ** 2 - np.sum(total[:, 1:] ** 2, axis=1))
    share = mass / jets.jet[:, 2]
    assert 0.8 < np.median(share) < 0.95
    assert np.percentile(share, 99) < 1.05


def test_the_files_are_small():
    assert FILE.stat().st_size < 1.5e6
    assert HARD_FILE.stat().st_size < 4.5e6


def test_momenta_are_stored_without_loss():
    rng = np.random.default_rng(0)
    mask = np.arange(7) < rng.integers(0, 8, 50)[:, None]
    pt = np.where(mask, -np.sort(-rng.exponential(100, mask.shape)), 0).astype("<f2")
    pt[:, 1] = pt[:, 0] * mask[:, 1]  # equal ones
    steps = steps_of(pt, mask)
    assert steps.dtype == "<i2" and steps.shape == (mask.sum(),)
    assert np.all(steps[np.sum(mask[:, 0]) :] <= 0)  # the hardest first, the others are drops
    np.testing.assert_array_equal(momenta(steps, mask)[mask], pt[mask])


@pytest.mark.parametrize("dtype", ["<f2", "<i2", "<f4"])
def test_bytes_apart_come_together_again(dtype):
    x = np.arange(-300, 300).astype(dtype)
    apart = bytes_apart(x)
    assert apart.dtype == np.uint8 and apart.shape == (x.itemsize, 600)
    assert apart.flags.c_contiguous  # else a file would hold the bytes in their old order
    np.testing.assert_array_equal(bytes_together(apart, dtype), x)


def test_the_quarks_are_those_of_the_jet():
    jets, quarks = data.hard_jets("test"), data.quark_directions()
    known = np.isfinite(quarks).all(axis=(1, 2))
    assert known.sum() == 799
    assert np.all(jets.label[known] == 1)
    assert np.isnan(quarks[~known]).all()
    assert np.linalg.norm(quarks[known], axis=-1).max() < 0.8  # all in the jet
    hardest = jets.particles[known, 0, 1:]

    def apart(quarks):  # from the hardest particle to the nearest quark
        return np.median(np.linalg.norm(hardest[:, None] - quarks, axis=-1).min(axis=1))

    assert apart(quarks[known]) < 0.01  # a few times the step of the angles
    assert apart(np.roll(quarks[known], 1, axis=0)) > 0.1  # the quarks of another jet
