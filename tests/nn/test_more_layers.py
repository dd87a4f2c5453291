"""Layers and functions with PyTorch's names that are not in the lectures, beside PyTorch's."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import both, modules, torch
from tinyattn import nn

NORMS = {
    "BatchNorm2d": (lambda n: n.BatchNorm2d(3), (4, 3, 2, 5)),
    "BatchNorm2d options": (lambda n: n.BatchNorm2d(3, 1e-2, 0.3, affine=False), (4, 3, 2, 5)),
    "BatchNorm2d, average": (lambda n: n.BatchNorm2d(3, momentum=None), (1, 3, 2, 5)),
    "GroupNorm": (lambda n: n.GroupNorm(2, 6), (3, 6, 4, 5)),
    "GroupNorm of one": (lambda n: n.GroupNorm(1, 6, 1e-2), (3, 6, 4)),
    "GroupNorm of each": (lambda n: n.GroupNorm(6, 6), (3, 6, 4)),
    "GroupNorm of vectors": (lambda n: n.GroupNorm(2, 6, affine=False), (3, 6)),
    "GroupNorm, empty": (lambda n: n.GroupNorm(2, 6), (0, 6, 4)),
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("training", [True, False])
def test_norms_as_pytorch(name, training):
    make, shape = NORMS[name]
    mine, theirs = make(nn), make(torch.nn)
    rng = np.random.default_rng(0)
    for p in theirs.parameters():
        p.data = torch.tensor(rng.normal(size=p.shape))
    modules(mine.train(training), theirs.train(training), rng.normal(size=shape) + 1)


rng = np.random.default_rng(1)
X, T, CLASSES = rng.normal(size=(4, 3)), rng.uniform(size=(4, 3)), np.array([2, 0, -100, 1])
W = np.array([0.5, 1.0, 2.0])
LOSSES = {
    "MSELoss": (lambda n, a, r: n.MSELoss(reduction=r), T),
    "L1Loss": (lambda n, a, r: n.L1Loss(reduction=r), T),
    "CrossEntropyLoss": (lambda n, a, r: n.CrossEntropyLoss(reduction=r), CLASSES),
    "CrossEntropyLoss weights": (lambda n, a, r: n.CrossEntropyLoss(a(W), reduction=r), CLASSES),
    "CrossEntropyLoss options": (
        lambda n, a, r: n.CrossEntropyLoss(reduction=r, label_smoothing=0.2, ignore_index=1),
        np.array([2, 0, 1, 0]),
    ),
    "BCEWithLogitsLoss": (lambda n, a, r: n.BCEWithLogitsLoss(reduction=r), T),
    "BCEWithLogitsLoss weights": (
        lambda n, a, r: n.BCEWithLogitsLoss(a(W), reduction=r, pos_weight=a(W + 1)),
        T,
    ),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_as_pytorch(name, reduction):
    make, target = LOSSES[name]
    mine, theirs = make(nn, np.asarray, reduction), make(torch.nn, torch.tensor, reduction)
    both(lambda x: mine(x, target), lambda x: theirs(x, torch.tensor(target)), X)
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    assert not list(mine.parameters())
    with pytest.raises(ValueError, match="reduction .*'men'"):
        make(nn, np.asarray, "men")


# ---------------------------------------------------------------- containers


def test_a_dictionary_of_modules():
    def make(n):
        return n.ModuleDict({"mass": n.Linear(3, 1), "kind": n.Linear(3, 2)})

    mine, theirs = make(nn), make(torch.nn)
    mine.load_state_dict(theirs.state_dict())
    assert list(mine) == list(mine.keys()) == ["mass", "kind"] and len(mine) == 2
    assert "mass" in mine and "more" not in mine and "training" not in mine
    assert [n for n, _ in mine.items()] == ["mass", "kind"]
    assert list(mine.values())[1] is mine["kind"]
    mine["more"] = nn.Tanh()
    mine.update({"mass": nn.Linear(3, 7, rng=0)})
    assert list(mine) == ["mass", "kind", "more"] and mine["mass"].out_features == 7
    assert isinstance(mine.pop("more"), nn.Tanh) and "more" not in mine
    del mine["kind"]
    assert list(mine.state_dict()) == ["mass.weight", "mass.bias"]
    mine.train(False)
    assert not mine["mass"].training and list(mine) == ["mass"]
    mine.clear()
    assert len(mine) == 0 == len(nn.ModuleDict())
    assert list(nn.ModuleDict([("a", nn.ReLU())])) == ["a"]


def test_identity_takes_anything():
    x = ta.tensor([1.0, 2.0])
    assert nn.Identity(3, unused=True)(x) is x


def test_apply_visits_inner_modules_first():
    def make(n):
        return n.Sequential(n.Linear(2, 2), n.Sequential(n.ReLU(), n.Linear(2, 1)))

    def names(module):
        seen = []
        assert module.apply(lambda m: seen.append(type(m).__name__)) is module
        return seen

    assert names(make(nn)) == names(make(torch.nn))
    model = make(nn).apply(lambda m: nn.init.zeros_(m.bias) if isinstance(m, nn.Linear) else None)
    assert not model[0].bias.data.any() and not model[1][1].bias.data.any()


# ---------------------------------------------------------------- initial values

FANS = {(40, 30): (30, 40), (20, 10, 5): (50, 100), (8, 4, 5, 5): (100, 200)}


@pytest.mark.parametrize("shape", FANS)
def test_initial_values_have_the_spread_of_the_formulas(shape):
    into, out = FANS[shape]
    for f, options, std, bound in [
        (nn.init.xavier_uniform_, {"gain": 2.0}, 2 * (2 / (into + out)) ** 0.5, 3**0.5),
        (nn.init.xavier_normal_, {}, (2 / (into + out)) ** 0.5, None),
        (nn.init.kaiming_uniform_, {"nonlinearity": "relu"}, (2 / into) ** 0.5, 3**0.5),
        (nn.init.kaiming_uniform_, {"a": 5**0.5}, (1 / 3 / into) ** 0.5, 3**0.5),
        (nn.init.kaiming_normal_, {"mode": "fan_out"}, (2 / out) ** 0.5, None),
        (nn.init.normal_, {"std": 0.3}, 0.3, None),
        (nn.init.uniform_, {"a": -0.5, "b": 0.5}, 1 / 12**0.5, 3**0.5),
    ]:
        p = nn.Parameter(np.zeros(shape, np.float32))
        assert f(p, rng=0, **options) is p and p.dtype == np.float32 and p.requires_grad
        # of 1,000 numbers the spread is known to a few percent
        assert p.data.std() == pytest.approx(std, rel=0.1), f.__name__
        assert abs(p.data.mean()) < 0.15 * std, f.__name__
        if bound is not None:
            assert 0.98 * bound * std < np.abs(p.data).max() <= 1.001 * bound * std, f.__name__
        same = f(nn.Parameter(np.zeros(shape, np.float32)), rng=0, **options)
        assert (same.data == p.data).all()


def test_initial_values_without_chance():
    p = nn.Parameter(np.zeros((2, 3)))
    assert (nn.init.ones_(p).data == 1).all() and (nn.init.zeros_(p).data == 0).all()
    assert (nn.init.constant_(p, 2.5).data == 2.5).all()
    assert (nn.init.eye_(p).data == np.eye(2, 3)).all()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (6, 2, 2)])
def test_orthogonal(shape):
    q = nn.init.orthogonal_(nn.Parameter(np.zeros(shape)), gain=2.0, rng=0).data
    q = q.reshape(len(q), -1)
    product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(product, 4 * np.eye(min(q.shape)), atol=1e-12)


def test_truncated_normal():
    p = nn.init.trunc_normal_(nn.Parameter(np.zeros(5000)), 1.0, 2.0, 0.0, 3.0, rng=0)
    assert (
        0 <= p.data.min() and p.data.max() <= 3 and p.data.mean() == pytest.approx(1.43, abs=0.03)
    )


def test_gains_as_pytorch():
    for name in (*nn.init.GAINS, "leaky_relu"):
        assert nn.init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    expected = torch.nn.init.calculate_gain("leaky_relu", 0.3)
    assert nn.init.calculate_gain("leaky_relu", 0.3) == pytest.approx(expected)


# ---------------------------------------------------------------- log Gamma

PLACES = np.concatenate(
    [np.linspace(-8.3, 40, 500), [1.0, 2.0, 1 + 1e-9, 2 - 1e-9, 1e-300, 0.5, 1e10, 1e300]]
)


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_log_gamma_as_pytorch(name):
    ours, theirs = getattr(F, name), getattr(torch, name)
    inside = PLACES[np.abs(PLACES) < 1e4]
    both(ours, theirs, inside[inside > 1e-3], tolerance=1e-9)  # PyTorch's trigamma has 9 digits
    expected = theirs(torch.tensor(PLACES)).numpy()
    found = ours(PLACES).data
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    single = ours(PLACES[:-1].astype(np.float32)).data
    expected = theirs(torch.tensor(PLACES[:-1].astype(np.float32)).double()).numpy()
    assert single.dtype == np.float32
    near = np.abs(expected) < 1e30
    np.testing.assert_allclose(single[near], expected[near], rtol=3e-5, atol=3e-5)


def test_log_gamma_at_the_ends():
    x = np.array([0.0, -1.0, -2.0, np.inf, -np.inf, np.nan])
    found, expected = F.lgamma(x).data, torch.lgamma(torch.tensor(x)).numpy()
    np.testing.assert_array_equal(found, expected)
    assert F.lgamma(np.array([1, 2, 3, 4])).data == pytest.approx(np.log([1, 1, 2, 6]))


def test_log_gamma_near_its_zeros_keeps_its_digits():
    t = np.array([1e-3, 1e-6, -1e-9])
    expected = [torch.lgamma(torch.tensor(c + t)).numpy() for c in (1, 2)]
    np.testing.assert_allclose(F.lgamma(1 + t).data, expected[0], rtol=1e-13)
    np.testing.assert_allclose(F.lgamma(2 + t).data, expected[1], rtol=1e-13)
