"""Rules where random numbers never come: what the mutation tool showed to be untested."""

import numpy as np
import pytest

import tinyattn.functional as F
from tinyattn import Tensor
from tinyattn.engine.convert import to_array
from tinyattn.ops.backends import IMPLEMENTATIONS


def gradients(f, *values):
    xs = [Tensor(np.array(v), requires_grad=True) for v in values]
    with np.errstate(all="ignore"):
        f(*xs).backward()
    return [float(x.grad) for x in xs]


@pytest.mark.parametrize("f", [np.logaddexp, np.logaddexp2])
def test_of_two_numbers_of_which_one_is_infinite_the_other_has_no_share(f):
    assert gradients(f, 1.0, -np.inf) == [1, 0]
    assert gradients(f, -np.inf, 1.0) == [0, 1]
    assert gradients(f, -np.inf, -np.inf) == [0.5, 0.5]
    assert gradients(f, np.inf, np.inf) == [0.5, 0.5]
    assert gradients(f, np.inf, 1.0) == [1, 0]


def test_one_tensor_in_two_places_of_a_kernel_is_differentiated_again():
    """dL/dw counts each place once, also where the rule takes the reference (create_graph)."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(64, 64)), Tensor(rng.normal(size=64), requires_grad=True)
    assert x.size >= IMPLEMENTATIONS["norm"].least  # the kernel computes
    found = []
    for again in (False, True):
        w.grad = None
        np.sum(F.layer_norm(x, 64, w, w) ** 2).backward(create_graph=again)
        found.append(to_array(w.grad))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)


@pytest.mark.parametrize("impl", ["numpy", "sums"])
def test_equal_numbers_of_a_window_share_its_gradient(impl):
    x = Tensor(np.array([[[3.0, 3.0, 1.0, 2.0, 2.0, 2.0]]]), requires_grad=True)
    F.max_pool1d(x, 3, impl=impl).backward(np.array([[[6.0, 12.0]]]))
    np.testing.assert_array_equal(x.grad, [[[3, 3, 0, 4, 4, 4]]])
    x.grad = None
    F.max_pool1d(x, 3, padding=1, impl=impl).backward(np.array([[[6.0, 12.0]]]))
    np.testing.assert_array_equal(x.grad, [[[3, 3, 0, 6, 6, 0]]])


@pytest.mark.parametrize("index", [[0, -4], [0, 3], [3, -1]])
def test_the_index_that_is_not_there_is_named(index):
    x = Tensor(np.zeros((3, 2)), requires_grad=True)
    wrong = next(i for i in index if not -3 <= i < 3)
    with pytest.raises(IndexError, match=f"index {wrong} "):
        x[np.array(index)]
