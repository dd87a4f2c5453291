"""The table of neighbours I(j, i), and convolution as a literal sum over it."""

import math

import numpy as np

from tinyattn.ops.conv import convolution_by_windows
from tinyattn.ops.fused import fused


def table_and_places(lengths, kernel, stride, before, after, dilation):
    """I[j, i]: the position of x that position j of y sees at place i of the kernel. [P, K]

    On each axis place i of position j is j · stride + i · dilation - before; -1 stands where that
    is outside of x. Several axes are counted as one, the last axis first (index unrolling, slide
    KB14). All arguments have one number for each axis; before, after: the padding. The second
    result is the number of positions of y on each axis. Slide K03.
    """
    n, flat, inside = len(lengths), 0, True
    counts = positions_of(lengths, kernel, stride, before, after, dilation)
    for axis, (length, k, s, b, d) in enumerate(
        zip(lengths, kernel, stride, before, dilation, strict=True)
    ):
        place = np.arange(counts[axis])[:, None] * s + np.arange(k) * d - b  # [positions, kernel]
        shape = [1] * (2 * n)
        shape[axis], shape[n + axis] = place.shape
        place = place.reshape(shape)
        flat, inside = flat * length + place, inside & (place >= 0) & (place < length)
    return np.where(inside, flat, -1).reshape(math.prod(counts), math.prod(kernel)), counts


def positions_of(lengths, kernel, stride, before, after, dilation):
    """How many windows fit on each axis."""
    each = zip(lengths, kernel, stride, before, after, dilation, strict=True)
    return tuple((n + b + a - d * (k - 1) - 1) // s + 1 for n, k, s, b, a, d in each)


# ---------------------------------------------------------------- convolution


@fused(convolution_by_windows)
def convolution_sums(x, w, bias, stride, before, after, dilation, groups):
    """y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i), as loops."""
    from tinyattn.kernels import conv as kernel

    I, positions = table_and_places(x.shape[2:], w.shape[2:], stride, before, after, dilation)
    dtype = np.result_type(x, w) if bias is None else np.result_type(x, w, bias)
    y = np.empty((x.shape[0], w.shape[0], len(I)), dtype)
    b = np.zeros(len(w), dtype) if bias is None else bias
    kernel.sums(y, one_axis(x), one_axis(w), np.asarray(b), I, groups)
    return y.reshape(*y.shape[:2], *positions), I


@convolution_sums.defvjp
def _convolution_sums_rule(g, y, I, wanted, x, w, bias, stride, before, after, dilation, groups):
    from tinyattn.kernels import conv as kernel

    x1, w1 = one_axis(x), one_axis(w)
    dx, dw, db = np.zeros(x1.shape, x.dtype), np.zeros(w1.shape, w.dtype), np.zeros(len(w), g.dtype)
    kernel.sums_backward(dx, dw, db, one_axis(g), x1, w1, I, groups)
    return [dx.reshape(x.shape), dw.reshape(w.shape), db]


def one_axis(x):
    """[B, C, *lengths] with all positions on one axis: [B, C, N]."""
    return np.ascontiguousarray(x).reshape(*x.shape[:2], math.prod(x.shape[2:]))
