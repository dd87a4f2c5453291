"""Showers of particles in a calorimeter with cells of different sizes (generated).

A particle that flies into dense matter breaks up into more and more, weaker and weaker ones, until
all its energy is left in the matter: a shower. The calorimeter is a stack of layers, cut into
cells that tell how much energy was left in them. This is no simulation of physics, but a toy with
its main features: light showers (electrons, photons) are short and narrow, those of hadrons start
late, are wide and lumpy; cells are fine in the middle and at the front, coarse elsewhere; showers
overlap, so that a cell may hold the energy of several; electronics adds noise.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator

HALF = 16.0  # cm from the axis of the detector to its edge
FRONT, BACK = 8, 4  # layers
THICKNESS = np.array([2.0] * FRONT + [4.0] * BACK)  # cm
CELL = np.array([1.0] * FRONT + [2.0] * BACK)  # cm, the side of a cell in the middle; outside 2 x
INNER = 8.0  # cm: |x| and |y| below this are the middle
PLANES = np.array([-9.0, -6.0, -3.0])  # cm: tracking planes before the calorimeter
SPOTS = 20  # portions of energy of a shower, for each GeV
LAYERS = np.array([3.0, 3.0, 4.0, 5.0, 7.0, 10.0])  # cm: thickness, in the irregular detector
CELLS_IN_LAYER = [110, 110, 110, 80, 80, 60]
EDGES = np.concatenate([[0.0], np.cumsum(THICKNESS)])  # cm: where layers begin and end


class Showers(NamedTuple):
    """Events of a calorimeter; hits of all events in one list, showers numbered through.

    position   [N, 3] float32, cm: the middle of the cell; x and y across, z into the depth
    energy     [N] float32, GeV: what the cell tells; 0 for a hit of a tracking plane
    size       [N, 2] float32, cm: width and thickness of the cell; 0 for a tracking plane
    layer      [N] int64: 0 to 11 in the calorimeter, -3 to -1 for tracking planes
    truth      [N] int64: the shower that left most energy in the cell, -1 for noise
    fraction   [N, K] float32: the share of each shower of the event; sums to 1, for noise to 0.
               K is the most showers that an event could have, so objects=(0, 0) gives [N, 0]
    event      [N] int64: the event of the hit, in rising order
    first      [E + 1] int64: showers first[e] to first[e + 1] - 1 are those of event e
    particle   [M, 3] float32: energy in GeV, and where the shower enters the calorimeter (x, y)
    hadron     [M] bool: a hadron, else an electron
    """

    position: np.ndarray
    energy: np.ndarray
    size: np.ndarray
    layer: np.ndarray
    truth: np.ndarray
    fraction: np.ndarray
    event: np.ndarray
    first: np.ndarray
    particle: np.ndarray
    hadron: np.ndarray


def showers(n, rng=None, objects=(1, 8), noise=0.01, spread=8.0, planes=0, cells=None):
    """Generate events with showers of 5 to 40 GeV in a calorimeter.

    Half of the particles are hadrons. Hits of an event come in random order.

    Args:
        n         number of events
        rng       seed or numpy.random.Generator
        objects   (smallest, largest) number of showers
        noise     standard deviation of each cell in GeV, up to 1; cells above three of them are
                  hits
        spread    cm: the showers enter at |x|, |y| < spread; 3 to 5 makes them overlap
        planes    number of thin tracking planes before the calorimeter, 0 to 3; they see each
                  particle at a precise position and measure no energy
        cells     another detector [cells, 6], such as `irregular_cells()`; None: `geometry()`

    Returns:
        `Showers`

    Source: slides K46, K59.
    """
    low, high = objects
    if n < 0 or not 0 <= low <= high:
        raise ValueError(
            f"showers: expected n of at least 0 and objects=(fewest, most), got {n} and {objects}"
        )
    if not 0 <= noise <= 1:  # above three times the noise hardly any cell would be left
        raise ValueError(
            f"showers: noise is a standard deviation in GeV, from 0 to 1 (usual is 0.01), "
            f"got {noise}"
        )
    if not 0 < spread <= HALF or planes not in (0, 1, 2, 3):
        raise ValueError(
            f"showers: expected spread in 0..{HALF:g} cm and 0 to 3 planes, got {spread}, {planes}"
        )
    if cells is not None and (np.ndim(cells) != 2 or np.shape(cells)[1] != 6):
        raise ValueError(
            f"showers: expected cells of shape [cells, 6], as irregular_cells() makes them, got "
            f"{np.shape(cells)}"
        )
    rng = generator(rng)
    hits, particles, first = [_no_hits(high)], [np.zeros((0, 6))], [0]
    for _ in range(n):
        K = int(rng.integers(low, high + 1))
        particle = _particles(K, spread, rng)
        rows = _cells(_deposits(particle, rng), cells, high, noise, rng)
        rows = np.concatenate([rows, _tracks(particle, high, planes, rng)])
        rows = rows[rng.permutation(len(rows))]  # the order tells nothing
        hits.append(rows)
        particles.append(particle)
        first.append(first[-1] + K)
    event = np.repeat(np.arange(n), [len(rows) for rows in hits[1:]])
    return _collected(np.concatenate(hits), event, first, np.concatenate(particles))


def select(showers, events):
    """The chosen events alone, numbered from 0 in the order in which they are named."""
    events = np.atleast_1d(np.asarray(events))
    begin = np.searchsorted(showers.event, np.arange(len(showers.first)))  # first hit of an event
    rows = [np.arange(begin[e], begin[e + 1]) for e in events]
    owned = [np.arange(showers.first[e], showers.first[e + 1]) for e in events]
    first = np.concatenate([[0], np.cumsum([len(m) for m in owned])]).astype(np.int64)
    event = np.repeat(np.arange(len(events)), [len(r) for r in rows])
    rows, owned = (np.concatenate([np.zeros(0, np.int64), *v]) for v in (rows, owned))
    shift = (first[:-1] - showers.first[events])[event]
    truth = showers.truth[rows]
    return showers._replace(
        **{f: getattr(showers, f)[rows] for f in ("position", "energy", "size", "layer")},
        truth=np.where(truth < 0, -1, truth + shift),
        fraction=showers.fraction[rows],
        event=event,
        first=first,
        particle=showers.particle[owned],
        hadron=showers.hadron[owned],
    )


# the columns of a table of hits: x, y, z, energy, width, thickness, layer, and a fraction a shower
LAYER, FRACTIONS = 6, 7


def _no_hits(K):
    return np.zeros((0, FRACTIONS + K))


def _particles(K, spread, rng):
    """energy, x, y at the front, slopes dx/dz and dy/dz, hadron or not. [K, 6]"""
    energy = 5 * 8 ** rng.uniform(size=K)  # as many between 5 and 10 as between 20 and 40
    place = rng.uniform(-spread, spread, (K, 2))
    slope = 0.05 * rng.normal(size=(K, 2))
    return np.column_stack([energy, place, slope, rng.integers(0, 2, K)])


def _deposits(particle, rng):
    """Portions of energy in space: shower, x, y, z, energy. [spots, 5]

    Along the axis they follow a gamma distribution, which rises and dies out; across it their
    distance is exponential. A hadron starts late and has a narrow core of random strength.
    """
    spots = [np.zeros((0, 5))]
    for k, (energy, x, y, dx, dy, hadron) in enumerate(particle):
        n = max(1, int(SPOTS * energy))
        start = min(rng.exponential(5.0), 16.0) if hadron else 0.0
        z = start + rng.gamma(3.0, 4.0 if hadron else 1.5 + 0.1 * np.log(energy), n)
        wide = rng.uniform(size=n) < (rng.uniform(0.5, 0.9) if hadron else 0.15)
        r = rng.exponential(np.where(wide, 3.0 if hadron else 2.0, 0.8))
        angle = rng.uniform(-np.pi, np.pi, n)
        if hadron:  # a few sub-showers: portions of the same lump go the same way
            lumps = rng.normal(scale=1.2, size=(4, 2))[rng.integers(0, 4, n)]
        else:
            lumps = np.zeros((n, 2))
        portion = energy / n * rng.gamma(2.0, 0.5, n)
        px = x + dx * z + r * np.cos(angle) + lumps[:, 0] * wide
        py = y + dy * z + r * np.sin(angle) + lumps[:, 1] * wide
        spots.append(np.column_stack([np.full(n, k), px, py, z, portion]))
    spots = np.concatenate(spots)
    inside = (np.abs(spots[:, 1:3]) < HALF).all(axis=1) & (spots[:, 3] < EDGES[-1])
    return spots[inside]


def _cells(spots, cells, columns, noise, rng):
    """What the cells tell: the sum of their portions plus noise, where it is above threshold."""
    if cells is None:
        cells, cell = geometry(), _cell_of(spots[:, 1:4])
    else:
        cell = _nearest_cell(spots[:, 1:4], cells)
        spots, cell = spots[cell >= 0], cell[cell >= 0]
    deposited = np.zeros((len(cells), columns))
    np.add.at(deposited, (cell, spots[:, 0].astype(int)), spots[:, 4])
    total = deposited.sum(axis=1)
    energy = total + noise * rng.normal(size=len(cells))
    hit = (energy > 3 * noise) & (energy > 0)
    fraction = deposited / np.where(total > 0, total, 1)[:, None]
    # less than the noise of a cell is not a deposit that anybody could see
    fraction = np.where((total > noise)[:, None], fraction, 0)
    rows = np.column_stack([cells[:, :3], energy, cells[:, 3:], fraction])
    return rows[hit]


def _tracks(particle, columns, planes, rng):
    """A hit in each plane for each particle, where it flew through, to a tenth of a millimetre."""
    rows = [_no_hits(columns)]
    for k, (_, x, y, dx, dy, _) in enumerate(particle):
        for plane in range(3 - planes, 3):
            row = np.zeros(FRACTIONS + columns)
            z = PLANES[plane]
            row[:3] = x + dx * z, y + dy * z, z
            row[:2] += 0.01 * rng.normal(size=2)
            row[LAYER], row[FRACTIONS + k] = plane - 3, 1
            rows.append(row[None])
    return np.concatenate(rows)


# ---------------------------------------------------------------- the detector


@cache
def geometry():
    """All cells of the calorimeter: x, y, z of the middle, width, thickness, layer. [cells, 6]"""
    cells = np.concatenate([_layer(i) for i in range(FRONT + BACK)])
    cells.flags.writeable = False
    return cells


def irregular_cells(rng=None, density=1.0):
    """A detector without a grid, as `geometry`: x, y, z of the middle, width, thickness, layer.

    Six layers of different thickness. Their cells lie around points drawn at random, in each layer
    others, close together in the middle and far apart outside. A place belongs to the cell with the
    nearest middle; farther than 3/4 of its width from it is a gap, where energy is lost. The width
    is the mean distance to the next three middles. With density 2 there are twice as many cells,
    each of half the area. [cells, 6]
    """
    fewest = round(density * min(CELLS_IN_LAYER)) if np.isfinite(density) else 0
    if fewest < 4:  # a cell needs three others for its width
        raise ValueError(f"irregular_cells: expected density of at least 0.1, got {density}")
    rng = generator(rng)
    layers, front = [], 0.0
    for i, (usual, thickness) in enumerate(zip(CELLS_IN_LAYER, LAYERS, strict=True)):
        n = round(density * usual)
        r, angle = HALF * rng.uniform(size=n) ** 0.65, rng.uniform(-np.pi, np.pi, n)
        xy = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)
        apart = np.sort(np.linalg.norm(xy[:, None] - xy, axis=-1), axis=1)
        width, z = apart[:, 1:4].mean(axis=1), front + thickness / 2
        same = np.ones(n)
        layers.append(np.column_stack([xy, z * same, width, thickness * same, i * same]))
        front += thickness
    return np.concatenate(layers)


def _nearest_cell(xyz, cells):
    """The number of the cell of `irregular_cells` at each place, -1 in a gap. [spots]"""
    found = np.full(len(xyz), -1)
    for layer in np.unique(cells[:, 5]):
        own = np.flatnonzero(cells[:, 5] == layer)
        z, thickness = cells[own[0], 2], cells[own[0], 4]
        here = np.flatnonzero(np.abs(xyz[:, 2] - z) <= thickness / 2)
        p, middle = xyz[here, :2], cells[own, :2]
        # |p - m|² = |p|² + |m|² - 2 p·m, and |p|² is the same for all middles m
        near = own[(np.sum(middle * middle, axis=1) - 2 * p @ middle.T).argmin(axis=1)]
        apart = np.linalg.norm(p - cells[near, :2], axis=1)
        found[here] = np.where(apart <= 0.75 * cells[near, 3], near, -1)
    return found


def _layer(i):
    """The cells of layer i: a fine square in the middle, cells of twice the side around it."""
    fine, coarse = _centres(INNER, CELL[i]), _centres(HALF, 2 * CELL[i])
    coarse = coarse[np.abs(coarse).max(axis=1) > INNER]
    width = np.repeat([CELL[i], 2 * CELL[i]], [len(fine), len(coarse)])
    z = (EDGES[i] + EDGES[i + 1]) / 2
    xy = np.concatenate([fine, coarse])
    return np.column_stack(
        [xy, np.full(len(xy), z), width, np.full(len(xy), THICKNESS[i]), np.full(len(xy), i)]
    )


def _centres(half, side):
    """The middles of the cells of a square from -half to half, rows of rising x then y. [n², 2]"""
    c = np.arange(-half + side / 2, half, side)
    return np.stack(np.meshgrid(c, c, indexing="ij"), axis=-1).reshape(-1, 2)


@cache
def _coarse_cell_indices():
    """For each layer: its first cell, and the numbers of its coarse cells in a square table."""
    tables, begin = [], 0
    for i in range(FRONT + BACK):
        outside = np.abs(_centres(HALF, 2 * CELL[i])).max(axis=1) > INNER
        fine = len(_centres(INNER, CELL[i]))
        tables.append((begin, begin + fine + np.cumsum(outside) - 1))
        begin += fine + outside.sum()
    return tables


def _cell_of(xyz):
    """The number of the cell of `geometry` that holds each place inside the detector. [spots]"""
    cell = np.zeros(len(xyz), np.int64)
    layer = np.searchsorted(EDGES, xyz[:, 2], side="right") - 1
    middle = (np.abs(xyz[:, :2]) < INNER).all(axis=1)
    for i, (begin, coarse) in enumerate(_coarse_cell_indices()):
        here = layer == i
        cell[here & middle] = begin + _in_square(xyz[here & middle], INNER, CELL[i])
        cell[here & ~middle] = coarse[_in_square(xyz[here & ~middle], HALF, 2 * CELL[i])]
    return cell


def _in_square(xyz, half, side):
    """The row of `_centres(half, side)` whose cell holds each place."""
    i, j = np.floor((xyz[:, :2] + half) / side).astype(np.int64).T
    return i * round(2 * half / side) + j


def _collected(rows, event, first, particle):
    fraction = rows[:, FRACTIONS:]
    first = np.asarray(first, np.int64)
    own = fraction.sum(axis=1) > 0
    strongest = fraction.argmax(axis=1) if fraction.shape[1] else np.zeros(len(rows), np.int64)
    return Showers(
        position=rows[:, :3].astype(np.float32),
        energy=rows[:, 3].astype(np.float32),
        size=rows[:, 4:6].astype(np.float32),
        layer=rows[:, LAYER].astype(np.int64),
        truth=np.where(own, first[event] + strongest, -1),
        fraction=fraction.astype(np.float32),
        event=event,
        first=first,
        particle=particle[:, :3].astype(np.float32),
        hadron=particle[:, 5].astype(bool),
    )
