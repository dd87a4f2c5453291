"""check.trains on right models, and on models with one planted fault each."""

import re

import numpy as np
import pytest

import tinyattn.functional as F
from tinyattn import check, graph, models, nn

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 5)).astype(np.float32)
CLASSES, NUMBERS = rng.integers(0, 3, 8), rng.normal(size=(8, 2)).astype(np.float32)
IDS = rng.integers(0, 11, (3, 9))


def mlp(out=3, **options):
    return nn.MLP([5, 32, out], rng=0, **options)


RIGHT = {
    "classes": (lambda: mlp(), (X, CLASSES)),
    "numbers": (lambda: mlp(2), (X, NUMBERS)),
    "norm and dropout": (
        lambda: nn.Sequential(
            nn.Linear(5, 32, rng=0),
            nn.BatchNorm1d(32),
            nn.GELU(),
            nn.Dropout(0.5),
            nn.Linear(32, 3, rng=1),
        ),
        (X, CLASSES),
    ),
    "tokens": (lambda: models.GPT(11, 16, 2, 1, 9, dropout=0.2, rng=0), (IDS[:, :-1], IDS[:, 1:])),
    "channels on axis 1": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 16, 3, padding=1, rng=0), nn.ReLU(), nn.Conv1d(16, 3, 3, padding=1, rng=1)
        ),
        (rng.normal(size=(2, 2, 6)).astype(np.float32), rng.integers(0, 3, (2, 6))),
    ),
    "dead for some": (
        lambda: nn.Sequential(nn.Embedding(11, 8, rng=0), nn.Linear(8, 3, rng=1)),
        (np.arange(5), np.array([0, 1, 2, 0, 1])),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_models_train(name):
    make, batch = RIGHT[name]
    model = make()
    before = model.state_dict()
    report = check.trains(model, batch)
    assert report.expect() is report
    assert repr(report).startswith("trains: ") and "yes" in repr(report), report
    assert report.error < 0.1 and report.compared == model.num_parameters()
    assert all((model.state_dict()[n] == a).all() for n, a in before.items())  # a copy was trained
    assert all(p.grad is None for p in model.parameters())


def test_a_loss_of_its_own():
    ring = graph.Graph(np.arange(8), np.roll(np.arange(8), 1), 8)
    layer = graph.EdgeConv(nn.MLP([10, 32, 3], rng=0))
    check.trains(layer, (X, CLASSES), lambda m, x, y: F.cross_entropy(m(x, ring), y)).expect()


class Two(nn.Module):
    """Two layers, and one way to go wrong."""

    def __init__(self, way):
        self.first, self.second = nn.Linear(5, 16, rng=0), nn.Linear(16, 3, rng=1)
        self.spare = nn.Linear(16, 3, rng=2) if way == "unused" else None
        self.way = way
        if way == "zero":
            self.second.weight.data = np.zeros((3, 16), np.float32)
            self.scale = nn.Parameter(np.zeros(3, np.float32))

    def forward(self, x):
        h = self.first(x)
        if self.way == "cut":
            h = np.asarray(h.data)
        if self.way == "all cut":
            return F.relu(self.second(h)).detach()
        if self.way == "dead":
            h = F.relu(h - 1000)
        if self.way == "mean":
            h = h * 0 + np.mean(h, axis=0)
        y = self.second(np.tanh(h))
        return y * self.scale * 0 if self.way == "zero" else y


FAULTS = {
    "unused": ("spare.bias, spare.weight got no gradient", None),
    "cut": ("first.bias, first.weight got no gradient", None),
    "all cut": ("the loss is connected to no parameter", None),
    "dead": (
        "first.bias, first.weight, second.weight got a gradient of zeros only",
        "the same answer",
    ),
    "zero": ("got a gradient of zeros only", "the same answer"),
    "mean": ("not memorized", "all examples get the same answer"),
}


@pytest.mark.parametrize("way", FAULTS)
def test_a_planted_fault_is_named(way):
    fault, cause = FAULTS[way]
    report = check.trains(Two(way), (X, CLASSES), steps=60)
    assert not report
    assert fault in report.text, report
    if cause:
        assert any(cause in c for c in report.causes), report
    with pytest.raises(AssertionError, match="trains: Two: NO"):
        report.expect()


class Flips(nn.Module):
    """Learns the opposite: the gradient has the wrong sign."""

    def __init__(self):
        self.inner = mlp()

    def forward(self, x):
        y = self.inner(x)
        return y.data * 2 - y  # the value of y, the gradient of -y


class Few(nn.Module):
    def __init__(self):
        self.w = nn.Parameter(np.ones(1, np.float32))

    def forward(self, x):
        return np.tanh(x[:, :2] * self.w)


@pytest.mark.parametrize(
    ("make", "batch", "cause"),
    [
        (Flips, (X, CLASSES), "wrong sign"),
        (Few, (X, 10 * NUMBERS), "falls, but slowly|never fell"),
        (mlp, (np.repeat(X[:1], 8, axis=0), CLASSES), "equal but have different targets"),
        (lambda: nn.Sequential(mlp(2), nn.Sigmoid()), (X, 5 + NUMBERS), "falls, but slowly"),
    ],
)
def test_why_a_batch_is_not_learned(make, batch, cause):
    report = check.trains(make(), batch, steps=60)
    assert not report and "not memorized" in report.text
    assert re.search(cause, report.causes[0]), report


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_not_a_number_is_said():
    report = check.trains(mlp(), (X, CLASSES), lambda m, x, y: np.log(-np.mean(m(x) ** 2)), steps=9)
    assert not report and "the loss became nan in step 1" in report.text


def test_frozen_parameters_are_counted_and_may_stay():
    model = nn.Sequential(mlp(64), nn.ReLU(), nn.Linear(64, 3, rng=1))
    model[0].requires_grad_(False)
    report = check.trains(model, (X, CLASSES), steps=3000)
    assert report, report
    assert "4 frozen" in report.text
    model.requires_grad_(False)
    with pytest.raises(ValueError, match="no parameters"):
        check.trains(model, (X, CLASSES))


def test_a_slip_in_the_loss_is_named_instead_of_a_guess():
    def crossed(model, x, y):
        return np.mean((model(x) - y) ** 2)

    def twice(model, x, y):
        return F.cross_entropy(F.softmax(model(x)), y)

    for loss, out, y, words in (
        (crossed, 1, NUMBERS[:, 0], "subtract of [8, 1] and [8] gives [8, 8]"),
        (twice, 3, CLASSES, "cross_entropy gets probabilities"),
        (lambda m, x, y: F.cross_entropy(m(x), y), 1, 0 * CLASSES, "of one class is always 0"),
    ):
        report = check.trains(mlp(out), (X, y), loss)
        line = loss.__code__.co_firstlineno + (loss.__name__ != "<lambda>")
        assert not report and len(report.causes) == 1, report
        assert report.causes[0].startswith(f"line {line}, `") and words in report.causes[0]
    assert check.trains(mlp(1), (X, NUMBERS[:, :1]), crossed)
    report = check.trains(mlp(1), (X, NUMBERS[:, 0]), crossed)
    assert "`return np.mean((model(x) - y) ** 2)`: subtract of" in str(report)
