"""Ways to lose a gradient without a word, rebuilt: each must end in an error or in the truth."""

import math
import struct

import numpy as np
import pytest

import tinyattn as ta
from tests.engine.leaves import leaf
from tinyattn import Tensor, no_grad


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
    """Python asks alike for float(x), math.exp(x) and S[i, j] = x: each would lose the gradient."""
    x = Tensor(2.5, requires_grad=True)
    S = np.zeros((3, 3))
    for lose in (
        lambda: float(x),
        lambda: "%.2f" % x,  # noqa: UP031
        lambda: math.exp(x),
        lambda: struct.pack("d", x),
        lambda: S.__setitem__((0, 1), x * x),
        lambda: S.fill(x),
        lambda: exec("S[0, 1] += x", {"S": S, "x": x}),
        lambda: exec("S[0, 1], S[1, 1] = x, 1.0", {"S": S, "x": x}),
    ):
        with pytest.raises((TypeError, ValueError, struct.error)):
            lose()
        assert not S.any()
    assert f"{x:.2f}" == "2.50"
    assert int(x) == 2
    assert x.item() == 2.5


def test_a_number_without_gradient_is_an_ordinary_number():
    x, S, row = leaf(3), np.zeros((3, 3)), [0.0]
    row[0] = x[0]  # a list holds the Tensor itself
    assert row[0].requires_grad
    with no_grad():
        S[0, 1] = x[0]
        S[1, 1] = Tensor(2.0, requires_grad=True)
        assert math.exp(x[0]) == math.exp(x.data[0])
    S[0, 2] = x.detach()[0]
    S[1, 0] = x[0].item()
    np.testing.assert_array_equal(S[0], [0, x.data[0], x.data[0]])
    assert float(x.detach()[1]) == x.data[1]


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
    with pytest.raises(RuntimeError, match="multiply .*written"):
        y.backward()


def test_array_on_the_left_of_an_operator():
    x = leaf(3)
    for y in (
        np.ones(3) + x,
        np.ones(3) * x,
        np.ones(3) - x,
        np.ones(3) / x,
        np.ones((3, 3)) @ x,
        np.float64(2) * x,
        np.float32(2) - x,
        np.ones(3) ** x,
        np.int64(2) ** x,
    ):
        assert type(y) is Tensor
        assert y.requires_grad
        assert y.dtype == np.float64
