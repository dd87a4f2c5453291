"""Generated clouds of points on surfaces in space, with the part to which each point belongs."""

import math
from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range

KINDS = ("ball", "ring", "chair", "lamp", "mug")
PARTS = (
    "ball",
    "ring",
    "chair seat",
    "chair back",
    "chair leg",
    "lamp foot",
    "lamp pole",
    "lamp shade",
    "mug wall",
    "mug floor",
    "mug handle",
)
SPARE = 4  # points generated for each point that is kept


class Shapes(NamedTuple):
    """B clouds of N points each, on the surface of an object, such as a chair.

    The points of a cloud are in random order.

    Attributes:
        points   coordinates [B, N, 3] float32. The origin is the middle of the bounding box that
                 the cloud has before it is rotated, and the farthest point is at distance 1 before
                 noise is added
        part     index of the part to which each point belongs, such as the leg of a chair, in PARTS
                 (`from tinyattn.data.shapes import PARTS`) [B, N] int64
        kind     index of the kind of object in each cloud: ball, ring, chair, lamp, mug [B] int64
    """

    points: np.ndarray  # [B, N, 3] float32, the farthest at distance 1 before noise is added
    part: np.ndarray  # [B, N] int64, index into PARTS
    kind: np.ndarray  # [B] int64, index into KINDS


def shapes(B, N=256, kinds=KINDS, rotated=True, uneven=1.0, noise=0.01, rng=None):
    """Generate B surfaces of random kind and random proportions, with N points on each.

    Args:
        B         number of surfaces
        N         number of points on each surface
        kinds     names of the kinds to choose from, a tuple or list. The default is all kinds:
                  "ball", "ring", "chair", "lamp", "mug"
        rotated   True: each surface is rotated at random. False: all surfaces are upright
        uneven    how unevenly the points are spread: their density varies like exp(uneven · s)
                  along a random direction, where s grows from -1 to 1 across the surface. With 0,
                  the mean number of points on a part is proportional to the square root of its
                  area, so that thin legs do not vanish
        noise     standard deviation of the noise added to the coordinates of the points, whose
                  largest distance from the middle is 1
        rng       seed or numpy.random.Generator, or None for the default generator

    Returns:
        `Shapes`

    Raises:
        TypeError: B or N is not a whole number, or uneven or noise is not a number
        ValueError: kinds is empty, is not a tuple or list, or contains an unknown kind
        ValueError: B is negative, N is below 2, noise is negative, infinite or NaN, or not -300 <=
            uneven <= 300

    Source: slide K42.
    """
    if not isinstance(kinds, tuple | list) or not kinds or any(k not in KINDS for k in kinds):
        advice = f". Write kinds=({kinds!r},)" if isinstance(kinds, str) else ""
        raise ValueError(
            f"shapes: kinds must be a tuple of one or more of {', '.join(map(repr, KINDS))}, got "
            f"{kinds!r}{advice}"
        )
    check_range("shapes", 0, whole=True, B=B)
    check_range("shapes", 2, whole=True, N=N)
    check_range("shapes", 0, below=math.inf, noise=noise)
    check_range("shapes", -300, 300, uneven=uneven)  # exp(2 · uneven) is finite
    rng = generator(rng)
    kind = rng.choice([KINDS.index(k) for k in kinds], B)
    points, part = np.zeros((B, N, 3), np.float32), np.zeros((B, N), np.int64)
    for b in range(B):
        x, part[b] = _cloud(BUILDERS[kind[b]](rng), N, uneven, rng)
        # the centre of the box does not depend on where the points are dense
        x -= (x.min(axis=0) + x.max(axis=0)) / 2
        if rotated:
            x = x @ rotation(rng).T
        x /= np.sqrt(np.square(x).sum(axis=1).max())
        points[b] = x + noise * rng.normal(size=x.shape)
    return Shapes(points, part, kind.astype(np.int64))


def rotation(rng=None):
    """Return a random rotation [3, 3], uniform over all rotations.

    Args:
        rng   seed or numpy.random.Generator, or None for the default generator
    """
    q, r = np.linalg.qr(generator(rng).normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.sign(np.linalg.det(q))


def _cloud(parts, N, uneven, rng):
    """Return N points on the parts [(name, area, draw(n))], and the index of each point's part."""
    share = np.sqrt([area for _, area, _ in parts])
    number = rng.multinomial(SPARE * N, share / share.sum())
    x = np.concatenate([draw(n) for n, (_, _, draw) in zip(number, parts, strict=True)])
    part = np.repeat([PARTS.index(name) for name, _, _ in parts], number.astype(np.intp))
    direction = rng.normal(size=3)
    place = x @ (direction / np.linalg.norm(direction))
    place = (place - place.min()) / max(np.ptp(place), 1e-9)  # 0 … 1
    weight = np.exp(2 * uneven * place)
    kept = rng.choice(len(x), N, replace=False, p=weight / weight.sum())
    return x[kept], part[kept]


# ---------------------------------------------------------------- surfaces: (area, draw)


def _moved(surface, place):
    area, draw = surface
    return area, lambda n: draw(n) + np.asarray(place)


def _ball(radius, rng):
    def draw(n):
        x = rng.normal(size=(n, 3))
        return radius * x / np.linalg.norm(x, axis=1, keepdims=True)

    return 4 * np.pi * radius**2, draw


def _box(size, rng):
    a, b, c = size
    face = np.array([b * c, a * c, a * b])

    def draw(n):
        x = rng.uniform(-0.5, 0.5, (n, 3))
        axis = rng.choice(3, n, p=face / face.sum())
        x[np.arange(n), axis] = rng.choice([-0.5, 0.5], n)
        return x * size

    return 2 * face.sum(), draw


def _disc(radius, rng):
    def draw(n):
        r, angle = radius * np.sqrt(rng.uniform(size=n)), rng.uniform(0, 2 * np.pi, n)
        return np.stack([r * np.cos(angle), r * np.sin(angle), np.zeros(n)], axis=1)

    return np.pi * radius**2, draw


def _tube(bottom, top, height, rng):
    """Return (area, draw) of a tube with radius `bottom` at z = 0 and `top` at z = height."""

    def draw(n):
        u, angle = rng.uniform(size=n), rng.uniform(0, 2 * np.pi, n)
        r = np.sqrt(bottom**2 + u * (top**2 - bottom**2))  # wide rings have more area
        z = height * (u if top == bottom else (r - bottom) / (top - bottom))
        return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)

    return np.pi * (bottom + top) * np.hypot(height, top - bottom), draw


def _ring(large, small, first, last, rng):
    """Return (area, draw) of a torus in the plane of x and z, from the angle `first` to `last`."""

    def draw(n):
        inner = rng.uniform(0, 2 * np.pi, SPARE * n)
        area = 1 + small / large * np.cos(inner)  # the outer side is longer
        inner = rng.choice(inner, n, replace=False, p=area / area.sum()) if n else inner
        angle, r = rng.uniform(first, last, n), large + small * np.cos(inner)
        return np.stack([r * np.cos(angle), small * np.sin(inner), r * np.sin(angle)], axis=1)

    return (last - first) * large * 2 * np.pi * small, draw


# ---------------------------------------------------------------- kinds: parts by name


def _one_ball(rng):
    return [("ball", *_ball(1.0, rng))]


def _one_ring(rng):
    return [("ring", *_ring(1.0, rng.uniform(0.2, 0.45), 0, 2 * np.pi, rng))]


def _chair(rng):
    width, depth, leg, back = rng.uniform(
        [0.7, 0.7, 0.5, 0.6], [1.1, 1.1, 1.0, 1.3]
    )  # width and depth of the seat, and heights of the legs below it and of the back above it
    parts = [
        ("chair seat", *_box((width, depth, 0.08), rng)),
        ("chair back", *_moved(_box((width, 0.08, back), rng), (0, depth / 2, back / 2 + 0.04))),
    ]
    for x in (-1, 1):
        for y in (-1, 1):
            place = (x * 0.45 * width, y * 0.45 * depth, -leg / 2 - 0.04)
            parts.append(("chair leg", *_moved(_box((0.08, 0.08, leg), rng), place)))
    return parts


def _lamp(rng):
    foot, height, low, high, shade = rng.uniform(
        [0.3, 0.9, 0.35, 0.1, 0.3], [0.5, 1.6, 0.6, 0.3, 0.6]
    )
    return [
        ("lamp foot", *_disc(foot, rng)),
        ("lamp pole", *_tube(0.04, 0.04, height, rng)),
        ("lamp shade", *_moved(_tube(low, high, shade, rng), (0, 0, height - shade / 2))),
    ]


def _mug(rng):
    radius, height, handle = rng.uniform([0.35, 0.6, 0.18], [0.6, 1.2, 0.28])
    return [
        ("mug wall", *_tube(radius, radius, height, rng)),
        ("mug floor", *_disc(radius, rng)),
        (
            "mug handle",
            *_moved(_ring(handle, 0.05, -np.pi / 2, np.pi / 2, rng), (radius, 0, height / 2)),
        ),
    ]


BUILDERS = (_one_ball, _one_ring, _chair, _lamp, _mug)
