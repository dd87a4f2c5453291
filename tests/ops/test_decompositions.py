"""Eigenvalues and singular values: as PyTorch where they have a gradient, else refused."""

import numpy as np
import pytest

import tinyattn as ta
from tests.cases.ops import normal
from tinyattn import Tensor

A = normal(4, 3)


def gradient(f, *arrays):
    xs = [Tensor(a, requires_grad=True) for a in arrays]
    f(*xs).backward()
    return [x.grad for x in xs]


def test_principal_components_as_in_pytorch():
    """The variance that the first two components leave; and a projection on them."""
    torch = pytest.importorskip("torch")
    x = normal(7, 4)
    t = torch.tensor(x, requires_grad=True)
    centred = t - t.mean(0)
    vt = torch.linalg.svd(centred, full_matrices=False).Vh
    ((centred @ vt[:2].T) ** 4).sum().backward()
    expected, t.grad = t.grad.clone(), None

    def of_svd(x):
        centred = x - np.mean(x, axis=0)
        _, _, vt = np.linalg.svd(centred, full_matrices=False)
        return np.sum((centred @ vt[:2].T) ** 4)

    def of_eigh(x):
        centred = x - np.mean(x, axis=0)
        _, v = np.linalg.eigh(centred.T @ centred)
        return np.sum((centred @ v[:, -2:]) ** 4)

    for f in (of_svd, of_eigh):
        np.testing.assert_allclose(gradient(f, x)[0], expected.numpy(), rtol=1e-9)


def test_results_have_names_and_kinds():
    S = Tensor((A.T @ A).astype(np.float32), requires_grad=True)
    pair = np.linalg.eigh(S)
    assert pair.eigenvalues.dtype == pair.eigenvectors.dtype == np.float32
    np.testing.assert_allclose(
        (pair.eigenvectors * pair.eigenvalues @ pair.eigenvectors.T).numpy(), S.data, rtol=1e-5
    )
    u, s, vt = np.linalg.svd(Tensor(A), full_matrices=False)
    np.testing.assert_allclose((u * s @ vt).numpy(), A, rtol=1e-12)


def test_equal_eigenvalues_have_gradients_but_not_their_vectors():
    L = 3 * np.eye(3) - 1  # the Laplacian of a triangle: 0, 3 and 3
    np.testing.assert_allclose(
        gradient(lambda x: np.sum(np.linalg.eigvalsh(x) ** 2), L)[0], 2 * L, atol=1e-12
    )
    first = gradient(lambda x: np.sum(np.linalg.eigh(x)[1][:, 0] * np.array([1.0, 2, 3])), L)[0]
    assert np.isfinite(first).all()
    with pytest.raises(np.linalg.LinAlgError, match="eigh: .*equal"):
        gradient(lambda x: np.sum(np.linalg.eigh(x)[1] ** 3), L)
    with pytest.raises(np.linalg.LinAlgError, match="svd: .*equal"):
        gradient(lambda x: np.sum(np.linalg.svd(x)[0] ** 3), L)
    with pytest.raises(np.linalg.LinAlgError, match="singular value"):
        gradient(
            lambda x: np.sum(np.linalg.svd(x, full_matrices=False)[0] ** 3),
            np.outer([1.0, 2, 3], [1.0, 1]),
        )


def test_det_of_a_singular_matrix():
    np.testing.assert_array_equal(
        gradient(np.linalg.det, np.array([[1.0, 2], [2, 4]]))[0], [[4, -2], [-2, 1]]
    )
    H = ta.hessian(np.linalg.det)(np.zeros((2, 2)))
    assert H[0, 0, 1, 1] == 1 and H[0, 1, 1, 0] == -1 and np.abs(H).sum() == 4
