"""Fourier transforms fft, ifft, rfft and irfft along one axis, with gradients.

Gradients are real in tinyattn, so a complex result is a `Spectrum`, a pair of real Tensors. A
transform is linear, and its rule is the reverse transform: with zₖ = Σₜ xₜ e^(-2πikt/n), the
gradient of x is Σₖ z̄ₖ e^(2πikt/n), where z̄ = dL/d(Re z) + i dL/d(Im z).

No lecture, homework or layer uses these four transforms. They are complete, and transforms along
several axes are not planned.
"""

import numpy as np

from tinyattn.engine.autograd import Tensor, primitive
from tinyattn.engine.convert import as_float, to_array
from tinyattn.engine.dispatch import implements
from tinyattn.engine.ranges import is_number

BACK = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


# ---------------------------------------------------------------- on pairs: the last axis is Re, Im


def _pair(z):
    return np.stack([z.real, z.imag], axis=-1)


def _complex(pair):
    return pair[..., 0] + 1j * pair[..., 1]


def _fitted(x, n, axis):
    """Return x with n elements along an axis, truncated or padded with zeros."""
    length = x.shape[axis]
    if n <= length:
        return x[(slice(None),) * (axis % x.ndim) + (slice(0, n),)]
    widths = [(0, n - length) if i == axis % x.ndim else (0, 0) for i in range(x.ndim)]
    return np.pad(x, widths)


@primitive
def _fft(x, n, axis, norm):
    """Transform pairs x [..., 2] along an axis, which is counted without the axis of the pairs."""
    return _pair(np.fft.fft(_complex(x), n, axis, norm)).astype(x.dtype)


@primitive
def _ifft(x, n, axis, norm):
    return _pair(np.fft.ifft(_complex(x), n, axis, norm)).astype(x.dtype)


_fft.defvjp(
    lambda g, y, x, n, axis, norm: _fitted(_ifft(g, n, axis, BACK[norm]), x.shape[axis], axis)
)
_ifft.defvjp(
    lambda g, y, x, n, axis, norm: _fitted(_fft(g, n, axis, BACK[norm]), x.shape[axis], axis)
)


@primitive
def _rfft(x, n, axis, norm):
    """Transform real x into pairs, without the half that consists of conjugates of the other."""
    return _pair(np.fft.rfft(x, n, axis, norm)).astype(x.dtype)


def _rfft_rule(g, y, x, n, axis, norm):
    whole = _ifft(_fitted(g, n, axis), n, axis, BACK[norm])
    return _fitted(whole[..., 0], x.shape[axis], axis)


_rfft.defvjp(_rfft_rule)


@primitive
def _irfft(x, n, axis, norm):
    """Return the real numbers whose transform is x, of which one half is given, as pairs."""
    return np.fft.irfft(_complex(x), n, axis, norm).astype(x.dtype)


def _irfft_rule(g, y, x, n, axis, norm):
    k = np.arange(n // 2 + 1)
    # all coefficients except k = 0 and n/2 also represent their mirror images
    twice = np.where((k == 0) | (2 * k == n), 1, 2)
    shape = [-1 if i == axis % y.ndim else 1 for i in range(y.ndim)]
    z = _rfft(g, n, axis, BACK[norm]) * twice.reshape([*shape, 1]).astype(x.dtype)
    return _fitted(z, x.shape[axis], axis)


_irfft.defvjp(_irfft_rule)


# ---------------------------------------------------------------- complex numbers


class Spectrum:
    """Complex numbers with a gradient, stored as two Tensors.

    The operators +, -, * and / accept other spectra, Tensors, arrays and numbers. A Tensor or array
    must be on the right, and so must a number in a division. abs and np.abs, np.angle, np.conj,
    np.real, np.imag, indexing and the transforms also work. Compute anything else from `.real` and
    `.imag`. `.numpy()` returns the array of complex numbers.

    Args:
        real   Tensor of the real parts
        imag   Tensor of the imaginary parts, in the same shape
    """

    def __init__(self, real, imag):
        self.real, self.imag = real, imag

    @property
    def shape(self):
        """Return the length of each axis."""
        return self.real.shape

    @property
    def ndim(self):
        """Return the number of axes."""
        return self.real.ndim

    @property
    def requires_grad(self):
        """Return whether the real or the imaginary parts require a gradient."""
        return self.real.requires_grad or self.imag.requires_grad

    def numpy(self):
        """Return the complex numbers as a plain array, without gradient."""
        return (self.real.data + 1j * self.imag.data).astype(
            np.result_type(self.real.dtype, np.complex64)
        )

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise TypeError(
                "a spectrum that requires a gradient does not become a plain array automatically. "
                "Write .numpy()"
            )
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self):
        return f"Spectrum({self.numpy()})"

    def __len__(self):
        return len(self.real)

    def __getitem__(self, index):
        return Spectrum(self.real[index], self.imag[index])

    def __neg__(self):
        return Spectrum(-self.real, -self.imag)

    def __abs__(self):
        return np.hypot(self.real, self.imag)

    def conj(self):
        """Return the complex conjugates, with the sign of `imag` reversed."""
        return Spectrum(self.real, -self.imag)

    def __add__(self, other):
        re, im = _parts(other)
        return Spectrum(self.real + re, self.imag + im)

    def __sub__(self, other):
        re, im = _parts(other)
        return Spectrum(self.real - re, self.imag - im)

    def __mul__(self, other):
        re, im = _parts(other)
        return Spectrum(self.real * re - self.imag * im, self.real * im + self.imag * re)

    def __truediv__(self, other):
        re, im = _parts(other)
        square = re * re + im * im
        return Spectrum(
            (self.real * re + self.imag * im) / square, (self.imag * re - self.real * im) / square
        )

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return -self + other

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        f = UFUNCS.get(ufunc)
        if f is None or method != "__call__" or options or not isinstance(inputs[0], Spectrum):
            if f is not None and not isinstance(inputs[0], Spectrum):
                raise TypeError(
                    f"np.{ufunc.__name__}: a spectrum must be the left operand. Put it first, as "
                    "in spectrum * filter or -spectrum + x"
                )
            what = f"np.{ufunc.__name__}"
            if f is not None:  # the function has a rule, but not for this method or option
                method = f".{method}" if method != "__call__" else ""
                what += f"{method}{f' with {next(iter(options))}=' if options else ''}"
            raise TypeError(
                f"{what} has no derivative rule for a spectrum. Compute with .real and .imag, or "
                "with .numpy() if you need no gradient"
            )
        return f(*inputs)

    def __array_function__(self, function, types, args, options):
        f = FUNCTIONS.get(function)
        if f is None:
            raise TypeError(
                f"np.{function.__name__} has no derivative rule for a spectrum. Compute with .real "
                "and .imag, or with .numpy() if you need no gradient"
            )
        return f(*args, **options)


def _parts(x):
    """Return the real and imaginary part of an operand."""
    if isinstance(x, Spectrum):
        return x.real, x.imag
    if isinstance(x, Tensor):
        return x, 0.0
    if isinstance(x, int | float | complex):
        return float(x.real), float(x.imag)
    array = np.asarray(x)
    return (array.real, array.imag) if array.dtype.kind == "c" else (array, 0.0)


# ---------------------------------------------------------------- the transforms


@implements(np.fft.fft)
def fft(a, n=None, axis=-1, norm=None):
    """Return the Fourier transform, the `Spectrum` zₖ = Σₜ aₜ e^(-2πikt/n).

    Args:
        a      real numbers or a `Spectrum`
        n      length of the transform, to which a is truncated or padded with zeros, or None for
               the length of the axis
        axis   axis of t in a, and of k in the result
        norm   None or "backward": only the inverse transform divides by n. "forward": only this
               transform divides by n. "ortho": both divide by √n

    Raises:
        TypeError: n is not a whole number
        ValueError: n < 1, or norm has another value
    """
    return _transform(_fft, "fft", a, n, axis, norm)


@implements(np.fft.ifft)
def ifft(a, n=None, axis=-1, norm=None):
    """Return the inverse transform, the `Spectrum` xₜ = 1/n Σₖ aₖ e^(2πikt/n).

    The arguments are those of `fft`, where `norm` can replace the factor 1/n by 1/√n or 1.
    """
    return _transform(_ifft, "ifft", a, n, axis, norm)


@implements(np.fft.rfft)
def rfft(a, n=None, axis=-1, norm=None):
    """Return the first n // 2 + 1 numbers of the `fft` of real numbers, with the same arguments.

    The remaining ones are their complex conjugates in reverse order. Raises TypeError if a is
    complex, such as a spectrum.
    """
    a = a if isinstance(a, Spectrum) else as_float(a)
    if isinstance(a, Spectrum) or a.dtype.kind == "c":
        raise TypeError(
            "np.fft.rfft: a must be real numbers, got complex ones. Use np.fft.fft for them"
        )
    axis = np.lib.array_utils.normalize_axis_index(axis, a.ndim)
    n = _checked("rfft", a.shape[axis] if n is None else n, norm)
    return _spectrum(_rfft(a, n, axis, norm))


@implements(np.fft.irfft)
def irfft(a, n=None, axis=-1, norm=None):
    """Return the inverse of `rfft`, a Tensor of n real numbers along the axis.

    If n is None, it is 2 (L - 1) for an axis of length L, so pass n if it is odd. The other
    arguments are those of `fft`.
    """
    pair, ndim = _as_pair(a)
    axis = np.lib.array_utils.normalize_axis_index(axis, ndim)
    n = _checked("irfft", 2 * (pair.shape[axis] - 1) if n is None else n, norm)
    return _irfft(pair, n, axis, norm)


def _transform(operation, name, a, n, axis, norm):
    pair, ndim = _as_pair(a)
    axis = np.lib.array_utils.normalize_axis_index(axis, ndim)
    n = _checked(name, pair.shape[axis] if n is None else n, norm)
    return _spectrum(operation(pair, n, axis, norm))


def _checked(name, n, norm):
    if not is_number(n, whole=True):
        raise TypeError(f"np.fft.{name}: n must be a whole number or None, got {n!r}")
    if n < 1:
        raise ValueError(f"np.fft.{name}: expected n >= 1, the length of the transform, got n={n}")
    if norm not in BACK:
        raise ValueError(
            f"np.fft.{name}: norm must be one of {', '.join(map(repr, BACK))}, got norm={norm!r}"
        )
    return n


def _as_pair(a):
    """Return complex numbers as real pairs along a new last axis, and their number of axes."""
    if isinstance(a, Spectrum):
        return np.stack([a.real, a.imag], axis=-1), a.ndim
    if isinstance(a, Tensor) and a.dtype.kind == "c":
        return Tensor(_pair(to_array(a))), a.ndim
    a = as_float(a)
    return np.stack([a, np.zeros_like(a)], axis=-1), a.ndim


def _spectrum(pair):
    return Spectrum(pair[..., 0], pair[..., 1])


UFUNCS = {
    np.add: Spectrum.__add__,
    np.subtract: Spectrum.__sub__,
    np.multiply: Spectrum.__mul__,
    np.divide: Spectrum.__truediv__,
    np.negative: Spectrum.__neg__,
    np.absolute: Spectrum.__abs__,
    np.conjugate: Spectrum.conj,
}
FUNCTIONS = {
    np.fft.fft: fft,
    np.fft.ifft: ifft,
    np.fft.irfft: irfft,
    np.fft.rfft: rfft,
    np.real: lambda z: z.real,
    np.imag: lambda z: z.imag,
    np.angle: lambda z: np.arctan2(z.imag, z.real),
    np.shape: lambda z: z.shape,
    np.ndim: lambda z: z.ndim,
}
