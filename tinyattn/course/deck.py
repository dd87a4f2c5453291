"""From a lecture's notebook to its slides: one HTML file that needs no network."""

import base64
import re
import unicodedata

from tinyattn.course.build import differences
from tinyattn.course.progress import MIME
from tinyattn.course.project import CourseError, write_text
from tinyattn.course.text import need, read_notebook, slides, tags_of

KATEX = "vendor/katex"
ACCENTS = {"\N{COMBINING MACRON}": "bar", "\N{COMBINING CIRCUMFLEX ACCENT}": "hat"}


def build_deck(document):
    """Write the deck of a lecture from its built notebook; returns the path.

    Raises CourseError for homework, for a notebook that is not built, and for one that no longer
    agrees with its text (where the text can be read).
    """
    if document.is_homework:
        raise CourseError(f"{document.number} is homework; only lectures have slides")
    cells = read_notebook(document)
    if _stale(document):
        raise CourseError(
            f"{document.relative(document.notebook)} is older than its text; "
            f"run: tinyattn build {document.number}"
        )
    write_text(document.deck, render(cells, document))
    return document.deck


def render(cells, document):
    """The HTML of the deck, from the cells of an executed notebook."""
    nbconvert = need("nbconvert", "class")
    folder = document.root / "lectures" / "_deck"
    # nbconvert's own template is left aside: its filters are what is wanted
    environment = nbconvert.HTMLExporter().environment
    highlight = nbconvert.filters.Highlight2HTML(pygments_lexer="python")
    environment.filters.update(
        svg_uri=_svg_uri,
        is_drawing=_is_drawing,
        markdown2html=_markdown,
        highlight_code=lambda code: accents(highlight(code)),
        ansi2html=lambda text: accents(nbconvert.filters.ansi2html(text)),
    )
    template = environment.from_string((folder / "deck.html.j2").read_text(encoding="utf-8"))
    pages = [page for page in map(_page, slides(cells)) if page]
    return template.render(
        deck={
            "title": pages[0]["plain"] if pages else document.name,
            "slides": pages,
            "css": _css(folder, f"{KATEX}/katex.min.css") + _css(folder, "deck.css"),
            "js": "\n".join(
                (folder / name).read_text(encoding="utf-8").replace("</script", "<\\/script")
                for name in (
                    f"{KATEX}/katex.min.js",
                    f"{KATEX}/auto-render.min.js",
                    "deck.js",
                )
            ),
        }
    )


def _page(slide):
    """What the template needs of a slide, or None if nothing of it is in the deck."""
    shown = [cell for cell in slide.cells if "notebook-only" not in tags_of(cell)]
    if not shown:
        return None
    notes = [cell["source"] for cell in shown if "notes" in tags_of(cell)]
    cells = [_cell(cell) for cell in shown if "notes" not in tags_of(cell)]
    maps = [o for cell in cells for o in cell["outputs"] if _is_map(o)]
    for cell in cells:
        cell["outputs"] = [o for o in cell["outputs"] if not _is_map(o)]
    heading = f"{'#' * slide.level} {slide.title}"
    if slide.title and cells:
        # the heading stands above the columns, so it is taken out of the cell's text
        cells[0]["text"] = cells[0]["text"].partition("\n")[2].strip()
    return {
        "heading": heading if slide.title else "",
        "plain": re.sub(r"[*`$]", "", slide.title),
        "level": slide.level,
        "ids": slide.ids,
        "map": maps[0]["data"]["image/svg+xml"] if maps else "",
        "cells": cells,
        "notes": "\n\n".join(notes).replace("*Speaker notes.* ", ""),
    }


def _cell(cell):
    tags = tags_of(cell)
    is_code = cell["cell_type"] == "code"
    code = re.sub(r"\n{3,}", "\n\n", cell["source"])  # a page has no room for two empty lines
    return {
        "text": "" if is_code else cell["source"],
        "code": code if is_code and "hide-code" not in tags else "",
        "outputs": [] if "hide-output" in tags else _outputs(cell),
        "fragment": "fragment" in tags,
    }


def _outputs(cell):
    """What a cell shows in the deck: progress of loops is of no interest there."""
    return [_joined(o) for o in cell.get("outputs", []) if MIME not in o.get("data", {})]


def _joined(output):
    """The output with texts in one piece; the file may have them as lists of lines."""
    join = lambda text: "".join(text) if isinstance(text, list) else text
    joined = dict(output)
    if "text" in joined:
        joined["text"] = join(joined["text"])
    if "data" in joined:
        joined["data"] = {
            k: join(v) if isinstance(v, list) else v for k, v in joined["data"].items()
        }
    return joined


def _markdown(source):
    """HTML of Markdown, formulas left as they are, without links on headings."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    renderer = IPythonRenderer(escape=False, exclude_anchor_links=True)
    html = MarkdownWithMath(renderer=renderer).render(source)
    return re.sub(r"<code.*?</code>", lambda match: accents(match[0]), html, flags=re.DOTALL)


def accents(html):
    """Code with the accents of formulas, as in x̄, drawn by the style sheet.

    Most fonts for code set such an accent beside its letter, since they know only ready-made
    pairs like ȳ.
    """
    split = lambda letter: unicodedata.normalize("NFD", letter)
    pairs = "".join(split(c) if split(c)[-1] in ACCENTS else c for c in html)
    return re.sub(
        f"([a-zA-Zα-ωΑ-Ω])([{''.join(ACCENTS)}])",
        lambda match: f'<span class="{_accent_class(*match.groups())}">{match[1]}</span>',
        pairs,
    )


def _accent_class(letter, accent):
    tall = " tall" if letter.isupper() or letter in "bdfhkltβδζθλξ" else ""
    return ACCENTS[accent] + tall


def _svg_uri(svg):
    # as a picture, not inline: the ids inside two drawings on one page would mix
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _is_drawing(svg):
    """Whether it is one of the course's drawings: those have no ids, and build up in steps, which
    works only inline."""
    return bool(re.match(r'<svg [^>]*class="drawing', svg))


def _is_map(output):
    """Whether an output is a small map of a drawing, which stands beside the title."""
    svg = output.get("data", {}).get("image/svg+xml", "")
    return bool(re.match(r'<svg [^>]*class="drawing map"', svg))


def _css(folder, name):
    """A style sheet with its fonts inside, as WOFF2 only."""
    path = folder / name
    css = path.read_text(encoding="utf-8")
    css = re.sub(r',url\([^)]+\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)', "", css)

    def inline(match):
        data = base64.b64encode((path.parent / match[1]).read_bytes()).decode()
        return f"url(data:font/woff2;base64,{data})"

    return re.sub(r"url\(([^):]+\.woff2)\)", inline, css) + "\n"


def _stale(document):
    """True if the text can be read here and says something else than the notebook."""
    try:
        return bool(differences(document))
    except ImportError:
        return False
