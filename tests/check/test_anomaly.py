"""`detect_anomaly` names the operation, the line and the inputs of the first nan or infinity."""

import re
import threading

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine import autograd
from tinyattn.ops import backends

rng = np.random.default_rng(0)


def leaf(*values):
    return ta.tensor(np.array(values, np.float64), requires_grad=True)


def found(f, *args):
    with pytest.raises(FloatingPointError) as caught, ta.detect_anomaly():
        f(*args)
    return str(caught.value)


def test_the_first_nan_of_the_forward_pass():
    x = leaf(1.0, -2.0, 4.0)

    def loss(x):
        y = x * 2
        z = np.sqrt(y)  # here
        return np.sum(z + 1)

    said = found(loss, x)
    assert said.startswith("detect_anomaly: sqrt gave nan (1 of 3 values, the first at [1])")
    assert "test_anomaly.py: z = np.sqrt(y)  # here" in said
    assert "input x: [3] float64, -4 to 8, there -4" in said


def test_infinity_is_found_where_it_is_made():
    said = found(lambda: np.log(leaf(1.0, 0.0)) * 0)
    assert "log gave infinity (1 of 2 values, the first at [1])" in said
    said = found(lambda: np.exp(leaf(1000.0, 0.0)))
    assert "exp gave infinity" in said and "there 1000" in said
    said = found(lambda: leaf(1.0) / np.zeros(1))
    assert "divide gave infinity" in said and re.search(r"input \w+: \[1\] float64, 0 to 0", said)


def test_an_infinity_that_was_put_in_is_none_until_it_makes_nan():
    scores, mask = leaf(1.0, 2.0, 3.0), np.array([True, False, True])
    with ta.detect_anomaly():
        hidden = np.where(mask, scores, -np.inf)
        np.sum(F.softmax(hidden) * leaf(1.0, 2.0, 3.0)).backward()
    assert np.isfinite(scores.grad).all()
    said = found(lambda: np.where(mask & False, scores, -np.inf) - np.full(3, -np.inf))
    assert "subtract gave nan (3 of 3 values, the first at [0])" in said
    assert "no finite number, 3 infinite, there -inf" in said


def test_nan_that_came_in_is_named_too():
    said = found(lambda: leaf(1.0, np.nan) * 2)
    assert "multiply was given nan" in said and "1 nan" in said


def test_the_backward_pass_also_after_the_block():
    x = leaf(4.0, 0.0)
    with ta.detect_anomaly():
        y = np.sum(np.sqrt(x))  # the slope at 0
    with pytest.raises(FloatingPointError) as caught, np.errstate(all="ignore"):
        y.backward()
    said = str(caught.value)
    assert "the gradient of sqrt is infinity (1 of 2 values, the first at [1])" in said
    assert "y = np.sum(np.sqrt(x))  # the slope at 0" in said and "there 0" in said
    assert x.grad is None


def test_joint_rules_second_derivatives_and_kernels():
    x = leaf(0.0, 1.0)
    said = found(lambda: ta.grad(lambda x: np.sum(np.sqrt(np.sqrt(x))))(x.data))
    assert "the gradient of sqrt is" in said
    said = found(lambda: np.concatenate([x, leaf(2.0)]).backward(np.array([1.0, np.nan, 0])))
    assert "the gradient that arrives at concatenate is nan" in said
    with ta.detect_anomaly():
        curve = ta.grad(ta.grad(lambda x: np.sum(x**3)))(2.0)
        assert curve == 12
        q = ta.tensor(rng.normal(size=(1, 70, 8)).astype(np.float32), requires_grad=True)
        y = F.scaled_dot_product_attention(q, q, q, impl="kernel")
        np.sum(y).backward()
    q.data[0, 3, 0] = np.nan
    said = found(lambda: F.scaled_dot_product_attention(q, q, q, impl="kernel"))
    assert "attention was given nan" in said or "nan" in said


def test_the_layers_are_named():
    model = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Sequential(nn.Tanh(), nn.Linear(2, 1, rng=0)))
    model[1][1].weight.data = np.full((1, 2), np.float32(3e38))
    said = found(lambda: model(np.full((1, 2), 9, np.float32)))
    assert "inside Sequential > Sequential > Linear" in said
    assert "linear gave infinity" in said


def test_nothing_is_looked_at_outside_and_in_other_threads():
    record = autograd.record
    with ta.detect_anomaly():
        assert autograd.record is backends.record is not record
        with ta.detect_anomaly():
            pass
        done = []
        other = threading.Thread(target=lambda: done.append(leaf(np.nan) * 2))
        other.start(), other.join()
        assert np.isnan(done[0].data).all() and done[0]._operation.name == "multiply"
    assert autograd.record is backends.record is record
    with pytest.raises(ZeroDivisionError), ta.detect_anomaly():
        raise ZeroDivisionError
    assert autograd.record is record
    assert np.isnan((leaf(np.nan) * 2).data).all()


def test_results_are_the_same():
    def run():
        model = nn.Sequential(
            nn.Linear(3, 8, rng=0), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2, rng=1)
        )
        loss = F.cross_entropy(model(np.ones((4, 3), np.float32)), np.array([0, 1, 0, 1]))
        loss.backward()
        return [loss.data, *(p.grad for p in model.parameters())]

    with ta.detect_anomaly():
        watched = run()
    for a, b in zip(watched, run(), strict=True):
        np.testing.assert_array_equal(a, b)
