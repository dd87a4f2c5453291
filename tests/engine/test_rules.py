"""Operations and rules that are wrong: the error names them, and no gradient is half-written."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from tests.engine.leaves import leaf
from tinyattn import Tensor, primitive


def test_error_in_a_rule_leaves_gradients_alone():
    @primitive
    def broken(x):
        return x * 1

    @broken.defvjp
    def rule(g, y, x):
        raise ZeroDivisionError("in the rule")

    a, b = leaf(3), leaf(3)
    a.grad = np.full(3, 7.0)
    loss = np.sum(a * 2) + np.sum(broken(b)) + np.sum(a * b)
    with pytest.raises(ZeroDivisionError, match="in the rule"):
        loss.backward()
    assert np.array_equal(a.grad, [7, 7, 7])
    assert b.grad is None
    assert (a * 1).requires_grad  # recording is on again


def test_missing_rule():
    @primitive
    def without(x, y):
        return x * y

    with pytest.raises(TypeError, match="without .* input 1"):
        np.sum(without(2.0, leaf(3))).backward()
    without.defvjp(lambda g, y, a, b: g * b)
    a = leaf(3)
    np.sum(without(a, np.ones(3))).backward()
    assert np.array_equal(a.grad, [1, 1, 1])
    with pytest.raises(TypeError, match="without .* input 1"):
        np.sum(without(a, leaf(3))).backward()


def test_operation_called_by_keywords():
    @primitive
    def scale(x, c):
        return x * c

    @primitive
    def affine(x, a=1.0, b=None):
        return x * a + b

    scale.defvjp(lambda g, y, x, c: g * c, lambda g, y, x, c: g * x)
    affine.defvjp(lambda g, y, x, a, b: g * a, None, lambda g, y, x, a, b: g)
    x, c = leaf(3), leaf(3)
    np.sum(scale(x, c=c) + scale(x=x, c=2.0) + affine(x, b=c)).backward()
    np.testing.assert_allclose(x.grad, c.data + 3)
    np.testing.assert_allclose(c.grad, x.data + 1)


@pytest.mark.parametrize(("y", "t"), [("y", "t"), ("z", "x"), ("call", "wanted")])
def test_a_call_with_wrong_inputs_names_the_ones_of_the_function(y, t):
    """Whatever they are called, and though the engine has variables of these names too."""
    space = {}
    exec(f"def scale({y}, {t}): return {y} * {t}\ndef twice({y}): return 2 * {y}", space)
    scale, twice = primitive(space["scale"]), primitive(space["twice"])
    scale.defvjp(lambda g, out, a, b: g * b, lambda g, out, a, b: g * a)
    twice.defvjp(lambda g, out, a: 2 * g)
    a, b = leaf(3), leaf(3)
    np.sum(scale(**{t: b, y: twice(**{y: a})})).backward()
    np.testing.assert_array_equal(a.grad, 2 * b.data)
    np.testing.assert_array_equal(b.grad, 2 * a.data)
    with pytest.raises(TypeError, match=f"twice.* missing 1 required .*'{y}'"):
        twice()
    with pytest.raises(TypeError, match=f"scale.* missing 1 required .*'{t}'"):
        scale(a)
    with pytest.raises(TypeError, match="scale.* unexpected .*'c'"):
        scale(a, c=b)


def test_the_last_rule_given_counts():
    twice = primitive(lambda x: 2 * x)
    x = leaf(3)
    twice.defvjp_joint(lambda g, y, x: [2 * g])
    twice.defvjp(lambda g, y, x: 7 * g)
    np.sum(twice(x)).backward()
    np.testing.assert_array_equal(x.grad, [7, 7, 7])
    twice.defvjp_joint(lambda g, y, x: [2 * g])
    np.sum(twice(x)).backward()
    np.testing.assert_array_equal(x.grad, [9, 9, 9])
    twice.defvjp_joint(lambda g, y, x: [g, g])
    with pytest.raises(ValueError, match=r"\(1\), got 2"):
        np.sum(twice(x)).backward()


def test_a_gradient_given_as_tensor_gets_the_dtype_of_the_result():
    x = leaf(2, dtype=np.float32)
    x.backward(Tensor(np.array([1, 2])))
    assert x.grad.dtype == np.float32
    with pytest.raises(TypeError, match="real numbers"):
        x.backward(Tensor(np.array([1j, 2])))


def test_a_pickled_tensor_is_used_in_another_process(tmp_path):
    """Times are counted in each process; those of the first mean nothing in the second."""
    x = Tensor([1.0, 2.0], requires_grad=True)
    for _ in range(1000):
        x.data = x.data + 1.0
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(x))
    program = (
        "import pickle, sys, numpy as np; x = pickle.load(open(sys.argv[1], 'rb'));"
        "np.sum(x * x).backward(); print(x.grad.tolist())"
    )
    command = [sys.executable, "-c", program, tmp_path / "x.pkl"]
    assert subprocess.check_output(command, text=True).strip() == "[2002.0, 2004.0]"
    result = pickle.loads(pickle.dumps(Tensor([1.0, 2.0]) * 2))
    result[...] = 5
    np.testing.assert_array_equal(result.data, [5, 5])


def test_every_input_must_get_its_gradient():
    def total(*xs):
        return sum(xs)

    total = primitive(total)
    a, b = leaf(3), leaf(3)
    with pytest.raises(TypeError, match="total .*rule"):
        np.sum(total(a, b)).backward()
    with pytest.raises(ValueError, match="defvjp_joint"):
        total.defvjp(lambda g, y, *xs: g)
    for answer in ([1.0], None, np.ones(3)):
        total.defvjp_joint(lambda g, y, *xs, answer=answer: answer)
        for h in (b, b * 1):
            with pytest.raises((TypeError, ValueError), match="rule of total"):
                np.sum(total(a, h)).backward()
    total.defvjp_joint(lambda g, y, *xs: [g] * len(xs))
    np.sum(total(a, b, 2.0)).backward()
    assert np.array_equal(b.grad, [1, 1, 1])


def test_rule_with_a_broadcast_gradient_is_summed_by_the_engine():
    spread = primitive(lambda x: x + np.zeros((4, 3)))
    spread.defvjp(lambda g, y, x: g)
    x = leaf(3)
    spread(x).backward(np.ones((4, 3)))
    assert np.array_equal(x.grad, [4, 4, 4])
    x = leaf(1, 3)
    spread(x).backward(np.ones((4, 3)))
    assert np.array_equal(x.grad, [[4, 4, 4]])
