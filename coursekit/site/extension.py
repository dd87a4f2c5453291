"""Additions to Sphinx: formulas by the KaTeX of the slides, and pages with the source code."""

import re
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).resolve().parents[2]
PLAIN = r'<span class="(?:n|p|w)">([^<]*)</span>'
KATEX = ROOT / "coursekit" / "deck" / "vendor" / "katex"


def inline_math(self, node):
    self.body.append(f'<span class="math">{escape(node.astext())}</span>')
    raise _skip()


def display_math(self, node):
    self.body.append(f'<div class="math">{escape(node.astext())}</div>')
    raise _skip()


def _skip():
    from docutils.nodes import SkipNode

    return SkipNode()


def source_pages(app):
    """Return (name, context, template) of a page with line numbers for each file of the package."""
    files = sorted(p for p in (ROOT / "tinyattn").rglob("*.py") if "shipped" not in p.parts)
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        code = numbered(path.read_text(encoding="utf-8"))
        context = {"title": name, "body": f"<h1><code>{name}</code></h1>\n{code}"}
        yield f"source/{name}", context, "page.html"
    links = "\n".join(
        f'<li><a href="{name}.html">{name}</a></li>'
        for name in (path.relative_to(ROOT).as_posix() for path in files)
    )
    context = {"title": "Source code", "body": f"<h1>Source code</h1>\n<ul>\n{links}\n</ul>"}
    yield "source/index", context, "page.html"


def numbered(text):
    """Return the HTML of a Python file, in which line 7 has the anchor and the link L7.

    Names, punctuation and spaces have the colour of all other text, so they need no tags. This
    halves the pages.
    """
    code = highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    lines = re.sub(PLAIN, r"\1", code).splitlines()
    last = len(str(len(lines)))
    lines = [
        f'<a class="linenos" id="L{i}" href="#L{i}">{i:{last}}</a>{line}'
        for i, line in enumerate(lines, 1)
    ]
    return '<div class="highlight"><pre>' + "\n".join(lines) + "</pre></div>"


def setup(app):
    inline, display = (inline_math, None), (display_math, None)
    app.add_html_math_renderer("katex", inline, display)
    app.config.html_static_path.append(str(KATEX.parent))
    app.add_css_file("katex/katex.min.css")
    app.add_js_file("katex/katex.min.js")
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
