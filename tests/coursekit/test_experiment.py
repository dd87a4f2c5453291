"""A verdict belongs to its experiment: what changes the one makes the other out of date."""

import ast

import pytest

from coursekit.build import experiment, only_draws, text
from tests.coursekit import small_project
from tinyattn.course import claims, project
from tinyattn.course.project import LEDGER

SETUP = """\
import numpy as np
from tinyattn import course, data, plot

def loss(model, x):
    '''The mean of the squares.'''
    return np.mean(model(x) ** 2)  # a comment
"""
TRAIN = """\
model = make(3)
x, held_out = data.split(40)
x[0] = 1
for step in range(100):
    fit(model, x)
other = 7
"""
PICTURE = "plot.line(model.history, title='falls')"
CLAIM = "course.claim('C001', loss(model, held_out) < 0.1, evidence='it is small', control='none')"


def digest(*sources):
    cells = [{"cell_type": "code", "source": s} for s in sources]
    return experiment.digests(cells)["C001"]


BEFORE = digest(SETUP, TRAIN, PICTURE, CLAIM)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("step in range(100)", "step in range(1000)"),
        ("make(3)", "make(4)"),
        ("split(40)", "split(50)"),
        ("x[0] = 1", "x[0] = 2"),
        ("fit(model, x)", "fit(model, x, lr=2)"),
        ("** 2", "** 4"),
        ("< 0.1", "< 0.2"),
        ("import numpy as np", "import autograd.numpy as np"),
    ],
)
def test_a_change_of_the_experiment_is_seen(old, new):
    sources = [SETUP, TRAIN, PICTURE, CLAIM]
    changed = [s.replace(old, new) for s in sources]
    assert changed != sources
    assert digest(*changed) != BEFORE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # a comment", ""),
        ("The mean of the squares.", "Half of it."),
        ("'falls'", "'rises'"),
        ("'it is small'", "'it is tiny'"),
        ("control='none'", "control='another'"),
        ("other = 7", "other = 8"),
        ("from tinyattn import course, data, plot", "from tinyattn import course, data\nimport os"),
        ("range(100):\n    fit(model, x)", "range(100): fit(model,\n        x)"),
    ],
)
def test_words_pictures_and_layout_do_not_count(old, new):
    sources = [SETUP, TRAIN, PICTURE, CLAIM]
    changed = [s.replace(old, new) for s in sources]
    assert changed != sources
    assert digest(*changed) == BEFORE


SIZED = """\
steps = 100 if course.full() else 10 if course.small() else 50
if course.full() and steps > 3:
    grow(model)
if not course.full():
    x = x[:10]
for seed in course.seeds(quick=2):
    fit(model, x, steps)
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("else 50", "else 60", False),
        ("else 10 if course.small() ", "", False),
        ("x[:10]", "x[:20]", False),
        ("quick=2", "quick=3", False),
        ("100 if", "200 if", True),
        ("grow", "shrink", True),
        ("steps > 3", "steps > 4", True),
        ("not course.full()", "not course.small()", True),
    ],
)
def test_what_only_shorter_runs_do_does_not_count(old, new, counts):
    assert old in SIZED
    before = digest(SETUP, TRAIN, SIZED, CLAIM)
    assert (digest(SETUP, TRAIN, SIZED.replace(old, new), CLAIM) != before) == counts


def test_a_call_of_a_module_counts_only_if_it_sets_something():
    assert digest(SETUP, TRAIN, "np.stack([x, x])", CLAIM) == BEFORE
    assert digest(SETUP, TRAIN, "np.random.seed(1)", CLAIM) != BEFORE
    assert digest(SETUP, TRAIN, "model.eval()", CLAIM) != BEFORE


def test_what_a_function_reads_counts_also_when_it_changes_after_the_def():
    uses = [SETUP.replace("** 2", "** power"), "power = 2", TRAIN, "power = 3", CLAIM]
    assert digest(*uses) != digest(*uses[:3], "power = 4", CLAIM)


def test_what_comes_after_does_not_count():
    assert digest(SETUP, TRAIN, PICTURE, CLAIM, "model = make(9)") == BEFORE


def test_the_digest_is_the_same_in_every_python():
    """Computed once with Python 3.11; another value elsewhere would make all verdicts outdated."""
    assert digest("x = f'{1 + 1:.2f} and {2!r}'", "course.claim('C001', x != '')") == EXPECTED


EXPECTED = "8c9319bd3b4b0584"


def test_the_ledger_keeps_it_and_notices(tmp_path):
    root = small_project.make(tmp_path)
    lecture = project.find(root, "04")
    cells = text.read_source(lecture).cells
    assert experiment.outdated(claims.read_ledger(root / LEDGER), cells) == []  # none is known
    experiment.stamp(root, cells)
    ledger = claims.read_ledger(root / LEDGER)
    assert ledger["C001"]["experiment"] == experiment.digests(cells)["C001"]
    assert experiment.outdated(ledger, cells) == []
    lecture.source.write_text(
        small_project.LECTURE.replace("total = 1 + 1", "total = 2"), encoding="utf-8"
    )
    assert experiment.outdated(ledger, text.read_source(lecture).cells) == ["C001"]


# a lecture that draws before, between and after its experiments, with their names
DRAWN = """\
picture = plot.figure(1, 2)
for ax, (name, found) in zip(picture.axes, before.items(), strict=True):
    plot.curves(steps, found.mean(axis=0), title=name, ax=ax)
    ax.axhline(0.5, color='black')
"""
COMPARE = """\
results = {}
for name in ('long', 'short'):
    found = fit(make(3), name)
    results[name] = found
right = {name: found.mean() for name, found in results.items()}
"""
BARS = """\
def bars(panel, found, name):
    panel.bar(range(3), found, label=name)

picture = plot.figure(1, 2, title='right')
for panel, (name, found) in zip(picture.axes, results.items(), strict=True):
    bars(panel, found, name)
picture.axes[0].legend()
print(name, *right.values())
"""
RIGHT = (
    "name = 'long'\n"
    "course.claim('C001', results[name].mean() > 0.9, evidence=f'{right}', control='none')"
)
PARTS = [SETUP, DRAWN, COMPARE, BARS, RIGHT]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("figure(1, 2)\n", "figure(2, 1)\n"),
        ("found.mean(axis=0), title", "found.max(axis=0), title"),
        ("axhline(0.5", "axhline(0.4"),
        ("    ax.axhline(0.5, color='black')\n", ""),
        ("range(3), found", "range(4), found"),
        ("panel.bar", "panel.barh"),
        ("title='right'", "title='wrong'"),
        ("picture.axes[0].legend()\n", ""),
        ("print(name, ", "print("),
    ],
)
def test_a_drawing_does_not_count_even_if_it_shares_names_with_an_experiment(old, new):
    changed = [s.replace(old, new) for s in PARTS]
    assert changed != PARTS
    assert digest(*changed) == digest(*PARTS)


KEPT = """\
for panel, (name, found) in zip(picture.axes, results.items(), strict=True):
    panel.plot(found, label='training loss')
    panel.set_title(f'{name} after training')
    results[name] = shorten(found, label='long')
picture = plot.curves(results, title='Loss', xlabel='step', legend='upper')
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("'training loss'", "'loss'", False),
        ("after training", "at the end", False),
        ("xlabel='step'", "xlabel='training step'", False),
        ("'long'", "'short'", True),  # an argument of a function that may compute
        ("{name}", "{results.pop(name)}", True),  # code in a label
        ("legend='upper'", "legend='lower'", True),  # not a word of the figure
    ],
)
def test_words_of_a_figure_do_not_count_in_a_statement_that_counts(old, new, counts):
    assert old in KEPT
    claim = RIGHT.replace("0.9", "picture.n")
    before = digest(SETUP, DRAWN, COMPARE, BARS, KEPT, claim)
    after = digest(SETUP, DRAWN, COMPARE, BARS, KEPT.replace(old, new), claim)
    assert (after != before) == counts


READS_A_LEFTOVER = RIGHT.removeprefix("name = 'long'\n")  # the name of the last bar that was drawn


@pytest.mark.parametrize(
    ("cell", "old", "new", "claim"),
    [
        (3, "results.items()", "reversed(results.items())", READS_A_LEFTOVER),
        (3, "bars(panel, found, name)\np", "results[name] = 1\np", RIGHT),
        (3, "picture.axes[0].legend()", "results.clear()", RIGHT),
        (3, "bars(panel, found, name)\np", "bars(panel, results.pop(name), name)\np", RIGHT),
        (3, "*right.values()", "*right.values(), fit(results, name)", RIGHT),
        (3, "panel.bar(range(3), found, label=name)", "found.sort()", RIGHT),
        (3, "panel.bar(range(3), found, label=name)", "np.random.seed(1)", RIGHT),
        (3, "*right.values()", "right := {}", RIGHT),
        (3, "picture.axes[0].legend()", "picture.ax.plot([1])", RIGHT.replace("0.9", "picture.n")),
        (3, "figure(1, 2, ", "figure(2, 1, ", RIGHT.replace("0.9", "picture.n")),
    ],
)
def test_a_drawing_that_changes_what_a_claim_reads_counts(cell, old, new, claim):
    parts = [*PARTS[:-1], claim]
    changed = [s.replace(old, new) if i == cell else s for i, s in enumerate(parts)]
    assert changed != parts
    assert digest(*changed) != digest(*parts)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("[x for x in xs]", {"xs"}),
        ("[x for x in x]", {"x"}),
        ("f(lambda x, y=z: x + y + w)", {"f", "z", "w"}),
        ("def f(x):\n    y = x\n    return [y for k in range(n)]", {"n", "range"}),
        ("def f(x):\n    [n for n in x]\n    return n", {"n"}),
        ("def f():\n    global n\n    n = n + 1", {"n"}),
        ("for x in xs:\n    y = x", {"xs", "live"}),
        ("for x in xs:\n    y = y + x", {"xs", "y", "live"}),
        ("for x in xs:\n    live = x\nlive", {"xs", "live"}),  # xs may be empty
        ("live = 1", set()),
        ("live += 1", {"live"}),
        ("if a:\n    live = 1", {"a", "live"}),
        ("x, live[0] = a", {"a", "live"}),
    ],
)
def test_the_names_that_count_before_a_statement(source, names):
    trees = ast.parse(source).body
    live = {"live"} if "live" in names or source == "live = 1" else set()
    assert only_draws.live_before_all(trees, live) == names
