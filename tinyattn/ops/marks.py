"""Marks of operations: facts that the engine needs in addition to the derivative rules."""

import numpy as np

from tinyattn.engine.autograd import Primitive, primitive


def elementwise(f) -> Primitive:
    """Return f as a primitive that is marked as elementwise.

    The function and its rules act on each element separately. Where the gradient of the output is
    0, the gradient of the input is therefore 0 too, even if the slope is infinite (see
    engine/invalid.py).
    """
    apply = primitive(f)
    apply.operation.elementwise = True
    return apply


def of_whole_numbers(operation: Primitive) -> Primitive:
    """Make an operation compute whole numbers as signed 64-bit integers, as np.sum does.

    In NumPy, with unsigned integers of eight bits, 200 + 100 is 44 and 1 - 2 is 255. The operation
    is returned. It raises OverflowError for operands of 2⁶³ or more.
    """
    f = operation.__wrapped__
    operation.operation.widened = lambda *values, **options: f(
        *[_wide(x) for x in values], **options
    )
    return operation


def _wide(x):
    """Return an array of whole numbers as int64, and anything else unchanged."""
    if not isinstance(x, np.ndarray | np.generic) or x.dtype.kind not in "iu":
        return x
    if x.dtype == np.uint64 and np.any(x > np.uint64(2**63 - 1)):
        raise OverflowError(
            "whole numbers >= 2**63 do not fit into int64, the dtype in which Tensors compute with "
            "whole numbers. Convert them to float64 first"
        )
    return x.astype(np.int64)
