"""`tinyattn doctor --numpy` says of each of NumPy's functions what it does with a Tensor."""

import numpy as np
import pytest

import tinyattn as ta
from coursekit.cli import main
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS
from tinyattn.ops.coverage import KINDS, asks_tensors, kind_of, public_functions, table

FUNCTIONS = public_functions()


def test_every_function_has_one_place(capsys):
    found = table()
    names = [name for group in found.values() for name in group]
    assert sorted(names) == sorted(FUNCTIONS) and len(names) == len(set(names))
    assert main(["doctor", "--numpy"]) == 0
    said = capsys.readouterr().out
    for kind in KINDS:
        assert f"{kind} ({len(found[kind])}): " in said and len(found[kind]) > 20
    assert len(found["recorded"]) > 130
    assert "np.exp" in found["recorded"] and "np.floor" in found["no gradient"]
    assert "np.zeros" in found["plain arrays"] and "np.linalg.qr" in found["refused"]


def test_all_that_is_taught_is_public():
    public = {*FUNCTIONS.values(), np.lib.stride_tricks.sliding_window_view}
    missing = [f.__name__ for f in HANDLED_FUNCTIONS if f not in public]
    assert not missing


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if kind_of(f) == "refused"])
def test_what_is_refused_names_itself(name):
    x, f = ta.tensor([1.0, 2.0], requires_grad=True), FUNCTIONS[name]
    short = f.__name__
    with pytest.raises(TypeError, match=f"{short} .*rule"):
        if isinstance(f, np.ufunc):
            f(*[x] * f.nin)
        else:
            x.__array_function__(f, (ta.Tensor,), (x,), {})


# of the functions that ask no Tensor, those that make an array of what they are given
MAKERS = [
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "require",
]


@pytest.mark.parametrize("name", MAKERS)
def test_plain_functions_never_lose_a_gradient(name):
    x = ta.tensor([1.0, 2.0], requires_grad=True)
    assert not asks_tensors(getattr(np, name))
    with pytest.raises(TypeError, match="lost"):
        getattr(np, name)(x)
