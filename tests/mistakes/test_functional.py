"""Mistakes with functions of tensors: the error that each must raise."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.autograd import Tensor
from tinyattn.kernels import numba

needs_numba = pytest.mark.skipif(numba is None, reason="without Numba there is no kernel")


def test_self_attention_refuses_what_cannot_be_divided():
    with pytest.raises(ValueError, match="10 features, which cannot be divided .* of 3 heads"):
        F.packed_self_attention(Tensor(np.ones((4, 10))), 3)
    with pytest.raises(ValueError, match=r"mask \(3, 3\) does not broadcast"):
        F.packed_self_attention(Tensor(np.ones((150, 12), np.float32)), 2, np.ones((3, 3), bool))


x54, x74 = np.ones((2, 5, 4)), np.ones((2, 7, 4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(k=x74), "there are 7 keys and 5 values, but each key needs one value"),
        (dict(k=x54[..., :3]), "q has 4 features and k has 3, but they need the same number"),
        (dict(q=np.ones(4)), r"q must be \[..., T, D\] \(q \(4,\), k \(2, 5, 4\)"),
        (dict(q=np.ones((3, 5, 4))), "the leading axes do not broadcast"),
        (dict(mask=np.ones((5, 4), bool)), r"mask \(5, 4\) does not broadcast to \[..., T, S\]"),
        (dict(mask=np.ones((3, 2, 5, 5), bool)), r"mask \(3, 2, 5, 5\) does not broadcast"),
        (dict(bias=np.ones((3, 5, 5))), r"bias \(3, 5, 5\) does not .* = \(2, 5, 5\)"),
        (dict(impl="cuda"), "must be one of auto, sums, numpy, kernel, got impl='cuda'"),
    ],
)
def test_wrong_shapes_of_attention(arguments, message):
    arguments = {**dict(q=x54, k=x54, v=x54), **arguments}
    with pytest.raises(ValueError, match=message):
        F.scaled_dot_product_attention(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(mask=np.ones((5, 5))), r"mask must be bool \(True where a query may .*, got float64"),
        (dict(q=np.ones((5, 4), int)), f"q must be floating point, got {np.int_.__name__}"),
        (
            dict(
                q=x54.astype(np.float16),
                k=x54.astype(np.float16),
                v=x54.astype(np.float16),
                impl="kernel",
            ),
            "takes float32 or float64, got float16",
        ),
    ],
)
def test_wrong_dtypes_of_attention(arguments, message):
    arguments = {**dict(q=x54, k=x54, v=x54), **arguments}
    with pytest.raises(TypeError, match=message):
        F.scaled_dot_product_attention(**arguments)


def ones(*shape):
    return ta.tensor(np.ones(shape))


BAD = [
    (lambda: F.conv1d(ones(2, 3, 5), ones(4, 2, 3)), "channels do not match, because x has 3.*2$"),
    (lambda: F.conv1d(ones(2, 3, 5), ones(4, 3)), r"weight must be .* with 3 axes, got .*\(4, 3\)"),
    (lambda: F.conv1d(ones(2, 3, 5), ones(4, 1, 3), groups=3), "4 output.*groups=3 does not div"),
    (lambda: F.conv1d(ones(2, 3, 5), ones(4, 1, 3), groups=0), "expected 1 <= groups, got groups"),
    (
        lambda: F.conv1d(ones(2, 3, 5), ones(4, 3, 3), ones(1)),
        r"bias must have .*\(4,\), got .*\(1",
    ),
    (lambda: F.conv2d(ones(2, 3, 5, 5), ones(4, 3, 3, 3), ones(9), impl="kernel"), "bias must"),
    (lambda: F.conv2d(ones(2, 3, 5, 5), ones(4, 3, 3, 3), stride=(1, 2, 3)), "a pair of them, got"),
    (lambda: F.neighbour_table(5, 3), r"lengths must be a tuple.*got 5"),
    (lambda: F.pad(ones(2, 3), 1), "pad must be .*got pad=1 for input of shape"),
    (lambda: F.conv1d(ones(1, 1, 2), ones(1, 1, 3)), "does not fit"),
    (lambda: F.conv1d(ones(2, 3, 5), ones(4, 3, 0)), r"kernel of size >= 1, .*\(4, 3, 0\)"),
    (lambda: F.conv2d(ones(2, 3, 5, 5), ones(4, 3, 3, 0)), "conv2d: expected a kernel of size"),
    (lambda: F.conv2d(ones(2, 5), ones(4, 2, 3, 3)), r"x must be \[B, C, H, W\]"),
    (lambda: F.conv1d(ones(1, 1, 5), ones(1, 1, 3), stride=2, padding="same"), "needs stride=1"),
    (
        lambda: F.conv1d(ones(1, 1, 5), ones(1, 1, 3), padding="reflect"),
        'number, "same" or "valid", got',
    ),
    (lambda: F.max_pool1d(ones(1, 1, 5), 2, padding=2), "padding <= kernel_size / 2"),
    (lambda: nn.Conv1d(3, 4, 2, groups=2), "must divide"),
    (lambda: F.conv1d(ones(1, 1, 5), ones(1, 1, 3), impl="fast"), "must be one of auto, sums"),
    (lambda: F.max_pool1d(ones(1, 1, 5), 2, impl="fast"), "must be one of auto, sums, numpy"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_of_convolutions_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.max_pool1d(x, 2, ceil_mode=True),
        lambda x: F.avg_pool1d(x, 2, count_include_pad=False),
        lambda x: F.avg_pool2d(x[None], 2, divisor_override=3),
        lambda x: F.pad(x, (1, 1), mode="reflect"),
    ],
)
def test_what_is_not_there_is_refused_by_name(call):
    with pytest.raises(NotImplementedError, match=r"only (ceil_mode|count|divisor|mode)"):
        call(ones(1, 2, 4))


def test_linear_says_which_axis_is_wrong():
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\).*needs 4 features"):
        F.linear(ta.tensor(np.ones((2, 3))), ta.tensor(np.ones((5, 4))))


@pytest.mark.parametrize("ids", [np.array([0, -1]), np.array([5])])
def test_embedding_refuses_ids_outside(ids):
    with pytest.raises(IndexError, match="integers from 0 to 4"):
        F.embedding(ids, ta.tensor(np.ones((5, 2))))


def test_embedding_refuses_floats():
    with pytest.raises(TypeError, match="must be integers"):
        F.embedding(np.array([0.0]), ta.tensor(np.ones((5, 2))))


def test_cosine_similarity_of_other_shapes():
    with pytest.raises(ValueError, match=r"x1 \(4, 3\) and x2 \(4, 2\) do not broadcast"):
        F.cosine_similarity(np.ones((4, 3)), np.ones((4, 2)))


def test_norms_refuse_another_last_axis():
    with pytest.raises(ValueError, match=r"x must be \[..., 4\] for normalized_shape=4"):
        F.layer_norm(ta.tensor(np.ones((4, 3))), 4)


@pytest.mark.parametrize("shape", [(1,), (5,), (512, 512), (512, 1)])
@pytest.mark.parametrize("what", ["weight", "bias"])
def test_norms_refuse_parameters_of_another_shape(what, shape):
    """The kernels, which run for this size, would read memory that does not belong to them."""
    x, p = np.ones((512, 512), np.float32), np.ones(shape, np.float32)
    average = np.ones(512, np.float32)
    message = rf"{what} must have shape \(512,\), got \({shape[0]}"
    with pytest.raises(ValueError, match=f"^layer_norm: {message}"):
        F.layer_norm(x, 512, **{what: p})
    with pytest.raises(ValueError, match=f"^batch_norm: {message}"):
        F.batch_norm(x, average, average, **{what: p})
    if what == "weight":
        with pytest.raises(ValueError, match=f"^rms_norm: {message}"):
            F.rms_norm(x, 512, p)


def test_batch_norm_needs_averages_unless_in_training():
    x, average = np.ones((4, 3)), np.ones(3)
    with pytest.raises(ValueError, match=r"running_mean must be an array \[3\], got None"):
        F.batch_norm(x, None, average)
    with pytest.raises(ValueError, match=r"running_var must be an array \[3\], got None"):
        F.batch_norm(x, average, None)
    with pytest.raises(ValueError, match=r"running_var must have shape \(3,\), got \(1,\)"):
        F.batch_norm(x, average, np.ones(1), training=True)


def test_batch_norm_refuses_a_batch_of_one():
    with pytest.raises(ValueError, match="more than one value per feature"):
        F.batch_norm(ta.tensor(np.ones((1, 3))), None, None, training=True)


@pytest.mark.parametrize(
    "loss",
    [F.mse_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits, F.kl_div],
)
def test_losses_refuse_shapes_that_would_broadcast(loss):
    with pytest.raises(ValueError, match=r"input has shape \(3, 1\), but target has \(3,\)"):
        loss(ta.tensor(np.ones((3, 1))), np.ones(3))


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (np.array([0, -1]), IndexError, "from 0 to 2, got -1"),
        (np.array([0, 3]), IndexError, "from 0 to 2, got 3"),
        (np.array([0.0, 1.0]), TypeError, "must be integers"),
        (np.array([[0, 1]]), ValueError, r"target must have shape \(2,\)"),
    ],
)
def test_cross_entropy_refuses_bad_targets(target, error, message):
    with pytest.raises(error, match=message):
        F.cross_entropy(ta.tensor(np.ones((2, 3))), target)


def test_reductions_are_named():
    with pytest.raises(ValueError, match='"mean", "sum" or "none", got \'avg\''):
        F.mse_loss(ta.tensor([1.0]), np.ones(1), reduction="avg")


SIGNAL = np.ones((1, 1, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.max_pool1d(SIGNAL, 0), "kernel_size >= 1, got kernel_size=0"),
        (lambda: F.max_pool1d(SIGNAL, 2, 0), "stride >= 1, got stride=0"),
        (lambda: F.max_pool1d(SIGNAL, 2, dilation=0), "dilation >= 1"),
        (lambda: F.avg_pool1d(SIGNAL, 2, padding=-1), "expected padding >= 0"),
        (lambda: F.conv1d(SIGNAL, ta.tensor(SIGNAL), padding=-1), "expected padding >= 0"),
        (
            lambda: F.cross_entropy(ta.tensor(SIGNAL[0]), [1], label_smoothing=2),
            "0 <= label_smoothing <= 1",
        ),
    ],
)
def test_bad_options_are_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (2,), ()])
def test_weights_of_classes_have_one_axis(loss, shape):
    x = ta.tensor(np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"weight must be \[3\], a number for each class"):
        loss(x, np.array([0, 2]), weight=np.ones(shape))
    with pytest.raises(ValueError, match=r"weight must be \[3\]"):
        F.cross_entropy(x, np.full((2, 3), 1 / 3), weight=np.ones(shape))


@needs_numba
def test_a_channel_that_the_compiled_loop_cannot_index_is_refused():
    x = np.broadcast_to(np.float32(0), (1, 1, 2**16, 2**15))  # 4 bytes
    with pytest.raises(ValueError, match="cannot index"):
        F.max_pool2d(x, 2, impl="kernel")


def test_half_precision_is_for_numpy_alone():
    x = np.ones((1, 1, 8), np.float16)
    with pytest.raises(TypeError, match='impl="numpy", which takes every dtype'):
        F.conv1d(x, x[:, :, :3], impl="sums")


def test_whole_numbers_have_no_kernel():
    with pytest.raises(TypeError, match='impl="kernel" takes float32 or float64'):
        F.max_pool1d(ta.tensor(np.arange(8).reshape(1, 1, 8)), 2, impl="kernel")


@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss])
def test_labels_0_and_1_for_one_column_of_scores(loss):
    scores = np.zeros((3, 1), np.float32)
    message = "must be 0, .* one row or class, got 1 at index .1,.. For yes or no, use binary_cross"
    with pytest.raises(IndexError, match=message):
        loss(scores, [0, 1, 0])
    with pytest.raises(IndexError, match=r"from 0 to 1, got 2 at index \(0,\)$"):
        loss(np.zeros((1, 2), np.float32), [2])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.embedding([0], ones(3)), ValueError, r"must be a table \[V, D\], got shape"),
        (lambda: F.embedding([0], ones(3, 2), padding_idx=3), ValueError, "< 3, got padding_idx=3"),
        (lambda: F.one_hot([0, -1]), IndexError, r"integers >= 0, got -1 at index \(1,\)"),
        (lambda: F.normalize(ones(2, 3), p=0), ValueError, "expected 0 < p, got p=0"),
        (lambda: F.softplus(ones(2), beta=0), ValueError, "expected 0 < beta, got beta=0"),
        (lambda: F.pad(ones(3), (-2, -2)), ValueError, "removes more elements than axis 0 of len"),
        (lambda: F.pad([1, 2], (1, 1), value=0.5), ValueError, "cannot be stored .* int64"),
        (lambda: F.pad(np.ones(2, np.uint8), (1, 1), value=-1), ValueError, "-1 cannot .* uint8"),
        (lambda: F.pad(np.ones(2, np.int8), (1, 1), value=300), ValueError, "300 cannot .* int8"),
        (lambda: F.leaky_relu([1.0], "a"), TypeError, "negative_slope must be a number, got 'a'"),
        (lambda: F.elu([1.0], None), TypeError, "alpha must be a number, got None"),
        (lambda: F.lgamma("a"), TypeError, "expected numbers or booleans, got data of type str"),
        (lambda: F.digamma(None), TypeError, "expected numbers or booleans, got None"),
        (lambda: F.softplus([1.0], threshold="a"), TypeError, "threshold must be a number"),
        (lambda: F.normalize(ones(3)), ValueError, r"shape \(3,\) has no axis 1. .* axis=-1"),
        (lambda: F.normalize(ones(2, 2), 3, None), NotImplementedError, "several axes is not"),
        (lambda: F.cosine_similarity(ones(3), ones(3)), ValueError, "has no axis 1"),
        (
            lambda: F.cosine_similarity(ones(3, 2), ones(4, 2)),
            ValueError,
            r"all pairs of rows, pass x1\[:, None\], x2 and axis=-1",
        ),
        (lambda: F.embedding([[0, 1], [2]], ones(3, 2)), ValueError, "ids .* different lengths"),
        (lambda: F.embedding(["a"], ones(3, 2)), TypeError, "got <U1. Encode texts first"),
        (lambda: F.embedding([0.0], ones(3, 2)), TypeError, r"Write np.array\(ids, int\)"),
        (lambda: F.embedding([0], ones(0, 2)), IndexError, "empty, because there are no rows"),
        (lambda: F.multinomial("a"), TypeError, "input must consist of real numbers, got <U1"),
        (lambda: F.multinomial([0.5, 0.5], 3), TypeError, "leave out the number of draws, got 3"),
        (lambda: F.softmax(ones(2, 3), 5), ValueError, r"softmax: x of .*\(2, 3\) has no axis 5"),
        (lambda: F.log_softmax(ones(2, 3), (0, 2)), ValueError, "log_softmax: x .* no axis 2"),
        (lambda: F.logsumexp(ones(2, 3), (1, -1)), ValueError, "must not name an axis twice"),
        (lambda: F.softmax(ones(2, 3), 1.0), TypeError, "axis must be a whole number, a tuple of"),
        (lambda: F.one_hot([0.5]), TypeError, r"Write np.array\(ids, int\)"),
        (lambda: F.layer_norm(ones(2, 3), 3, [1, 1, 1]), TypeError, "weight must be an array, got"),
        (
            lambda: F.batch_norm(ones(2, 3), [0, 0, 0], [1, 1, 1]),
            TypeError,
            r"got list. Write np.array\(running_mean, np.float32\)",
        ),
        (lambda: F.cross_entropy(ones(2, 3), [0, 1], None, "sum"), TypeError, "ignore_index must"),
        (lambda: F.nll_loss(ones(2, 3), [[0], [1, 2]]), ValueError, "target .* different lengths"),
        (
            lambda: F.scaled_dot_product_attention(*3 * [ones(5, 4)], bias=np.ones((5, 5), bool)),
            TypeError,
            "If True means that a query may attend to a key, pass it as mask=",
        ),
        (lambda: F.mse_loss(ones(2, 1), ones(2)), ValueError, r"np.reshape\(target, \(2, 1\)\)"),
        (lambda: F.mse_loss(ones(2), None), TypeError, "got None"),
        (
            lambda: F.binary_cross_entropy(0.5 * ones(3, 2), ones(3, 2), weight=ones(3)),
            ValueError,
            r"For one weight per row, pass weight\[:, None\]",
        ),
        (lambda: F.cross_entropy(ones(2, 3), [1, 3]), IndexError, r"got 3 at index \(1,\). If the"),
        (lambda: F.cross_entropy(ones(2, 3), [1, -1]), IndexError, "pass ignore_index=-1"),
        (lambda: F.cross_entropy(ones(3), [1]), ValueError, "must be a single number, got shape"),
        (
            lambda: F.kl_div(ones(2), [-1.0, 0.5]),
            ValueError,
            r"target >= 0, got -1 at index \(0,\). For logarithms, pass log_target=True",
        ),
        (
            lambda: F.scaled_dot_product_attention(*3 * [ones(2, 3, 5, 4)], np.ones((2, 5)) > 0),
            ValueError,
            r"If axis 0 of mask is the batch, write mask\[:, None, None\]",
        ),
        (
            lambda: F.packed_self_attention(ones(3, 5, 12), 2, np.ones((3, 5, 5), bool)),
            ValueError,
            r"If axis 0 of mask is the batch, write mask\[:, None\]",
        ),
        (
            lambda: F.attention_weights(ones(5, 4), ones(7, 3)),
            ValueError,
            r"attention_weights: .* \(q \(5, 4\), k \(7, 3\)\)$",
        ),
        (
            lambda: F.attention_weights(ones(5, 4), ones(7, 4), scale=np.array(np.nan)),
            ValueError,
            "expected a number as scale",
        ),
        (lambda: F.max_pool2d(ones(1, 3, 3), 2, np.array(2)), ValueError, r"got array\(2\)"),
        (lambda: F.pad(ones(3), (1, 1), value="a"), TypeError, "value must be a number, got 'a'"),
        (
            lambda: F.max_pool1d(np.ones((1, 4), int), 2, padding=1),
            TypeError,
            "padded with -inf, got int64",
        ),
        (
            lambda: F.binary_cross_entropy([0.5, 0.5], [0, 1], weight=ones(3, 2)),
            ValueError,
            r"weight must broadcast to the shape \(2,\)",
        ),
        (
            lambda: F.binary_cross_entropy_with_logits([0.5], [1], pos_weight=ones(3)),
            ValueError,
            "pos_weight must broadcast",
        ),
        (lambda: F.cross_entropy(3.0, 1), ValueError, "input must be .* got a single number"),
        (lambda: F.nll_loss(3.0, 1), ValueError, "input must be .* got a single number"),
        (
            lambda: F.cross_entropy(ones(2, 3), 2 * ones(2, 3)),
            ValueError,
            "probabilities 0 <= target <= 1, got 2",
        ),
        (
            lambda: F.kl_div(0.0, 1.0, reduction="batchmean"),
            ValueError,
            r"needs input \[N, ...\], got a single number",
        ),
        (
            lambda: F.batch_norm(ones(2, 3), [0, 0, 0], [1, 1, 1], training=True),
            TypeError,
            "running_mean must be a floating-point array, .* got list",
        ),
        (
            lambda: F.batch_norm(ones(2, 3), np.zeros(3, int), np.ones(3), training=True),
            TypeError,
            "running_mean must be a floating-point array, .* got int64",
        ),
        (lambda: F.multinomial([[1, 2], [0, 0]]), ValueError, r"row \(1,\) of input has no"),
        (
            lambda: F.multinomial([np.nan, 1]),
            ValueError,
            "got nan at index .0,.. Look for NaN or infinity",
        ),
        (
            lambda: F.attention_weights(ones(2, 3), ones(4, 3), scale=ta.tensor(1.0)),
            TypeError,
            "scale must be a number, got Tensor. Multiply q by it",
        ),
    ],
)
def test_arguments_of_functions_are_checked(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_whole_numbers_and_lists_are_scores_and_probabilities_too():
    target = [[1.0, 0.0], [0.5, 0.5]]
    assert F.cross_entropy(np.zeros((2, 2), int), target).item() == pytest.approx(np.log(2))
    assert F.cross_entropy(np.zeros((2, 2), int), [0, 1]).item() == pytest.approx(np.log(2))


def test_large_weights_of_a_random_choice_do_not_overflow():
    assert set(F.multinomial(np.full((50, 2), 1e308), rng=0)) == {0, 1}
