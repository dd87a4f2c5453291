"""Convolution and pooling in one and two dimensions, based on sliding windows.

`impl` selects the implementation. All implementations give the same result and gradients:

    "sums"    the index sum of slide K03 as loops over a table of neighbours (compiled if Numba is
              installed)
    "numpy"   array algebra: all windows form one array, which a convolution multiplies by its
              weights
    "kernel"  compiled code, which computes a convolution block by block and a pooling channel by
              channel
    "auto"    "kernel" where it is faster, otherwise "numpy"

x is [B, C, L] or [B, C, H, W]. If the batch axis is missing, it is added during the call.
"""

import numpy as np

from tinyattn.engine.convert import as_tensor, of_one_dtype
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.ops.conv import convolution, table_and_places
from tinyattn.ops.pool import avg_pool, max_pool


def _as_tuple(name, what, value, n):
    """Return an option as a tuple of n whole numbers."""
    values = (value,) * n if np.isscalar(value) else tuple(value)
    if len(values) != n or not all(isinstance(v, int | np.integer) for v in values):
        raise ValueError(f"{name}: {what} must be a whole number or {n} of them, got {value!r}")
    return tuple(int(v) for v in values)


def _batched(name, x, n):
    x = as_tensor(x)
    if x.ndim not in (n + 1, n + 2):
        axes = ["C", "L"] if n == 1 else ["C", "H", "W"]
        raise ValueError(
            f"{name}: expected [B, {', '.join(axes)}] or [{', '.join(axes)}], got shape {x.shape}"
        )
    return (x, False) if x.ndim == n + 2 else (x[None], True)


def _check_not_negative(name, padding):
    if min(padding) < 0:
        raise ValueError(f"{name}: expected padding >= 0, got padding={padding}")


def _check_fit(name, lengths, span):
    if any(length < s for length, s in zip(lengths, span, strict=True)):
        raise ValueError(
            f"{name}: a window of {span} does not fit into {tuple(lengths)} (padding included). "
            "Choose a smaller kernel or more padding"
        )


def _advice_on_channels(x, unbatched, weight, groups):
    """Return advice for images without a channel axis, or with the channels last."""
    channels = weight.shape[1] * groups if weight.ndim == x.ndim else 0
    if unbatched and channels == 1:
        axes = "N, L" if x.ndim == 3 else "N, H, W"
        return f". For a batch [{axes}] without channels write x[:, None]"
    if channels and x.shape[-1] == channels:
        return f". If the channels are the last axis, write np.moveaxis(x, -1, {-x.ndim + 1})"
    return ""


def _convolution(name, x, weight, bias, stride, padding, dilation, groups, impl, n):
    x, unbatched = _batched(name, x, n)
    x, weight, bias = of_one_dtype(x, weight, bias)
    kernel = weight.shape[2:]
    if weight.ndim != n + 2 or x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        shape = x.shape[unbatched:]
        raise ValueError(
            f"{name}: the channels do not match, because x has shape {shape} and the weight has "
            f"{weight.shape} [out, in / groups, *kernel] with groups={groups}"
            f"{_advice_on_channels(x, unbatched, weight, groups)}"
        )
    stride, dilation = (
        _as_tuple(name, w, v, n) for w, v in (("stride", stride), ("dilation", dilation))
    )
    if min(stride) < 1 or min(dilation) < 1:
        raise ValueError(
            f"{name}: expected stride >= 1 and dilation >= 1, got stride={stride}, "
            f"dilation={dilation}"
        )
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    if padding == "same":
        if max(stride) > 1:
            raise ValueError(f'{name}: padding="same" needs stride=1, got stride={stride}')
        before = tuple((s - 1) // 2 for s in span)
        after = tuple(s - 1 - b for s, b in zip(span, before, strict=True))
    else:
        before = after = _as_tuple(name, "padding", 0 if padding == "valid" else padding, n)
        _check_not_negative(name, before)
    _check_fit(name, [n + b + a for n, b, a in zip(x.shape[2:], before, after, strict=True)], span)
    options = stride, before, after, dilation, groups
    y = convolution(x, weight, bias, *options, impl=impl, name=name)
    return y[0] if unbatched else y


def neighbour_table(lengths, kernel_size, stride=1, padding=0, dilation=1):
    """Return the position of x that each output reads at each position of the kernel.

    Entry I[j, i] of the table belongs to output j and position i of the kernel. It is -1 in the
    padding.

    Args:
        lengths       shape of x, (L,) or (H, W). The positions are numbered row by row
        kernel_size   size of the window
        stride        distance between neighbouring outputs
        padding       number of padded positions on both sides of x, which have the index -1
        dilation      distance between neighbouring positions that an output reads

    Returns:
        the table I [P, K] of whole numbers, for P outputs and K positions of the kernel

    Raises:
        ValueError: the window does not fit

    Source: slide K03.
    """
    each = (kernel_size, stride, padding, dilation)
    names = ("kernel_size", "stride", "padding", "dilation")
    kernel, stride, padding, dilation = (
        _as_tuple("neighbour_table", name, value, len(lengths))
        for name, value in zip(names, each, strict=True)
    )
    if min(kernel) < 1 or min(stride) < 1 or min(dilation) < 1:
        raise ValueError(
            "neighbour_table: expected kernel_size, stride and dilation >= 1, got "
            f"kernel_size={kernel}, stride={stride}, dilation={dilation}"
        )
    _check_not_negative("neighbour_table", padding)
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    padded = [n + 2 * p for n, p in zip(lengths, padding, strict=True)]
    _check_fit("neighbour_table", padded, span)
    return table_and_places(lengths, kernel, stride, padding, padding, dilation)[0]


@with_torch_hints
def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, impl="auto"):
    """Return the convolution of x with weight along one axis.

        y[o, i] = b[o] + Σ_c Σ_k w[o, c, k] x[c, i · stride + k · dilation - padding]

    Args:
        x          [B, C, L] or [C, L]
        weight     w [O, C / groups, K]
        bias       b [O], or None
        stride     distance between neighbouring outputs
        padding    number of zeros on both sides, "same" or "valid"
        dilation   distance between neighbouring positions that an output reads
        groups     number of groups of channels, which are convolved separately
        impl       "sums", "numpy", "kernel" or "auto"

    Returns:
        y [B, O, L']

    Raises:
        ValueError: the channels do not match, or the window does not fit
    """
    return _convolution("conv1d", x, weight, bias, stride, padding, dilation, groups, impl, 1)


@with_torch_hints
def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, impl="auto"):
    """Return the convolution of x with weight over two axes, as `conv1d` does over one axis.

    The stride, padding and dilation are a number for both axes or a pair of numbers.

    Args:
        x          [B, C, H, W] or [C, H, W]
        weight     [O, C / groups, KH, KW]
        bias       [O], or None
        stride     distance between neighbouring outputs
        padding    number of zeros on all sides, "same" or "valid"
        dilation   distance between the pixels that an output reads
        groups     number of groups of channels, which are convolved separately
        impl       "sums", "numpy", "kernel" or "auto"

    Returns:
        y [B, O, H', W']

    Raises:
        ValueError: the channels do not match, or the window does not fit
    """
    return _convolution("conv2d", x, weight, bias, stride, padding, dilation, groups, impl, 2)


def _pool(operation, name, x, kernel_size, stride, padding, dilation, n, impl):
    """Compute one number for each window with a pooling operation."""
    x, unbatched = _batched(name, x, n)
    kernel = _as_tuple(name, "kernel_size", kernel_size, n)
    stride = kernel if stride is None else _as_tuple(name, "stride", stride, n)
    padding, dilation = (
        _as_tuple(name, "padding", padding, n),
        _as_tuple(name, "dilation", dilation, n),
    )
    if min(kernel) < 1 or min(stride) < 1 or min(dilation) < 1:
        raise ValueError(
            f"{name}: expected kernel_size, stride and dilation >= 1, got kernel_size={kernel}, "
            f"stride={stride}, dilation={dilation}"
        )
    _check_not_negative(name, padding)
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise ValueError(
            f"{name}: expected padding <= kernel_size / 2, got padding={padding}, "
            f"kernel_size={kernel}"
        )
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    _check_fit(name, [m + 2 * p for m, p in zip(x.shape[2:], padding, strict=True)], span)
    y = operation(x, kernel, stride, padding, dilation, impl=impl, name=name)
    return y[0] if unbatched else y


def _refuse(name, **options):
    for option, (value, only) in options.items():
        if value is not only and value != only:
            raise NotImplementedError(
                f"{name}: only {option}={only} is implemented, got {option}={value!r}"
            )


@with_torch_hints
def max_pool1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, impl="auto"):
    """Return the maximum of each window. Equal maxima share the gradient.

    Args:
        x             [B, C, L] or [C, L]
        kernel_size   size of the window
        stride        distance between windows, or None for kernel_size
        padding       number of positions with -inf on both sides
        dilation      distance between the positions of a window
        ceil_mode     must be False. In PyTorch, True lets a window reach beyond the end
        impl          "sums", "numpy", "kernel" or "auto"

    Returns:
        y [B, C, L']

    Raises:
        ValueError: the window does not fit
    """
    _refuse("max_pool1d", ceil_mode=(ceil_mode, False))
    return _pool(max_pool, "max_pool1d", x, kernel_size, stride, padding, dilation, 1, impl)


@with_torch_hints
def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, impl="auto"):
    """Return the maximum of each window over two axes, as `max_pool1d` does over one axis.

    Args:
        x             [B, C, H, W] or [C, H, W]
        kernel_size   size of the window, one number or a pair
        stride        distance between windows, or None for kernel_size
        padding       number of pixels with -inf on all sides
        dilation      distance between the pixels of a window
        ceil_mode     must be False. In PyTorch, True lets a window reach beyond the end
        impl          "sums", "numpy", "kernel" or "auto"

    Returns:
        y [B, C, H', W']

    Raises:
        ValueError: the window does not fit
    """
    _refuse("max_pool2d", ceil_mode=(ceil_mode, False))
    return _pool(max_pool, "max_pool2d", x, kernel_size, stride, padding, dilation, 2, impl)


@with_torch_hints
def avg_pool1d(
    x,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    impl="auto",
):
    """Return the mean of each window.

    Args:
        x                   [B, C, L] or [C, L]
        kernel_size         size of the window
        stride              distance between windows, or None for kernel_size
        padding             number of zeros on both sides
        ceil_mode           must be False. In PyTorch, True lets a window reach beyond the end
        count_include_pad   must be True: the zeros of the padding count in the mean
        impl                "sums", "numpy", "kernel" or "auto"

    Returns:
        y [B, C, L']

    Raises:
        ValueError: the window does not fit
    """
    _refuse("avg_pool1d", ceil_mode=(ceil_mode, False), count_include_pad=(count_include_pad, True))
    return _pool(avg_pool, "avg_pool1d", x, kernel_size, stride, padding, 1, 1, impl)


@with_torch_hints
def avg_pool2d(
    x,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    impl="auto",
):
    """Return the mean of each window over two axes, as `avg_pool1d` does over one axis.

    Args:
        x                   [B, C, H, W] or [C, H, W]
        kernel_size         size of the window, one number or a pair
        stride              distance between windows, or None for kernel_size
        padding             number of zeros on all sides
        ceil_mode           must be False. In PyTorch, True lets a window reach beyond the end
        count_include_pad   must be True: the zeros of the padding count in the mean
        divisor_override    must be None: the sum of a window is divided by the size of the window
        impl                "sums", "numpy", "kernel" or "auto"

    Returns:
        y [B, C, H', W']

    Raises:
        ValueError: the window does not fit
    """
    _refuse(
        "avg_pool2d",
        ceil_mode=(ceil_mode, False),
        count_include_pad=(count_include_pad, True),
        divisor_override=(divisor_override, None),
    )
    return _pool(avg_pool, "avg_pool2d", x, kernel_size, stride, padding, 1, 2, impl)


@with_torch_hints
def pad(input, pad, mode="constant", value=0.0):
    """Return an array with elements added at the ends of its last axes, or removed there.

    Args:
        input   array [...]
        pad     numbers of added elements, from the last axis backwards: (left, right, top, bottom,
                …), as in PyTorch. A negative number removes elements
        mode    "constant"
        value   the constant
    """
    _refuse("pad", mode=(mode, "constant"))
    input = as_tensor(input)
    if len(pad) % 2 or len(pad) // 2 > input.ndim:
        raise ValueError(
            f"pad: expected (before, after) for each of the last axes of shape {input.shape}, got "
            f"{pad}"
        )
    widths = [(0, 0)] * (input.ndim - len(pad) // 2)
    widths += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    cut = tuple(
        slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, input.shape, strict=True)
    )
    grown = [(max(0, a), max(0, b)) for a, b in widths]
    return np.pad(input[cut], grown, constant_values=0.0 if value is None else value)
