"""Grade submitted homework: `tinyattn grade`.

`handed_in` reads the notebooks, `sandbox` isolates the students' code, `marking` asks it questions
and judges the answers, and `pages` writes the results.
"""
