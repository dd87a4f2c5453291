"""The table of neighbours I(j, i), and convolution and pooling as literal sums over it."""

import math

import numpy as np

from tinyattn.autograd import Tensor
from tinyattn.ops.conv import convolution_by_windows, unfold
from tinyattn.ops.rowwise import in_place_of


def table_and_places(lengths, kernel, stride, before, after, dilation):
    """I[j, i]: the position of x that position j of y sees at place i of the kernel. [P, K]

    On each axis place i of position j is j · stride + i · dilation - before; -1 stands where that
    is outside of x. Several axes are counted as one, the last axis first (index unrolling, slide
    KB14). All arguments have one number for each axis; before, after: the padding. The second
    result is the number of positions of y on each axis. Slide K03.
    """
    n, flat, inside, counts = len(lengths), 0, True, []
    for axis, (length, k, s, b, a, d) in enumerate(
        zip(lengths, kernel, stride, before, after, dilation, strict=True)
    ):
        counts.append((length + b + a - d * (k - 1) - 1) // s + 1)
        place = np.arange(counts[-1])[:, None] * s + np.arange(k) * d - b  # [positions, kernel]
        shape = [1] * (2 * n)
        shape[axis], shape[n + axis] = place.shape
        place = place.reshape(shape)
        flat, inside = flat * length + place, inside & (place >= 0) & (place < length)
    return np.where(inside, flat, -1).reshape(math.prod(counts), math.prod(kernel)), tuple(counts)


# ---------------------------------------------------------------- convolution


@in_place_of(convolution_by_windows)
def convolution_sums(x, w, bias, stride, before, after, dilation, groups, x_wanted):
    """y_jα = b_α + Σ_β Σ_i w_αβi x_βI(j,i), as loops."""
    from tinyattn.kernels import conv_sums as kernel

    I, positions = table_and_places(x.shape[2:], w.shape[2:], stride, before, after, dilation)
    dtype = np.result_type(x, w) if bias is None else np.result_type(x, w, bias)
    y = np.empty((x.shape[0], w.shape[0], len(I)), dtype)
    b = np.zeros(len(w), dtype) if bias is None else bias
    kernel.sums(y, _one_axis(x), _one_axis(w), np.asarray(b), I, groups)
    return y.reshape(*y.shape[:2], *positions), I


@convolution_sums.defvjp
def _convolution_sums_rule(g, y, I, x, w, bias, stride, before, after, dilation, groups, x_wanted):
    from tinyattn.kernels import conv_sums as kernel

    x1, w1 = _one_axis(x), _one_axis(w)
    dx, dw, db = np.zeros(x1.shape, x.dtype), np.zeros(w1.shape, w.dtype), np.zeros(len(w), g.dtype)
    kernel.sums_backward(dx, dw, db, _one_axis(g), x1, w1, I, groups)
    return [dx.reshape(x.shape), dw.reshape(w.shape), db]


# ---------------------------------------------------------------- pooling


def mean_by_windows(x, kernel, stride, padding, dilation):
    """y_jα = 1/K Σ_i x_αI(j,i) in array algebra; zeros count where a window leaves x."""
    return _pooled(x, 0, np.mean, kernel, stride, padding, dilation)


def largest_by_windows(x, kernel, stride, padding, dilation):
    """y_jα = max_i x_αI(j,i) in array algebra."""
    return _pooled(x, -np.inf, np.max, kernel, stride, padding, dilation)


def _pooled(x, outside, summary, kernel, stride, padding, dilation):
    n = len(kernel)
    if any(padding):
        widths = [(0, 0), (0, 0), *((p, p) for p in padding)]
        x = np.pad(x, widths, constant_values=outside)
    windows = unfold(x if isinstance(x, Tensor) else Tensor(x), kernel, stride, dilation)
    return summary(windows, axis=tuple(range(2 + n, 2 + 2 * n)))


@in_place_of(mean_by_windows)
def mean_sums(x, kernel, stride, padding, dilation):
    """y_jα = 1/K Σ_i x_αI(j,i), as loops."""
    from tinyattn.kernels import conv_sums as loops

    I, positions = table_and_places(x.shape[2:], kernel, stride, padding, padding, dilation)
    y = np.empty((*x.shape[:2], len(I)), x.dtype)
    loops.mean(y, _one_axis(x), I)
    return y.reshape(*x.shape[:2], *positions), I


@mean_sums.defvjp
def _mean_sums_rule(g, y, I, x, kernel, stride, padding, dilation):
    from tinyattn.kernels import conv_sums as loops

    dx = np.zeros((*x.shape[:2], math.prod(x.shape[2:])), x.dtype)
    loops.mean_backward(dx, _one_axis(g), I)
    return [dx.reshape(x.shape)]


@in_place_of(largest_by_windows)
def largest_sums(x, kernel, stride, padding, dilation):
    """y_jα = max_i x_αI(j,i), as loops."""
    from tinyattn.kernels import conv_sums as loops

    I, positions = table_and_places(x.shape[2:], kernel, stride, padding, padding, dilation)
    y = np.empty((*x.shape[:2], len(I)), x.dtype)
    loops.largest(y, _one_axis(x), I)
    return y.reshape(*x.shape[:2], *positions), I


@largest_sums.defvjp
def _largest_sums_rule(g, y, I, x, kernel, stride, padding, dilation):
    from tinyattn.kernels import conv_sums as loops

    dx = np.zeros((*x.shape[:2], math.prod(x.shape[2:])), x.dtype)
    loops.largest_backward(dx, _one_axis(g), _one_axis(y), _one_axis(x), I)
    return [dx.reshape(x.shape)]


def _one_axis(x):
    """[B, C, *lengths] with all positions on one axis: [B, C, N]."""
    return np.ascontiguousarray(x).reshape(*x.shape[:2], math.prod(x.shape[2:]))
