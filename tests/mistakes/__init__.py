"""Tables of wrong answers, one module for each homework; `tests/test_homework.py` hands them in."""
