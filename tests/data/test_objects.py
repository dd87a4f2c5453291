"""Generated pictures of overlapping shapes and tracks in a drift chamber: what they promise."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyattn import data
from tinyattn.data.overlaps import DARK, HUES, SIDE, SIZES, VISIBLE, _shape
from tinyattn.data.tracks import BENT, CELL, RINGS, cells, wires

seeds = st.integers(0, 10**6)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 6), seeds)
def test_pictures(n, seed):
    p = data.overlaps(n, seed)
    assert p.images.shape == (n, SIDE, SIDE, 3)
    assert p.truth.shape == (n, SIDE, SIDE)
    assert [a.dtype.name for a in p] == ["float32", "int64", "int64", "float32", "float32"]
    M = len(p.kind)
    assert p.size.shape == (M,)
    assert p.centre.shape == (M, 2)
    assert 2 * n <= M <= 5 * n
    np.testing.assert_array_equal(np.unique(p.truth[p.truth >= 0]), np.arange(M))
    if n:
        assert 0 <= p.images.min()
        assert p.images.max() <= 1
    assert np.all((SIZES[0] <= p.size) & (p.size <= SIZES[1]))
    for k in range(M):  # an object shows part of its shape, and is in one picture
        shape = _shape(p.kind[k], p.size[k], *p.centre[k])
        pictures, *_ = np.nonzero(p.truth == k)
        assert len(set(pictures.tolist())) == 1
        shown = p.truth[pictures[0]] == k
        assert np.all(shape[shown])
        assert shown.sum() >= VISIBLE * shape.sum()


def test_touching_shapes_differ_in_colour():
    p = data.overlaps(40, 0, noise=0)
    for image, truth in zip(p.images, p.truth, strict=True):
        below = np.all(image[:-1] == image[1:], axis=-1)
        beside = np.all(image[:, :-1] == image[:, 1:], axis=-1)
        np.testing.assert_array_equal(below, truth[:-1] == truth[1:])
        np.testing.assert_array_equal(beside, truth[:, :-1] == truth[:, 1:])


def test_outlined_shapes_share_two_colours_and_keep_a_dark_line():
    p = data.overlaps(40, 0, noise=0, outlined=True)
    touching_alike = 0
    for image, truth in zip(p.images, p.truth, strict=True):
        seen = np.unique(image[truth >= 0], axis=0)
        vivid = np.ptp(seen, axis=1) > 0
        assert vivid.sum() <= 2  # the two colours of a picture; the third is the outline
        np.testing.assert_allclose(seen[~vivid], DARK)
        for ours, theirs in (
            ((slice(1, None),), (slice(None, -1),)),
            ((slice(None), slice(1, None)), (slice(None), slice(None, -1))),
        ):
            border = truth[ours] != truth[theirs]  # one of the two pixels is dark
            dark = np.all(np.isclose(image, DARK), axis=-1)
            assert np.all((dark[ours] | dark[theirs])[border])
        for k in np.unique(truth[truth >= 0]):  # an object's own colour, where it has one
            inner = np.unique(image[(truth == k) & ~np.all(np.isclose(image, DARK), -1)], axis=0)
            assert len(inner) <= 1
        touching_alike += _share_a_colour(image, truth)
    assert touching_alike > 20  # else colour alone would still separate what touches


def _share_a_colour(image, truth):
    """How many pairs of touching shapes have the same colour."""
    pairs = set()
    for a, b in ((truth[1:], truth[:-1]), (truth[:, 1:], truth[:, :-1])):
        pairs |= {tuple(sorted(p)) for p in zip(a[a != b], b[a != b], strict=True)}
    colour = {
        k: tuple(image[truth == k][np.ptp(image[truth == k], axis=1).argmax()])
        for k in np.unique(truth)
    }
    return sum(colour[a] == colour[b] for a, b in pairs if min(a, b) >= 0)


def test_pictures_without_noise_have_the_eight_colours_and_paper():
    p = data.overlaps(60, 1, noise=0)
    assert len(np.unique(p.images.reshape(-1, 3), axis=0)) == HUES + 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 6), seeds)
def test_tracks(n, seed):
    t = data.tracks(n, seed)
    N, M = len(t.drift), len(t.angle)
    assert t.wire.shape == (N, 2)
    kinds = ["float32", "float32", "int64", "int64", "float32", "float32"]
    assert [a.dtype.name for a in t] == kinds
    assert 2 * n <= M <= 5 * n
    assert np.all(np.diff(t.event) >= 0)
    assert set(np.unique(t.truth)) <= set(range(-1, M))
    assert np.all(np.abs(t.curvature) <= BENT)
    assert np.all((t.drift >= 0) & (t.drift < CELL))
    names = [tuple(row) for row in np.column_stack([t.event, t.wire])]
    assert len(set(names)) == N  # one hit a wire
    home = {k: set(t.event[t.truth == k].tolist()) for k in range(M)}
    assert all(len(events) <= 1 for events in home.values())


def test_hits_lie_on_their_circle():
    t = data.tracks(30, 3)
    own = t.truth >= 0
    curvature, angle = t.curvature[t.truth[own]], t.angle[t.truth[own]]
    # the circle through the origin that starts at `angle`: κ/2 r² = the way across the start
    across = t.wire[own, 1] * np.cos(angle) - t.wire[own, 0] * np.sin(angle)
    r2 = np.sum(np.square(t.wire[own]), axis=1)
    # |x - centre| - R, written without dividing by κ: wires are `drift` away from the circle
    f = curvature * r2 - 2 * across
    away = np.abs(f) / (np.sqrt(np.maximum(1 + curvature * f, 0)) + 1)
    np.testing.assert_allclose(away, t.drift[own], atol=0.012)
    assert np.mean(np.abs(away - t.drift[own])) < 0.003


def test_start_angles_are_apart():
    for apart in (0.0, 0.4, 1.2):
        t = data.tracks(40, 4, objects=(5, 5), apart=apart)
        angle = np.sort(t.angle.reshape(40, 5), axis=1)
        gaps = np.diff(np.concatenate([angle, angle[:, :1] + 2 * np.pi], axis=1), axis=1)
        assert gaps.min() >= apart - 1e-5
    assert len(data.tracks(3, 0, objects=(0, 0), noise=(4, 4)).angle) == 0


def test_wires_of_a_ring():
    for ring in (0, len(RINGS) - 1):
        place = wires(np.full(cells(ring), ring), np.arange(cells(ring)))
        np.testing.assert_allclose(np.linalg.norm(place, axis=1), RINGS[ring])
        step = np.linalg.norm(np.diff(place, axis=0), axis=1)
        np.testing.assert_allclose(step, CELL, rtol=0.05)


def test_the_same_seed_gives_the_same_events():
    for make in (data.overlaps, data.tracks):
        for a, b in zip(make(3, 7), make(3, np.random.default_rng(7)), strict=True):
            np.testing.assert_array_equal(a, b)
