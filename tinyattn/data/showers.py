"""Generated showers of particles in a calorimeter with cells of different sizes.

A particle that enters dense matter breaks up into more and more particles of lower and lower
energy, until all of its energy has been absorbed. This cascade is called a shower. The calorimeter
is a stack of layers that are divided into cells, and each cell measures the energy absorbed in it.

The generator reproduces the main features of the physics but is not a realistic simulation.
Electromagnetic showers (electrons, photons) are short and narrow. Hadronic showers start later, and
are wide and irregular. Cells are fine in the inner region and at the front, and coarse elsewhere.
Showers overlap, so a cell may contain energy from several of them, and the electronics adds noise.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_interval, check_range, is_number

HALF = 16.0  # cm from the axis of the detector to its edge
FRONT, BACK = 8, 4  # layers
THICKNESS = np.array([2.0] * FRONT + [4.0] * BACK)  # cm
# cm, side of a cell in the inner region, where cells are half as wide as outside
CELL = np.array([1.0] * FRONT + [2.0] * BACK)
INNER = 8.0  # cm: cells with |x| and |y| below this are in the inner region
PLANES = np.array([-9.0, -6.0, -3.0])  # cm: tracking planes before the calorimeter
SPOTS = 20  # portions of energy of a shower, per GeV
LAYERS = np.array([3.0, 3.0, 4.0, 5.0, 7.0, 10.0])  # cm: thickness, in the irregular detector
CELLS_IN_LAYER = [110, 110, 110, 80, 80, 60]
EDGES = np.concatenate([[0.0], np.cumsum(THICKNESS)])  # cm: where layers begin and end


class Showers(NamedTuple):
    """The hits and showers of all events of a calorimeter, event by event.

    There are N hits and M showers in E events. A hit is a cell whose energy exceeds the noise, or a
    point in a tracking plane.

    Attributes:
        position   [N, 3] float32, cm: centre of the cell, or the measured point in a tracking
                   plane. x and y are transverse, and z is the depth in the calorimeter
        energy     [N] float32, GeV: measured energy, 0 for a hit of a tracking plane
        size       [N, 2] float32, cm: width and thickness of the cell, 0 for a tracking plane
        layer      [N] int64: 0 to 11 in the calorimeter (with irregular cells, 0 to 5), -3 to -1
                   for tracking planes
        truth      [N] int64: index of the shower with the most energy in the cell, or of the
                   particle in a tracking plane, from 0 to M - 1 across all events, -1 for noise
        fraction   [N, K] float32: fraction of the energy that comes from each shower of the event,
                   or 1 for the particle in a tracking plane. The fractions sum to 1, or to 0 for
                   noise. K is the largest possible number of showers in an event, objects[1]
        event      [N] int64: index of the event of the hit, in ascending order
        first      [E + 1] int64: event e has the showers first[e] to first[e + 1] - 1
        particle   [M, 3] float32: energy in GeV, and position (x, y) where the shower enters the
                   calorimeter, in cm
        hadron     [M] bool: True for a hadron, False for an electron
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

    Each shower is caused by a hadron or by an electron, with probability ½ each. The hits of an
    event come in random order.

    Args:
        n         number of events
        rng       seed or numpy.random.Generator, or None for the default generator
        objects   (smallest, largest) number of showers in an event
        noise     standard deviation of the noise in each cell in GeV, up to 1. A cell is a hit if
                  its energy exceeds three standard deviations
        spread    largest |x| and |y| at which showers enter, in cm, up to 16. With 3 to 5, many
                  showers overlap
        planes    number of thin tracking planes before the calorimeter, 0 to 3. They measure the
                  position of each particle precisely, but not its energy
        cells     cells of the detector as rows (x, y, z of the centre, width, thickness, layer), in
                  cm [cells, 6], such as the result of irregular_cells()
                  (`from tinyattn.data.showers import irregular_cells`). If None, there are twelve
                  layers of square cells

    Returns:
        `Showers`

    Raises:
        TypeError: n or planes is not a whole number, or objects is not a pair of whole numbers
        ValueError: n is negative, not 0 <= objects[0] <= objects[1], not 0 <= noise <= 1, not 0 <
            spread <= 16, or not 0 <= planes <= 3
        ValueError: cells are not finite numbers [cells, 6]

    Source: slides K46, K59.
    """
    check_range("showers", 0, whole=True, n=n)
    check_interval("showers", "objects", objects, 0, whole=True)
    low, high = objects
    # above this, the cut at three times the noise would leave hardly any cell
    if not is_number(noise) or not 0 <= noise <= 1:
        raise ValueError(
            "showers: noise is a standard deviation in GeV, so expected 0 <= noise <= 1, got "
            f"noise={noise!r}. The default is 0.01"
        )
    if not is_number(spread) or not 0 < spread <= HALF:
        raise ValueError(f"showers: expected 0 < spread <= {HALF:g} cm, got spread={spread!r}")
    check_range("showers", 0, 3, whole=True, planes=planes)
    if cells is not None:
        cells = np.asarray(cells)
        if cells.ndim != 2 or cells.shape[1] != 6 or cells.dtype.kind not in "fiu":
            raise ValueError(
                "showers: cells must be [cells, 6], as irregular_cells() returns them, got "
                f"{cells.dtype} of shape {cells.shape}"
            )
        if not np.isfinite(cells).all():
            raise ValueError(
                "showers: cells must be finite, but row "
                f"{int(np.argmin(np.isfinite(cells).all(axis=1)))} has NaN or infinity"
            )
    rng = generator(rng)
    hits, particles, first = [_no_hits(high)], [np.zeros((0, 6))], [0]
    for _ in range(n):
        K = int(rng.integers(low, high + 1))
        particle = _particles(K, spread, rng)
        rows = _cells(_deposits(particle, rng), cells, high, noise, rng)
        rows = np.concatenate([rows, _tracks(particle, high, planes, rng)])
        # shuffle, so that the order contains no information
        rows = rows[rng.permutation(len(rows))]
        hits.append(rows)
        particles.append(particle)
        first.append(first[-1] + K)
    event = np.repeat(np.arange(n), [len(rows) for rows in hits[1:]])
    return _collected(np.concatenate(hits), event, first, np.concatenate(particles))


def select(showers, events):
    """Return a `Showers` with only the chosen events, numbered from 0 in the given order.

    Args:
        showers   `Showers`
        events    indices of the chosen events [n], in any order, or a single index. An event may be
                  chosen repeatedly

    Raises:
        ValueError: events are not whole numbers from 0 to the number of events - 1
    """
    E, given = len(showers.first) - 1, np.atleast_1d(np.asarray(events))
    events = given if given.size else np.zeros(0, np.int64)
    if events.ndim != 1 or events.dtype.kind not in "iu" or not np.isin(events, range(E)).all():
        expected = f"indices from 0 to {E - 1}" if E else "empty, because there are no events"
        advice = ". Write np.flatnonzero(mask) for a mask" if given.dtype == bool else ""
        raise ValueError(f"select: events must be {expected}, got {given.tolist()}{advice}")
    # index of the first hit of each event
    begin = np.searchsorted(showers.event, np.arange(len(showers.first)))
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


# The columns of a table of hits: x, y, z, energy, width, thickness, layer, and one fraction for
# each shower.
LAYER, FRACTIONS = 6, 7


def _no_hits(K):
    return np.zeros((0, FRACTIONS + K))


def _particles(K, spread, rng):
    """Draw energy, x and y at the front, slopes dx/dz and dy/dz, and hadron or not, [K, 6]."""
    # log-uniform, so that 5 to 10 and 20 to 40 are equally likely
    energy = 5 * 8 ** rng.uniform(size=K)
    place = rng.uniform(-spread, spread, (K, 2))
    slope = 0.05 * rng.normal(size=(K, 2))
    return np.column_stack([energy, place, slope, rng.integers(0, 2, K)])


def _deposits(particle, rng):
    """Return the energy deposits of the showers, as rows (shower, x, y, z, energy) [spots, 5].

    Along the axis of the shower, the deposits follow a gamma distribution. Their distance from the
    axis is exponentially distributed. The shower of a hadron starts later and has a narrow core of
    random strength.
    """
    spots = [np.zeros((0, 5))]
    for k, (energy, x, y, dx, dy, hadron) in enumerate(particle):
        n = max(1, int(SPOTS * energy))
        start = min(rng.exponential(5.0), 16.0) if hadron else 0.0
        z = start + rng.gamma(3.0, 4.0 if hadron else 1.5 + 0.1 * np.log(energy), n)
        wide = rng.uniform(size=n) < (rng.uniform(0.5, 0.9) if hadron else 0.15)
        r = rng.exponential(np.where(wide, 3.0 if hadron else 2.0, 0.8))
        angle = rng.uniform(-np.pi, np.pi, n)
        if hadron:  # a hadron has a few sub-showers (lumps), each with its own direction
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
    """Return the hits: the cells whose energy (deposits `spots` plus noise) exceeds 3 · noise."""
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
    # a deposit below the noise of a cell cannot be seen
    fraction = np.where((total > noise)[:, None], fraction, 0)
    rows = np.column_stack([cells[:, :3], energy, cells[:, 3:], fraction])
    return rows[hit]


def _tracks(particle, columns, planes, rng):
    """Return the hits of particles in the last `planes` tracking planes, measured to 0.1 mm."""
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
    """Return all cells as rows (x, y, z of the centre, width, thickness, layer) [cells, 6]."""
    cells = np.concatenate([_layer(i) for i in range(FRONT + BACK)])
    cells.flags.writeable = False
    return cells


def irregular_cells(rng=None, density=1.0):
    """Generate irregular cells as rows (x, y, z of the centre, width, thickness, layer) [cells, 6].

    The six layers differ in thickness. The centres of the cells are random points, which differ
    from layer to layer and are dense in the inner region and sparse outside. A position belongs to
    the cell with the nearest centre. If the position is farther from this centre than 3/4 of the
    cell's width, it is in a gap, where energy is lost. The width of a cell is the mean distance
    from its centre to the three nearest centres of other cells.

    Args:
        rng       seed or numpy.random.Generator, or None for the default generator
        density   relative number of cells, at least 0.06. 2 doubles the number of cells and halves
                  their area

    Raises:
        ValueError: density is not a finite number, or so small that a layer would have fewer than 4
            cells
    """
    fewest = (
        round(density * min(CELLS_IN_LAYER)) if is_number(density) and np.isfinite(density) else 0
    )
    if fewest < 4:  # the width of a cell is computed from three others
        raise ValueError(
            f"irregular_cells: expected 0.06 <= density < inf, got density={density!r}"
        )
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
    """Return the index of the irregular cell at each position of xyz, or -1 in a gap, [spots]."""
    found = np.full(len(xyz), -1)
    for layer in np.unique(cells[:, 5]):
        own = np.flatnonzero(cells[:, 5] == layer)
        z, thickness = cells[own[0], 2], cells[own[0], 4]
        here = np.flatnonzero(np.abs(xyz[:, 2] - z) <= thickness / 2)
        p, middle = xyz[here, :2], cells[own, :2]
        # |p - m|² = |p|² + |m|² - 2 p·m, and |p|² is the same for all centres m, so it is left out
        near = own[(np.sum(middle * middle, axis=1) - 2 * p @ middle.T).argmin(axis=1)]
        apart = np.linalg.norm(p - cells[near, :2], axis=1)
        found[here] = np.where(apart <= 0.75 * cells[near, 3], near, -1)
    return found


def _layer(i):
    """Return the cells of layer i, with a fine square in the middle and coarser cells around it.

    The coarser cells are twice as wide.
    """
    fine, coarse = _centres(INNER, CELL[i]), _centres(HALF, 2 * CELL[i])
    coarse = coarse[np.abs(coarse).max(axis=1) > INNER]
    width = np.repeat([CELL[i], 2 * CELL[i]], [len(fine), len(coarse)])
    z = (EDGES[i] + EDGES[i + 1]) / 2
    xy = np.concatenate([fine, coarse])
    return np.column_stack(
        [xy, np.full(len(xy), z), width, np.full(len(xy), THICKNESS[i]), np.full(len(xy), i)]
    )


def _centres(half, side):
    """Return the centres of cells of width `side` in a square from -half to half, [n², 2]."""
    c = np.arange(-half + side / 2, half, side)
    return np.stack(np.meshgrid(c, c, indexing="ij"), axis=-1).reshape(-1, 2)


@cache
def _coarse_cell_indices():
    """Return (first cell, cell at each position of the coarse square grid) for each layer."""
    tables, begin = [], 0
    for i in range(FRONT + BACK):
        outside = np.abs(_centres(HALF, 2 * CELL[i])).max(axis=1) > INNER
        fine = len(_centres(INNER, CELL[i]))
        tables.append((begin, begin + fine + np.cumsum(outside) - 1))
        begin += fine + outside.sum()
    return tables


def _cell_of(xyz):
    """Return the cell of `geometry` that contains each position inside the detector, [spots]."""
    cell = np.zeros(len(xyz), np.int64)
    layer = np.searchsorted(EDGES, xyz[:, 2], side="right") - 1
    middle = (np.abs(xyz[:, :2]) < INNER).all(axis=1)
    for i, (begin, coarse) in enumerate(_coarse_cell_indices()):
        here = layer == i
        cell[here & middle] = begin + _in_square(xyz[here & middle], INNER, CELL[i])
        cell[here & ~middle] = coarse[_in_square(xyz[here & ~middle], HALF, 2 * CELL[i])]
    return cell


def _in_square(xyz, half, side):
    """Return, for each position, the row of `_centres(half, side)` of the cell that contains it."""
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
