"""float16: what squares its numbers computes in float32, and what cannot work is refused."""

import numpy as np
import pytest

import tinyattn.functional as F
from tinyattn import Tensor, nn, optim

LARGE = np.array([[3e4, -3e4, 1e4], [200.0, 300.0, 100.0]], np.float16)


def with_gradient(f, x, g):
    x = Tensor(x, requires_grad=True)
    y = f(x)
    y.backward(g.astype(y.dtype))
    return y, x.grad


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.layer_norm(x, 3),
        lambda x: F.rms_norm(x, 3, eps=1e-5),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.batch_norm(x[..., None], None, None, training=True),
        lambda x: nn.GroupNorm(1, 3, affine=False)(x),
        F.normalize,
        lambda x: F.cosine_similarity(x, np.ones((2, 3), np.float16)),
        lambda x: np.var(x * np.float16(1e-2), axis=1),
        lambda x: np.std(x, axis=1),
        lambda x: np.std(x),
    ],
)
def test_large_numbers_do_not_overflow(f):
    """The same as in float64, but for the three digits that float16 has."""
    wide = f(Tensor(LARGE.astype(np.float64)))
    g = np.random.default_rng(0).normal(size=wide.shape)
    expected = with_gradient(f, LARGE.astype(np.float64), g)
    y, gradient = with_gradient(f, LARGE, g)
    assert y.dtype == np.float16
    assert gradient.dtype == np.float16
    np.testing.assert_allclose(y.numpy(), expected[0].numpy(), rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-2, atol=2e-4)


def test_layer_norm_is_that_of_pytorch():
    y = F.layer_norm(np.array([3e4, -3e4, 1e4], np.float16), 3)
    np.testing.assert_allclose(y.numpy(), [1.07, -1.336, 0.267], atol=2e-3)


def test_weights_in_float32_give_float32():
    layer = nn.LayerNorm(3)
    assert layer(LARGE).dtype == np.float32
    np.testing.assert_allclose(layer(LARGE).numpy(), F.layer_norm(LARGE, 3).numpy(), atol=1e-3)
    assert nn.LayerNorm(3).astype(np.float16)(LARGE).dtype == np.float16


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW, optim.RMSprop])
def test_an_optimizer_whose_eps_would_be_zero_is_refused(make):
    p = nn.Parameter(np.ones(3, np.float16))
    with pytest.raises(TypeError, match="float16.* eps=1e-08"):
        make([p])
    optimizer = make([p], eps=1e-3)
    p.grad = np.array([0.0, 1, -1], np.float16)
    optimizer.step()
    assert np.isfinite(p.data).all()
    optim.SGD([p], lr=0.1)
