"""The default generator of random numbers, which is used if no `rng=` is passed."""

import numpy as np

_default = np.random.default_rng()


def seed(n):
    """Restart the default random generator. The same n always gives the same random numbers.

    Initial weights, dropout and the order of batches use this generator if no rng= is passed.
    np.random.seed has no effect on them.

    Args:
        n   the seed, a whole number

    Raises:
        TypeError: n is not a whole number
        ValueError: n is negative
    """
    global _default
    if not isinstance(n, int | np.integer):
        raise TypeError(f"seed: n must be a whole number, got n={n!r}")
    if n < 0:
        raise ValueError(f"seed: n must be a whole number >= 0, got n={n}")
    _default = np.random.default_rng(n)


def generator(rng=None):
    """Return a random generator: rng itself, a new one for the seed rng, or the default for None.

    Raises TypeError if rng is anything else, and ValueError if the seed is negative.
    """
    if rng is None:
        return _default
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, int | np.integer):
        if rng < 0:
            raise ValueError(f"rng: expected a whole number >= 0 as a seed, got rng={rng}")
        return np.random.default_rng(rng)
    raise TypeError(
        "rng: expected a numpy.random.Generator, a whole number or None, got an object of type "
        f"{type(rng).__name__}. Make a generator with np.random.default_rng(0)"
    )
