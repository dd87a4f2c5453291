"""Generated events with charged particles in a drift chamber, viewed along its axis.

Particles start at the centre, and a magnetic field along the axis bends their paths into circles.
The chamber consists of rings of wires. A wire measures how far away a particle passed, the *drift
distance*, but not on which side. Some wires report a distance although no particle passed. These
hits are noise.
"""

import math
from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_interval, check_range

RINGS = np.linspace(0.25, 1.0, 16)  # radii of the rings of wires; the chamber has radius 1
CELL = 0.06  # approximate distance of neighbouring wires of a ring
SMEAR = 0.002  # standard deviation of a drift distance
MISSED = 0.03  # fraction of the passages that no wire records
BENT = 1.2  # largest curvature; above 2, a particle would turn back before the last ring


class Tracks(NamedTuple):
    """The hits and particles of all events of a drift chamber, event by event.

    Lengths are in units of the radius of the chamber.

    Attributes:
        wire        [N, 2] float32: position (x, y) of the wire of the hit
        drift       [N] float32: measured distance at which a particle passed the wire, or a random
                    one for noise
        truth       [N] int64: index of the particle of the hit, from 0 to M - 1 across all events,
                    -1 for noise
        event       [N] int64: index of the event of the hit, in ascending order
        curvature   [M] float32: 1 / radius of the circle of a particle, positive if it turns left
        angle       [M] float32: direction in which the particle starts, in radians from -π to π
    """

    wire: np.ndarray
    drift: np.ndarray
    truth: np.ndarray
    event: np.ndarray
    curvature: np.ndarray
    angle: np.ndarray


def tracks(n, rng=None, objects=(2, 5), noise=(5, 20), apart=0.4):
    """Generate events with particles and noise hits in a drift chamber.

    A particle with start angle φ₀ and curvature κ crosses the ring of wires with radius r at the
    angle φ₀ + arcsin(κ r / 2). If several particles pass near the same wire, only the nearest one
    gives a hit. The hits of an event come in random order.

    Args:
        n         number of events
        rng       seed or numpy.random.Generator, or None for the default generator
        objects   (smallest, largest) number of particles in an event
        noise     (smallest, largest) number of noise hits in an event. If a wire has several hits,
                  only the one with the smallest drift distance is kept
        apart     smallest difference of two start angles, in radians. Particles that bend towards
                  each other may still cross

    Returns:
        `Tracks`

    Raises:
        TypeError: n is not a whole number, objects or noise is not a pair of whole numbers, or
            apart is not a number
        ValueError: a number is negative, the smallest number of particles or noise hits exceeds the
            largest, or apart · objects[1] >= 2π, so the start angles do not fit on a circle

    Source: slide K60.
    """
    check_range("tracks", 0, whole=True, n=n)
    check_interval("tracks", "objects", objects, 0, whole=True)
    check_interval("tracks", "noise", noise, 0, whole=True)
    check_range("tracks", 0, below=math.inf, apart=apart)
    if not apart * objects[1] < 2 * np.pi:
        raise ValueError(
            f"tracks: expected apart · objects[1] < 2π, so that the start angles fit on a circle, "
            f"got apart={apart} rad and objects={objects}"
        )
    rng = generator(rng)
    hits, curvatures, angles, M = [], [], [], 0
    for event in range(n):
        K = int(rng.integers(objects[0], objects[1] + 1))
        curvature, angle = rng.uniform(-BENT, BENT, K), _angles(K, apart, rng)
        passes = _passes(curvature, angle, rng)
        passes[:, 3] += M
        rows = np.concatenate([passes, _noise(rng.integers(noise[0], noise[1] + 1), rng)])
        # shuffle, so that the order contains no information
        rows = _nearest(rows[rng.permutation(len(rows))])
        hits.append(np.column_stack([rows, np.full(len(rows), event)]))
        curvatures.append(curvature)
        angles.append(angle)
        M += K
    ring, cell, drift, truth, event = np.concatenate([np.zeros((0, 5)), *hits]).T
    wire = wires(ring.astype(int), cell).astype(np.float32)
    curvature, angle = (np.concatenate([[], *v]).astype(np.float32) for v in (curvatures, angles))
    truth, event = truth.astype(np.int64), event.astype(np.int64)
    return Tracks(wire, drift.astype(np.float32), truth, event, curvature, angle)


def _angles(K, apart, rng):
    """Return K random directions in -π..π that differ by at least `apart`.

    The angle that remains of 2π is divided among the gaps at random.
    """
    free = np.sort(rng.uniform(0, 2 * np.pi - K * apart, K)) + apart * np.arange(K)
    return rng.permutation((free + rng.uniform(0, 2 * np.pi)) % (2 * np.pi) - np.pi)


def cells(ring):
    """Return the number of cells in a ring, each with one wire.

    Args:
        ring   index of the ring, counted from the centre, or an array of indices
    """
    return np.rint(2 * np.pi * RINGS[ring] / CELL).astype(int)


def wires(ring, cell):
    """Return the positions of wires, [N, 2].

    Args:
        ring   index of the ring of each wire [N]
        cell   index of the cell in this ring [N]
    """
    phi = 2 * np.pi * np.asarray(cell) / cells(ring)
    return RINGS[ring][:, None] * np.stack([np.cos(phi), np.sin(phi)], axis=1)


def _passes(curvature, angle, rng):
    """Return ring, cell, drift distance and particle of each hit, [N, 4]."""
    K, ring = len(curvature), np.arange(len(RINGS))
    phi = angle[:, None] + np.arcsin(curvature[:, None] * RINGS / 2)  # [K, rings]
    width = 2 * np.pi / cells(ring)
    cell = np.rint(phi / width)
    # the shortest distance from the wire to the circle, which crosses the ring at an angle
    tangent = np.sqrt(1 - np.square(curvature[:, None] * RINGS / 2))
    drift = np.abs(phi - cell * width) * RINGS * tangent
    drift = np.abs(drift + SMEAR * rng.normal(size=drift.shape))
    who = np.broadcast_to(np.arange(K)[:, None], phi.shape)
    rows = [np.broadcast_to(ring, phi.shape), cell % cells(ring), drift, who]
    told = rng.uniform(size=phi.shape) >= MISSED
    return np.stack([r[told] for r in rows], axis=1).astype(float)


def _noise(n, rng):
    """Return n noise hits on random wires of the chamber, [n, 4]."""
    everywhere = cells(np.arange(len(RINGS)))
    ring = rng.choice(len(RINGS), n, p=everywhere / everywhere.sum())
    cell = np.floor(rng.uniform(size=n) * everywhere[ring])
    return np.stack([ring, cell, rng.uniform(0, CELL / 2, n), np.full(n, -1)], axis=1)


def _nearest(rows):
    """Keep only the hit with the smallest drift distance on each wire, in the given order."""
    order = np.argsort(rows[:, 2], kind="stable")
    _, first = np.unique(rows[order, :2], axis=0, return_index=True)
    return rows[np.sort(order[first])]
