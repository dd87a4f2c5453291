"""The mutation tool: it finds rules, makes the mistakes it promises, and sees who notices them."""

import ast
import os
import sys
from functools import partial
from types import FunctionType

import numpy as np
import pytest

from tests.scripts import mutation
from tests.scripts.mutation import mutants_of
from tinyattn.check import gradcheck
from tinyattn.engine.autograd import Operation

SOURCE = '''
from tinyattn.engine.autograd import primitive
import numpy as np

@primitive
def scale(x, c):
    return x * c

scale.defvjp(lambda g, y, x, c: g * c, lambda g, y, x, c: np.sum(g * x, axis=0))

@primitive
def cube(x):
    return x**3

def _slope(x):
    return 3 * x**2

def _rule(g, y, x):
    """Text with 3 numbers."""
    s = _slope(x)
    return g * s

cube.defvjp(_rule)

def unrelated(x):
    return x - 1
'''


def mutants(tmp_path, monkeypatch):
    path = tmp_path / "rules_of_a_test.py"
    path.write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(mutation, "PACKAGE", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return path, list(mutants_of(path))


def test_the_mistakes_that_are_made(tmp_path, monkeypatch):
    _, found = mutants(tmp_path, monkeypatch)
    made = {(m.function, m.kind, m.before, m.after) for m in found}
    assert ("lambda", "the sign of the rule flipped", "g * c", "-(g * c)") in made
    assert ("lambda", "a factor dropped", "g * x", "g") in made
    assert ("lambda", "an axis forgotten", "np.sum(g * x, axis=0)", "np.sum(g * x)") in made
    assert ("_slope", "a number dropped", "3", "1") in made
    assert ("_slope", "a power dropped", "x ** 2", "x") in made
    assert ("_rule", "a factor dropped", "g * s", "s") in made
    assert not [m for m in found if m.function == "unrelated"]
    assert len({m.key for m in found}) == len(found)
    small = ast.parse("lambda g, y, x: np.where(x > 0, g.T @ (x - y), np.expand_dims(-g, 0))").body[
        0
    ]
    chain = mutation.nodes_of(ast.parse("lambda x: 0 < x < 9").body[0].value)
    made = [ast.unparse(m) for node in chain for _, m in mutation.mistakes_at(node, {"x"})]
    assert "0 >= x < 9" in made
    nodes = mutation.nodes_of(small.value)
    kinds = {kind for node in nodes for kind, _ in mutation.mistakes_at(node, {"x", "y", "g"})}
    assert kinds == {
        "a comparison turned",
        "the branches swapped",
        "two inputs swapped",
        "a sign flipped",
        "a broadcast forgotten",
        "y in place of x",
        "x in place of y",
    }


def test_who_notices(tmp_path, monkeypatch):
    """The gradient check finds all mutants. At x = 1 alone, powers pass, and without a check, all
    pass.
    """
    path, found = mutants(tmp_path, monkeypatch)
    import rules_of_a_test as rules

    x = np.random.default_rng(0).normal(size=(4, 3))
    checks = {
        "all": [lambda: gradcheck(rules.cube, x), lambda: gradcheck(rules.scale, x, x[0])],
        "at 1": [lambda: gradcheck(rules.cube, np.ones(3))],
        "none": [],
    }
    monkeypatch.setattr(mutation, "noticed_by", lambda tests: False)
    survived = {name: set() for name in checks}
    for mutant in found:
        before, after = mutation.mutated_code(path, mutant, mutation.functions_of_rules)
        function = mutation.living_function(before)
        assert isinstance(function, FunctionType) and function.__code__ is not after
        for name, some in checks.items():
            runs = [(0.0, name, partial(lambda check: bool(check()), check)) for check in some]
            if mutation.is_caught(function, after, runs, ())[0] == "survived":
                survived[name].add((mutant.function, mutant.before, mutant.after))
        assert function.__code__ == before  # put back
    assert not survived["all"]
    assert {f for f, _, _ in survived["at 1"]} == {"lambda", "_slope"}
    assert ("_slope", "x ** 2", "x") in survived["at 1"]
    assert len(survived["none"]) == len({(m.function, m.before, m.after) for m in found})
    assert gradcheck(rules.cube, x)


def test_every_file_of_rules_can_be_mutated():
    """Each mutant compiles, and its function is found."""
    count = 0
    for path in mutation.files(loops=False):
        for mutant in list(mutants_of(path))[::20]:
            before, after = mutation.mutated_code(path, mutant, mutation.functions_of_rules)
            assert before.co_freevars == after.co_freevars
            count += 1
    assert count > 20
    assert isinstance(mutation.codes_below(Operation("nothing")), frozenset)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
def test_a_crash_is_noticed():
    assert mutation.in_a_child(lambda x: ("survived", x), "tests") == ("survived", "tests")
    assert mutation.in_a_child(os._exit, 1) == ("caught", "the process ended")
