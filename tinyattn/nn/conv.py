"""Convolution and pooling layers.

Initial weights and biases are uniform in ±1/√(fan-in), as in PyTorch.
"""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.random import generator
from tinyattn.nn.init import uniform_parameter
from tinyattn.nn.module import Module
from tinyattn.nn.validation import check_sizes


class _Convolution(Module):
    n_axes = None  # number of axes of the positions: 1 or 2
    convolve = None

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        rng=None,
        impl="auto",
    ):
        numbers = {"in_channels": in_channels, "out_channels": out_channels, "groups": groups}
        check_sizes(self, single=True, **numbers)
        check_sizes(self, kernel_size=kernel_size, stride=stride, dilation=dilation)
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(
                f'{type(self).__name__}: padding must be a whole number of at least 0, "same" or '
                f'"valid", got {padding!r}'
            )
        if not isinstance(padding, str):
            check_sizes(self, least=0, padding=padding)
        for name, value in (
            ("kernel_size", kernel_size),
            ("stride", stride),
            ("padding", padding),
            ("dilation", dilation),
        ):
            if isinstance(value, tuple | list | np.ndarray) and len(value) != self.n_axes:
                pair = ", or a pair (vertical, horizontal) of them" * (self.n_axes == 2)
                raise ValueError(
                    f"{type(self).__name__}: {name} must be a whole number{pair}, got {value!r}"
                )
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: groups={groups} must divide in_channels={in_channels} "
                f"and out_channels={out_channels}"
            )
        rng = generator(rng)
        kernel = (kernel_size,) * self.n_axes if np.isscalar(kernel_size) else tuple(kernel_size)
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.impl = impl  # "sums", "numpy", "kernel" or "auto", see F.conv1d
        shape = (out_channels, in_channels // groups, *kernel)
        bound = 1 / np.sqrt(np.prod(shape[1:]))
        self.weight = uniform_parameter(shape, bound, rng)
        self.bias = uniform_parameter((out_channels,), bound, rng) if bias else None

    def forward(self, x):
        """Apply the layer. Shape: x [B, in_channels, ...] → [B, out_channels, ...].

        The axis B may be missing. The dots stand for one axis in `nn.Conv1d`, and for two axes in
        `nn.Conv2d`.

        Raises:
            ValueError: x does not have these axes or this number of channels, the kernel does not
                fit into x, padding="same" is used with a stride above 1, or impl is unknown
        """
        options = self.stride, self.padding, self.dilation, self.groups, self.impl
        return type(self).convolve(x, self.weight, self.bias, *options)

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"


class Conv1d(_Convolution):
    """A convolution along one axis, which maps x [B, in_channels, L] to y [B, out_channels, L'].

        y[o, i] = bias[o] + Σ_c Σ_k weight[o, c, k] x[c, i · stride + k · dilation - padding]
        L' = ⌊(L + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1

    Outside of the sequence, x is 0, and c counts the channels of a group (all with groups=1). The
    parameters are weight [out_channels, in_channels / groups, kernel_size] and bias [out_channels].
    Their initial values are uniform in ±1/√(in_channels / groups · kernel_size).

    Args:
        in_channels    number of channels of x
        out_channels   number of channels of y
        kernel_size    number of positions that an output depends on
        stride         distance in x between the windows of neighbouring outputs
        padding        number of zeros on each side, "same" for the number that gives L' = L (only
                       with stride=1), or "valid" for 0
        dilation       distance between neighbouring positions that an output depends on
        groups         number of groups of channels, which are convolved separately. It must divide
                       in_channels and out_channels
        bias           False: there is no bias
        rng            seed or numpy.random.Generator for the initial values, or None for the
                       default generator
        impl           "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the
                       faster of "numpy" and "kernel")

    Raises:
        ValueError: groups does not divide both numbers of channels, a number is not a whole number
            in its range, or padding is an unknown string
    """

    n_axes, convolve = 1, staticmethod(F.conv1d)


class Conv2d(_Convolution):
    """A convolution of images, which maps x [B, in_channels, H, W] to y [B, out_channels, H', W'].

    The formula is the same as in `nn.Conv1d`, but with two axes. The parameters are weight
    [out_channels, in_channels / groups, *kernel_size] and bias [out_channels]. Their initial values
    are uniform in ±1/√(in_channels / groups · pixels of the kernel). The kernel size, stride,
    padding and dilation are a number for both axes or a pair (vertical, horizontal).

    Args:
        in_channels    number of channels of x
        out_channels   number of channels of y
        kernel_size    size of the window that an output depends on
        stride         distance in x between the windows of neighbouring outputs
        padding        number of zeros on each side, "same" for the numbers that keep the size of
                       the image (only with stride=1), or "valid" for 0
        dilation       distance between neighbouring pixels that an output depends on
        groups         number of groups of channels, which are convolved separately. It must divide
                       in_channels and out_channels
        bias           False: there is no bias
        rng            seed or numpy.random.Generator for the initial values, or None for the
                       default generator
        impl           "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the
                       faster of "numpy" and "kernel")

    Raises:
        ValueError: groups does not divide both numbers of channels, a number is not a whole number
            in its range, padding is an unknown string, or a tuple is not a pair
    """

    n_axes, convolve = 2, staticmethod(F.conv2d)


class _Pool(Module):
    pool = None

    def __init__(self, kernel_size, stride=None, padding=0, impl="auto"):
        check_sizes(self, kernel_size=kernel_size, stride=stride, optional=("stride",))
        check_sizes(self, least=0, padding=padding)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.impl = impl

    def forward(self, x):
        """Apply the layer. Shape: x [B, C, ...] → [B, C, ...], with a number for each window.

        The axis B may be missing.

        Raises:
            ValueError: x does not have these axes, the window does not fit into x, padding exceeds
                half of the window, a tuple does not have one number for each axis of the window, or
                impl is unknown
        """
        options = self.kernel_size, self.stride, self.padding
        return type(self).pool(x, *options, impl=self.impl)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}"


class MaxPool1d(_Pool):
    """The maximum of each window of x [B, C, L], computed by `F.max_pool1d`.

    The result is [B, C, L'] with L' = ⌊(L + 2 padding - kernel_size) / stride⌋ + 1. Equal maxima
    share the gradient.

    Args:
        kernel_size   size of the window
        stride        distance between neighbouring windows, or None for kernel_size
        padding       number of positions with -inf on each side, at most kernel_size / 2
        impl          "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the
                      faster of "numpy" and "kernel")

    Raises:
        ValueError: a number is not a whole number in its range
    """

    pool = staticmethod(F.max_pool1d)


class MaxPool2d(_Pool):
    """The maximum of each window of images x [B, C, H, W], computed by `F.max_pool2d`.

    The result is [B, C, H', W'] with H' = ⌊(H + 2 padding - kernel_size) / stride⌋ + 1, and W' in
    the same way. Equal maxima share the gradient.

    Args:
        kernel_size   size of the window, one number or a pair (vertical, horizontal)
        stride        distance between neighbouring windows, one number or a pair, or None for
                      kernel_size
        padding       number of pixels with -inf on each side, one number or a pair, at most
                      kernel_size / 2
        impl          "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the
                      faster of "numpy" and "kernel")

    Raises:
        ValueError: a number is not a whole number in its range
    """

    pool = staticmethod(F.max_pool2d)


class AvgPool2d(_Pool):
    """The mean of each window of images x [B, C, H, W], computed by `F.avg_pool2d`.

    The result is [B, C, H', W'] with H' = ⌊(H + 2 padding - kernel_size) / stride⌋ + 1, and W' in
    the same way.

    Args:
        kernel_size   size of the window, one number or a pair (vertical, horizontal)
        stride        distance between neighbouring windows, one number or a pair, or None for
                      kernel_size
        padding       number of zeros on each side, one number or a pair, at most kernel_size / 2,
                      which count in the mean
        impl          "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the
                      faster of "numpy" and "kernel")

    Raises:
        ValueError: a number is not a whole number in its range
    """

    pool = staticmethod(F.avg_pool2d)
