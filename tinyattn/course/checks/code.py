"""Find the part of a student's notebook that answers a task, wherever in the notebook it is.

A notebook may have helpers, imports and constants in any cell, and several definitions of a
function, of which the last one counts. Training or a plot in between is not part of an answer. So
the statements of all cells are searched for those that bind a name that the task needs, directly or
through another name.
"""

import ast
import builtins
import re
import symtable
from dataclasses import dataclass, field

from tinyattn.course.checks import listed

TASK = re.compile(r"^## (?:Task )?(\d+)[.:]")
STUB = "raise NotImplementedError("
DEEPEST = 150  # levels of a syntax tree; even a nested program has only a few dozen
LONGEST = 200_000  # characters of a cell; an answer has a few thousand
CELL_MAGIC = re.compile(r"^\s*%%(\w+)")
OTHER_LANGUAGE = {"bash", "sh", "html", "HTML", "javascript", "js", "latex", "markdown", "svg"}
SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
GIVEN = DEFINITIONS | ast.Import | ast.ImportFrom


@dataclass
class Statement:
    """A statement in a cell of the student's notebook."""

    cell: int  # index of the cell in the notebook
    index: int  # index of the statement in the cell
    node: ast.AST
    binds: set  # names that it defines
    changes: set  # names of the objects that it changes
    needs: set  # names that it reads

    @property
    def loops(self):
        """Return True for a statement that may take long, such as a training loop."""
        return isinstance(self.node, ast.For | ast.While | ast.With | ast.If | ast.Try | ast.Expr)


@dataclass
class Code:
    """All code of a notebook that the student wrote."""

    sources: dict = field(default_factory=dict)  # index of a cell -> its text without magics
    statements: list = field(default_factory=list)
    broken: dict = field(default_factory=dict)  # index of a cell -> its syntax error

    def bound(self, names, but=()):
        """Return the statements that bind or write into one of these names.

        Args:
            names   set of names
            but     set of the ast.dump of each statement to omit
        """
        return [
            s
            for s in self.statements
            if (s.binds | s.changes) & names and ast.dump(s.node) not in but
        ]

    def needed(self, names, but=()):
        """Return (the statements that these names need, all names that these statements need).

        Args:
            names   names that a task asks for
            but     names whose statements are omitted
        """
        needed, chosen = set(names), set()
        while True:
            new = [
                i
                for i, s in enumerate(self.statements)
                if i not in chosen and (((s.binds | s.changes) & needed) - set(but))
            ]
            if not new:
                return [self.statements[i] for i in sorted(chosen)], needed
            chosen.update(new)
            for i in new:
                needed |= self.statements[i].needs


def clean(source):
    """Return a cell's source without IPython's magics: "%%time", "%matplotlib", "!pip", "f?"."""
    magic = CELL_MAGIC.match(source)
    if magic and magic[1] in OTHER_LANGUAGE:
        return ""
    lines, inside = [], False
    for line in source[:LONGEST].split("\n"):
        text = line.strip()
        assigned = re.match(r"^\s*[\w, ]+=\s*[%!]", line)
        if not inside and (text[:1] in ("%", "!", "?") or assigned or _asks_for_help(text)):
            indent = line[: len(line) - len(line.lstrip())]
            line = f"{indent}pass" if not text.startswith("%%") else ""
        inside = inside != (line.count('"""') % 2 == 1)
        lines.append(line)
    return "\n".join(lines)


def _asks_for_help(text):
    return text.endswith("?") and re.fullmatch(r"[\w.]+\?{1,2}", text) is not None


def code_of(cells, given):
    """Return the `Code` of cells, except the code that was handed out.

    Args:
        cells   pairs (index of a cell, source)
        given   result of `given_in` for all handed-out cells. It also contains single definitions,
                so that these count as handed out if the student adds a magic or a print to a cell
    """
    code = Code()
    for place, source in cells:
        text = source if parsed(source) is not None else clean(source)
        code.sources[place] = text
        tree = parsed(text)
        if tree is None:
            code.broken[place] = error_of(text)
            text, tree = salvaged(text)
            code.sources[place] = text
        if ast.dump(tree) in given:
            continue
        for index, node in enumerate(tree.body):
            if not isinstance(node, GIVEN) or ast.dump(node) not in given:
                code.statements.append(_statement(place, index, node))
    return code


def given_in(source):
    """Return the set of ast.dump of a handed-out cell and of its definitions and imports."""
    tree = parsed(source)
    if tree is None:
        return set()
    return {ast.dump(tree), *(ast.dump(node) for node in tree.body if isinstance(node, GIVEN))}


def parsed(source):
    """Return the tree of a cell, or None if it has none or is nested unreasonably deeply."""
    try:
        tree = ast.parse((source or "")[: LONGEST + 1])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    level, depth = [tree], 0
    while level and depth < DEEPEST:
        level, depth = [inner for node in level for inner in ast.iter_child_nodes(node)], depth + 1
    return None if level else tree


def error_of(source):
    """Return Python's message about the syntax error in a cell."""
    try:
        ast.parse(source)
    except SyntaxError as error:
        line = f"\nin the line: {error.text.strip()}" if error.text else ""
        return f"the cell has a syntax error: {error.msg}{line}"[:500]
    except (ValueError, RecursionError, MemoryError):
        pass
    return "the cell cannot be read: it is too long, or nested too deeply"


def salvaged(source):
    """Return (source, tree) of the definitions of a broken cell that can be parsed separately."""
    blocks, kept = re.split(r"\n(?=\S)", source), []
    for block in blocks:
        kept.append(block if parsed(block) is not None else re.sub(r".+", "", block))
    text = "\n".join(kept)
    tree = parsed(text)
    return (text, tree) if tree is not None else ("", ast.parse(""))


def names_asked(source):
    """Return the names that a handed-out task cell asks the student to define, a set."""
    tree = parsed(source)
    return set().union(*(_bound_by(node) for node in tree.body)) if tree else set()


def _statement(place, index, node):
    free = free_names(node)
    return Statement(place, index, node, _bound_by(node), _changed_by(node), free)


def _inside(node):
    """Yield the node and its contents, except bodies of functions, classes and comprehensions."""
    yield node
    if isinstance(node, SCOPES | COMPREHENSIONS):
        return
    for child in ast.iter_child_nodes(node):
        yield from _inside(child)


def _bound_by(node):
    found = set()
    for n in _inside(node):
        if isinstance(n, DEFINITIONS):
            found.add(n.name)
        elif isinstance(n, ast.Import | ast.ImportFrom):
            if getattr(n, "module", "") == "__future__":
                continue
            found |= {(a.asname or a.name).split(".")[0] for a in n.names if a.name != "*"}
            if any(a.name == "*" for a in n.names):
                found |= _star(n.module)
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found.add(n.id)
        elif isinstance(n, ast.ExceptHandler) and n.name:
            found.discard(n.name)
    return found


def _star(module):
    if module == "math":
        import math

        return {n for n in vars(math) if n[0] != "_"}
    if module == "numpy":
        import numpy

        return set(numpy.__all__)
    return set()


def _changed_by(node):
    """Return names whose values a statement writes into: x[0] = 1, f.rule = g, f.defvjp(g)."""
    found = set()
    for n in _inside(node):
        target = None
        if isinstance(n, ast.Subscript | ast.Attribute) and isinstance(n.ctx, ast.Store):
            target = n.value
        elif isinstance(n, ast.Expr) and isinstance(n.value, ast.Call):
            target = n.value.func.value if isinstance(n.value.func, ast.Attribute) else None
        while isinstance(target, ast.Attribute | ast.Subscript | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found - {"np", "plt", "ta", "hw", "F", "nn"}


def free_names(node):
    """Return the names of the notebook that a tree reads, including those in its functions."""
    try:
        table = symtable.symtable(ast.unparse(node), "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    found = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    waiting = list(table.get_children())
    while waiting:
        inner = waiting.pop()
        waiting += inner.get_children()
        found |= {s.get_name() for s in inner.get_symbols() if s.is_referenced() and s.is_global()}
    return found


def missing(code, needed, there):
    """Return the names that are needed but not defined, a sorted list.

    Args:
        code     the `Code` of the notebook
        needed   names that are needed
        there    names that exist without the code, such as imports
    """
    defined = set().union(set(), *(s.binds for s in code.statements))
    return sorted(n for n in needed - defined - there if not hasattr(builtins, n) and n[:2] != "__")


class HandedOut:
    """The notebook that students receive.

    Args:
        cells   cells of the notebook, each with its source as a single string

    Attributes:
        asked   {task: names that the student must define}
        given   syntax trees of the code cells that are not tasks
        trees   the results of `given_in` for these cells, as one set
    """

    def __init__(self, cells):
        self.asked, self.given, self.trees = {}, [], set()
        task = None
        for cell in cells:
            source = cell["source"]
            if cell["cell_type"] == "markdown" and (heading := TASK.match(source)):
                task = int(heading[1])
            elif cell["cell_type"] == "code" and STUB in source:
                self.asked.setdefault(task, set()).update(names_asked(source))
            elif cell["cell_type"] == "code" and (tree := parsed(source)) is not None:
                self.given.append(tree)
                self.trees |= given_in(source)

    def why_not(self, homework, task, sources):
        """Return why cells with these `sources` get no points in a `task`, or None if they may."""
        code = code_of(enumerate(sources), self.trees)
        # the names that these functions use count only for the task that asks for them
        earlier = homework.earlier.get(task, ())
        needed, _ = code.needed(self.asked.get(task, set()), earlier)
        trees = [ast.Module([s.node], []) for s in needed]
        aliases = listed.imports(self.given + [s.node for s in code.statements])
        return listed.why_not(trees, homework, task, aliases)
