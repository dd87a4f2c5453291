"""Fourier transforms: NumPy's numbers, spectral filters, and complex numbers with gradients."""

import numpy as np
import pytest

from tests.cases.ops import normal
from tinyattn import Tensor, nn
from tinyattn.check import gradcheck
from tinyattn.ops.fourier import Spectrum

X = normal(3, 8)


def test_a_filter_is_a_convolution():
    """The theorem, and its gradients, to the last digits."""
    x, w = X[0], normal(8)
    around = np.array([[w[(t - s) % 8] for s in range(8)] for t in range(8)])
    assert np.allclose(
        np.fft.irfft(np.fft.rfft(Tensor(x)) * np.fft.rfft(Tensor(w))).numpy(), around @ x
    )
    report = gradcheck(lambda x, w: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(w)), x, w, order=2)
    assert report, report


def test_a_learned_filter_is_found():
    """Real weights of frequencies, trained on what a low pass makes of noise."""
    w, wanted = nn.Parameter(np.ones(5)), np.array([1.0, 1, 0, 0, 0])
    x = normal(40, 8)
    y = np.fft.irfft(np.fft.rfft(x) * wanted)
    for _ in range(200):
        w.grad = None
        loss = np.mean((np.fft.irfft(np.fft.rfft(Tensor(x)) * w) - y) ** 2)
        loss.backward()
        w.data = w.data - 2.0 * w.grad
    np.testing.assert_allclose(w.data, wanted, atol=1e-3)


OPERATIONS = {
    "power": lambda z, u: np.abs(z) ** 2,
    "phase": lambda z, u: np.angle(z),
    "sum": lambda z, u: z + u,
    "difference": lambda z, u: z - u * 0.5,
    "product": lambda z, u: z * u,
    "quotient": lambda z, u: z / u,
    "conjugate": lambda z, u: np.conj(z) * u,
    "numbers": lambda z, u: 2 * z + (1 - 3j) - 1.5 * u,
    "from a number": lambda z, u: 1.0 - z,
    "array": lambda z, u: z * np.arange(5.0) / (2.0 + 1j * np.arange(5.0)),
    "part": lambda z, u: z[1:3] * u[2:4],
    "functions": lambda z, u: np.multiply(np.negative(z), u),
    "back": lambda z, u: np.fft.ifft(z * u),
    "again": lambda z, u: np.fft.fft(z),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_complex_numbers(name):
    f = OPERATIONS[name]

    def parts(x, v):
        y = f(np.fft.rfft(x), np.fft.rfft(v))
        return [np.real(y), np.imag(y)] if isinstance(y, Spectrum) else y

    found, expected = f(*[np.fft.rfft(Tensor(x)) for x in X[:2]]), f(*np.fft.rfft(X[:2]))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    report = gradcheck(parts, X[0], X[1], order=2)
    assert report, report


def test_the_gradients_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for norm in ("backward", "ortho", "forward"):
        t = torch.tensor(X, requires_grad=True)
        z = torch.fft.rfft(t, n=6, norm=norm)
        (torch.fft.irfft(z * z, n=7, norm=norm) ** 3).sum().backward()
        x = Tensor(X, requires_grad=True)
        z = np.fft.rfft(x, n=6, norm=norm)
        np.sum(np.fft.irfft(z * z, n=7, norm=norm) ** 3).backward()
        np.testing.assert_allclose(x.grad, t.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_kinds_and_lengths():
    x = Tensor(X.astype(np.float32), requires_grad=True)
    z = np.fft.rfft(x)
    assert (z.shape, z.ndim, len(z), z.requires_grad) == ((3, 5), 2, 3, True)
    assert z.real.dtype == np.float32 and z.numpy().dtype == np.complex64
    assert np.fft.irfft(z).dtype == np.float32
    assert np.fft.fft(Tensor(np.arange(4))).numpy().dtype == np.complex64
    assert np.asarray(np.fft.rfft(Tensor(X))).dtype == np.complex128
    assert "Spectrum" in repr(z)
