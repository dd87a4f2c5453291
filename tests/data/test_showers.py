"""The generated calorimeter: its cells, its energies, its truth."""

import numpy as np

from tinyattn import data
from tinyattn.data.showers import (
    CELL,
    EDGES,
    HALF,
    _cell_of,
    _nearest_cell,
    geometry,
    irregular_cells,
    select,
)


def test_cells_fill_the_detector_once():
    cells = geometry()
    width, thickness, layer = cells[:, 3:].T
    np.testing.assert_allclose(np.sum(width**2 * thickness), (2 * HALF) ** 2 * EDGES[-1])
    assert len(np.unique(cells[:, :3], axis=0)) == len(cells)
    assert set(np.unique(width)) == {1, 2, 4}
    np.testing.assert_array_equal(width.min(), CELL.min())
    assert len(np.unique(layer)) == 12


def test_a_place_lies_in_the_cell_that_is_found():
    rng = np.random.default_rng(0)
    place = np.column_stack([rng.uniform(-HALF, HALF, (2000, 2)), rng.uniform(0, EDGES[-1], 2000)])
    cells = geometry()[_cell_of(place)]
    assert np.all(np.abs(place[:, :2] - cells[:, :2]) <= cells[:, 3:4] / 2)
    assert np.all(np.abs(place[:, 2] - cells[:, 2]) <= cells[:, 4] / 2)


def test_events():
    s = data.showers(40, rng=0, planes=3)
    N, K, M = len(s.event), 8, len(s.hadron)
    assert s.position.shape == (N, 3)
    assert s.energy.shape == s.layer.shape == s.truth.shape == (N,)
    assert s.size.shape == (N, 2)
    assert s.fraction.shape == (N, K)
    assert s.first[0] == 0
    assert s.first[-1] == M
    assert len(s.first) == 41
    assert np.all(np.diff(s.event) >= 0)
    assert {f.dtype.name for f in (s.position, s.energy, s.size, s.fraction, s.particle)} == {
        "float32"
    }
    count = np.diff(s.first)
    assert count.min() >= 1
    assert count.max() <= 8
    assert np.all(s.particle[:, 0] >= 5)
    assert np.all(s.particle[:, 0] <= 40)
    tracker = s.layer < 0
    assert np.bincount(s.event[tracker]).tolist() == (3 * count).tolist()
    assert np.all(s.energy[tracker] == 0)
    assert np.all(s.energy[~tracker] > 0.03)


def test_truth_and_fractions_tell_the_same():
    s = data.showers(30, rng=1, objects=(2, 5), spread=3)
    hit, noise = s.truth >= 0, s.truth < 0
    assert noise.any()
    np.testing.assert_allclose(s.fraction[hit].sum(axis=1), 1, atol=1e-6)
    assert np.all(s.fraction[noise] == 0)
    np.testing.assert_array_equal(
        s.truth[hit], s.first[s.event[hit]] + s.fraction[hit].argmax(axis=1)
    )
    largest = s.fraction[hit].max(axis=1)
    assert np.mean(largest < 0.9) > 0.05  # showers overlap
    # a hit in a cell that several showers share belongs to the event, not to another one
    assert np.all(s.truth[hit] < s.first[s.event[hit] + 1])


def test_energy_arrives():
    s = data.showers(100, rng=2, objects=(1, 1))
    seen = np.bincount(s.event, weights=s.energy, minlength=100) / s.particle[:, 0]
    assert 0.85 < seen.mean() < 1.05
    width = [np.std(seen[s.hadron == h]) for h in (False, True)]
    assert width[0] < width[1]  # hadrons leak and fluctuate
    depth = np.bincount(s.event, weights=s.energy * s.position[:, 2]) / np.bincount(
        s.event, weights=s.energy
    )
    assert depth[s.hadron].mean() > depth[~s.hadron].mean() + 4


def test_same_seed_same_events():
    for a, b in zip(data.showers(3, rng=5), data.showers(3, rng=5), strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_events_and_no_showers():
    s = data.showers(0, rng=0)
    assert s.position.shape == (0, 3)
    assert s.fraction.shape == (0, 8)
    s = data.showers(3, rng=0, objects=(0, 0))
    assert np.all(s.truth == -1)  # noise alone
    assert len(s.event) > 0
    assert s.fraction.shape == (len(s.event), 0)
    assert len(data.showers(3, rng=0, objects=(0, 0), noise=0).event) == 0


def test_select():
    s = data.showers(6, rng=3, objects=(1, 3))
    chosen = select(s, [4, 1])
    assert chosen.event.max() == 1
    np.testing.assert_array_equal(chosen.position[chosen.event == 0], s.position[s.event == 4])
    np.testing.assert_array_equal(chosen.position[chosen.event == 1], s.position[s.event == 1])
    np.testing.assert_array_equal(
        chosen.particle[: chosen.first[1]], s.particle[s.first[4] : s.first[5]]
    )
    hit = chosen.truth >= 0
    np.testing.assert_array_equal(
        chosen.truth[hit],
        chosen.first[chosen.event[hit]] + chosen.fraction[hit].argmax(axis=1),
    )


def test_a_detector_without_a_grid():
    cells = irregular_cells(rng=0)
    s = data.showers(20, rng=2, objects=(2, 2), noise=0.02, spread=3, cells=cells)
    # every hit is one of the cells, with its own width and thickness
    row = np.abs(cells[:, :3] - s.position[:, None].astype(np.float64)).max(axis=2).argmin(axis=1)
    np.testing.assert_allclose(s.position, cells[row, :3], rtol=1e-6)
    np.testing.assert_allclose(s.size, cells[row, 3:5], rtol=1e-6)
    for layer in range(6):
        own = cells[cells[:, 5] == layer]
        assert len(np.unique(own[:, 0])) == len(own)  # no rows, no columns
        assert own[:, 3].max() > 2 * own[:, 3].min()


def test_a_denser_detector_has_more_and_smaller_cells():
    usual, dense = irregular_cells(rng=0), irregular_cells(rng=0, density=3)
    assert len(dense) == 3 * len(usual)
    assert 0.5 < np.mean(dense[:, 3]) / np.mean(usual[:, 3]) * np.sqrt(3) < 1.5


def test_a_place_is_in_the_nearest_cell_or_in_a_gap():
    cells = irregular_cells(rng=0)
    rng = np.random.default_rng(1)
    place = np.column_stack([rng.uniform(-HALF, HALF, (500, 2)), rng.uniform(0, EDGES[-1], 500)])
    found = _nearest_cell(place, cells)
    assert 0 < np.mean(found < 0) < 0.5
    for p, number in zip(place, found, strict=True):
        own = np.abs(p[2] - cells[:, 2]) <= cells[:, 4] / 2
        apart = np.where(own, np.linalg.norm(p[:2] - cells[:, :2], axis=1), np.inf)
        near = apart.argmin()
        assert number == (near if apart[near] <= 0.75 * cells[near, 3] else -1)
