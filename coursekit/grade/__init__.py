"""Grade submitted homework: `tinyattn grade`. Read `grading.py` first.

`grading` grades all submissions. `handed_in` reads the notebooks, `sandbox` isolates the students'
code, `marking` asks the code of one submission questions and judges its answers, and `pages` writes
the results.
"""
