"""Operations that a compiled kernel does in one pass over memory, in place of many small ones.

Each stands for a composition of ordinary operations, and is taken by itself where it is faster:
for float arrays of some size, along the last axis, when Numba is there. The composition is the
reference, and it is what is differentiated a second time: under `create_graph` the rule computes
the composition again and takes its gradients, which are recorded.
"""

import numpy as np

from tinyattn.engine.convert import as_float, to_array
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.ops import nonlinear
from tinyattn.ops.backends import kernel_is_faster
from tinyattn.ops.fused import fused
from tinyattn.ops.index import take_along_axis


def by_kernel(name, x, axis=-1):
    """Whether a kernel should do this: enough numbers of a float type in rows of their own."""
    x = to_array(x)
    along_rows = isinstance(x, np.ndarray) and x.ndim > 0 and axis in (-1, x.ndim - 1)
    return along_rows and kernel_is_faster(name, x.dtype, x.size)


# ---------------------------------------------------------------- softmax


@with_torch_hints
def softmax(x, axis=-1):
    """yᵢ = exp xᵢ / Σⱼ exp xⱼ along `axis`. The reference: ops.nonlinear.softmax."""
    x = as_float(x)
    return _softmax(x) if by_kernel("softmax", x, axis) else nonlinear.softmax(x, axis)


@with_torch_hints
def log_softmax(x, axis=-1):
    """yᵢ = xᵢ - ln Σⱼ exp xⱼ along `axis`. The reference: ops.nonlinear.log_softmax."""
    x = as_float(x)
    return _log_softmax(x) if by_kernel("log_softmax", x, axis) else nonlinear.log_softmax(x, axis)


@fused(nonlinear.softmax)
def _softmax(x):
    from tinyattn.kernels.fast import rowwise as kernel

    return kernel.softmax(x, False), None


@_softmax.defvjp
def _softmax_rule(g, y, saved, wanted, x):
    from tinyattn.kernels.fast import rowwise as kernel

    return [kernel.softmax_backward(g, y, False)]


@fused(nonlinear.log_softmax)
def _log_softmax(x):
    from tinyattn.kernels.fast import rowwise as kernel

    return kernel.softmax(x, True), None


@_log_softmax.defvjp
def _log_softmax_rule(g, y, saved, wanted, x):
    from tinyattn.kernels.fast import rowwise as kernel

    return [kernel.softmax_backward(g, y, True)]


# ---------------------------------------------------------------- cross-entropy


def negative_log_likelihood(x, ids):
    """-ln softmax(x)[id] for each row of the scores x [N, C] and its class in ids [N]."""
    return _cross_entropy(x, ids) if by_kernel("cross_entropy", x) else nll_composition(x, ids)


def nll_composition(x, ids):
    """The same as array algebra."""
    picked = take_along_axis(nonlinear.log_softmax(x, 1), ids[:, None], 1)
    return -np.squeeze(picked, 1)


@fused(nll_composition)
def _cross_entropy(x, ids):
    from tinyattn.kernels.fast import rowwise as kernel

    return kernel.cross_entropy(x, ids)


@_cross_entropy.defvjp
def _cross_entropy_rule(g, y, saved, wanted, x, ids):
    from tinyattn.kernels.fast import rowwise as kernel

    return [kernel.cross_entropy_backward(g, saved, x), None]


# ---------------------------------------------------------------- layer norm, RMS norm


def norm(x, weight, bias, eps, centred, axes=(-1,)):
    """(x - mean) / √(mean((x - mean)²) + ε) · weight + bias; without `centred` the mean is 0."""
    if _norm_by_kernel(*to_array((x, weight, bias)), axes):
        return _norm(x, weight, bias, eps, centred)
    return norm_composition(x, weight, bias, eps, centred, axes)


def _norm_by_kernel(x, weight, bias, axes):
    one_dtype = all([p is None or p.dtype == x.dtype for p in (weight, bias)])
    return one_dtype and axes == (-1,) and kernel_is_faster("norm", x.dtype, x.size)


def norm_composition(x, weight, bias, eps, centred, axes=(-1,)):
    """The same as array algebra."""
    if centred:
        x = x - np.mean(x, axis=axes, keepdims=True)
    y = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@fused(norm_composition)
def _norm(x, weight, bias, eps, centred):
    from tinyattn.kernels.fast import rowwise as kernel

    return kernel.norm(x, weight, bias, eps, centred)


@_norm.defvjp
def _norm_rule(g, y, saved, wanted, x, weight, bias, eps, centred):
    from tinyattn.kernels.fast import rowwise as kernel

    return [*kernel.norm_backward(g, saved, x, centred), None, None]


# ---------------------------------------------------------------- batch norm


def batch_norm(x, weight, bias, mean, var, eps, own):
    """(x - mean) / √(var + ε) · weight + bias, each feature (the last axis) of x [N, C].

    mean and var are arrays; own: they are those of x over N, and gradients pass through them.
    """
    parts = [to_array(p) for p in (weight, bias, mean, var) if p is not None]
    if x.ndim == 2 and by_kernel("batch_norm", x) and all([p.dtype == x.dtype for p in parts]):
        return _batch_norm(x, weight, bias, mean, var, eps, own)
    return batch_norm_composition(x, weight, bias, mean, var, eps, own)


def batch_norm_composition(x, weight, bias, mean, var, eps, own):
    """The same as array algebra."""
    if own:
        x = x - np.mean(x, axis=0)
        y = x / np.sqrt(np.mean(x * x, axis=0) + eps)
    else:
        y = (x - mean) / np.sqrt(var + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def statistics(x):
    """Mean and variance of each feature of the array x [N, C]."""
    if by_kernel("batch_norm", x):
        from tinyattn.kernels.fast import batch_norm as kernel

        return kernel.statistics(x)
    return x.mean(axis=0), x.var(axis=0)


@fused(batch_norm_composition)
def _batch_norm(x, weight, bias, mean, var, eps, own):
    from tinyattn.kernels.fast import batch_norm as kernel

    return kernel.batch_norm(x, weight, bias, mean, var, eps)


@_batch_norm.defvjp
def _batch_norm_rule(g, y, saved, wanted, x, weight, bias, mean, var, eps, own):
    from tinyattn.kernels.fast import batch_norm as kernel

    return [*kernel.batch_norm_backward(g, saved, x, own), None, None, None, None]


# ---------------------------------------------------------------- GELU

ROOT_HALF = float(np.sqrt(0.5))
ROOT_TWO_OVER_PI = float(np.sqrt(2 / np.pi))


def gelu(x, tanh):
    """x Φ(x), with Φ the normal distribution, or with tanh its approximation by tanh."""
    return _gelu(x, tanh) if by_kernel("gelu", x) else gelu_composition(x, tanh)


def gelu_composition(x, tanh):
    """The same as array algebra."""
    if tanh:
        return 0.5 * x * (1 + np.tanh(ROOT_TWO_OVER_PI * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + nonlinear.erf(x * ROOT_HALF))


@fused(gelu_composition)
def _gelu(x, tanh):
    from tinyattn.kernels.fast import rowwise as kernel

    return kernel.gelu(x, tanh), None


@_gelu.defvjp
def _gelu_rule(g, y, saved, wanted, x, tanh):
    from tinyattn.kernels.fast import rowwise as kernel

    return [kernel.gelu_backward(g, x, tanh), None]
