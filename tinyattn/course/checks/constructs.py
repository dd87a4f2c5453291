"""Find Python constructs that no homework needs and that lead out of the sandbox.

The grader checks a student's code before it sends it, and the sandbox checks again before it runs
it. This file needs only the standard library, and is copied into the sandbox unchanged.
"""

import ast

BUILTINS = {
    "breakpoint",
    "compile",
    "delattr",
    "eval",
    "exec",
    "globals",
    "help",
    "locals",
    "memoryview",
    "open",
    "vars",
}
# These attributes lead from a value to the frames, code and modules to which it belongs.
ATTRIBUTES = {"bit_generator", "ctypes", "obj"} | {
    f"{kind}_{what}"
    for kind in ("ag", "cr", "gi")
    for what in ("await", "code", "frame", "running", "suspended", "yieldfrom")
}
FRAMES = {"f_back", "f_builtins", "f_code", "f_globals", "f_locals", "f_trace", "f_generator"}
TRACEBACKS = {"tb_frame", "tb_next", "tb_lasti", "with_traceback"}
PROTOCOL = """
    abs add and array array_priority array_ufunc array_function bool call ceil contains delitem
    divmod doc enter eq exit float floor floordiv ge getitem gt hash iadd imul index init
    int invert isub iter itruediv le len lt matmul mod mul name ne neg next or pos post_init pow
    radd rand repr reversed rfloordiv rmatmul rmod rmul ror round rpow rsub rtruediv setitem slots
    str sub truediv version xor
"""
DUNDERS = {f"__{name}__" for name in PROTOCOL.split()}


def is_refused(name):
    """Return True for an attribute that no homework needs and that leads out of student code."""
    if name.startswith("__") and name.endswith("__"):
        return name not in DUNDERS
    return name in ATTRIBUTES or name in FRAMES or name in TRACEBACKS


def refused(tree):
    """Return the first refused construct in the tree, as text for the student, or None."""
    for node in ast.walk(tree):
        found = _of(node)
        if found:
            return found
    return None


def _of(node):
    for name in _names(node):
        if is_refused(name) and not _asks_for_class(node):
            return f"the name {name}"
    if isinstance(node, ast.Name) and node.id in BUILTINS:
        return f"{node.id}()" if isinstance(node.ctx, ast.Load) else None
    if isinstance(node, ast.MatchClass) and (node.patterns or node.kwd_attrs):
        return "a class pattern of `match`"
    return None


def _asks_for_class(node):
    """Return True for x.__class__, which the sandbox reads as type(x)."""
    return isinstance(node, ast.Attribute) and node.attr == "__class__" and _is_read(node)


def _is_read(node):
    return isinstance(node.ctx, ast.Load)


def _names(node):
    """Yield all identifiers of a node itself: names, attributes, arguments, imported modules."""
    for field in ("id", "attr", "arg", "name", "asname", "module", "rest"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            # only `from __future__ import annotations` has a module with such a name
            yield from (part for part in value.split(".") if part != "__future__")
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
