"""One check for the sizes of all layers and models, with one sentence if they are wrong."""

import numpy as np


def check_sizes(layer, least=1, **sizes):
    """Each of `sizes` must be a whole number from `least` on, or a tuple of such numbers.

    layer: who is asking, an object or its name. None is left alone: the layer's own default.
    """
    name = layer if isinstance(layer, str) else type(layer).__name__
    for what, value in sizes.items():
        numbers = value if isinstance(value, tuple | list | np.ndarray) else (value,)
        if value is None or all(_whole(n) and n >= least for n in numbers):
            continue
        if not any(isinstance(n, float | np.floating) or _whole(n) for n in numbers):
            raise TypeError(
                f"{name}: {what} must be a whole number of at least {least}, got {value!r}, "
                f"a {type(value).__name__}"
            )
        raise ValueError(
            f"{name}: {what} must be a whole number of at least {least}, got {value!r}"
        )


def _whole(n):
    return isinstance(n, int | np.integer) and not isinstance(n, bool)
