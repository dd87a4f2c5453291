"""Which cells of a notebook change their meaning when they are run again after later cells.

A student runs one cell again, or the last ones before the first. A cell then finds the names as the
cells that ran last have left them. It survives if each name that it reads from another cell has
one meaning in the whole notebook: no later cell gives the name to something else.
"""

import ast
import symtable
from dataclasses import dataclass, field

GENERATOR = "np.random.default_rng("


@dataclass(frozen=True)
class Reused:
    """A name that a cell reads from an earlier one, and that a later one (or itself) sets anew."""

    cell: int
    name: str
    earlier: int  # the last cell before that sets the name
    later: tuple  # the cells that set it anew

    def __str__(self):
        anew = ", ".join(map(str, self.later))
        return f"cell {self.cell} reads {self.name} of cell {self.earlier}, set anew in {anew}"


@dataclass
class Names:
    """The names of a cell: those that it reads before it sets them, {name: what it sets it to
    last}, {function or class: the names that its body reads when it is called}, and the lists of
    other cells that it makes longer.
    """

    reads: set = field(default_factory=set)
    sets: dict = field(default_factory=dict)
    bodies: dict = field(default_factory=dict)
    longer: set = field(default_factory=set)


def reused(cells):
    """Return the names whose meaning depends on which cells ran last, of the cells of a text.

    A later cell may set a name by the same statement (`FIVE = range(5)`). A name that holds a
    random generator in all cells is not counted: in each of its states it gives random numbers.
    """
    found, bodies = [], {}
    names = {
        i: names_of(cell["source"]) for i, cell in enumerate(cells) if cell["cell_type"] == "code"
    }
    generators = _only_generators(names.values())
    for i, cell in names.items():
        called = _with_bodies(cell.reads, bodies) - set(cell.sets)
        for name in sorted((cell.reads | called) - generators):
            earlier = [j for j in names if j < i and name in names[j].sets]
            if earlier:
                meaning = names[earlier[-1]].sets[name]
                later = [j for j in names if j >= i and names[j].sets.get(name, meaning) != meaning]
                if name in cell.longer:
                    later.insert(0, i)
                if later:
                    found.append(Reused(i, name, earlier[-1], tuple(later)))
        for name in cell.sets:
            bodies.pop(name, None)
        bodies |= cell.bodies
    return found


def names_of(source):
    """Return the names of a cell. The body of a function reads its global names when it is called,
    so what the cell sets anywhere is its own.
    """
    lines = ["" if line.startswith(("%", "!")) else line for line in source.split("\n")]
    source = "\n".join(lines)
    order, late, bodies = _Order(), set(), {}
    for statement in ast.parse(source).body:
        order.visit_statement(statement)
    for scope in symtable.symtable(source, "cell", "exec").get_children():
        late |= _globals_of(scope)
        name = order.lambdas.get(scope.get_lineno(), scope.get_name())
        if name in order.sets:
            bodies.setdefault(name, set()).update(_globals_of(scope))
    return Names(order.reads | (late - set(order.sets)), order.sets, bodies, order.longer)


class _Order(ast.NodeVisitor):
    """The names of the code outside of functions, in the order in which it runs."""

    def __init__(self):
        self.reads, self.sets, self.longer = set(), {}, set()
        self.statement = None  # the one at the top level
        self.lambdas = {}  # line -> the name to which it gives a lambda

    def visit_statement(self, statement):
        self.statement = ast.unparse(statement)
        self.visit(statement)

    def store(self, name, value=None):
        self.sets[name] = value or self.statement

    def load(self, name):
        if name not in self.sets:
            self.reads.add(name)

    def visit_Name(self, node):
        (self.load if isinstance(node.ctx, ast.Load) else self.store)(node.id)

    def visit_Assign(self, node):
        for part in [node.value, *node.targets]:
            self.visit(part)
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
            for part, value in pairs:
                if not isinstance(part, ast.Name):
                    continue
                if GENERATOR in ast.unparse(value):
                    self.store(part.id, ast.unparse(value))
                for inner in ast.walk(value):
                    if isinstance(inner, ast.Lambda):
                        self.lambdas[inner.lineno] = part.id

    def visit_AugAssign(self, node):
        """`a |= b` adds to what is there, and nothing the second time."""
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.load(node.target.id)
            if isinstance(node.op, ast.BitOr):
                return
        self.visit(node.target)

    def visit_AnnAssign(self, node):
        for part in filter(None, [node.value, node.target]):
            self.visit(part)

    def visit_For(self, node):
        for part in [node.iter, node.target, *node.body, *node.orelse]:
            self.visit(part)

    def visit_ExceptHandler(self, node):
        if node.name:
            self.store(node.name)
        self.generic_visit(node)

    def visit_Call(self, node):
        """`x.append(1)` makes a list longer; `np.append(x, 1)`, with two arguments, a new one."""
        self.generic_visit(node)
        appends = isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "extend")
        if appends and len(node.args) == 1:
            of = node.func.value
            while isinstance(of, ast.Attribute | ast.Subscript):
                of = of.value
            if isinstance(of, ast.Name) and of.id in self.reads:
                self.longer.add(of.id)

    def visit_FunctionDef(self, node):
        values = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        for part in values:
            self.visit(part)
        self.store(node.name)

    def visit_Lambda(self, node):
        for part in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(part)

    def visit_ClassDef(self, node):
        for part in [*node.decorator_list, *node.bases, *[k.value for k in node.keywords]]:
            self.visit(part)
        self.store(node.name)

    def visit_Import(self, node):
        for alias in node.names:
            self.store((alias.asname or alias.name).split(".")[0])

    visit_ImportFrom = visit_Import

    def comprehension(self, node):
        """Its loop variables are its own; all else it reads now."""
        inner = _Order()
        targets = [n for g in node.generators for n in ast.walk(g.target)]
        own = [n.id for n in targets if isinstance(n, ast.Name)]
        inner.sets = dict.fromkeys([*self.sets, *own])
        for part in ast.iter_child_nodes(node):
            parts = [part.iter, *part.ifs] if isinstance(part, ast.comprehension) else [part]
            for p in parts:
                inner.visit(p)
        self.reads |= inner.reads

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension


def _globals_of(scope):
    """Return the global names that a function or class, and all inside of it, reads."""
    names = {s.get_name() for s in scope.get_symbols() if s.is_global() and s.is_referenced()}
    return names.union(*map(_globals_of, scope.get_children()))


def _with_bodies(names, bodies):
    """Return the names that the functions with these names read, and those that they call."""
    found, new = set(), set(names)
    while new:
        found |= new
        new = set().union(*(bodies.get(name, ()) for name in new)) - found
    return found - set(names)


def _only_generators(cells):
    """Return the names that every cell which sets them sets to a random generator."""
    values = {}
    for cell in cells:
        for name, value in cell.sets.items():
            values.setdefault(name, []).append(value)
    return {name for name, found in values.items() if all(v.startswith(GENERATOR) for v in found)}
