"""Find the code that a verdict is based on: the statements of a lecture that lead to one claim.

A verdict is only worth as much as the experiment behind it, so the ledger keeps a digest of that
experiment. It is found by going backwards from the claim: a statement belongs to the experiment if
it computes a name that is needed, and then the names that this statement needs are needed too (a
program slice, Weiser 1981). Comments, docstrings, layout, statements that only draw
(`only_draws.py`) and the labels of figures do not count, nor does code that only shorter runs
execute. When anything else changes, the verdict is out of date until the next full run.
"""

import ast
import copy
import hashlib
from dataclasses import dataclass

from coursekit.build.only_draws import SHOWS, Drawings, WithoutLabels, free, live_before, root
from tinyattn.course.project import LEDGER

WORDING = {"evidence", "control", "proved"}  # no figure depends on these arguments of a claim
SHORTER = {"seeds": "quick", "claim": "quick_decides"}  # only shorter runs read these arguments
# these fields of a syntax tree differ between versions of Python, or mean nothing here
SKIPPED = {"ctx", "kind", "type_comment", "type_ignores", "type_params"}


@dataclass
class Statement:
    """A statement of a lecture: its tree, the names it makes or changes, and the names it reads.

    If it only draws, `drawn` holds its own names and those of its pictures, otherwise None. `text`
    is what the digest reads, without the labels of figures.
    """

    tree: ast.stmt
    makes: set
    reads: set
    drawn: set | None = None
    text: str = ""


def digests(cells):
    """Return {claim: digest of its experiment} for all claims that the code cells test."""
    trees = [tree for cell in cells for tree in _trees(cell)]
    modules = {
        _bound(a) for t in trees if isinstance(t, ast.Import | ast.ImportFrom) for a in t.names
    }
    statements, drawings = [_statement(tree, modules) for tree in trees], Drawings(trees)
    labels = WithoutLabels(drawings)
    for s in statements:
        s.drawn = drawings.touched_by(s.tree) if drawings.contain(s.tree) else None
        s.text = canonical(labels.visit(copy.deepcopy(s.tree)))
    found = {}
    for i, statement in enumerate(statements):
        number = _claimed(statement.tree)
        if number is not None:
            found[number] = _digest(_leading_to(i, statements))
    return found


def outdated(ledger, cells):
    """Return the claims whose experiment has changed since the ledger's verdict."""
    return [
        number
        for number, digest in digests(cells).items()
        if ledger.get(number, {}).get("experiment") not in ("", None, digest)
    ]


def stamp(root, cells, entered=None):
    """Write the digests of the experiments into the ledger, after a full run of these cells.

    `entered` holds the claims whose verdict this run wrote. None means all claims that the cells
    test. A claim that the run refused keeps its old verdict, so its old digest must stay too.
    """
    from tinyattn.course.claims import read_ledger, write_ledger

    ledger = read_ledger(root / LEDGER)
    for number, digest in digests(cells).items():
        if number in ledger and (entered is None or number in entered):
            ledger[number]["experiment"] = digest
    write_ledger(root / LEDGER, ledger)


def _leading_to(i, statements):
    """Return statement i and the earlier ones on which it depends, as texts in order.

    A statement that only draws counts if a name that it binds, or a picture that it changes, is
    read afterwards. Any other statement counts if it makes or changes a name that is needed
    anywhere.
    """
    bodies, outer = {}, {}  # name -> the names that the body of the function or class reads
    for s in statements[:i]:
        if isinstance(s.tree, ast.FunctionDef | ast.ClassDef):
            bodies.setdefault(s.tree.name, set()).update(s.reads)
            outer.setdefault(s.tree.name, set()).update(free(s.tree))
    needed = _with_bodies(statements[i].reads, bodies)
    live = _with_bodies(free(statements[i].tree), outer)
    chosen = [canonical(_without_wording(statements[i].tree))]
    for statement in reversed(statements[:i]):
        tree = statement.tree
        if isinstance(tree, ast.Import | ast.ImportFrom):
            chosen += [canonical(a) for a in tree.names if _bound(a) in needed]
        elif statement.makes & needed and _claimed(tree) is None:
            if statement.drawn is not None and not statement.drawn & live:
                continue
            needed |= _with_bodies(statement.reads, bodies)
            live = _with_bodies(live_before(tree, live), outer)
            chosen.append(statement.text)
    return reversed(chosen)


def _with_bodies(names, bodies):
    """Return the names and all names that their functions read.

    These may have changed since the `def`.
    """
    found, new = set(), set(names)
    while new:
        found |= new
        new = set().union(*(bodies.get(name, ()) for name in new)) - found
    return found


def _digest(texts):
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def canonical(node):
    """Return a syntax tree as text that is the same in every version of Python."""
    if isinstance(node, list):
        kept = [n for n in node if not _is_docstring(n)]
        return "[" + " ".join(map(canonical, kept)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [
        f"{name}={canonical(value)}"
        for name, value in ast.iter_fields(node)
        if name not in SKIPPED and value not in (None, [])
    ]
    return f"({type(node).__name__} {' '.join(fields)})"


def _is_docstring(node):
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _trees(cell):
    if cell["cell_type"] != "code":
        return []
    try:
        return OfFullRun().visit(ast.parse(cell["source"])).body
    except SyntaxError:  # `problems` reports the syntax error
        return []


class OfFullRun(ast.NodeTransformer):
    """A transformer that keeps the branch of a full run wherever code asks `course.full()`."""

    def visit_If(self, node):
        chosen = in_full_run(node.test)
        if chosen is None:
            return self.generic_visit(node)
        kept = node.body if chosen else node.orelse
        return [new for old in kept for new in _as_list(self.visit(old))]

    def visit_IfExp(self, node):
        chosen = in_full_run(node.test)
        if chosen is None:
            return self.generic_visit(node)
        return self.visit(node.body if chosen else node.orelse)

    def visit_Call(self, node):
        dropped = SHORTER.get(ast.unparse(node.func).removeprefix("course."))
        node.keywords = [k for k in node.keywords if dropped is None or k.arg != dropped]
        return self.generic_visit(node)


def in_full_run(test):
    """Return the value of a condition in a full run, if it depends on the kind of run only.

    `course.full()` and `course.small()` name the kind.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        value = in_full_run(test.operand)
        return None if value is None else not value
    if isinstance(test, ast.BoolOp):
        values, decides = [in_full_run(v) for v in test.values], isinstance(test.op, ast.Or)
        if decides in values:  # a true value decides an `or`, a false one decides an `and`
            return decides
        return None if None in values else not decides
    return {"course.full()": True, "course.small()": False}.get(ast.unparse(test))


def _as_list(found):
    return found if isinstance(found, list) else [found]


def _statement(tree, modules=frozenset()):
    """Return the names that a statement makes and reads, given the names that imports define."""
    makes, reads = set(), set()
    if isinstance(tree, ast.FunctionDef | ast.ClassDef):  # the body runs only when it is called
        makes.add(tree.name)
        reads = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        return Statement(tree, makes, reads)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (reads if isinstance(node.ctx, ast.Load) else makes).add(node.id)
        elif isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            makes.add(root(node))  # x.data = ..., x[i] = ... change x
        elif isinstance(node, ast.Call) and not _only_shows(node.func):
            # a call such as x.train() or fit(x) may change its object and its arguments
            given = [*node.args, *[k.value for k in node.keywords]]
            if isinstance(node.func, ast.Attribute) and not _leaves(node.func, modules):
                makes.add(root(node.func))
            makes |= {root(a) for a in given if isinstance(a, ast.Name | ast.Attribute)} - modules
    return Statement(tree, makes - {None}, reads)


def _leaves(function, modules):
    """Return whether a call changes no state of its module, like np.stack, unlike
    np.random.seed.
    """
    return root(function) in modules and not function.attr.startswith(("set_", "seed"))


def _only_shows(function):
    """Return whether a call only draws or prints, such as plot.bars, widgets.vectors or
    ta.trace.
    """
    traces = isinstance(function, ast.Attribute) and function.attr == "trace"
    return traces or root(function) in SHOWS


def _bound(alias):
    """Return the name that an import defines, such as np for `import numpy as np`."""
    return alias.asname or alias.name.split(".")[0]


def _claim_call(tree):
    call = tree.value if isinstance(tree, ast.Expr) else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) in ("course.claim", "claim"):
        return call
    return None


def _claimed(tree):
    """Return the number of the claim that a statement tests, or None."""
    call = _claim_call(tree)
    if call is None or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    return call.args[0].value


def _without_wording(tree):
    """Return a claim without the words about its result, which may be edited at any time."""
    call = _claim_call(tree)
    kept = [k for k in call.keywords if k.arg not in WORDING]
    return ast.Expr(ast.Call(call.func, call.args[:2], kept))
