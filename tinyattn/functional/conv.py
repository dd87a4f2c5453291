"""Convolution and pooling in one and two dimensions, made of sliding windows.

x is [B, C, L] or [B, C, H, W]; without the batch axis it gets one for the time of the call.
"""

import numpy as np

from tinyattn.autograd import Tensor
from tinyattn.ops.conv import unfold


def _each(name, what, value, n):
    """An option as n whole numbers."""
    values = (value,) * n if np.isscalar(value) else tuple(value)
    if len(values) != n or not all(isinstance(v, int | np.integer) for v in values):
        raise ValueError(f"{name}: {what} is a whole number or {n} of them, got {value!r}")
    return tuple(int(v) for v in values)


def _batched(name, x, n):
    x = x if isinstance(x, Tensor) else Tensor(x)
    if x.ndim not in (n + 1, n + 2):
        axes = ["C", "L"] if n == 1 else ["C", "H", "W"]
        raise ValueError(
            f"{name}: expected [B, {', '.join(axes)}] or [{', '.join(axes)}], got shape {x.shape}"
        )
    return (x, False) if x.ndim == n + 2 else (x[None], True)


def _framed(x, before, after, value=0):
    """x with a frame of `value` around its last axes."""
    if not any(before) and not any(after):
        return x
    widths = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    return np.pad(x, widths, constant_values=value)


def _not_negative(name, padding):
    if min(padding) < 0:
        raise ValueError(f"{name}: padding must not be negative, got {padding}")


def _check_fit(name, x, span):
    if any(length < s for length, s in zip(x.shape[2:], span, strict=True)):
        raise ValueError(
            f"{name}: a window of {span} does not fit into {x.shape[2:]} (padding included)"
        )


def _convolution(name, x, weight, bias, stride, padding, dilation, groups, n):
    x, unbatched = _batched(name, x, n)
    kernel = weight.shape[2:]
    if weight.ndim != n + 2 or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ValueError(
            f"{name}: x has shape {x.shape} and the weight {weight.shape} [out, in / groups, "
            f"*kernel] with groups={groups}; the channels do not match"
        )
    stride, dilation = (
        _each(name, w, v, n) for w, v in (("stride", stride), ("dilation", dilation))
    )
    if min(stride) < 1 or min(dilation) < 1:
        raise ValueError(f"{name}: stride and dilation start at 1, got {stride}, {dilation}")
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    if padding == "same":
        if max(stride) > 1:
            raise ValueError(f'{name}: padding="same" needs stride 1, got {stride}')
        before = tuple((s - 1) // 2 for s in span)
        after = tuple(s - 1 - b for s, b in zip(span, before, strict=True))
    else:
        before = after = _each(name, "padding", 0 if padding == "valid" else padding, n)
        _not_negative(name, before)
    x = _framed(x, before, after)
    _check_fit(name, x, span)
    windows = unfold(x, kernel, stride, dilation)  # [B, C, *positions, *kernel]
    inner = [1, *range(2 + n, 2 + 2 * n)]
    outputs = []
    c_in, c_out = weight.shape[1], weight.shape[0] // groups
    for i in range(groups):
        part = windows[:, i * c_in : (i + 1) * c_in] if groups > 1 else windows
        w = weight[i * c_out : (i + 1) * c_out] if groups > 1 else weight
        outputs.append(np.tensordot(part, w, (inner, [1, *range(2, 2 + n)])))  # [B, *positions, O]
    y = np.concatenate(outputs, axis=-1) if groups > 1 else outputs[0]
    y = np.moveaxis(y if bias is None else y + bias, -1, 1)
    return y[0] if unbatched else y


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """y[o, i] = b[o] + Σ_c Σ_k w[o, c, k] x[c, i · stride + k · dilation - padding].

    x [B, C, L], weight [O, C / groups, K], y [B, O, L']. padding: a number, "same" or "valid".
    """
    return _convolution("conv1d", x, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The same over two axes: x [B, C, H, W], weight [O, C / groups, KH, KW], y [B, O, H', W']."""
    return _convolution("conv2d", x, weight, bias, stride, padding, dilation, groups, 2)


def _windows(name, x, kernel_size, stride, padding, dilation, n, fill):
    kernel = _each(name, "kernel_size", kernel_size, n)
    stride = kernel if stride is None else _each(name, "stride", stride, n)
    padding, dilation = _each(name, "padding", padding, n), _each(name, "dilation", dilation, n)
    if min(kernel) < 1 or min(stride) < 1 or min(dilation) < 1:
        raise ValueError(
            f"{name}: kernel_size, stride and dilation start at 1, got {kernel}, {stride}, "
            f"{dilation}"
        )
    _not_negative(name, padding)
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise ValueError(f"{name}: padding {padding} is more than half the kernel {kernel}")
    x = _framed(x, padding, padding, fill)
    _check_fit(name, x, tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)))
    return unfold(x, kernel, stride, dilation)


def _refuse(name, **options):
    for option, (value, only) in options.items():
        if value is not only and value != only:
            raise NotImplementedError(f"{name}: only {option}={only}, got {value!r}")


def _max_pool(name, x, kernel_size, stride, padding, dilation, n):
    x, unbatched = _batched(name, x, n)
    windows = _windows(name, x, kernel_size, stride, padding, dilation, n, -np.inf)
    y = windows.max(axis=tuple(range(2 + n, 2 + 2 * n)))
    return y[0] if unbatched else y


def max_pool1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The largest number of each window; tied ones share the gradient. stride None: the kernel."""
    _refuse("max_pool1d", ceil_mode=(ceil_mode, False))
    return _max_pool("max_pool1d", x, kernel_size, stride, padding, dilation, 1)


def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """The largest number of each window of [B, C, H, W]."""
    _refuse("max_pool2d", ceil_mode=(ceil_mode, False))
    return _max_pool("max_pool2d", x, kernel_size, stride, padding, dilation, 2)


def _avg_pool(name, x, kernel_size, stride, padding, n):
    x, unbatched = _batched(name, x, n)
    windows = _windows(name, x, kernel_size, stride, padding, 1, n, 0)
    y = windows.mean(axis=tuple(range(2 + n, 2 + 2 * n)))
    return y[0] if unbatched else y


def avg_pool1d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window; the padding counts as zeros."""
    _refuse("avg_pool1d", ceil_mode=(ceil_mode, False), count_include_pad=(count_include_pad, True))
    return _avg_pool("avg_pool1d", x, kernel_size, stride, padding, 1)


def avg_pool2d(
    x,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """The mean of each window of [B, C, H, W]; the padding counts as zeros."""
    _refuse(
        "avg_pool2d",
        ceil_mode=(ceil_mode, False),
        count_include_pad=(count_include_pad, True),
        divisor_override=(divisor_override, None),
    )
    return _avg_pool("avg_pool2d", x, kernel_size, stride, padding, 2)


def pad(input, pad, mode="constant", value=0.0):
    """Add (or with negative widths cut off) elements at the ends of the last axes.

    `pad` counts from the last axis: (left, right, top, bottom, …), as in PyTorch.
    """
    _refuse("pad", mode=(mode, "constant"))
    if len(pad) % 2 or len(pad) // 2 > input.ndim:
        raise ValueError(
            f"pad: expected (before, after) for each of the last axes of {input.shape}, got {pad}"
        )
    widths = [(0, 0)] * (input.ndim - len(pad) // 2)
    widths += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    cut = tuple(
        slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, input.shape, strict=True)
    )
    x = input if isinstance(input, Tensor) else Tensor(input)
    grown = [(max(0, a), max(0, b)) for a, b in widths]
    return np.pad(x[cut], grown, constant_values=0.0 if value is None else value)
