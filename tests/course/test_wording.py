"""Figures as words: bounds that are reached, differences that are 0, and lists of any length."""

import numpy as np
import pytest

from tinyattn import course


@pytest.mark.parametrize(
    ("share", "digits", "text", "bound"),
    [
        (0.9748, 1, "97.5%", "at least 97.5%"),
        (0.9748, 0, "97%", "at least 97%"),
        (0.9997, 1, "100%", "100%"),  # it rounds to 100, and nothing is above that
        (0.9994, 1, "99.9%", "at least 99.9%"),
        (1, 0, "100%", "100%"),
        (np.float32(0), 1, "0%", "at least 0%"),
        (-1e-9, 1, "0%", "at least 0%"),
        (1.049, 2, "104.90%", "at least 104.90%"),
    ],
)
def test_a_fraction_and_its_lower_bound(share, digits, text, bound):
    assert course.percent(share, digits) == text
    assert course.at_least(share, digits) == bound


def test_a_difference_is_exactly_0_only_if_there_is_none():
    assert course.difference(np.float64(0)) == "exactly 0"
    assert course.difference(0.4) == "4e-1"  # .0f would say 0
    assert course.difference(5e-324) == "5e-324"
    assert course.difference(np.array(3e-15)) == "3e-15"


@pytest.mark.parametrize(
    ("items", "text"),
    [(["96"], "96"), ([96, 62], "96 and 62"), (["a", "b", "c"], "a, b and c")],
)
def test_a_list_of_any_length(items, text):
    assert course.listed(items) == text
    assert course.listed(x for x in items) == text
