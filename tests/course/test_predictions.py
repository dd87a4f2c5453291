"""Predictions: what a student expected comes back next to the result."""

import pytest

from tests.coursekit import small_project as course_project
from tinyattn.course import predictions


def test_a_prediction_comes_back_beside_the_result(tmp_path):
    root = course_project.make(tmp_path)
    assert "Noted" in repr(predictions.predict("three"))
    shown = predictions.compare("C001", root=root)
    assert "three" in repr(shown) and "total 2" in repr(shown)
    assert "The result of the unchanged cells (C001, " in repr(shown)  # as in the ledger
    assert "three" in shown._repr_html_()
    assert repr(predictions.compare("C001", root=root)) == repr(shown)  # the cell is run again
    assert "run a cell course.predict" in repr(predictions.compare())  # it was taken up, once
    assert "Any guess" in repr(predictions.predict(""))
    assert "<b>" not in predictions.predict("<b>")._repr_html_().replace("<b>Noted.</b>", "")
    predictions.compare()


@pytest.mark.parametrize(
    ("prediction", "said"),
    [
        ("A", "You said: A; it is B."),
        ("b", "You said: B, and so it is."),
        ("(B) because", "You said: B, and so it is."),
        ("a sum", "You expected: “a sum”"),
        ("Both", "You expected: “Both”"),
        ("C", "You said: C, but the answers are A, B; it is B."),
    ],
)
def test_an_answer_reads_the_letter(prediction, said):
    predictions.predict(prediction)
    seal = predictions.sealed("B", {"A": "too few", "B": "enough"})
    assert "enough" not in seal
    found = repr(predictions.answer(seal))
    assert said in found and "Why: enough" in found
    assert ("too few" in found) == (prediction == "A")
    assert repr(predictions.answer(seal)) == found  # once more


def test_an_answer_waits_for_the_prediction(monkeypatch):
    monkeypatch.setattr(predictions, "_answered", {})
    seal = predictions.sealed("B", {"A": "too few", "B": "enough"})
    for _ in range(2):
        predictions.predict("")
        found = repr(predictions.answer(seal))
        assert "No prediction yet" in found and "enough" not in found
    predictions.predict("A")
    assert "it is B" in repr(predictions.answer(seal))
