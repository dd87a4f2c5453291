"""Wrong answers, one module for each homework; `tests/coursekit/test_homework.py` runs them."""
