"""Normalization layers. Their weights are initially 1, and their biases are initially 0."""

import math

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.engine.ranges import check_range
from tinyattn.nn.module import Buffer, Module, Parameter
from tinyattn.nn.validation import check_sizes


def _ones(shape):
    return Parameter(np.ones(shape, DEFAULT_DTYPE))


def _zeros(shape):
    return Parameter(np.zeros(shape, DEFAULT_DTYPE))


def _as_shape(layer, shape):
    """Return normalized_shape as a tuple, or raise ValueError if it is not one or several sizes."""
    check_sizes(layer, normalized_shape=shape)
    if np.size(shape) == 0:
        raise ValueError(
            f"{type(layer).__name__}: normalized_shape must contain at least one size, got {shape}"
        )
    return (shape,) if isinstance(shape, int | np.integer) else tuple(shape)


class LayerNorm(Module):
    """Layer norm, y = (x - mean) / √(var + ε) · weight + bias, for each position separately.

    The mean and the variance are computed over the last axes. For n numbers, both have the divisor
    n. The parameters weight and bias have the shape normalized_shape, and are initially 1 and 0.
    Source: Ba, Kiros, Hinton 2016.

    Args:
        normalized_shape     sizes of the last axes, which are normalized together, or one number
                             for the last axis alone
        eps                  ε >= 0, which keeps the divisor away from 0
        elementwise_affine   False: there is neither weight nor bias
        bias                 False: there is no bias

    Raises:
        ValueError: a size is not a whole number of at least 1, or eps is negative or infinite
        TypeError: eps is not a number
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True):
        self.normalized_shape, self.eps = _as_shape(self, normalized_shape), eps
        check_range(type(self).__name__, 0, below=math.inf, eps=eps)
        self.weight = _ones(self.normalized_shape) if elementwise_affine else None
        self.bias = _zeros(self.normalized_shape) if elementwise_affine and bias else None

    def forward(self, x):
        """Normalize x over its last axes. Shape: x [..., *normalized_shape] → the same.

        Raises:
            ValueError: the sizes of the last axes of x differ from normalized_shape
        """
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """Root-mean-square norm, y = x / √(mean(x²) + ε) · weight, over the last axes.

    The parameter weight has the shape normalized_shape, and is initially 1. Source: Zhang, Sennrich
    2019.

    Args:
        normalized_shape     sizes of the last axes, which are normalized together, or one number
                             for the last axis alone
        eps                  ε >= 0, which keeps the divisor away from 0, or None for the machine
                             precision of the dtype of x
        elementwise_affine   False: there is no weight

    Raises:
        ValueError: a size is not a whole number of at least 1, or eps is negative or infinite
        TypeError: eps is not a number
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True):
        self.normalized_shape, self.eps = _as_shape(self, normalized_shape), eps
        check_range(type(self).__name__, 0, below=math.inf, eps=eps, optional=("eps",))
        self.weight = _ones(self.normalized_shape) if elementwise_affine else None

    def forward(self, x):
        """Normalize x over its last axes. Shape: x [..., *normalized_shape] → the same.

        Raises:
            ValueError: the sizes of the last axes of x differ from normalized_shape
            TypeError: eps is None, and x is not floating point
        """
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


class BatchNorm1d(Module):
    """Batch norm, y = (x - mean) / √(var + ε) · weight + bias, for each feature over the batch.

    In training, mean and var come from the batch, and the layer keeps running averages of them. For
    n values of a feature, the divisor of var is n in y, but n - 1 in the running average. In
    evaluation mode, the layer uses the running averages. The parameters weight [C] and bias [C] are
    initially 1 and 0. Source: Ioffe, Szegedy 2015.

    Args:
        num_features          number C of features
        eps                   ε >= 0, which keeps the divisor away from 0
        momentum              weight of the newest batch in the running averages, from 0 to 1, or
                              None for a plain average over all batches
        affine                False: there is neither weight nor bias
        track_running_stats   False: there are no running averages, and the statistics of the batch
                              are also used in evaluation mode

    Raises:
        ValueError: num_features is not a whole number of at least 1, eps is negative or infinite,
            or momentum is not from 0 to 1
        TypeError: eps or momentum is not a number
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        check_sizes(self, single=True, num_features=num_features)
        check_range(type(self).__name__, 0, below=math.inf, eps=eps)
        check_range(type(self).__name__, 0, 1, momentum=momentum, optional=("momentum",))
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = _ones(num_features) if affine else None
        self.bias = _zeros(num_features) if affine else None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            self.running_mean = Buffer(np.zeros(num_features, DEFAULT_DTYPE))
            self.running_var = Buffer(np.ones(num_features, DEFAULT_DTYPE))
            self.num_batches_tracked = Buffer(np.array(0, dtype=np.int64))

    def forward(self, x):
        """Apply the layer. Shape: x [B, C] or [B, C, L] → the same.

        In training, the running averages are updated.

        Raises:
            ValueError: x has a different shape, or the mean and the variance would be computed from
                a single number for each feature
        """
        x = as_tensor(x)
        if x.ndim not in (2, 3) or x.shape[1] != self.num_features:
            last = x.ndim == 3 and x.shape[-1] == self.num_features
            advice = ". If the features are the last axis, write np.swapaxes(x, 1, 2)" * last
            raise ValueError(
                f"BatchNorm1d: x must be [B, {self.num_features}] or [B, {self.num_features}, L], "
                f"got shape {x.shape}{advice}"
            )
        momentum, count = 0.0 if self.momentum is None else self.momentum, None
        if self.training and self.num_batches_tracked is not None:
            count = self.num_batches_tracked.data + 1
            if self.momentum is None:  # this gives the plain average over all batches
                momentum = 1 / count.item()
        y = F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
        )
        if count is not None:  # after the checks, so that a refused batch does not count
            self.num_batches_tracked.data = count
        return y

    def extra_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm2d(BatchNorm1d):
    """Batch norm of images, which normalizes each channel over the batch and all pixels.

        y = (x - mean) / √(var + ε) · weight + bias

    In training, mean and var come from the batch, and the layer keeps running averages of them, as
    in `BatchNorm1d`. In evaluation mode, it uses the running averages. The parameters weight [C]
    and bias [C] are initially 1 and 0. Source: Ioffe, Szegedy 2015.

    Args:
        num_features          number C of channels
        eps                   ε >= 0, which keeps the divisor away from 0
        momentum              weight of the newest batch in the running averages, from 0 to 1, or
                              None for a plain average over all batches
        affine                False: there is neither weight nor bias
        track_running_stats   False: there are no running averages, and the statistics of the batch
                              are also used in evaluation mode

    Raises:
        ValueError: num_features is not a whole number of at least 1, eps is negative or infinite,
            or momentum is not from 0 to 1
        TypeError: eps or momentum is not a number
    """

    def forward(self, x):
        """Apply the layer. Shape: x [B, C, H, W] → the same.

        In training, the running averages are updated.

        Raises:
            ValueError: x has a different shape, or the mean and the variance would be computed from
                a single number for each channel
        """
        x = as_tensor(x)
        if x.ndim != 4 or x.shape[1] != self.num_features:
            last = x.ndim == 4 and x.shape[-1] == self.num_features
            advice = ". If the channels are the last axis, write np.moveaxis(x, -1, 1)" * last
            raise ValueError(
                f"BatchNorm2d: x must be [B, {self.num_features}, H, W], got shape {x.shape}"
                f"{advice}"
            )
        return np.reshape(super().forward(np.reshape(x, (*x.shape[:2], -1))), x.shape)


class GroupNorm(Module):
    """Group norm, y = (x - mean) / √(var + ε) · weight + bias, over groups of channels.

    For each example and each group, the mean and the variance are computed over the channels of the
    group and all positions. Examples do not affect each other, so a batch may be small. With one
    group for each channel, the result is instance norm. Each channel has its own weight and bias,
    which are initially 1 and 0. Source: Wu, He 2018.

    Args:
        num_groups     number of groups, which divides num_channels
        num_channels   number C of channels
        eps            ε >= 0, which keeps the divisor away from 0
        affine         False: there is neither weight nor bias

    Raises:
        ValueError: num_groups does not divide num_channels, one of them is not a whole number of at
            least 1, or eps is negative or infinite
        TypeError: eps is not a number
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
        check_sizes(self, single=True, num_groups=num_groups, num_channels=num_channels)
        check_range("GroupNorm", 0, below=math.inf, eps=eps)
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_groups={num_groups} must divide num_channels={num_channels}"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter(np.ones(num_channels, DEFAULT_DTYPE)) if affine else None
        self.bias = Parameter(np.zeros(num_channels, DEFAULT_DTYPE)) if affine else None

    def forward(self, x):
        """Normalize each group of channels. Shape: x [B, C, ...] → the same.

        Raises:
            ValueError: x has a different number of channels, or fewer than two axes
        """
        x = as_tensor(x)
        B, C, *places = x.shape if x.ndim > 1 else (0, -1)
        if self.num_channels != C:
            raise ValueError(
                f"GroupNorm: x must be [B, {self.num_channels}, ...], got shape {x.shape}"
            )
        size = C // self.num_groups * int(np.prod(places, dtype=np.int64))
        groups = np.reshape(x, (B, self.num_groups, size))
        y = np.reshape(F.layer_norm(groups, size, eps=self.eps), x.shape)
        if self.weight is None:
            return y
        column = (C, *[1] * len(places))
        return y * np.reshape(self.weight, column) + np.reshape(self.bias, column)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"
