"""Mistakes with optimizers and schedules: the error that each must raise."""

import math

import numpy as np
import pytest

from tinyattn import nn, optim

BAD = [
    (lambda p: optim.SGD([]), "no parameters"),
    (lambda p: optim.Adam([p, p]), "more than once"),
    (lambda p: optim.SGD([p], lr=-1), "expected 0 <= lr < inf, got lr=-1"),
    (lambda p: optim.Adam([p], betas=(0.9, 1.0)), r"expected 0 <= betas\[1\] < 1"),
    (lambda p: optim.RMSprop([p], alpha=-0.1), "expected 0 <= alpha <= 1, got alpha=-0.1"),
    (lambda p: optim.SGD([p], nesterov=True), "nesterov=True needs momentum"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_options_are_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make(nn.Parameter(np.ones(2)))


def test_names_in_place_of_parameters_are_explained():
    with pytest.raises(TypeError, match=r"Pass model.parameters\(\)"):
        optim.SGD(["weight"])


def parameter():
    return nn.Parameter(np.ones(3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda p: optim.SGD(p), TypeError, "got one Tensor"),
        (lambda p: optim.SGD([{"params": p}]), TypeError, "got one Tensor"),
        (lambda p: optim.SGD([p * 1]), ValueError, "was computed from others"),
        (lambda p: optim.SGD([p], lr=math.nan), ValueError, "expected 0 <= lr < inf, got lr=nan"),
        (lambda p: optim.SGD([p], momentum=-1), ValueError, "expected 0 <= momentum"),
        (lambda p: optim.Adam([p], eps=-1), ValueError, "expected 0 <= eps"),
        (lambda p: optim.WarmupLR(optim.SGD([p]), 0), ValueError, "1 <= "),
        (lambda p: optim.NoamLR(optim.SGD([p]), 16, 0), ValueError, "expected 1 <= warmup"),
        (lambda p: optim.CosineLR(optim.SGD([p]), 0), ValueError, "1 <= "),
    ],
)
def test_what_would_never_train_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(parameter())


def test_a_state_for_fewer_parameters_is_refused():
    saved = optim.Adam([parameter()]).state_dict()
    with pytest.raises(KeyError, match=r"has 1 parameter in the saved state, but 2 here"):
        optim.Adam([parameter(), parameter()]).load_state_dict(saved)
    with pytest.raises(KeyError, match="missing: "):
        optim.Adam([parameter()]).load_state_dict({})
    with pytest.raises(KeyError, match="unexpected: .*x"):
        optim.Adam([parameter()]).load_state_dict(saved | {"x": 1})
    with pytest.raises(KeyError, match="unexpected: 1"):
        optim.Adam([parameter()]).load_state_dict(saved | {1: 1})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([{"lr": 1.0}], 'SGD: group 0 must be a dictionary with the key "params"'),
        ([{"params": [parameter()]}, parameter()], "SGD: group 1 must be a dictionary"),
        ([{"params": parameter()}], "SGD, params of a group: expected a list of Tensors, got one"),
    ],
)
def test_a_wrong_group_is_named(params, message):
    with pytest.raises(TypeError, match=message):
        optim.SGD(params)


def test_a_class_without_a_rule_says_what_is_missing():
    p = parameter()
    p.grad = np.ones(p.shape, p.dtype)
    with pytest.raises(NotImplementedError, match=r"Optimizer has no update\(self, theta, g, "):
        optim.Optimizer([p], lr=1.0).step()
    with pytest.raises(
        NotImplementedError, match=r"Schedule has neither factor\(self, step\) nor rate"
    ):
        optim.Schedule(optim.SGD([p]))


def test_a_parameter_that_got_another_shape_is_described():
    p = parameter()
    p.grad = np.ones(3, p.dtype)
    optimizer = optim.SGD([p], lr=0.1)
    optimizer.step()
    p.data = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"had shape \(3,\), but now its data has shape \(2, 3\)"):
        optimizer.step()
    p.grad = None
    with pytest.raises(ValueError, match="make a new optimizer"):
        optimizer.step()


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW, optim.RMSprop])
def test_an_eps_that_float16_rounds_to_zero(make):
    p = nn.Parameter(np.ones(3, np.float16))
    with pytest.raises(TypeError, match="float16, in which eps=1e-08 is 0.*astype"):
        make([p])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda p: optim.SGD([{"params": [p], "learning_rate": 0.1}]),
            TypeError,
            "group 0 has the option 'learning_rate', which does not exist. The options are lr, mom",
        ),
        (lambda p: optim.SGD([{"params": [p], "nesterov": True}]), ValueError, "needs momentum"),
        (lambda p: optim.Adam([{"params": [p], "betas": 0.9}]), TypeError, "must be two numbers"),
        (
            lambda p: optim.SGD({"params": [p]}),
            TypeError,
            r"got a dictionary d. Write \[d\] for a ",
        ),
        (lambda p: optim.SGD({"w": p}), TypeError, r"dictionary d. Write list\(d.values\(\)\)$"),
        (lambda p: optim.SGD({"w": p.data}), TypeError, r"Write model.parameters\(\)$"),
        (lambda p: optim.SGD([{"params": []}]), ValueError, "there are no parameters to train"),
        (lambda p: optim.clip_grad_norm([3], 1), TypeError, "expected Tensors .* got int"),
        (lambda p: optim.clip_grad_norm(3, 1), TypeError, r"got 3. Pass model.parameters\(\)"),
        (
            lambda p: optim.LambdaLR(optim.SGD([p]), lambda step: None),
            TypeError,
            r"lr_lambda\(0\) must be a number, got None. Did you forget its `return`",
        ),
        (
            lambda p: optim.LambdaLR(optim.SGD([p]), lambda step: -1),
            ValueError,
            "expected 0 <= lr < inf at step 0, got lr=-0.001",
        ),
        (
            lambda p: type("Own", (optim.Schedule,), {"factor": lambda self, step: None})(
                optim.SGD([p])
            ),
            TypeError,
            r"Own: factor\(0\) must be a number, got None. Did you forget its `return`",
        ),
        (
            lambda p: type("Own", (optim.Schedule,), {"rate": lambda self, lr, step: None})(
                optim.SGD([p])
            ),
            TypeError,
            r"Own: rate\(lr, 0\) must be a number, got None. Did you forget its `return`",
        ),
        (
            lambda p: type("Own", (optim.Schedule,), {"factor": lambda self, step: "a"})(
                optim.SGD([p])
            ),
            TypeError,
            r"Own: factor\(0\) must be a number, got a str$",
        ),
        (
            lambda p: type("Own", (optim.Schedule,), {"rate": lambda self, lr, step: np.ones(2)})(
                optim.SGD([p])
            ),
            TypeError,
            r"Own: rate\(lr, 0\) must be a number, got an ndarray$",
        ),
        (lambda p: optim.SGD([p], lr=np.array(0.1)), TypeError, r"got array\(0.1\), an ndarray"),
        (lambda p: optim.clip_grad_norm(1.0, [p] * 9), TypeError, "must be a number, got a list$"),
        (
            lambda p: optim.SGD([[p], [p]]),
            TypeError,
            r"got list. For several models, write \[\*a.parameters\(\), \*b.parameters\(\)\]",
        ),
        (
            lambda p: optim.CosineLR(optim.SGD([p]), 5).factor(0),
            NotImplementedError,
            r"CosineLR has no factor\(step\). Call rate\(lr, step\)",
        ),
    ],
)
def test_options_that_would_have_no_effect_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(parameter())


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_a_gradient_that_is_not_an_array_is_described(make):
    p = parameter()
    optimizer = make([p])
    p.grad = 0
    with pytest.raises(ValueError, match="its gradient is 0. Write an array .* or None"):
        optimizer.step()
    p.grad = np.ones(p.shape) * 1j
    with pytest.raises(TypeError, match="has a gradient of dtype complex128. Write an array of re"):
        optimizer.step()
