"""Matrix decompositions: eigenvalues and singular values, with their vectors.

An operation has one result, so the parts are concatenated in one array, which is then cut. Vectors
are determined only up to their sign, so no result that you compute from them should depend on the
sign. The vectors of equal values are not determined at all, so they have no gradient, but the
values have one. In the docstrings, x̄ is dL/dx, and ∘ is the product of elements. Sources: M. Giles
2008, An extended collection of matrix derivative results, and J. Townsend 2016, Differentiating the
singular value decomposition.
"""

import numpy as np

from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.dispatch import implements


def _t(x):
    return np.swapaxes(x, -1, -2)


def _over_gaps(e, w, name):
    """Return eᵢⱼ / (wⱼ - wᵢ), or 0 for i = j. Equal wᵢ and wⱼ with eᵢⱼ ≠ 0 raise LinAlgError."""
    gaps = np.expand_dims(w, -2) - np.expand_dims(w, -1)
    largest = np.abs(to_array(w)).max(axis=-1, initial=0)[..., None, None]
    equal = np.abs(to_array(gaps)) <= 4 * np.finfo(w.dtype).eps * largest
    i, n = np.arange(w.shape[-1]), w.shape[-1]
    if (equal & (to_array(e) != 0) & (i[:, None] != i)).any():
        kind = "singular " if name == "svd" else "eigen"
        little = "np.random.normal(size=a.shape)" if name == "svd" else f"np.diag(np.arange({n}))"
        raise np.linalg.LinAlgError(
            f"{name}: two {kind}values are equal, so their {kind}vectors are not determined and "
            f"have no gradient. Use only the {kind}values, or make them differ: a + 1e-4 * {little}"
        )
    return np.where(equal, 0, e / np.where(equal, 1, gaps))


# ---------------------------------------------------------------- eigenvalues


@implements(np.linalg.eigh)
def eigh(a, UPLO="L"):
    """Return (w, V) with A = V diag(w) Vᵀ for symmetric matrices A [..., N, N].

    The eigenvalues w [..., N] are in ascending order, and the columns of V are the eigenvectors. As
    in NumPy, only the lower triangle of A is read, or the upper one for UPLO="U".

    The gradient Ā = ½ (S + Sᵀ) is symmetric, with S = V (diag(w̄) + F ∘ Vᵀ V̄) Vᵀ, where Fᵢⱼ = 1 /
    (wⱼ - wᵢ) for i ≠ j, and 0 for i = j. The rule raises LinAlgError if eigenvectors with a
    gradient have equal eigenvalues. The function raises ValueError if UPLO is neither "L" nor "U".
    """
    a = as_tensor(a)
    if UPLO not in ("L", "U"):
        raise ValueError(
            'np.linalg.eigh of Tensors: UPLO must be "L" (lower triangle) or "U" (upper triangle), '
            f"got {UPLO!r}"
        )
    parts = _eigh(a if UPLO == "L" else _t(a))
    kind = type(np.linalg.eigh(np.eye(1)))
    return kind(parts[..., 0, :], parts[..., 1:, :])


@implements(np.linalg.eigvalsh)
def eigvalsh(a, UPLO="L"):
    """Return the eigenvalues w that `eigh` returns, without the vectors."""
    return eigh(a, UPLO)[0]


@primitive
def _eigh(a):
    w, v = np.linalg.eigh(a)
    return np.concatenate([w[..., None, :], v], axis=-2)  # [..., 1 + n, n]


def _eigh_rule(g, y, a):
    w, v, w_bar, v_bar = y[..., 0, :], y[..., 1:, :], g[..., 0, :], g[..., 1:, :]
    diagonal = np.expand_dims(w_bar, -1) * np.eye(w.shape[-1], dtype=a.dtype)
    s = v @ (diagonal + _over_gaps(_t(v) @ v_bar, w, "eigh")) @ _t(v)
    return (s + _t(s)) / 2


_eigh.defvjp(_eigh_rule)


# ---------------------------------------------------------------- singular values


@implements(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """Return (U, s, Vᵀ) with A = U diag(s) Vᵀ for matrices A [..., M, N].

    The singular values s [..., K] with K = min(M, N) are in descending order. U is [..., M, K] and
    Vᵀ is [..., K, N]. If `compute_uv` is False, only s is returned.

    With S = diag(s) and Fᵢⱼ = 1 / (sⱼ² - sᵢ²), where Fᵢᵢ = 0, the gradient is

        Ā = [U (F ∘ (Uᵀ Ū - Ūᵀ U)) S + (1 - U Uᵀ) Ū S⁻¹] Vᵀ + U diag(s̄) Vᵀ
            + U [S (F ∘ (Vᵀ V̄ - V̄ᵀ V)) Vᵀ + S⁻¹ V̄ᵀ (1 - V Vᵀ)]

    The rule raises LinAlgError if vectors with a gradient have equal singular values or, for an A
    that is not square, the value 0.

    The function raises TypeError for hermitian=True, which is not implemented, and for
    full_matrices=True if A is not square and compute_uv is True. The additional vectors of the full
    matrices are not determined, so they would have no gradient.
    """
    a = as_tensor(a)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(
            f"np.linalg.svd of Tensors: a must be matrices [..., M, N], got shape {a.shape}"
        )
    m, n = a.shape[-2:]
    if hermitian:
        raise TypeError(
            "np.linalg.svd of Tensors: hermitian=True is not implemented. Leave it out, or use "
            "np.linalg.eigh(a)"
        )
    if compute_uv and full_matrices and m != n:
        raise TypeError(
            f"np.linalg.svd of Tensors: a is {m} × {n}, so the full matrices contain vectors that "
            "are not determined and have no gradient. Write full_matrices=False"
        )
    u, s, vt = _cut(_svd(a), a.shape)
    return type(np.linalg.svd(np.eye(1)))(u, s, vt) if compute_uv else s


@implements(np.linalg.svdvals)
def svdvals(x):
    """Return the singular values s that `svd` returns, without the vectors."""
    return svd(x, compute_uv=False)


@primitive
def _svd(a):
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    lead = a.shape[:-2]
    return np.concatenate([u.reshape(*lead, -1), s, vt.reshape(*lead, -1)], axis=-1)


def _svd_rule(g, y, a):
    (u, s, vt), (u_bar, s_bar, vt_bar) = _cut(y, a.shape), _cut(g, a.shape)
    v, v_bar, row = _t(vt), _t(vt_bar), np.expand_dims(s, -2)
    of_u, of_v = _t(u) @ u_bar, _t(v) @ v_bar
    middle = _over_gaps((of_u - _t(of_u)) * row + _t(row) * (of_v - _t(of_v)), s * s, "svd")
    middle = middle + np.expand_dims(s_bar, -1) * np.eye(s.shape[-1], dtype=a.dtype)
    left = u @ middle + _over_values(u_bar - u @ of_u, row)
    return left @ vt + u @ _t(_over_values(v_bar - v @ of_v, row))


def _over_values(outside, row):
    """Return outside · S⁻¹, for the part of Ū or V̄ outside the span of U or V.

    `row` contains the singular values, the diagonal of S, as a row.
    """
    if outside.shape[-2] == outside.shape[-1]:  # the vectors span the whole space
        return 0 * outside
    values = to_array(row)
    zero = values <= 4 * np.finfo(values.dtype).eps * values.max(axis=-1, keepdims=True, initial=0)
    if (zero & (to_array(outside) != 0)).any():
        raise np.linalg.LinAlgError(
            "svd: a singular value is 0, so its vectors are not determined and have no gradient. "
            "Leave them out of the loss (the other vectors have a gradient), or use only the values"
        )
    return outside / np.where(zero, 1, row)


def _cut(parts, shape):
    """Return U, s and Vᵀ from the array in which they are concatenated."""
    (*lead, m, n), k = shape, min(shape[-2:])
    u = np.reshape(parts[..., : m * k], (*lead, m, k))
    vt = np.reshape(parts[..., (m + 1) * k :], (*lead, k, n))
    return u, parts[..., m * k : (m + 1) * k], vt


_svd.defvjp(_svd_rule)
