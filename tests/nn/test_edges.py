"""What used to go wrong without a word: in functions, modules, optimizers and weight files."""

import json
import math
import os

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import nn, optim
from tinyattn.io import load_checkpoint, save_checkpoint

# ---------------------------------------------------------------- functions


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


def test_a_linear_function_of_nothing_is_its_bias():
    bias = np.array([1.0, 2.0], np.float32)
    y = F.linear(np.ones((3, 4, 0), np.float32), np.ones((2, 0), np.float32), bias)
    np.testing.assert_array_equal(y.data, np.broadcast_to(bias, (3, 4, 2)))


X = np.ones((1, 1, 5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.max_pool1d(X, 0), "start at 1"),
        (lambda: F.max_pool1d(X, 2, 0), "start at 1"),
        (lambda: F.max_pool1d(X, 2, dilation=0), "start at 1"),
        (lambda: F.avg_pool1d(X, 2, padding=-1), "must not be negative"),
        (lambda: F.conv1d(X, ta.tensor(X), padding=-1), "must not be negative"),
        (lambda: F.cross_entropy(ta.tensor(X[0]), [1], label_smoothing=2), "is from 0 to 1"),
    ],
)
def test_bad_options_are_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---------------------------------------------------------------- modules


@pytest.mark.parametrize("container", [[], {}, [[]]])
def test_a_container_that_is_filled_later_is_refused_too(container):
    model = nn.Module()
    model.parts = container
    part = nn.Linear(1, 1)
    if isinstance(container, dict):
        container["a"] = part
    else:
        (container[0] if container else container).append(part)
    for use in (model.parameters, model.state_dict, model.train):
        with pytest.raises(TypeError, match="would not be trained"):
            list(use())


def test_the_message_of_a_failed_load_has_lines():
    with pytest.raises(KeyError) as error:
        nn.Linear(2, 1).load_state_dict({})
    assert str(error.value).splitlines()[1:] == ["  missing: weight (1, 2)", "  missing: bias (1,)"]


def test_the_rows_of_a_summary_add_up_with_frozen_layers():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    summary = model.summary()
    assert [n for _, _, n in summary.rows] == [0, 6, 3]
    assert summary.total == 9


# ---------------------------------------------------------------- optimizers


def parameter():
    return nn.Parameter(np.ones(3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: optim.SGD(p), TypeError, "got one Tensor"),
        (lambda p: optim.SGD([{"params": p}]), TypeError, "got one Tensor"),
        (lambda p: optim.SGD([p * 1]), ValueError, "was computed from others"),
        (lambda p: optim.SGD([p], lr=math.nan), ValueError, "lr must not be negative"),
        (lambda p: optim.SGD([p], momentum=-1), ValueError, "momentum must not be"),
        (lambda p: optim.Adam([p], eps=-1), ValueError, "eps must not be negative"),
        (lambda p: optim.WarmupLR(optim.SGD([p]), 0), ValueError, "at least 1 step"),
        (lambda p: optim.NoamLR(optim.SGD([p]), 16, 0), ValueError, "at least 1 step"),
        (lambda p: optim.CosineLR(optim.SGD([p]), 0), ValueError, "at least 1 step"),
    ],
)
def test_what_would_never_train_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(parameter())


def test_options_given_as_whole_numbers_resume_as_saved():
    before = optim.SGD([parameter()], lr=1, weight_decay=0.5, momentum=0.9, nesterov=True)
    before.lr = 0.25
    after = optim.SGD([parameter()], lr=1, weight_decay=0, momentum=0)
    after.load_state_dict(before.state_dict())
    options = {k: v for k, v in after.groups[0].items() if k != "params"}
    assert options == {k: v for k, v in before.groups[0].items() if k != "params"}
    assert after.groups[0]["nesterov"] is True


def test_a_state_for_fewer_parameters_is_refused():
    saved = optim.Adam([parameter()]).state_dict()
    with pytest.raises(KeyError, match="1 parameters there, 2 here"):
        optim.Adam([parameter(), parameter()]).load_state_dict(saved)
    with pytest.raises(KeyError, match="is missing"):
        optim.Adam([parameter()]).load_state_dict({})
    with pytest.raises(KeyError, match="x has no place"):
        optim.Adam([parameter()]).load_state_dict(saved | {"x": 1})


def test_one_tensor_can_be_clipped():
    p = parameter()
    p.grad = np.array([3.0, 0.0, 4.0])
    assert optim.clip_grad_norm(p, 1.0) == 5
    np.testing.assert_allclose(p.grad, [0.6, 0, 0.8], rtol=1e-6)


# ---------------------------------------------------------------- files


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_saved_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    ta.save(tmp_path / "weights", {"x": np.ones(1)})
    modes = [(tmp_path / n).stat().st_mode for n in ("plain", "weights")]
    assert modes[0] == modes[1]


GOOD = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "header",
    [
        {"__metadata__": {"a": 1}, "x": GOOD},
        {"__metadata__": [1], "x": GOOD},
        {"x": GOOD | {"dtype": ["F32"]}},
        {"x": GOOD | {"shape": [True]}},
        {"x": GOOD | {"data_offsets": [False, 4]}},
        {"x": GOOD | {"shape": [1] * 70}},
        {"x": GOOD | {"shape": [0, 2**70], "data_offsets": [0, 0]}},
        "[" * 100_000,
    ],
)
def test_every_broken_header_gives_the_same_error(tmp_path, header):
    text = header if isinstance(header, str) else json.dumps(header)
    raw = b"" if "0, 0]" in text else b"0000"
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text.encode() + raw)
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        ta.load(tmp_path / "a")


def test_a_single_bfloat16_is_an_array(tmp_path):
    text = json.dumps({"x": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text + b"\x80\x3f")
    x = ta.load(tmp_path / "a")["x"]
    assert isinstance(x, np.ndarray)
    assert x.tolist() == 1.0


def test_names_are_strings(tmp_path):
    with pytest.raises(TypeError, match="names are strings, got 1"):
        ta.save(tmp_path / "a", {1: np.ones(1)})


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_generators_of_every_kind_resume(tmp_path, kind):
    model = nn.Linear(2, 1, rng=0)
    optimizer = optim.Adam(model.parameters())
    rng = np.random.Generator(getattr(np.random, kind)(0))
    rng.random(7)
    save_checkpoint(tmp_path / "c", model, optimizer, rng=rng)
    expected = rng.random(3).tolist()
    again = np.random.Generator(getattr(np.random, kind)(1))
    load_checkpoint(tmp_path / "c", model, optimizer, again)
    assert again.random(3).tolist() == expected


def test_a_generator_of_another_kind_changes_nothing(tmp_path):
    model = nn.Linear(2, 1, rng=0)
    optimizer = optim.Adam(model.parameters())
    save_checkpoint(tmp_path / "c", model, optimizer, rng=np.random.default_rng(0))
    model.weight.data = model.weight.data + 1
    before = model.weight.data
    other = np.random.Generator(np.random.MT19937(0))
    with pytest.raises(ValueError, match="of kind PCG64, got MT19937"):
        load_checkpoint(tmp_path / "c", model, optimizer, other)
    assert model.weight.data is before


def test_a_foreign_file_is_no_checkpoint(tmp_path):
    model = nn.Linear(2, 1, rng=0)
    ta.save(tmp_path / "c", {"x": np.ones(1)}, {"step": "3"})
    with pytest.raises(ValueError, match="is no checkpoint, it holds 'x'"):
        load_checkpoint(tmp_path / "c", model, optim.Adam(model.parameters()))
