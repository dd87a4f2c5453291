"""The cases of `tests/cases/ops.py` for products, linear algebra and Fourier transforms."""

from functools import partial

import numpy as np

from tests.cases.ops import CASES, WELL, apart, case, normal, positive, products, shapes, unit

__all__ = ["CASES"]


products(
    np.matmul,
    "23 32",
    "3 3",
    "23 3",
    "3 32",
    "223 32",
    "03 32",
    "223 231",
    "2123 332",
    "3 232",
    "223 3",
    "20 02",
    "123 232",
    "23 232",
    "203 31",
    "11 11",
)
case(np.matmul, normal(3, 3), f=lambda x: x @ x.T @ x, order=3, note="x xᵀ x, third order")
case(
    np.matmul,
    normal(3, 4),
    normal(6, 4),
    note="strided views",
    f=lambda a, b: np.matmul(a[::2], b[::-2].T),
)
products(np.dot, ". 2", "3 .", "3 3", "23 3", "23 32", "23 232", "3 232")
products(np.vdot, "23 23", "3 3", ". .")
products(np.inner, "3 3", "23 43", ". 2", "23 3", "213 23")
products(np.outer, "3 2", "22 3", ". 2", "0 2")
products(np.tensordot, "23 32", "3 3", axes=1)
products(np.tensordot, "23 23", axes=2)
products(np.tensordot, "2 3", axes=0)
products(np.tensordot, "232 23", axes=([0, 1], [0, 1]))
products(np.tensordot, "23 43", axes=(-1, -1))
products(np.tensordot, "232 32", axes=((1, 2), (0, 1)))
products(np.kron, "23 22", "12 31")

EINSUM = """
    ij,jk->ik 23 32; ij,jk 23 32; i,i-> 3 3; i,j->ij 2 3; ij->ji 23; ij-> 23; ij->i 23; ij->j 23
    ii-> 33; ii->i 33; ii 33; iij->ij 223; ijj->i 233; iji->j 232; iii->i 222; iijj->ij 2233
    bij,bjk->bik 223 232; bhtd,bhsd->bhts 1223 1233; ...ij,...jk->...ik 223 32; ...i->... 23
    i...,i...->... 23 23; ...,... 23 3; ij...->...ji 232; ij,jk,kl->il 23 32 22; i,ij,j-> 2 23 3
    ij,ij,ij->i 23 23 23; i,i,i,i->i 2 2 2 2; ij,kj->ik 23 13; ij,ij->ij 23 21; ij,jk->ik 21 32
    -> .; ,-> . .; ,i->i . 3; ij,j->ij 03 3; ij,jk->ik 20 02; ij,kl-> 22 31; ij,kl->il 22 32
    ab,cb 23 23; ba 23; ii,ij->j 22 23; ii,jj-> 22 33; i...j,j...->...i 223 31
    ij,ik,il->jkl 22 22 22; ...ii->...i 233; i,j,ij-> 2 3 23; ...i,i 23 3; i...i 232
"""
for line in EINSUM.strip().splitlines():
    for text in line.split(";"):
        subscripts, _, words = text.strip().partition(" ")
        operands = [normal(*s) + 0.1 * i for i, s in enumerate(shapes(words))]
        case(np.einsum, *operands, f=partial(np.einsum, subscripts), note=text)
case(np.einsum, normal(2, 2), f=lambda x: np.einsum("ij,jk,ki->", x, x, x), order=3, note="tr x³")

NORMS = [
    (None, None, "3"),
    (None, None, "23"),
    (None, 1, "23"),
    (2, -1, "23"),
    (1, 0, "23"),
    (np.inf, 1, "23"),
    (3, 1, "23"),
    ("fro", None, "22"),
    (1, None, "3"),
    (2.5, None, "3"),
    (None, (0, 1), "23"),
    (None, (0, 2), "232"),
]
for ord, axis, shape in NORMS:
    for keepdims in (False, True):
        case(np.linalg.norm, apart(*shapes(shape)[0]), ord=ord, axis=axis, keepdims=keepdims)
case(np.linalg.norm, np.array([[0.0, 1], [2, 0]]), axis=1, note="zeros")
case(np.linalg.inv, WELL)
case(np.linalg.inv, WELL + unit(2, 3, 3))
case(np.linalg.det, WELL, order=3)
case(np.linalg.det, WELL + unit(2, 3, 3))
for x, note in (
    (np.array([[1.0, 2], [2, 4]]), "rank 1 of 2"),
    (np.diag([1.0, 0, 2]), "rank 2 of 3"),
    (np.diag([0.0, 0, 2]), "rank 1 of 3"),
    (np.zeros((3, 3)), "rank 0"),
    (np.zeros((1, 1)), "one number, 0"),
    (np.stack([np.eye(2), np.ones((2, 2))]), "one of two"),
    (np.zeros((0, 0)), "empty"),
):
    case(np.linalg.det, x, order=3, note=f"singular, {note}")
case(np.linalg.slogdet, WELL, f=lambda x: np.linalg.slogdet(x)[1], note="log |det|")
case(
    np.linalg.slogdet,
    -WELL + unit(2, 3, 3),
    f=lambda x: np.linalg.slogdet(x).logabsdet,
    note="of several, det < 0",
)
for x in (WELL, WELL + unit(2, 3, 3), positive(1, 1)):
    case(np.linalg.cholesky, x, f=lambda x: np.linalg.cholesky(x @ x.mT))
case(np.linalg.det, np.diag([0.0, 1, 2, 3, 4]), order=1, note="singular, rank 4 of 5")


def signs(v):
    """1 or -1 for each column: LAPACK may return a vector or its negative."""
    return np.where(np.sum(v, axis=-2, keepdims=True) < 0, -1.0, 1.0)


def signed_eigh(x, **options):
    """np.linalg.eigh with vectors whose elements have a positive sum."""
    w, v = np.linalg.eigh(x, **options)
    return w, v * signs(v)


def signed_svd(x, **options):
    """np.linalg.svd with left vectors whose elements have a positive sum."""
    u, s, vt = np.linalg.svd(x, **options)
    turn = signs(u)
    return u * turn, s, vt * np.swapaxes(turn, -1, -2)


for x in (normal(3, 3), normal(2, 3, 3), normal(1, 1), normal(0, 0)):
    case(np.linalg.eigh, x, f=lambda x: signed_eigh(x + x.mT))
    case(np.linalg.eigvalsh, x, f=lambda x: np.linalg.eigvalsh(x + x.mT))
case(np.linalg.eigh, normal(3, 3), f=lambda x: signed_eigh(x + x.T, UPLO="U")[1], note="upper")
for f in (np.fft.fft, np.fft.ifft, np.fft.rfft):
    for shape, options in (
        ((5,), {}),
        ((6,), {"n": 4}),
        ((3, 4), {"n": 7}),
        ((4, 3), {"axis": 0, "norm": "ortho"}),
        ((2, 4), {"norm": "forward"}),
        ((1,), {}),
    ):
        case(
            f,
            normal(*shape),
            f=lambda x, f=f, o=options: (lambda z: [np.real(z), np.imag(z)])(f(x, **o)),
            note=f"{shape} {options}",
        )
for shape, options in (
    ((8,), {}),
    ((9,), {"n": 9}),
    ((9,), {"n": 8}),
    ((3, 4), {"axis": 0, "norm": "ortho"}),
    ((8,), {"n": 3}),
    ((5,), {"n": 12, "norm": "forward"}),
):
    case(
        np.fft.irfft,
        normal(*shape),
        f=lambda x, o=options: np.fft.irfft(np.fft.fft(x), **o),
        note=f"{shape} {options}",
    )
    case(np.fft.irfft, normal(*shape), f=partial(np.fft.irfft, **options), note="of real numbers")
EXPONENTIAL = positive(4, 4)  # of its symmetric part
case(
    np.linalg.eigh,
    EXPONENTIAL,
    f=lambda x: (lambda w, v: (v * np.exp(w)) @ v.mT)(*np.linalg.eigh((x + x.T) / 2)),
    note="the exponential of a matrix",
)
for x in (normal(3, 3), normal(2, 4), normal(4, 2), normal(2, 3, 2), normal(1, 3)):
    case(np.linalg.svd, x, f=lambda x: signed_svd(x, full_matrices=False))
    case(np.linalg.svd, x, compute_uv=False)
    case(np.linalg.svdvals, x)
case(np.linalg.svd, normal(3, 3), f=signed_svd, note="square, full")
case(np.linalg.solve, WELL, normal(3))
case(np.linalg.solve, WELL, normal(3, 2))
