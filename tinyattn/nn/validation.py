"""The check of sizes that all layers and models use, with one error message."""

import numpy as np


def check_sizes(layer, least=1, **sizes):
    """Check that each of `sizes` is a whole number of at least `least`, or a list of such numbers.

    Args:
        layer   module to which the sizes belong. The error contains the name of its class
        least   smallest number that is allowed
        sizes   name=value. None is skipped, because a layer then uses its default

    Raises:
        ValueError: a size is neither such a number nor a tuple, list or array of them
    """
    for what, value in sizes.items():
        if value is None or _fits(value, least):
            continue
        kind = type(value).__name__
        kind = f", a {kind}" if kind in ("str", "float", "bool", "dict", "Tensor") else ""
        raise ValueError(
            f"{type(layer).__name__}: {what} must be a whole number of at least {least}, got "
            f"{value!r}{kind}"
        )


def _fits(value, least):
    if isinstance(value, tuple | list | np.ndarray):
        return all(_fits(n, least) for n in value)
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
