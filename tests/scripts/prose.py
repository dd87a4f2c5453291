"""Measure how often the texts of the project use patterns that make English read as translated.

    python -m tests.scripts.prose [--where semicolons]

It prints a table: for each kind of text, the number of words and the rate of each pattern per
10,000 words, next to the same rates in the docstrings of NumPy and, if it is installed, of
torch.nn. With --where, it prints each place at which one pattern occurs. The table is a mirror,
not a goal: a rate includes good uses too, so rewrite sentences and then look again.
"""

import argparse
import ast
import importlib
import inspect
import io
import re
import tokenize
import tomllib
from pathlib import Path

from tests import ROOT

PATTERNS = {
    "semicolons": r";",
    "colons": r":(?=\s+[a-z(])",
    # not in a question, which is natural in a lecture
    "what ...": r"\bwhat (?:is|was|are|were|has|have|had|it|they|the|a|an|each|others?)\b"
    r"(?![^.!?]*\?)",
    "who ...": r"(?:^|[.:;,] +)who(?:ever)? (?!is who)[a-z]+s?\b",
    "that of": r"\b(?:that|those) of\b",
    "in place of": r"\bin (?:place of|its place)\b",
    "behind": r"\b(?:behind|beside|in front of)\b",
    "stands": r"\b(?:stands?|stood|lies?|lay)\b",
    "hears": r"\b(?:hears?|heard|says|tells?|told|speaks?|listens?)\b",
    "nobody": r"\b(?:nobody|everybody|somebody|anybody)\b",
    "anew": r"\b(?:anew|by itself|by themselves|all the same|at once|alike)\b",
    "no + noun": r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|other\b|such\b)[a-z]+\b",
    "so many": r"\b(?:so many|so much|as many|as much)\b",
    "home-made": r"\b(?:rivals?|rungs?|knobs?|heaps?|pictures?|places?|spellings?)\b",
    "by lot": r"\b(?:by lot|dealt out|for lot)\b",
    "taken off": r"\b(?:take[ns]?|put) (?:off|away|aside|beside|side by side)\b",
    "the one": r"\bthe (?:one|first|second|other)\b(?= (?:is|are|has|and|of|in)\b|[,.;])",
    "is wanted": r"\b(?:is|are) (?:wanted|meant|to be)\b|\b(?:may not|must not)\b",
    "came out": r"\b(?:came out|comes out|tried aside)\b",
    "bare It": r"(?:^|[.:] )(?:It|That|This|These|Those) (?:is|are|has|have|was|were|can|does)\b",
}
COMPARED = ("numpy", "torch.nn")
NO_PROSE = re.compile(
    r"```.*?```|\$\$.*?\$\$|^\|.*\||`[^`]*`|\$[^$]*\$|<[^>]+>", re.DOTALL | re.MULTILINE
)
TITLE = re.compile(r"(?<=\d{4}, )\*[^*\n]+\*")  # of a cited work, after the year
WORD = re.compile(r"[^\W\d_][\w'’-]*")


def rates(text):
    """Return the number of words, and {pattern: occurrences per 10,000 words}."""
    words = len(WORD.findall(text))
    found = {name: len(list(matches(name, text))) for name in PATTERNS}
    return words, {name: 10_000 * n / max(words, 1) for name, n in found.items()}


def matches(name, text):
    """Return all occurrences of a pattern."""
    return re.finditer(PATTERNS[name], text, re.IGNORECASE | re.MULTILINE)


# ---------------------------------------------------------------- texts


def prose_of_docstring(text):
    """Return a docstring without formulas, code, doctests, tables and section headings.

    Of a line of a table of arguments, only the description remains.
    """
    kept = []
    for line in inspect.cleandoc(text).split("\n"):
        entry = re.match(r" {0,4}[\w*.=, ]*[\w*] {2,}(?=\S)", line)
        if entry:
            kept.append(line[entry.end() :])
        elif re.match(r"\s*(?:>>>|\.\. |\w[\w ]*:$|[-=~^]{3,}$|:\w+:)", line):
            continue
        elif line.startswith("    ") and re.search(r"[=≤∑Σ·²()\[\]]", line):
            continue  # a formula or code
        else:
            kept.append(line.strip() or "\n")
    return _no_marks("\n".join(kept))


def _no_marks(text):
    return NO_PROSE.sub(" X ", text)


def docstrings(source):
    """Yield (line, text) of each docstring of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, prose_of_docstring(text)


def errors(source):
    """Return (line, text) of each text in a `raise` or in a call of an exception, with X for
    values.
    """
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else node
        name = getattr(call, "func", None)
        name = getattr(name, "id", getattr(name, "attr", ""))
        if not isinstance(call, ast.Call) or not re.search(r"(Error|Warning)$|^warn$", name):
            continue
        if isinstance(node, ast.Raise):
            yield from ((node.lineno, _no_marks(t)) for t in map(_text, call.args) if t)


def _text(node):
    """Return the text of a string with X for its values, or "" for any other node."""
    if isinstance(node, ast.JoinedStr):
        return "".join([v.value if isinstance(v, ast.Constant) else "X" for v in node.values])
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def comments(source):
    """Return (line, text) of each comment of a Python file. Consecutive lines are one comment."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"# (?:-{3,}|noqa|type:)", token.string):
            continue
        line, text = token.start[0], token.string.lstrip("# ")
        whole = token.line.strip().startswith("#")
        if whole and found and found[-1][2] == line - 1:
            found[-1] = (found[-1][0], f"{found[-1][1]} {text}", line)
        else:
            found.append((line, text, line if whole else None))
    return [(line, _no_marks(text)) for line, text, _ in found]


def cells(source):
    """Yield (line, tags, text) of each Markdown cell of a lecture, without its code."""
    parts = re.split(r"^\+\+\+(.*)$", source, flags=re.MULTILINE)
    line = 1 + parts[0].count("\n")
    for head, text in zip(parts[1::2], parts[2::2], strict=True):
        yield line, head, _no_marks(TITLE.sub(" X ", text))
        line += text.count("\n")


def of_cells(notes):
    def texts(source):
        return [(line, text) for line, tags, text in cells(source) if ('"notes"' in tags) == notes]

    return texts


def ledger(source):
    """Yield (1, text) of the claims, conditions, evidence and controls."""
    for number, entry in tomllib.loads(source).items():
        for field in ("claim", "confirmed_if", "evidence", "control"):
            at = source.find(f"[{number}]")
            yield source.count("\n", 0, at) + 1, _no_marks(entry.get(field, ""))


def page(source):
    return [(1, _no_marks(TITLE.sub(" X ", source)))]


PYTHON = ("tinyattn/**/*.py", "coursekit/**/*.py")
KINDS = {  # kind: (files, what reads their texts)
    "docstrings": (PYTHON, docstrings),
    "errors": (PYTHON, errors),
    "comments": (PYTHON, comments),
    "lectures": (("lectures/[0-9]*.md",), of_cells(notes=False)),
    "notes": (("lectures/[0-9]*.md",), of_cells(notes=True)),
    "ledger": (("lectures/claims.toml",), ledger),
    "pages": (("*.md", "docs/*.md", "lectures/[A-Z]*.md", "lectures/teaching/*.md"), page),
}


def project():
    """Yield (kind, file, line, text) of all texts of the project."""
    for kind, (files, read) in KINDS.items():
        paths = {p for pattern in files for p in ROOT.glob(pattern)}
        for path in sorted(paths):
            if "vendor" in path.parts or "shipped" in path.parts:
                continue
            for line, text in read(path.read_text(encoding="utf-8")):
                yield kind, path.relative_to(ROOT), line, text


def of_package(name):
    """Return the docstrings of a package, or None if it is not installed."""
    try:
        folder = Path(importlib.import_module(name).__file__).parent
    except ImportError:
        return None
    texts = []
    for path in sorted(folder.rglob("*.py")):
        if "tests" not in path.relative_to(folder).parts:
            texts += [text for _, text in docstrings(path.read_text(encoding="utf-8"))]
    return "\n\n".join(texts)


# ---------------------------------------------------------------- the table


def table(texts):
    """Return the table as text: a line for each pattern, a column for each of {kind: text}."""
    found = {kind: rates(text) for kind, text in texts.items()}
    width = max(len(kind) for kind in found) + 2
    lines = ["per 10,000 words".ljust(18) + "".join(k.rjust(width) for k in found)]
    for name in PATTERNS:
        lines.append(
            name.ljust(18) + "".join(f"{r[name]:.1f}".rjust(width) for _, r in found.values())
        )
    words = "".join(f"{n:,}".rjust(width) for n, _ in found.values())
    return "\n".join([*lines, "words".ljust(18) + words])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--where", choices=PATTERNS, help="print where this pattern occurs")
    parser.add_argument("--kind", choices=KINDS, help="only in this kind of text")
    args = parser.parse_args()
    texts = {kind: [] for kind in KINDS}
    for kind, path, line, text in project():
        texts[kind].append(text)
        if args.where and args.kind in (None, kind):
            for m in matches(args.where, text):
                around = text[max(m.start() - 50, 0) : m.end() + 40].replace("\n", " ").strip()
                print(f"{kind:10} {path}:{line}: {around}")
    if not args.where:
        others = {name: of_package(name) for name in COMPARED}
        columns = {kind: "\n\n".join(t) for kind, t in texts.items()}
        print(table(columns | {name: text for name, text in others.items() if text}))


if __name__ == "__main__":
    main()
