"""Write the table of contents of the course, a notebook that links every lecture, slide and claim.

It is generated only from the notebooks, the ledger and the drawings, so nothing in it is written
twice.
"""

import html
import re
from pathlib import Path
from urllib.parse import quote

from coursekit.build.lint import claims_in
from coursekit.build.notebooks import to_json
from coursekit.build.text import assemble, need, read_notebook, slides
from tinyattn.course import claims
from tinyattn.course.project import LEDGER, homework, lectures, write_text

INDEX = Path("notebooks") / "index.ipynb"
FIGURES = "lectures/figures"
SOURCES = {
    "N": "J. Ngadiuba",
    "K": "J. Kieseler",
    "KB": "J. Kieseler, backup",
    "H": "handwritten notes",
    "S": "notes on sets",
}


def write_index(root):
    """Write notebooks/index.ipynb and return its path."""
    write_text(root / INDEX, index(root))
    return root / INDEX


def index(root):
    """Return the text of notebooks/index.ipynb, without lectures that are not built yet."""
    new_cell = need("nbformat").v4.new_markdown_cell
    built = {d: slides(read_notebook(d)) for d in lectures(root) if d.notebook.is_file()}
    parts = [_opening(), _lectures(root, built), _gallery(root, built), _slides(built)]
    parts.append(_claims(root, built))
    return to_json(assemble("index", [new_cell(part) for part in parts]))


WHERE = (  # in the workbook, `coursekit/student/workbook.py` replaces this sentence
    "Open the copy that you may write in with `tinyattn class 04`; the notebooks here stay as they "
    "are."
)


def _opening():
    return (
        "# The course on one page\n\n"
        "Lectures in their order, each built on those before it; then its drawings, every slide "
        "that it mirrors, and every claim that was tried, with links to the place where it runs.\n"
        f"\n{WHERE}"
    )


def _lectures(root, built):
    tasks = {d.number: d for d in homework(root)}
    rows = [
        "## Lectures",
        "",
        "| | lecture | the question it answers | homework |",
        "|---|---|---|---|",
    ]
    for document, parts in built.items():
        task = tasks.get(f"hw{document.number}")
        link = f"[hw{document.number}](homework/{task.notebook.name})" if task else ""
        rows.append(
            f"| {document.number} | [{parts[0].title}]({document.notebook.name}) "
            f"| {question(parts)} | {link} |"
        )
    return "\n".join(rows)


def question(parts):
    """Return the bold question on the first slides of a lecture."""
    text = "\n".join(cell["source"] for slide in parts[:2] for cell in slide.cells)
    found = re.search(r"\*\*([^*]*\?)\*\*", text)
    return found[1] if found else ""


def _gallery(root, built):
    """Return all drawings, each with a link to the slide that shows it completely."""
    shown = {}
    for document, parts in built.items():
        for slide in parts:
            for cell in slide.cells:
                for name in re.findall(r'course\.drawing\("([a-z_]+)"', cell["source"]):
                    shown.setdefault(name, (document, slide))
    cells = []
    for name, (document, slide) in shown.items():
        svg = (root / FIGURES / f"{name}.svg").read_text(encoding="utf-8")
        alt = re.search(r'aria-label="([^"]*)"', svg)[1]
        cells.append(
            f'<td style="text-align:left;vertical-align:top"><a href="{_address(document, slide)}">'
            f'<img src="../{FIGURES}/{name}.svg" width="320" alt="{alt}"></a><br>'
            f"{document.number} {html.escape(_plain(slide.title))}</td>"
        )
    rows = ["<tr>" + "".join(cells[i : i + 3]) + "</tr>" for i in range(0, len(cells), 3)]
    return "## Drawings\n\n<table>\n" + "\n".join(rows) + "\n</table>"


def _slides(built):
    sources = "; ".join(f"{letters}: {source}" for letters, source in SOURCES.items())
    lines = ["## Slides", "", f"Every slide of the originals ({sources}) and where it runs.", ""]
    for document, parts in built.items():
        links = [f"[{i}]({_address(document, slide)})" for slide in parts for i in slide.ids]
        lines.append(f"- **{document.number}** " + " · ".join(links))
    return "\n".join(lines)


def _claims(root, built):
    ledger = claims.read_ledger(root / LEDGER)
    tried = {
        number: (document, slide)
        for document, parts in built.items()
        for slide in parts
        for number in claims_in(slide.cells)
    }
    verdicts = [ledger[number]["verdict"] for number in sorted(tried)]
    counts = ", ".join(f"{verdicts.count(v)} {v}" for v in claims.VERDICTS if v in verdicts)
    rows = ["## Claims", "", f"{len(verdicts)} claims of the slides were tried: {counts}.", ""]
    rows += ["| | claim | verdict | |", "|---|---|---|---|"]
    for number in sorted(tried):
        entry, (document, slide) = ledger[number], tried[number]
        words = entry["claim"].replace("|", "\\|")
        rows.append(
            f"| {number} | {words} | {claims.SYMBOLS[entry['verdict']]} {entry['verdict']} "
            f"| [{document.number}]({_address(document, slide)}) |"
        )
    return "\n".join(rows)


def _address(document, slide):
    """Return a link to the heading of a slide, in JupyterLab's form."""
    return f"{document.notebook.name}#{quote(_plain(slide.title).strip().replace(' ', '-'))}"


def _plain(title):
    return re.sub(r"[*`$\\]", "", title)
