"""Normalization: of each position alone (layer, RMS) or of each feature over the batch."""

import math

import numpy as np

from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.ranges import check_range
from tinyattn.ops import norms


def _last_axes(name, x, normalized_shape):
    one = isinstance(normalized_shape, int | np.integer)
    shape = (int(normalized_shape),) if one else tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{name}: expected the last axes of x to be {shape}, but x has shape {x.shape}"
        )
    return tuple(range(-len(shape), 0))


def _wide(norm, x, *parameters):
    """norm(x) in float32 for x in float16, whose squares overflow from 256 on."""
    dtype = np.result_type(x.dtype, *[p.dtype for p in parameters if p is not None])
    return norm(x.astype(np.float32)).astype(dtype)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """y = (x - mean) / √(var + ε) · weight + bias; mean and var over the last axes.

    x and y [..., *normalized_shape], weight and bias [*normalized_shape]. Raises ValueError if the
    last axes of x are others, or for a negative eps.
    Source: Ba, Kiros, Hinton 2016.
    """
    x = as_tensor(x)
    check_range("layer_norm", 0, below=math.inf, eps=eps)
    axes = _last_axes("layer_norm", x, normalized_shape)
    if x.dtype == np.float16:
        return _wide(lambda x: norms.norm(x, weight, bias, eps, True, axes), x, weight, bias)
    return norms.norm(x, weight, bias, eps, True, axes)


def rms_norm(x, normalized_shape, weight=None, eps=None):
    """y = x / √(mean(x²) + ε) · weight over the last axes; eps None: machine precision.

    x and y [..., *normalized_shape], weight [*normalized_shape]; errors as in `layer_norm`.
    Source: Zhang, Sennrich 2019.
    """
    x = as_tensor(x)
    check_range("rms_norm", 0, below=math.inf, eps=eps)
    axes = _last_axes("rms_norm", x, normalized_shape)
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    if x.dtype == np.float16:
        return _wide(lambda x: norms.norm(x, weight, None, eps, False, axes), x, weight)
    return norms.norm(x, weight, None, eps, False, axes)


def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """y = (x - mean) / √(var + ε) · weight + bias, each feature (axis 1) over all else.

    In training mean and var are those of the batch, and the running ones (Tensors or arrays, or
    None) move in place towards them by `momentum`, the variance in its unbiased form. Otherwise
    the running ones count. x and y [B, C, ...], all others [C]. Raises ValueError for x without
    an axis C, or with a single value per feature in training, for a negative eps, and for a
    momentum outside of [0, 1].
    Source: Ioffe, Szegedy 2015.
    """
    x = as_tensor(x)
    check_range("batch_norm", 0, below=math.inf, eps=eps)
    check_range("batch_norm", 0, 1, momentum=momentum)
    if x.ndim < 2:
        raise ValueError(f"batch_norm: expected [B, C, ...], got shape {x.shape}")
    if x.dtype == np.float16:
        parameters = weight, bias, training, momentum, eps
        return _wide(
            lambda x: batch_norm(x, running_mean, running_var, *parameters), x, weight, bias
        )
    C = x.shape[1]
    n = math.prod((len(x), *x.shape[2:]))
    items = x if x.ndim == 2 else np.reshape(np.moveaxis(x, 1, -1), (n, C))
    if training:
        if n <= 1:
            raise ValueError(
                f"batch_norm: expected more than one value per feature in training, got shape "
                f"{x.shape}. If this is the last batch of an epoch, leave it out with "
                f"data.batches(..., drop_last=True), or choose another batch_size"
            )
        mean, var = norms.statistics(to_array(items))
        for running, now in ((running_mean, mean), (running_var, var * (n / (n - 1)))):
            if running is not None:
                running[...] = (1 - momentum) * to_array(running) + momentum * now
    else:
        mean, var = to_array(running_mean), to_array(running_var)
    y = norms.batch_norm(items, weight, bias, mean, var, eps, training)
    return y if x.ndim == 2 else np.moveaxis(np.reshape(y, (len(x), *x.shape[2:], C)), -1, 1)
