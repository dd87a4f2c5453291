"""Values: every operation gives what NumPy gives, in every form of call."""

import inspect
import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tinyattn as ta
from tests.cases.linalg import CASES
from tests.cases.ops import GETITEM
from tests.ops.same import same, unwrap
from tinyattn import Tensor
from tinyattn.check import gradcheck
from tinyattn.engine.convert import NONDIFFERENTIABLE
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS

rng = np.random.default_rng(0)
X, Y = rng.uniform(0.1, 0.9, (2, 3)), rng.uniform(0.1, 0.9, (2, 3))
SQUARE, CUBE = rng.normal(size=(3, 3)), rng.normal(size=(2, 3, 4))


# ---------------------------------------------------------------- all functions with a rule

NUMPY_CASES = [what for what in CASES if what in HANDLED_FUNCTIONS]


@pytest.mark.parametrize("what", NUMPY_CASES, ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_value_is_that_of_numpy(what):
    """The cases of the gradient checks, once on Tensors and once on plain arrays."""
    for c in CASES[what]:
        expected = c.f(*c.inputs)
        ours = c.f(
            *[
                Tensor(x) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
                for x in c.inputs
            ]
        )
        try:
            same(ours, expected)
        except AssertionError as error:
            raise AssertionError(f"{what.__name__}, {c.note}: {error}") from None


@pytest.mark.parametrize("note", GETITEM)
def test_indexing(note):
    x, index = GETITEM[note]
    same(Tensor(x)[index], x[index])
    with_tensors = index
    if isinstance(index, tuple):
        with_tensors = tuple(Tensor(i) if isinstance(i, np.ndarray) else i for i in index)
    elif isinstance(index, np.ndarray):
        with_tensors = Tensor(index)
    same(Tensor(x)[with_tensors], x[index])


def test_indexing_errors_are_those_of_numpy():
    for index in (5, (0, 0, 0), "a", 1.0, np.array([9]), np.array([True] * 5)):
        with pytest.raises((IndexError, TypeError)):
            Tensor(X)[index]


def test_iteration_and_length():
    assert len(Tensor(X)) == 2
    same(list(Tensor(X)), list(X))
    first, second = Tensor(X)
    same([first, second], [X[0], X[1]])
    with pytest.raises(TypeError, match="without axes"):
        len(Tensor(1.0))
    with pytest.raises(TypeError):
        iter(Tensor(1.0)).__next__()
    assert Tensor(2) in [Tensor(2)]  # compared by ==


# ---------------------------------------------------------------- forms of call

FORMS = [
    lambda x: x.sum(),
    lambda x: x.sum(0),
    lambda x: x.sum(axis=1, keepdims=True),
    lambda x: x.sum((0, 1)),
    lambda x: x.sum(axis=-1),
    lambda x: x.mean(0),
    lambda x: x.mean(),
    lambda x: x.mean(axis=(0, 1), keepdims=True),
    lambda x: x.max(),
    lambda x: x.max(1),
    lambda x: x.max(axis=0, keepdims=True),
    lambda x: x.min(-1),
    lambda x: x.prod(0),
    lambda x: x.var(),
    lambda x: x.var(axis=0, ddof=1),
    lambda x: x.std(axis=1, keepdims=True),
    lambda x: x.cumsum(),
    lambda x: x.cumsum(1),
    lambda x: x.cumprod(axis=0),
    lambda x: x.trace(),
    lambda x: x.dot(SQUARE),
    lambda x: x.reshape(3, 2),
    lambda x: x.reshape((3, 2)),
    lambda x: x.reshape([6]),
    lambda x: x.reshape(-1),
    lambda x: x.reshape(2, -1, 1),
    lambda x: x.ravel(),
    lambda x: x.flatten(),
    lambda x: x.transpose(),
    lambda x: x.transpose(1, 0),
    lambda x: x.transpose((1, 0)),
    lambda x: x.transpose([1, 0]),
    lambda x: x.transpose(-1, 0),
    lambda x: x.T,
    lambda x: x.mT,
    lambda x: x.swapaxes(0, 1),
    lambda x: x[None].squeeze(),
    lambda x: x[None].squeeze(0),
    lambda x: x[None].squeeze(axis=0),
    lambda x: x.repeat(2),
    lambda x: x.repeat(2, 1),
    lambda x: x.repeat(2, axis=0),
    lambda x: x.astype(np.float32),
    lambda x: x.astype("float32"),
    lambda x: x.astype(int),
    lambda x: x.astype(bool),
    lambda x: x.copy(),
    lambda x: x.diagonal(),
    lambda x: x.diagonal(1),
    lambda x: x.take([0, 2]),
    lambda x: x.take([0, 2], 1),
    lambda x: x.take([1], axis=0),
    lambda x: x.clip(0.2, 0.8),
    lambda x: x.clip(0.2),
    lambda x: x.clip(None, 0.8),
    lambda x: x.clip(min=0.2),
    lambda x: x.clip(max=0.8),
    lambda x: np.clip(x, 0.2, 0.8),
    lambda x: x.argsort(),
    lambda x: x.argsort(0),
    lambda x: x.argmax(),
    lambda x: x.argmax(1),
    lambda x: x.argmin(axis=0),
    lambda x: (x > 0.5).all(),
    lambda x: (x > 0.5).any(axis=0),
    lambda x: x.round(),
    lambda x: x.round(1),
    lambda x: x.shape,
    lambda x: x.ndim,
    lambda x: x.size,
    lambda x: x.dtype,
    lambda x: x.tolist(),
    lambda x: x.sum().item(),
    lambda x: np.shape(x),
    lambda x: np.ndim(x),
    lambda x: np.size(x),
    lambda x: abs(x),
    lambda x: -x,
    lambda x: +x,
    lambda x: np.sum(x, 0),
    lambda x: np.sum(x, axis=(0, -1)),
    lambda x: np.mean(x, 1),
    lambda x: np.max(x, 0),
    lambda x: np.max(x, axis=1, keepdims=True),
    lambda x: np.var(x, ddof=1),
    lambda x: np.std(x, 0),
    lambda x: np.reshape(x, 6),
    lambda x: np.reshape(x, shape=(3, 2)),
    lambda x: np.transpose(x, axes=(1, 0)),
    lambda x: np.transpose(x, [1, 0]),
    lambda x: np.expand_dims(x, axis=(0, 2)),
    lambda x: np.concatenate((x, x), 1),
    lambda x: np.concatenate([x, X], axis=-1),
    lambda x: np.stack((x, X), 1),
    lambda x: np.stack([x, x], axis=-1),
    lambda x: np.split(x, 3, 1),
    lambda x: np.split(x, [1], 1),
    lambda x: np.array_split(x, 2, axis=-1),
    lambda x: np.array_split(x, 5, axis=1),
    lambda x: np.array_split(x, [-1, 9], axis=1),
    lambda x: np.where(x > 0.5, x, 0.0),
    lambda x: np.where(x > 0.5),
    lambda x: np.where(X > 0.5, 1.0, x),
    lambda x: np.nonzero(x > 0.5),
    lambda x: np.argwhere(x > 0.5),
    lambda x: np.flatnonzero(x > 0.5),
    lambda x: np.argsort(x, 0),
    lambda x: np.argsort(x, axis=None),
    lambda x: np.sort(x, 0),
    lambda x: np.sort(x, kind="stable"),
    lambda x: np.argmax(x, axis=1, keepdims=True),
    lambda x: np.floor(x),
    lambda x: np.rint(x),
    lambda x: np.round(x, 1),
    lambda x: np.sign(x),
    lambda x: np.isnan(x),
    lambda x: np.isfinite(x),
    lambda x: np.isclose(x, X),
    lambda x: np.allclose(x, X),
    lambda x: np.array_equal(x, X),
    lambda x: np.zeros_like(x),
    lambda x: np.ones_like(x, dtype=np.float32),
    lambda x: np.full_like(x, 3),
    lambda x: np.empty_like(x).shape,
    lambda x: np.result_type(x),
    lambda x: np.logical_not(x > 0.5),
    lambda x: np.logical_and(x > 0.2, x < 0.8),
    lambda x: (x > 0.2) & (x < 0.8),
    lambda x: (x > 0.2) | (X < 0.8),
    lambda x: ~(x > 0.5),
    lambda x: (x > 0.2) ^ (x < 0.8),
    lambda x: np.any(x > 0.5),
    lambda x: np.count_nonzero(x > 0.5),
    lambda x: np.unique(np.round(x)),
    lambda x: np.searchsorted([0.0, 0.5], x),
    lambda x: np.digitize(x, [0.0, 0.5]),
    lambda x: np.histogram(x, 3)[0],
    lambda x: np.isin(x, X[0]),
    lambda x: np.broadcast_to(x, (4, 2, 3)),
    lambda x: np.squeeze(x[None], axis=0),
    lambda x: np.moveaxis(x, 0, 1),
    lambda x: np.take(x, 1, axis=1),
    lambda x: np.take(x, np.array([[0, 1]])),
    lambda x: np.take_along_axis(x, np.argsort(x, 1), 1),
    lambda x: np.pad(x, 1),
    lambda x: np.pad(x, ((0, 1), (2, 0)), constant_values=3),
    lambda x: np.tile(x, (2, 1)),
    lambda x: np.linalg.norm(x),
    lambda x: np.linalg.norm(x, axis=1),
    lambda x: np.dot(x, x.T),
    lambda x: np.linalg.norm(x, 1, 1),
    lambda x: np.linalg.norm(x, ord=np.inf, axis=0),
    lambda x: np.tensordot(x, X, 2),
    lambda x: np.einsum("ij,ij", x, X),
    lambda x: np.outer(x, x),
    lambda x: np.einsum("ij->", x, optimize=True),
    lambda x: np.average(x, 0, [1.0, 2.0]),
    lambda x: np.average(x, weights=X),
    lambda x: np.average(x, axis=1),
    lambda x: np.ptp(x, 0),
    lambda x: np.trace(x, 1),
    lambda x: np.floor_divide(x, 0.2),
    lambda x: np.mod(x, 0.2),
    lambda x: np.heaviside(x - 0.5, 0.5),
    lambda x: np.signbit(x),
    lambda x: np.abs(x),
    lambda x: np.pow(x, 2),
    lambda x: np.acos(x),
    lambda x: np.concat([x, x]),
    lambda x: np.permute_dims(x, (1, 0)),
    lambda x: np.true_divide(x, 2),
    lambda x: np.astype(x, int),
]


@pytest.mark.parametrize("f", FORMS, ids=lambda f: f"line {f.__code__.co_firstlineno}")
def test_form_of_call(f):
    ours, numpy = f(Tensor(X, requires_grad=True)), f(X)
    same(ours, numpy) if not isinstance(numpy, np.dtype) else ours == numpy


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.pow,
    operator.mod,
    operator.floordiv,
]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", OPERATORS + COMPARISONS, ids=lambda op: op.__name__)
def test_operator_with_all_kinds_of_partners(op):
    t = Tensor(X, requires_grad=True)
    partners = [
        2,
        2.5,
        True,
        np.float64(0.5),
        np.int64(3),
        Y,
        Y[0],
        X.tolist(),
        X[0].tolist(),
        np.arange(1, 4),
        Y.astype(np.float32),
        np.array(2.0),
        X,
    ]
    for other in partners:
        array = np.asarray(other) if isinstance(other, list) else other
        same(op(t, other), op(X, array))
        same(op(other, t), op(array, X))
        if not isinstance(other, bool | int | float | list):
            same(op(t, Tensor(other)), op(X, array))
    for ours in (op(t, 2), op(2, t), op(Y, t), op(X.tolist(), t)):
        assert type(ours) is Tensor
        assert ours.requires_grad == (op in OPERATORS[:-1])


def test_matmul_operator_with_all_kinds_of_partners():
    t = Tensor(SQUARE, requires_grad=True)
    for other in (
        SQUARE,
        SQUARE[0],
        SQUARE.tolist(),
        CUBE,
        Tensor(SQUARE),
    ):
        same(t @ other, SQUARE @ np.asarray(unwrap(other)))
    for other in (SQUARE, SQUARE[0], SQUARE.tolist(), CUBE.swapaxes(1, 2), Tensor(SQUARE)):
        same(other @ t, np.asarray(unwrap(other)) @ SQUARE)
    for left, right in ((t, 2), (2, t), (t, X), (t, Tensor(1.0))):
        with pytest.raises(ValueError, match="matmul|shapes|dimension"):
            left @ right


def test_operators_that_do_not_exist():
    t = Tensor(X, requires_grad=True)
    for call in (
        lambda: t + "a",
        lambda: None * t,
        lambda: divmod(t, 2),
        lambda: t + {},
        lambda: {} - t,
        lambda: t << 1,
    ):
        with pytest.raises(TypeError):
            call()


def test_a_list_of_numbers_beside_a_float32_tensor():
    t = Tensor(np.float32(X))
    for y in (t + X[0].tolist(), X[0].tolist() * t, t @ SQUARE.tolist(), [1, 2, 3] - t):
        assert y.dtype == np.float32


# ---------------------------------------------------------------- every function of NumPy

MODULES = [np, np.linalg, np.fft, np.lib.stride_tricks]
FUNCTIONS = {
    f
    for m in MODULES
    for f in vars(m).values()
    if isinstance(f, np.ufunc) or hasattr(f, "_implementation")
}


def test_every_numpy_function_has_a_rule_or_refuses_by_name():
    assert len(FUNCTIONS) > 300
    t = Tensor(X, requires_grad=True)
    for f in FUNCTIONS - set(HANDLED_FUNCTIONS):
        with pytest.raises(TypeError, match=f"{f.__name__} .*rule"):
            if isinstance(f, np.ufunc):
                f(*[t] * f.nin)
            else:
                t.__array_function__(f, (Tensor,), (t,), {})


DIFFERENTIABLE = """
    absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt conjugate copysign cos
    cosh deg2rad degrees divide exp exp2 expm1 fabs float_power fmax fmin fmod hypot log log10
    log1p log2 logaddexp logaddexp2 matmul matvec maximum minimum multiply negative positive power
    rad2deg radians reciprocal remainder sign sin sinh sqrt square subtract tan tanh vecdot vecmat
""".split()
REFUSED = """
    bitwise_count divmod frexp gcd isnat lcm ldexp modf nextafter spacing
""".split()


def test_which_ufuncs_have_a_derivative():
    """A new ufunc of NumPy has to be put into one of the three groups."""
    ufuncs = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc)}
    for name in DIFFERENTIABLE:
        assert ufuncs[name] in HANDLED_FUNCTIONS
        assert ufuncs[name] not in NONDIFFERENTIABLE
    for name in REFUSED:
        assert ufuncs[name] not in HANDLED_FUNCTIONS
    rest = set(ufuncs) - set(DIFFERENTIABLE) - set(REFUSED)
    assert {n for n in rest if ufuncs[n] not in NONDIFFERENTIABLE} == set()


def test_positional_arguments_mean_what_they_mean_in_numpy():
    for function, ours in HANDLED_FUNCTIONS.items():
        if function in NONDIFFERENTIABLE or isinstance(function, np.ufunc):
            continue
        try:
            theirs = inspect.signature(function).parameters.values()
        except ValueError:  # written in C
            continue
        positional = [
            [p.name for p in ps if p.kind <= p.POSITIONAL_OR_KEYWORD]
            for ps in (theirs, inspect.signature(ours).parameters.values())
        ]
        operands = {("x2", "b"), ("x", "a"), ("y", "b")}
        for i, (theirs, our) in enumerate(zip(*positional, strict=False)):
            assert i == 0 or theirs == our or (theirs, our) in operands, function.__name__


# ---------------------------------------------------------------- indexing by anything


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_any_index(data):
    x = np.random.default_rng(0).normal(size=data.draw(hnp.array_shapes(max_dims=3, max_side=3)))
    index = data.draw(
        hnp.basic_indices(x.shape, allow_newaxis=True)
        | hnp.integer_array_indices(x.shape)
        | hnp.arrays(bool, x.shape)
        | hnp.arrays(bool, x.shape[:1])
    )
    same(Tensor(x)[index], x[index])
    gradcheck(lambda x: x[index], x, order=2).expect()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_broadcasting(data):
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)
    ).input_shapes
    a, b = (np.random.default_rng(i).uniform(0.5, 2, size=s) for i, s in enumerate(shapes))
    f = data.draw(st.sampled_from([operator.mul, operator.truediv, operator.pow, np.logaddexp]))
    same(f(Tensor(a), Tensor(b)), f(a, b))
    gradcheck(f, a, b, order=2).expect()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_axes(data):
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=3))
    axis = data.draw(
        st.none() | hnp.valid_tuple_axes(len(shape)) | st.integers(-len(shape), len(shape) - 1)
    )
    keepdims = data.draw(st.booleans())
    f = data.draw(st.sampled_from([np.sum, np.mean, np.prod, np.max, np.min, np.var]))
    x = np.random.default_rng(0).permutation(math.prod(shape)).reshape(shape) / 4 + 0.1
    same(f(Tensor(x), axis=axis, keepdims=keepdims), f(x, axis=axis, keepdims=keepdims))
    gradcheck(lambda x: f(x, axis=axis, keepdims=keepdims), x, order=2).expect()


# ---------------------------------------------------------------- forms that NumPy allows, too

A = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])
FORMS = {
    "norm, -inf": (lambda x: np.linalg.norm(x[0], -np.inf), A),
    "norm, -inf of rows": (lambda x: np.linalg.norm(x, -np.inf, axis=1), A),
    "norm, inf of rows": (lambda x: np.linalg.norm(x, np.inf, axis=1), A),
    "norm, p = 0.5": (lambda x: np.linalg.norm(x, 0.5, axis=0), A),
    "repeat of a number": (lambda x: np.repeat(x, 3, axis=0), np.array(2.0)),
    "repeat of a number, axis -1": (lambda x: np.repeat(x, 2, axis=-1), np.array(2.0)),
    "vstack, dtype": (lambda x: np.vstack([x, x[:1]], dtype=np.float64), A),
    "hstack, dtype": (lambda x: np.hstack([x, x], dtype=np.float64), A),
    "stack, dtype": (lambda x: np.stack([x, x], dtype=np.float64), A),
    "concatenate, dtype": (lambda x: np.concatenate([x, x], dtype=np.float64), A),
    "column_stack of numbers": (lambda x: np.column_stack([x[0, 0], x[1, 1]]), A),
    "take_along_axis of all": (
        lambda x: np.take_along_axis(x, np.array([5, 0, 0]), axis=None),
        A,
    ),
    "kron of vectors": (lambda x: np.kron(x[0], x[1]), A),
    "kron of a vector and a matrix": (lambda x: np.kron(x[0], x), A),
    "kron of a matrix and a vector": (lambda x: np.kron(x, x[0]), A),
    "kron of a number": (lambda x: np.kron(x[0, 0], x), A),
    "kron of three axes": (lambda x: np.kron(x[None] * x[:, None], x), A),
    "cross": (lambda x: np.cross(x[0], x[1]), A),
    "cross of many": (lambda x: np.cross(x, x[0]), A),
    "cross, axes": (lambda x: np.cross(x.T, x + 1, axisa=0, axisc=0), A),
    "cross, axis": (lambda x: np.cross(x.T, x.T * x.T, axis=0), A),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_that_numpy_allows(name):
    f, x = FORMS[name]
    np.testing.assert_allclose(f(ta.tensor(x)).data, f(x), rtol=1e-14)
    gradcheck(f, x, order=2).expect()


def test_norms_of_matrices():
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis in ((0, 1), (1, 2)):
        y = np.linalg.norm(ta.tensor(x, requires_grad=True), "fro", axis=axis)
        np.testing.assert_allclose(y.data, np.linalg.norm(x, "fro", axis=axis), rtol=1e-14)
    for ord, axis in ((2, None), (1, None), ("nuc", None), (2, (0, 1)), (np.inf, (1, 0))):
        with pytest.raises(NotImplementedError, match=f"ord={ord!r}"):
            np.linalg.norm(ta.tensor(x[0]), ord, axis)


@pytest.mark.parametrize("f", [np.real, np.conjugate, np.real_if_close], ids=lambda f: f.__name__)
def test_parts_of_complex_numbers(f):
    for z in (np.array([1 + 2j, 3 - 1j]), np.array([1 + 0j, 2])):
        y = f(ta.tensor(z))
        np.testing.assert_array_equal(y.data, f(z))
        assert y.dtype == f(z).dtype
    assert f(ta.tensor([1.0], requires_grad=True)).requires_grad


def test_the_number_of_elements_that_are_not_zero_is_a_norm():
    x = np.array([[3.0, 0.0, 0.0], [1.0, 2.0, 0.0]])
    for axis in (0, 1):
        y = np.linalg.norm(ta.tensor(x, requires_grad=True), 0, axis=axis)
        np.testing.assert_array_equal(y.data, np.linalg.norm(x, 0, axis=axis))


@pytest.mark.parametrize("axis", [None, 0])
def test_equal_values_have_a_standard_deviation_without_slope(axis):
    x = ta.tensor(np.array([[2.0, 1.0], [2.0, 5.0]]), requires_grad=True)
    y = np.std(x[:, :1] if axis is None else x, axis=axis)
    y.sum().backward()
    np.testing.assert_allclose(x.grad[:, 0], 0, atol=0)
    if axis == 0:
        np.testing.assert_allclose(x.grad[:, 1], [-0.5, 0.5])


def test_joined_arrays_get_the_dtype_that_was_asked_for():
    x = ta.tensor(A, requires_grad=True)
    for join in (np.vstack, np.hstack, np.stack, np.concatenate):
        x.grad = None
        y = join([x, x], dtype=np.float32)
        assert y.dtype == np.float32
        y.sum().backward()
        assert x.grad.dtype == np.float64 and (x.grad == 2).all()


@pytest.mark.parametrize("f", [np.var, np.std])
@pytest.mark.parametrize("ddof", [3, 4])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_variance_of_too_few_numbers_is_infinite_as_in_numpy(f, ddof):
    for x in (X, X[:, :1]):
        ours = f(ta.tensor(x), axis=1, ddof=ddof).numpy()
        np.testing.assert_array_equal(ours, f(x, axis=1, ddof=ddof))
