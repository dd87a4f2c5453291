"""Which constructs of Python homework has no use for, because they lead out of it.

The grader looks before it sends a student's code, and the sandbox looks again before it runs the
code. This file needs the standard library only, and is copied into the sandbox as it is.
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
# attributes that lead from a value to the frames, code and modules behind it
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
    """True for an attribute that no homework needs and that leads out of the student's code."""
    if name.startswith("__") and name.endswith("__"):
        return name not in DUNDERS
    return name in ATTRIBUTES or name in FRAMES or name in TRACEBACKS


def refused(tree):
    """The first construct in the tree that is not run, as a text for the student; else None."""
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
    """True for x.__class__, which the sandbox reads as type(x)."""
    return isinstance(node, ast.Attribute) and node.attr == "__class__" and _is_read(node)


def _is_read(node):
    return isinstance(node.ctx, ast.Load)


def _names(node):
    """All identifiers that a node itself has: names, attributes, arguments, imported modules."""
    for field in ("id", "attr", "arg", "name", "asname", "module", "rest"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            # `from __future__ import annotations` is the one module with such a name
            yield from (part for part in value.split(".") if part != "__future__")
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
