"""Turn the notebook of a lecture or homework into the source of its page.

The outputs of the committed notebook are kept, with images as separate files. Code that only draws
is folded, and so are the answers of questions.
"""

import base64
import html
import json
import re
import struct

from coursekit.build.lint import claims_in
from coursekit.build.notebooks import SHOWN_DPI
from coursekit.build.text import METADATA, read_notebook, slide_heading, tags_of
from coursekit.site.addresses import page_of, relative, slug
from tinyattn.course.project import write_text
from tinyattn.progress import MIME

PICTURES = "pictures"  # the folder of images on the site


def write_page(document, sources, extra, ways, copy):
    """Write the source of a page into `sources`, and images and the student's copy into `extra`.

    `ways` are the buttons under the title, [(words, address from the top of the site)], and `copy`
    is the file of the student's copy.
    """
    here = page_of(document)
    names, title, cells = anchors(document), "", []
    inside = False  # True below a heading of a part, which is one level lower than in the notebook
    for position, cell in enumerate(read_notebook(document)):
        heading = slide_heading(cell) if not document.is_homework else None
        if heading:
            title = heading[1]
            inside = inside or (heading[0] == 1 and position > 0)
        if cell["cell_type"] == "markdown":
            source = cell["source"]
            if position:
                source = lowered(source, 1 if inside else 0)
            if cell["id"] in names:
                source = f"({names[cell['id']]})=\n{source}"
            if position == 0:
                source = with_ways(source, ways, here)
            cells.append(_text(cell, source))
        else:
            cells.append(_code(cell, title, extra, here))
    page = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    write_text(sources / f"{here}.ipynb", json.dumps(page, indent=1, ensure_ascii=False) + "\n")
    write_text(extra / "notebooks" / document.notebook.name, copy)


def anchors(document):
    """Return {cell: name} of the cells that begin a slide, for links from other pages."""
    if document.is_homework:
        return {}
    found, taken = {}, set()
    for cell in read_notebook(document):
        heading = slide_heading(cell)
        if heading:
            name = f"l{document.number}-{slug(heading[1])}"
            while name in taken:
                name += "-again"
            taken.add(name)
            found[cell["id"]] = name
    return found


def lowered(text, by):
    """Lower headings by `by` levels. The highest level is never used, because it is the page's
    title.
    """

    def lower(match):
        level = len(match[1])
        return "#" * (max(level + by, 2) if level > 1 else 2) + " "

    fences = re.split(r"(^```.*?^```)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith("```") else re.sub(r"^(#{1,5}) +", lower, part, flags=re.MULTILINE)
        for part in fences
    )


def with_ways(source, ways, here):
    """Return the text of the first cell with the buttons below its title."""
    links = "\n".join(
        f'<a href="{_link(address, here)}"{_download(address)}>{html.escape(words)}</a>'
        for words, address in ways
    )
    lines = source.split("\n")
    place = next((i for i, line in enumerate(lines) if line.startswith("# ")), -1) + 1
    lines.insert(place, f'\n<nav class="ways" aria-label="also as">\n{links}\n</nav>\n')
    return "\n".join(lines)


def _link(address, here):
    return address if address.startswith("https://") else relative(address, here)


def _download(address):
    return " download" if address.startswith("notebooks/") else ""


def _text(cell, source):
    return {"cell_type": "markdown", "id": cell["id"], "metadata": {}, "source": source}


def _code(cell, title, extra, here):
    hidden = cell["metadata"].get("jupyter", {})
    tags = [f"hide-{part}" for part in ("input", "output") if _is_hidden(part, hidden)]
    if "hide-output" in tags_of(cell):
        tags.append("hide-output")
    outputs = [
        _output(output, f"{cell['id']}-{number}", title, extra, here)
        for number, output in enumerate(cell["outputs"])
        if MIME not in output.get("data", {})
    ]
    found = claims_in([cell])
    if found and outputs:
        outputs.insert(0, _html("".join(f'<span id="{number}"></span>' for number in found)))
    return {
        "cell_type": "code",
        "id": cell["id"],
        "metadata": {"tags": sorted(set(tags))},
        "execution_count": None,
        "source": cell["source"],
        "outputs": outputs,
    }


def _is_hidden(part, hidden):
    return hidden.get("source_hidden" if part == "input" else "outputs_hidden", False)


def _output(output, name, title, extra, here):
    """Return an output as the page shows it, with an image as a file and all else unchanged."""
    data = output.get("data", {})
    if "image/png" in data:
        png = base64.b64decode("".join(data["image/png"]))
        size = output.get("metadata", {}).get("image/png") or _size(png)
        return _picture(png, f"{name}.png", size, f"Picture: {title}", extra, here)
    if "image/svg+xml" in data:
        svg = "".join(data["image/svg+xml"])
        label = re.search(r'aria-label="([^"]*)"', svg)
        box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
        size = {"width": round(float(box[1])), "height": round(float(box[2]))} if box else {}
        alt = html.unescape(label[1]) if label else f"Drawing: {title}"
        return _picture(svg.encode(), f"{name}.svg", size, alt, extra, here)
    return output


def _picture(content, name, size, alt, extra, here):
    path = extra / PICTURES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    numbers = "".join(f' {key}="{value}"' for key, value in size.items())
    kind = " drawing" if name.endswith(".svg") else ""
    address = relative(f"{PICTURES}/{name}", here)
    plain = html.escape(re.sub(r"[*`$\\]", "", alt))
    return _html(
        f'<img class="picture{kind}" src="{address}" alt="{plain}"{numbers} loading="lazy">'
    )


def _size(png):
    width, height = struct.unpack(">II", png[16:24])
    return {"width": width * SHOWN_DPI // 160, "height": height * SHOWN_DPI // 160}


def _html(code):
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {"text/html": code, "text/plain": ""},
    }
