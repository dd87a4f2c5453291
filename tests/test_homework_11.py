"""Homework 11 explains the usual mistakes: each wrong answer is refused, in words that help."""

from pathlib import Path

import pytest

from tinyattn.course import execute, project, text

pytest.importorskip("jupytext")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = project.find(ROOT, "hw11")

WEIGHTS = "return np.exp(-c * np.sum(difference * difference, axis=-1))"
HEARD = "return np.concatenate([np.mean(messages, axis=1), np.max(messages, axis=1)], axis=-1)"
MEAN, MAX = "np.mean(messages, axis=1)", "np.max(messages, axis=1)"
INDEX = "index, _ = knn(s, self.k, event)"
A = "a = weights(s, index, self.c)"
Y = "return self.lin_out1(x) + self.lin_out2(heard(a, h, index))"
EDGE = "return N * K * 2 * F * F"
GRAV = "return N * (F * S + F * P + F * F + 2 * P * F) + N * K * P"

MISTAKES = [  # right, wrong, what the check must say about it
    (WEIGHTS, WEIGHTS.replace("return ", ""), "Is the `return` missing?"),
    (WEIGHTS, WEIGHTS.replace(", axis=-1", ""), "expected an answer of shape (3, 2)"),
    (WEIGHTS, WEIGHTS.replace("-c", "c"), "A minus is missing"),
    (WEIGHTS, WEIGHTS.replace("difference * difference", "np.abs(difference)"), "goes in squared"),
    (WEIGHTS, "w" + WEIGHTS[6:].replace(" np", "= np", 1) + "; return w / np.sum(w, 1)[:, None]",
     "GravNet has no softmax"),
    (WEIGHTS, WEIGHTS.replace("difference", "array(difference)"), "no gradient reaches s"),
    (HEARD, f"return np.concatenate([{MAX}, {MEAN}], axis=-1)", "means come first"),
    (HEARD, HEARD.replace("np.mean", "np.sum"), "the mean divides by K"),
    (HEARD, HEARD.replace(MEAN, "np.sum(messages, axis=1) / np.sum(a, axis=1)[:, None]"),
     "GravNet divides by K"),
    (HEARD, HEARD.replace("np.max(messages", "np.max(h[index]"), "without their weights"),
    (HEARD, HEARD.replace(MAX, "np.max(h[index], axis=1) * np.max(a, axis=1)[:, None]"),
     "not the product of the maxima"),
    (HEARD, HEARD.replace("messages, axis=1", "messages, axis=2"), "runs over the features"),
    (INDEX, INDEX.replace("(s,", "(x,"), "nearest in x"),
    (INDEX, INDEX.replace("(s,", "(h,"), "nearest in h"),
    (INDEX, INDEX.replace(", event", ""), "Pass event to knn"),
    (A, "a = np.exp(-self.c * knn(s, self.k, event)[1])", "no gradient reaches lin_s"),
    (A, A.replace("self.c", "1.0"), "use self.c"),
    (Y, Y.replace("self.lin_out1(x) + ", ""), "W₁ x is missing"),
    ("return c / r**2", "return c * r**2", "the constant must shrink"),
    ("return c / r**2", "return c / r", "d² grows with r squared"),
    ("return np.sqrt(c_from / c_to)", "return c_from / c_to", "the root of the ratio"),
    ("return np.sqrt(c_from / c_to)", "return np.sqrt(c_to / c_from)", "upside down"),
    (EDGE, "return N * K * F * F", "sees 2F features"),
    (EDGE, "return N * 2 * F * F", "on every edge"),
    (GRAV, GRAV.replace(" + N * K * P", ""), "N·K·P"),
    (GRAV, GRAV.replace("2 * P * F", "P * F"), "W₂ gets mean and maximum"),
    (GRAV, GRAV.replace(" + F * F +", " +"), "W₁ is missing"),
    (GRAV, GRAV.replace("K * P", "K * 2 * P"), "computed once"),
    (GRAV, GRAV.replace("N * (", "N * K * (", 1), "once for each point"),
]  # fmt: skip


def cells_with(right, wrong):
    """The setup, what was written before, the cell with the mistake in it, and its check."""
    cells = [c for c in text.read_source(DOCUMENT).cells if c["cell_type"] == "code"]
    at = next(
        i for i, c in enumerate(cells) if right in c["source"] and "BEGIN SOLUTION" in c["source"]
    )
    cells[at]["source"] = cells[at]["source"].replace(right, wrong, 1)
    before = [c for c in cells[1:at] if "BEGIN SOLUTION" in c["source"]]
    return [cells[0], *before, cells[at], cells[at + 1]]


@pytest.mark.parametrize(("right", "wrong", "says"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_the_check_names_the_mistake(right, wrong, says):
    names = execute.namespace()
    with pytest.raises(execute.CellError) as found:
        for cell in cells_with(right, wrong):
            execute.execute(cell, names)
    assert isinstance(found.value.cause, AssertionError)
    assert says in str(found.value.cause)


def test_the_solution_passes_and_its_space_ignores_the_kind():
    names = execute.namespace()
    for cell in text.read_source(DOCUMENT).cells:
        if cell["cell_type"] == "code":
            printed = execute.execute(cell, names).printed
            if "alone:" in printed:
                alone, gravnet = (float(line.split()[1][:-1]) for line in printed.split("\n")[:2])
                assert gravnet > alone + 5
    W_s = names["learned"].lin_s.weight.data
    assert abs(W_s[:, 2]).max() < 0.3 * abs(W_s[:, :2]).max()
