"""Optimizers step as PyTorch's do, and schedules follow their formulas."""

import math

import numpy as np
import pytest

import tinyattn as ta
from tests.parity import torch
from tinyattn import nn, optim

SHAPES = [(3, 2), (4,), ()]

OPTIMIZERS = {
    "SGD": lambda o, p: o.SGD(p, lr=0.1),
    "SGD momentum": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.1),
    "SGD Nesterov": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "RMSprop": lambda o, p: o.RMSprop(p),
    "RMSprop options": lambda o, p: o.RMSprop(p, 0.05, 0.9, 1e-3, 0.1),
    "RMSprop centered": lambda o, p: o.RMSprop(p, centered=True, eps=1e-3),
    "RMSprop all": lambda o, p: o.RMSprop(p, 0.05, 0.9, 1e-2, 0.1, 0.7, True),
    "Adam": lambda o, p: o.Adam(p, lr=0.05),
    "Adam options": lambda o, p: o.Adam(p, lr=0.05, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.1),
    "AdamW": lambda o, p: o.AdamW(p, lr=0.05, weight_decay=0.2),
    "groups": lambda o, p: o.AdamW([{"params": p[:1], "lr": 0.5}, {"params": p[1:]}], lr=0.05),
}


def parameters(dtype):
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(dtype) for s in SHAPES]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fifty_steps_as_pytorch(name, dtype):
    mine = [nn.Parameter(a) for a in parameters(dtype)]
    theirs = [torch.nn.Parameter(torch.tensor(a)) for a in parameters(dtype)]
    a, b = OPTIMIZERS[name](optim, mine), OPTIMIZERS[name](torch.optim, theirs)
    rng = np.random.default_rng(1)
    for step in range(50):
        for p, q in zip(mine, theirs, strict=True):
            g = np.asarray(rng.normal(size=p.shape), dtype)
            p.grad, q.grad = (None, None) if step == 3 else (g, torch.tensor(g))
        a.step()
        b.step()
    # the same sums in another order: rounding errors of 50 steps
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    for p, q in zip(mine, theirs, strict=True):
        assert p.dtype == dtype
        np.testing.assert_allclose(p.data, q.detach().numpy(), rtol=tolerance, atol=tolerance)


def test_a_step_between_use_and_backward_is_found():
    w = nn.Parameter(np.ones(3))
    loss = (w * w).sum()
    w.grad = np.ones(3)
    optim.SGD([w], lr=0.1).step()
    with pytest.raises(RuntimeError, match="multiply .*written"):
        loss.backward()


def test_frozen_and_unused_parameters_stay():
    model = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Linear(2, 2, rng=1))
    before = model.state_dict()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    model[1](np.ones((1, 2), np.float32)).sum().backward()
    optimizer.step()
    after = model.state_dict()
    assert (before["0.weight"] == after["0.weight"]).all()
    assert (before["1.weight"] != after["1.weight"]).any()


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clip_grad_norm(max_norm):
    mine = [nn.Parameter(a) for a in parameters("float64")]
    theirs = [torch.nn.Parameter(torch.tensor(a)) for a in parameters("float64")]
    for p, q in zip(mine, theirs, strict=True):
        p.grad, q.grad = p.data * 2, torch.tensor(p.data * 2)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm).item()
    assert optim.clip_grad_norm(mine, max_norm) == pytest.approx(expected, rel=1e-12)
    for p, q in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("size", ["largest", "usual"])
def test_a_large_gradient_keeps_its_direction(dtype, size):
    """Squares of 1e30 overflow in float32, those of 300 in float16."""
    p = nn.Parameter(np.zeros(3, dtype))
    large = {"largest": float(np.finfo(dtype).max) / 4, "usual": 300.0}[size]
    p.grad = np.array([3 * large, 0, -4 * (large / 2)], dtype)
    norm = optim.clip_grad_norm([p], 1.0)
    expected = np.array([3, 0, -2]) / 13**0.5
    assert norm == pytest.approx(13**0.5 * large, rel=1e-3)
    assert p.grad.dtype == dtype
    np.testing.assert_allclose(p.grad, expected, rtol=2e-3 if dtype == np.float16 else 1e-5)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_an_infinite_gradient_is_told(bad):
    p = nn.Parameter(np.zeros(2))
    p.grad = np.array([1.0, bad], np.float32)
    with pytest.warns(UserWarning, match=f"norm of the gradients is {bad}.*detect_anomaly") as said:
        optim.clip_grad_norm([p], 1.0)
    assert said[0].filename == __file__  # the user's line, not one of the library
    np.testing.assert_array_equal(p.grad, [1, bad])


# ---------------------------------------------------------------- schedules


def rates(make, steps=30, lr=0.5):
    optimizer = optim.SGD([nn.Parameter(np.ones(1))], lr=lr)
    schedule, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.lr)
        schedule.step()
    return found


def test_cosine_as_pytorch():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.1)
    expected = []
    for _ in range(20):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    found = rates(lambda o: optim.CosineLR(o, T_max=20, eta_min=0.1), 20)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_warm_up_and_noam_follow_their_formulas():
    assert rates(lambda o: optim.WarmupLR(o, 4), 6) == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]
    found = rates(lambda o: optim.NoamLR(o, d_model=16, warmup=10), 30, lr=1.0)
    expected = [16**-0.5 * min(t**-0.5, t * 10**-1.5) for t in range(1, 31)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert math.isclose(max(found), found[9])


def test_a_second_schedule_starts_from_the_rate_of_the_optimizer():
    """As in PyTorch: not from what the warm-up of the first one has made of it."""
    optimizer = optim.SGD([{"params": [parameter()]}, {"params": [parameter()], "lr": 1.0}], lr=0.1)
    optim.WarmupLR(optimizer, 100)
    assert optimizer.lr == pytest.approx(0.001)
    second = optim.CosineLR(optimizer, 10)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 1.0]
    for _ in range(5):
        second.step()
    np.testing.assert_allclose([g["lr"] for g in optimizer.param_groups], [0.05, 0.5])
    optimizer.lr = 0.4  # the user's own choice is the rate of the next one
    optim.WarmupLR(optimizer, 2)
    assert optimizer.lr == 0.2


def test_a_rate_that_a_schedule_changed_is_resumed():
    """With the schedule made before loading, or after."""
    for first in (True, False):
        before = optim.Adam([parameter()], lr=0.1)
        schedule = optim.CosineLR(before, 10)
        for _ in range(3):
            schedule.step()
        after = optim.Adam([parameter()], lr=0.7)
        again = optim.CosineLR(after, 10) if first else None
        after.load_state_dict(before.state_dict())
        again = again or optim.CosineLR(after, 10)
        again.step_count = 3
        schedule.step()
        again.step()
        assert after.param_groups[0]["initial_lr"] == 0.1
        assert after.lr == before.lr
    saved = optim.Adam([parameter()], lr=0.1).state_dict()  # of an optimizer without a schedule
    after = optim.Adam([parameter()], lr=0.7)
    optim.CosineLR(after, 10)
    after.load_state_dict(saved)
    assert after.lr == 0.1


def test_one_schedule_warms_up_and_falls():
    found = rates(lambda o: optim.WarmupCosineLR(o, 4, 12, eta_min=0.1), 15)
    np.testing.assert_allclose(found[:5], [0.125, 0.25, 0.375, 0.5, 0.5])
    falling = [0.1 + 0.4 * (1 + math.cos(math.pi * t / 8)) / 2 for t in range(8)]
    np.testing.assert_allclose(found[4:12], falling)
    np.testing.assert_allclose(found[12:], 0.1)


def test_the_learning_rate_can_be_set():
    optimizer = optim.Adam([ta.Tensor([1.0], requires_grad=True)])
    optimizer.lr = 0.25
    assert optimizer.lr == 0.25
    assert "lr=0.25" in repr(optimizer)


# ---------------------------------------------------------------- what is refused, and resumed


def parameter():
    return nn.Parameter(np.ones(3))


def test_options_given_as_whole_numbers_resume_as_saved():
    before = optim.SGD([parameter()], lr=1, weight_decay=0.5, momentum=0.9, nesterov=True)
    before.lr = 0.25
    after = optim.SGD([parameter()], lr=1, weight_decay=0, momentum=0)
    after.load_state_dict(before.state_dict())
    options = {k: v for k, v in after.param_groups[0].items() if k != "params"}
    assert options == {k: v for k, v in before.param_groups[0].items() if k != "params"}
    assert after.param_groups[0]["nesterov"] is True


def test_one_tensor_can_be_clipped():
    p = parameter()
    p.grad = np.array([3.0, 0.0, 4.0])
    assert optim.clip_grad_norm(p, 1.0) == 5
    np.testing.assert_allclose(p.grad, [0.6, 0, 0.8], rtol=1e-6)


@pytest.mark.parametrize("make", [optim.SGD, optim.RMSprop, optim.Adam, optim.AdamW])
@pytest.mark.parametrize("size", [3, 300_000])  # the second is large enough for the kernel
def test_a_parameter_that_got_another_shape_is_found(make, size):
    p, q = nn.Parameter(np.ones(size)), nn.Parameter(np.ones(4))
    optimizer = make([p, q], lr=0.1)
    (np.sum(p * p) + np.sum(q * q)).backward()
    optimizer.step()
    before = p.data.copy()
    q.data = np.ones((2, 4))
    with pytest.raises(ValueError, match=r"shape \(4,\), .* \(2, 4\)"):
        optimizer.step()
    np.testing.assert_array_equal(p.data, before)  # nothing was changed
    q.grad = None
    with pytest.raises(ValueError, match="new optimizer"):
        optimizer.step()
    q.data, q.grad = np.ones(4), np.ones((1, 4))
    with pytest.raises(ValueError, match=r"gradient .* \(1, 4\)"):
        optimizer.step()


@pytest.mark.parametrize("make", [optim.SGD, optim.RMSprop, optim.Adam, optim.AdamW])
def test_options_of_numpy_do_not_change_the_dtype(make):
    """A learning rate of np.logspace is an np.float64, which would turn float32 into float64."""
    p = nn.Parameter(np.ones(3, np.float32))
    optimizer = make([p], lr=np.float64(0.1), weight_decay=np.float64(0.1))
    schedule = optim.LambdaLR(optimizer, lambda step: np.float64(0.9) ** step)
    for _ in range(2):
        p.grad = np.ones(3, np.float32)
        optimizer.step()
        schedule.step()
    optimizer.lr = np.float64(0.2)
    p.grad = np.ones(3)  # a gradient written by hand
    optimizer.step()
    assert p.dtype == np.float32
    assert all(getattr(v, "dtype", p.dtype) == p.dtype for v in optimizer.state[0].values())
