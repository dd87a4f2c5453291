"""Homework 02 explains the usual mistakes: each wrong answer is refused, in words that help."""

from pathlib import Path

import pytest

from tinyattn.course import execute, project, text

pytest.importorskip("jupytext")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = project.find(ROOT, "hw02")

SCORE = 'return np.einsum("k,brk->br", v, np.tanh(asked[:, None] + offered))'
LARGE = "large = np.exp(e - np.max(e, axis=1, keepdims=True))"
SHARE = "return large / np.sum(large, axis=1, keepdims=True)"
LOOK = 'return np.einsum("br,brd->bd", a, z), a'
SEEN = "seen = np.sum(np.where(keep[:, :, None], a, 0), axis=1)"
PENALTY = "return np.mean((1 - seen) ** 2)"
NAMED = "n, t = np.nonzero(cells >= 0)"
PICKED = "return a[n, t, cells[n, t]].mean()"

MISTAKES = [  # right, wrong, what the check must say about it
    (SCORE, SCORE.replace("return ", ""), "Is the `return` missing?"),
    (SCORE, SCORE.replace("asked[:, None]", "asked"), "give the first an axis for the regions"),
    (SCORE, SCORE.replace("asked[:, None] + offered", "offered + b"), "without the state"),
    (SCORE, SCORE.replace("np.tanh", ""), "without tanh"),
    (SCORE, "return np.tanh(asked[:, None] + offered)", "before the product with v"),
    (SCORE, SCORE.replace("asked[:, None] +", "np.tanh(asked)[:, None] + 0 *"), "Most different"),
    ("W, h) + b", "W, h)", "without the bias b"),
    (LARGE, "large = np.exp(e)", "Take the largest score of each picture off"),
    (LARGE, LARGE.replace("axis=1, ", ""), "of each picture off, not of all"),
    (LARGE, LARGE.replace(", keepdims=True", ""), "keepdims=True"),
    (LARGE, "large = e", "without exp"),
    (LARGE, "return 1 / (1 + np.exp(-e))", "from a sigmoid"),
    (SHARE, "return large", "without dividing by the sum"),
    (SHARE, SHARE.replace("axis=1", "axis=0"), "Most different at index"),
    (SHARE, "return np.exp(e) / np.sum(np.exp(e), axis=0)", "over the pictures (axis 0)"),
    (SHARE, "return large / np.sum(large)", "Most different at index"),
    (LOOK, 'return np.einsum("br,brd->bd", a, z)', "return two things"),
    (LOOK, 'return a, np.einsum("br,brd->bd", a, z)', "the context comes first"),
    (LOOK, LOOK.replace("->bd", "->brd"), "before the sum over the regions"),
    (LOOK, "return np.mean(z, axis=1), a", "as the mean of the regions"),
    (LOOK, "return np.mean(a[:, :, None] * z, axis=1), a", "divided by their number"),
    (LOOK, 'return np.einsum("br,brd->bd", array(a), array(z)), a', "the gradient is lost"),
    (LOOK, "return a @ z, a", "a @ z pairs them all"),
    (SEEN, "seen = np.sum(a, axis=1)", "when padding is counted"),
    (SEEN, "seen = np.sum(keep[:, :, None] * a, axis=1)", "Choose with np.where"),
    (SEEN, SEEN.replace("axis=1", "axis=2"), "Sum over the words"),
    (SEEN, SEEN.replace("[:, :, None]", ""), "give keep an axis for the regions"),
    (PENALTY, "return np.sum((1 - seen) ** 2)", "without dividing by B R"),
    (PENALTY, "return np.mean(1 - seen)", "without the square"),
    (PENALTY, "return (1 - seen) ** 2", "one number is wanted"),
    (NAMED, "n, t = np.nonzero(cells >= -1)", "it counts from the end"),
    (PICKED, "return a[n, t].max(axis=1).mean()", "from the largest weight"),
    (PICKED, "return a[n, t, cells[n, t]].sum()", "as a sum"),
    (PICKED, "return a[n, t, cells[n, t]]", "one by one"),
    (PICKED, "return a[n, t, cells[n, t]].sum() / cells.size", "when the others count as 0"),
]


def code_with(right, wrong):
    """The setup, the cell with the mistake in it, and the cells up to the next check."""
    cells = [c for c in text.read_source(DOCUMENT).cells if c["cell_type"] == "code"]
    at = next(
        i for i, c in enumerate(cells) if right in c["source"] and "BEGIN SOLUTION" in c["source"]
    )
    cells[at]["source"] = cells[at]["source"].replace(right, wrong, 1)
    return cells[: at + 2]


@pytest.mark.parametrize(("right", "wrong", "says"), MISTAKES, ids=[m[1] for m in MISTAKES])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow is one of the mistakes
def test_the_check_names_the_mistake(right, wrong, says):
    names = execute.namespace()
    with pytest.raises(execute.CellError) as found:
        for cell in code_with(right, wrong):
            execute.execute(cell, names)
    assert isinstance(found.value.cause, AssertionError)
    assert says in str(found.value.cause)


def test_right_answers_pass():
    """All checks but the last, which trains; `tests/test_lectures.py` runs the whole homework."""
    names = execute.namespace()
    cells = [c for c in text.read_source(DOCUMENT).cells if c["cell_type"] == "code"]
    for cell in cells[:-1]:
        execute.execute(cell, names)
    assert callable(names["weight_on_the_named"])
