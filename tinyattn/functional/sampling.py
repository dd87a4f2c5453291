"""Random sampling from probabilities that a network computed."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator
from tinyattn.engine.torch_hints import with_torch_hints


@with_torch_hints
def multinomial(input, *, rng=None):
    """Draw one random index for each row of probabilities, which need not sum to 1 exactly.

    NumPy's `rng.choice(V, p=p)` takes a single row, and it often raises an error if p is a float32
    Tensor, whose sum is 1 only to the precision of float32. This function divides each row by its
    sum.

    Args:
        input   probabilities p [..., V], or other weights >= 0
        rng     seed or numpy.random.Generator, or None for the default generator, which `ta.seed`
                sets

    Returns:
        an array [...] of indices, whole numbers in [0, V)

    Raises:
        ValueError: a number is negative, nan or infinite, or a row has no positive number
    """
    p = np.asarray(to_array(input), np.float64)
    if p.ndim == 0:
        raise ValueError(f"multinomial: expected probabilities [..., V], got the single number {p}")
    right = (p >= 0) & np.isfinite(p)
    if not right.all():
        raise ValueError(
            f"multinomial: expected probabilities, finite with p >= 0, got {p[~right][0]:g}. For "
            "scores, apply F.softmax(scores) first"
        )
    total = np.cumsum(p, axis=-1)
    if not np.all(total[..., -1:] > 0) or p.shape[-1] == 0:
        raise ValueError("multinomial: a row of probabilities has no positive number")
    u = generator(rng).random(total.shape[:-1]) * total[..., -1]
    # u falls into the interval of one index in the cumulated probabilities. The interval of an
    # impossible index is empty.
    return np.sum(total <= u[..., None], axis=-1)
