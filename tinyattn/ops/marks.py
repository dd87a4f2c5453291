"""Marks for operations: what the engine has to know of them beside their rules."""

import numpy as np

from tinyattn.engine.autograd import Primitive, primitive


def elementwise(f) -> Primitive:
    """A primitive that works on each element by itself, and so do its rules.

    Where no gradient arrives none leaves, though the slope be infinite: see engine/invalid.py.
    """
    apply = primitive(f)
    apply.operation.elementwise = True
    return apply


def of_whole_numbers(operation: Primitive) -> Primitive:
    """Let an operation compute whole numbers with 64 bits and a sign, as np.sum does.

    In NumPy 200 + 100 of eight bits is 44, and 1 - 2 without a sign is 255. Raises OverflowError
    for numbers from 2⁶³ on.
    """
    f = operation.__wrapped__
    operation.operation.widened = lambda *values, **options: f(
        *[_wide(x) for x in values], **options
    )
    return operation


def _wide(x):
    """An array of whole numbers as int64; anything else as it is."""
    if not isinstance(x, np.ndarray | np.generic) or x.dtype.kind not in "iu":
        return x
    if x.dtype == np.uint64 and np.any(x > np.uint64(2**63 - 1)):
        raise OverflowError(
            "whole numbers from 2**63 on do not fit into int64, in which Tensors compute whole "
            "numbers: convert them to float64 first"
        )
    return x.astype(np.int64)
