"""The course's place on the web: texts, notebooks, slides and docstrings as one static site.

`build.build_site(root)` writes the pages' sources (`build/site-sources/`), and Sphinx makes
`build/site/` of them. Nothing is executed, and nothing is loaded from a network.
"""
