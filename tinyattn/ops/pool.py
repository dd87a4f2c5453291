"""Pooling, which computes one number for each window, in array algebra, as loops and compiled."""

import math

import numpy as np

from tinyattn import kernels
from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.kernels import fast
from tinyattn.ops.backends import operation
from tinyattn.ops.conv import one_axis, positions_of, table_and_places, unfold


def _numbers_read(x, kernel, stride, padding, dilation):
    return x.size * math.prod(kernel)


@operation("avg_pool2d", work=_numbers_read)
def avg_pool(x, kernel, stride, padding, dilation):
    """Return the mean of each window of x. Positions in the padding count as zeros.

    Args:
        x          [B, C, *lengths]
        kernel     lengths of a window, one for each of `lengths`
        stride     distances between neighbouring windows
        padding    numbers of padded positions on both sides of x
        dilation   distances between neighbouring positions of a window

    Returns:
        [B, C, *positions], with one position for each window
    """
    windows, _ = _windows_of(x, 0, kernel, stride, padding, dilation)
    return np.mean(windows, axis=_last(kernel))


@operation("max_pool2d", work=_numbers_read)
def max_pool(x, kernel, stride, padding, dilation):
    """Return the maximum of each window of x. Positions in the padding are ignored.

    Equal maxima share the gradient. The arguments are those of `avg_pool`.
    """
    windows, inside = _windows_of(x, -np.inf, kernel, stride, padding, dilation)
    return (
        np.max(windows, axis=_last(kernel))
        if inside is None
        else _largest_inside(windows, inside, _last(kernel))
    )


@primitive
def _largest_inside(windows, inside, axes):
    """Return the maximum of each window. Padding never gets a gradient, even if all x are -∞."""
    return np.max(windows, axis=axes)


_largest_inside.defvjp(
    lambda g, y, windows, inside, axes: (
        np.expand_dims(g, axes)
        * _shares(to_array(windows), np.expand_dims(to_array(y), axes), inside, axes)
    )
)


def _shares(windows, y, inside, axes):
    """Return 1/n at the n largest (or NaN) elements of each window, and 0 elsewhere."""
    chosen = inside & ((windows == y) | ((windows != windows) & (y != y)))
    return chosen / chosen.sum(axis=axes, keepdims=True, dtype=windows.dtype)


def _windows_of(x, outside, kernel, stride, padding, dilation):
    """Return the windows [B, C, *positions, *kernel] of x, padded with `outside`, and a mask.

    The mask is False in the padding, or None if there is no padding.
    """
    if not any(padding):
        return unfold(as_tensor(x), kernel, stride, dilation), None
    widths = [(0, 0), (0, 0), *((p, p) for p in padding)]
    inside = np.pad(np.ones((1, 1, *x.shape[2:]), bool), widths)
    x = np.pad(x, widths, constant_values=outside)
    windows, inside = (unfold(as_tensor(a), kernel, stride, dilation) for a in (x, inside))
    return windows, inside.data


def _last(kernel):
    """Return the axes of the kernel, which follow batch, channels and positions."""
    n = len(kernel)
    return tuple(range(2 + n, 2 + 2 * n))


# ---------------------------------------------------------------- loops


def _avg_loops(*inputs):
    return _over_table(kernels.pool.mean, *inputs)


def _avg_loops_backward(g, y, I, needs_grad, x, kernel, stride, padding, dilation):
    dx = np.zeros((*x.shape[:2], math.prod(x.shape[2:])), x.dtype)
    kernels.pool.mean_backward(dx, one_axis(g), I)
    return [dx.reshape(x.shape)]


def _max_loops(*inputs):
    return _over_table(kernels.pool.largest, *inputs)


def _max_loops_backward(g, y, I, needs_grad, x, kernel, stride, padding, dilation):
    dx = np.zeros((*x.shape[:2], math.prod(x.shape[2:])), x.dtype)
    kernels.pool.largest_backward(dx, one_axis(g), one_axis(y), one_axis(x), I)
    return [dx.reshape(x.shape)]


def _over_table(loop, x, kernel, stride, padding, dilation):
    """Return y [B, C, *positions], computed by a loop over the table I [P, K] of places, and I."""
    I, positions = table_and_places(x.shape[2:], kernel, stride, padding, padding, dilation)
    y = np.empty((*x.shape[:2], len(I)), x.dtype)
    loop(y, one_axis(x), I)
    return y.reshape(*x.shape[:2], *positions), I


# ---------------------------------------------------------------- compiled


def _avg_kernel(x, kernel, stride, padding, dilation):
    n, y, shape = _windows(x, kernel, stride, padding, dilation)
    fast.pool.over_channels(fast.pool.mean, y, _planes(x), n=n)
    return y.reshape(shape), n


def _avg_kernel_backward(g, y, n, needs_grad, x, kernel, stride, padding, dilation):
    dx = np.zeros((x.shape[0] * x.shape[1], *_two(x.shape[2:], 1)), x.dtype)
    fast.pool.over_channels(fast.pool.mean_backward, dx, _planes(g), n=n)
    return [dx.reshape(x.shape)]


def _max_kernel(x, kernel, stride, padding, dilation):
    if math.prod(x.shape[2:]) > np.iinfo(np.int32).max:
        raise ValueError(
            f"max_pool: each channel of x {list(x.shape)} has more than 2³¹ - 1 numbers, which the "
            f'compiled loop cannot index. Use impl="numpy", or cut x into smaller images'
        )
    n, y, shape = _windows(x, kernel, stride, padding, dilation)
    place = np.empty(y.shape, np.int32)
    fast.pool.find_largest(y, place, _planes(x), n)
    return y.reshape(shape), (n, place)


def _max_kernel_backward(g, y, residuals, needs_grad, x, kernel, stride, padding, dilation):
    (n, place), x1 = residuals, _planes(x)
    dx = np.zeros(x1.shape, x.dtype)
    arrays = dx, _planes(g), _planes(y), place, x1
    fast.pool.over_channels(fast.pool.largest_backward, *arrays, n=n)
    return [dx.reshape(x.shape)]


def _windows(x, kernel, stride, padding, dilation):
    """Return the numbers n for the kernels, memory for y [B · C, rows, columns], and y's shape."""
    positions = positions_of(x.shape[2:], kernel, stride, padding, padding, dilation)
    y = np.empty((x.shape[0] * x.shape[1], *_two(positions, 1)), x.dtype)
    n = fast.pool.Windows(_two(kernel, 1), _two(stride, 1), _two(padding, 0), _two(dilation, 1))
    return n, y, (*x.shape[:2], *positions)


def _two(numbers, first):
    """Return numbers for two axes. For a single axis, `first` is inserted before its number."""
    return numbers if len(numbers) == 2 else (first, *numbers)


def _planes(x):
    """Return x [B, C, H, W] as [B · C, H, W]."""
    return np.ascontiguousarray(x).reshape(x.shape[0] * x.shape[1], *_two(x.shape[2:], 1))


avg_pool.implement("sums", _avg_loops, _avg_loops_backward)
avg_pool.implement("kernel", _avg_kernel, _avg_kernel_backward)
max_pool.implement("sums", _max_loops, _max_loops_backward)
max_pool.implement("kernel", _max_kernel, _max_kernel_backward)
