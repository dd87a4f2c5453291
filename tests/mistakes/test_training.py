"""Mistakes with the training loop: the error that each must raise."""

import numpy as np
import pytest

import tinyattn.functional as F
from tests.test_training import Line, examples, fit_line, squares
from tinyattn import nn, optim, training


def called(model=None, optimizer=None):
    model = model or Line()
    optimizer = optimizer or optim.SGD([nn.Parameter(1.0)], lr=0.1)
    return training.fit(model, squares, optimizer, examples(), quiet=True)


@pytest.mark.filterwarnings("ignore::tinyattn.check.SlipWarning")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: called(model=Line), TypeError, "model is the class Line. Make an object of it"),
        (lambda: called(optimizer=optim.Adam), TypeError, "optimizer is the class Adam"),
        (lambda: fit_line(schedule=optim.StepLR), TypeError, "schedule is the class StepLR"),
        (lambda: fit_line(schedule=lambda step: 0.1), TypeError, "expected a schedule, got func"),
        (
            lambda: fit_line(valid=examples(), metric="accuracy"),
            TypeError,
            "of .model, x, y., got str. Pass, for example, training.accuracy",
        ),
        (
            lambda: fit_line(train=np.ones((9, 2)), valid=np.ones(9)),
            TypeError,
            "Pass inputs and labels together, train=.x, y.",
        ),
        (
            lambda: fit_line(patience=2),
            ValueError,
            "need held-out data, but valid is None. Pass valid=",
        ),
        (
            lambda: fit_line(metric=squares),
            ValueError,
            "need held-out data, but valid is None. Pass",
        ),
        (
            lambda: fit_line(train=iter([examples()])),
            ValueError,
            "no batch in epoch 2. It is empty, or a generator that is used up",
        ),
        (lambda: fit_line(train=[]), ValueError, "no batch in epoch 1"),
        (lambda: fit_line(train=3), TypeError, "must be arrays .* or batches, got int"),
        (lambda: fit_line(train=(np.ones(3), np.ones(4))), ValueError, "same number of examples"),
        (
            lambda: fit_line(lr=1e12, epochs=50),
            FloatingPointError,
            r"the loss is (nan|inf) in step \d+ \(epoch \d+\)",
        ),
        (lambda: training.evaluate(Line(), squares, []), ValueError, "held_out gave no batch"),
        (lambda: training.evaluate(Line(), squares, 3), TypeError, "^evaluate: held_out must be"),
        (
            lambda: training.evaluate(Line(), squares, np.ones(3), np.ones(3)),
            TypeError,
            r"evaluate: batch_size must be a number, got an array of shape \(3,\). Pass inputs and",
        ),
        (
            lambda: training.evaluate(Line, squares, examples()),
            TypeError,
            "^evaluate: model is the class Line",
        ),
        (
            lambda: training.evaluate(Line(), F.mse_loss, examples()),
            TypeError,
            "^evaluate: f is called as f.model, x, y., but mse_loss takes predictions and targets",
        ),
        (
            lambda: fit_line(valid=examples(), metric=nn.MSELoss),
            TypeError,
            "fit: metric is called as .* f.model.x., y. with f = nn.MSELoss()",
        ),
        (
            lambda: fit_line(train=([1.0], [2.0])),
            TypeError,
            "got a tuple with a list. Write .np.as",
        ),
        (lambda: training.accuracy(np.ones(3), 1, 2), TypeError, "accuracy: model must be a model"),
        (
            lambda: training.accuracy(lambda x: np.ones((2, 3)), 0, np.array([0, -1])),
            ValueError,
            "y must be whole numbers from 0 to 2, .* got -1",
        ),
        (
            lambda: training.accuracy(lambda x: np.ones((2, 3)), 0, np.array([0, 0.5])),
            ValueError,
            "y must be whole numbers from 0 to 2, .* got 0.5",
        ),
        (lambda: fit_line(valid=3), TypeError, "^fit: valid must be arrays .*, got int"),
        (
            lambda: fit_line(valid=iter([examples()])),
            ValueError,
            "^fit: valid gave no batch after epoch 2. It is empty, or a generator",
        ),
        (
            lambda: training.fit_steps(Line(), lambda m: 1.0, 2),
            TypeError,
            r"^fit_steps: loss\(model\) must return a Tensor with a single number, got float",
        ),
        (
            lambda: training.fit_steps(Line(), lambda m: squares(m, *examples()) * np.inf, 2),
            FloatingPointError,
            r"^fit_steps: the loss is inf in step 1\. Look .* too large \(lower it\), a log",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_errors_say_what_to_do(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("loss", "came"),
    [
        (lambda m, x, y: (m(x) - y) ** 2, r"shape \(8,\)"),
        (lambda m, x, y: squares(m, x, y).item(), "float"),
        (lambda m, x, y: None, "None"),
    ],
)
def test_a_loss_that_is_not_one_number(loss, came):
    model = Line()
    with pytest.raises(TypeError, match=f"a single number, got {came}"):
        training.fit(
            model, loss, optim.SGD(model.parameters(), lr=0.1), examples(), batch_size=8, quiet=True
        )


def test_fit_steps_wants_one_number():
    with pytest.raises(TypeError, match="must return a Tensor with a single number"):
        training.fit_steps(nn.Linear(2, 1, rng=0), lambda m: m(np.zeros((3, 2), np.float32)), 2)


def test_accuracy_of_one_column_of_scores_is_refused():
    with pytest.raises(
        ValueError, match="of C >= 2 classes, got shape .* For yes or no, pass metric="
    ):
        training.accuracy(lambda x: x, np.ones((3, 1), np.float32), [1, 0, 1])
    with pytest.raises(ValueError, match=r"np.mean\(\(model\(x\) > 0\) == y\)"):
        training.accuracy(lambda x: x, np.ones((3, 1), np.float32), [[1], [0], [1]])


def test_accuracy_of_no_examples_is_refused():
    for shape in ((0, 3), (2, 0, 3)):
        with pytest.raises(ValueError, match="accuracy: there are no examples, .* Pass at least"):
            training.accuracy(lambda x: x, np.ones(shape), np.zeros(shape[:-1], int))


def test_accuracy_needs_a_class_for_each_example():
    scores = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"classes of shape \(3,\), got shape \(2,\)"):
        training.accuracy(lambda x: x, scores, [1, 0])
    with pytest.raises(ValueError, match=r"got shape \(3, 2\). Write y.argmax\(axis=-1\) for one-"):
        training.accuracy(lambda x: x, scores, np.eye(2)[[1, 0, 1]])


@pytest.mark.filterwarnings("ignore::tinyattn.check.SlipWarning")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fit_line(train=list(examples())), TypeError, "got a list of ndarray. Write"),
        (lambda: fit_line(train=(examples()[0], None)), TypeError, "ndarray. Leave None out$"),
        (lambda: fit_line(train={"x": 1}), TypeError, "batches, got dict"),
        (lambda: called(model=3), TypeError, r"^fit: model must have parameters\(\)"),
        (
            lambda: fit_line(valid=examples(), metric=lambda model, x, y: None),
            TypeError,
            "^fit: the loss or metric .* got None. Did you forget the `return` of your function?",
        ),
        (
            lambda: training.evaluate(Line(), lambda model, x, y: y, examples()),
            TypeError,
            "^evaluate: .* must be a single number, got ndarray of shape .*Take its mean",
        ),
        (lambda: training.evaluate(Line(), 3, examples()), TypeError, "f must be a function"),
        (lambda: training.fit_steps(Line, squares, 2), TypeError, "model is the class Line"),
        (lambda: training.fit_steps(Line(), 3, 2), TypeError, "function of the model alone"),
        (
            lambda: training.fit_steps(Line(), nn.MSELoss(), 2),
            TypeError,
            "function of the model alone, got MSELoss",
        ),
        (
            lambda: training.accuracy(lambda x: x, np.ones((2, 3)), ["a", "b"]),
            TypeError,
            "y must be whole numbers, got <U1",
        ),
        (
            lambda: training.accuracy(lambda x: x, np.ones((2, 3)), [0, 3]),
            ValueError,
            "y must be whole numbers from 0 to 2, .* got 3",
        ),
    ],
)
def test_data_models_and_metrics_of_a_wrong_form(call, error, message):
    with pytest.raises(error, match=message):
        call()
