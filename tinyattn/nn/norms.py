"""Normalisation layers; weights start at 1 and biases at 0, so that they first only normalise."""

import numpy as np

import tinyattn.functional as F
from tinyattn.guards import DEFAULT_DTYPE
from tinyattn.nn.module import Buffer, Module, Parameter
from tinyattn.nn.sizes import check_sizes
from tinyattn.ops.elementwise import as_tensor


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
