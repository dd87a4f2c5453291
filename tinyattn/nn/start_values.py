"""Start values of parameters, and how to skip them for a model that will be loaded."""

import numpy as np

from tinyattn.guards import DEFAULT_DTYPE
from tinyattn.nn.module import Parameter
from tinyattn.random import generator


def uniform(shape, bound, rng):
    """A parameter of independent numbers, uniform in [-bound, bound]."""
    return _parameter(generator(rng).uniform(-bound, bound, shape))


def normal(shape, std, rng):
    """A parameter of independent numbers, normal with mean 0 and standard deviation std."""
    return _parameter(generator(rng).normal(0, std, shape))


def _parameter(values):
    p = Parameter(0.0)
    p.data = values.astype(DEFAULT_DTYPE, copy=False)  # not Parameter(values), which would copy
    return p


class SkipInit(np.random.Generator):
    """Passed as `rng=`, it makes a layer or a model without start values: they are NaN.

        model = GPT(50257, 768, 12, 12, 1024, rng=nn.SkipInit())
        model.load_state_dict(state)

    Drawing start values that are replaced at once takes most of the time of loading. Here all
    elements of a parameter share one NaN, which takes no time and no memory. A parameter that was
    never loaded makes every result NaN, and writing into it raises ValueError. Weights of norms
    are 1 and biases 0 where a layer starts them so. Other random numbers, such as those of dropout,
    are drawn as usual. In PyTorch: torch.nn.utils.skip_init and the device "meta".
    """

    def __init__(self):
        super().__init__(np.random.PCG64())

    def uniform(self, low=0.0, high=1.0, size=None):
        """NaN in place of uniform numbers."""
        return np.broadcast_to(DEFAULT_DTYPE.type(np.nan), size)

    def normal(self, loc=0.0, scale=1.0, size=None):
        """NaN in place of normal numbers."""
        return np.broadcast_to(DEFAULT_DTYPE.type(np.nan), size)
