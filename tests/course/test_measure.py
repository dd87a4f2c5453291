"""What the lectures measure: time, memory, powers."""

import time

import numpy as np
import pytest

from tinyattn.course import measure


def test_slope_of_a_power():
    x = np.array([1.0, 2, 4, 8])
    assert measure.slope(x, 3 * x**1.5) == pytest.approx(1.5, rel=1e-12)


def test_memory_is_the_largest_that_is_alive_at_once():
    def work():
        a = np.zeros(1_000_000, np.uint8)
        del a
        b = np.zeros(2_000_000, np.uint8)
        return b

    assert 2_000_000 <= measure.memory(work) < 2_100_000


def test_seconds_leaves_the_first_call_out():
    calls = []

    def work():
        calls.append(None)
        time.sleep(0.2 if len(calls) == 1 else 0.001)

    assert 0.001 <= measure.seconds(work, at_least=0.01) < 0.2
    assert len(calls) > 3
