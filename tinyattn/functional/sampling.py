"""Random sampling from probabilities that a network computed."""

from functools import wraps

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.functional.linear import first_index


def _one_draw(f):
    """Return f, which explains a second argument by position, the number of draws in PyTorch."""

    @wraps(f)
    def call(*args, **options):
        if len(args) > 1:
            raise TypeError(
                "multinomial: one index is drawn for each row, so leave out the number of draws, "
                f"got {args[1]!r}. For n draws, pass np.stack([p] * n), and give a seed by name, "
                "F.multinomial(p, rng=0)"
            )
        return f(*args, **options)

    return call


@_one_draw
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
        ValueError: input is a single number, a probability is negative, NaN or infinite, or a row
            has no positive probability
        TypeError: input does not consist of real numbers, a second argument is given by position,
            or rng is neither a seed nor a generator
    """
    p = np.asarray(to_array(input))
    if p.dtype.kind not in "fiub":
        raise TypeError(f"multinomial: input must consist of real numbers, got {p.dtype}")
    p = p.astype(np.float64)
    if p.ndim == 0:
        raise ValueError(f"multinomial: expected probabilities [..., V], got the single number {p}")
    right = (p >= 0) & np.isfinite(p)
    if not right.all():
        wrong = p[~right][0]
        at = first_index(~right)
        advice = "Look for NaN or infinity in the scores from which they were computed"
        if wrong < 0:
            advice = "For scores, apply F.softmax(scores) first"
        raise ValueError(
            f"multinomial: expected finite probabilities >= 0, got {wrong:g}{at}. {advice}"
        )
    if p.size and p.max() > 1e300:  # the sum must not overflow
        p = p / p.max(axis=-1, keepdims=True)
    total = np.cumsum(p, axis=-1)
    if not np.all(total[..., -1:] > 0) or p.shape[-1] == 0:
        empty = ~(p > 0).any(axis=-1)
        row = f"row {tuple(map(int, np.argwhere(empty)[0]))} of input" if empty.ndim else "input"
        raise ValueError(f"multinomial: {row} has no positive number, so no index can be drawn")
    u = generator(rng).random(total.shape[:-1]) * total[..., -1]
    # u falls into the interval of one index in the cumulated probabilities. The interval of an
    # impossible index is empty.
    return np.sum(total <= u[..., None], axis=-1)
