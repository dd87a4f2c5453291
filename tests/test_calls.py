"""A forward pass stays short enough to be followed in a debugger."""

import pytest

from tests.scripts.calls import calls_of, counts, forwards
from tinyattn.ops.backends import array_algebra

MOST = {"calls": 180, "moves": 80}  # of Python inside tinyattn; of them, into another file


@pytest.mark.parametrize("name", ["MultiheadAttention", "GravNetConv"])
def test_a_forward_pass_takes_few_calls(name):
    run = forwards()[name]
    with array_algebra():
        run()  # what is imported at first use is imported here
        found = counts(calls_of(run))
    assert all(found[what] <= most for what, most in MOST.items()), found
