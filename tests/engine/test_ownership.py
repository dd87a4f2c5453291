"""Whom an array belongs to: gradients share no memory, and copies of a tensor are whole."""

import copy
import pickle

import numpy as np
import pytest

from tests.engine.leaves import leaf
from tinyattn import Tensor, check, primitive


def test_gradients_do_not_share_memory():
    """add hands one array to both parents; changing one gradient must not change the other."""
    a, b = leaf(3), leaf(3)
    np.sum(a + b).backward()
    a.grad *= 5
    assert np.array_equal(b.grad, [1, 1, 1])
    a, b = leaf(3), leaf(3)
    seed = np.ones(3)
    (a + b).backward(seed)
    a.grad += 1
    seed += 5
    assert np.array_equal(b.grad, [1, 1, 1])
    assert np.array_equal(a.grad, [2, 2, 2])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x,
        lambda x: +x,
        lambda x: x.reshape(3, 1),
        lambda x: np.broadcast_to(x, (2, 3)),
        lambda x: x.T,
        lambda x: x[:],
        lambda x: x + 0,
        np.sum,
        np.mean,
        np.copy,
    ],
)
def test_gradients_are_writable_and_our_own(f):
    x = leaf(3)
    y = f(x) * 1
    y.backward(np.ones(y.shape))
    before = x.grad.copy()
    x.grad[0] = 7.0  # not a view of something read-only, such as a broadcast
    x.grad -= 1
    other = leaf(3)
    np.sum(f(other)).backward()
    np.testing.assert_allclose(other.grad, before, rtol=1e-15)


@pytest.mark.parametrize("f", [np.sum, np.mean, lambda x: np.broadcast_to(x, ())])
def test_the_gradient_of_a_single_number_is_writable(f):
    x = leaf()
    f(x).backward()
    x.grad -= 0.5
    assert x.grad == 0.5


def test_gradient_accumulates_into_its_own_array():
    x = leaf(3)
    np.sum(x).backward()
    first = x.grad
    np.sum(x).backward()
    assert np.array_equal(x.grad, [2, 2, 2])
    assert np.array_equal(first, [1, 1, 1]) or first is x.grad


def test_seed_is_not_changed():
    x, seed = leaf(3), np.ones(3)
    y = x * 1
    ((y + y) + (y + y)).backward(seed)
    assert np.array_equal(seed, [1, 1, 1])


def _times(g, y, x):
    g *= 3
    return g


def _fills(g, y, x):
    g[x < 0] = 0
    return g


def _out(g, y, x):
    return np.multiply(g, 3, out=y)


def _sorts(g, y, x):
    g.sort()
    return g


@pytest.mark.parametrize("rule", [_times, _fills, _out, _sorts])
@pytest.mark.parametrize("joint", [False, True])
def test_a_rule_that_writes_into_what_it_gets_is_refused(rule, joint):
    """add hands one array to both sides: what a rule does to it, it does to the other side."""
    careless = primitive(lambda x: x * 1)
    if joint:
        careless.defvjp_joint(lambda g, y, x: [rule(g, y, x)])
    else:
        careless.defvjp(rule)
    x, z = leaf(3), leaf(3)
    before = x.data.copy()
    with pytest.raises(ValueError, match=r"lambda.*its rule writes into .* x\.copy\(\)"):
        np.sum(careless(x) + z).backward()
    assert x.grad is None and z.grad is None
    np.testing.assert_array_equal(x.data, before)
    report = check.gradcheck(careless, np.ones(3))
    assert not report
    assert "WRONG" in report.text and "writes into" in report.causes[0]
    assert "must not change their arguments" in primitive.__doc__


def test_a_function_that_writes_into_its_input_is_refused():
    @primitive
    def relu(x):
        x[x < 0] = 0
        return x

    @primitive
    def scaled(x, *, by):
        by *= 2
        return x * by

    x = np.array([-1.0, 1.0])
    for f in (lambda: relu(x), lambda: scaled(x, by=x)):
        with pytest.raises(ValueError, match="its function writes into an input"):
            f()
    np.testing.assert_array_equal(x, [-1, 1])


def test_what_only_reads_gets_what_it_always_got():
    """Views of an input can still be written to, and errors of other kinds stay as they are."""
    first = primitive(lambda x: x[:1])
    first.defvjp(lambda g, y, x: np.concatenate([g, np.zeros(2)]))
    x = Tensor(np.ones(3))
    first(x)[...] = 5.0
    np.testing.assert_array_equal(x.data, [5, 1, 1])
    y = primitive(lambda x: np.broadcast_to(x, (2, 3)))(np.ones(3))
    assert not y.data.flags.writeable or y.data.base is not None
    with pytest.raises(ValueError, match="could not be broadcast") as caught:
        primitive(lambda x: x + np.ones(5))(np.ones(3))
    assert "writes" not in str(caught.value)
    constant = np.ones(3)
    constant.flags.writeable = False
    assert not primitive(lambda x: x)(constant).data.flags.writeable


def test_seed_of_a_wrong_shape():
    with pytest.raises(ValueError, match=r"shape \(2,\).*\(3,\)"):
        (leaf(3) * 2).backward(np.ones(2))
    with pytest.raises(RuntimeError, match=r"only a single number.*shape \(3,\)"):
        (leaf(3) * 2).backward()
    with pytest.raises(TypeError, match="complex"):
        (leaf(3) * 2).backward(np.ones(3) * 1j)


def test_backward_from_a_leaf():
    x = leaf()
    x.backward()
    assert x.grad == 1
    x = leaf(3)
    x.backward(np.arange(3))
    assert np.array_equal(x.grad, [0, 1, 2])


def test_deepcopy():
    w = leaf(3)
    w.grad = np.ones(3)
    twin = copy.deepcopy({"a": w, "b": w})
    assert twin["a"] is twin["b"]
    assert twin["a"].requires_grad
    assert np.array_equal(twin["a"].data, w.data)
    assert not np.shares_memory(twin["a"].data, w.data)
    w.data -= 1
    assert not np.array_equal(twin["a"].data, w.data)
    with pytest.raises(RuntimeError, match="detach"):
        copy.deepcopy(w * 2)


def test_pickle():
    for t in (leaf(3), Tensor(np.arange(3)), Tensor(2.0)):
        back = pickle.loads(pickle.dumps(t))
        assert np.array_equal(back.data, t.data)
        assert back.dtype == t.dtype
        assert back.requires_grad == t.requires_grad
    x = pickle.loads(pickle.dumps(leaf(3)))
    np.sum(x * x).backward()
    np.testing.assert_allclose(x.grad, 2 * x.data)
    with pytest.raises((RuntimeError, TypeError), match="detach"):
        pickle.dumps(leaf(3) * 2)


def test_equality_is_elementwise_and_hash_by_identity():
    a, b = Tensor([1.0, 2.0]), Tensor([1.0, 3.0])
    assert np.array_equal((a == b).data, [True, False])
    assert np.array_equal((a != b).data, [False, True])
    assert len({a, b, a}) == 2
    assert a in {a}
    assert {a: 1}[a] == 1
    with pytest.raises(ValueError, match="ambiguous"):
        bool(a == b)


def test_tensor_is_no_mapping_of_a_hidden_copy():
    data = np.ones(3)
    t = Tensor(data)
    data[0] = 5
    assert t.data[0] == 1
    t.numpy()[1] = 7
    assert t.data[1] == 7
    assert np.shares_memory(t.detach().data, t.data)


def test_unknown_attributes_are_errors():
    with pytest.raises(AttributeError):
        leaf(3).requires_gard = True
    with pytest.raises(AttributeError):
        leaf(3).shape = (1, 3)
