"""Mistakes with traces of a computation: the error that each must raise."""

import numpy as np
import pytest

import tinyattn as ta
from tests.trace import examples
from tinyattn.trace import build, jacobian_rows


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        (lambda: ta.trace(3), TypeError, "expected a Tensor or a function, got int"),
        (lambda: ta.trace(0.5), TypeError, "without .item"),
        (
            lambda: ta.trace(ta.tensor([1.0, 2.0], requires_grad=True) * 2),
            ValueError,
            "a single number, got shape \\(2,\\)",
        ),
        (lambda: ta.trace(ta.tensor(1.0)), RuntimeError, "does not depend on anything"),
        (
            lambda: ta.trace(lambda: 3),
            TypeError,
            "returned an int. Return the loss itself, without .item",
        ),
        (lambda: ta.trace(lambda: None), TypeError, "returned None. Did you forget its `return`"),
        (
            lambda: ta.trace(lambda x: ta.tensor(x).sum(), np.arange(3)),
            RuntimeError,
            "argument 0 of the function is an array of int64",
        ),
        (lambda: ta.trace(lambda x: x * x, 3), RuntimeError, "the whole number 3. Pass it as 3.0"),
        (lambda: ta.trace(ta.tensor(1.0), model=3), TypeError, "model must be a Module, got int"),
        (lambda: ta.trace(ta.tensor(1.0), labels=3), TypeError, "a list of texts, got 3"),
        (lambda: ta.trace().save("a.html"), AttributeError, "Write with ta.trace.. as t: before"),
        (
            lambda: examples.perceptron().walk("tanh", "a"),
            TypeError,
            "index must be a whole .* 'a'",
        ),
        (
            lambda: ta.trace(lambda x: np.sum(x[None] * np.ones((1100, 1))), np.ones(1000)),
            ValueError,
            "smaller batch",
        ),
        (lambda: examples.perceptron().walk("nothing"), ValueError, "there is no array 'nothing'"),
        (lambda: examples.perceptron().walk("0.weight", (5, 5)), ValueError, "no element"),
        (lambda: examples.perceptron().walk("0.weight"), ValueError, "an index is needed"),
        (lambda: examples.perceptron().walk("target", (0, 0)), ValueError, "no gradient"),
        (lambda: examples.perceptron().start("target", (0, 0)), ValueError, "was not computed"),
        (
            lambda: examples.perceptron().start("target", (0, 0)),
            ValueError,
            "Choose an array that was computed",
        ),
        (
            lambda: examples.perceptron().start("0.weight", (0, 0)),
            ValueError,
            "Use gradient=True to show its gradient",
        ),
        (lambda: examples.perceptron().start("tanh", (9, 0)), ValueError, "no element"),
    ],
)
def test_what_is_refused(what, error, words):
    with pytest.raises(error, match=words):
        what()


def test_a_page_in_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="trace: a.html cannot .* no folder .*b. Make it"):
        examples.perceptron().save(tmp_path / "b" / "a.html")


def test_a_block_without_a_loss():
    with pytest.raises(RuntimeError, match="holds a single number"), ta.trace():
        np.ones(3)


def test_a_graph_that_was_freed():
    w = ta.tensor([1.0], requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="trace: this graph was freed .* trace it before backwa"):
        ta.trace(loss)


@pytest.mark.parametrize("n", [8, 12])  # all rows are computed, or a sample of them
def test_too_many_derivatives(n, monkeypatch):
    monkeypatch.setattr(build, "MOST_ENTRIES", n**3 - 1)  # a product of two matrices has 2 n³
    computed, answers = [], jacobian_rows._answers

    def counted(asked, elements):
        computed.extend(elements)
        return answers(asked, elements)

    monkeypatch.setattr(jacobian_rows, "_answers", counted)
    a = np.ones((n, n), np.float32)
    with pytest.raises(ValueError, match="room for .* but the first 3 arrays have more"):
        ta.trace(lambda x, y: np.sum(x @ y), a, a)
    assert len(computed) == (n * n if n == 8 else 2 * jacobian_rows.SAMPLE)
