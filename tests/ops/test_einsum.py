"""Einsum of any subscripts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.same import same
from tinyattn import Tensor
from tinyattn.check import gradcheck


@st.composite
def einsums(draw):
    """(subscripts, arrays): any letters, repeated ones, dots, implicit output, lengths of 1."""
    lengths = {c: draw(st.integers(1, 3)) for c in "ijkl"}
    dots = draw(st.lists(st.integers(1, 2), max_size=2))
    inputs, arrays = [], []
    for n in range(draw(st.integers(1, 3))):
        letters = draw(st.text("ijkl", max_size=3))
        shape = [lengths[c] for c in letters]
        if n and draw(st.booleans()):  # one of the axes of length 1, to be broadcast
            unique = [i for i, c in enumerate(letters) if letters.count(c) == 1]
            if unique:
                shape[draw(st.sampled_from(unique))] = 1
        if dots and draw(st.booleans()):
            at = draw(st.integers(0, len(letters)))
            own = dots[draw(st.integers(0, len(dots))) :]
            letters, shape = letters[:at] + "..." + letters[at:], shape[:at] + own + shape[at:]
        inputs.append(letters)
        arrays.append(np.random.default_rng(len(shape) + n).normal(size=shape))
    subscripts = ",".join(inputs)
    if draw(st.booleans()):
        known = sorted(set(subscripts) - set(",."))
        output = "".join(draw(st.permutations(known))[: draw(st.integers(0, len(known)))])
        subscripts += "->" + ("..." if "..." in subscripts else "") + output
    return subscripts, arrays


@settings(max_examples=150, deadline=None, derandomize=True)
@given(einsums())
def test_einsum_of_any_subscripts(case):
    subscripts, arrays = case
    try:
        expected = np.einsum(subscripts, *arrays)
    except ValueError:
        with pytest.raises(ValueError, match=r"einsum|operands|shape"):
            np.einsum(subscripts, *[Tensor(a) for a in arrays])
        return
    same(np.einsum(subscripts, *[Tensor(a) for a in arrays]), expected)
    if sum(a.size for a in arrays) <= 30:
        gradcheck(lambda *xs: np.einsum(subscripts, *xs), *arrays).expect()


def test_einsum_of_other_numbers():
    table, row = np.arange(6, dtype=np.int64).reshape(2, 3), np.arange(3, dtype=np.int64)
    same(np.einsum("ij,j->i", Tensor(table), row), np.einsum("ij,j->i", table, row))
    y = np.einsum("ii->i", Tensor([[1.0, np.inf], [np.nan, 2.0]]))
    assert np.array_equal(y.data, [1, 2])
