"""Comparing a result with NumPy's, in all that a user can see."""

import numpy as np

from tinyattn import Tensor


def unwrap(y):
    """The arrays of tensors, also inside of lists and tuples."""
    if isinstance(y, tuple | list):
        return [unwrap(v) for v in y]
    return y.data if isinstance(y, Tensor) else y


def same(ours, numpy, rtol=1e-12):
    """Equal in structure, shape, dtype and value, up to a few roundings."""
    if isinstance(numpy, tuple | list):
        assert len(ours) == len(numpy)
        for a, b in zip(ours, numpy, strict=True):
            same(a, b, rtol)
        return
    ours, numpy = np.asarray(unwrap(ours)), np.asarray(numpy)
    assert ours.shape == numpy.shape
    assert ours.dtype == numpy.dtype
    np.testing.assert_allclose(ours, numpy, rtol=rtol, atol=rtol)
