"""The training loop: it learns, stops, restores, and is seeded."""

import re

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import data, nn, optim, progress, training
from tinyattn import functional as F


class Line(nn.Module):
    """y = w x, with one weight."""

    def __init__(self, w=0.0):
        self.w = nn.Parameter(w)

    def forward(self, x):
        return self.w * x


def squares(model, x, y):
    return ((model(x) - y) ** 2).mean()


def examples(n=40, slope=3.0, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n).astype(np.float32)
    return x, (slope * x + noise * rng.standard_normal(n)).astype(np.float32)


def digit_model(seed=0):
    rng = np.random.default_rng(seed)
    return nn.Sequential(nn.Linear(64, 32, rng=rng), nn.ReLU(), nn.Linear(32, 10, rng=rng))


def read_loss(model, x, y):
    return F.cross_entropy(model(x), y)


def fit_line(model=None, lr=0.1, train=None, valid=None, **options):
    model = model or Line()
    train = examples() if train is None else train
    options = {"quiet": True, "rng": 0, "epochs": 5, "batch_size": 8, **options}
    optimizer = optim.SGD(model.parameters(), lr=lr)
    return model, training.fit(model, squares, optimizer, train, valid, **options)


# ---------------------------------------------------------------- it learns


def test_a_line_is_found():
    model, history = fit_line(epochs=20)
    assert model.w.item() == pytest.approx(3, abs=1e-3)  # the noiseless slope
    assert len(history.losses) == 20
    assert len(history.steps) == 20 * 5
    assert history.losses[-1] < history.losses[0]


def test_digits_are_read():
    images, labels = data.digits()
    train, held_out = data.split(images.reshape(-1, 64), labels, rng=0)
    model = digit_model()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    history = training.fit(
        model,
        read_loss,
        optimizer,
        train,
        held_out,
        epochs=8,
        rng=0,
        metric=training.accuracy,
        quiet=True,
    )
    assert history.metric[-1] > 0.9
    assert len(history.valid) == len(history.metric) == 8


def test_the_same_seed_gives_the_same_bits():
    first, second = [
        fit_line(train=examples(noise=1.0), rng=rng)[1].steps
        for rng in (5, np.random.default_rng(5))
    ]
    assert first == second
    assert first != fit_line(train=examples(noise=1.0), rng=6)[1].steps


def test_the_loop_is_the_one_a_student_would_write():
    x, y = examples(noise=1.0)
    w, steps = 0.0, []
    for a, b in data.batches(x, y, batch_size=7, rng=3):
        steps.append(float(np.mean((w * a - b) ** 2)))
        w -= 0.1 * float(np.mean(2 * (w * a - b) * a))
    model, history = fit_line(train=(x, y), rng=3, epochs=1, batch_size=7)
    np.testing.assert_allclose(history.steps, steps, rtol=1e-5)  # float32 against float64
    assert model.w.item() == pytest.approx(w, rel=1e-5)


def test_the_epoch_loss_weighs_a_short_last_batch_by_its_length():
    x, y = np.array([1.0, 1.0, 1.0], np.float32), np.array([0.0, 0.0, 3.0], np.float32)
    _, history = fit_line(train=(x, y), lr=0.0, epochs=1, batch_size=2)
    assert history.losses[0] == pytest.approx(3)  # the mean of 0, 0 and 9


def test_any_object_with_parameters_and_any_batches_will_do():
    class Own:
        def __init__(self):
            self.w = ta.tensor(0.0, requires_grad=True)

        def parameters(self):
            return [self.w]

        def __call__(self, x):
            return self.w * x

    model, (x, y) = Own(), examples()
    batches = [(x[:20], y[:20]), (x[20:], y[20:])]
    history = training.fit(
        model,
        squares,
        optim.SGD(model.parameters(), lr=0.3),
        batches,
        batches,
        epochs=15,
        clip=100.0,
        quiet=True,
    )
    assert model.w.item() == pytest.approx(3, abs=1e-3)
    assert history.valid[-1] < 1e-5


def test_one_array_is_a_batch_of_one_thing():
    model = Line()
    x = np.ones(8, np.float32)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    history = training.fit(
        model, lambda m, x: ((m(x) - 1) ** 2).mean(), optimizer, x, epochs=2, quiet=True
    )
    assert len(history.losses) == 2


# ---------------------------------------------------------------- options


def test_clip_limits_every_step():
    model, history = fit_line(clip=0.5, lr=1.0, epochs=1, batch_size=40)
    assert len(history.steps) == 1
    assert abs(model.w.item()) == pytest.approx(0.5, rel=1e-4)  # clip / (norm + 1e-6)


def test_the_schedule_steps_after_every_step_of_the_optimizer():
    model = Line()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    schedule = optim.CosineLR(optimizer, T_max=10)
    training.fit(
        model,
        squares,
        optimizer,
        examples(),
        epochs=1,
        batch_size=8,
        schedule=schedule,
        quiet=True,
        rng=0,
    )
    assert optimizer.lr == pytest.approx(0.5)  # five steps: half way down


def drifting(model, best=4):
    """A held-out loss that falls for `best` epochs and rises afterwards."""
    seen = []

    def loss(m, *batch):
        if m.training:
            return squares(m, *batch)
        seen.append(float(m.w.item()))
        return ta.tensor(float(abs(len(seen) - best) + 1))

    return loss, seen


def test_patience_stops_and_restores_the_best_weights():
    model = Line()
    loss, seen = drifting(model)
    one_batch = examples(8), examples(8)
    history = training.fit(
        model,
        loss,
        optim.SGD(model.parameters(), lr=0.05),
        *one_batch,
        epochs=50,
        patience=3,
        quiet=True,
        rng=0,
    )
    assert history.best == 4
    assert history.stopped_early
    assert len(history.losses) == len(history.valid) == 4 + 3
    assert model.w.item() == seen[3]
    assert seen[3] != seen[-1]


def test_without_an_early_stop_the_best_weights_come_back_all_the_same():
    model = Line()
    loss, seen = drifting(model)
    history = training.fit(
        model,
        loss,
        optim.SGD(model.parameters(), lr=0.05),
        examples(8),
        examples(8),
        epochs=6,
        patience=10,
        quiet=True,
    )
    assert not history.stopped_early
    assert history.best == 4
    assert model.w.item() == seen[3]


def test_without_patience_the_last_weights_stay():
    model = Line()
    loss, seen = drifting(model)
    history = training.fit(
        model,
        loss,
        optim.SGD(model.parameters(), lr=0.05),
        examples(8),
        examples(8),
        epochs=6,
        quiet=True,
    )
    assert history.best is None
    assert model.w.item() == seen[-1]


def test_modes_follow_training_and_measuring():
    class Watched(Line):
        def forward(self, x):
            modes.append(self.training)
            return super().forward(x)

    modes, model = [], Watched()
    fit_line(model, train=examples(8), valid=examples(8), epochs=2)
    assert modes == [True, False, True, False]
    assert model.training
    model.eval()
    training.evaluate(model, squares, examples(8))
    assert not model.training


# ---------------------------------------------------------------- measuring


def test_evaluate_is_the_mean_over_examples_and_records_nothing():
    def loss(model, x, y):
        value = squares(model, x, y)
        assert not value.requires_grad
        return value

    x, y = examples(7, noise=1.0)
    found = training.evaluate(Line(1.0), loss, (x, y), batch_size=3)
    assert found == pytest.approx(float(np.mean((x - y) ** 2)), rel=1e-6)


def test_evaluate_goes_back_to_training_after_an_error():
    model = Line()
    with pytest.raises(ZeroDivisionError):
        training.evaluate(model, lambda m, x, y: 1 / 0, examples())
    assert model.training


def test_accuracy():
    scores = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    assert training.accuracy(lambda x: ta.tensor(x), scores, [1, 0, 0]) == pytest.approx(2 / 3)


# ---------------------------------------------------------------- what is said


def test_one_line_stays_and_it_is_the_same_in_every_run(capsys):
    lines = []
    for _ in range(2):
        fit_line(valid=examples(8, seed=1), quiet=False, label="slope", metric=squares)
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1]
    assert re.fullmatch(
        r"slope: 5 of 5 epochs, loss [\d.e-]+, held-out loss [\d.e-]+, squares [\d.]+\n", lines[0]
    )
    fit_line(quiet=True)
    assert capsys.readouterr().out == ""


def test_the_line_says_when_it_stopped_early(capsys):
    model = Line()
    loss, _ = drifting(model)
    history = training.fit(
        model,
        loss,
        optim.SGD(model.parameters(), lr=0.05),
        examples(8),
        examples(8),
        epochs=50,
        patience=2,
        rng=0,
    )
    out = capsys.readouterr().out
    assert out.startswith("training: 6 of 50 epochs (stopped early, back to epoch 4), loss ")
    assert "held-out loss 1" in out  # of the weights that were restored
    assert repr(history).startswith("History(6 epochs (stopped early, back to epoch 4), loss ")


def test_the_line_moves_on_a_screen(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(progress, "REDRAW", 0)
    fit_line(quiet=False, epochs=1)
    shown = capsys.readouterr()
    assert "training: epoch 1 of 1, batch 5, loss" in shown.err
    assert shown.err.endswith("\r\x1b[K")
    assert shown.out.startswith("training: 1 of 1 epoch,")


def test_a_loss_that_is_not_finite_leaves_the_weights_as_they_were():
    model = Line(2.0)
    with pytest.raises(FloatingPointError):
        fit_line(model, train=(np.array([np.nan], np.float32), np.zeros(1, np.float32)))
    assert model.w.item() == 2.0


def test_fit_steps_learns_and_ends_with_a_step_of_nothing():
    rng = np.random.default_rng(0)
    model = nn.Linear(2, 1, rng=0)

    def loss(model):
        x = rng.normal(size=(16, 2)).astype(np.float32)
        return np.mean((model(x) - x @ np.float32([[1], [-2]])) ** 2)

    losses = training.fit_steps(model, loss, 300, lr=0.05, warmup=10)
    assert len(losses) == 300 and losses[-1] < 1e-4 < losses[0]
    assert model.weight.data == pytest.approx(np.array([[1, -2]]), abs=0.02)


def test_evaluate_restores_the_mode_of_each_part():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5))
    model[0].eval()  # frozen
    seen = []
    training.evaluate(model, lambda m, x: seen.append(m[1].training) or 1.0, np.ones((4, 2)))
    assert seen == [False]
    assert [m.training for m in model] == [False, True] and model.training


def test_evaluate_switches_a_model_that_is_not_a_module():
    modes = []

    class Wrapped:
        def eval(self):
            modes.append("eval")

        def train(self):
            modes.append("train")

    training.evaluate(Wrapped(), lambda m, x: 1.0, np.ones((4, 2)))
    assert modes == ["eval", "train"]
