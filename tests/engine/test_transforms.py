"""grad, value_and_grad, jacobian and hessian against closed forms."""

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import Tensor, grad, hessian, jacobian, nn, no_grad, value_and_grad
from tinyattn.kernels import numba

rng = np.random.default_rng(0)
A, X = rng.normal(size=(3, 3)), rng.normal(size=3)
EXACT = dict(rtol=1e-12, atol=1e-12)  # float64, a handful of operations


def quadratic(x):
    return x @ A @ x


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_grad_of_a_quadratic_form():
    np.testing.assert_allclose(grad(quadratic)(X), (A + A.T) @ X, **EXACT)


def test_value_and_grad():
    value, gradient = value_and_grad(quadratic)(X)
    np.testing.assert_allclose(value, X @ A @ X, **EXACT)
    np.testing.assert_allclose(gradient, (A + A.T) @ X, **EXACT)


def test_several_arguments():
    def f(x, y, z=2.0):
        return np.sum(x * y * z)

    y = X + 1
    np.testing.assert_allclose(grad(f, 1)(X, y), 2 * X, **EXACT)
    gx, gy = grad(f, (0, 1))(X, y, z=3.0)
    np.testing.assert_allclose(gx, 3 * y, **EXACT)
    np.testing.assert_allclose(gy, 3 * X, **EXACT)
    (only,) = grad(f, (1,))(X, y)
    np.testing.assert_allclose(only, 2 * X, **EXACT)
    value, (gy, gx) = value_and_grad(f, (1, 0))(X, y)
    np.testing.assert_allclose(value, 2 * X @ y, **EXACT)
    np.testing.assert_allclose(gx, 2 * y, **EXACT)
    np.testing.assert_allclose(grad(lambda x, y: np.sum(x * y), -1)(X, y), X, **EXACT)


def test_one_array_as_two_arguments():
    gx, gy = grad(lambda x, y: np.sum(x * x * y), (0, 1))(X, X)
    np.testing.assert_allclose(gx, 2 * X * X, **EXACT)
    np.testing.assert_allclose(gy, X * X, **EXACT)
    t = Tensor(X)
    gx, gy = grad(lambda x, y: np.sum(x * x * y), (0, 1))(t, t)
    np.testing.assert_allclose(gx.data, 2 * X * X, **EXACT)
    np.testing.assert_allclose(gy.data, X * X, **EXACT)


def test_kinds_of_arguments_and_results():
    assert type(grad(np.sum)(X)) is np.ndarray
    assert type(grad(np.sum)(Tensor(X))) is Tensor
    assert grad(lambda x: x**3)(2.0) == 12
    assert grad(lambda x: x**3)(2) == 12
    assert np.array_equal(grad(lambda x: np.sum(x * x))([1.0, 2.0]), [2, 4])
    assert grad(lambda x: x**3)(np.float64(2)).dtype == np.float64
    assert grad(lambda x: x**3)(2.0).dtype == np.float32
    assert grad(np.sum)(np.float32(X)).dtype == np.float32
    value, _ = value_and_grad(np.sum)(X)
    assert isinstance(value, np.ndarray | np.floating)
    value, _ = value_and_grad(np.sum)(Tensor(X))
    assert type(value) is Tensor
    for f in (grad, jacobian):
        with pytest.raises(TypeError, match="floating-point"):
            f(np.sum)(np.arange(3))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_result_of_size_one_in_any_shape(shape):
    f = lambda x: np.reshape(np.sum(x * x), shape)
    np.testing.assert_allclose(grad(f)(X), 2 * X, **EXACT)
    np.testing.assert_allclose(grad(f)(Tensor(X, requires_grad=True)).data, 2 * X, **EXACT)
    value, _ = value_and_grad(f)(X)
    assert np.shape(value) == shape


def test_independent_arguments_get_zeros():
    assert np.array_equal(grad(lambda x, y: np.sum(y))(X, X), np.zeros(3))
    assert np.array_equal(grad(lambda x: 2.0)(X), np.zeros(3))
    assert np.array_equal(grad(lambda x: np.sum(x > 0))(X), np.zeros(3))
    assert np.array_equal(grad(lambda x: np.sum(x.detach()))(X), np.zeros(3))
    assert np.array_equal(jacobian(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    assert np.array_equal(hessian(lambda x: np.sum(3 * x))(X), np.zeros((3, 3)))
    assert np.array_equal(hessian(lambda x: 1.0)(X), np.zeros((3, 3)))
    assert np.array_equal(grad(lambda x: grad(np.sum)(x)[0])(X), np.zeros(3))
    gx, gy = grad(lambda x, y: np.sum(y * y), (0, 1))(X, X)
    assert np.array_equal(gx, np.zeros(3))
    np.testing.assert_allclose(gy, 2 * X, **EXACT)


def test_higher_derivatives():
    d = np.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos):
        d = grad(d)
        np.testing.assert_allclose(d(0.7), expected(0.7), rtol=1e-6)  # float32
    third = grad(grad(grad(lambda x: x**5)))
    np.testing.assert_allclose(third(np.float64(2)), 60 * 4, **EXACT)
    elementwise = lambda f: grad(lambda x: np.sum(f(x)))
    np.testing.assert_allclose(elementwise(elementwise(elementwise(np.exp)))(X), np.exp(X), **EXACT)


def test_mixed_second_derivative():
    f = lambda x, y: np.sin(x) * y**2
    x, y = np.float64(0.3), np.float64(0.8)
    np.testing.assert_allclose(grad(grad(f, 0), 1)(x, y), np.cos(x) * 2 * y, **EXACT)
    np.testing.assert_allclose(grad(grad(f, 1), 0)(x, y), np.cos(x) * 2 * y, **EXACT)


def test_inner_derivative_of_an_outer_variable():
    """The classic trap of mixing up two levels: d/dx x · d/dy (x + y) is 1, not 2."""
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1
    assert grad(lambda x: x * grad(lambda y: x * y)(2.0))(3.0) == 6
    assert grad(lambda x: x * grad(lambda y: x * y * y)(x))(3.0) == 4 * 3 * 3 + 2 * 9 * 1
    assert grad(lambda x: grad(lambda y: x * y * y)(x))(3.0) == 12  # d/dx 2 x x


def test_inner_derivative_at_an_array_keeps_its_connection():
    w = Tensor(3.0, requires_grad=True)
    assert grad(lambda x: x * grad(lambda y: x * y)(2.0))(w).data == 6
    assert grad(lambda x: jacobian(lambda y: x * y)(np.ones(2))[1, 1])(3.0) == 1
    assert grad(lambda x: hessian(lambda y: x * y * y)(2.0))(3.0) == 2
    assert grad(lambda x: value_and_grad(lambda y: x * y)(2.0)[0])(3.0) == 2
    assert type(grad(grad(lambda x: x**3))(np.float64(2))) is np.ndarray
    with no_grad():
        assert type(grad(lambda x: np.sum(x * w))(X)) is np.ndarray
    inner = grad(lambda x: x * grad(lambda y: y * y)(2.0))(Tensor(3.0))
    assert inner.data == 4
    assert not inner.requires_grad


def test_gradient_inside_a_function_that_is_differentiated():
    np.testing.assert_allclose(
        grad(lambda x: np.sum(grad(lambda y: np.sum(y**3))(x) ** 2))(X), 36 * X**3, **EXACT
    )


def test_jacobian():
    np.testing.assert_allclose(jacobian(lambda x: A @ x)(X), A, **EXACT)
    np.testing.assert_allclose(jacobian(np.tanh)(X), np.diag(1 - np.tanh(X) ** 2), **EXACT)
    M = rng.normal(size=(2, 3))
    J = jacobian(lambda x: x.T @ x)(M)
    expected = np.einsum("jl,ki->ijkl", np.eye(3), M) + np.einsum("il,kj->ijkl", np.eye(3), M)
    assert J.shape == (3, 3, 2, 3)
    np.testing.assert_allclose(J, expected, **EXACT)
    np.testing.assert_allclose(jacobian(lambda a, x: a @ x, 0)(A, X)[1, 1], X, **EXACT)
    assert jacobian(lambda x: x[:0])(X).shape == (0, 3)
    assert jacobian(lambda x: x)(np.zeros((0, 2))).shape == (0, 2, 0, 2)
    assert jacobian(np.sum)(X).shape == (3,)
    np.testing.assert_allclose(jacobian(lambda x: np.stack([x, x * x]))(np.float64(3)), [1, 6])
    assert type(jacobian(np.exp)(Tensor(X))) is Tensor
    assert jacobian(np.exp)(np.float32(X)).dtype == np.float32


def test_jacobian_of_several_arguments():
    Ja, Jx = jacobian(lambda a, x: a @ x, (0, 1))(A, X)
    assert Ja.shape == (3, 3, 3)
    np.testing.assert_allclose(Jx, A, **EXACT)


def test_hessian():
    np.testing.assert_allclose(hessian(quadratic)(X), A + A.T, **EXACT)
    x, y = np.array([0.7, -0.4])
    expected = [[1200 * x * x - 400 * y + 2, -400 * x], [-400 * x, 200]]
    np.testing.assert_allclose(hessian(rosenbrock)(np.array([x, y])), expected, **EXACT)
    H = hessian(rosenbrock)(rng.normal(size=6))
    np.testing.assert_allclose(H, H.T, **EXACT)
    assert hessian(lambda x: np.sum(x**3))(np.ones((2, 2))).shape == (2, 2, 2, 2)
    np.testing.assert_allclose(hessian(lambda a, x: x @ a @ x, 1)(A, X), A + A.T, **EXACT)
    np.testing.assert_allclose(hessian(lambda x: x**3)(np.float64(2)), 12)


def test_jacobian_and_hessian_nest():
    np.testing.assert_allclose(jacobian(jacobian(np.square))(X)[1, 1, 1], 2, **EXACT)
    third = jacobian(hessian(lambda x: np.sum(x**3)))(X)
    np.testing.assert_allclose(third, 6 * np.einsum("ij,jk->ijk", np.eye(3), np.eye(3)), **EXACT)
    trace = lambda x: np.trace(hessian(lambda z: np.sum(z**4))(x))
    np.testing.assert_allclose(grad(trace)(X), 24 * X, **EXACT)


def test_hessian_by_several_arguments():
    """H[m][n] has the shape of argument m and then that of argument n."""
    f = lambda a, x: np.sum(x @ a @ x)
    H = hessian(f, (1, 0))(A, X)
    np.testing.assert_allclose(H[0][0], A + A.T, **EXACT)
    assert H[1][1].shape == (3, 3, 3, 3) and not H[1][1].any()
    np.testing.assert_allclose(H[0][1], np.transpose(H[1][0], (2, 0, 1)), **EXACT)
    expected = np.einsum("ki,j->kij", np.eye(3), X) + np.einsum("kj,i->kij", np.eye(3), X)
    np.testing.assert_allclose(H[0][1], expected, **EXACT)


def test_newton_finds_the_minimum_of_rosenbrock():
    x = np.array([-1.2, 1.0])
    for _ in range(10):
        x = x - np.linalg.solve(hessian(rosenbrock)(x), grad(rosenbrock)(x))
    np.testing.assert_allclose(x, 1, rtol=1e-10)


def test_gradient_penalty_reaches_the_parameters():
    w = Tensor(rng.normal(size=3), requires_grad=True)
    score = lambda x: np.sum(np.tanh(x * w))
    x = Tensor(X)
    penalty = np.sum(grad(score)(x) ** 2)
    penalty.backward()
    slope = lambda w: w * (1 - np.tanh(X * w) ** 2)
    h = 1e-6
    expected = [
        (np.sum(slope(w.data + h * e) ** 2) - np.sum(slope(w.data - h * e) ** 2)) / (2 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(w.grad, expected, rtol=1e-7)
    assert x.grad is None


def test_gradients_of_tensors_are_not_touched():
    w = Tensor(X, requires_grad=True)
    x = Tensor(X, requires_grad=True)
    for transform in (grad, hessian, jacobian):
        transform(lambda x: np.sum(x * x * w))(x)
        transform(lambda x: np.sum(x * x * w))(X)
    assert w.grad is None
    assert x.grad is None
    w.grad = np.full(3, 7.0)
    grad(lambda x: np.sum(x * w))(X)
    assert np.array_equal(w.grad, [7, 7, 7])


def test_under_no_grad():
    with no_grad():
        np.testing.assert_allclose(grad(quadratic)(X), (A + A.T) @ X, **EXACT)
        np.testing.assert_allclose(hessian(quadratic)(X), A + A.T, **EXACT)
        w = Tensor(X, requires_grad=True)
        assert not (w * w).requires_grad
    frozen = Tensor(X, requires_grad=True)
    assert grad(lambda x: np.sum(x * frozen))(Tensor(X)).requires_grad
    with no_grad():
        g = grad(lambda x: np.sum(x * frozen))(Tensor(X))
    assert not g.requires_grad


def test_function_keeps_its_name_and_failures_pass_through():
    assert grad(quadratic).__name__ == "quadratic"

    def broken(x):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        grad(broken)(X)
    with pytest.raises(ValueError, match="argnum"):
        grad(quadratic, 3)(X)
    assert (Tensor(X, requires_grad=True) * 1).requires_grad  # recording goes on


def test_changing_what_came_back_changes_nothing_else():
    _, gradient = value_and_grad(np.sum)(X)
    gradient += 1
    gradient[0] = 5
    x = Tensor(X)
    g = grad(lambda x: np.sum(x + x))(x)
    g.data[:] = 0
    assert np.array_equal(x.data, X)
    gx, gy = grad(lambda x, y: np.sum(x + y), (0, 1))(X, X)
    gx += 1
    assert np.array_equal(gy, np.ones(3))


def test_same_as_backward():
    x = ta.tensor(X, requires_grad=True)
    quadratic(x).backward()
    np.testing.assert_allclose(x.grad, grad(quadratic)(X), **EXACT)


@pytest.mark.parametrize("left", [True, False])
def test_second_derivative_of_a_product_with_a_plain_matrix(left):
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(2, 3, 3))

    def f(x, A):
        return np.sum(np.tanh(A @ x if left else x @ A))

    np.testing.assert_allclose(
        hessian(lambda x: f(x, A))(x), hessian(lambda x: f(x, Tensor(A)))(x), rtol=1e-12
    )


# ---------------------------------------------------------------- f closes over other tensors


@pytest.mark.parametrize("kind", [np.asarray, Tensor])
def test_gradient_penalty_at_a_plain_array(kind):
    """A loss with ta.grad(u)(xs) inside: its gradient must reach the weights in u."""
    w = Tensor(rng.normal(size=3), requires_grad=True)
    slope = grad(lambda x: np.sum(np.sin(x * w)))(kind(X))  # w cos(w x)
    assert type(slope) is Tensor and slope.requires_grad
    np.sum(slope**2).backward()
    c, s = np.cos(X * w.data), np.sin(X * w.data)
    np.testing.assert_allclose(w.grad, 2 * w.data * c * (c - w.data * X * s), **EXACT)


def test_a_value_a_jacobian_and_a_hessian_carry_the_gradient_of_a_closed_over_tensor():
    w = Tensor(2.0, requires_grad=True)
    f = lambda x: np.sum(w * x**3)
    for i, expected in enumerate([np.sum(X**3), np.sum(3 * X**2)]):
        w.grad = None
        np.sum(value_and_grad(f)(X)[i]).backward()
        np.testing.assert_allclose(w.grad, expected, rtol=1e-6)
    for found in (hessian(f)(X), jacobian(lambda x: 3 * w * x**2)(X)):
        w.grad = None
        np.sum(found).backward()
        np.testing.assert_allclose(w.grad, np.sum(6 * X), rtol=1e-6)


def test_third_derivative_by_two_variables():
    """d/dw d/dx d/dx (w² x³) = 2 w · 6 x, each derivative at a plain number."""
    second = lambda w: grad(grad(lambda x: w**2 * x**3))(np.float64(2))
    np.testing.assert_allclose(grad(second)(np.float64(5)), 2 * 5 * 6 * 2, **EXACT)


@pytest.mark.skipif(numba is None, reason="without Numba there is no kernel")
def test_gradient_through_a_kernel_can_be_differentiated():
    layer = nn.MultiheadAttention(32, 4, rng=0).astype(np.float64)
    x, found = np.random.default_rng(0).normal(size=(2, 128, 32)), []
    for impl in ("kernel", "numpy"):
        f = lambda x, impl=impl: np.sum(layer(x, x, x, need_weights=False, impl=impl)[0] ** 2)
        slope = grad(f)(x)
        with no_grad():
            np.testing.assert_allclose(slope.numpy(), grad(f)(x), **EXACT)
        np.sum(slope**2).backward()
        found.append([p.grad for p in layer.parameters() if p.grad is not None])
        layer.zero_grad()
    for of_kernel, of_numpy in zip(*found, strict=True):
        np.testing.assert_allclose(of_kernel, of_numpy, rtol=1e-9, atol=1e-10)


# ---------------------------------------------------------------- gradients of a result


def test_gradients_of_a_result():
    x, w = Tensor(X, requires_grad=True), Tensor(X + 1, requires_grad=True)
    w.grad = np.full(3, 7.0)
    h = np.sin(x)
    y = np.sum(h * w)
    gx, gw, gh = ta.gradients(y, [x, w, h])
    np.testing.assert_allclose(gx, np.cos(X) * w.data, **EXACT)
    np.testing.assert_allclose(gw, np.sin(X), **EXACT)
    np.testing.assert_allclose(gh, w.data, **EXACT)
    assert all(type(g) is np.ndarray for g in (gx, gw, gh))
    assert x.grad is None and np.array_equal(w.grad, [7, 7, 7])
    assert type(ta.gradients(np.sum(x * w), x)) is np.ndarray
    with pytest.raises(RuntimeError, match="freed"):
        ta.gradients(y, x)


def test_gradients_can_be_differentiated_again():
    x = Tensor(X, requires_grad=True)
    (first,) = ta.gradients(np.sum(x**3), (x,), create_graph=True)
    np.testing.assert_allclose(ta.gradients(np.sum(first), x), 6 * X, **EXACT)
    assert x.grad is None


def test_gradients_of_what_y_does_not_depend_on_and_of_y_itself():
    x, other = Tensor(X, requires_grad=True), Tensor(X, requires_grad=True)
    y = np.sum(x * 2)
    found = ta.gradients(y, [other, y, x])
    for g, expected in zip(found, [0, 1, 2], strict=True):
        np.testing.assert_array_equal(g, np.full(g.shape, expected))
