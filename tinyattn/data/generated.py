"""Generated data sets in the plane: two half moons, the arms of a spiral, and a noisy sine."""

import math

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range


def moons(n=400, noise=0.1, rng=None):
    """Generate points on two interlocking half circles, with one half circle for each class.

    Args:
        n       number of points, at least 2
        noise   standard deviation of the noise added to both coordinates
        rng     seed or numpy.random.Generator, or None for the default generator

    Returns:
        (x, y), the points [n, 2] float32 and their classes [n] int64, which alternate: 0, 1, 0, ...

    Raises:
        TypeError: n is not a whole number, or noise is not a number
        ValueError: n is below 2, or noise is negative, infinite or NaN
    """
    _check_sample("moons", n, noise, at_least=2)
    rng = generator(rng)
    y = np.arange(n) % 2
    angle = rng.uniform(0, np.pi, n)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    x = np.where(y[:, None] == 0, upper, lower) + noise * rng.standard_normal((n, 2))
    return x.astype(np.float32), y


def spirals(n=400, classes=3, noise=0.15, rng=None):
    """Generate points on the arms of a spiral, with one arm for each class.

    An arm starts near the origin and makes ¾ of a turn until it reaches radius 1.

    Args:
        n         number of points, at least one for each arm
        classes   number of arms
        noise     standard deviation of the noise added to the angle, in radians
        rng       seed or numpy.random.Generator, or None for the default generator

    Returns:
        (x, y), the points [n, 2] float32 and their classes [n] int64, which alternate: 0 to
        classes - 1, then 0 again

    Raises:
        TypeError: n or classes is not a whole number, or noise is not a number
        ValueError: classes is below 1, n is below `classes`, or noise is negative, infinite or NaN
    """
    check_range("spirals", 1, whole=True, classes=classes)
    _check_sample("spirals", n, noise, at_least=classes)
    rng = generator(rng)
    y = np.arange(n) % classes
    radius = rng.uniform(0.05, 1, n)
    angle = 2 * np.pi * (0.75 * radius + y / classes) + noise * rng.standard_normal(n)
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return x.astype(np.float32), y


def sine(n=200, noise=0.1, rng=None):
    """Generate y = sin x + noise for random x, uniform in [-π, π].

    Args:
        n       number of points, at least 1
        noise   standard deviation of the noise, which is added to y only
        rng     seed or numpy.random.Generator, or None for the default generator

    Returns:
        (x, y), both [n, 1] float32, where x is ascending

    Raises:
        TypeError: n is not a whole number, or noise is not a number
        ValueError: n is below 1, or noise is negative, infinite or NaN
    """
    _check_sample("sine", n, noise, at_least=1)
    rng = generator(rng)
    x = np.sort(rng.uniform(-np.pi, np.pi, (n, 1)), axis=0)
    y = np.sin(x) + noise * rng.standard_normal((n, 1))
    return x.astype(np.float32), y.astype(np.float32)


def _check_sample(name, n, noise, at_least):
    check_range(name, at_least, whole=True, n=n)
    check_range(name, 0, below=math.inf, noise=noise)
