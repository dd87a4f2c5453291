"""The script that looks for false alarms sees the trainings, and would see an alarm."""

import warnings

import numpy as np
import pytest

import tinyattn.functional as F
from tests import ROOT
from tests.scripts.false_alarms import STEPS, Watching, alarms_of
from tinyattn import check, course, nn, optim, training
from tinyattn.course import project

X = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
Y = X.sum(axis=1)


def train(loss, steps=7):
    """Train in a loop of its own."""
    model = nn.Linear(3, 1, rng=0)
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(X)).backward()
        optimizer.step()


def wrong(p):
    return np.mean((p - Y) ** 2)


def right(p):
    return F.mse_loss(p[:, 0], Y)


def test_a_loop_of_its_own_is_watched():
    with Watching() as watching:
        with pytest.warns(check.SlipWarning, match=r"\[16, 1\] and \[16\] gives \[16, 16\]"):
            train(wrong)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train(right)
            train(right)
    assert watching.watched["its own loop"] == 3
    with warnings.catch_warnings():  # afterwards, nothing is watched any more
        warnings.simplefilter("error")
        train(wrong)


def test_trainings_of_full_runs_are_shortened(monkeypatch):
    found = []

    def run():
        losses = training.fit_steps(nn.Linear(3, 1, rng=0), lambda m: right(m(X)), 10 * STEPS)
        found.append(losses)
        train(right, steps=10**9)

    monkeypatch.setattr(course, "trained", lambda name, module, train: {"loaded": 1})
    with Watching() as watching:
        assert course.trained("01_any", nn.Linear(1, 1), run) == {"loaded": 1}
    assert watching.watched == {"fit": 0, "fit_steps": 1, "its own loop": 1}
    assert watching.unfinished == ["01_any"]
    assert len(found[0]) == 10 * STEPS and len(set(found[0])) == STEPS


def test_a_homework():
    document = next(d for d in project.homework(ROOT) if d.number == "hw01")
    watching, said, failed = alarms_of(document, ROOT)
    assert (said, failed) == ([], []) and watching.watched["its own loop"] == 2
