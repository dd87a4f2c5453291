"""Functions of networks: equal to PyTorch's, and stable at the edges."""

import math

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import both, torch

TF = torch.nn.functional
DTYPES = ["float64", "float32"]
rng = np.random.default_rng(0)


def normal(*shape, dtype="float64", scale=1.0):
    return (rng.normal(size=shape) * scale).astype(dtype)


POINTWISE = {
    "relu": (F.relu, TF.relu),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), lambda x: TF.leaky_relu(x, 0.2)),
    "elu": (lambda x: F.elu(x, 1.5), lambda x: TF.elu(x, 1.5)),
    "gelu": (F.gelu, TF.gelu),
    "gelu tanh": (
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: TF.gelu(x, approximate="tanh"),
    ),
    "silu": (F.silu, TF.silu),
    "sigmoid": (F.sigmoid, torch.sigmoid),
    "tanh": (F.tanh, torch.tanh),
    "softplus": (F.softplus, TF.softplus),
    "erf": (F.erf, torch.erf),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 3, 4)])
def test_pointwise(name, shape, dtype):
    ours, theirs = POINTWISE[name]
    both(ours, theirs, normal(*shape, dtype=dtype, scale=3))


@pytest.mark.parametrize("name", [n for n in POINTWISE if n != "tanh"])
def test_pointwise_at_large_numbers_and_zero(name):
    ours, theirs = POINTWISE[name]
    both(ours, theirs, np.array([-1e3, -50.0, -6.0, 0.0, 6.0, 50.0, 1e3]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("scale", [1, 1e4])
def test_softmax_family(axis, scale, dtype):
    x = normal(3, 4, 5, dtype=dtype, scale=scale)
    both(lambda x: F.softmax(x, axis), lambda x: TF.softmax(x, axis), x)
    both(lambda x: F.log_softmax(x, axis), lambda x: TF.log_softmax(x, axis), x)
    # PyTorch's float32 gradient exp(x - y) loses digits of a large y: compare with its float64
    for keep in (False, True):
        both(
            lambda x, keep=keep: F.logsumexp(x, axis, keep),
            lambda x, keep=keep: torch.logsumexp(x.double(), axis, keep).to(x.dtype),
            x,
        )


def test_logsumexp_of_nothing_but_minus_infinity():
    x = ta.tensor(np.array([[-np.inf, -np.inf], [0.0, -np.inf]]), requires_grad=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        assert F.logsumexp(x).data.tolist() == [-np.inf, 0.0]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_a_dead_unit_of_relu_lets_nothing_through_not_even_infinity(dtype):
    x = ta.tensor(np.array([[-1, 0, 2], [3, -5, np.nan]], dtype), requires_grad=True)
    F.relu(x).T.backward(np.array([[np.inf, 4], [np.nan, -np.inf], [-3, 1]], dtype))
    np.testing.assert_array_equal(x.grad, np.array([[0, 0, -3], [4, 0, 0]], dtype))
    assert x.grad.dtype == dtype


# ---------------------------------------------------------------- weighted sums and look-ups


@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 2, 4), (0, 4)])
def test_linear(shape):
    both(F.linear, TF.linear, normal(*shape), normal(3, 4), normal(3))
    both(F.linear, TF.linear, normal(*shape), normal(3, 4))


@pytest.mark.parametrize("ids", [np.array([0, 2, 2, 4]), np.array([[1], [1]]), np.array(3)])
@pytest.mark.parametrize("padding", [None, 2, -1])
def test_embedding(ids, padding):
    both(
        lambda w: F.embedding(ids, w, padding),
        lambda w: TF.embedding(torch.tensor(ids), w, padding),
        normal(5, 3),
    )


def test_one_hot():
    ids = np.array([[0, 2], [1, 1]])
    expected = TF.one_hot(torch.tensor(ids), 4).numpy()
    np.testing.assert_array_equal(F.one_hot(ids, 4), expected)
    assert F.one_hot(ids).shape == (2, 2, 3)


@pytest.mark.parametrize("p", [1, 2.0, 3])
def test_normalize(p):
    both(lambda x: F.normalize(x, p), lambda x: TF.normalize(x, p), normal(3, 4, 2))
    both(lambda x: F.normalize(x, p, axis=-1), lambda x: TF.normalize(x, p, dim=-1), normal(3, 4))


def test_normalize_of_zero_has_a_finite_gradient():
    x = ta.tensor(np.zeros((2, 3)), requires_grad=True)
    F.normalize(x).sum().backward()
    assert np.isfinite(x.grad).all()


@pytest.mark.parametrize("axis", [1, -1])
def test_cosine_similarity(axis):
    both(
        lambda a, b: F.cosine_similarity(a, b, axis),
        lambda a, b: TF.cosine_similarity(a, b, axis),
        normal(3, 4, 5),
        normal(3, 4, 5),
    )


BROADCAST = {
    "vectors of fewer axes": ((4, 3), (3,), 1),
    "more axes": ((4, 3), (5, 4, 3), 1),
    "more axes, axis 0": ((4, 3), (5, 4, 3), 0),
    "a number for each vector": ((4, 3), (4, 1), 1),
    "all pairs": ((4, 1, 3), (1, 5, 3), -1),
}


@pytest.mark.parametrize("case", BROADCAST.values(), ids=BROADCAST)
def test_cosine_similarity_broadcasts_first(case):
    *shapes, axis = case
    both(
        lambda a, b: F.cosine_similarity(a, b, axis),
        lambda a, b: TF.cosine_similarity(a, b, axis),
        *[normal(*shape) for shape in shapes],
    )


# ---------------------------------------------------------------- normalisation


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (4, 5)])
def test_layer_and_rms_norm(shape, dtype):
    x, w, b = (normal(*s, dtype=dtype) for s in ((2, 3, 4, 5), shape, shape))
    both(
        lambda *a: F.layer_norm(a[0], shape, *a[1:]),
        lambda *a: TF.layer_norm(a[0], shape, *a[1:]),
        x,
        w,
        b,
    )
    both(lambda x: F.layer_norm(x, shape), lambda x: TF.layer_norm(x, shape), x)
    both(lambda x, w: F.rms_norm(x, shape, w), lambda x, w: TF.rms_norm(x, shape, w), x, w)
    both(lambda x: F.rms_norm(x, shape, eps=0.1), lambda x: TF.rms_norm(x, shape, eps=0.1), x)


@pytest.mark.parametrize("shape", [(6, 3), (2, 3, 5), (2, 3, 4, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape, training):
    mean, var = normal(3), np.abs(normal(3)) + 0.5
    mine, theirs = (mean.copy(), var.copy()), (torch.tensor(mean), torch.tensor(var))
    both(
        lambda x, w, b: F.batch_norm(x, *mine, w, b, training, 0.3),
        lambda x, w, b: TF.batch_norm(x, *theirs, w, b, training, 0.3),
        normal(*shape),
        normal(3),
        normal(3),
    )
    np.testing.assert_allclose(mine[0], theirs[0].numpy(), rtol=1e-12)
    np.testing.assert_allclose(mine[1], theirs[1].numpy(), rtol=1e-12)


def test_batch_norm_without_features():
    for shape in ((4, 0), (4, 0, 3)):
        for training in (False, True):
            y = F.batch_norm(ta.tensor(np.ones(shape)), np.ones(0), np.ones(0), training=training)
            assert y.shape == shape


def test_dropout():
    x = ta.tensor(np.ones(10_000), requires_grad=True)
    y = F.dropout(x, 0.3, rng=np.random.default_rng(1))
    kept = y.data != 0
    np.testing.assert_allclose(y.data[kept], 1 / 0.7)
    # the share of 10,000 coins has a standard deviation of 0.0046
    assert abs(kept.mean() - 0.7) < 0.023
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, y.data)
    assert F.dropout(x, 0.3, training=False) is x
    assert not F.dropout(x, 1.0).data.any()
    with pytest.raises(ValueError, match="0 <= p <= 1"):
        F.dropout(x, 1.5)


# ---------------------------------------------------------------- losses

REDUCTIONS = ["mean", "sum", "none"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_elementwise_losses(shape, reduction):
    x, t = normal(*shape, scale=2), normal(*shape, scale=2)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        ours, theirs = getattr(F, name), getattr(TF, name)
        both(
            lambda x, t, f=ours: f(x, t, reduction=reduction),
            lambda x, t, f=theirs: f(x, t, reduction=reduction),
            x,
            t,
        )
    p, target = F.sigmoid(ta.tensor(x)).numpy(), rng.random(shape)
    w = rng.random(shape)
    both(
        lambda p: F.binary_cross_entropy(p, target, w, reduction),
        lambda p: TF.binary_cross_entropy(
            p, torch.tensor(target), torch.tensor(w), reduction=reduction
        ),
        p,
    )
    both(
        lambda x: F.binary_cross_entropy_with_logits(x, target, w, reduction, pos_weight=2.0),
        lambda x: TF.binary_cross_entropy_with_logits(
            x,
            torch.tensor(target),
            torch.tensor(w),
            reduction=reduction,
            pos_weight=torch.tensor(2.0),
        ),
        x * 100,
    )


def test_binary_cross_entropy_refuses_scores_and_survives_certainty():
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.binary_cross_entropy(ta.tensor([2.0]), np.ones(1))
    both(
        lambda p: F.binary_cross_entropy(p, np.array([1.0, 0.0])),
        lambda p: TF.binary_cross_entropy(p, torch.tensor([1.0, 0.0], dtype=torch.float64)),
        np.array([0.3, 0.2]),
    )
    assert F.binary_cross_entropy(ta.tensor([0.0, 1.0]), np.array([1.0, 0.0])).item() == 100


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 3, 5), (2, 3, 2, 2)])
def test_cross_entropy_with_classes(shape, smoothing, reduction):
    axis = 0 if len(shape) == 1 else 1
    ids = rng.integers(0, 3, shape[:axis] + shape[axis + 1 :])
    if ids.size > 2:
        ids.flat[1] = -100
    w = rng.random(3) + 0.1
    for weight in (None, w):
        both(
            lambda x, weight=weight: F.cross_entropy(
                x, ids, weight, reduction=reduction, label_smoothing=smoothing
            ),
            lambda x, weight=weight: TF.cross_entropy(
                x,
                torch.tensor(ids),
                None if weight is None else torch.tensor(weight),
                reduction=reduction,
                label_smoothing=smoothing,
            ),
            normal(*shape, scale=10),
        )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 3, 5)])
def test_cross_entropy_with_probabilities(shape, reduction):
    w = rng.random(3)
    both(
        lambda x, t: F.cross_entropy(x, t, w, reduction=reduction, label_smoothing=0.1),
        lambda x, t: TF.cross_entropy(
            x, t, torch.tensor(w), reduction=reduction, label_smoothing=0.1
        ),
        normal(*shape),
        rng.random(shape),
    )


def test_cross_entropy_of_large_scores_is_exact():
    x = ta.tensor(np.array([[1e3, -1e3]]), requires_grad=True)
    loss = F.cross_entropy(x, np.array([1]))
    loss.backward()
    assert loss.item() == 2000
    assert x.grad.tolist() == [[1, -1]]


@pytest.mark.filterwarnings("ignore:reduction. .mean. divides")  # PyTorch plans to change it
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [True, False])
def test_kl_div(reduction, log_target):
    t = rng.random((4, 3))
    t[0, 0] = 0
    t = np.log(t + 0.1) if log_target else t
    both(
        lambda x: F.kl_div(x, t, reduction, log_target),
        lambda x: TF.kl_div(x, torch.tensor(t), reduction=reduction, log_target=log_target),
        normal(4, 3),
    )


# ---------------------------------------------------------------- at the edges


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_keeps_its_digits_far_below_zero(dtype):
    # 1 / (1 + eˣ) by way of tanh is 0 below -17 in float32, and its logarithm -inf
    x = ta.tensor(np.array([-80.0, -40, -20, -17, 0, 17, 80], dtype), requires_grad=True)
    y = F.sigmoid(x)
    expected = [1 / (1 + math.exp(-v)) for v in x.data.tolist()]
    rounding = 4 * np.finfo(dtype).eps * 80  # an exponent of 80 carries its rounding into exp
    np.testing.assert_allclose(y.data, expected, rtol=rounding)
    y.sum().backward()
    below = x.data < 0
    np.testing.assert_allclose(x.grad[below], (y.data * (1 - y.data))[below], rtol=rounding)
    assert (x.grad[below] > 0).all()
    assert y.dtype == x.grad.dtype == dtype


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 2e-15), ("float32", 1e-6)])
def test_erf_is_exact_relative_to_its_value(dtype, rtol):
    x = np.concatenate([np.linspace(-7, 7, 4001), np.geomspace(1e-30, 1, 200)]).astype(dtype)
    y = F.erf(x).data
    np.testing.assert_allclose(y, [math.erf(v) for v in x.tolist()], rtol=rtol)
    assert y.dtype == dtype
    assert np.abs(y).max() == 1
    ends = F.erf(np.array([-np.inf, np.inf, np.nan, -0.0], dtype)).data
    assert ends.tolist()[:2] == [-1, 1]
    assert np.isnan(ends[2])
    assert np.signbit(ends[3])


def test_weights_of_classes_may_be_a_list_and_leave_float32_alone():
    x, ids = np.arange(6, dtype=np.float32).reshape(2, 3), [1, 0]
    for weight in ([1, 2, 3], np.array([1.0, 2.0, 3.0])):
        loss = F.cross_entropy(ta.tensor(x), ids, weight, label_smoothing=0.1)
        assert loss.dtype == np.float32
    assert F.binary_cross_entropy_with_logits(ta.tensor([0.0, 0.0]), [0, 1]).item() == (
        pytest.approx(math.log(2), rel=1e-6)
    )


@pytest.mark.parametrize("f", [F.softmax, F.log_softmax, F.logsumexp])
def test_whole_numbers_become_float32(f):
    x = np.array([[1, 2, 3], [0, 0, 5]])
    y = f(x)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.data, f(x.astype(np.float64)).data, rtol=1e-6)


@pytest.mark.parametrize(("beta", "threshold"), [(1.0, 20.0), (2.0, 3.0), (0.5, 20.0)])
def test_softplus_like_pytorch(beta, threshold):
    x = np.linspace(-30, 30, 41)
    ours, theirs = ta.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y = F.softplus(ours, beta, threshold)
    expected = torch.nn.functional.softplus(theirs, beta, threshold)
    y.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(y.data, expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), rtol=1e-12)


def test_cosine_similarity_of_short_vectors_like_pytorch():
    """Below eps a length counts as eps, a constant: the gradient is that of x₁·x₂ / (ε ‖x₂‖)."""
    a, b = np.array([1e-9, 0.0, 2e-10]), np.array([1.0, 1.0, 3.0])
    x = ta.tensor(a, requires_grad=True)
    y = F.cosine_similarity(x, b, axis=0)
    expected = torch.nn.functional.cosine_similarity(torch.tensor(a), torch.tensor(b), dim=0)
    np.testing.assert_allclose(y.data, expected.numpy(), rtol=1e-12)
    y.backward()
    np.testing.assert_allclose(x.grad, b / np.linalg.norm(b) / 1e-8, rtol=1e-12)
