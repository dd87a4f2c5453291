"""Sliding windows and their reverse, the two operations of which convolution and pooling consist.

`unfold` and `fold` are each other's derivative rule, as indexing and scattering are. A convolution
is one product of all windows with the weights, index sums over a table of neighbours, or a kernel.
"""

import math

import numpy as np

from tinyattn import kernels
from tinyattn.engine.autograd import primitive
from tinyattn.kernels import fast
from tinyattn.ops.backends import operation


@primitive
def unfold(x, kernel, stride, dilation):
    """Return all windows as a view, y[…, i, k] = x[…, i · stride + k · dilation].

    Args:
        x          B items with C channels, [B, C, *lengths]
        kernel     lengths of a window, one for each of `lengths`
        stride     distances between neighbouring windows
        dilation   distances between neighbouring positions of a window

    Returns:
        y [B, C, *positions, *kernel], with a position i for each window that fits into x
    """
    n = len(kernel)
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    windows = np.lib.stride_tricks.sliding_window_view(x, span, axis=tuple(range(2, 2 + n)))
    every = [slice(None)] * 2 + [slice(None, None, s) for s in (*stride, *dilation)]
    return windows[tuple(every)]


@primitive
def fold(y, lengths, stride, dilation):
    """Return the sum of overlapping windows, x[…, i · stride + k · dilation] = Σ y[…, i, k].

    This is the derivative rule of `unfold`, whose docstring explains the other arguments and the
    shapes. `lengths` are those of x [B, C, *lengths]. Positions that no window covers are 0.
    """
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


# ---------------------------------------------------------------- convolution


def _multiplications(x, w, *options):
    return x.size * w.shape[0] * math.prod(w.shape[2:])


@operation("conv2d", work=_multiplications)
def convolution(x, w, bias, stride, before, after, dilation, groups):
    """Return y_o,i = b_o + Σ_c Σ_k w_o,c,k x_c,(i · stride + k · dilation - before).

    The array algebra needs no derivative rule of its own, because it consists of operations with
    rules: its gradient is a product with the weights, followed by `fold`, the rule of `unfold`.

    Args:
        x          B items with C channels, [B, C, *lengths]
        w          weights of O output channels, [O, C / groups, *kernel]
        bias       b [O], or None
        stride     distances between neighbouring windows, one for each of `lengths`
        before     numbers of zeros before x
        after      numbers of zeros after x
        dilation   distances between neighbouring positions of a window
        groups     number of groups of channels, which are convolved separately

    Returns:
        y [B, O, *positions]
    """
    n = w.ndim - 2
    if any(before) or any(after):
        x = np.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    windows = unfold(x, w.shape[2:], stride, dilation)  # [B, C, *positions, *kernel]
    inner = [1, *range(2 + n, 2 + 2 * n)]
    c_in, c_out = w.shape[1], w.shape[0] // groups
    outputs = []
    for i in range(groups):
        part = windows[:, i * c_in : (i + 1) * c_in] if groups > 1 else windows
        own = w[i * c_out : (i + 1) * c_out] if groups > 1 else w
        outputs.append(np.tensordot(part, own, (inner, [1, *range(2, 2 + n)])))
    y = np.concatenate(outputs, axis=-1) if groups > 1 else outputs[0]  # [B, *positions, O]
    return np.moveaxis(y if bias is None else y + bias, -1, 1)


def _loops(x, w, bias, stride, before, after, dilation, groups):
    I, positions = table_and_places(x.shape[2:], w.shape[2:], stride, before, after, dilation)
    dtype = np.result_type(x, w) if bias is None else np.result_type(x, w, bias)
    y = np.empty((x.shape[0], w.shape[0], len(I)), dtype)
    b = np.zeros(len(w), dtype) if bias is None else bias
    kernels.conv.conv_loops(y, one_axis(x), one_axis(w), np.asarray(b), I, groups)
    return y.reshape(*y.shape[:2], *positions), I


def _loops_backward(g, y, I, needs_grad, x, w, bias, stride, before, after, dilation, groups):
    x1, w1 = one_axis(x), one_axis(w)
    dx, dw, db = np.zeros(x1.shape, x.dtype), np.zeros(w1.shape, w.dtype), np.zeros(len(w), g.dtype)
    kernels.conv.conv_loops_backward(dx, dw, db, one_axis(g), x1, w1, I, groups)
    return [dx.reshape(x.shape), dw.reshape(w.shape), db]


def _kernel(x, w, bias, stride, before, after, dilation, groups):
    n = fast.conv.shape_of(*_two_axes(x, w, stride, before, after, dilation), groups)
    y = fast.conv.convolution(x, w, bias, n)
    return y.reshape(*y.shape[:2], *y.shape[4 - (x.ndim - 2) :]), n


def _kernel_backward(g, y, n, needs_grad, x, w, bias, stride, before, after, dilation, groups):
    x4 = x.reshape(n.B, n.C, n.H, n.W)
    dx, dw, db = fast.conv.convolution_backward(g, x4, w, n, needs_grad[0])
    return [None if dx is None else dx.reshape(x.shape), dw.reshape(w.shape), db]


def _two_axes(x, w, stride, before, after, dilation):
    """Return (x, w, stride, dilation, before, after) with two axes, of which one may be added."""
    if x.ndim == 4:
        return x, w, stride, dilation, before, after
    return (x[:, :, None], w[:, :, None], (1, *stride), (1, *dilation), (0, *before), (0, *after))


convolution.implement("sums", _loops, _loops_backward)
convolution.implement("kernel", _kernel, _kernel_backward)


# ---------------------------------------------------------------- positions and their windows


def table_and_places(lengths, kernel, stride, before, after, dilation):
    """Return a table I of the positions of x that each output reads, and the numbers of outputs.

    On each axis, I[j, i] = j · stride + i · dilation - before is the position of x that output j
    reads at position i of the kernel, or -1 where this is outside of x. The positions of several
    axes are numbered as one, in reading order (index unrolling, slide KB14).

    Args:
        lengths    lengths of the axes of x. All other arguments have one number for each axis too
        kernel     lengths of a window
        stride     distances between neighbouring windows
        before     numbers of padded positions before x
        after      numbers of padded positions after x
        dilation   distances between neighbouring positions of a window

    Returns:
        (I [P, K], numbers of outputs on each axis), for P outputs and K positions of the kernel

    Source: slide K03.
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
    """Return the number of windows that fit on each axis.

    The arguments, which have one number for each axis, are those of `table_and_places`.
    """
    each = zip(lengths, kernel, stride, before, after, dilation, strict=True)
    return tuple((n + b + a - d * (k - 1) - 1) // s + 1 for n, k, s, b, a, d in each)


def one_axis(x):
    """Return [B, C, *lengths] with all positions on one axis, as [B, C, N]."""
    return np.ascontiguousarray(x).reshape(*x.shape[:2], math.prod(x.shape[2:]))
