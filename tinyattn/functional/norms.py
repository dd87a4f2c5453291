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
    if not one and not isinstance(normalized_shape, tuple | list):
        raise TypeError(
            f"{name}: normalized_shape must be a whole number or a tuple of them, got "
            f"{normalized_shape!r}"
        )
    shape = (int(normalized_shape),) if one else tuple(normalized_shape)
    if not shape:
        raise ValueError(f"{name}: normalized_shape must contain at least one length, got ()")
    if x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{name}: x must be [..., {', '.join(map(str, shape))}] for normalized_shape="
            f"{normalized_shape!r}, got shape {x.shape}"
        )
    return tuple(range(-len(shape), 0))


def _check_shapes(name, shape, **parameters):
    """Raise unless each parameter is None or has the shape `shape`. Kernels do not broadcast."""
    for what, p in parameters.items():
        if p is not None and np.shape(p) != shape:
            raise ValueError(f"{name}: {what} must have shape {shape}, got {np.shape(p)}")
        if p is not None and not hasattr(p, "dtype"):
            raise TypeError(
                f"{name}: {what} must be an array, got {type(p).__name__}. Write np.array({what}, "
                "np.float32)"
            )


def _wide(norm, x, *parameters):
    """Compute norm(x) in float32 for x in float16, whose squares overflow from 256 on."""
    dtype = np.result_type(x.dtype, *[p.dtype for p in parameters if p is not None])
    return norm(x.astype(np.float32)).astype(dtype)


@with_torch_hints
@one_box
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Return x normalized over its last axes, (x - mean) / √(var + ε) · weight + bias.

    The mean and the variance (divided by the number of elements) are over these axes.

    Args:
        x                  [..., *normalized_shape]
        normalized_shape   lengths of the axes that are normalized, or the length of the last axis
        weight             [*normalized_shape], or None for 1
        bias               [*normalized_shape], or None for 0
        eps                ε >= 0, which keeps the divisor away from 0

    Raises:
        ValueError: the last axes of x, the weight or the bias do not have the shape
            normalized_shape, this shape is empty, or eps is negative or not finite
        TypeError: normalized_shape is neither a whole number nor a tuple of them, weight or bias is
            not an array, or eps is not a number

    Source: Ba, Kiros, Hinton 2016.
    """
    x = as_tensor(x)
    check_range("layer_norm", 0, below=math.inf, eps=eps)
    axes = _last_axes("layer_norm", x, normalized_shape)
    _check_shapes("layer_norm", x.shape[axes[0] :], weight=weight, bias=bias)
    if x.dtype == np.float16:
        return _wide(lambda x: norms.norm(x, weight, bias, eps, True, axes), x, weight, bias)
    return norms.norm(x, weight, bias, eps, True, axes)


@with_torch_hints
@one_box
def rms_norm(x, normalized_shape, weight=None, eps=None):
    """Return x divided by its root mean square over the last axes, x / √(mean(x²) + ε) · weight.

    Args:
        x                  [..., *normalized_shape]
        normalized_shape   lengths of the axes that are normalized, or the length of the last axis
        weight             [*normalized_shape], or None for 1
        eps                ε >= 0, or None for the machine precision of the dtype of x, 1.2e-7 for
                           float32

    Raises:
        ValueError: the last axes of x or the weight do not have the shape normalized_shape, this
            shape is empty, or eps is negative or not finite
        TypeError: normalized_shape is neither a whole number nor a tuple of them, weight is not an
            array, eps is neither a number nor None, or eps is None and x is not floating point

    Source: Zhang, Sennrich 2019.
    """
    x = as_tensor(x)
    check_range("rms_norm", 0, below=math.inf, eps=eps, optional=("eps",))
    axes = _last_axes("rms_norm", x, normalized_shape)
    _check_shapes("rms_norm", x.shape[axes[0] :], weight=weight)
    if eps is None and x.dtype.kind != "f":
        raise TypeError(
            f"rms_norm: x must be floating point, got {x.dtype}. Convert it with "
            ".astype(np.float32), or pass a number as eps"
        )
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
        running_mean   running average of the mean [C], an array that is updated in training. It may
                       be None in training
        running_var    running average [C] of the variance, Σ (x - mean)² / (n - 1) for n values of
                       a feature, in the same form as running_mean
        weight         [C], or None for 1
        bias           [C], or None for 0
        training       True: mean and var are computed from the batch, over all axes but axis 1,
                       and the divisor of var is n. False: they are the running averages
        momentum       m of the update, average = (1 - m) average + m batch, 0 <= m <= 1
        eps            ε >= 0, which keeps the divisor away from 0

    Raises:
        ValueError: x has fewer than two axes, an average, weight or bias is not [C], or momentum or
            eps is outside of its range
        ValueError: training is True and there are fewer than two values of each feature, or
            training is False and a running average is None
        TypeError: momentum or eps is not a number, an average, weight or bias is not an array, or
            training is True and an average is not floating point

    Source: Ioffe, Szegedy 2015.
    """
    x = as_tensor(x)
    check_range("batch_norm", 0, below=math.inf, eps=eps)
    check_range("batch_norm", 0, 1, momentum=momentum)
    if x.ndim < 2:
        raise ValueError(f"batch_norm: x must be [B, C, ...], got shape {x.shape}")
    if x.dtype == np.float16:
        parameters = weight, bias, training, momentum, eps
        return _wide(
            lambda x: batch_norm(x, running_mean, running_var, *parameters), x, weight, bias
        )
    C = x.shape[1]
    running = {"running_mean": running_mean, "running_var": running_var}
    for what, average in running.items():
        if average is None and not training:
            raise ValueError(
                f"batch_norm: without training=True, {what} must be an array [{C}], got None. Pass "
                "it, or training=True to use the mean and variance of the batch"
            )
        if (
            average is not None
            and training
            and getattr(average, "dtype", np.dtype("O")).kind != "f"
        ):
            raise TypeError(
                f"batch_norm: {what} must be a floating-point array, in which the new average is "
                f"stored, got {getattr(average, 'dtype', type(average).__name__)}"
            )
    _check_shapes("batch_norm", (C,), **running, weight=weight, bias=bias)
    n = math.prod((len(x), *x.shape[2:]))
    items = x if x.ndim == 2 else np.reshape(np.moveaxis(x, 1, -1), (n, C))
    if training:
        if n <= 1:
            raise ValueError(
                "batch_norm: the mean and variance of a batch need more than one value per "
                f"feature, got x of shape {x.shape}. Drop a last batch of one example with "
                "data.batches(..., drop_last=True), or call eval() on a model whose layers have "
                "track_running_stats=True"
            )
        mean, var = norms.statistics(to_array(items))
        for average, now in ((running_mean, mean), (running_var, var * (n / (n - 1)))):
            if average is not None:
                average[...] = (1 - momentum) * to_array(average) + momentum * now
    else:
        mean, var = to_array(running_mean), to_array(running_var)
    y = norms.batch_norm(items, weight, bias, mean, var, eps, training)
    return y if x.ndim == 2 else np.moveaxis(np.reshape(y, (len(x), *x.shape[2:], C)), -1, 1)
