"""Wrong answers, one module for each homework; `tests/course/test_homework.py` runs them."""
