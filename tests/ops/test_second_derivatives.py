"""Second derivatives of every implementation against those of the array algebra."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import graph, nn
from tinyattn.kernels import numba
from tinyattn.ops import neighbours

rng = np.random.default_rng(0)
IDS = np.array([2, 0, 0, 3, 3, 3])  # segment 1 is empty
INDEX = rng.integers(6, size=(6, 4))
Q, K, V = rng.normal(size=(3, 2, 5, 4))
WEIGHTS = rng.normal(size=(6, 4))
KEEP = rng.random((5, 5)) < 0.7

# {name: (function of x and impl, shape of x)}
CASES = {
    "query": (lambda x, impl: F.scaled_dot_product_attention(x, K, V, impl=impl), Q.shape),
    "self": (
        lambda x, impl: F.scaled_dot_product_attention(x, x, x, mask=KEEP, causal=True, impl=impl),
        Q.shape,
    ),
    "max": (lambda x, impl: graph.segment_max(x, IDS, 4, impl=impl), (6, 3)),
    "min": (lambda x, impl: graph.segment_min(x, IDS, 4, impl=impl), (6, 3)),
    "prod": (lambda x, impl: graph.segment_prod(x, IDS, 4, impl=impl), (6, 3)),
    "softmax": (lambda x, impl: graph.segment_softmax(x, IDS, 4, impl=impl), (6, 3)),
    "mean and max": (lambda x, impl: neighbours.mean_max(WEIGHTS, x, INDEX, impl=impl), (6, 3)),
    "neighbour max": (lambda x, impl: neighbours.neighbour_max(x, INDEX, impl=impl), (6, 3)),
    "distances": (lambda x, impl: neighbours.squared_distances(x, INDEX, impl=impl), (6, 3)),
    "pairs": (lambda x, impl: neighbours.pair_sums(x, np.sin(x), INDEX, impl=impl), (6, 3)),
}
RUNS = [(name, "kernel") for name in CASES] + [("query", "sums"), ("self", "sums")]
RUNS += [("mean and max", "sums")]


def curvature(f, x, v):
    """Return the product of the Hessian of Σ f(x)³ with v."""
    x = ta.tensor(x, requires_grad=True)
    slope = ta.gradients(np.sum(f(x) ** 3), x, create_graph=True)
    return ta.gradients(np.sum(slope * v), x)


@pytest.mark.parametrize(("name", "impl"), RUNS)
def test_the_implementations_agree(name, impl):
    if impl == "kernel" and numba is None:
        pytest.skip("without Numba there is no kernel")
    f, shape = CASES[name]
    x, v = np.random.default_rng(1).normal(size=(2, *shape))
    expected = curvature(lambda x: f(x, "numpy"), x, v)
    assert np.abs(expected).max() > 0.1
    found = curvature(lambda x: f(x, impl), x, v)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_a_large_batch_of_a_layer_without_impl_is_the_sum_of_its_parts():
    """Half of the batch is below the size from which the compiled code runs."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, rng=0).astype(np.float64)
    x, v = np.random.default_rng(2).normal(size=(2, 16, 32, 8))
    parts = [curvature(layer, x[i : i + 2], v[i : i + 2]) for i in range(0, 16, 2)]
    np.testing.assert_allclose(curvature(layer, x, v), np.concatenate(parts), rtol=1e-9, atol=1e-11)
