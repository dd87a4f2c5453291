"""The text of a lecture as cells and slides, in the format of `lectures/README.md`."""

import json
import re
from dataclasses import dataclass, field

from tinyattn.course.project import CourseError, install

TAGS = {
    "notebook-only",
    "notes",
    "hide-code",
    "hide-output",
    "slow",
    "fragment",
    "shown",
    "solution",
    "optional",
    "guest",
    "answer",
    "choices",
}
SLIDE_ID = re.compile(r"[A-Z]{1,2}\d\d")
MINUTES = re.compile(r"(\d+)min")
USUAL_MINUTES = 2  # minutes of a slide that does not name its own
# the metadata is the same in every notebook, whichever Python built it
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}

# The second cell of every notebook. `read_notebook` leaves it out, because it is not in the text.
INSTALL = """\
# Where tinyattn is missing, such as on Colab, this cell installs it.
from importlib.util import find_spec

if find_spec("tinyattn") is None:
    %pip install --quiet tinyattn"""

# JupyterLab shows the first line of a folded cell and of a folded output. In a notebook's file,
# both begin with a line that reveals nothing, which `read_notebook` leaves out, too.
BEFORE_CHOICES = "Why each answer is right or wrong:\n\n"
BEFORE_ANSWER = {
    "data": {"text/plain": ["The answer:"]},
    "metadata": {},
    "output_type": "display_data",
}


@dataclass
class Slide:
    """A heading and the cells up to the next heading."""

    title: str
    ids: list
    level: int  # 1 for a title slide, 2 for an ordinary one
    cells: list = field(default_factory=list)

    @property
    def minutes(self):
        """Return the minutes that this slide takes in class, from a tag such as `4min`."""
        found = [MINUTES.fullmatch(tag) for cell in self.cells[:1] for tag in tags_of(cell)]
        return next((int(match[1]) for match in found if match), USUAL_MINUTES)

    @property
    def optional(self):
        """Return whether the short version of the lecture leaves this slide out."""
        return any("optional" in tags_of(cell) for cell in self.cells[:1])


class MissingPackage(CourseError, ImportError):
    """The error for a package of one of the extras that is not installed."""


def need(module, extra="dev"):
    """Import a package of an extra, or raise MissingPackage with the command that installs it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        missing = getattr(error, "name", None) or module
        raise MissingPackage(
            f"this needs the package '{missing}'. Install it with\n    {install(extra)}"
        ) from None


def read_source(document):
    """Return the notebook of a lecture's text without outputs: sources, types and tags of cells.

    Cells are named by their position ("04-017"), so two readings of one text are equal. Speaker
    notes are kept in the metadata of the cell that begins their slide. Raises CourseError for an
    unknown tag, for notes before the first slide, and if the text does not begin with its header.
    """
    jupytext = need("jupytext")
    nbformat = need("nbformat")
    with open(document.source, encoding="utf-8") as text:
        if (line := text.readline().rstrip()) != "---":
            raise CourseError(
                f"{document.relative(document.source)} must begin with its header, whose first "
                f"line is ---, got '{line}'. Remove all lines before the header, or add a header"
            )
    read = jupytext.read(document.source, fmt="md:myst")
    cells = []
    for cell in read.cells:
        tags = list(cell.metadata.get("tags", []))
        _check_tags(document, cell, tags)
        source = cell.source.strip("\n")
        if "notes" in tags:
            _add_notes(document, cells, source, tags)
        else:
            cells.append(_cell(nbformat, cell.cell_type, source, tags))
    return assemble(document.number, cells)


def assemble(number, cells):
    """Return a notebook of these cells, with the standard metadata and cells named by position."""
    nbformat = need("nbformat")
    for position, cell in enumerate(cells):
        cell["id"] = f"{number}-{position:03d}"
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA, nbformat_minor=5)


def read_notebook(document, path=None):
    """Return the cells of a lecture's notebook, or of the copy at `path`, as dictionaries.

    The cell that installs the package and the additional first lines of folded parts are left out.
    No package is needed. Raises CourseError if the file is not built, or is not a notebook.
    """
    path = document.notebook if path is None else path
    if not path.is_file():
        raise CourseError(
            f"{document.relative(path)} is not built yet. Run: tinyattn build {document.number}"
        )
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError):
        raise CourseError(
            f"{document.relative(path)} is not a notebook, or it is damaged. Build it again: "
            f"tinyattn build {document.number}"
        ) from None
    for cell in cells:
        cell["source"] = without_first_line(cell)
        if "outputs" in cell:
            cell["outputs"] = [output for output in cell["outputs"] if output != BEFORE_ANSWER]
    return [cell for cell in cells if cell["source"] != INSTALL]


def without_first_line(cell):
    """Return the source of a cell in a notebook's file as it is in the text of the lecture."""
    source = "".join(cell["source"])
    return source.removeprefix(BEFORE_CHOICES) if "choices" in tags_of(cell) else source


def slides(cells):
    """Group cells into slides, where cells before the first heading form their own slide."""
    grouped = []
    for cell in cells:
        heading = slide_heading(cell)
        if heading or not grouped:
            level, title = heading or (1, "")
            grouped.append(Slide(title, slide_ids(cell), level))
        grouped[-1].cells.append(cell)
    return grouped


def slide_heading(cell):
    """Return (level, title) of a cell that begins a slide, otherwise None."""
    match = re.match(r"(##?) +(.+)", cell["source"]) if cell["cell_type"] == "markdown" else None
    if match is None or "notebook-only" in tags_of(cell):
        return None
    return len(match[1]), match[2].strip()


def tags_of(cell):
    return list(cell["metadata"].get("tags", []))


def slide_ids(cell):
    """Return the IDs of the slides that a cell corresponds to."""
    return [tag for tag in tags_of(cell) if SLIDE_ID.fullmatch(tag)]


def notes_of(cell):
    """Return the speaker notes of the slide that this cell begins, or ""."""
    return cell["metadata"].get("notes", "")


def _cell(nbformat, kind, source, tags):
    new = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return new(source, metadata={"tags": tags} if tags else {})


def _check_tags(document, cell, tags):
    for tag in tags:
        if tag in TAGS or SLIDE_ID.fullmatch(tag) or MINUTES.fullmatch(tag):
            continue
        first = cell.source.strip().split("\n")[0]
        raise CourseError(
            f"{document.relative(document.source)}: the cell '{first}' has the tag '{tag}'. A tag "
            "must be the ID of a slide such as N12, its time such as 3min, or one of "
            f"{', '.join(sorted(TAGS))}"
        )


def _add_notes(document, cells, notes, tags):
    """Store speaker notes in the cell that begins their slide."""
    begins = next((cell for cell in reversed(cells) if slide_heading(cell)), None)
    others = [tag for tag in tags if tag != "notes"]
    where = document.relative(document.source)
    if others:
        first = notes.strip().split("\n")[0]
        raise CourseError(
            f"{where}: the speaker notes '{first}' must have only the tag 'notes', got "
            f"'{others[0]}' too. Remove it"
        )
    if begins is None:
        raise CourseError(
            f"{where}: speaker notes must follow their slide, but these come before the first one. "
            "Move them after its title"
        )
    begins.metadata["notes"] = "\n\n".join(filter(None, [notes_of(begins), notes]))
