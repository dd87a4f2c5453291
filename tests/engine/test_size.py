"""The engine stays small enough to be read in one sitting."""

import ast
import io
import tokenize

from tests import ROOT

# autograd.py and all files of its folder that it imports, except the methods' hints for readers of
# other libraries, and how many lines of code that may be
FILES = [
    *("autograd", "methods", "dispatch", "dtypes", "convert", "messages"),
    *("arguments", "invalid", "memory", "read_only"),
]
NOT_COUNTED = {"torch_hints"}
MOST_LINES = 990
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def lines_of_code(source):
    """How many lines hold code: no blank lines, no comments, no docstrings."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def test_what_counts_as_code():
    program = '''"""Docstring
    of two lines."""

    # a comment
def f(x):  # one
    """Docstring."""
    return [  # two
        x,  # three

    ]  # four
'''
    assert lines_of_code(program) == 4


def test_every_file_that_the_engine_needs_is_counted():
    tree = ast.parse((ROOT / "tinyattn" / "engine" / "autograd.py").read_text(encoding="utf-8"))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "tinyattn.engine":
            imported |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("tinyattn.engine."):
            imported.add(node.module.split(".")[2])
    assert imported - NOT_COUNTED - set(FILES) == set()


def test_the_engine_is_small():
    folder = ROOT / "tinyattn" / "engine"
    lines = [lines_of_code((folder / f"{name}.py").read_text(encoding="utf-8")) for name in FILES]
    assert sum(lines) <= MOST_LINES, dict(zip(FILES, lines, strict=True))
