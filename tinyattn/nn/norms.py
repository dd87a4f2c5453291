"""Normalisation layers; weights start at 1 and biases at 0, so that they first only normalise."""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.nn.module import Buffer, Module, Parameter
from tinyattn.nn.validation import check_sizes


def _ones(shape):
    return Parameter(np.ones(shape, DEFAULT_DTYPE))


def _zeros(shape):
    return Parameter(np.zeros(shape, DEFAULT_DTYPE))


def _as_shape(shape):
    return (shape,) if isinstance(shape, int | np.integer) else tuple(shape)


class LayerNorm(Module):
    """y = (x - mean) / √(var + ε) · weight + bias, over the last axes of each position alone.

    Source: Ba, Kiros, Hinton 2016.
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True):
        check_sizes(self, normalized_shape=normalized_shape)
        self.normalized_shape, self.eps = _as_shape(normalized_shape), eps
        self.weight = _ones(self.normalized_shape) if elementwise_affine else None
        self.bias = _zeros(self.normalized_shape) if elementwise_affine and bias else None

    def forward(self, x):
        """y, in the shape of x;   x [..., *normalized_shape]. Raises ValueError for others."""
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """y = x / √(mean(x²) + ε) · weight, over the last axes. Source: Zhang, Sennrich 2019.

    eps None is the machine precision of the dtype of x.
    """

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True):
        check_sizes(self, normalized_shape=normalized_shape)
        self.normalized_shape, self.eps = _as_shape(normalized_shape), eps
        self.weight = _ones(self.normalized_shape) if elementwise_affine else None

    def forward(self, x):
        """y, in the shape of x;   x [..., *normalized_shape]. Raises ValueError for others."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}"


class BatchNorm1d(Module):
    """y = (x - mean) / √(var + ε) · weight + bias, each feature over the batch.

    x is [B, C] or [B, C, L]. In training the statistics are those of the batch, and running
    averages of them are kept (momentum: weight of the newest), which `eval` mode uses.
    Source: Ioffe, Szegedy 2015.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        check_sizes(self, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = _ones(num_features) if affine else None
        self.bias = _zeros(num_features) if affine else None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            self.running_mean = Buffer(np.zeros(num_features, DEFAULT_DTYPE))
            self.running_var = Buffer(np.ones(num_features, DEFAULT_DTYPE))
            self.num_batches_tracked = Buffer(np.array(0, dtype=np.int64))

    def forward(self, x):
        """y, in the shape of x;   x [B, C] or [B, C, L].

        Raises ValueError for other shapes, and in training for a single number per feature.
        """
        x = as_tensor(x)
        if x.ndim not in (2, 3) or x.shape[1] != self.num_features:
            raise ValueError(
                f"BatchNorm1d: expected [B, {self.num_features}] or "
                f"[B, {self.num_features}, L], got {x.shape}"
            )
        momentum = self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.data = self.num_batches_tracked.data + 1
            if momentum is None:  # a plain average over all batches
                momentum = 1 / self.num_batches_tracked.item()
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
        )

    def extra_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm2d(BatchNorm1d):
    """As `BatchNorm1d`, for pictures x [B, C, H, W]: each channel over batch and pixels.

    Source: Ioffe, Szegedy 2015.
    """

    def forward(self, x):
        """y, in the shape of x [B, C, H, W]. Raises ValueError for other shapes."""
        x = as_tensor(x)
        if x.ndim != 4 or x.shape[1] != self.num_features:
            raise ValueError(f"BatchNorm2d: expected [B, {self.num_features}, H, W], got {x.shape}")
        return np.reshape(super().forward(np.reshape(x, (*x.shape[:2], -1))), x.shape)


class GroupNorm(Module):
    """y = (x - mean) / √(var + ε) · weight + bias; mean and var over a group of channels.

    x [B, C, ...]. Examples do not affect each other, so batches may be small; num_groups = C is
    instance norm. Weight and bias [C] belong to the channels. Source: Wu, He 2018.
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
        check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_groups={num_groups} must divide num_channels={num_channels}"
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter(np.ones(num_channels, DEFAULT_DTYPE)) if affine else None
        self.bias = Parameter(np.zeros(num_channels, DEFAULT_DTYPE)) if affine else None

    def forward(self, x):
        """y, in the shape of x [B, C, ...]. Raises ValueError for another number of channels."""
        x = as_tensor(x)
        B, C, *places = x.shape if x.ndim > 1 else (0, -1)
        if self.num_channels != C:
            raise ValueError(f"GroupNorm: expected [B, {self.num_channels}, ...], got {x.shape}")
        size = C // self.num_groups * int(np.prod(places, dtype=np.int64))
        groups = np.reshape(x, (B, self.num_groups, size))
        y = np.reshape(F.layer_norm(groups, size, eps=self.eps), x.shape)
        if self.weight is None:
            return y
        column = (C, *[1] * len(places))
        return y * np.reshape(self.weight, column) + np.reshape(self.bias, column)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"
