"""Pages generated from all lectures: glossary, references, and the plan of minutes.

A lecture ends with its goals, its terms and its references. So a term or a paper is written only
once, in its lecture, and these pages collect it from there.
"""

import re
from pathlib import Path

from coursekit.build.text import read_notebook, read_source, slides, tags_of
from tinyattn.course.project import CourseError, lectures, write_text

GLOSSARY = Path("lectures") / "GLOSSARY.md"
REFERENCES = Path("lectures") / "REFERENCES.md"
TEACHING = Path("lectures") / "TEACHING.md"
# These lectures are not yet ready for other teachers, so the pages leave them out. A test makes
# sure that no lecture is added.
NOT_YET = frozenset()
BEGIN, END = "<!-- minutes -->", "<!-- end of minutes -->"

GOALS, WORDS, READ = "After this lecture you can", "Words", "Read"
TERM = re.compile(r"- \*\*(?P<term>.+?)\*\*(?P<letter>[^:]*): (?P<meaning>.+?)\.?")
PAPER = re.compile(
    r"- (?P<authors>.+) (?P<year>\d{4}), \*(?P<title>.+?)\*, "
    r"\[(?P<label>.+?)\]\((?P<link>https?://\S+)\): (?P<use>.+)"
)


def ending(cells):
    """Return {heading: lines} of the parts that follow a lecture's last slide in its notebook."""
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
    """Write all pages that are generated from the lectures."""
    for path, text in pages(root).items():
        write_text(root / path, text)


def old_pages(root):
    """Return one line for each page that is older than the lectures it is generated from."""
    for path, text in pages(root).items():
        there = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
        if there != text:
            yield f"{path.as_posix()} is out of date; run: tinyattn build"


def pages(root):
    """Return {path: text} of the pages, without lectures that are not built or not ready."""
    ready = [d for d in lectures(root) if d.number not in NOT_YET and d.notebook.is_file()]
    cells = {document: read_notebook(document) for document in ready}
    cells = {d: of_one for d, of_one in cells.items() if "guest" not in tags_of(of_one[0])}
    made = {GLOSSARY: glossary(cells), REFERENCES: references(cells)}
    if (root / TEACHING).is_file():
        made[TEACHING] = _with_minutes((root / TEACHING).read_text(encoding="utf-8"), cells)
    return made


def glossary(cells):
    """Return all terms in alphabetical order, each with the lectures that explain it.

    Raises CourseError if a line in a lecture's list of terms is not '- **word**: what it means.'
    """
    terms = {}
    for document, match in _lines(cells, WORDS, TERM, "- **word**: what it means."):
        name = f"**{match['term']}**{match['letter']}"
        _, meanings = terms.setdefault(match["term"].lower(), (name, {}))
        meanings.setdefault(match["meaning"], []).append(_link(document))
    lines = [
        "# Glossary",
        "",
        "This page explains the terms of the course, and each entry links to the lecture that "
        "introduces the term. `tinyattn build` makes the page from the lists at the ends of the "
        "lectures, so change an entry there.",
    ]
    letter = ""
    for name, meanings in sorted(terms.values(), key=lambda term: _sorted_as(term[0])):
        first = _sorted_as(name)[0].upper()
        if first != letter:
            lines += ["", f"## {first}", ""]
        letter = first
        explained = [f"{words} ({', '.join(links)})." for words, links in meanings.items()]
        if len(explained) == 1:
            lines.append(f"- {name}: {explained[0]}")
        else:
            lines += [f"- {name}:", *(f"  - {meaning}" for meaning in explained)]
    return "\n".join(lines) + "\n"


def references(cells):
    """Return all papers that the lectures name, sorted by first author, each with its use.

    Raises CourseError if two lectures write the same paper in different ways, or if a line in a
    lecture's list of references does not have the form of an entry.
    """
    papers, first = {}, {}
    form = "- Authors 2017, *Title*, [arXiv:1706.03762](https://...): what for."
    for document, match in _lines(cells, READ, PAPER, form):
        head = f"{match['authors']} {match['year']}, *{match['title']}*"
        paper = papers.setdefault(match["link"], [head, match["label"]])
        first.setdefault(match["link"], document.number)
        if paper[0] != head:
            raise CourseError(
                f"{match['link']} is '{paper[0]}' in lecture {first[match['link']]} and '{head}' "
                f"in lecture {document.number}. Write it the same way in both"
            )
        paper.append(f"{_link(document)}: {match['use'].rstrip('.')}")
    lines = [
        "# References",
        "",
        "This page lists the papers that the lectures cite, and the reason for each citation. "
        "`tinyattn build` makes the page from the lists at the ends of the lectures, so change an "
        "entry there.",
        "",
    ]
    for link, (head, label, *uses) in sorted(papers.items(), key=lambda p: _sorted_as(p[1][0])):
        lines.append(f"- {head}, [{label}]({link}). {'. '.join(uses)}.")
    return "\n".join(lines) + "\n"


def minutes(cells):
    """Return the minutes of all slides together, for (short version, whole lecture)."""
    parts = slides(cells)
    return sum(s.minutes for s in parts if not s.optional), sum(s.minutes for s in parts)


def teaching_page(document):
    """Return the path of a lecture's page for the lecturer."""
    return document.root / TEACHING.parent / "teaching" / f"{document.number}.md"


def _with_minutes(text, cells):
    """Return the text of the lecturer's page with the plan of all lectures between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise CourseError(
            f"{TEACHING.as_posix()} must contain the lines '{BEGIN}' and '{END}', in this order. "
            "Add both where the table of minutes belongs"
        )
    return before + begin + "\n".join(["", *_rows_of_plan(cells), ""]) + end + after


def plan(root):
    """Return the plan of minutes of the current texts of the lectures, without writing it."""
    there = [d for d in lectures(root) if d.source.is_file()]
    return "\n".join(_rows_of_plan({d: read_source(d).cells for d in there}))


def _rows_of_plan(cells):
    rows = ["| | lecture | slides (short) | minutes (short) | slides (full) | minutes (full) |"]
    rows.append("|---|---|---|---|---|---|")
    for document, of_one in cells.items():
        parts = slides(of_one)
        core, whole = minutes(of_one)
        short = len([slide for slide in parts if not slide.optional])
        name = f"[{document.number}](teaching/{teaching_page(document).name})"
        rows.append(f"| {name} | {parts[0].title} | {short} | {core} | {len(parts)} | {whole} |")
    return rows


def _lines(cells, heading, form, example):
    """Return (lecture, match) for each line under this heading at a lecture's end."""
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
    """Return the key that sorts words as in a dictionary, by their letters only and without
    case.
    """
    return re.sub(r"[^\w\s]|^\s+", "", words).lower()
