"""Library calls that a task forbids, found in the text of the student's cell."""

import ast

SUSPICIOUS = {
    "__builtins__",
    "__import__",
    "__loader__",
    "__subclasses__",
    "_getframe",
    "compile",
    "ctypes",
    "eval",
    "exec",
    "gc",
    "globals",
    "importlib",
    "inspect",
    "linecache",
    "open",
    "os",
    "pickle",
    "runner",
    "server",
    "setattr",
    "socket",
    "subprocess",
    "sys",
    "tracemalloc",
    "urllib",
}


def calls(source, names, given=""):
    """The forbidden full `names` that the cell uses, as the student writes them.

    `given` is the program before the cell: its imports say what F, ta and nn are.
    """
    tree, aliases = _parse(source), {}
    if tree is None:
        return []
    for place in (_parse(given), tree):
        aliases |= _imports(place)
    found = []
    methods = {name.rpartition(".")[2] for name in names if ".Tensor." in name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in methods:
            found.append(f".{node.attr}")
        elif isinstance(node, ast.Attribute | ast.Name):
            written = _dotted(node)
            first, _, rest = written.partition(".")
            if first not in aliases:
                continue
            full = ".".join(filter(None, [aliases[first], rest]))
            if full in names or _shorter(full, names):
                found.append(written)
    return list(dict.fromkeys(found))


def suspicious(source, given=""):
    """Names that homework has no use for: somebody should look at the cell.

    `given` is the cell as it was handed out: its parameters are nobody's idea.
    """
    tree = _parse(source)
    if tree is None:
        return []
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
            used |= {name.split(".")[0] for name in modules}
    handed_out = {node.arg for node in ast.walk(_parse(given)) if isinstance(node, ast.arg)}
    return sorted((used & SUSPICIOUS) - handed_out)


def _shorter(full, names):
    """ta.functional.softmax is reached as tinyattn.functional.activations.softmax too."""
    package, _, last = full.rpartition(".")
    parts = package.split(".")
    return any(
        name.rpartition(".")[2] == last and parts[:2] == name.rpartition(".")[0].split(".")[:2]
        for name in names
    )


def _imports(tree):
    """{name in the cell: full name of the module or function} of all imports of tinyattn."""
    aliases = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            for a in node.names:
                if a.name.split(".")[0] == "tinyattn":
                    aliases[a.asname or "tinyattn"] = a.name if a.asname else "tinyattn"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tinyattn":
            for a in node.names:
                aliases[a.asname or a.name] = f"{node.module}.{a.name}"
    return aliases


def _dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _parse(source):
    try:
        return ast.parse(source or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
