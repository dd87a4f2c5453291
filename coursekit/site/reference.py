"""Write the reference, one page for each public name, from the docstrings.

Sphinx's autodoc would show the docstring alone. A page here also shows the implementations side by
side, an example with what it prints, and the slides that use the name.
"""

import inspect
import re
import textwrap
from importlib import import_module

from coursekit.build.public_api import PLACES, place, public_names, section
from coursekit.build.text import slides
from coursekit.site import docstrings
from coursekit.site.addresses import relative, source_page
from coursekit.site.implementations import side_by_side
from tinyattn.course.project import CourseError, write_text

SLIDE = re.compile(r"\b(?:[NKHS]|KB)\d\d\b")


def write_reference(root, sources, uses, anchors, examples):
    """Write all pages of the reference into `sources`.

    uses      {name: (lecture, slide)}, the slide that uses the name first
    anchors   {lecture: {cell: name}}, see `notebooks.anchors`
    examples  {key of a name: code with what it prints}
    """
    names = public_names()
    links = _links(names)
    original = _slides(anchors)
    for name in names:
        text = page(root, name, uses.get(name), anchors, examples, links, original)
        write_text(sources / f"{name.page}.md", text)
    for module, prefix, words in PLACES:
        write_text(
            sources / f"reference/{section(module)}.md", overview(module, prefix, words, names)
        )
    write_text(sources / "reference/index.md", contents(names))


def page(root, name, use, anchors, examples, links, original):
    """Return the page of one public name."""
    thing, here = name.object, name.page
    link = lambda words: _address(links, words, name, here)
    parts = [
        "---\norphan: true\n---",
        f'<p class="up"><a href="{relative("reference/index.html", here)}">Reference</a> / '
        f'<a href="{relative(f"reference/{name.section}.html", here)}">{name.section}</a></p>',
        f"# {name.written}",
    ]
    if name.is_callable:
        parts.append(f"```python\n{signature(name.written, thing)}\n```")
        parts.append(docstrings.markdown(_own_doc(thing), link))
    else:
        parts.append(f"```python\n{name.written} = {textwrap.shorten(repr(thing), 300)}\n```")
    if name.is_class:
        parts += _methods(name, link)
    if name.key in examples:
        parts += ["## Example", f"```pycon\n{examples[name.key]}\n```"]
    parts += side_by_side(name.key, here)
    parts += _course(name, use, anchors, original)
    parts += _where(name, here)
    return "\n\n".join(part for part in parts if part) + "\n"


def _own_doc(thing):
    doc = inspect.getdoc(thing) if not isinstance(thing, type) else thing.__doc__
    return doc or ""


def signature(written, thing):
    """Return the signature of a call, with one argument per line if it is long."""
    try:
        parameters = inspect.signature(thing)
    except (TypeError, ValueError):
        return f"{written}(...)"
    bare = [
        p.replace(
            annotation=p.empty, default=_Plain(p.default) if p.default is not p.empty else p.empty
        )
        for p in parameters.parameters.values()
    ]
    whole = str(parameters.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    if len(written) + len(whole) <= 88:
        return written + whole
    marks, star = [], False
    for p in bare:
        if p.kind is p.KEYWORD_ONLY and not star:
            marks.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        marks.append(str(p))
    lines = textwrap.wrap(", ".join(marks), 84, break_on_hyphens=False)
    return f"{written}(\n" + "\n".join(f"    {line}" for line in lines) + "\n)"


class _Plain:
    """A default value whose text is readable."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        if isinstance(self.value, type) or inspect.isfunction(self.value):
            return self.value.__name__
        if isinstance(self.value, float):
            return repr(self.value) if len(repr(self.value)) < 8 else f"{self.value:.6g}"
        return (
            "..." if type(self.value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" else repr(self.value)
        )


def _methods(name, link):
    """Return the methods that a class defines itself, `forward` first."""
    found = {}
    for attribute, value in vars(name.object).items():
        public = not attribute.startswith("_")
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if isinstance(function, property):
            function = function.fget
        function = inspect.unwrap(function) if callable(function) else None
        if public and inspect.isfunction(function) and function.__doc__:
            found[attribute] = (value, function)
    order = sorted(found, key=lambda attribute: (attribute != "forward", attribute))
    parts = []
    for attribute in order:
        value, function = found[attribute]
        call = attribute
        if not isinstance(value, property):
            skip = 0 if isinstance(value, staticmethod) else 1
            arguments = list(inspect.signature(function).parameters.values())[skip:]
            call += f"({', '.join(p.name for p in arguments)})"
        parts += [f"### {call}", docstrings.markdown(function.__doc__, link, lead=False)]
    return ["## Methods", *parts] if parts else []


def _course(name, use, anchors, original):
    """Return the place in the course that introduces the name."""
    doc = inspect.getdoc(name.object) or ""
    lines = []
    named = [
        (words, original[words])
        for words in SLIDE.findall(" ".join(re.findall(r"[Ss]lides? [^.;]*", doc)))
        if words in original
    ]
    for words, (document, anchor, title) in named:
        lines.append(f"- Slide {words}, lecture {document.number}: [{_plain(title)}](#{anchor})")
    if use:
        document, slide = use
        anchor = anchors[document][slide.cells[0]["id"]]
        line = f"- First used in lecture {document.number}: [{_plain(slide.title)}](#{anchor})"
        if not any(f"(#{anchor})" in other for other in lines):
            lines.append(line)
    return ["## In the course", "\n".join(lines)] if lines else []


def _where(name, here):
    at = place(name.object) if name.is_callable else None
    if at is None:
        return []
    path, line = at
    also = f" Also as {', '.join(name.also)}." if name.also else ""
    address = relative(f"{source_page(path)}.html#L{line}", here)
    return [
        "## Source",
        f'<p class="source"><a href="{address}">{path}, line {line}</a>.{also}</p>',
    ]


def _plain(title):
    return re.sub(r"([\[\]])", r"\\\1", title)


def _slides(anchors):
    """Return {original slide: (lecture, anchor, title)}."""
    from coursekit.build.text import read_notebook

    return {
        number: (document, names[slide.cells[0]["id"]], slide.title)
        for document, names in anchors.items()
        for slide in slides(read_notebook(document))
        for number in slide.ids
        if slide.cells[0]["id"] in names
    }


def _links(names):
    """Return {text in backticks of a docstring: page}."""
    found = {}
    for name in names:
        for written in (name.written, *name.also, f"{name.module}.{name.name}"):
            found[written] = name.page
    return found


def _address(links, words, name, here):
    """Return the address of a name on the page `here`, in MyST's form, or None."""
    bare = re.sub(r"\(.*", "", words)
    for candidate in (bare, f"{name.prefix}.{bare}", f"{name.module}.{bare}"):
        target = links.get(candidate)
        if target and target != here:
            return f"/{target}.md"
    return None


# ---------------------------------------------------------------- lists


def overview(module, prefix, words, names):
    """Return the page of a module: its description, and a line for each name."""
    doc = inspect.cleandoc(import_module(module).__doc__ or words)
    own = [name for name in names if name.module == module]
    others = [
        (f"{prefix}.{n}", other)
        for other in names
        if other.module != module
        for n in [a.split(".")[-1] for a in other.also if a.rpartition(".")[0] == prefix]
    ]
    rows = [f"| [`{n.written}`](/{n.page}.md) | {_first(n)} |" for n in own]
    rows += [f"| [`{written}`](/{other.page}.md) | {_first(other)} |" for written, other in others]
    text = [
        f"# {section(module)}",
        docstrings.markdown(doc),
        "| name | |\n|---|---|\n" + "\n".join(rows),
    ]
    if module == "tinyattn":
        text.append("What NumPy's own functions do with a tensor: [one list](numpy.md).")
    return "\n\n".join(text) + "\n"


def contents(names):
    """Return the first page of the reference."""
    links = "\n".join(
        f"| [`{module}`]({section(module)}.md) | `{prefix}` | {words} | "
        f"{sum(name.module == module for name in names)} |"
        for module, prefix, words in PLACES
    )
    tree = "\n".join(section(module) for module, _, _ in PLACES)
    return f"""# Reference

Every public name, from its docstring: the formula, the shapes, what raises, the source in the
literature, an example, and the slide that uses it first. The tests run all examples, with `np`,
`ta`, `F`, the modules below, and `np.set_printoptions(precision=3, suppress=True)`.

| module | in lectures | what is in it | names |
|---|---|---|---|
{links}

```{{toctree}}
:hidden:
{tree}
numpy
```
"""


def _first(name):
    """Return the first sentence of a docstring, for lists."""
    if not name.is_callable:
        return ""
    text = docstrings.paragraphs(inspect.cleandoc(_own_doc(name.object)))
    first = " ".join(text[0].split("\n")) if text else ""
    match = re.match(r"(.*?[.:;])(?:\s|$)(?!\w\.)", first)
    return docstrings.sentence((match[1] if match else first).rstrip(".:;")).replace(
        "\\|", "&#124;"
    )


def read_examples(folder):
    """Return {key of a name: code with its output}, from the files of `docs/examples`."""
    found = {}
    for path in sorted(folder.glob("*.md")):
        for title, code in re.findall(
            r"^## (\S+)\n+```pycon\n(.*?)\n```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            key = f"{path.stem}/{title}"
            if key in found:
                raise CourseError(
                    f"{path.name}: there are two examples for {title}. Write both under one heading"
                )
            found[key] = code
    return found
