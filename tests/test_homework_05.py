"""Homework 05 explains the usual mistakes: each wrong answer is refused, in words that help."""

from pathlib import Path

import pytest

from tinyattn.course import execute, project, text

pytest.importorskip("jupytext")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = project.find(ROOT, "hw05")

INVARIANCE = "return np.abs(array(F(X[p])) - array(F(X))).max()"
EQUIVARIANCE = "return np.abs(array(F(X[p])) - array(F(X))[p]).max()"
MASKED = "z = np.where(mask[:, :, None], phi(x), 0)"
COUNT = "np.maximum(mask.sum(axis=1, keepdims=True), 1)"
MEAN = "mean = (np.sum(x, axis=0) - x) / (N - 1)"
CENTRED = "return y - np.mean(y, axis=1, keepdims=True)"

MISTAKES = [  # right, wrong, what the check must say about it
    (INVARIANCE, INVARIANCE.replace("return ", ""), "Is the `return` missing?"),
    (INVARIANCE, INVARIANCE.replace(".max()", ""), "expected one number"),
    (INVARIANCE, "return (array(F(X[p])) - array(F(X))).max()", "largest of the absolute"),
    (INVARIANCE, "return np.abs(array(F(X)) - array(F(X))).max()", "Is F called on the shuffled"),
    (INVARIANCE, INVARIANCE.replace("max()", "sum()"), "not the sum"),
    (EQUIVARIANCE, EQUIVARIANCE.replace("[p]).max", ").max"), "F(X) has to be permuted too"),
    (EQUIVARIANCE, EQUIVARIANCE.replace("(X))[p]", "(X))[np.argsort(p)]"), "inverse permutation"),
    ('"running sum": "neither"', '"running sum": "equivariant"', "disagree about: running sum"),
    ('        "running sum": "neither",\n', "", "no prediction yet for ['running sum']"),
    (MASKED, "z = phi(np.where(mask[:, :, None], x, 0))", "φ(0) is not 0"),
    (MASKED, "z = phi(x)", "padding is summed up too"),
    (MASKED, "z = mask[:, :, None] * phi(x)", "Choose with np.where"),
    (MASKED, MASKED.replace("phi(x)", "phi(array(x))"), "the gradient is lost"),
    ("/ " + "count", "/ x.shape[1]", "padding included"),
    ("/ " + "count", "/ 1", "Your numbers are those of a sum"),
    (COUNT, "mask.sum(axis=1, keepdims=True)", "divided by 0"),
    (MEAN, "mean = np.sum(x, axis=0) / N", "i included"),
    (MEAN, "mean = (np.sum(x, axis=0) - x[0]) / (N - 1)", "left out for everybody"),
    (CENTRED, "return y", "is not taken off"),
    (CENTRED, "return y - np.mean(y)", "each element has its own"),
    (CENTRED, "return y - np.mean(y, axis=0)", "over the features"),
]


def code_with(right, wrong):
    """The setup, the cell with the mistake in it, and the cells up to the next check."""
    cells = [c for c in text.read_source(DOCUMENT).cells if c["cell_type"] == "code"]
    at = next(
        i for i, c in enumerate(cells) if right in c["source"] and "BEGIN SOLUTION" in c["source"]
    )
    cells[at]["source"] = cells[at]["source"].replace(right, wrong, 1)
    return [c for i, c in enumerate(cells) if i <= at + 1]


@pytest.mark.parametrize(("right", "wrong", "says"), MISTAKES, ids=[m[1] for m in MISTAKES])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # 0 / 0 is one of the mistakes
def test_the_check_names_the_mistake(right, wrong, says):
    names = execute.namespace()
    with pytest.raises(execute.CellError) as found:
        for cell in code_with(right, wrong):
            execute.execute(cell, names)
    assert isinstance(found.value.cause, AssertionError)
    assert says in str(found.value.cause)
