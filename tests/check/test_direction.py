"""A loss that falls while the error grows is named, and a sign that is right is not."""

import numpy as np
import pytest

import tinyattn.functional as F
from tests.check.slips import CLASS, X, error_of, linear, only, slips
from tinyattn import nn


def picked(model):
    return F.log_softmax(model(X))[np.arange(16), CLASS]


ONE_HOT = np.eye(2, dtype=np.float32)[CLASS]
TURNED = {
    "minus": lambda m: -error_of(m),
    "times -1": lambda m: error_of(m) * -1,
    "subtracted": lambda m: 1 - 0.5 * error_of(m),
    "minus a weighted one": lambda m: -F.cross_entropy(m(X), CLASS, weight=[1.0, 2.0]),
    "by hand": lambda m: -np.mean((m(X) - ONE_HOT) ** 2),
    "absolute": lambda m: -np.abs(ONE_HOT - m(X)).sum(axis=1).mean(),
    "a minus is missing": lambda m: picked(m).mean(),
    "of probabilities": lambda m: np.log(F.softmax(m(X)))[np.arange(16), CLASS].mean(),
    "probabilities of labels": lambda m: np.log(F.softmax(m(X))[np.arange(16), CLASS]).mean(),
    "with one-hot labels": lambda m: np.sum(ONE_HOT * np.log(F.softmax(m(X)) + 1e-9)) / 16,
    "of two classes": lambda m: np.mean(
        ONE_HOT * np.log(F.sigmoid(m(X))) + (1 - ONE_HOT) * np.log(1 - F.sigmoid(m(X)))
    ),
    "two errors": lambda m: -error_of(m) - F.mse_loss(m(X), ONE_HOT),
}


@pytest.mark.parametrize("name", TURNED)
def test_a_loss_with_the_wrong_sign(name):
    model = linear(2)
    only(slips(model, lambda: TURNED[name](model)), "so the model learns to be wrong")


def test_signs_that_are_right():
    model = linear(2)
    reward = np.random.default_rng(0).normal(size=16).astype("f")
    for loss in (
        lambda: -picked(model).mean(),
        lambda: -np.mean(reward * picked(model)),  # a policy gradient
        lambda: -np.sum(ONE_HOT * F.log_softmax(model(X))) / 16,
        lambda: -np.mean(model(X) ** 2) + np.mean(model(X) ** 4),  # a variance that should grow
        lambda: error_of(model) - 0.1 * F.mse_loss(model(X), ONE_HOT),  # one of two is subtracted
        lambda: error_of(model) + np.sum(F.softmax(model(X)) * F.log_softmax(model(X))) / 16,
        lambda: np.log(1 - F.softmax(model(X))[np.arange(16), CLASS]).mean(),
        lambda: np.log(1 - F.sigmoid(model(X))).mean(),
        lambda: -F.cosine_similarity(model(X), ONE_HOT).mean(),
    ):
        assert slips(model, loss) == []


def test_an_adversary_makes_the_error_of_another_network_larger():
    judge, model = nn.Linear(2, 2, rng=1), linear(2)

    def loss():
        return -F.cross_entropy(judge(model(X)), CLASS)

    assert slips(model, loss) == []
    both = nn.ModuleList([model, judge])
    only(slips(both, loss), "so the model learns to be wrong")
