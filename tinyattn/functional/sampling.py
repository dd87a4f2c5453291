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
        an array [...] of indices, whole numbers in [0, V), or a single index for a single row

    Raises:
        ValueError: input is a single number, a number is negative, NaN or infinite, or a row has no
            positive number
    """
    p = np.asarray(to_array(input), np.float64)
    if p.ndim == 0:
        raise ValueError(f"multinomial: expected probabilities [..., V], got the single number {p}")
    right = (p >= 0) & np.isfinite(p)
    if not right.all():
        wrong = p[~right][0]
        advice = "Look for NaN or infinity in the scores from which they were computed"
        if wrong < 0:
            advice = "For scores, apply F.softmax(scores) first"
        raise ValueError(
            f"multinomial: expected probabilities, finite with p >= 0, got {wrong:g}. {advice}"
        )
    if p.size and p.max() > 1e300:  # the sum must not overflow
        p = p / p.max(axis=-1, keepdims=True)
    total = np.cumsum(p, axis=-1)
    if not np.all(total[..., -1:] > 0) or p.shape[-1] == 0:
        empty = ~(p > 0).any(axis=-1)
        which = f"row {tuple(map(int, np.argwhere(empty)[0]))}" if empty.ndim else "the row"
        raise ValueError(f"multinomial: {which} of the probabilities has no positive number")
    u = generator(rng).random(total.shape[:-1]) * total[..., -1]
    # u falls into the interval of one index in the cumulated probabilities. The interval of an
    # impossible index is empty.
    return np.sum(total <= u[..., None], axis=-1)
