"""Turn a lecture's notebook into its slides, one HTML file that needs no network."""

import base64
import re
import unicodedata
from pathlib import Path

from coursekit.build.notebooks import differences, executed
from coursekit.build.questions import in_deck, parted, waiting
from coursekit.build.text import need, notes_of, slides, tags_of
from tinyattn.course.project import CourseError, write_text
from tinyattn.progress import MIME

FOLDER = Path(__file__).parent  # the template, its style and its scripts
KATEX = "vendor/katex"
ACCENTS = {"\N{COMBINING MACRON}": "bar", "\N{COMBINING CIRCUMFLEX ACCENT}": "hat"}


def build_deck(document, *, core=False, notes=True, path=None):
    """Write the deck of a lecture from its built notebook and return the path.

    With `core`, the deck is written to a separate file, without the slides that are tagged
    `optional`. `notes` includes the lecturer's notes. `path` is the file of the deck, if it should
    not be in build/decks.

    Raises CourseError for homework, for a notebook that is not built, and for one that no longer
    agrees with its text (if the text can be read).
    """
    if document.is_homework:
        lecture = document.number.removeprefix("hw")
        raise CourseError(
            f"{document.number} is homework, and only lectures have slides. Did you mean lecture "
            f"{lecture}?"
        )
    cells = executed(document)
    if _stale(document):
        raise CourseError(
            f"{document.relative(document.notebook)} is older than its text. Run: tinyattn build "
            f"{document.number}"
        )
    if path is None:
        path = document.deck.with_stem(f"{document.deck.stem}_core") if core else document.deck
    write_text(path, render(cells, document, core=core, notes=notes))
    return path


def render(cells, document, *, core=False, notes=True):
    """Return the HTML of the deck of an executed notebook's cells, with options of `build_deck`."""
    nbconvert = need("nbconvert", "class")
    setting_css, setting_js = formulas()
    # only the filters of nbconvert's own template are used
    environment = nbconvert.HTMLExporter().environment
    highlight = nbconvert.filters.Highlight2HTML(pygments_lexer="python")
    environment.filters.update(
        svg_uri=_svg_uri,
        is_drawing=_is_drawing,
        markdown2html=_markdown,
        highlight_code=lambda code: accents(highlight(code)),
        ansi2html=lambda text: accents(nbconvert.filters.ansi2html(text)),
    )
    template = environment.from_string((FOLDER / "deck.html.j2").read_text(encoding="utf-8"))
    chosen = [slide for slide in slides(cells) if not (core and slide.optional)]
    pages = [page for page in map(_page, chosen) if page]
    if not notes:
        pages = [page | {"notes": ""} for page in pages]
    return template.render(
        deck={
            "title": pages[0]["plain"] if pages else document.name,
            "slides": pages,
            "css": setting_css + _css("deck.css"),
            "js": setting_js + _js("deck.js"),
        }
    )


def formulas():
    """Return (CSS, JavaScript) that typeset the formulas of a page without any network."""
    scripts = (_js(f"{KATEX}/{name}.min.js") for name in ("katex", "auto-render"))
    return _css(f"{KATEX}/katex.min.css"), "".join(scripts)


def _js(name):
    code = (FOLDER / name).read_text(encoding="utf-8")
    return code.replace("</script", "<\\/script") + "\n"


def _page(slide):
    """Return the data of a slide for the template, or None if the deck shows nothing of it."""
    blocks = _blocks(slide)
    if not in_deck(slide):
        return None
    maps = [block["output"] for block in blocks if _is_map(block)]
    return {
        "heading": f"{'#' * slide.level} {slide.title}" if slide.title else "",
        "plain": re.sub(r"[*`$]", "", slide.title),
        "level": slide.level,
        "minutes": slide.minutes,
        "optional": slide.optional,
        "ids": slide.ids,
        "map": maps[0]["data"]["image/svg+xml"] if maps else "",
        "blocks": [block for block in blocks if not _is_map(block)],
        "notes": "\n\n".join(filter(None, map(notes_of, slide.cells))),
    }


def _blocks(slide):
    """Return the blocks of a page: texts, codes and outputs, each with the key press that shows it.

    Blocks of step 0 are visible from the start. A text is cut after each question that ends a
    paragraph. A waiting cell shows its code first, and its output at the next key press.
    """
    blocks, step = [], 0
    for cell, waits in waiting(slide):
        for kind, shown in _parts(cell, slide):
            parts = parted(shown) if kind == "text" and slide.level > 1 else [shown]
            for number, part in enumerate(parts):
                step += waits or number > 0
                at = step if waits or number > 0 else 0
                pieces = part if kind == "outputs" else [part]
                name = "output" if kind == "outputs" else kind
                blocks += [{"kind": name, name: piece, "step": at} for piece in pieces]
    return blocks


def _parts(cell, slide):
    """Return (kind, content in the deck) for each part of a cell that is not empty."""
    tags = tags_of(cell)
    if cell["cell_type"] == "markdown":
        text = cell["source"]
        # the heading appears above the columns, so it is removed from the cell's text
        if slide.title and cell is slide.cells[0]:
            text = text.partition("\n")[2].strip()
        return [("text", text)] if text else []
    code = re.sub(r"\n{3,}", "\n\n", cell["source"])  # a page has no room for two blank lines
    parts = [] if "hide-code" in tags else [("code", code)]
    outputs = [] if "hide-output" in tags else _outputs(cell)
    return parts + ([("outputs", outputs)] if outputs else [])


def _outputs(cell):
    """Return the outputs of a cell that the deck shows, without the progress of loops."""
    return [_joined(o) for o in cell.get("outputs", []) if MIME not in o.get("data", {})]


def _joined(output):
    """Return the output with its texts joined, because a file may store them as lists of lines."""
    join = lambda text: "".join(text) if isinstance(text, list) else text
    joined = dict(output)
    if "text" in joined:
        joined["text"] = join(joined["text"])
    if "data" in joined:
        joined["data"] = {
            k: join(v) if isinstance(v, list) else v for k, v in joined["data"].items()
        }
        if 'class="ta-claim"' in joined["data"].get("text/html", ""):
            joined["data"]["text/html"] = _numbers_whole(joined["data"]["text/html"])
    return joined


def _numbers_whole(page):
    """Return HTML in which no line ends within 6e-16 or 0.74 ± 0.05."""
    page = re.sub(r" ± (?=\d)", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}", page)
    return re.sub(r"\d[\d.]*e-\d+", r'<span style="white-space:nowrap">\g<0></span>', page)


def _markdown(source):
    """Return HTML of Markdown, with formulas unchanged and without links on headings.

    No line ends between the letter of an offered answer, as in "A) yes", and the answer.
    """
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    renderer = IPythonRenderer(escape=False, exclude_anchor_links=True)
    source = re.sub(r"(?<![\w(])([A-E]\)) (?=\S)", "\\1\N{NO-BREAK SPACE}", source)
    html = MarkdownWithMath(renderer=renderer).render(source)
    return re.sub(r"<code.*?</code>", lambda match: accents(match[0]), html, flags=re.DOTALL)


def accents(html):
    """Return code in which the style sheet draws the accents of formulas, as in x̄.

    Most fonts for code contain only ready-made pairs like ȳ, and draw any other accent next to its
    letter.
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
    # The drawing is embedded as an image, because the ids of two inline drawings would clash.
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _is_drawing(svg):
    """Return whether an output is a drawing of the course.

    Such a drawing has no ids, and builds up in steps only if it is inline.
    """
    return bool(re.match(r'<svg [^>]*class="drawing', svg))


def _is_map(block):
    """Return whether a block is a small map of a drawing, which is shown next to the title."""
    svg = block.get("output", {}).get("data", {}).get("image/svg+xml", "")
    return bool(re.match(r'<svg [^>]*class="drawing map"', svg))


def _css(name):
    """Return a style sheet with its fonts inside, only as WOFF2."""
    path = FOLDER / name
    css = path.read_text(encoding="utf-8")
    css = re.sub(r',url\([^)]+\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)', "", css)

    def inline(match):
        data = base64.b64encode((path.parent / match[1]).read_bytes()).decode()
        return f"url(data:font/woff2;base64,{data})"

    return re.sub(r"url\(([^):]+\.woff2)\)", inline, css) + "\n"


def _stale(document):
    """Return True if the text can be read here and differs from the notebook."""
    try:
        return bool(differences(document))
    except ImportError:
        return False
