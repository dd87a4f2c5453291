"""Convolution and pooling in one and two dimensions, based on sliding windows.

`impl` selects the implementation. All implementations give the same result and gradients up to
rounding:

    "sums"    the index sum of slide K03 as loops over a table of neighbours (compiled if Numba is
              installed)
    "numpy"   array algebra: all windows form one array, which a convolution multiplies by its
              weights
    "kernel"  compiled code, which computes a convolution block by block and a pooling channel by
              channel
    "auto"    "kernel" where it is faster, otherwise "numpy"

x is [B, C, L] or [B, C, H, W]. If x has no batch axis, the result has none either.
"""

import numpy as np

from tinyattn.engine.convert import as_tensor, of_one_dtype, to_array
from tinyattn.engine.ranges import check_range
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.ops.conv import convolution, table_and_places
from tinyattn.ops.pool import avg_pool, max_pool


def _as_tuple(name, what, value, n, least):
    """Return the `value` of the option `what` as a tuple of n whole numbers >= `least`.

    `name` begins the message of an error.
    """
    values = (value,) * n if np.ndim(value) == 0 else tuple(value)
    whole = [isinstance(v, int | np.integer) and not isinstance(v, bool) for v in values]
    if len(values) != n or not all(whole):
        choices = ["a whole number"]
        if n > 1:
            choices.append("a pair of them" if n == 2 else f"a tuple of {n} of them")
        if what == "padding" and name.startswith("conv"):
            choices += ['"same"', '"valid"']
        last = f" or {choices.pop()}" if len(choices) > 1 else ""
        raise ValueError(f"{name}: {what} must be {', '.join(choices)}{last}, got {value!r}")
    if min(values) < least:
        raise ValueError(f"{name}: expected {what} >= {least}, got {what}={value!r}")
    return tuple(int(v) for v in values)


def _batched(name, x, n):
    x = as_tensor(x)
    if x.ndim not in (n + 1, n + 2):
        axes = ["C", "L"] if n == 1 else ["C", "H", "W"]
        alone = f". For [{', '.join(axes[1:])}] without channels write x[None]"
        raise ValueError(
            f"{name}: x must be [B, {', '.join(axes)}] or [{', '.join(axes)}], got shape {x.shape}"
            + (alone if x.ndim == n else "")
        )
    return (x, False) if x.ndim == n + 2 else (x[None], True)


def _check_fit(name, lengths, span):
    if any(length < s for length, s in zip(lengths, span, strict=True)):
        raise ValueError(
            f"{name}: a window of size {span} does not fit into x of size {tuple(lengths)} (with "
            "padding). Choose a smaller kernel or dilation, or a larger x"
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
    x, weight, bias = of_one_dtype(x, as_tensor(weight), bias)
    kernel = weight.shape[2:]
    check_range(name, 1, whole=True, groups=groups)
    if weight.ndim != n + 2:
        raise ValueError(
            f"{name}: weight must be [out, in / groups, *kernel] with {n + 2} axes, got shape "
            f"{weight.shape}"
        )
    if 0 in kernel:
        raise ValueError(
            f"{name}: expected a kernel of size >= 1, got weight of shape {weight.shape}"
        )
    if weight.shape[0] % groups:
        channels = f"{weight.shape[0]} output channel{'' if weight.shape[0] == 1 else 's'}"
        raise ValueError(
            f"{name}: weight has {channels} (shape {weight.shape}), which groups={groups} does not "
            "divide. Make their number a multiple of groups"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise ValueError(
            f"{name}: the channels do not match, because x has {x.shape[1]} (shape "
            f"{x.shape[unbatched:]}), but the weight {weight.shape} [out, in / groups, *kernel] "
            f"with groups={groups} needs {weight.shape[1] * groups}"
            f"{_advice_on_channels(x, unbatched, weight, groups)}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"{name}: bias must have a number for each output channel, shape {weight.shape[:1]}, "
            f"got shape {bias.shape}"
        )
    stride, dilation = (
        _as_tuple(name, w, v, n, 1) for w, v in (("stride", stride), ("dilation", dilation))
    )
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    if padding == "same":
        if max(stride) > 1:
            raise ValueError(f'{name}: padding="same" needs stride=1, got stride={stride}')
        before = tuple((s - 1) // 2 for s in span)
        after = tuple(s - 1 - b for s, b in zip(span, before, strict=True))
    else:
        before = after = _as_tuple(name, "padding", 0 if padding == "valid" else padding, n, 0)
    _check_fit(name, [n + b + a for n, b, a in zip(x.shape[2:], before, after, strict=True)], span)
    options = stride, before, after, dilation, groups
    y = convolution(x, weight, bias, *options, impl=impl, name=name)
    return y[0] if unbatched else y


def neighbour_table(lengths, kernel_size, stride=1, padding=0, dilation=1):
    """Return a table of the positions of x that each output of a convolution or pooling reads.

    I[j, i] is the position that output j reads at position i of the kernel, or -1 in the padding.

    Args:
        lengths       lengths of the axes of x, (L,) or (H, W). The positions are numbered row by
                      row
        kernel_size   length of the window. This and the following arguments are a number for all
                      axes, or a tuple with one for each axis
        stride        distance between the windows of neighbouring outputs
        padding       number of padded positions on each side of each axis
        dilation      distance between neighbouring positions that an output reads

    Returns:
        the array I [P, K] of whole numbers, for P outputs and K positions of the kernel, both
        numbered row by row

    Raises:
        ValueError: lengths is not a tuple of whole numbers >= 0, the window is longer than an axis
            with its padding, or another argument does not consist of whole numbers >= 1 (for
            padding, >= 0)

    Source: slide K03.
    """
    tuples = isinstance(lengths, tuple | list) and len(lengths) > 0
    if not tuples or not all(isinstance(n, int | np.integer) and n >= 0 for n in lengths):
        raise ValueError(
            f"neighbour_table: lengths must be a tuple (L,) or (H, W) of whole numbers >= 0, "
            f"got {lengths!r}"
        )
    name, n = "neighbour_table", len(lengths)
    kernel = _as_tuple(name, "kernel_size", kernel_size, n, 1)
    stride = _as_tuple(name, "stride", stride, n, 1)
    padding = _as_tuple(name, "padding", padding, n, 0)
    dilation = _as_tuple(name, "dilation", dilation, n, 1)
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    padded = [n + 2 * p for n, p in zip(lengths, padding, strict=True)]
    _check_fit("neighbour_table", padded, span)
    return table_and_places(lengths, kernel, stride, padding, padding, dilation)[0]


@with_torch_hints
def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, impl="auto"):
    """Return the convolution of x with weight along one axis.

        y[o, i] = b[o] + Σ_c Σ_k w[o, c, k] x[c, i · stride + k · dilation - padding]

    Outside of the sequence, x is 0.

    Args:
        x          sequences of length L with C channels [B, C, L], or one of them [C, L]
        weight     w [O, C / groups, K], for O output channels and a kernel of length K
        bias       b [O], or None for 0
        stride     distance between the windows of neighbouring outputs
        padding    number of zeros on each side, "valid" for 0, or "same" for L' = L, which needs
                   stride=1
        dilation   distance between neighbouring positions that an output reads
        groups     number of groups of channels. Each group of outputs reads only its own group of
                   the channels of x
        impl       "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto": "kernel"
                   where it is faster, otherwise "numpy". All agree up to rounding

    Returns:
        y [B, O, L'] or [O, L'] with L' = (L + 2 padding - dilation (K - 1) - 1) // stride + 1

    Raises:
        ValueError: x, weight or bias does not have these axes, the channels do not match, groups
            does not divide O, or the window is longer than x with its padding
        ValueError: K is 0, or an option is out of its range or unknown
        TypeError: groups is not a whole number, or impl does not support the dtype
    """
    return _convolution("conv1d", x, weight, bias, stride, padding, dilation, groups, impl, 1)


@with_torch_hints
def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, impl="auto"):
    """Return the convolution of x with weight over two axes, as `conv1d` does over one axis.

    The stride, padding and dilation are a number for both axes, or a pair of numbers for H and W.

    Args:
        x          images with C channels [B, C, H, W], or one of them [C, H, W]
        weight     [O, C / groups, KH, KW], for O output channels and a kernel of KH × KW pixels
        bias       [O], or None for 0
        stride     distance between the windows of neighbouring outputs
        padding    number of zeros on each side, "valid" for 0, or "same" for an output of the size
                   of x, which needs stride=1
        dilation   distance between neighbouring pixels that an output reads
        groups     number of groups of channels. Each group of outputs reads only its own group of
                   the channels of x
        impl       "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto": "kernel"
                   where it is faster, otherwise "numpy". All agree up to rounding

    Returns:
        y [B, O, H', W'], or [O, H', W'] if x has no batch axis, where H' and W' follow from H and W
        as L' follows from L in `conv1d`

    Raises:
        ValueError: x, weight or bias does not have these axes, the channels do not match, groups
            does not divide O, or the window is longer than x with its padding
        ValueError: KH or KW is 0, or an option is out of its range or unknown
        TypeError: groups is not a whole number, or impl does not support the dtype
    """
    return _convolution("conv2d", x, weight, bias, stride, padding, dilation, groups, impl, 2)


def _pool(operation, name, x, kernel_size, stride, padding, dilation, n, impl):
    """Apply `operation`, which is max_pool or avg_pool, along the last n axes of x."""
    x, unbatched = _batched(name, x, n)
    kernel = _as_tuple(name, "kernel_size", kernel_size, n, 1)
    stride = kernel if stride is None else _as_tuple(name, "stride", stride, n, 1)
    padding = _as_tuple(name, "padding", padding, n, 0)
    dilation = _as_tuple(name, "dilation", dilation, n, 1)
    if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
        raise ValueError(
            f"{name}: expected padding <= kernel_size / 2, got padding={padding}, "
            f"kernel_size={kernel}"
        )
    span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    _check_fit(name, [m + 2 * p for m, p in zip(x.shape[2:], padding, strict=True)], span)
    if operation is max_pool and max(padding) > 0 and x.dtype.kind != "f":
        raise TypeError(
            f"{name}: x must be floating point to be padded with -inf, got {x.dtype}. Convert it "
            "with .astype(np.float32)"
        )
    y = operation(x, kernel, stride, padding, dilation, impl=impl, name=name)
    return y[0] if unbatched else y


def _refuse(name, **options):
    for option, (value, only) in options.items():
        if value is not only and value != only:
            raise NotImplementedError(
                f"{name}: only {option}={only!r} is implemented, got {option}={value!r}"
            )


@with_torch_hints
def max_pool1d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, impl="auto"):
    """Return the maximum of each window. Equal maxima share the gradient.

    Args:
        x             sequences of length L with C channels [B, C, L], or one of them [C, L]
        kernel_size   length K of the window
        stride        distance between neighbouring windows, or None for kernel_size
        padding       number of positions with -inf on each side, at most K/2
        dilation      distance between neighbouring positions of a window
        ceil_mode     must be False. In PyTorch, True lets a window reach beyond the end
        impl          "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto":
                      "kernel" where it is faster, otherwise "numpy". All agree up to rounding

    Returns:
        y [B, C, L'] or [C, L'] with L' = (L + 2 padding - dilation (K - 1) - 1) // stride + 1

    Raises:
        ValueError: x does not have these axes, the window is longer than x with its padding, or an
            option is out of its range or unknown
        TypeError: padding is not 0 and x is not floating point, or impl does not support the dtype
        NotImplementedError: ceil_mode is True
    """
    _refuse("max_pool1d", ceil_mode=(ceil_mode, False))
    return _pool(max_pool, "max_pool1d", x, kernel_size, stride, padding, dilation, 1, impl)


@with_torch_hints
def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, impl="auto"):
    """Return the maximum of each window over two axes, as `max_pool1d` does over one axis.

    Equal maxima share the gradient.

    Args:
        x             images with C channels [B, C, H, W], or one of them [C, H, W]
        kernel_size   size of the window. This and the next three arguments are a number for both
                      axes, or a pair of numbers for H and W
        stride        distance between neighbouring windows, or None for kernel_size
        padding       number of pixels with -inf on each side, at most half of kernel_size
        dilation      distance between neighbouring pixels of a window
        ceil_mode     must be False. In PyTorch, True lets a window reach beyond the end
        impl          "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto":
                      "kernel" where it is faster, otherwise "numpy". All agree up to rounding

    Returns:
        y [B, C, H', W'], or [C, H', W'] if x has no batch axis, where H' and W' follow from H and W
        as L' follows from L in `max_pool1d`

    Raises:
        ValueError: x does not have these axes, the window is longer than x with its padding, or an
            option is out of its range or unknown
        TypeError: padding is not 0 and x is not floating point, or impl does not support the dtype
        NotImplementedError: ceil_mode is True
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
        x                   sequences of length L with C channels [B, C, L], or one of them [C,
                            L]
        kernel_size         length K of the window
        stride              distance between neighbouring windows, or None for kernel_size
        padding             number of zeros on each side, at most K/2
        ceil_mode           must be False. In PyTorch, True lets a window reach beyond the end
        count_include_pad   must be True: the zeros of the padding count in the mean
        impl                "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto":
                            "kernel" where it is faster, otherwise "numpy". All agree up to rounding

    Returns:
        y [B, C, L'] or [C, L'] with L' = (L + 2 padding - K) // stride + 1

    Raises:
        ValueError: x does not have these axes, the window is longer than x with its padding, or an
            option is out of its range or unknown
        TypeError: impl does not support the dtype of x
        NotImplementedError: ceil_mode or count_include_pad has another value
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
        x                   images with C channels [B, C, H, W], or one of them [C, H, W]
        kernel_size         size of the window. This and the next two arguments are a number for
                            both axes, or a pair of numbers for H and W
        stride              distance between neighbouring windows, or None for kernel_size
        padding             number of zeros on each side, at most half of kernel_size
        ceil_mode           must be False. In PyTorch, True lets a window reach beyond the end
        count_include_pad   must be True: the zeros of the padding count in the mean
        divisor_override    must be None: the sum of a window is divided by its number of pixels
        impl                "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto":
                            "kernel" where it is faster, otherwise "numpy". All agree up to rounding

    Returns:
        y [B, C, H', W'], or [C, H', W'] if x has no batch axis, where H' and W' follow from H and W
        as L' follows from L in `avg_pool1d`

    Raises:
        ValueError: x does not have these axes, the window is longer than x with its padding, or an
            option is out of its range or unknown
        TypeError: impl does not support the dtype of x
        NotImplementedError: ceil_mode, count_include_pad or divisor_override has another value
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
    """Return `input` with elements added at the ends of its last axes, or removed there.

    Args:
        input   array [...]
        pad     tuple of the numbers of added elements, from the last axis backwards: (left, right,
                top, bottom, …), as in PyTorch. A negative number removes elements
        mode    must be "constant"
        value   value of the added elements, or None for 0

    Raises:
        ValueError: pad is not a tuple of two whole numbers for each of the last axes, more elements
            would be removed than there are, or the dtype of input cannot store value
        TypeError: value is not a number
        NotImplementedError: mode is not "constant"
    """
    _refuse("pad", mode=(mode, "constant"))
    input = as_tensor(input)
    fits = isinstance(pad, tuple | list) and len(pad) % 2 == 0 and len(pad) // 2 <= input.ndim
    if not fits or not all(isinstance(n, int | np.integer) for n in pad):
        raise ValueError(
            "pad: pad must be a tuple of whole numbers, (before, after) for the last axis and then "
            f"two for each axis before it, at most {2 * input.ndim} in total, got pad={pad!r} for "
            f"input of shape {input.shape}"
        )
    value = 0.0 if value is None else value
    if np.ndim(value) or np.asarray(to_array(value)).dtype.kind not in "fiub":
        raise TypeError(f"pad: value must be a number, got {value!r}")
    if any(pad) and input.dtype.kind in "iub":
        number = np.asarray(to_array(value))
        with np.errstate(invalid="ignore"):  # NaN and infinity have no whole number
            stored = number.astype(input.dtype)
        if stored != number:
            raise ValueError(
                f"pad: value={value} cannot be stored in input of dtype {input.dtype}. Convert "
                "input with .astype(np.float32)"
            )
    widths = [(0, 0)] * (input.ndim - len(pad) // 2)
    widths += [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    for axis, ((a, b), n) in enumerate(zip(widths, input.shape, strict=True)):
        if max(0, -a) + max(0, -b) > n:
            raise ValueError(
                f"pad: ({a}, {b}) removes more elements than axis {axis} of length {n} has, got "
                f"pad={pad!r} for input of shape {input.shape}"
            )
    cut = tuple(
        slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, input.shape, strict=True)
    )
    grown = [(max(0, a), max(0, b)) for a, b in widths]
    return np.pad(input[cut], grown, constant_values=value)
