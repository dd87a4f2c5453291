"""The addresses of texts and files of the project on the site."""

import posixpath
import re
from urllib.parse import quote

from tinyattn.course.project import homework, lectures

# These texts of the project have their own page. The value is its address without the extension.
TEXTS = {
    "README.md": "index",
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changes",
    "LICENSE": "source/LICENSE",
    "lectures/GLOSSARY.md": "glossary",
    "lectures/README.md": "project/writing_lectures",
    "lectures/REFERENCES.md": "references",
    "lectures/SYSTEMS.md": "systems",
    "lectures/TEACHING.md": "teaching/index",
    "lectures/from_pytorch.md": "from_pytorch",
    "lectures/claims.toml": "claims",
    "notebooks/index.ipynb": "index",
    "tests/README.md": "project/tests",
    "tests/benchmarks/RESULTS.md": "benchmarks",
    "tests/benchmarks/TRIED.md": "benchmarks_tried",
    "tinyattn/data/SOURCES.md": "project/data_sources",
    "tinyattn/kernels/README.md": "project/kernels",
    "tinyattn/trace/README.md": "project/trace",
}

# `tinyattn site --for-students` leaves out these pages and the lecturer's page of each lecture
LECTURERS = {"lectures/TEACHING.md", "lectures/README.md"}


def page_of(document):
    """Return the address of a lecture or homework, without extension."""
    return f"{'homework' if document.is_homework else 'lectures'}/{document.name}"


def texts(students=False):
    """Return {path in the project: page} of the texts. For students, the lecturers' are left
    out.
    """
    return {path: page for path, page in TEXTS.items() if not (students and path in LECTURERS)}


def pages(root, students=False):
    """Return {path in the project: page} of all texts (see `texts`) and notebooks with a page."""
    found = texts(students)
    for document in lectures(root) + homework(root):
        for path in (document.notebook, document.source):
            found[document.relative(path)] = page_of(document)
    for path in sorted((root / "lectures" / "teaching").glob("[0-9][0-9].md")):
        if students:
            break
        found[path.relative_to(root).as_posix()] = f"teaching/{path.stem}"
    return found


def source_page(path):
    """Return the page of a source file, such as source/tinyattn/ops/index.py."""
    return f"source/{path}"


def relative(target, here):
    """Return the address of `target` relative to the page `here`. Both begin at the top of the
    site.
    """
    file, mark, more = re.match(r"([^?#]*)([?#]?)(.*)", target).groups()
    return quote(posixpath.relpath(file, posixpath.dirname(here) or ".")) + mark + more


def slug(title):
    """Return a heading as part of an address: letters, digits and hyphens."""
    plain = re.sub(r"\\[a-zA-Z]+|[*`$\\{}']", "", title).lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "slide"
