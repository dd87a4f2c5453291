"""Normalization over the features of one position (layer, RMS) or over all items of a batch."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.kernels import fast
from tinyattn.ops.backends import operation

# ---------------------------------------------------------------- layer norm, RMS norm


def _norm_work(x, weight, bias, eps, centred, axes=(-1,)):
    one_dtype = all([p is None or p.dtype == x.dtype for p in (weight, bias)])
    return x.size if one_dtype and axes == (-1,) else 0


@operation("norm", work=_norm_work)
def norm(x, weight, bias, eps, centred, axes=(-1,)):
    """Return (x - m) / √(mean((x - m)²) + ε) · weight + bias, with means over some axes of x.

    Args:
        x         numbers [...]
        weight    factors in the shape of these axes, or None for 1
        bias      summands in the shape of these axes, or None for 0
        eps       ε
        centred   True: m is the mean of x (layer norm). False: m is 0 (RMS norm)
        axes      the axes of the means, counted from the end. The kernel needs (-1,)
    """
    if centred:
        x = x - np.mean(x, axis=axes, keepdims=True)
    y = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _norm_kernel(x, weight, bias, eps, centred, axes=(-1,)):
    return fast.rowwise.norm(x, weight, bias, eps, centred)


def _norm_kernel_backward(g, y, residuals, needs_grad, x, weight, bias, eps, centred, axes=(-1,)):
    return fast.rowwise.norm_backward(g, residuals, x, centred)


norm.implement("kernel", _norm_kernel, _norm_kernel_backward)

# ---------------------------------------------------------------- batch norm


def _batch_norm_work(x, weight, bias, mean, var, eps, own):
    parts = [to_array(p) for p in (weight, bias, mean, var) if p is not None]
    return x.size if x.ndim == 2 and all([p.dtype == x.dtype for p in parts]) else 0


@operation("batch_norm", work=_batch_norm_work)
def batch_norm(x, weight, bias, mean, var, eps, own):
    """Return (x - mean) / √(var + ε) · weight + bias for each feature of x [N, C].

    Args:
        x        N items with C features
        weight   [C], or None for 1
        bias     [C], or None for 0
        mean     mean of each feature, a plain array [C]
        var      variance of each feature, a plain array [C]
        eps      ε
        own      True: mean and var are the `statistics` of x itself, so gradients pass through
                 them. False: they are constants
    """
    if own:
        x = x - np.mean(x, axis=0)
        y = x / np.sqrt(np.mean(x * x, axis=0) + eps)
    else:
        y = (x - mean) / np.sqrt(var + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _batch_norm_kernel(x, weight, bias, mean, var, eps, own):
    return fast.batch_norm.batch_norm(x, weight, bias, mean, var, eps)


def _batch_norm_kernel_backward(g, y, residuals, needs_grad, x, weight, bias, mean, var, eps, own):
    return fast.batch_norm.batch_norm_backward(g, residuals, x, own)


batch_norm.implement("kernel", _batch_norm_kernel, _batch_norm_kernel_backward)


@operation("batch_norm", work=np.size)
def statistics(x):
    """Return the mean and the variance (divided by N) of each feature of a plain array x [N, C]."""
    return x.mean(axis=0), x.var(axis=0)


statistics.implement("kernel", lambda x: fast.batch_norm.statistics(x))
