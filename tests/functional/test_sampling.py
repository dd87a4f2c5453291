"""Drawing from probabilities: the right shares, float32, and what cannot be drawn."""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.autograd import Tensor

RNG = np.random.default_rng(0)


def test_shares_are_the_probabilities():
    p = np.array([[0.1, 0.0, 0.6, 0.3], [0.0, 1.0, 0.0, 0.0]])
    drawn = F.multinomial(np.broadcast_to(p, (20_000, 2, 4)), rng=0)
    shares = np.stack([np.bincount(drawn[:, i], minlength=4) / 20_000 for i in range(2)])
    # an error of a share is at most sqrt(1/4 / 20000) = 0.0035; four of them
    np.testing.assert_allclose(shares, p, atol=0.014)
    assert not shares[p == 0].any()


def test_probabilities_of_a_float32_tensor():
    p = F.softmax(Tensor(RNG.normal(size=(7, 1000)).astype(np.float32)))
    assert F.multinomial(p, rng=0).shape == (7,)
    assert F.multinomial(p[0], rng=0).shape == ()
    assert F.multinomial(p[:0], rng=0).shape == (0,)
    np.testing.assert_array_equal(F.multinomial(p, rng=3), F.multinomial(p * 2, rng=3))
