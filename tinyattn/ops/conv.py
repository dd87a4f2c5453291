"""Sliding windows and their reverse: the two operations that convolution and pooling are made of.

`unfold` and `fold` are each other's derivative rule, as indexing and scattering are.
"""

import numpy as np

from tinyattn.autograd import primitive


@primitive
def unfold(x, kernel, stride, dilation):
    """y[…, i, k] = x[…, i · stride + k · dilation]: all windows, as a view without a copy.

    x [B, C, *lengths]; kernel, stride, dilation have one number for each of the lengths.
    y [B, C, *positions, *kernel], as many positions as windows fit into the length.
    """
    n = len(kernel)
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    windows = np.lib.stride_tricks.sliding_window_view(x, span, axis=tuple(range(2, 2 + n)))
    every = [slice(None)] * 2 + [slice(None, None, s) for s in (*stride, *dilation)]
    return windows[tuple(every)]


@primitive
def fold(y, lengths, stride, dilation):
    """x[…, i · stride + k · dilation] = Σ y[…, i, k]: add all windows up where they came from."""
    n = len(lengths)
    positions, kernel = y.shape[2 : 2 + n], y.shape[2 + n :]
    x = np.zeros((*y.shape[:2], *lengths), y.dtype)
    for offset in np.ndindex(*kernel):
        place = tuple(
            slice(k * d, k * d + (m - 1) * s + 1, s)
            for k, d, s, m in zip(offset, dilation, stride, positions, strict=True)
        )
        x[(..., *place)] += y[(..., *offset)]
    return x


unfold.defvjp(
    lambda g, y, x, kernel, stride, dilation: fold(g, x.shape[2:], stride, dilation),
)
fold.defvjp(
    lambda g, y, x, lengths, stride, dilation: unfold(
        g, x.shape[2 + len(lengths) :], stride, dilation
    ),
)
