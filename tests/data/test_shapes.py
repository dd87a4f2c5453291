"""Generated shapes: every point is on its part, no direction is preferred, density is uneven."""

import numpy as np

from tinyattn import data
from tinyattn.data.shapes import KINDS, PARTS, rotation


def upright(kind, N=400, **options):
    return data.shapes(3, N, [kind], rotated=False, uneven=0, noise=0, rng=3, **options)


def test_what_comes_out():
    clouds = data.shapes(20, 50, rng=0)
    assert clouds.points.shape == (20, 50, 3)
    assert clouds.part.shape == (20, 50)
    assert [x.dtype.name for x in clouds] == ["float32", "int64", "int64"]
    assert np.isfinite(clouds.points).all()
    for part, kind in zip(clouds.part, clouds.kind, strict=True):
        assert {PARTS[p].split()[0] for p in part} == {KINDS[kind]}
    again = data.shapes(20, 50, rng=0)
    np.testing.assert_array_equal(again.points, clouds.points)
    assert not np.array_equal(data.shapes(20, 50, rng=1).points, clouds.points)


def test_all_kinds_and_parts_are_there():
    clouds = data.shapes(60, 200, rng=0)
    assert set(clouds.kind) == set(range(len(KINDS)))
    share = np.bincount(clouds.part.ravel(), minlength=len(PARTS)) / clouds.part.size
    assert share.min() > 0.01  # thin parts are not lost


def test_the_farthest_point_is_at_distance_one():
    clouds = data.shapes(10, 100, noise=0, rng=0)
    np.testing.assert_allclose(np.linalg.norm(clouds.points, axis=2).max(axis=1), 1, rtol=1e-6)


def test_a_ball_is_round():
    radius = np.linalg.norm(upright("ball").points, axis=2)
    assert np.ptp(radius) < 0.1  # its middle is known as well as its points tell


def test_parts_stand_where_they_belong():
    chair, lamp, mug = (upright(kind) for kind in ("chair", "lamp", "mug"))

    def height(clouds, part):
        return clouds.points[0, clouds.part[0] == PARTS.index(part), 2]

    assert height(chair, "chair leg").max() < height(chair, "chair seat").mean()
    assert height(chair, "chair seat").mean() < height(chair, "chair back").mean()
    assert np.ptp(height(lamp, "lamp foot")) < 1e-6
    assert height(lamp, "lamp foot").mean() < height(lamp, "lamp pole").mean()
    assert height(lamp, "lamp shade").mean() > height(lamp, "lamp pole").mean()
    assert np.ptp(height(mug, "mug floor")) < 1e-6
    assert height(mug, "mug floor").max() <= height(mug, "mug wall").min() + 1e-6
    outwards = mug.points[0, mug.part[0] == PARTS.index("mug handle"), 0]
    assert outwards.mean() > mug.points[0, mug.part[0] == PARTS.index("mug wall"), 0].mean()


def test_uneven_density():
    def slope(uneven):
        """How far the mean of a ball's points lies from its middle."""
        clouds = data.shapes(30, 300, ["ball"], uneven=uneven, noise=0, rng=0)
        return np.linalg.norm(clouds.points.mean(axis=1), axis=1).mean()

    assert slope(0) < 0.1 < slope(1) < slope(3)


def test_rotations():
    turns = np.stack([rotation(np.random.default_rng(i)) for i in range(400)])
    np.testing.assert_allclose(
        turns @ turns.swapaxes(1, 2), np.tile(np.eye(3), (400, 1, 1)), atol=1e-12
    )
    np.testing.assert_allclose(np.linalg.det(turns), 1)
    assert np.abs(turns.mean(axis=0)).max() < 0.1  # no direction is preferred
    assert np.abs(np.square(turns).mean(axis=0) - 1 / 3).max() < 0.05


def test_none_and_few():
    assert data.shapes(0).points.shape == (0, 256, 3)
    assert data.shapes(3, 2, rng=0).points.shape == (3, 2, 3)
