"""Normalisation of channels: over a batch of pictures, or within groups of one example."""

import numpy as np

import tinyattn.functional as F
from tinyattn.guards import DEFAULT_DTYPE
from tinyattn.nn.module import Module, Parameter
from tinyattn.nn.norms import BatchNorm1d
from tinyattn.nn.sizes import check_sizes
from tinyattn.ops.elementwise import as_tensor


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
