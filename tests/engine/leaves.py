"""Leaves with random values, for the tests of the engine."""

import numpy as np

from tinyattn import Tensor

rng = np.random.default_rng(0)


def leaf(*shape, dtype=np.float64):
    """A tensor of this shape that gets a gradient."""
    return Tensor(rng.normal(size=shape).astype(dtype), requires_grad=True)
