"""The check of sizes that all layers and models use, with one error message."""

import numpy as np

from tinyattn.engine.ranges import with_article


def check_sizes(layer, least=1, optional=(), single=False, **sizes):
    """Check that each of `sizes` is a whole number of at least `least`, or a list of such numbers.

    Args:
        layer      module to which the sizes belong. The error contains the name of its class
        least      smallest number that is allowed
        optional   names of the sizes that may be None
        single     True: a list of numbers is an error too
        sizes      name=value

    Raises:
        ValueError: a size is neither such a number nor, unless `single` is True, a tuple, list or
            array of them
    """
    for what, value in sizes.items():
        many = isinstance(value, tuple | list | np.ndarray)
        if (value is None and what in optional) or (_fits(value, least) and not (single and many)):
            continue
        whole = f"a whole number of at least {least}"
        if many and not single:
            whole = f"whole numbers of at least {least}"
        raise ValueError(f"{type(layer).__name__}: {what} must be {whole}, got {_found(value)}")


def check_heads(layer, **sizes):
    """Check that the first of two `sizes`, a number of features, is a multiple of the second.

    Args:
        layer   module to which the sizes belong. The error contains the name of its class
        sizes   the number of features and the number of heads, as name=value

    Raises:
        ValueError: a size is not a whole number of at least 1, or the number of heads does not
            divide the number of features
    """
    check_sizes(layer, single=True, **sizes)
    (features, d), (heads, h) = sizes.items()
    if d % h:
        raise ValueError(
            f"{type(layer).__name__}: {features}={d} cannot be divided among {heads}={h} heads. "
            f"Choose a multiple of {heads} as {features}"
        )


def _found(value):
    """Return a wrong size, with its kind or shape, for the end of a message."""
    kind = type(value).__name__
    if getattr(value, "size", 0) > 4 and hasattr(value, "shape"):  # too long to be shown
        return f"{with_article(kind)} of shape {value.shape}"
    if "\n" in repr(value):  # a module with parts is shown on several lines
        return with_article(kind)
    told = ("str", "float", "bool", "dict", "Tensor", "tuple", "list")
    return f"{value!r}, a {kind}" if kind in told else repr(value)


def _fits(value, least):
    if isinstance(value, tuple | list | np.ndarray):
        return all(_is_whole(n, least) for n in value)
    return _is_whole(value, least)


def _is_whole(value, least):
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
