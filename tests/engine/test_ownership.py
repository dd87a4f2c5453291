"""Whom an array belongs to: gradients share no memory, and copies of a tensor are whole."""

import copy
import pickle

import numpy as np
import pytest

import tinyattn as ta
from tests.engine.leaves import leaf
from tests.ops.test_gradients import CASES
from tinyattn import Tensor, check, kernels, ops, primitive
from tinyattn.engine.autograd import topological_order
from tinyattn.ops.matmul import linear


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
    with pytest.raises(ValueError, match="lambda.* rule writes"):
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
        with pytest.raises(ValueError, match="function writes"):
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
    with pytest.raises(ValueError, match="broadcast") as caught:
        primitive(lambda x: x + np.ones(5))(np.ones(3))
    assert "writes" not in str(caught.value)
    constant = np.ones(3)
    constant.flags.writeable = False
    assert not primitive(lambda x: x)(constant).data.flags.writeable


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


def is_float(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def arrays_in(residuals):
    """All arrays of an operation's residuals, whatever they are packed in."""
    if isinstance(residuals, np.ndarray):
        return [residuals]
    return [a for r in residuals for a in arrays_in(r)] if isinstance(residuals, tuple) else []


def fresh_operations():
    """The operations of tinyattn/ops whose rules promise arrays of their own."""
    functions = [
        f for module in vars(ops).values() for f in getattr(module, "__dict__", {}).values()
    ]
    kinds = [k for f in functions for k in getattr(f, "implementations", {}).values()]
    found = {getattr(f, "operation", None) for f in [*functions, *kinds]}
    return {op for op in found if getattr(op, "fresh", False)}


def gradients_of(t):
    """What the rules of the operation of t return for some gradient, and what they were given."""
    op, options = t._operation, t._options
    g = np.random.default_rng(0).normal(size=t.shape).astype(t.dtype)
    arguments = g, t._data, *t._values
    if op.joint is not None:
        found = op.joint(*arguments, **options)
    else:
        pairs = zip(op.rules, t._inputs, strict=False)
        found = [rule(*arguments, **options) for rule, x in pairs if x is not None]
    given = [a for a in arguments if isinstance(a, np.ndarray)]
    return [a for a in found if a is not None], given + arrays_in(options.get("residuals", ()))


@pytest.mark.skipif(kernels.numba is None, reason="without Numba, no kernel runs")
def test_what_is_called_fresh_is_fresh():
    """The engine hands these arrays to the user and adds to them in place, so each is alone."""
    tested = set()
    for case in [case for cases in CASES.values() for case in cases]:
        ta.seed(0)
        y = case.f(*[ta.tensor(x, requires_grad=True) if is_float(x) else x for x in case.inputs])
        for t in topological_order(y)[0] if isinstance(y, Tensor) and y.requires_grad else []:
            if t._operation.fresh:
                tested.add(t._operation)
                found, given = gradients_of(t)
                assert found
                for i, a in enumerate(found):
                    assert a.flags.writeable, case.note
                    shared = [np.shares_memory(a, b) for b in [*found[:i], *given]]
                    assert not any(shared), f"{t._operation.name}, {case.note}"
    known = fresh_operations()
    assert linear.operation in known
    assert not {op.name for op in known - tested}


def test_a_gradient_of_a_layer_is_handed_over_and_not_copied():
    """A step of training would otherwise write and read all gradients of the weights once more."""
    x, layer = leaf(3, 4), ta.nn.Linear(4, 5, rng=0).astype(np.float64)
    given = []
    op = linear.operation
    rules = op.rules

    def noted(rule):
        def run(*arguments, **options):
            given.append(rule(*arguments, **options))
            return given[-1]

        return run

    op.rules = [noted(rule) for rule in rules]
    try:
        layer(x).sum().backward()
    finally:
        op.rules = rules
    for p in (layer.weight, layer.bias):
        assert any(np.shares_memory(p.grad, g) for g in given)
    # a tensor that is used twice has the sum
    w = ta.tensor(np.ones((3, 3)), requires_grad=True)
    np.sum(linear(linear(np.eye(3), w), w)).backward()
    np.testing.assert_allclose(w.grad, np.full((3, 3), 6.0), rtol=1e-15)
