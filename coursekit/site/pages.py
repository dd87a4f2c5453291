"""Write the pages that collect items from all lectures: drawings, claims, sources."""

import html
import inspect
import re

from coursekit.build.index import question
from coursekit.build.lint import claims_in
from coursekit.site.addresses import page_of, pages, relative, source_page
from tinyattn.course import claims
from tinyattn.course.project import LEDGER, CourseError

TEACH = "Lecturers find [notes on teaching each lecture](teaching/index.md)."
PROJECT_PICTURES = "pictures"  # `build` copies the images of texts to this folder


def home(root, template, built, anchors, tasks, students=False):
    """Return the first page, from `docs/index.md`: the tables and sections that its marks name."""
    readme = project_text(root, "README.md", "index", students)
    marks = {
        "bullets": "\n".join(re.findall(r"^- \*\*.*?(?=^- |\n\n)", _opening(readme), re.M | re.S)),
        "start": section(readme, "Start"),
        "ten lines": section(readme, "Ten lines"),
        "lectures": lectures_table(built, tasks),
        "gallery": gallery(root, built, anchors, "index"),
        "teaching": "" if students else TEACH,
    }
    return re.sub(r"<!-- (\w[\w ]*) -->", lambda m: marks[m[1]].strip(), template)


def _opening(readme):
    return readme.partition("\n## ")[0] + "\n\n"


def section(text, title):
    """Return the text below a heading of the second level."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return match[1].strip()


def lectures_table(built, tasks):
    rows = ["| | lecture | the question it answers | | |", "|---|---|---|---|---|"]
    for document, parts in built.items():
        task = tasks.get(f"hw{document.number}")
        link = f"[homework](/{page_of(task)}.ipynb)" if task else ""
        deck = f'<a href="decks/{document.name}.html">slides</a>'
        rows.append(
            f"| {document.number} | [{parts[0].title}](/{page_of(document)}.ipynb) "
            f"| {question(parts)} | {deck} | {link} |"
        )
    return "\n".join(rows)


def gallery(root, built, anchors, here):
    """Return all drawings as small images, each with a link to the slide that shows it."""
    shown = {}
    for document, parts in built.items():
        for slide in parts:
            for cell in slide.cells:
                for name in re.findall(r'course\.drawing\("([a-z_]+)"', cell["source"]):
                    shown.setdefault(name, (document, slide))
    figures = []
    for name, (document, slide) in shown.items():
        svg = (root / f"lectures/figures/{name}.svg").read_text(encoding="utf-8")
        alt = re.search(r'aria-label="([^"]*)"', svg)[1]
        anchor = anchors[document][slide.cells[0]["id"]]
        target = relative(f"{page_of(document)}.html#{anchor}", here)
        picture = relative(f"figures/{name}.svg", here)
        title = html.escape(re.sub(r"[*`$\\]", "", slide.title))
        figures.append(
            f'<a href="{target}"><img src="{picture}" alt="{alt}" width="1152" height="560" '
            f'loading="lazy"><span>{document.number} {title}</span></a>'
        )
    return '<div class="gallery">\n' + "\n".join(figures) + "\n</div>"


def claims_page(root, built, anchors):
    """Return the ledger as a table that can be filtered by verdict, lecture and words."""
    ledger = claims.read_ledger(root / LEDGER)
    tried = {
        number: document
        for document, parts in built.items()
        for slide in parts
        for number in claims_in(slide.cells)
    }
    verdicts = [ledger[number]["verdict"] for number in tried]
    buttons = "".join(
        f'<button type="button" data-verdict="{verdict}" aria-pressed="false">'
        f"{claims.SYMBOLS[verdict]} {verdict} ({verdicts.count(verdict)})</button>"
        for verdict in claims.VERDICTS
        if verdict in verdicts
    )
    lectures = "\n".join(
        f'<option value="{d.number}">{d.number} {html.escape(parts[0].title)}</option>'
        for d, parts in built.items()
        if d in tried.values()
    )
    rows = "\n".join(_claim_row(number, ledger[number], tried[number]) for number in sorted(tried))
    return f"""# Claims and verdicts

The slides make claims, and an experiment tests each of them. Its control is a second experiment,
whose result would be the same if the claim's reason were not at work. The number of a claim leads
to its experiment.

<p class="filter" id="verdicts"><button type="button" data-verdict="" aria-pressed="true">
all ({len(tried)})</button>{buttons}</p>

<p class="filter"><label>lecture <select id="lecture"><option value="">all</option>
{lectures}</select></label> <label>words <input id="words" type="search"
placeholder="softmax mask"></label> <output id="shown">{len(tried)} claims</output></p>

<div class="claims"><table><thead><tr><th></th><th>claim</th><th>verdict</th></tr></thead><tbody>
{rows}
</tbody></table></div>
"""


def _claim_row(number, entry, document):
    verdict = entry["verdict"]
    target = f"{page_of(document)}.html#{number}"
    figures = "".join(
        f"<br><small>{words} {html.escape(entry[field])}</small>"
        for field, words in (("evidence", "Found:"), ("control", "Control:"))
        if entry[field]
    )
    return (
        f'<tr data-verdict="{verdict}" data-lecture="{document.number}">'
        f'<td><a href="{target}">{number}</a><br>'
        f"<small>lecture {document.number}</small></td>"
        f"<td>{html.escape(entry['claim'])}{figures}</td>"
        f'<td style="color:{claims.COLOURS[verdict]}"><span class="verdict">'
        f"{claims.SYMBOLS[verdict]} {verdict}</span></td></tr>"
    )


def sources_table(names):
    """Return the papers that docstrings name as the source of a function, a layer or a model."""
    rows = []
    for name in names:
        doc = " ".join((inspect.getdoc(name.object) or "").split()) if name.is_callable else ""
        match = re.search(r"Source: (.*?)(?:\.(?= [A-Z])|\.?$|; slide)", doc)
        if match and re.search(r"\d{4}", match[1]):
            rows.append(f"| {match[1].replace('|', '')} | [`{name.written}`](/{name.page}.md) |")
    return "## Sources of functions, layers and models\n\n| source | |\n|---|---|\n" + (
        "\n".join(sorted(rows)) + "\n"
    )


def project_text(root, path, here, students=False):
    """Return a text of the project as a page. `students` is as in `linked`."""
    text = (root / path).read_text(encoding="utf-8")
    return linked(text, root, path, here, students)


def linked(text, root, path, here, students=False):
    """Replace links to files of the project in a text by links to the site's pages.

    Links to files that are not on the site become words, and so do links to the pages for
    lecturers on the site for students. Raises CourseError for a link to a file that does not exist.
    """
    known = pages(root, students)
    folder = (root / path).parent

    def change(match):
        words, target = match[1], match[2]
        file = target.partition("#")[0]
        if "://" in target or target.startswith(("/", "#", "mailto:")) or not file:
            return match[0]
        there = (folder / file).resolve()
        if root not in there.parents:
            return match[0]
        if not there.exists():
            raise CourseError(
                f"{path}: the link to {target} leads nowhere, because there is no file {there}"
            )
        name = there.relative_to(root).as_posix()
        if match[0].startswith("!"):
            address = relative(f"{PROJECT_PICTURES}/{there.name}", here)
            return f'<img class="picture" src="{address}" alt="{html.escape(words)}">'
        address = _site_address(root, there, name, known)
        return f'<a href="{relative(address, here)}">{_inline(words)}</a>' if address else words

    pieces = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    return "".join(
        piece if i % 2 else re.sub(r"!?\[([^\]]*)\]\(([^)\s]+)\)", change, piece)
        for i, piece in enumerate(pieces)
    )


def _inline(words):
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", words)


def _site_address(root, there, name, known):
    """Return the address of a file or folder of the project on the site, or None."""
    if name in known:
        page = known[name]
        return page if page.startswith("source/") else f"{page}.html"
    if there.suffix == ".py" and name.startswith("tinyattn/"):
        return f"{source_page(name)}.html"
    if there.is_dir() and name.startswith("tinyattn"):
        return "source/index.html"
    return None
