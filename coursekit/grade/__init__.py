"""Grade handed-in homework: `tinyattn grade`.

`handed_in` reads the notebooks, `sandbox` runs the students' code apart from everything else,
`marking` asks it and judges the answers, `pages` writes what came of it.
"""
