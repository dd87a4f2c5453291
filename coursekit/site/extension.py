"""Additions to Sphinx: formulas by the KaTeX of the slides, and pages with the source code."""

from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).resolve().parents[2]
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
    style = HtmlFormatter(linenos="inline", anchorlinenos=True, lineanchors="L", linespans=None)
    files = sorted(p for p in (ROOT / "tinyattn").rglob("*.py") if "shipped" not in p.parts)
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        code = highlight(path.read_text(encoding="utf-8"), PythonLexer(), style)
        code = (
            code.replace('id="L-', 'id="L')
            .replace('name="L-', 'id="L')
            .replace('href="#L-', 'href="#L')
        )
        context = {"title": name, "body": f"<h1><code>{name}</code></h1>\n{code}"}
        yield f"source/{name}", context, "page.html"
    links = "\n".join(
        f'<li><a href="{name}.html">{name}</a></li>'
        for name in (path.relative_to(ROOT).as_posix() for path in files)
    )
    context = {"title": "Source code", "body": f"<h1>Source code</h1>\n<ul>\n{links}\n</ul>"}
    yield "source/index", context, "page.html"


def setup(app):
    inline, display = (inline_math, None), (display_math, None)
    app.add_html_math_renderer("katex", inline, display)
    app.config.html_static_path.append(str(KATEX.parent))
    app.add_css_file("katex/katex.min.css")
    app.add_js_file("katex/katex.min.js")
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
