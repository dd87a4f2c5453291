"""Operations and rules that are wrong: the error names them, and no gradient is half-written."""

import functools
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

    with pytest.raises(TypeError, match=r"without has no derivative rule for its input 1.*defvjp"):
        np.sum(without(2.0, leaf(3))).backward()
    without.defvjp(lambda g, y, a, b: g * b)
    a = leaf(3)
    np.sum(without(a, np.ones(3))).backward()
    assert np.array_equal(a.grad, [1, 1, 1])
    with pytest.raises(TypeError, match="without has no derivative rule for its input 1"):
        np.sum(without(a, leaf(3))).backward()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            lambda g, y, x: g[:2],
            r"a rule of twice returned shape \(2,\) for an input of shape \(3,\)",
        ),
        (lambda g, y, x: None, "a rule of twice returned None. Did you forget its `return`"),
        (lambda g, y, x: 1j * g, "a rule of twice returned complex128"),
        (lambda g, y, x: "g", "a rule of twice returned <U1"),
        (lambda g, y, x: [g, g, None], "twice|inhomogeneous"),
    ],
)
def test_what_a_rule_may_not_return(rule, message):
    twice = primitive(lambda x: 2 * x)
    twice.operation.name = "twice"
    twice.defvjp(rule)
    x = leaf(3)
    with pytest.raises((TypeError, ValueError), match=message):
        np.sum(twice(x)).backward()
    assert x.grad is None


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
    with pytest.raises(TypeError, match="scale.* unexpected keyword argument 'c'"):
        scale(a, c=b)


def test_rules_that_cannot_be_called_are_refused_at_once():
    @primitive
    def scale(x, c):
        return x * c

    @primitive
    def power(x, n=2.0, *, sign=1.0):
        return sign * x**n

    for wrong, message in [
        (5, "expected a function or None, got 5"),
        (lambda g, y: g, r"called as rule\(g, y, x, c\), but <lambda> takes \(g, y\)"),
        (lambda g, y, x, c, d: g, r"<lambda> takes \(g, y, x, c, d\)"),
    ]:
        with pytest.raises(TypeError, match=rf"scale.defvjp: .*{message}"):
            scale.defvjp(None, wrong)
        with pytest.raises(TypeError, match=rf"scale.defvjp: .*{message}"):
            scale.defvjp_joint(wrong)
    with pytest.raises(TypeError, match=r"power.defvjp: .* rule\(g, y, x, n=2.0, sign=1.0\)"):
        power.defvjp(lambda g, y: g)
    for right in (
        lambda g, y, x, n=2.0, sign=1.0: g,
        lambda g, y, x, n=2.0, *, sign=1.0: g,
        lambda g, y, *args, **named: g,
        lambda g, y, x, n: g,
        np.add,
    ):
        power.defvjp(right)
    with pytest.raises(
        TypeError, match="primitive: expected a function with a name, got an object of type part"
    ):
        primitive(functools.partial(np.sum, axis=0))


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
    with pytest.raises(ValueError, match=r"a gradient for each input \(1\), got 2"):
        np.sum(twice(x)).backward()


def test_a_gradient_given_as_tensor_gets_the_dtype_of_the_result():
    x = leaf(2, dtype=np.float32)
    x.backward(Tensor(np.array([1, 2])))
    assert x.grad.dtype == np.float32
    with pytest.raises(TypeError, match="expected a real gradient, got complex128"):
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
    with pytest.raises(TypeError, match="total has no derivative rule"):
        np.sum(total(a, b)).backward()
    with pytest.raises(ValueError, match="defvjp_joint"):
        total.defvjp(lambda g, y, *xs: g)
    for answer in ([1.0], None, np.ones(3)):
        total.defvjp_joint(lambda g, y, *xs, answer=answer: answer)
        for h in (b, b * 1):
            with pytest.raises(
                (TypeError, ValueError), match="the rule of total (returned|must return)"
            ):
                np.sum(total(a, h)).backward()
    total.defvjp_joint(lambda g, y, *xs: [g] * len(xs))
    np.sum(total(a, b, 2.0)).backward()
    assert np.array_equal(b.grad, [1, 1, 1])


def test_more_rules_than_inputs():
    with pytest.raises(ValueError, match=r"each input \(1\), got 2"):
        primitive(lambda x: 2 * x).defvjp(lambda g, y, x: 2 * g, lambda g, y, x: g)


def test_operation_returns_one_array():
    pair = primitive(lambda x: (x, x))
    with pytest.raises(TypeError, match="tuple"):
        pair(leaf(3))
    nothing = primitive(lambda x: None)
    with pytest.raises(TypeError):
        nothing(leaf(3))


def test_rule_with_a_broadcast_gradient_is_summed_by_the_engine():
    spread = primitive(lambda x: x + np.zeros((4, 3)))
    spread.defvjp(lambda g, y, x: g)
    x = leaf(3)
    spread(x).backward(np.ones((4, 3)))
    assert np.array_equal(x.grad, [4, 4, 4])
    x = leaf(1, 3)
    spread(x).backward(np.ones((4, 3)))
    assert np.array_equal(x.grad, [[4, 4, 4]])


def test_numpy_functions_without_a_rule():
    x = leaf(3, 3)
    for call, name in (
        (lambda: np.linalg.qr(x), "np.linalg.qr"),
        (lambda: np.fft.fft2(x), "np.fft.fft2"),
        (lambda: np.nanmedian(x), "np.nanmedian"),
        (lambda: np.interp(x, [0, 1], [0, 1]), "np.interp"),
        (lambda: np.nanpercentile(x, 50), "np.nanpercentile"),
        (lambda: np.linalg.eig(x), "np.linalg.eig"),
        (lambda: np.apply_along_axis(np.sum, 0, x), "np.apply_along_axis"),
        (lambda: np.spacing(x), "np.spacing"),
        (lambda: np.modf(x), "np.modf"),
        (lambda: np.frexp(x), "np.frexp"),
        (lambda: np.fill_diagonal(x, 0), "np.fill_diagonal"),
        (lambda: np.put_along_axis(x, np.zeros((3, 3), int), 0, 0), "np.put_along_axis"),
        (lambda: np.vander(x[0]), "np.vander"),
    ):
        with pytest.raises(TypeError, match=f"{name} has no derivative rule.*numpy().*primitive"):
            call()


def test_ufunc_methods_and_options_are_refused_by_name():
    x = leaf(3)
    for call, name in (
        (lambda: np.add.reduce(x), "np.add.reduce"),
        (lambda: np.add.accumulate(x), "np.add.accumulate"),
        (lambda: np.multiply.outer(x, x), "np.multiply.outer"),
        (lambda: np.add.at(x, [0], 1.0), "np.add.at"),
        (lambda: np.add.reduceat(x, [0]), "np.add.reduceat"),
        (lambda: np.exp(x, out=np.zeros(3)), r"np.exp.*out=\. The result is a new Tensor"),
        (lambda: np.exp(x, where=np.ones(3, bool)), "np.exp.*where="),
        (lambda: np.exp(x, dtype=np.float32), r"np.exp.*dtype=\. Write \.astype\(dtype\) after it"),
        (lambda: np.matmul(x, x, out=np.zeros(())), "np.matmul.*out="),
        (lambda: np.sum(x, out=np.zeros(())), "np.sum on Tensors takes no out="),
        (lambda: np.std(x, where=np.ones(3, bool)), "np.std on Tensors takes no where="),
        (lambda: np.max(x, where=np.ones(3, bool)), "np.max.*where= .*initial="),
        (lambda: np.trace(np.outer(x, x), dtype=np.float32), "np.trace.*dtype="),
        (lambda: np.concatenate([x, x], out=np.zeros(6)), "concatenate.*out"),
        (lambda: np.clip(x, 0, 1, out=np.zeros(3)), "clip.*out"),
        (lambda: np.reshape(x, (3,), order="F"), "reshape.*order"),
        (lambda: np.ravel(x, order="F"), "ravel.*order"),
        (lambda: np.take(x, [5], mode="wrap"), "take.*mode"),
        (lambda: np.sort(x, order="a"), "sort.*order"),
        (lambda: np.pad(x, 1, mode="reflect"), "pad.*reflect"),
        (lambda: np.einsum(x, [0], [0]), "einsum.*string"),
        (lambda: np.einsum("i->i", x, out=np.zeros(3)), "einsum.*out"),
        (lambda: np.linalg.norm(np.outer(x, x), 2), "norm.*2"),
        (lambda: np.linalg.norm(np.outer(x, x), "nuc"), "norm.*nuc"),
        (lambda: np.linalg.norm(np.outer(x, x), 1), "norm.*1"),
        (lambda: np.diff(x, prepend=0.0), "diff.*prepend"),
        (lambda: np.average(np.outer(x, x), weights=[1, 2, 3]), "average.*weights"),
        (lambda: np.average(x, weights=[1, 2, 3], returned=True), "average.*returned"),
        (lambda: np.nan_to_num(x, copy=False), "nan_to_num.*copy"),
        (lambda: np.round(x, out=np.zeros(3)), "np.round.*out="),
        (lambda: np.argmax(x, out=np.zeros((), int)), "np.argmax.*out="),
    ):
        with pytest.raises((TypeError, NotImplementedError, ValueError), match=name):
            call()
