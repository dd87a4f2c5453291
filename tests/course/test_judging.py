"""The judge of homework names what is wrong with a result that is not an array of numbers."""

from types import SimpleNamespace

import numpy as np
import pytest

from tinyattn.course.checks.judging import NO_RETURN, Diagnosis, array_of, number_of

WRONG = {
    "nothing": (None, "your result is None. Did you forget `return`?"),
    "ragged": ([[1], [1, 2]], "your result is a list with rows of different lengths or shapes"),
    "text": ("a", "expected numbers, but your result has the type str"),
    "objects": (np.array([{}]), "expected numbers, but your result has the dtype object"),
    "function": (SimpleNamespace(type="int64"), "your result has the type int64"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_the_cause_is_named(kind):
    came, message = WRONG[kind]
    with pytest.raises(Diagnosis) as error:
        array_of(came)
    assert message in str(error.value)


def test_a_missing_return_is_a_known_mistake():
    with pytest.raises(Diagnosis, match="loss is None") as error:
        number_of(None, "the loss")
    assert error.value.mistake == NO_RETURN


def test_numbers_pass():
    assert number_of(3) == 3
    np.testing.assert_array_equal(array_of([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
