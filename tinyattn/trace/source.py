"""The source lines of an operation and of its rules."""

import ast
import linecache
import textwrap
from functools import lru_cache
from inspect import cleandoc
from os.path import basename, dirname, relpath

PACKAGE = dirname(dirname(dirname(__file__)))


@lru_cache(maxsize=256)
def _parsed(file, text):
    return ast.parse(text)


def source_of(function):
    """Return (file, first line, text) of a function's source, or None if it cannot be read."""
    code = getattr(function, "__code__", None)
    lines = linecache.getlines(code.co_filename) if code else []
    if not lines:
        return None
    try:
        tree = _parsed(code.co_filename, "".join(lines))
    except SyntaxError:  # the cell contains notebook commands
        return None
    node = next((n for n in ast.walk(tree) if _is(n, code)), None)
    if node is None:
        return None
    if isinstance(node, ast.Lambda):
        text = ast.get_source_segment("".join(lines), node)
        return short(code.co_filename), node.lineno, _tidy(text)
    first = _first_line(node)
    return (
        short(code.co_filename),
        first,
        textwrap.dedent("".join(lines[first - 1 : node.end_lineno])),
    )


def _tidy(text):
    """Return the text of a lambda, with its second and later lines indented by only 4 spaces."""
    first, _, rest = text.partition("\n")
    return first + ("\n" + textwrap.indent(textwrap.dedent(rest), "    ") if rest else "")


def _is(node, code):
    if isinstance(node, ast.FunctionDef):
        return node.name == code.co_name and _first_line(node) == code.co_firstlineno
    if not isinstance(node, ast.Lambda) or node.lineno != code.co_firstlineno:
        return False
    # one line may contain several lambdas, which the columns of their code distinguish
    body = node.body
    ends = {(line, column) for _, line, _, column in code.co_positions() if line and column}
    return (body.end_lineno, body.end_col_offset) in ends


def _first_line(node):
    return min([node.lineno, *[d.lineno for d in node.decorator_list]])


def short(file):
    """Return a package file's path, such as tinyattn/ops/matmul.py, or another file's name."""
    inside = relpath(file, PACKAGE) if file.startswith(PACKAGE) else basename(file)
    return inside.replace("\\", "/")


def described(operation, function):
    """Return the formula of an operation, its source, and the source of each of its rules.

    Args:
        operation   the operation
        function    its function, or None if it is unknown

    Returns:
        {"formula", "forward", "rules", "joint"}, where joint is True if one rule gives the
        gradients of all inputs
    """
    doc = (
        cleandoc(function.__doc__).partition("\n\n")[0] if getattr(function, "__doc__", "") else ""
    )
    rules = [operation.joint] if operation.joint is not None else operation.rules
    found = [None if r.__name__ == "missing" else source_of(_written(r)) for r in rules]
    return {
        "formula": doc.replace("\n", " "),
        "forward": _shown(source_of(function)),
        "rules": [_shown(s) for s in found],
        "joint": operation.joint is not None,
    }


def _written(rule):
    """Return the function that the source contains for a rule. A kernel's rule encloses it."""
    rule = getattr(rule, "__wrapped__", rule)
    for cell in getattr(rule, "__closure__", None) or ():
        inside = cell.cell_contents
        if getattr(rule, "__name__", "") == "joint" and getattr(inside, "__name__", "").endswith(
            "rule"
        ):
            return inside
    return rule


def _shown(source):
    return (
        None
        if source is None
        else {"file": source[0], "line": source[1], "text": source[2].rstrip()}
    )
