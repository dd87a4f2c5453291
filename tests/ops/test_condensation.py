"""The repulsion of object condensation, for pairs at all distances."""

import numpy as np

import tinyattn as ta
from tinyattn.check import gradcheck
from tinyattn.ops.condensation import repulsion


def test_pairs_farther_apart_than_1_contribute_nothing():
    x = ta.tensor([[0.0, 5.0], [0.3, 0.0]], dtype=np.float64, requires_grad=True)
    q, q_alpha = np.array([1.0, 2.0]), np.array([3.0])
    pairs = [(np.array([0, 1]), np.array([0, 0]))]
    y = repulsion(x, q, np.zeros((1, 2)), q_alpha, pairs)
    y.backward()
    assert abs(y.item() - 2 * 0.7 * 3) < 1e-12
    np.testing.assert_allclose(x.grad, [[0, 0], [-6, 0]], rtol=0, atol=1e-12)


def test_gradients_of_all_four_inputs():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(6, 3)), rng.random(6), rng.normal(size=(2, 3)), rng.random(2)
    pairs = [(np.array([0, 1, 2]), np.array([0, 0, 1])), (np.array([3, 4, 5]), np.array([1, 0, 1]))]
    distances = [np.linalg.norm(inputs[0][j] - inputs[2][k], axis=1) for j, k in pairs]
    assert np.min(distances) < 1 < np.max(distances)
    gradcheck(lambda *a: repulsion(*a, pairs), *inputs).expect()
