"""Convolution and pooling layers; weights start uniform in ±1/√(fan-in), as in PyTorch."""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.random import generator
from tinyattn.nn.init import uniform_parameter
from tinyattn.nn.module import Module
from tinyattn.nn.validation import check_sizes


class _Convolution(Module):
    n_axes = None  # of the positions: 1 or 2
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
        check_sizes(
            self,
            in_channels=in_channels,
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            dilation=dilation,
            groups=groups,
        )
        by_name = isinstance(padding, str) and padding in ("same", "valid")
        check_sizes(self, least=0, padding=None if by_name else padding)
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
        """y [B, out_channels, ...];   x [B, in_channels, ...] with one or two axes of positions.

        Raises ValueError if x has other channels, or fewer positions than the kernel.
        """
        options = self.stride, self.padding, self.dilation, self.groups, self.impl
        return type(self).convolve(x, self.weight, self.bias, *options)

    def extra_repr(self):
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"


class Conv1d(_Convolution):
    """x [B, in_channels, L] → y [B, out_channels, L'], see F.conv1d."""

    n_axes, convolve = 1, staticmethod(F.conv1d)


class Conv2d(_Convolution):
    """x [B, in_channels, H, W] → y [B, out_channels, H', W'], see F.conv2d."""

    n_axes, convolve = 2, staticmethod(F.conv2d)


class _Pool(Module):
    pool = None

    def __init__(self, kernel_size, stride=None, padding=0, impl="auto"):
        check_sizes(self, kernel_size=kernel_size, stride=stride)
        check_sizes(self, least=0, padding=padding)
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.impl = impl

    def forward(self, x):
        """y [B, C, ...], one number for each window;   x [B, C, ...]."""
        options = self.kernel_size, self.stride, self.padding
        return type(self).pool(x, *options, impl=self.impl)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}"


class MaxPool1d(_Pool):
    """The largest number of each window of [B, C, L]."""

    pool = staticmethod(F.max_pool1d)


class MaxPool2d(_Pool):
    """The largest number of each window of [B, C, H, W]."""

    pool = staticmethod(F.max_pool2d)


class AvgPool2d(_Pool):
    """The mean of each window of [B, C, H, W]."""

    pool = staticmethod(F.avg_pool2d)
