"""Pages over all lectures that are made from them: glossary, references, and the plan of minutes.

A lecture ends with its goals, its words and what to read. So a word or a paper is written once,
in its lecture, and stands here because it stands there.
"""

import re
from pathlib import Path

from coursekit.build.text import read_notebook, slides, tags_of
from tinyattn.course.project import CourseError, lectures, write_text

GLOSSARY = Path("lectures") / "GLOSSARY.md"
REFERENCES = Path("lectures") / "REFERENCES.md"
TEACHING = Path("lectures") / "TEACHING.md"
# lectures that nobody but their author can teach yet, and that these pages leave out; a test sees
# to it that this set only becomes smaller
NOT_YET = frozenset()
BEGIN, END = "<!-- minutes -->", "<!-- end of minutes -->"

GOALS, WORDS, READ = "After this lecture you can", "Words", "Read"
TERM = re.compile(r"- \*\*(?P<term>.+?)\*\*(?P<letter>[^:]*): (?P<meaning>.+?)\.?")
PAPER = re.compile(
    r"- (?P<authors>.+) (?P<year>\d{4}), \*(?P<title>.+?)\*, "
    r"\[(?P<label>.+?)\]\((?P<link>https?://\S+)\): (?P<use>.+)"
)


def ending(cells):
    """{heading: lines} of the parts that follow a lecture's last slide in its notebook."""
    found, lines = {}, []
    for cell in slides(cells)[-1].cells:
        if cell["cell_type"] == "markdown" and "notebook-only" in tags_of(cell):
            for line in cell["source"].split("\n"):
                heading = re.fullmatch(r"### (.+)", line)
                if heading:
                    lines = found.setdefault(heading[1], [])
                elif line.strip():
                    lines.append(line)
    return found


def write_pages(root):
    """Write all pages that are made from the lectures."""
    for path, text in pages(root).items():
        write_text(root / path, text)


def old_pages(root):
    """One line for each page that is older than the lectures it is made from."""
    for path, text in pages(root).items():
        there = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
        if there != text:
            yield f"{path.as_posix()} is old; run: tinyattn build"


def pages(root):
    """{path: text} of the pages. Lectures that are not built or not ready are left out."""
    ready = [d for d in lectures(root) if d.number not in NOT_YET and d.notebook.is_file()]
    cells = {document: read_notebook(document) for document in ready}
    made = {GLOSSARY: glossary(cells), REFERENCES: references(cells)}
    if (root / TEACHING).is_file():
        made[TEACHING] = _with_minutes((root / TEACHING).read_text(encoding="utf-8"), cells)
    return made


def glossary(cells):
    """All words of the lectures in alphabetical order, each with the lectures that explain it."""
    terms = {}
    for document, match in _lines(cells, WORDS, TERM, "- **word**: what it means."):
        name = f"**{match['term']}**{match['letter']}"
        _, meanings = terms.setdefault(match["term"].lower(), (name, {}))
        meanings.setdefault(match["meaning"], []).append(_link(document))
    lines = [
        "# Glossary",
        "",
        "The words of the course, each with the lecture that explains it. `tinyattn build` makes "
        "this page from the lists at the lectures' ends: change them there.",
    ]
    letter = ""
    for name, meanings in sorted(terms.values(), key=lambda term: _sorted_as(term[0])):
        first = _sorted_as(name)[0].upper()
        if first != letter:
            lines += ["", f"## {first}", ""]
        letter = first
        explained = [f"{words} ({', '.join(links)})" for words, links in meanings.items()]
        lines.append(f"- {name}: {'; '.join(explained)}.")
    return "\n".join(lines) + "\n"


def references(cells):
    """All papers that the lectures name, by their first author, with what each is named for.

    Raises CourseError if two lectures write the same paper in two ways.
    """
    papers = {}
    form = "- Authors 2017, *Title*, [arXiv:1706.03762](https://...): what for."
    for document, match in _lines(cells, READ, PAPER, form):
        head = f"{match['authors']} {match['year']}, *{match['title']}*"
        paper = papers.setdefault(match["link"], [head, match["label"]])
        if paper[0] != head:
            raise CourseError(
                f"{match['link']} is '{paper[0]}' in one lecture and '{head}' in lecture "
                f"{document.number}; write it the same way in both"
            )
        paper.append(f"{_link(document)}: {match['use'].rstrip('.')}")
    lines = [
        "# References",
        "",
        "The papers that the lectures name, and what each lecture names them for. `tinyattn build` "
        "makes this page from the lists at the lectures' ends: change them there.",
        "",
    ]
    for link, (head, label, *uses) in sorted(papers.items(), key=lambda p: _sorted_as(p[1][0])):
        lines.append(f"- {head}, [{label}]({link}). {'; '.join(uses)}.")
    return "\n".join(lines) + "\n"


def minutes(cells):
    """(of the short way, of the long way) of a lecture: the sums of its slides' minutes."""
    parts = slides(cells)
    return sum(s.minutes for s in parts if not s.optional), sum(s.minutes for s in parts)


def teaching_page(document):
    """The path of a lecture's page for the lecturer."""
    return document.root / TEACHING.parent / "teaching" / f"{document.number}.md"


def _with_minutes(text, cells):
    """The text of the lecturer's page with the plan of all lectures between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise CourseError(
            f"{TEACHING.as_posix()} has no lines '{BEGIN}' and '{END}' for the minutes"
        )
    rows = ["", "| | lecture | slides, short way | minutes, short way | slides | minutes |"]
    rows.append("|---|---|---|---|---|---|")
    for document, of_one in cells.items():
        parts = slides(of_one)
        core, whole = minutes(of_one)
        short = len([slide for slide in parts if not slide.optional])
        name = f"[{document.number}](teaching/{teaching_page(document).name})"
        rows.append(f"| {name} | {parts[0].title} | {short} | {core} | {len(parts)} | {whole} |")
    return before + begin + "\n".join([*rows, ""]) + end + after


def _lines(cells, heading, form, example):
    """(lecture, match) for each line that stands under this heading at a lecture's end."""
    for document, of_one in cells.items():
        for line in ending(of_one).get(heading, []):
            match = form.fullmatch(line)
            if match is None:
                raise CourseError(
                    f"{document.relative(document.source)}, '{heading}': the line '{line}' is not "
                    f"of the form '{example}'"
                )
            yield document, match


def _link(document):
    return f"[{document.number}](../notebooks/{document.notebook.name})"


def _sorted_as(words):
    """The order of a dictionary: letters alone count, large and small alike."""
    return re.sub(r"[^\w\s]|^\s+", "", words).lower()
