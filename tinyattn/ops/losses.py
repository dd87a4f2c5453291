"""The loss of a classifier as one operation."""

import numpy as np

from tinyattn.kernels import fast
from tinyattn.ops.backends import operation
from tinyattn.ops.index import take_along_axis
from tinyattn.ops.softmax import log_softmax


@operation("cross_entropy", work=lambda x, ids: x.size)
def cross_entropy(x, ids):
    """Return the losses [N], -ln softmax(x)[id] for each row of scores x [N, C] and its id in ids.

    ids [N] are the indices of the right classes, whole numbers from 0 to C - 1.
    """
    # the array algebra must not run a kernel, because a second derivative differentiates it
    picked = take_along_axis(log_softmax(x, 1, impl="numpy"), ids[:, None], 1)
    return -np.squeeze(picked, 1)


cross_entropy.implement(
    "kernel",
    lambda x, ids: fast.rowwise.cross_entropy(x, ids),
    lambda g, y, residuals, needs_grad, x, ids: [
        fast.rowwise.cross_entropy_backward(g, residuals, x)
    ],
)
