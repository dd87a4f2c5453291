"""Mistakes with operations and NumPy's functions of tensors: the error that each must raise."""

import re

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.cases.ops import blocks, normal
from tests.ops.test_backends import EXAMPLES, run
from tinyattn import Tensor
from tinyattn.ops.backends import IMPLEMENTATIONS
from tinyattn.ops.quantized import Q4_1, Q8_0, QuantizedMatrix, quantized_linear

X, MASK = normal(3, 4), np.arange(12).reshape(3, 4) % 3 > 0
REFUSED = {
    "sum out": (lambda x: np.sum(x, out=np.zeros(())), r"np.sum on Tensors takes no out=.*y = np"),
    "sum by position": (
        lambda x: np.sum(x, 0, float),
        "fewer arguments by position, and only a, .* by name",
    ),
    "var where": (lambda x: np.var(x, where=MASK), "np.var on Tensors takes no where=.*np.where"),
    "cumsum out": (lambda x: np.cumsum(x, out=np.zeros(12)), "np.cumsum on Tensors takes no out="),
    "reshape order": (
        lambda x: np.reshape(x, (4, 3), order="F"),
        "no order=.*Leave it out .to reshape column by column",
    ),
    "ravel order": (
        lambda x: np.ravel(x, order="F"),
        "no order=.*Leave it out .to go column by column",
    ),
    "sort order": (lambda x: np.sort(x, order="a"), "np.sort .* no order=.*Leave it out$"),
    "exp order": (lambda x: np.exp(x, order="F"), "np.exp .* no order=. Leave it out$"),
    "take mode": (lambda x: np.take(x, [1], mode="clip"), "np.take on Tensors takes no mode="),
    "diff prepend": (lambda x: np.diff(x, prepend=0), "np.diff on Tensors takes no prepend="),
    "concatenate casting": (lambda x: np.concatenate([x], casting="no"), "takes no casting="),
    "histogram": (lambda x: np.histogram(x, weights=x), "would lose it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_are_refused(name):
    f, message = REFUSED[name]
    with pytest.raises(TypeError, match=message):
        f(Tensor(X, requires_grad=True))


M, V = Tensor(X), Tensor(X[0])  # [3, 4] and [4]
WRONG = {
    "take axis": (lambda: np.take(M, [0], axis=2), "axis 2 is out of bounds"),
    "take_along_axis": (lambda: np.take_along_axis(M, MASK.astype(int), 5), "axis 5 is out of bou"),
    "rollaxis": (lambda: np.rollaxis(M, 7), "axis 7 is out of bounds"),
    "split axis": (lambda: np.split(M, 3, axis=4), "axis 4 is out of bounds"),
    "split float": (lambda: np.split(V, 2.0), "indices_or_sections must be .* got 2.0"),
    "fft axis": (lambda: np.fft.fft(V, axis=1), "axis 1 is out of bounds"),
    "fft of a number": (lambda: np.fft.fft(V[0]), "axis -1 is out of bounds"),
    "delete axis": (lambda: np.delete(M, 0, axis=2), "axis 2 is out of bounds"),
    "diff": (lambda: np.diff(V, -1), "diff: expected n >= 0.* got n=-1"),
    "clip": (lambda: np.clip(V, 0, 1, min=0), "np.clip of Tensors: .* Give each limit only once"),
    "meshgrid": (lambda: np.meshgrid(V, V, indexing="yx"), "got indexing='yx'"),
    "window": (
        lambda: np.lib.stride_tricks.sliding_window_view(V, 5),
        r"windows of shape \(5,\) do not fit .* \(4,\)",
    ),
    "trapezoid": (lambda: np.trapezoid(M, np.ones(3)), "x must have 4 numbers, got 3"),
    "cov": (lambda: np.cov(M[None]), r"np.cov of Tensors: .*got shape \(1, 3, 4\)"),
    "bincount": (lambda: np.bincount([0.0, 1, 1, 2], V), "whole numbers >= 0, got .*float64"),
    "convolve": (lambda: np.convolve(M, V), r"convolve: a and v must be vectors.*\(3, 4\)"),
    "correlate": (lambda: np.correlate(V, []), r"at least one number.*\(0,\)"),
    "matrix_power": (lambda: np.linalg.matrix_power(M, 2), r"square matrices.*got shape \(3, 4\)"),
    "tensordot": (lambda: np.tensordot(M, M, 1), r"axes \[1\] of a \(3, 4\) have lengths \[4\]"),
    "tensordot of length 1": (lambda: np.tensordot(M[:, :1], M, 1), r"lengths \[1\], but .*\[3\]"),
    "tensordot pairs": (
        lambda: np.tensordot(M, M, ([0], [0, 1])),
        r"lengths \[3\], but .*\[3, 4\]",
    ),
    "tensordot axes": (lambda: np.tensordot(M, M, 3), "expected 0 <= axes <= 2.*got axes=3"),
    "inner": (lambda: np.inner(M, X[:, :3]), r"lengths \[4\], but .*\[3\]"),
    "svd": (lambda: np.linalg.svd(V), r"must be matrices .*got shape \(4,\)"),
    "transpose": (lambda: M.transpose(0), r"every axis of shape \(3, 4\) once.*got \(0,\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_do_not_give_a_result(name):
    call, message = WRONG[name]
    with pytest.raises((ValueError, np.linalg.LinAlgError), match=message):
        call()


def test_arguments_that_must_be_whole_numbers():
    for call, message in (
        (lambda: np.repeat(V, 1.5), "repeat: repeats must be a whole number.*got 1.5"),
        (lambda: np.pad(V, 0.5), "pad_width must be whole numbers, got 0.5"),
        (lambda: np.linalg.matrix_power(M[:, :3], 0.5), "n must be a whole number, got n=0.5"),
        (lambda: np.fft.rfft(Tensor([1j, 2])), "must be real numbers, got complex ones"),
        (lambda: V.astype(str), "astype: dtype must be a type of numbers.*got str"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_other_errors_stay_as_they_are():
    x = Tensor(X)
    with pytest.raises(ValueError, match="Pass initial="):
        np.max(x, where=MASK)
    with pytest.raises(TypeError, match="has no derivative rule"):
        np.partition(x, 1)
    with pytest.raises(ValueError, match="weights"):
        np.bincount([1, 2], weights=x[0])
    with pytest.raises(ValueError, match="convolve: mode must be \"full\".*got 'half'"):
        np.convolve(x[0], x[1], "half")


@pytest.mark.parametrize("name", EXAMPLES)
def test_other_implementations_are_refused_by_name(name):
    implementations = IMPLEMENTATIONS[EXAMPLES[name][0]].names
    others = {"sums", "numpy", "kernel"}.difference(implementations)
    for impl in ("nonsense", "matmul", None, *others):
        message = re.escape(f"one of auto, {', '.join(implementations)}, got impl={impl!r}")
        with pytest.raises(ValueError, match=message):
            run(name, impl)


def test_loops_and_kernels_name_the_numbers_they_take():
    x = np.ones((1, 4, 4), np.float16)
    for impl in ("sums", "kernel"):
        with pytest.raises(TypeError, match='float32 or float64, got float16. Use impl="numpy"'):
            F.scaled_dot_product_attention(x, x, x, impl=impl)
    with pytest.raises(ValueError, match="^scaled_dot_product_attention: impl must be one of"):
        F.scaled_dot_product_attention(x, x, x, impl="x")


A = normal(4, 3)


def gradient(f, *arrays):
    xs = [Tensor(a, requires_grad=True) for a in arrays]
    f(*xs).backward()
    return [x.grad for x in xs]


def test_what_is_not_determined_is_refused():
    x = Tensor(A, requires_grad=True)
    with pytest.raises(TypeError, match="a is 4 × 3, so the full matrices.*full_matrices=False"):
        np.linalg.svd(x)
    with pytest.raises(TypeError, match="hermitian=True is not implemented"):
        np.linalg.svd(x, full_matrices=False, hermitian=True)
    with pytest.raises(np.linalg.LinAlgError, match="slogdet: the matrix is singular"):
        gradient(lambda x: np.linalg.slogdet(x)[1], np.ones((2, 2)))


def test_only_the_triangles_that_exist_can_be_chosen():
    with pytest.raises(ValueError, match="UPLO must be \"L\".*got 'l'"):
        np.linalg.eigh(Tensor(A[:3]), UPLO="l")  # the upper triangle was read


SMALL = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3))


def test_einsum_says_what_is_wrong():
    t = Tensor(SMALL)
    for subscripts, operands, message in (
        ("ij,jk->ik", (t,), "expected 2 operands for 'ij,jk->ik', got 1"),
        ("ijk->i", (t,), "does not fit an operand with 2 axes"),
        ("i->i", (t,), "does not fit an operand with 2 axes"),
        ("ij->k", (t,), "no operand of 'ij->k' has the output letter 'k'"),
        ("ij->ii", (t,), "repeated"),
        ("ij,ij->ij", (t, t.T), "index i has length 2 in one operand and 3"),
        ("ii->i", (t,), "index i has lengths 2 and 3"),
        ("...i,...i->...", (t, t[:1].repeat(4, 0)), 'an axis of "..." has length 2'),
        ("i!->i", (t,), "'!' in 'i!->i' is not a letter"),
        ("ij->i1", (t,), "'1' in 'ij->i1' is not a letter"),
        ("i.j->i", (t,), "does not fit"),
        ("ij->ji->ij", (t,), "'-' in 'ij->ji->ij' is not a letter"),
    ):
        with pytest.raises(ValueError, match=message):
            np.einsum(subscripts, *operands)


SIGNALS = normal(3, 8)


def test_what_has_no_rule_for_a_spectrum_is_refused():
    x = Tensor(SIGNALS[0], requires_grad=True)
    z, w = np.fft.rfft(x), Tensor(np.ones(5), requires_grad=True)
    for f, message in [
        (lambda: np.exp(z), r"np.exp has no derivative rule for a spectrum.*\.real"),
        (lambda: np.sum(z), "np.sum has no derivative rule for a spectrum"),
        (lambda: w * z, "must be the left operand"),
        (lambda: np.ones(5) * z, "must be the left operand"),
        (lambda: np.asarray(z), r"\.numpy\(\)"),
        (lambda: np.fft.rfft(z), "must be real numbers"),
        (lambda: np.fft.fft2(Tensor(SIGNALS)), "no derivative rule"),
    ]:
        with pytest.raises(TypeError, match=message):
            f()
    with pytest.raises(ValueError, match="norm must be one of"):
        np.fft.rfft(x, norm="half")
    with pytest.raises(ValueError, match="n >= 1"):
        np.fft.fft(x, n=0)


def test_quantized_matrices_that_are_refused():
    good, x = blocks(Q4_1, 3, 2), np.ones((2, 64), np.float32)
    with pytest.raises(TypeError, match=r"kind must be the class Q4_1 or Q8_0, got 'Q4_1'"):
        QuantizedMatrix("Q4_1", good.raw)
    with pytest.raises(TypeError, match=r"raw must be an array of bytes \(uint8\), got float32"):
        QuantizedMatrix(Q4_1, good.raw.astype(np.float32))
    with pytest.raises(
        ValueError,
        match=r"Q8_0 needs bytes \[rows, blocks of a row, 34\], got "
        r"shape \(3, 2, 20\)",
    ):
        QuantizedMatrix(Q8_0, good.raw)
    with pytest.raises(TypeError, match="must be a QuantizedMatrix, got an object of type ndarray"):
        quantized_linear(x, good.unpack())
    with pytest.raises(
        ValueError, match=r"x has shape \(2, 32\), but the matrix \[3, 64\] needs 64"
    ):
        quantized_linear(x[:, :32], good)
    with pytest.raises(ValueError, match="needs 64 features"):
        quantized_linear(np.float32(1), good)
    with pytest.raises(
        ValueError, match="must be one of auto, sums, numpy, kernel, got impl='tensor'"
    ):
        quantized_linear(x, good, impl="tensor")
    with pytest.raises(TypeError, match="takes float32 or float64, got float16"):
        quantized_linear(x.astype(np.float16), good, impl="kernel")
    for impl in ("auto", "numpy", "sums"):
        with pytest.raises(TypeError, match="x must be real numbers, got complex64. Pass x.real"):
            quantized_linear(x + 1j, good, impl=impl)


@pytest.mark.parametrize("name", ["gradient", "partition", "linspace"])
def test_functions_without_a_rule_are_refused_by_name(name):
    x = ta.tensor([3.0, 1.0, 2.0], requires_grad=True)
    arguments = {"gradient": (x,), "partition": (x, 1), "linspace": (x, x + 1, 3)}[name]
    with pytest.raises(TypeError, match=f"np.{name} has no derivative rule"):
        getattr(np, name)(*arguments)
    with pytest.raises(TypeError, match="Write the indices as a string"):
        np.einsum(x, [0], x, [0])


def test_vectors_of_equal_values_have_no_gradient():
    L = 3 * np.eye(3) - 1  # the Laplacian of a triangle: 0, 3 and 3
    with pytest.raises(np.linalg.LinAlgError, match="eigh: two eigenvalues are equal.*np.diag"):
        gradient(lambda x: np.sum(np.linalg.eigh(x)[1] ** 3), L)
    with pytest.raises(np.linalg.LinAlgError, match="svd: two singular values are equal"):
        gradient(lambda x: np.sum(np.linalg.svd(x)[0] ** 3), L)
    with pytest.raises(np.linalg.LinAlgError, match="a singular value is 0"):
        gradient(
            lambda x: np.sum(np.linalg.svd(x, full_matrices=False)[0] ** 3),
            np.outer([1.0, 2, 3], [1.0, 1]),
        )


def test_axes_that_are_not_there():
    x = Tensor(X)
    for f in (np.sum, np.mean, np.max, np.prod, np.var, np.cumsum, np.flip, np.sort):
        with pytest.raises(ValueError, match="axis 2 is out of bounds"):
            f(x, axis=2)
    with pytest.raises(ValueError, match="axis"):
        np.sum(x, axis=(0, 0))
    for f in (np.max, np.min):
        with pytest.raises(ValueError, match="zero-size"):
            f(Tensor(np.zeros(0)))


def test_quantiles_that_are_none():
    x = Tensor([[1.0, np.nan, 2], [3, 4, 5]], requires_grad=True)
    with pytest.raises(ValueError, match=r"np.quantile .* 0 <= q <= 1, got q=\[0.1, 0.9\]"):
        np.quantile(x, [0.1, 0.9])
    with pytest.raises(ValueError, match=r"np.percentile .* 0 <= q <= 100, got q=101"):
        np.percentile(x, 101)
    with pytest.raises(ValueError, match=r"must not be empty, got shape \(0, 3\)"):
        np.median(x[:0])
