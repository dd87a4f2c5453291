"""The text of a lecture as cells and slides; `lectures/README.md` describes the format."""

import json
import re
from dataclasses import dataclass, field

from tinyattn.course.project import CourseError

TAGS = {
    "notebook-only",
    "notes",
    "hide-code",
    "hide-output",
    "slow",
    "fragment",
    "solution",
    "answer",
}
SLIDE_ID = re.compile(r"[A-Z]{1,2}\d\d")
# the same in every notebook, whatever Python built it
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}


@dataclass
class Slide:
    """A heading and the cells up to the next one."""

    title: str
    ids: list
    level: int  # 1 for a title slide, 2 for an ordinary one
    cells: list = field(default_factory=list)


class MissingPackage(CourseError, ImportError):
    """A package of one of the extras is not installed."""


def need(module, extra="dev"):
    """Import a package that an extra brings, or raise MissingPackage that says how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        missing = getattr(error, "name", None) or module
        raise MissingPackage(
            f"this needs the package '{missing}'; install it in the project's folder with\n"
            f'    .venv/bin/pip install -e ".[{extra}]"'
        ) from None


def read_source(document):
    """The notebook of a lecture's text: cells with sources, types and tags; nothing executed.

    Cells are named by their position ("04-017"), so two readings of one text are equal. Speaker
    notes become quotations. Raises CourseError for a tag that means nothing.
    """
    jupytext = need("jupytext")
    nbformat = need("nbformat")
    read = jupytext.read(document.source, fmt="md:myst")
    cells = []
    for cell in read.cells:
        tags = list(cell.metadata.get("tags", []))
        _check_tags(document, cell, tags)
        source = cell.source.strip("\n")
        if cell.cell_type == "markdown" and "notes" in tags:
            source = quote(source)
        cells.append(_cell(nbformat, cell.cell_type, source, tags))
    return assemble(document.number, cells)


def assemble(number, cells):
    """A notebook of these cells, in the standard metadata and with cells named by position."""
    nbformat = need("nbformat")
    for position, cell in enumerate(cells):
        cell["id"] = f"{number}-{position:03d}"
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5)


def read_notebook(document, path=None):
    """The cells of a lecture's notebook (or of the copy at `path`) as dictionaries.

    Needs no package. Raises CourseError if it is not built, or no notebook.
    """
    path = document.notebook if path is None else path
    if not path.is_file():
        raise CourseError(
            f"{document.relative(path)} is not built yet: tinyattn build {document.number}"
        )
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError):
        raise CourseError(f"{document.relative(path)} is not a notebook (or damaged)") from None
    for cell in cells:
        cell["source"] = "".join(cell["source"])
    return cells


def slides(cells):
    """Group cells into slides; cells before the first heading make a slide of their own."""
    grouped = []
    for cell in cells:
        heading = slide_heading(cell)
        if heading or not grouped:
            level, title = heading or (1, "")
            grouped.append(Slide(title, slide_ids(cell), level))
        grouped[-1].cells.append(cell)
    return grouped


def slide_heading(cell):
    """(level, title) of a cell that begins a slide, else None."""
    match = re.match(r"(##?) +(.+)", cell["source"]) if cell["cell_type"] == "markdown" else None
    if match is None or "notebook-only" in tags_of(cell):
        return None
    return len(match[1]), match[2].strip()


def tags_of(cell):
    return list(cell["metadata"].get("tags", []))


def slide_ids(cell):
    """The IDs of the slides that a cell mirrors."""
    return [tag for tag in tags_of(cell) if SLIDE_ID.fullmatch(tag)]


def quote(text):
    """Speaker notes as the notebook shows them: a quiet block."""
    return "\n".join(f"> {line}".rstrip() for line in f"*Speaker notes.* {text}".split("\n"))


def _cell(nbformat, kind, source, tags):
    new = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return new(source, metadata={"tags": tags} if tags else {})


def _check_tags(document, cell, tags):
    for tag in tags:
        if tag not in TAGS and not SLIDE_ID.fullmatch(tag):
            first = cell.source.strip().split("\n")[0]
            raise CourseError(
                f"{document.relative(document.source)}: the cell '{first}' has the tag '{tag}'; "
                f"a tag is a slide's ID like N12, or one of {', '.join(sorted(TAGS))}"
            )
