"""Silent bugs that engines are known for, rebuilt: each must end in an error or in the truth."""

import copy
import functools
import linecache
import math
import pickle
import struct
import subprocess
import sys
import threading
from math import sqrt

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import Tensor, check, no_grad, primitive

rng = np.random.default_rng(0)


def leaf(*shape, dtype=np.float64):
    return Tensor(rng.normal(size=shape).astype(dtype), requires_grad=True)


# ---------------------------------------------------------------- gradient lost on the way


def test_plain_arrays_do_not_slip_in():
    t, array = leaf(3), np.zeros(3)
    for lose in (
        lambda: np.asarray(t),
        lambda: np.array(t),
        lambda: np.array([t, t]),
        lambda: np.asarray([t[0], t[1]]),
        lambda: array.__setitem__(slice(None), t),
        lambda: array.__iadd__(t),
        lambda: np.add(array, t, out=array),
        lambda: np.add(t, t, out=t),
        lambda: np.exp(t, out=array),
        lambda: np.exp(t, where=array > 0),
        lambda: np.exp(t, dtype=np.float32),
        lambda: np.copyto(array, t),
        lambda: np.put(array, [0], t),
        lambda: Tensor(t),
        lambda: Tensor([t[0], t[1]]),
        lambda: ta.tensor(t),
        lambda: t.__setitem__(0, t[1]),
        lambda: Tensor(np.zeros(3)).__setitem__(0, t[1]),
        lambda: np.array(t[0]),
        lambda: setattr(Tensor(np.zeros(3)), "data", t),
    ):
        with pytest.raises((TypeError, ValueError), match=r"gradient|lose|Tensor|sequence"):
            lose()
        assert not array.any()


def test_float_and_int_of_a_tensor_with_gradient():
    x = Tensor(2.5, requires_grad=True)
    assert f"{x:.2f}" == "2.50" == "%.2f" % x  # noqa: UP031
    assert float(x) == 2.5 and [float(v) for v in (x, x * 1)] == [2.5, 2.5]
    assert int(x) == 2
    assert x.item() == 2.5
    assert math.isfinite(x) and not math.isnan(x * 2)
    assert max(float(x * 2), 1.0) == sum(map(float, [x, x])) == 5.0


def test_a_number_written_into_an_array_would_lose_its_gradient():
    """How index sums are written at first: S[i, j] = x[i] * x[j]."""
    x, S, row = leaf(3), np.zeros((3, 3)), [0.0]
    for lose in (
        lambda: S.__setitem__((0, 1), x[0] * x[1]),
        lambda: S.fill(x[0]),
        lambda: exec("S[0, 1] = x[0] * x[1]", {"S": S, "x": x}),
        lambda: exec("S[0, 1] += x[0]", {"S": S, "x": x}),
        lambda: exec("S[0, 1], S[1, 1] = x[0], 1.0", {"S": S, "x": x}),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            lose()
        error = caught.value.__cause__ or caught.value  # NumPy wraps the error in one of its own
        assert "array[...] = x would lose the gradient of x: collect" in str(error)
        assert not S.any()
    row[0] = x[0]  # a list holds the Tensor itself
    assert row[0].requires_grad
    with no_grad():
        S[0, 1] = x[0]
        S[1, 1] = Tensor(2.0, requires_grad=True)
    S[0, 2] = x.detach()[0]
    S[1, 0] = x[0].item()
    np.testing.assert_array_equal(S[0], [0, x.data[0], x.data[0]])


def test_functions_of_math_would_lose_the_gradient():
    x = Tensor(0.5, requires_grad=True)
    with pytest.raises(TypeError, match=r"math.exp\(x\) would lose the gradient of x: use np.exp"):
        math.exp(x)
    with pytest.raises(TypeError, match=r"use np.sqrt\(x\)"):
        y = 1 + sqrt(  # over several lines
            abs(x * 2)
        )
        print(y)
    assert math.exp(x.detach()) == math.exp(0.5)
    with no_grad():
        assert math.exp(x) == math.exp(0.5)


def test_another_function_that_takes_a_number_warns_and_names_the_line():
    x = Tensor(0.5, requires_grad=True)
    with pytest.warns(UserWarning, match=r"pack took a Tensor .* say x.item\(\)") as caught:
        packed = struct.pack("d", x)
    assert packed == struct.pack("d", 0.5)
    assert caught[0].filename == __file__
    assert "struct.pack" in linecache.getline(__file__, caught[0].lineno)


def test_augmented_assignment_of_a_result_makes_a_new_tensor():
    x = leaf(3)
    h = y = x * 1
    y += x
    y *= 2
    y -= 1
    y /= 2
    y **= 2
    assert y is not h
    np.sum(y).backward()
    np.testing.assert_allclose(x.grad, 4 * (2 * x.data - 0.5), rtol=1e-12)


def test_update_of_a_parameter_does_not_get_lost():
    """`p -= step` must not rebind the name p and leave the parameter as it was."""
    model = {"p": leaf(3)}
    p = model["p"]
    before = p.data.copy()
    np.sum(p * p).backward()
    with pytest.raises(TypeError, match="inside no_grad"):
        p -= 0.1 * p.grad
    with no_grad():
        p -= 0.1 * p.grad
        p *= 2
    assert p is model["p"]
    assert p.requires_grad
    np.testing.assert_allclose(p.data, 2 * (before - 0.2 * before), rtol=1e-12)
    y = np.sum(p * p)
    with no_grad():
        p += 1
    with pytest.raises(RuntimeError, match="multiply was written to"):
        y.backward()


def test_array_on_the_left_of_an_operator():
    x = leaf(3)
    for y in (np.ones(3) + x, np.ones(3) * x, np.ones(3) - x, np.ones(3) / x, np.ones((3, 3)) @ x,
              np.float64(2) * x, np.float32(2) - x, np.ones(3) ** x, np.int64(2) ** x):  # fmt: skip
        assert type(y) is Tensor
        assert y.requires_grad
        assert y.dtype == np.float64


def test_results_without_connection_say_so():
    with pytest.raises(RuntimeError, match="does not depend on anything that requires a gradient"):
        np.sum(Tensor([1.0, 2.0])).backward()
    with no_grad():
        y = np.sum(leaf(3))
    with pytest.raises(RuntimeError, match="no_grad"):
        y.backward()
    with pytest.raises(RuntimeError, match="detach"):
        np.sum(leaf(3).detach() * 2).backward()
    with pytest.raises(RuntimeError, match="does not depend"):
        (leaf(3) > 0).backward()


def test_object_arrays_are_refused():
    for data in ([[1.0, 2.0], [3.0]], ["a"], np.array([None]), None, {"a": 1}, [1, "a"]):
        with pytest.raises((TypeError, ValueError)):
            Tensor(data)
    with pytest.raises(TypeError):
        leaf(3) * np.array([1, None, 2])
    with pytest.raises(TypeError, match="object"):
        leaf(3) * np.array([1, 2, 3], dtype=object)
    with pytest.raises(TypeError, match="object"):
        np.negative(Tensor(np.ones(3))) * np.array([1, 2, 3], dtype=object)
    with pytest.raises(TypeError):
        leaf(3) + None
    with pytest.raises(TypeError):
        leaf(3) + "a"
    with pytest.raises(TypeError):
        np.concatenate([leaf(3), np.array([None])])
    with pytest.raises(TypeError):
        np.where([True], leaf(1), None)


# ---------------------------------------------------------------- who owns a gradient


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


@pytest.mark.parametrize("f", [
    lambda x: x, lambda x: +x, lambda x: x.reshape(3, 1), lambda x: np.broadcast_to(x, (2, 3)),
    lambda x: x.T, lambda x: x[:], lambda x: x + 0, np.sum, np.mean, np.copy,
])  # fmt: skip
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


def test_rule_that_changes_its_gradient():
    """Not seen by the engine (add hands one array to both sides), but by the gradient check."""
    careless = primitive(lambda x: x * 1)

    @careless.defvjp
    def rule(g, y, x):
        g *= 3
        return g

    assert not check.gradcheck(lambda x, z: careless(x) + z, np.ones(2), np.ones(2))
    assert "must not change what it" in primitive.__doc__


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


# ---------------------------------------------------------------- errors on the way


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


@pytest.mark.parametrize(("rule", "message"), [
    (lambda g, y, x: g[:2], r"a rule of twice returned shape \(2,\) for an input of shape \(3,\)"),
    (lambda g, y, x: None, "a rule of twice returned None; is `return` missing"),
    (lambda g, y, x: 1j * g, "a rule of twice returned complex128"),
    (lambda g, y, x: "g", "a rule of twice returned <U1"),
    (lambda g, y, x: [g, g, None], "twice|inhomogeneous"),
])  # fmt: skip
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
        lambda g, y, x, n=2.0, sign=1.0: g, lambda g, y, x, n=2.0, *, sign=1.0: g,
        lambda g, y, *args, **named: g, lambda g, y, x, n: g, np.add,
    ):  # fmt: skip
        power.defvjp(right)
    with pytest.raises(TypeError, match="primitive: expected a function with a name, got a part"):
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
    with pytest.raises(ValueError, match="returned 2 gradients for 1 inputs"):
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
            with pytest.raises((TypeError, ValueError), match="the rule of total returned"):
                np.sum(total(a, h)).backward()
    total.defvjp_joint(lambda g, y, *xs: [g] * len(xs))
    np.sum(total(a, b, 2.0)).backward()
    assert np.array_equal(b.grad, [1, 1, 1])


def test_more_rules_than_inputs():
    with pytest.raises(ValueError, match="2 rules"):
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
        (lambda: np.linalg.svd(x), "np.linalg.svd"),
        (lambda: np.fft.fft(x), "np.fft.fft"),
        (lambda: np.nanmedian(x), "np.nanmedian"),
        (lambda: np.interp(x, [0, 1], [0, 1]), "np.interp"),
        (lambda: np.nanpercentile(x, 50), "np.nanpercentile"),
        (lambda: np.linalg.eigh(x), "np.linalg.eigh"),
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
        (lambda: np.exp(x, out=np.zeros(3)), "np.exp.*out="),
        (lambda: np.exp(x, where=np.ones(3, bool)), "np.exp.*where="),
        (lambda: np.exp(x, dtype=np.float32), "np.exp.*dtype="),
        (lambda: np.matmul(x, x, out=np.zeros(())), "np.matmul.*out="),
        (lambda: np.sum(x, out=np.zeros(())), "sum.*out"),
        (lambda: np.sum(x, where=np.ones(3, bool)), "sum.*where"),
        (lambda: np.sum(x, dtype=np.float32), "sum.*dtype"),
        (lambda: np.sum(x, initial=1.0), "sum.*initial"),
        (lambda: np.mean(x, where=np.ones(3, bool)), "mean.*where"),
        (lambda: np.max(x, initial=0.0), "max.*initial"),
        (lambda: np.cumsum(x, dtype=np.float32), "cumsum.*dtype"),
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


# ---------------------------------------------------------------- no_grad


def recorded():
    return (leaf(2) * 2).requires_grad


def test_no_grad_is_restored():
    with no_grad():
        assert not recorded()
        with no_grad():
            assert not recorded()
        assert not recorded()
    assert recorded()
    with pytest.raises(KeyError):
        with no_grad():
            raise KeyError
    assert recorded()


def test_no_grad_as_decorator():
    @no_grad()
    def f():
        return recorded()

    assert not f()
    assert not f()
    assert recorded()


def test_no_grad_is_per_thread():
    inside, may_leave, seen = threading.Event(), threading.Event(), []

    def other():
        with no_grad():
            inside.set()
            may_leave.wait(10)
            seen.append(recorded())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    assert recorded()
    with no_grad():
        pass
    may_leave.set()
    thread.join()
    assert seen == [False]
    assert recorded()


def test_no_grad_inside_a_generator_that_is_thrown_away():
    def batches():
        with no_grad():
            yield recorded()

    generator = batches()
    assert next(generator) is False
    generator.close()
    assert recorded()


def test_parameters_made_under_no_grad():
    with no_grad():
        w = leaf(3)
    assert w.requires_grad
    np.sum(w * w).backward()
    assert w.grad is not None


def test_backward_under_no_grad():
    w = leaf(3)
    loss = np.sum(w * w)
    with no_grad():
        loss.backward()
    np.testing.assert_allclose(w.grad, 2 * w.data)
    assert recorded()


def test_two_threads_at_once():
    def work(seed, results):
        x = Tensor(np.random.default_rng(seed).normal(size=20), requires_grad=True)
        for _ in range(200):
            y = np.sum(np.tanh(x) * x)
            with no_grad():
                np.exp(x)
        y.backward()
        results[seed] = np.array_equal(
            x.grad, np.tanh(x.data) + x.data * (1 - np.tanh(x.data) * np.tanh(x.data))
        ) or np.allclose(x.grad, np.tanh(x.data) + x.data * (1 - np.tanh(x.data) ** 2), rtol=1e-12)

    results = {}
    threads = [threading.Thread(target=work, args=(i, results)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == dict.fromkeys(range(4), True)


# ---------------------------------------------------------------- as a Python object


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
