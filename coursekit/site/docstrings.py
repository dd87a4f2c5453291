"""Turn docstrings into Markdown: sentences, formulas, sections (Args, Returns, Raises, ...),
code.
"""

import inspect
import re
import textwrap

from coursekit.site.formulas import in_sentence

ARGUMENT = re.compile(r"^(\w[\w.]*(?:, \w+)*(?: \[[^\]]*\])?) {2,}(\S.*)$")
CODE = re.compile(
    r"^\s*(?:with |for |from |import |@|def |class |"
    r"\w+(?:\.\w+)*\(|[\w., ]+ = [\w.]+\(|\w+\.\w+ [-+]?=)"
)
# Google's section headings, which PyTorch and JAX use too.
SECTION = re.compile(r"^(Args|Shape|Returns|Raises|Note|Example|Attributes):$")
NOT_CODE = re.compile(r"[←√²₂ᵀ…π⊙σ]|\.\.T")
LEADS = r"(?:Raises|Source:|Sources:|TypeError for|ValueError for)"
# an array with its shape, such as x [B, T, d], or only a shape
SHAPE = re.compile(
    r"(?<![\w`$])((?:(?!(?:or|is|to|of|in|at|as|by|on) )(?:\w{1,2}|\w+_\w+|ids|mask|keep|out|src|"
    r"tgt|batch|index|bias|weight|points|images)²?'? )?\[[^\]\n]*\])(?![(\w])"
)
NAMED = re.compile(
    r"(?<![\w.`])((?:F|nn|ta|optim|graph|models|data|check|training|plot)\.[A-Za-z_]\w*)"
)
SPECIAL = re.compile(r"([\\*_\[\]<>$`{}~#|^])")


def markdown(docstring, link=lambda words: None, *, lead=True):
    """Return the Markdown of a docstring.

    `link` returns the address of a name in backticks, or None. With `lead`, the first paragraph
    has larger letters.
    """
    text = inspect.cleandoc(docstring or "")
    written = []
    for name, body in sections(text):
        if name:
            written.append(f"**{name}:**")
        first = lead and not written
        written += [_paragraph(p, link, first and i == 0) for i, p in enumerate(paragraphs(body))]
    return "\n\n".join(written)


def sections(text):
    """Return [(heading, indented text below it)], with the heading "" if there is none."""
    found = [("", [])]
    for line in text.split("\n"):
        heading = SECTION.match(line)
        if heading:
            found.append((heading[1], []))
        elif line.startswith("    ") or not line.strip() or not found[-1][0]:
            found[-1][1].append(line)
        else:
            found.append(("", [line]))
    parts = [(name, textwrap.dedent("\n".join(lines)).strip("\n")) for name, lines in found]
    return [(name, body) for name, body in parts if name or body]


def paragraphs(text):
    """Return the pieces of a docstring, divided at blank lines and at changes of indentation."""
    found = []
    for piece in re.split(r"\n{2,}", text):
        lines = piece.split("\n")
        if found and found[-1].startswith("    ") and lines[0].startswith("    "):
            found[-1] += "\n\n" + piece  # the code contains a blank line
            continue
        kinds = [_kind(line) for line in lines]
        start = 0
        for i in range(1, len(lines) + 1):
            before = kinds[start]
            stays = i < len(lines) and (
                kinds[i] == before
                or (before == "argument" and kinds[i] == "indented")
                or (before == "indented" and not lines[i].strip())
            )
            if not stays:
                found.append("\n".join(lines[start:i]))
                start = i
    return found


def _kind(line):
    if line.startswith("  "):
        return "indented"
    return "argument" if ARGUMENT.match(line) and not re.search(r"[;.:=] {2}", line) else "text"


def _paragraph(text, link, first):
    kind = _kind(text.split("\n")[0])
    if kind == "argument":
        return _arguments(text, link)
    if kind == "indented":
        return _indented(text, link)
    words = " ".join(text.split("\n"))
    parts = re.split(rf"(?<=[.;)\]]) (?={LEADS})", words)
    written = [_lead(part, link) for part in parts]
    if first:
        written[0] = f"{{.lead}}\n{written[0]}"
    return "\n\n".join(written)


def _lead(part, link):
    """Return a part of a paragraph, with its first word in bold if it names an error or a
    source.
    """
    match = re.match(rf"{LEADS}", part)
    if not match:
        return sentence(part, link)
    words = match[0]
    kind, rest = ("Source", part[len(words) :]) if words.startswith("Source") else ("Errors", part)
    return f"**{kind}:** {sentence(rest.strip(), link)}"


def _arguments(text, link):
    """Return a table of arguments as a definition list."""
    items = []
    for line in text.split("\n"):
        match = ARGUMENT.match(line)
        if match:
            items.append((match[1], [match[2]]))
        else:
            items[-1][1].append(line.strip())
    blocks = []
    for name, lines in items:
        inner = _inner_table(lines)
        words = sentence(" ".join(inner[0]), link)
        rows = [f"  - {sentence(a, link)}: {sentence(b, link)}" for a, b in inner[1]]
        blocks.append("\n".join([f"`{name}`", f": {words}", *([""] if rows else []), *rows]))
    return "\n\n".join(blocks)


def _inner_table(lines):
    """Return the description of an argument, and its values from lines like '"sums"   loops'."""
    plain, rows = [], []
    for line in lines:
        match = re.match(r'^("[^"]*") {2,}(.*)$', line)
        if match:
            rows.append([f"`{match[1]}`", match[2]])
        elif rows:
            rows[-1][1] += f" {line}"
        else:
            plain.append(line)
    return plain, rows


def _indented(text, link):
    """Return an indented block: formulas line by line, code, or words in their own lines."""
    block = textwrap.dedent(text)
    lines = [line for line in block.split("\n") if line.strip()]
    if any(CODE.match(line) and not NOT_CODE.search(line) for line in lines):
        kind = "python" if "?" not in block else "text"
        return f"```{kind}\n{block}\n```"
    rows = [_row(line.strip()) for line in lines]
    if any(r"\text" not in row for row in rows):
        joined = " \\\\[4pt]\n".join(rows)
        return f"$$\n\\begin{{array}}{{l}}\n{joined}\n\\end{{array}}\n$$"
    return f"```text\n{block}\n```"


def _row(line):
    """Return a line of formulas together with its remarks."""
    parts = []
    for piece in re.split(r" {2,}", line):
        parts.append("".join(code if math else _upright(code) for code, math in in_sentence(piece)))
    return r" \qquad ".join(parts)


def _upright(words):
    """Return words between formulas."""
    if not words.strip(", "):
        return words
    escaped = re.sub(r"([_&%#{}$])", r"\\\1", words)
    return rf"\text{{{escaped}}}"


def sentence(text, link=lambda words: None):
    """Return Markdown of a sentence, with links for names in backticks and LaTeX for formulas."""
    text = re.sub(NAMED, lambda m: f"`{m[0]}`" if link(m[0]) else m[0], text)
    pieces = re.split(r"(`[^`]+`|https?://[^\s;,)]+[^\s;,.)])", text)
    return "".join(_piece(piece, link) for piece in pieces)


def _piece(piece, link):
    if piece.startswith("`") and piece.endswith("`") and len(piece) > 2:
        address = link(piece.strip("`"))
        return f"[{piece}]({address})" if address else piece
    if piece.startswith("http"):
        return f"<{piece}>"
    return "".join(f"${code}$" if math else _words(code) for code, math in in_sentence(piece))


def _words(text):
    """Return words, escaped for Markdown, with shapes such as x [B, T] as code."""
    parts = SHAPE.split(text)
    return "".join(
        f"`{part}`" if i % 2 else SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts)
    )
