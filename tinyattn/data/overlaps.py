"""Generated images of coloured shapes that partly hide each other, with class, size and position.

Each image has several objects, which are drawn one after the other. A pixel belongs to the last
object drawn over it, or to the background. Class, size and centre describe the whole shape,
including its hidden part.
"""

import math
from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_interval, check_range

KINDS = ("circle", "square", "triangle")
SIDE = 20  # pixels
SIZES = (3.0, 6.0)  # smallest and largest size of an object, in pixels
VISIBLE = 0.35  # at least this fraction of an object's pixels stays visible
HUES = 8  # colours
DARK = 0.15  # brightness of an outline
TRIES = 200  # number of attempts to place a shape without hiding another one too much


class Overlaps(NamedTuple):
    """B images and their M objects, which are numbered from 0 across all images.

    Attributes:
        images   RGB images of 20 by 20 pixels with values from 0 to 1 [B, 20, 20, 3] float32
        truth    index from 0 to M - 1 of the object that each pixel belongs to, -1 for the
                 background [B, 20, 20] int64
        kind     0 for a circle, 1 for a square, 2 for a triangle [M] int64
        size     size in pixels [M] float32, which is the radius of a circle. The side of a square
                 is 1.7 · size, and so are the base and the height of a triangle
        centre   column and row of the centre, in pixels from the centre of the top left pixel
                 [M, 2] float32. The centre of a triangle is `size` below its tip
    """

    images: np.ndarray
    truth: np.ndarray
    kind: np.ndarray
    size: np.ndarray
    centre: np.ndarray


def overlaps(n, rng=None, objects=(2, 5), noise=0.05, outlined=False):
    """Generate n images of overlapping shapes, each shape in one of eight colours.

    At least 35% of the pixels of each shape stay visible. A shape is omitted if each of 200
    attempts to place it would hide too much of an earlier one.

    Args:
        n          number of images
        rng        seed or numpy.random.Generator, or None for the default generator
        objects    (smallest, largest) number of shapes to draw in an image
        noise      standard deviation of the noise added to each of the three colours of each pixel
        outlined   False: shapes that touch have different colours. True: an image has only two
                   colours, so shapes that touch may share one, and only a dark outline one pixel
                   wide separates them

    Returns:
        `Overlaps`

    Raises:
        TypeError: n is not a whole number, objects is not a pair of whole numbers, or noise is not
            a number
        ValueError: n is negative, noise is negative, infinite or NaN, or not 1 <= objects[0] <=
            objects[1] <= 8

    Source: slide K58.
    """
    check_range("overlaps", 0, whole=True, n=n)
    check_range("overlaps", 0, below=math.inf, noise=noise)
    check_interval("overlaps", "objects", objects, 1, HUES, whole=True)
    low, high = objects
    rng = generator(rng)
    images, truth = np.empty((n, SIDE, SIDE, 3)), np.empty((n, SIDE, SIDE), np.int64)
    kinds, sizes, centres = [], [], []
    for b in range(n):
        images[b], here, kind, size, centre = _picture(rng.integers(low, high + 1), outlined, rng)
        truth[b] = np.where(here >= 0, here + len(kinds), -1)
        kinds += kind
        sizes += size
        centres += centre
    images = np.clip(images + noise * rng.normal(size=images.shape), 0, 1)
    sizes, centres = np.array(sizes, np.float32), np.array(centres, np.float32)
    return Overlaps(
        images.astype(np.float32), truth, np.array(kinds, np.int64), sizes, centres.reshape(-1, 2)
    )


def _picture(K, outlined, rng):
    """Return an image with up to K shapes, the object of each pixel, and kinds, sizes, centres."""
    image, truth = np.full((SIDE, SIDE, 3), 0.95), np.full((SIDE, SIDE), -1)
    kinds, sizes, centres, hues, least = [], [], [], [], []  # least: pixels to keep visible
    two = rng.choice(HUES, 2, replace=False) if outlined else None
    for _ in range(K):
        kind, size, centre, pixels = _placed(truth, least, rng)
        if pixels is None:
            continue
        touched = {hues[k] for k in np.unique(truth[_wider(pixels)]) if k >= 0}
        allowed = two if outlined else [h for h in range(HUES) if h not in touched]
        hues.append(int(rng.choice(allowed)))
        truth[pixels], image[pixels] = len(kinds), _color(hues[-1] / HUES)
        if outlined:
            image[pixels & _wider(~pixels)] = DARK
        kinds.append(kind)
        sizes.append(size)
        centres.append(centre)
        least.append(VISIBLE * pixels.sum())
    return image, truth, kinds, sizes, centres


def _placed(truth, least, rng):
    """Return kind, size, centre and pixels of a new shape. If it does not fit, pixels is None.

    At least least[k] pixels of each earlier object k in `truth` stay visible.
    """
    for _ in range(TRIES):
        kind, size = int(rng.integers(len(KINDS))), rng.uniform(*SIZES)
        centre = rng.uniform(size - 0.5, SIDE - 0.5 - size, 2)
        pixels = _shape(kind, size, *centre)
        left = np.bincount(truth[~pixels] + 1, minlength=len(least) + 1)[1:]
        if np.all(left >= least):
            return kind, size, centre, pixels
    return kind, size, centre, None


def _wider(pixels):
    """Return the given pixels together with their neighbours on all four sides."""
    wide = pixels.copy()
    wide[1:] |= pixels[:-1]
    wide[:-1] |= pixels[1:]
    wide[:, 1:] |= pixels[:, :-1]
    wide[:, :-1] |= pixels[:, 1:]
    return wide


def _shape(kind, size, cx, cy):
    """Return the pixels of one shape around (cx, cy), [SIDE, SIDE] bool."""
    x, y = np.arange(SIDE) - cx, (np.arange(SIDE) - cy)[:, None]  # y grows downwards
    if KINDS[kind] == "circle":
        return x * x + y * y <= size * size
    if KINDS[kind] == "square":
        return np.maximum(np.abs(x), np.abs(y)) <= 0.85 * size
    return (y <= 0.7 * size) & (y >= 2 * np.abs(x) - size)


def _color(hue):
    """Return a saturated colour with this hue, from 0 to 1."""
    wheel = np.abs((6 * hue + np.array([0, 4, 2])) % 6 - 3) - 1
    return 0.1 + 0.8 * np.clip(wheel, 0, 1)
