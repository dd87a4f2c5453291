"""The search for cells that change their meaning when they are run again after later cells."""

import pytest

from tests.coursekit.cell_names import reused


def found(*sources):
    cells = [{"cell_type": "code", "source": source} for source in sources]
    return [(r.cell, r.name, r.earlier, list(r.later)) for r in reused(cells)]


def test_a_name_that_a_later_cell_sets_anew():
    assert found("x = 1", "print(x)", "x = 2") == [(1, "x", 0, [2])]
    assert found("x = 1", "print(x)", "y = 2") == []
    assert str(
        reused([{"cell_type": "code", "source": s} for s in ("x = 1", "x", "x = 2")])[0]
    ) == ("cell 1 reads x of cell 0, set anew in 2")


@pytest.mark.parametrize(
    "setting",
    [
        "for x in [1, 2]: pass",
        "for n, (x, y) in enumerate([]): pass",
        "a, (x, *b) = 1, (2, 3)",
        "with open('f') as x: pass",
        "import numpy as x",
        "from numpy import sin as x",
        "def x(): pass",
        "class x: pass",
        "x += 1",
        "x: int = 2",
        "if True:\n    x = 2",
        "try:\n    pass\nexcept ValueError as x:\n    pass",
        "print(x := 2)",
        "del x",
    ],
)
def test_every_way_of_setting_a_name(setting):
    assert (1, "x", 0, [2]) in found("x = 1", "print(x)", setting)


@pytest.mark.parametrize(
    "reading",
    [
        "y = [x for _ in range(3)]",
        "y = {k: x for k in range(3) if k}",
        "y = [n for n in x]",
        "def f(y=x): pass",
        "f = lambda n: n + x",
        "def f():\n    return x",
        "class A:\n    def f(self):\n        return [x for _ in range(3)]",
        "x[0] = 1",
        "x.data = 1",
        "print(f'{x:.1f}')",
    ],
)
def test_every_way_of_reading_a_name(reading):
    assert found("x = [1]", reading, "x = 2") == [(1, "x", 0, [2])]


@pytest.mark.parametrize(
    "own",
    [
        "x = 3\nprint(x)",
        "for x in [1]: print(x)",
        "y = [x for x in range(3)]",
        "def f(x):\n    return x",
        "def f():\n    x = 1\n    return x",
        "f = lambda x: x",
        "class A:\n    def f(self, x):\n        h = x\n        return h",
        "f(x=1)",
        "y.x",
    ],
)
def test_a_name_of_its_own_is_not_read(own):
    assert not [r for r in found("x = 1; f = print; y = 1", own, "x = 2") if r[1] == "x"]


def test_a_function_reads_its_names_when_it_is_called():
    sources = "x = 1\ndef f():\n    return x\ng = lambda: f()", "print(g())", "x = 2"
    assert found(*sources) == [(1, "x", 0, [2])]
    assert found("x = 1\nclass A:\n    def f(self):\n        return x", "A().f()", "x = 2")
    assert found("def f():\n    return x", "x = 1\nprint(f())", "x = 2") == []


def test_a_cell_that_changes_what_it_reads():
    assert found("x = 1", "x = x + 1") == [(1, "x", 0, [1])]
    assert found("x = {}", "x |= {1: 2}", "print(x)") == []  # the second time it adds nothing
    assert found("x = []", "for n in range(3): x.append(n)") == [(1, "x", 0, [1])]
    assert found("x = {1: []}", "x[1].extend([2])", "x = 1") == [(1, "x", 0, [1, 2])]
    assert found("x = []", "x = []\nx.append(3)") == []
    assert found("import numpy as np", "np.append([1], [2])") == []


def test_the_same_statement_or_another_generator_is_no_change():
    assert found("FIVE = range(5)", "print(FIVE)", "FIVE = range(5)") == []
    rng = "rng = np.random.default_rng({})"
    assert found(rng.format(1), "rng.normal()", rng.format(2)) == []
    assert found("rng, n = np.random.default_rng(1), 3", "rng.normal()", rng.format(2)) == []
    assert found(rng.format(1), "rng.normal()", "rng = 3") == [(1, "rng", 0, [2])]


def test_text_and_commands_of_the_notebook_are_no_code():
    cells = [{"cell_type": "markdown", "source": "x = 1"}, {"cell_type": "code", "source": "x"}]
    assert reused(cells) == []
    assert found("%matplotlib inline\nx = 1", "print(x)", "!ls") == []
