"""Random options and a whole training run, side by side with PyTorch."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import both, torch
from tinyattn import nn, optim

TF = torch.nn.functional
small = st.integers(1, 3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.tuples(*[small] * 6), st.tuples(*[st.integers(0, 2)] * 3), small, st.booleans())
def test_convolution_with_random_options(sizes, padding, groups, bias):
    k1, k2, s1, s2, d1, d2 = sizes
    rng = np.random.default_rng(0)
    x = rng.normal(size=(padding[2], 2 * groups, 6, 7))  # batches of 0, 1, 2
    w = rng.normal(size=(3 * groups, 2, k1, k2))
    assume(d1 * (k1 - 1) < 6 + 2 * padding[0] and d2 * (k2 - 1) < 7 + 2 * padding[1])
    options = {"stride": (s1, s2), "padding": padding[:2], "dilation": (d1, d2), "groups": groups}
    more = [rng.normal(size=len(w))] if bias else []
    both(lambda *a: F.conv2d(*a, **options), lambda *a: TF.conv2d(*a, **options), x, w, *more)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.tuples(*[small] * 4), st.booleans(), st.booleans())
def test_pooling_with_random_options(sizes, padded, unbatched):
    kernel, stride = sizes[:2], sizes[2:]
    padding = tuple(k // 2 for k in kernel) if padded else 0
    x = np.random.default_rng(0).normal(size=(2, 5, 6) if unbatched else (2, 2, 5, 6))
    for ours, theirs in ((F.max_pool2d, TF.max_pool2d), (F.avg_pool2d, TF.avg_pool2d)):
        both(
            lambda x, f=ours: f(x, kernel, stride, padding),
            lambda x, f=theirs: f(x, kernel, stride, padding),
            x,
        )


def test_convolution_in_float32():
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((2, 3, 6, 6), (4, 3, 3, 3)))
    # sums of 27 and, in the gradient, 72 products: some more rounding errors than one
    both(
        lambda x, w: F.conv2d(x, w, padding=1),
        lambda x, w: TF.conv2d(x, w, padding=1),
        x,
        w,
        tolerance=1e-5,
    )


def network(n, flatten):
    return n.Sequential(
        n.Conv2d(1, 4, 3, padding=1),
        n.ReLU(),
        n.MaxPool2d(2),
        flatten,
        n.Linear(64, 16),
        n.BatchNorm1d(16),
        n.GELU(),
        n.LayerNorm(16),
        n.Linear(16, 5),
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_twenty_steps_of_a_whole_network_as_pytorch(smoothing):
    torch.manual_seed(0)
    theirs = network(torch.nn, torch.nn.Flatten()).double()
    mine = network(nn, nn.Flatten()).astype(np.float64)
    mine.load_state_dict(theirs.state_dict())
    a = optim.AdamW(mine.parameters(), lr=0.01)
    b = torch.optim.AdamW(theirs.parameters(), lr=0.01)
    schedules = optim.CosineLR(a, 20), torch.optim.lr_scheduler.CosineAnnealingLR(b, 20)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, ids = rng.normal(size=(8, 1, 8, 8)), rng.integers(0, 5, 8)
        loss = F.cross_entropy(mine(ta.tensor(x)), ids, label_smoothing=smoothing)
        other = TF.cross_entropy(
            theirs(torch.tensor(x)), torch.tensor(ids), label_smoothing=smoothing
        )
        for step in (a.zero_grad, b.zero_grad, loss.backward, other.backward):
            step()
        norms = (
            optim.clip_grad_norm(mine.parameters(), 1.0),
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0).item(),
        )
        for step in (a.step, b.step, *(s.step for s in schedules)):
            step()
        assert loss.item() == pytest.approx(other.item(), rel=1e-8)
        assert norms[0] == pytest.approx(norms[1], rel=1e-8)
    # a bias in front of a batch norm has a gradient of rounding errors only, which Adam scales up
    state = {n: v.numpy() for n, v in theirs.state_dict().items() if n != "4.bias"}
    found = mine.state_dict()
    for name, value in state.items():
        if name != "5.running_mean":  # it follows that bias
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-8, err_msg=name)


# ---------------------------------------------------------------- losses at the edges

ELEMENTWISE = [F.mse_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits]


@pytest.mark.parametrize("loss", [*ELEMENTWISE, F.binary_cross_entropy])
@pytest.mark.parametrize("target", [np.array([0, 1]), np.array([False, True])])
def test_whole_and_boolean_targets_leave_float32_alone(loss, target):
    x = ta.tensor([0.25, 0.75], requires_grad=True)
    y = loss(x, target)
    y.backward()
    assert y.dtype == x.grad.dtype == np.float32
    assert y.item() == pytest.approx(loss(x, target.astype(np.float32)).item(), rel=1e-6)


@pytest.mark.parametrize("ignore", [-1, 0, 255])
def test_any_number_can_be_ignored(ignore):
    ids = np.array([ignore, 2, 1])
    both(
        lambda x: F.cross_entropy(x, ids, ignore_index=ignore),
        lambda x: TF.cross_entropy(x, torch.tensor(ids), ignore_index=ignore),
        np.random.default_rng(0).normal(size=(3, 3)),
    )


def test_targets_that_are_all_ignored_give_nan_in_the_mean_and_no_gradient():
    x = ta.tensor(np.ones((2, 3)), requires_grad=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = F.cross_entropy(x, np.array([-100, -100]))
        loss.backward()
    assert np.isnan(loss.item())
    assert not x.grad.any()
    assert F.cross_entropy(x, np.array([-100, -100]), reduction="sum").item() == 0


def test_a_class_that_is_masked_out_has_no_gradient():
    x = np.array([[-np.inf, 0.0, 1.0], [2.0, -np.inf, 1.0]])
    both(
        lambda x: F.cross_entropy(x, np.array([1, 0])),
        lambda x: TF.cross_entropy(x, torch.tensor([1, 0])),
        x,
    )


@pytest.mark.parametrize("p", [0.5, np.inf])
def test_normalize_with_other_lengths(p):
    x = np.random.default_rng(0).normal(size=(3, 4)) + 3
    both(lambda x: F.normalize(x, p), lambda x: TF.normalize(x, p), x)


# ---------------------------------------------------------------- schedules over a checkpoint


@pytest.mark.parametrize(
    "make",
    [
        lambda o: optim.CosineLR(o, 20),
        lambda o: optim.WarmupLR(o, 8),
        lambda o: optim.NoamLR(o, 16, 6),
    ],
)
def test_a_schedule_goes_on_where_it_stopped(make):
    def steps(optimizer, schedule, n):
        rates = []
        for _ in range(n):
            rates.append(optimizer.lr)
            schedule.step()
        return rates

    def fresh():
        optimizer = optim.Adam([nn.Parameter(np.ones(2))], lr=0.5)
        return optimizer, make(optimizer)

    whole = steps(*fresh(), 12)
    first, schedule = fresh()
    begun = steps(first, schedule, 5)
    second, again = fresh()
    second.load_state_dict(first.state_dict())
    again.step_count = 5
    assert begun + steps(second, again, 7) == whole
