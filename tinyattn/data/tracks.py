"""Charged particles in a drift chamber, seen along its axis (generated).

A magnetic field along the axis bends the particles, which start at the centre, to circles. The
chamber is made of rings of wires. A wire that a particle passes tells how far away it passed, but
not on which side: its *drift distance*. Some wires tell something although nobody passed: noise.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator

RINGS = np.linspace(0.25, 1.0, 16)  # radii of the rings of wires; the chamber ends at 1
CELL = 0.06  # distance of two wires of a ring, about
SMEAR = 0.002  # standard deviation of a drift distance
MISSED = 0.03  # share of the passes that no wire tells
BENT = 1.2  # the strongest curvature; at 2 a particle would turn round before the last ring


class Tracks(NamedTuple):
    """Events of a drift chamber; hits of all events in one list, objects numbered through.

    wire       [N, 2] float32: where the wire of the hit is
    drift      [N] float32: the distance at which something passed it
    truth      [N] int64: the particle of the hit, -1 for noise
    event      [N] int64: the event of the hit, in rising order
    curvature  [M] float32: 1 / radius of the circle of a particle; positive turns left
    angle      [M] float32: the direction in which it starts, in -π..π
    """

    wire: np.ndarray
    drift: np.ndarray
    truth: np.ndarray
    event: np.ndarray
    curvature: np.ndarray
    angle: np.ndarray


def tracks(n, rng=None, objects=(2, 5), noise=(5, 20), apart=0.4):
    """Generate events with particles and noise hits in a drift chamber.

    A particle with start angle φ₀ and curvature κ crosses the ring of radius r at the angle
    φ₀ + arcsin(κ r / 2). Of two particles in one cell, only the nearer is seen.

    Args:
        n         number of events
        rng       seed or numpy.random.Generator
        objects   (smallest, largest) number of particles
        noise     (smallest, largest) number of noise hits
        apart     smallest difference of two start angles, in radians; particles that are bent
                  towards each other may cross nevertheless

    Returns:
        `Tracks`

    Source: slide K60.
    """
    if n < 0 or not 0 <= objects[0] <= objects[1] or not 0 <= noise[0] <= noise[1]:
        raise ValueError(
            f"tracks: expected n of at least 0, and objects and noise as (fewest, most), got {n}, "
            f"{objects} and {noise}"
        )
    if not 0 <= apart * objects[1] < 2 * np.pi:
        raise ValueError(
            f"tracks: expected apart from 0, and room for {objects[1]} particles {apart} apart on "
            f"a circle of 2π; choose a smaller angle or fewer particles"
        )
    rng = generator(rng)
    hits, curvatures, angles, M = [], [], [], 0
    for event in range(n):
        K = int(rng.integers(objects[0], objects[1] + 1))
        curvature, angle = rng.uniform(-BENT, BENT, K), _angles(K, apart, rng)
        passes = _passes(curvature, angle, rng)
        passes[:, 3] += M
        rows = np.concatenate([passes, _noise(rng.integers(noise[0], noise[1] + 1), rng)])
        rows = _nearest(rows[rng.permutation(len(rows))])  # the order tells nothing
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
    """K directions in -π..π, any two of them at least `apart`: what is left is shared at random."""
    free = np.sort(rng.uniform(0, 2 * np.pi - K * apart, K)) + apart * np.arange(K)
    return rng.permutation((free + rng.uniform(0, 2 * np.pi)) % (2 * np.pi) - np.pi)


def cells(ring):
    """How many wires a ring has."""
    return np.rint(2 * np.pi * RINGS[ring] / CELL).astype(int)


def wires(ring, cell):
    """Where the wires are, [N, 2]."""
    phi = 2 * np.pi * np.asarray(cell) / cells(ring)
    return RINGS[ring][:, None] * np.stack([np.cos(phi), np.sin(phi)], axis=1)


def _passes(curvature, angle, rng):
    """Ring, cell, drift distance and particle of each pass that a wire tells, [N, 4]."""
    K, ring = len(curvature), np.arange(len(RINGS))
    phi = angle[:, None] + np.arcsin(curvature[:, None] * RINGS / 2)  # [K, rings]
    width = 2 * np.pi / cells(ring)
    cell = np.rint(phi / width)
    # the shortest way from the wire to the circle, which passes the ring askew
    tangent = np.sqrt(1 - np.square(curvature[:, None] * RINGS / 2))
    drift = np.abs(phi - cell * width) * RINGS * tangent
    drift = np.abs(drift + SMEAR * rng.normal(size=drift.shape))
    who = np.broadcast_to(np.arange(K)[:, None], phi.shape)
    rows = [np.broadcast_to(ring, phi.shape), cell % cells(ring), drift, who]
    told = rng.uniform(size=phi.shape) >= MISSED
    return np.stack([r[told] for r in rows], axis=1).astype(float)


def _noise(n, rng):
    """n hits of nobody, [n, 4]; each wire of the chamber is as likely as any other."""
    everywhere = cells(np.arange(len(RINGS)))
    ring = rng.choice(len(RINGS), n, p=everywhere / everywhere.sum())
    cell = np.floor(rng.uniform(size=n) * everywhere[ring])
    return np.stack([ring, cell, rng.uniform(0, CELL / 2, n), np.full(n, -1)], axis=1)


def _nearest(rows):
    """Of several hits of one wire only the one with the smallest drift distance; same order."""
    order = np.argsort(rows[:, 2], kind="stable")
    _, first = np.unique(rows[order, :2], axis=0, return_index=True)
    return rows[np.sort(order[first])]
