"""Mistakes with tensors, gradients, rules and transforms: the error that each must raise."""

import functools

import numpy as np
import pytest

import tinyattn as ta
from tests.engine.leaves import leaf
from tinyattn import Tensor, grad, hessian, jacobian, no_grad, primitive, value_and_grad

X = np.random.default_rng(0).normal(size=3)


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
    ids = Tensor([1, 2])
    ids.requires_grad = True
    with pytest.raises(RuntimeError, match="Did you forget .* or from whole numbers"):
        np.sum(ids * 2).backward()
    with pytest.raises(TypeError, match="Convert whole numbers first, with .astype"):
        np.sum(ids * 2.5).backward()


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


def test_dtypes_that_are_none_of_numbers():
    for call, message in (
        (lambda: ta.tensor(1.0, 2.0), r"got dtype=2.0. Several numbers go into one list"),
        (lambda: ta.tensor([1.0], True), "got dtype=True. Write requires_grad=True"),
        (lambda: ta.tensor([1.0], dtype="floating"), "got dtype='floating'. Use NumPy's names"),
        (lambda: ta.tensor([1.0], dtype=str), "dtype must be a type of numbers"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_gradients_of_a_generator():
    x = leaf(3)
    with pytest.raises(TypeError, match=r"got an object of type generator. Write list\(xs\)"):
        ta.gradients(np.sum(x), (t for t in [x]))


def test_seed_of_a_wrong_shape():
    with pytest.raises(ValueError, match=r"gradient must have shape \(3,\), got \(2,\)"):
        (leaf(3) * 2).backward(np.ones(2))
    with pytest.raises(RuntimeError, match=r"this tensor has shape \(3,\)"):
        (leaf(3) * 2).backward()
    with pytest.raises(TypeError, match="complex"):
        (leaf(3) * 2).backward(np.ones(3) * 1j)


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
        with pytest.raises(TypeError, match=rf"scale.defvjp_joint: .*{message}"):
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
        (lambda: np.exp(x, out=np.zeros(3)), "np.exp.*out="),
        (lambda: np.exp(x, where=np.ones(3, bool)), "np.exp.*where="),
        (lambda: np.exp(x, dtype=np.float32), "np.exp.*dtype="),
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


def test_result_of_other_sizes_is_refused():
    with pytest.raises(ValueError, match=r"single number, got shape \(3,\).*jacobian"):
        grad(lambda x: x)(X)
    with pytest.raises(ValueError, match="single number"):
        hessian(lambda x: x)(X)


def test_result_must_be_one_array():
    for f in (grad, jacobian):
        with pytest.raises(TypeError, match="must return one array, got tuple"):
            f(lambda x: (x, x))(X)


@pytest.mark.parametrize("transform", [grad, value_and_grad, jacobian, hessian])
def test_a_transform_of_something_else_than_a_function(transform):
    name = transform.__name__
    with pytest.raises(
        TypeError, match=rf"^{name}: expected a function, got an .* float.*ta\.{name}"
    ):
        transform(2.0)


@pytest.mark.parametrize("argnum", [1, -2, [0], (0, 0), (0, -1), "x", 0.0])
def test_argnum_that_names_no_argument_or_one_twice(argnum):
    with pytest.raises(ValueError, match="argnum"):
        grad(np.sum, argnum=argnum)(np.ones(2))


def test_argument_given_by_name_has_no_number():
    with pytest.raises(ValueError, match="argnum=0 and 0 positional arguments. Pass .* by pos"):
        grad(np.sum)(a=np.ones(2))


def test_gradients_refuses_what_has_none():
    x = Tensor(X, requires_grad=True)
    with pytest.raises(TypeError, match="gradients: xs must be a tensor that requires a grad"):
        ta.gradients(np.sum(x), [x, Tensor(X)])
    with pytest.raises(TypeError, match="gradients: xs must be a tensor that requires a grad"):
        ta.gradients(np.sum(x), X)
    for xs, advice in (
        (X, r"Make it with ta.tensor\(x, requires_grad=True\)"),
        ({"x": x}, r"Write list\(xs.values\(\)\)"),
        (ta.nn.Linear(2, 2), r"Write list\(model.parameters\(\)\)"),
        (iter([x]), r"Write list\(xs\)"),
    ):
        with pytest.raises(TypeError, match=advice):
            ta.gradients(np.sum(x), xs)
    with pytest.raises(TypeError, match=r"got list. Write ta.gradients\(y, xs\)"):
        ta.gradients([x], x)
    with pytest.raises(ValueError, match=r"single number, got shape \(3,\)"):
        ta.gradients(x * 2, x)
    with no_grad():
        y = np.sum(x)
    with pytest.raises(RuntimeError, match="gradients: y does not depend on anything"):
        ta.gradients(y, x)


def test_gradient_of_an_integer_power_or_index_is_not_asked_for():
    with pytest.raises(TypeError, match="only floating-point"):
        grad(lambda x: x**2)(np.arange(3))


def test_a_rule_of_all_inputs_gives_a_gradient_for_each():
    twice = primitive(lambda x: 2 * x)
    twice.defvjp_joint(lambda g, y, x: [g, g])
    with pytest.raises(ValueError, match=r"a gradient for each input \(1\), got 2"):
        np.sum(twice(leaf(3))).backward()

    def total(*xs):
        return sum(xs)

    total = primitive(total)
    for answer in ([1.0], None, np.ones(3)):
        total.defvjp_joint(lambda g, y, *xs, answer=answer: answer)
        with pytest.raises(
            (TypeError, ValueError), match="the rule of total (returned|must return)"
        ):
            np.sum(total(leaf(3), leaf(3))).backward()


def test_a_gradient_is_real():
    with pytest.raises(TypeError, match="gradient must be real numbers, got complex128"):
        leaf(2).backward(Tensor(np.array([1j, 2])))


def test_an_infinite_gradient_is_named():
    with ta.detect_anomaly():
        with pytest.raises(FloatingPointError, match="the gradient of arccos is infinity"):
            np.sum(np.arccos(leaf(3) * 0 + 1)).backward()


@pytest.mark.parametrize("joint", [False, True])
def test_a_rule_that_writes_into_its_arguments_is_named(joint):
    f = primitive(lambda x: x * 1)
    if joint:
        f.defvjp_joint(lambda g, y, x: [g.fill(0)])
    else:
        f.defvjp(lambda g, y, x: g.fill(0))
    with pytest.raises(ValueError, match=r"lambda.*its rule writes into .* x\.copy\(\)"):
        np.sum(f(leaf(3))).backward()


def test_a_function_that_writes_into_its_input_is_named():
    @primitive
    def sorts(x):
        x.sort()
        return x

    with pytest.raises(ValueError, match="sorts.*its function writes into an input"):
        sorts(np.array([1.0, -1.0]))
