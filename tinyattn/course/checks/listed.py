"""Find the names of the library that a student's code uses, and whether the task lists them.

`tinyattn check` and `tinyattn grade` both use these functions, so a check reports before the
submission which parts would get no points.
"""

import ast
import importlib
import types

from tinyattn.course.checks.constructs import refused

# allowed in every task except those by hand
BASIC = ("tinyattn.Tensor", "tinyattn.tensor", "tinyattn.no_grad")
ENGINE = {"backward", "grad", "grad_fn", "requires_grad", "requires_grad_"}
# names of functions and classes that tasks by hand must not use either
OF_ENGINE = {"Tensor", "tensor", "no_grad", "grad", "gradients", "value_and_grad", "jacobian"}
OF_ENGINE |= {"hessian", "backward_pass"}
METHODS = {"gather", "index_select", "log_softmax", "logsumexp", "masked_select", "relu"}
# methods of a Tensor in addition to NumPy's
METHODS |= {"scatter_add", "sigmoid", "softmax", "topk"}
QUIET = ("tinyattn.course", "tinyattn.plot", "tinyattn.widgets")


def why_not(trees, homework, task, aliases):
    """Return why these statements get no points in a task, as text, or None if they may.

    Args:
        trees      trees of the statements
        homework   the `Homework`
        task       number of the task
        aliases    result of `imports`, which contains the meaning of names such as F, ta and nn
    """
    by_hand = task in homework.by_hand
    objects = [resolve(name) for name in homework.listed(task)]
    found = []
    for tree in trees:
        construct = refused(tree)
        if construct:
            return f"you use {construct}, which is not allowed in graded code"
        found += unlisted(tree, aliases, objects, by_hand)
    if not found:
        return None
    found = list(dict.fromkeys(found))
    engine = [n for n in found if by_hand and n.rpartition(".")[2] in ENGINE | OF_ENGINE]
    others = [n for n in found if n not in engine]
    reasons = []
    if engine:
        reasons.append(f"{', '.join(engine)}, although the derivative must be derived by hand")
    if others:
        reasons.append(f"{', '.join(others)}, which this task asks you to write yourself")
    return f"you use {', and '.join(reasons)}"


def imports(trees):
    """Return {name in the notebook: full name} of all that these trees import from tinyattn."""
    aliases = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for a in node.names:
                    if a.name.split(".")[0] == "tinyattn":
                        aliases[a.asname or "tinyattn"] = a.name if a.asname else "tinyattn"
            elif isinstance(node, ast.ImportFrom):
                if (node.module or "").split(".")[0] == "tinyattn":
                    for a in node.names:
                        aliases[a.asname or a.name] = f"{node.module}.{a.name}"
    return aliases


def unlisted(tree, aliases, objects, by_hand=False):
    """Return the unlisted names of the library that a tree uses, as the student wrote them.

    Args:
        tree      tree of a statement
        aliases   result of `imports`
        objects   listed functions and classes
        by_hand   True: methods of the engine such as .backward are not allowed either
    """
    found, methods = [], METHODS | (ENGINE if by_hand else set())
    own = {
        n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)
    } | _parameters(tree)
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute | ast.Name)]
    for node in sorted(names, key=lambda n: (n.lineno, n.end_col_offset)):
        written = _dotted(node)
        first, _, rest = written.partition(".")
        if first in aliases and not (isinstance(node, ast.Name) and first in own):
            full = ".".join(filter(None, [aliases[first], rest]))
            value = resolve(full)
            if _counts(full, value) and not any(value is one for one in objects):
                found.append(written)
        elif isinstance(node, ast.Attribute) and node.attr in methods - own:
            if first not in ("self", "np", "numpy"):
                found.append(f".{node.attr}")
    return found


def _counts(full, value):
    """Return True for a function or class of the library, False for a module or a missing name."""
    if value is None or isinstance(value, types.ModuleType) or full.startswith(QUIET):
        return False
    return callable(value)


def _parameters(tree):
    return {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}


def resolve(full):
    """Return the library's object with this full name, or None if there is none."""
    parts = full.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


def _dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
