"""The checks themselves: wrong rules are caught, at the right place and for the right reason."""

import numpy as np
import pytest

import tinyattn.functional as F
from tinyattn import Tensor, check, nn, primitive
from tinyattn.check import gradcheck

rng = np.random.default_rng(3)
X, Y, SQUARE = rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), rng.normal(size=(3, 3))


def wrong(function, *rules):
    """An operation with the given (wrong) rules."""
    operation = primitive(function)
    operation.defvjp(*rules)
    return operation


def shifted(g, y, x):  # a cumulative sum from behind that starts one element too late
    return np.flip(np.cumsum(np.flip(g))) - g


# name: (operation, inputs, name of the wrong input, words of the cause)
WRONG_RULES = {
    "sign": (wrong(lambda x: np.cos(x), lambda g, y, x: g * np.sin(x)), [X], "x", "sign"),
    "missing factor": (wrong(lambda x: x * x, lambda g, y, x: g * x), [X], "x", "factor 1/2"),
    "x in place of y": (
        wrong(lambda x: np.exp(x), lambda g, y, x: g * x),
        [X],
        "x",
        "x was used instead of the result",
    ),
    "y in place of x": (
        wrong(lambda x: x**3, lambda g, y, x: 3 * g * y * y),
        [X + 3],
        "x",
        None,
    ),
    "factor too many": (
        wrong(lambda a, b: a + b, lambda g, y, a, b: g * b, lambda g, y, a, b: g),
        [X, Y],
        "a",
        "an additional factor b",
    ),
    "factor forgotten": (
        wrong(lambda a, b: a * b, lambda g, y, a, b: g, lambda g, y, a, b: g * a),
        [X, Y],
        "a",
        "factor b is missing",
    ),
    "chain factor in scale": (
        wrong(
            lambda x, c: np.tanh(x * c),
            lambda g, y, x, c: g * (1 - y * y),
            lambda g, y, x, c: g * (1 - y * y) * x,
        ),
        [X, 0.4],
        "x",
        "the factor 5/2 (1 / c)",
    ),
    "transpose of the other matrix": (
        wrong(lambda a, b: a @ b, lambda g, y, a, b: g @ b, lambda g, y, a, b: a.T @ g),
        [SQUARE, SQUARE + 1],
        "a",
        "Jacobian is transposed",
    ),
    "result transposed": (
        wrong(lambda a, b: a @ b, lambda g, y, a, b: (g @ b.T).T, lambda g, y, a, b: a.T @ g),
        [SQUARE, SQUARE + 1],
        "a",
        "order (1, 0): a transpose is missing",
    ),
    "g transposed": (
        wrong(lambda a, b: a @ b, lambda g, y, a, b: g @ b.T, lambda g, y, a, b: a.T @ g.T),
        [SQUARE, SQUARE + 1],
        "b",
        "axes of g",
    ),
    "sum over the broadcast axis": (
        wrong(lambda a, b: a * b, lambda g, y, a, b: g * b, lambda g, y, a, b: (g * a)[0]),
        [X, Y[0]],
        "b",
        "only the results with index 0 on axis 0",
    ),
    "mean over the broadcast axis": (
        wrong(lambda a, b: a * b, lambda g, y, a, b: g * b, lambda g, y, a, b: (g * a).mean(0)),
        [X, Y[0]],
        "b",
        "factor 1/2 (1 / the length of axis 0 of the result)",
    ),
    "wrong axis": (
        wrong(lambda x: np.sum(x, axis=0), lambda g, y, x: np.broadcast_to(g[:, None], x.shape)),
        [SQUARE],
        "x",
        "order (1, 0)",
    ),
    "mean without 1/n": (
        wrong(lambda x: np.mean(x, axis=1), lambda g, y, x: np.broadcast_to(g[:, None], x.shape)),
        [X],
        "x",
        "factor 3 (the length of axis 1 of x)",
    ),
    "summed where it should not be": (
        wrong(
            lambda x: np.square(x),
            lambda g, y, x: np.broadcast_to(np.sum(2 * g * x, axis=1, keepdims=True), x.shape),
        ),
        [X],
        "x",
        "summed over axis 1",
    ),
    "rules in the wrong order": (
        wrong(
            lambda a, b: a * a * b, lambda g, y, a, b: g * a * a, lambda g, y, a, b: 2 * g * a * b
        ),
        [X, Y],
        "a",
        "gradient of b: rules in the wrong",
    ),
    "detached part": (
        wrong(lambda x: np.concatenate([x, 2 * x]), lambda g, y, x: g[: len(x)]),
        [X[0]],
        "x",
        "only the results with index 0, 1, 2 on axis 0",
    ),
    "only the first row": (
        wrong(lambda x: 3 * x, lambda g, y, x: 3 * g * np.array([[1.0], [0.0]])),
        [X],
        "x",
        "does not arrive",
    ),
    "no gradient": (
        wrong(lambda x: np.sin(x), lambda g, y, x: 0 * x),
        [X],
        "x",
        "no gradient arrives",
    ),
    "cumsum forwards": (
        wrong(lambda x: np.cumsum(x), lambda g, y, x: np.cumsum(g)),
        [X[0]],
        "x",
        "Jacobian is transposed",
    ),
    "cumsum off by one": (
        wrong(lambda x: np.cumsum(x), shifted),
        [X[0]],
        "x",
        "shifted by one",
    ),
    "reversed": (
        wrong(lambda x: np.flip(x, 1), lambda g, y, x: g),
        [X],
        "x",
        "reversed along axis 1",
    ),
    "ties": (
        wrong(
            lambda x: np.max(x, axis=0),
            lambda g, y, x: g * (x == y) * 2.0 - g * (x == y) * ((x == y).sum(0) == 1),
        ),
        [np.array([[1.0, 2], [1.0, 1]])],
        "x",
        "kink",
    ),
    "logarithm of the wrong base": (
        wrong(lambda x: np.log2(x), lambda g, y, x: g / x),
        [np.abs(X)],
        "x",
        "ln 2",
    ),
    "0 · inf": (
        wrong(
            lambda x: np.where(x > 0, x, 1.0) ** 2,
            lambda g, y, x: np.where(x > 0, 2 * x, 0 * np.inf * x),
        ),
        [X],
        "x",
        "nan or inf",
    ),
}


@pytest.mark.parametrize("name", WRONG_RULES)
def test_wrong_rule_is_found(name):
    f, inputs, culprit, cause = WRONG_RULES[name]
    with np.errstate(all="ignore"):
        report = gradcheck(f, *inputs)
    assert not report
    assert "WRONG" in report.text
    assert f"input {culprit}, shape" in report.text
    if cause:
        assert any(c.startswith(f"{culprit}: ") and cause in c for c in report.causes), report
    with pytest.raises(AssertionError, match="WRONG"):
        report.expect()


def test_place_and_values_of_the_largest_difference():
    factors = np.ones((2, 3))
    factors[1, 2] = 5
    f = wrong(lambda x: 2 * x, lambda g, y, x: 2 * g * factors)
    report = gradcheck(f, X)
    assert "1 of 36 derivatives are wrong" in report.text
    assert "d y[1, 2] / d x[1, 2]: analytic 10, numeric 2" in report.text
    assert report.compared == 36


@pytest.mark.parametrize("columns", [0, 2])
def test_pattern_along_an_axis_is_named(columns):
    factors = np.ones(3)
    factors[columns] = 5
    f = wrong(lambda x: 2 * x, lambda g, y, x: 2 * g * factors)
    assert f"only index {columns} on axis 1 of x" in gradcheck(f, X).causes[0]


def test_wrong_second_derivative_is_found():
    f = wrong(lambda x: x * x * x, lambda g, y, x: 3 * g * np.square(getattr(x, "data", x)))
    assert gradcheck(f, X[0])
    report = gradcheck(f, X[0], order=2)
    assert not report
    assert "second order: WRONG" in report.text
    assert "no gradient arrives" in report.causes[0]


def test_rule_that_loses_the_incoming_gradient_is_found_at_second_order():
    f = wrong(lambda x: 3 * x, lambda g, y, x: 3 * np.asarray(getattr(g, "data", g)))
    assert gradcheck(f, X[0])
    report = gradcheck(f, X[0], order=2)
    assert not report
    assert "input g, shape" in report.text


def test_the_function_may_have_an_input_g():
    report = gradcheck(lambda g, x: np.exp(g) * x, X[0], X[1], order=3).expect()
    assert "third order: right" in report.text


def test_higher_orders_have_inputs_of_different_names():
    report = gradcheck(lambda x: np.exp(x), np.ones(2), order=4).expect()
    assert "4th order: right" in report.text


def test_rule_that_computes_something_else_when_it_is_recorded_is_found():
    f = wrong(lambda x: x * x, lambda g, y, x: 2 * g * x * (1 if type(g) is np.ndarray else -1))
    assert gradcheck(f, X[0])
    report = gradcheck(f, X[0], order=2)
    assert not report
    assert "when it gets Tensors" in report.text


def test_cut_graph():
    report = gradcheck(lambda x: np.sin(x.data), X)
    assert not report
    assert "not connected to any input" in report.causes[0]
    report = gradcheck(lambda x: x * x.data, X)  # half of the gradient of x²
    assert "factor 1/2" in report.causes[0]


STEEP = {
    "log": (np.log, [1e-3, 1e-6, 2.0]),
    "1/x": (lambda x: 1 / x, [1e-4, -1e-5, 1.0]),
    "sqrt": (np.sqrt, [1e-4, 1e-7]),
    "x**-2": (lambda x: x**-2, [1e-3]),
    "log near 1": (lambda x: np.log(x - 0.999), [1.0]),
    "near a kink": (np.abs, [1e-7, -1e-9, 1.0]),
}


@pytest.mark.parametrize("name", STEEP)
@pytest.mark.parametrize("order", [1, 2])
def test_right_rules_are_right_where_they_are_steep(name, order):
    f, values = STEEP[name]
    report = gradcheck(f, np.array(values), order=order)
    assert report, report
    assert not gradcheck(wrong(f, lambda g, y, x: g * 1.001), np.array(values))


def test_wrong_rules_are_wrong_there_too():
    for factor in (1.0001, 0.5, -1):
        f = wrong(np.log, lambda g, y, x, c=factor: c * g / x)
        assert not gradcheck(f, np.array([1e-3, 1e-6]))
        many = np.full(200, 1e-4)
        assert not gradcheck(f, many)


@pytest.mark.parametrize("f", [np.log, np.sqrt, lambda x: 1 / x])
def test_large_inputs_may_be_steep_at_some_places(f):
    x = np.random.default_rng(0).uniform(0.5, 2, size=(20, 20))
    x[3, 4], x[7, 7] = 1e-3, 1e-4
    report = gradcheck(f, x)
    assert report, report
    assert "random sums" in report.text
    one_wrong = np.ones(x.shape)
    one_wrong[7, 7] = 1.01
    numpy = f if f in (np.log, np.sqrt) else lambda x: 1 / x
    slopes = {np.log: lambda y, x: 1 / x, np.sqrt: lambda y, x: 0.5 / y}.get(f, lambda y, x: -y * y)
    assert gradcheck(wrong(numpy, lambda g, y, x: g * slopes(y, x)), x)
    report = gradcheck(wrong(numpy, lambda g, y, x: g * slopes(y, x) * one_wrong), x)
    assert not report


def test_step_and_tolerance_can_be_chosen():
    assert not gradcheck(np.log, np.array([1e-3]), eps=6e-6)  # one step only, and that too long
    assert gradcheck(np.log, np.array([1e-3]), eps=1e-9)
    rough = wrong(lambda x: np.round(np.sin(x), 7) + 0 * x, lambda g, y, x: g * np.cos(x))
    assert not gradcheck(rough, X)
    assert gradcheck(rough, X, eps=1e-2, atol=1e-4)
    nearly = wrong(lambda x: 2 * x, lambda g, y, x: 2.001 * g)
    assert not gradcheck(nearly, X)
    assert gradcheck(nearly, X, rtol=1e-2)
    assert gradcheck(nearly, X, atol=1e-2)
    for options in ({"eps": 0}, {"eps": -1e-6}, {"eps": 2}, {"atol": -1}, {"rtol": np.nan}):
        with pytest.raises(ValueError, match="gradcheck: expected"):
            gradcheck(np.sin, X, **options)


def test_kink_that_nobody_can_check():
    report = gradcheck(lambda x: np.clip(x, -1, 1), np.array([0.5, 1.0]))
    assert not report
    assert "x[1] = 1: slope 1 to the left, 0 to the right" in report.causes[0]
    assert "Every value between is allowed" in report.causes[0]


def test_names_of_inputs_and_outputs():
    def attention(query, key):
        return {"scores": query @ key.T, "copy": key * key.data}

    report = gradcheck(attention, X, Y)
    assert "gradcheck of attention" in report.text
    assert "input key" in report.text
    assert "d y.copy[" in report.text
    assert "query" not in report.text
    assert "d y1[" in gradcheck(lambda x: (x, x * x.data), X).text


def test_inputs_of_all_kinds():
    def f(x, ids, scale, word):
        assert isinstance(word, str)
        assert ids.dtype == np.int64
        return x[ids] * scale

    ids = np.array([0, 1, 1])
    assert gradcheck(f, [[0.5, 1.0], [2.0, 3.0]], ids, 2.0, "word")
    assert gradcheck(f, Tensor([1, 2], requires_grad=True), Tensor(ids, np.int64).data, 2, "word")
    assert gradcheck(f, np.float32(X), ids, np.float32(3), "word")
    assert gradcheck(lambda x: float(x.data) * 0.0, 1.0)


def test_parameters_of_a_layer_are_checked_too():
    layer = nn.Sequential(nn.Linear(3, 2, rng=0), nn.LayerNorm(2))
    weight = layer[0].weight
    before = weight.data.copy()
    report = gradcheck(layer, X, order=2).expect()
    assert report.compared > (6 + 6 + 2 + 2 + 2) * 4
    assert weight.dtype == np.float32  # a copy was checked
    assert np.array_equal(weight.data, before)
    assert weight.grad is None

    class Cut(nn.Module):
        def __init__(self):
            self.scale = nn.Parameter(np.ones(3))

        def forward(self, x):
            return x * self.scale.data + 0 * self.scale

    report = gradcheck(Cut(), X)
    assert not report
    assert "gradcheck of Cut" in report.text
    assert "input scale, shape (3,)" in report.text
    assert "scale: no gradient arrives" in report.causes[0]
    with pytest.raises(ValueError, match=r"\.eval\(\)"):
        gradcheck(nn.Dropout(0.5), np.ones(64))  # so many that no two draws are alike


def test_large_inputs_are_projected():
    a, b = rng.normal(size=(60, 40)), rng.normal(size=(40, 50))
    report = gradcheck(lambda a, b: a @ b, a, b, order=2).expect()
    assert "random sums" in report.text
    gradcheck(lambda a: a - a, a, order=2).expect()  # derivatives that are 0 up to roundings
    gradcheck(lambda a: np.sum(F.softmax(3 * a), axis=-1) * np.ones((4, 1)), a).expect()
    factors = np.ones_like(a)
    factors[17, 5] = 1.01  # one of 2400, by one percent
    f = wrong(
        lambda a, b: a @ b, lambda g, y, a, b: (g @ b.T) * factors, lambda g, y, a, b: a.T @ g
    )
    report = gradcheck(f, a, b)
    assert not report
    assert "input a, shape (60, 40): differs most near a[17, 5]" in report.text
    f = wrong(lambda a, b: a @ b, lambda g, y, a, b: 2 * g @ b.T, lambda g, y, a, b: a.T @ g)
    assert "factor 2" in gradcheck(f, a, b).causes[0]


def test_report():
    report = gradcheck(np.tanh, X, order=2)
    assert report
    assert report.expect() is report
    assert repr(report) == report.text
    assert report.error < 1e-8
    assert report.compared == 36 + 72
    assert "first order: right" in report.text
    assert "second order: right" in report.text


def test_gradients_of_the_user_are_not_touched():
    w = Tensor(Y, requires_grad=True)
    x = Tensor(X, requires_grad=True)
    gradcheck(lambda x: x * w, x, order=2).expect()
    assert w.grad is None
    assert x.grad is None
    assert np.array_equal(x.data, X)


# ---------------------------------------------------------------- symmetry


def test_equivariant():
    x = rng.normal(size=(2, 5, 3)).astype(np.float32)
    check.equivariant(lambda x: np.exp(x) @ SQUARE.astype(np.float32), x).expect()
    check.equivariant(lambda x: x + np.mean(x, axis=1, keepdims=True), x).expect()
    check.equivariant(lambda x: np.sum(x, axis=2), x, out_axis=1).expect()
    check.equivariant(lambda x: x[:, :, ::-1], x, axis=0).expect()
    report = check.equivariant(lambda x: np.cumsum(x, axis=1), x)
    assert not report
    assert "permutation [" in report.text
    assert "positions differ: [" in report.text
    assert "f(x permuted)[" in report.text
    with pytest.raises(AssertionError, match="equivariant"):
        report.expect()


def test_equivariance_names_the_positions():
    def first_row_is_special(x):
        return x + np.eye(5)[:, :1]

    report = check.equivariant(first_row_is_special, rng.normal(size=(5, 3)), times=1)
    p = eval(report.text.splitlines()[1].removeprefix("  permutation "))
    wrong_rows = sorted({0, p.index(0)})
    assert f"{len(wrong_rows)} of 5 positions differ: {wrong_rows}" in report.text


def test_invariant():
    x = rng.normal(size=(2, 5, 3)).astype(np.float32)
    check.invariant(lambda x: np.max(x, axis=1), x).expect()
    check.invariant(lambda x: np.sum(x, axis=1), x).expect()
    check.invariant(lambda x: np.sum(x, axis=2), x, axis=-1).expect()
    report = check.invariant(lambda x: x[:, 0], x)
    assert not report
    assert "6 of 6 numbers differ" in report.text or "numbers differ" in report.text


def test_permutations_are_seeded():
    x = rng.normal(size=(6, 2))
    texts = {check.equivariant(lambda x: np.cumsum(x, axis=0), x, rng=1).text for _ in range(3)}
    assert len(texts) == 1


# ---------------------------------------------------------------- implementations


def sums(a, b):
    return np.stack([np.sum(a[i] * b, axis=1) for i in range(len(a))])


def test_same():
    check.same({"matmul": lambda a, b: a @ b.T, "sums": sums}, [X, Y]).expect()
    check.same([lambda a, b: a @ b.T, sums], [np.float32(X), np.float32(Y)]).expect()
    check.same([np.tanh, np.tanh], X).expect()
    check.same([lambda x, k: (x * k, x), lambda x, k: [k * x, x]], [X, 2]).expect()
    check.same({"a": lambda x: x.data, "b": lambda x: x}, X, gradients=False).expect()
    check.same([lambda x: x > 0, lambda x: x >= 0], X, gradients=False).expect()


def test_same_names_what_differs():
    report = check.same({"matmul": lambda a, b: a @ b.T, "twice": lambda a, b: 2 * a @ b.T}, [X, Y])
    assert not report
    assert "value: 4 of 4 numbers differ" in report.text
    assert "twice " in report.text
    report = check.same({"right": lambda a, b: a * b, "cut": lambda a, b: a * b.data}, [X, Y])
    assert "gradient of input 1: 6 of 6 numbers differ" in report.text
    assert "value" not in report.text
    assert "input 0" not in report.text
    report = check.same({"right": lambda a: a * 2, "loops": lambda a: a.data * 2}, X)
    assert "gradient of input 0: loops has none" in report.text
    report = check.same({"row": lambda a: a[0], "all": lambda a: a}, X)
    assert "all has shape (2, 3), row has (3,)" in report.text
    nan = np.array([1.0, np.nan])
    assert not check.same([lambda x: x, lambda x: x + nan], np.ones(2))
    assert check.same([lambda x: x * nan, lambda x: x * nan], np.ones(2), gradients=False)
    with pytest.raises(AssertionError, match="same"):
        report.expect()


def test_a_rule_that_forgets_what_arrives_is_seen_also_for_a_single_number():
    """Where the result is one number, the gradient that arrives is often 1."""
    total = primitive(lambda x: np.sum(x * x))
    total.defvjp(lambda g, y, x: 2 * x)
    report = check.gradcheck(total, np.array([1.0, 2.0, 3.0]))
    assert not report and "factor 1/2" in str(report)


def writes_by_at(g, y, x):
    np.add.at(g, [0], 1.0)
    return g * 2 * x


def test_a_rule_that_writes_into_read_only_arrays_is_named():
    """np.add.at writes into an array that is read-only, up to NumPy 2.4."""

    @primitive
    def square(x):
        return x**2

    square.defvjp(writes_by_at)
    report = check.gradcheck(square, np.array([1.0, 2.0]))
    assert not report and "square: its rule writes into one of its arguments" in str(report)
