"""Normalization of each position separately (layer, RMS) or of each feature over the batch."""

import math

import numpy as np

from tinyattn.engine.boxes import one_box
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.ranges import check_range
from tinyattn.engine.torch_hints import with_torch_hints
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
    """Compute norm(x) in float32 for x in float16, whose squares overflow from 256 on."""
    dtype = np.result_type(x.dtype, *[p.dtype for p in parameters if p is not None])
    return norm(x.astype(np.float32)).astype(dtype)


@with_torch_hints
@one_box
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Return x normalized over its last axes, (x - mean) / √(var + ε) · weight + bias.

    Args:
        x                  [..., *normalized_shape]
        normalized_shape   sizes of the axes that are normalized, or the size of the last axis
        weight             [*normalized_shape], or None
        bias               [*normalized_shape], or None
        eps                ε >= 0

    Raises:
        ValueError: the sizes of the last axes of x differ from normalized_shape, or eps is negative

    Source: Ba, Kiros, Hinton 2016.
    """
    x = as_tensor(x)
    check_range("layer_norm", 0, below=math.inf, eps=eps)
    axes = _last_axes("layer_norm", x, normalized_shape)
    if x.dtype == np.float16:
        return _wide(lambda x: norms.norm(x, weight, bias, eps, True, axes), x, weight, bias)
    return norms.norm(x, weight, bias, eps, True, axes)


@with_torch_hints
@one_box
def rms_norm(x, normalized_shape, weight=None, eps=None):
    """Return x divided by its root mean square over the last axes, x / √(mean(x²) + ε) · weight.

    Args:
        x                  [..., *normalized_shape]
        normalized_shape   sizes of the axes that are normalized, or the size of the last axis
        weight             [*normalized_shape], or None
        eps                ε >= 0, or None for the machine precision of the dtype of x

    Raises:
        ValueError: the sizes of the last axes of x differ from normalized_shape, or eps is negative

    Source: Zhang, Sennrich 2019.
    """
    x = as_tensor(x)
    check_range("rms_norm", 0, below=math.inf, eps=eps)
    axes = _last_axes("rms_norm", x, normalized_shape)
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    if x.dtype == np.float16:
        return _wide(lambda x: norms.norm(x, weight, None, eps, False, axes), x, weight)
    return norms.norm(x, weight, None, eps, False, axes)


@with_torch_hints
@one_box
def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """Return x with each feature (axis 1) normalized, (x - mean) / √(var + ε) · weight + bias.

    Args:
        x              [B, C, ...]
        running_mean   running average of the mean [C], an array that is updated in training, or
                       None
        running_var    running average of the variance [C], in the same form
        weight         [C], or None
        bias           [C], or None
        training       True: compute mean and var from the batch instead of using the running
                       averages
        momentum       weight of the batch in the running averages, 0 <= momentum <= 1
        eps            ε >= 0

    Raises:
        ValueError: x has no axis C, in training there is a single value for each feature, or a
            setting is outside of its range

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
                f"batch_norm: training needs more than one value per feature, got shape {x.shape}. "
                "If this is the last batch of an epoch, drop it with data.batches(..., "
                "drop_last=True), or choose another batch_size"
            )
        mean, var = norms.statistics(to_array(items))
        for running, now in ((running_mean, mean), (running_var, var * (n / (n - 1)))):
            if running is not None:
                running[...] = (1 - momentum) * to_array(running) + momentum * now
    else:
        mean, var = to_array(running_mean), to_array(running_var)
    y = norms.batch_norm(items, weight, bias, mean, var, eps, training)
    return y if x.ndim == 2 else np.moveaxis(np.reshape(y, (len(x), *x.shape[2:], C)), -1, 1)
