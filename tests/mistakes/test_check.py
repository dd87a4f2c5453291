"""Mistakes with the checks themselves: the error that each must raise."""

import numpy as np
import pytest

import tinyattn as ta
from tests.check.slips import linear
from tinyattn import check, nn, optim
from tinyattn.check import gradcheck

rng = np.random.default_rng(3)
X, TOKENS = rng.normal(size=(2, 3)), rng.normal(size=(3, 6, 8))
BATCH, CLASSES = rng.normal(size=(8, 5)).astype(np.float32), rng.integers(0, 3, 8)
NUMBERS = rng.normal(size=(8, 2)).astype(np.float32)


def test_what_cannot_be_checked():
    with pytest.raises(ValueError, match="no input is floating point"):
        gradcheck(lambda x: x, np.arange(3))
    with pytest.raises(ValueError, match="no floating-point result"):
        gradcheck(lambda x: x > 0, X)
    with pytest.raises(ValueError, match="1 <= order, got order=0"):
        gradcheck(np.sin, X, order=0)
    with pytest.raises(ValueError, match="a different result each time"):
        gradcheck(lambda x: x * rng.normal(), X)
    with pytest.raises(ValueError, match="is float32, too coarse"):
        gradcheck(lambda x: x.astype(np.float32), X)
    with np.errstate(invalid="ignore"):
        report = gradcheck(lambda x: np.log(x), np.array([1.0, -2e-6]))
    assert "not finite around this point" in report.causes[0]


def test_what_has_no_permutation():
    with pytest.raises(ValueError, match="nothing to permute"):
        check.invariant(np.sum, np.ones((1, 3)))
    with pytest.raises(ValueError, match="out_axis="):
        check.equivariant(lambda x: np.sum(x, axis=0), np.ones((4, 3)))
    for x, options in ((np.ones(3), {}), (X, {"axis": 7})):
        with pytest.raises(
            ValueError, match=r"equivariant: x must have an axis -?\d with at least 2"
        ):
            check.equivariant(lambda x: x, x, **options)
    for f, message in ((lambda x: (x, x), "several results"), (lambda x: None, "returned None")):
        for what in (check.equivariant, check.invariant):
            with pytest.raises(TypeError, match=message):
                what(f, X)
    for run in (
        lambda: check.invariant(np.sum, X, times=0),
        lambda: check.padding(lambda x, keep: x, TOKENS, times=0),
    ):
        with pytest.raises(ValueError, match="expected 1 <= times, got times=0"):
            run()


def test_fewer_than_two_implementations():
    for impls, got in (([np.sin], "1 function"), ({}, "0 functions"), (np.sin, "ufunc")):
        with pytest.raises(ValueError, match=f"at least two functions, got {got}. Write same"):
            check.same(impls, X)


def test_what_cannot_be_called_is_named():
    for run, message in (
        (lambda: check.causal(TOKENS, np.sin), "causal: f must be a function or a module, got nd"),
        (lambda: check.isolated(TOKENS, np.sin), r"isolated: f must be .* Write isolated\(f, x\)"),
        (lambda: check.padding(TOKENS, np.sin), "padding: f must be"),
        (lambda: check.invariant(X, np.sin), "invariant: f must be"),
        (lambda: gradcheck(X, np.sin), "gradcheck: f must be"),
        (lambda: check.same([np.sin, 3], X), "impls must consist of functions, got .* type int"),
        (lambda: check.trains(mlp(), (BATCH, CLASSES), nn.MSELoss()), "loss must be .*got MSELoss"),
        (
            lambda: check.trains(mlp(), (BATCH, CLASSES), ta.functional.mse_loss),
            "got mse_loss",
        ),
        (lambda: check.trains(mlp(), (BATCH, CLASSES), learned="a"), "learned must be a number"),
        (lambda: check.padding(linear(), TOKENS), r"padding: f must .* two arguments \(x, keep\)"),
        (lambda: check.causal(np.sin, X, axis="a"), "causal: axis must be a whole number, got 'a'"),
        (lambda: check.invariant(np.sin, X, axis=(0, 1)), r"invariant: axis must .* got \(0, 1\)"),
    ):
        with pytest.raises(TypeError, match=message):
            run()


def test_results_that_are_not_floating_point_are_named():
    for run, message in (
        (lambda: check.causal(lambda x: x > 0, X, axis=0), "causal: f must return floating-point"),
        (lambda: check.invariant(np.argmax, X), "invariant: f must return .* got int64"),
        (lambda: check.padding(lambda x, keep: x > 0, TOKENS), "padding: f must return"),
        (lambda: check.invariant(lambda x: {"a": x}, X), "invariant: f returns a dict"),
        (lambda: check.padding(lambda x, keep: None, TOKENS), "padding: f returned None. Did you"),
        (lambda: check.same([len, lambda x: None], X), "the function must return .* got None. Did"),
        (
            lambda: check.trains(mlp(), (BATCH, ["a"] * 8)),
            "target must consist of numbers",
        ),
    ):
        with pytest.raises(TypeError, match=message):
            run()
    with pytest.raises(ValueError, match="isolated: x must have the members .* got one number"):
        check.isolated(lambda x: x, 3.0)
    with pytest.raises(ValueError, match=r"padding: .* a row for each of the 3 rows"):
        check.padding(lambda x, keep: np.sum(x * 1.0), TOKENS)
    with pytest.raises(ValueError, match=r"a target of bool .* Write classes with .astype\(int\)"):
        check.trains(mlp(), (BATCH, CLASSES > 0))


def test_dropout_is_named():
    with pytest.raises(ValueError, match=r"Switch dropout off with .eval\(\), or seed its random"):
        check.causal(nn.Dropout(0.5), TOKENS)


def test_wrong_shapes_of_checks_of_masks_are_explained():
    with pytest.raises(ValueError, match="axis 1 of the result must have length 6"):
        check.causal(lambda x: x[:, 1:], TOKENS)
    with pytest.raises(ValueError, match="at least 2 entries"):
        check.isolated(lambda x: x, TOKENS[:1])
    with pytest.raises(ValueError, match=r"each of the N = 3 rows of x, got shape \(2,\)"):
        check.isolated(lambda x: x, TOKENS, batch=[0, 1])
    with pytest.raises(ValueError, match=r"batch must contain at least 2 members, got only \[0\]"):
        check.isolated(lambda x: x, TOKENS, batch=[0, 0, 0])
    with pytest.raises(ValueError, match=r"causal: expected numbers \[B, T, D\].*axis=5"):
        check.causal(lambda x: x, TOKENS, axis=5)
    with pytest.raises(TypeError, match="Check one of them, for example lambda x: f"):
        check.causal(lambda x: (x, x), TOKENS)
    with pytest.raises(ValueError, match="causal: x must contain at least two different tokens"):
        check.causal(lambda x: x, np.ones((2, 3), int))
    with pytest.raises(ValueError, match="T >= 2"):
        check.padding(lambda x, keep: x, TOKENS[:, :1])


def mlp(out=3, **options):
    return nn.MLP([5, 32, out], rng=0, **options)


@pytest.mark.parametrize(
    ("batch", "loss", "error", "message"),
    [
        (BATCH, None, ValueError, r"expected batch = \(x, target\)"),
        (
            (BATCH, NUMBERS[:, 0]),
            None,
            ValueError,
            r"must have shape \(8, 3\), got \(8,\). Pass loss=",
        ),
        ((BATCH, CLASSES[:5]), None, ValueError, r"must have shape \(8,\) \(classes on the last"),
        ((BATCH, CLASSES), lambda m, x, y: m(x), TypeError, r"a single number, got shape \(8, 3\)"),
        ((BATCH, CLASSES), lambda m, x, y: 1.0, TypeError, "a single number, got float"),
    ],
)
def test_a_training_that_cannot_be_checked_is_explained(batch, loss, error, message):
    with pytest.raises(error, match=message):
        check.trains(mlp(), batch, loss)


def test_wrong_modules_steps_and_classes():
    with pytest.raises(TypeError, match="module must be an nn.Module, got a function"):
        check.trains(lambda x: x, (BATCH, CLASSES))
    with pytest.raises(TypeError, match="must be an nn.Module, got the class Linear"):
        check.trains(nn.Linear, (BATCH, CLASSES))
    with pytest.raises(ValueError, match=r"got \(8,\). Write classes with .astype\(int\), or pass"):
        check.trains(mlp(), (BATCH, CLASSES.astype(float)))
    with pytest.raises(ValueError, match="trains: expected 1 <= steps, got steps=0"):
        check.trains(mlp(), (BATCH, CLASSES), steps=0)
    with pytest.raises(ValueError, match="axis 1 .* so expected 0 <= target < 3, got [345]"):
        check.trains(mlp(), (BATCH, CLASSES + 3))
    with pytest.raises(ValueError, match="trains: expected 0 <= learned, got learned=-1"):
        check.trains(mlp(), (BATCH, CLASSES), learned=-1)


def test_other_arguments_of_watch_are_refused():
    with pytest.raises(TypeError, match=r"Write check\.watch\(model, optimizer\)"):
        with check.watch(optim.SGD([ta.tensor([1.0], requires_grad=True)]), linear()):
            pass


def test_a_model_without_parameters_does_not_train():
    model = mlp().requires_grad_(False)
    with pytest.raises(ValueError, match="no parameters that require a gradient"):
        check.trains(model, (BATCH, CLASSES))


def test_a_rule_that_adds_into_its_gradient_is_named_while_it_is_watched():
    """np.add.at writes into an array that is read-only, up to NumPy 2.4."""

    @ta.primitive
    def square(x):
        return x**2

    def rule(g, y, x):
        np.add.at(g, [0], np.float32(1))
        return g * 2 * x

    square.defvjp(rule)
    model = nn.Linear(3, 2, rng=0)
    with pytest.raises(ValueError, match="square: its rule writes into one of its arguments"):
        with check.watch(model, optim.SGD(model.parameters(), lr=0.01)):
            np.sum(2 * square(model(np.ones((4, 3), np.float32))[:, 0])).backward()
