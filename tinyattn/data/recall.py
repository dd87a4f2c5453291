"""Small generated tasks that require memory, called toy-recall in the course."""

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range


def first_bit(n, length, rng=None):
    """Generate n sequences of random bits, where the target is the first bit of each.

    Args:
        n        number of sequences
        length   number of steps
        rng      seed or numpy.random.Generator, or None for the default generator

    Returns:
        (x, y), where x [n, length, 1] float32 contains -1 and 1, and y [n] int64 is 1 if the first
        entry of the sequence is 1, and 0 otherwise

    Raises:
        TypeError: n or length is not a whole number
        ValueError: n is negative, or length is below 1

    Source: slides H19, H20.
    """
    _check_lengths("first_bit", n, length, shortest=1)
    x = generator(rng).choice(np.float32([-1, 1]), size=(n, length, 1))
    return x, (x[:, 0, 0] > 0).astype(np.int64)


def delayed_bit(n, length, rng=None):
    """Generate n sequences that contain a bit at one step and query it at a later step.

    Args:
        n        number of sequences
        length   number of steps
        rng      seed or numpy.random.Generator, or None for the default generator

    Returns:
        (x, y, when). In x [n, length, 3] float32, column 0 is the bit (-1 or 1) at its step and 0
        at all others, column 1 is 1 at the step of the query, and column 2 is noise, ±1. y [n]
        int64 is 1 for the bit 1 and 0 for the bit -1. when [n, 2] int64 contains the step of the
        bit (in the first quarter) and of the query (in the last quarter)

    Raises:
        TypeError: n or length is not a whole number
        ValueError: n is negative, or length is below 4

    Source: slide KB04.
    """
    _check_lengths("delayed_bit", n, length, shortest=4)
    rng = generator(rng)
    rows, quarter = np.arange(n), length // 4
    shown = rng.integers(quarter, size=n)
    asked = length - 1 - rng.integers(quarter, size=n)
    y = rng.integers(2, size=n)
    x = np.zeros((n, length, 3), np.float32)
    x[rows, shown, 0] = 2 * y - 1
    x[rows, asked, 1] = 1
    x[:, :, 2] = rng.choice([-1, 1], size=(n, length))
    return x, y, np.stack([shown, asked], axis=1)


def _check_lengths(name, n, length, shortest):
    check_range(name, 0, whole=True, n=n)
    check_range(name, shortest, whole=True, length=length)
