"""The web site of the course: texts, notebooks, slides and docstrings as static pages.

`build.build_site(root)` writes the sources of the pages (`build/site-sources/`), from which Sphinx
makes `build/site/`. Nothing is executed, and nothing is loaded from a network.
"""
