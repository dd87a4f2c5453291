"""Find the statements of a lecture that only draw or print, so no experiment depends on them.

A loop such as `for ax, (name, found) in zip(picture.axes, results.items())` binds `name` and
`found`, which an experiment may use as names of its own. Such a statement belongs to an experiment
only if one of these names is read before it gets another value. Two questions decide this, and in
case of doubt the statement is kept:

- `Drawings.contain(tree)`: does the statement draw, and change only pictures and its own names?
- `live_before(tree, live)`: which names with earlier values does the rest of the experiment read?
"""

import ast

# Drawing and printing do not change an experiment, so calls on these names are left out.
SHOWS = {"plot", "plt", "print", "fig", "ax", "axes", "display", "widgets"}
# the names in SHOWS that are not pictures themselves
TOOLS = {"plot", "plt", "print", "display", "widgets"}
# functions and methods that return something and change nothing
BUILTINS = {
    *("abs", "bool", "dict", "enumerate", "float", "int", "len", "list", "max", "min", "range"),
    *("round", "set", "sorted", "str", "sum", "tuple", "zip"),
}
METHODS = {
    *("astype", "capitalize", "format", "items", "join", "keys", "max", "mean", "min", "numpy"),
    *("ravel", "reshape", "split", "std", "sum", "swapaxes", "tolist", "transpose", "values"),
}
NUMPY = {
    *("abs", "arange", "argmax", "argsort", "array", "asarray", "concatenate", "cos", "cumsum"),
    *("diag", "exp", "eye", "flatnonzero", "full", "full_like", "hypot", "linspace", "log"),
    *("log10", "max", "maximum", "mean", "median", "min", "minimum", "ones", "ones_like"),
    *("percentile", "polyval", "quantile", "round", "sin", "sort", "sqrt", "stack", "std", "sum"),
    *("tile", "transpose", "vstack", "where", "zeros", "zeros_like"),
}
# The values of these keywords are words of a figure if the call draws or calls a method in
# PANEL_METHODS, which belongs to Matplotlib in a lecture. In LABELLING, all arguments are words.
LABELS = {"label", "suptitle", "title", "xlabel", "ylabel"}
PANEL_METHODS = {
    *("annotate", "axhline", "axvline", "bar", "barh", "colorbar", "errorbar", "fill_between"),
    *("hist", "imshow", "legend", "plot", "scatter", "set", "set_title", "set_xlabel"),
    *("set_ylabel", "step", "suptitle"),
}
LABELLING = {"annotate", "set_title", "set_xlabel", "set_ylabel", "suptitle"}
SCOPES = ast.Lambda | ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
USED_UP = {"enumerate", "filter", "iter", "map", "reversed", "zip"}


class Drawings:
    """The statements of one lecture that only draw, and the names of its pictures.

    Args:
        trees   the statements of all cells
    """

    def __init__(self, trees):
        self.stored = {n.id for tree in trees for n in _stores(tree)}
        functions = [t for t in trees if isinstance(t, ast.FunctionDef)]
        self.iterators = {
            name
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and _is_iterator(node.value)
            for name in map(root, node.targets)
        }
        self.names, self.functions, self.makers = set(SHOWS), set(), set()
        for _ in range(4):  # repeated for panels of panels, and functions that call functions
            self.names = self._picture_names(trees)
            refused = {f.name for f in functions if not all(map(self._part_is_harmless, f.body))}
            self.functions = {f.name for f in functions} - refused - self.stored
            others = {f.name for f in functions if not self._returns_pictures(f)}
            self.makers = self.functions - others

    def contain(self, tree):
        """Return whether a statement draws, and changes only pictures and the names it binds."""
        touches = any(isinstance(n, ast.Name) and n.id in self.names for n in ast.walk(tree))
        shows = any(isinstance(n, ast.Call) and self._shows(n.func) for n in ast.walk(tree))
        return (touches or shows) and self._harmless(tree)

    def touched_by(self, tree):
        """Return the names that a drawing statement binds, and those of the pictures it draws."""
        read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        return {n.id for n in _stores(tree)} | (read & self.names) - TOOLS

    def labels(self, call):
        """Return the arguments of a call that are labels of a figure."""
        method = call.func.attr if isinstance(call.func, ast.Attribute) else None
        if not self._shows(call.func) and method not in PANEL_METHODS:
            return []
        named = [k.value for k in call.keywords if k.arg in LABELS]
        return named + (call.args if method in LABELLING else [])

    def _harmless(self, tree):
        match tree:
            case ast.Expr(value=value):
                return self._plain(value)
            case ast.Assign(targets=[target], value=value):
                return _only_names(target) and self._plain(value)
            case ast.For(target=target, iter=source, body=body, orelse=[]):
                return (
                    _only_names(target) and self._plain(source) and all(map(self._harmless, body))
                )
            case ast.If(test=test, body=body, orelse=orelse):
                return self._plain(test) and all(map(self._harmless, [*body, *orelse]))
        return False

    def _part_is_harmless(self, tree):
        if isinstance(tree, ast.Return):
            return tree.value is None or self._plain(tree.value)
        return self._harmless(tree)

    def _returns_pictures(self, function):
        values = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
        parts = [p for v in values for p in (v.elts if isinstance(v, ast.Tuple) else [v])]
        return bool(parts) and all(p is not None and root(p) in self.names for p in parts)

    def _plain(self, node):
        """Return whether evaluating an expression changes nothing but pictures."""
        for n in ast.walk(node):
            if isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
                return False
            if isinstance(n, ast.Name) and n.id in self.iterators:
                return False  # an iterator is used up by reading it
            if isinstance(n, ast.Call) and not self._call_is_plain(n):
                return False
        return True

    def _call_is_plain(self, call):
        if self._shows(call.func):
            return True
        if isinstance(call.func, ast.Name):
            return call.func.id in BUILTINS - self.stored
        if not isinstance(call.func, ast.Attribute):
            return False
        if root(call.func) == "np":
            function = ast.unparse(call.func).split(".")
            return len(function) == 2 and function[1] in NUMPY and len(call.args) > 0
        return call.func.attr in METHODS and not any(k.arg == "out" for k in call.keywords)

    def _shows(self, function):
        return root(function) in self.names | self.functions

    def _picture_names(self, trees):
        """Return the names that always stand for pictures or their panels."""
        pictures, others = set(SHOWS), set()
        for tree in trees:
            panels = set()
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign) and root(node.value) in self.names | self.makers:
                    panels |= {n for t in node.targets for n in _stores(t)}
                elif isinstance(node, ast.For):
                    panels |= self._panels(node.target, node.iter)
            pictures |= {n.id for n in panels}
            others |= {n.id for n in _stores(tree) if n not in panels}
        return pictures - others

    def _panels(self, target, source):
        """Return the names of a loop that stand for pictures: `ax` in zip(picture.axes, …)."""
        match target, source:
            case ast.Name(), ast.Attribute() | ast.Name() | ast.Subscript():
                return {target} if root(source) in self.names else set()
            case ast.Tuple(elts=[_, inner]), ast.Call(
                func=ast.Name(id="enumerate"), args=[what, *_]
            ):
                return self._panels(inner, what)
            case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args):
                pairs = zip(parts, args, strict=False)
                return set().union(*(self._panels(t, s) for t, s in pairs))
            case ast.Tuple(elts=parts), ast.Tuple(elts=rows):
                columns = [r.elts for r in rows if isinstance(r, ast.Tuple)]
                return {
                    part
                    for k, part in enumerate(parts)
                    if isinstance(part, ast.Name)
                    and len(columns) == len(rows)
                    and all(k < len(c) and root(c[k]) in self.names for c in columns)
                }
        return set()


class WithoutLabels(ast.NodeTransformer):
    """A transformer that removes the words from the labels of figures, and keeps their code.

    Args:
        drawings   the `Drawings` of the lecture
    """

    def __init__(self, drawings):
        self.drawings = drawings

    def visit_Call(self, node):
        for label in self.drawings.labels(node):
            for part in ast.walk(label):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    part.value = ""
        return self.generic_visit(node)


def live_before(tree, live):
    """Return the names whose values matter before a statement, if those in `live` matter after
    it.
    """
    match tree:
        case ast.Assign(targets=targets, value=value):
            bound = {n for t in targets for n in _plainly_bound(t)}
            return (live - bound) | set().union(*map(free, [*targets, value]))
        case ast.For(target=target, iter=source, body=body, orelse=[]):
            names = _plainly_bound(target)
            again = live_before_all(body, live) - names
            return (
                free(source) | free(target) | live | (live_before_all(body, live | again) - names)
            )
        case ast.With(items=items, body=body):
            return live | live_before_all(body, live) | set().union(*map(free, items))
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return (live - {name}) | free(tree)
    return live | free(tree)


def live_before_all(trees, live):
    """Return the names whose values matter before a sequence of statements."""
    for tree in reversed(trees):
        live = live_before(tree, live)
    return live


def free(node):
    """Return the names that a piece of code reads from scopes outside of it."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return {name}
        case ast.AugAssign(target=target, value=value):
            return _read_or_stored(target) | free(value)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            own = set().union(*(_plainly_bound(g.target) for g in node.generators))
            return (_free_parts(node) - own) | free(node.generators[0].iter)
        case ast.Lambda(args=args, body=body):
            return (free(body) - _parameters(args)) | _defaults(args)
        case ast.FunctionDef(args=args, body=body, decorator_list=decorators):
            declared = [s for s in ast.walk(node) if isinstance(s, ast.Global | ast.Nonlocal)]
            outer = {name for s in declared for name in s.names}
            own = (_parameters(args) | set().union(*map(_own_names, body))) - outer
            inside = set().union(*map(free, [*body, *decorators]))
            return (inside - own) | outer | _defaults(args)
    return _free_parts(node)


def root(node):
    """Return the name at the beginning, such as a in a.b[c].d(), or None if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def _free_parts(node):
    return set().union(*(free(child) for child in ast.iter_child_nodes(node)))


def _read_or_stored(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _stores(node):
    """Return where a piece of code stores a name, including inner scopes."""
    return {n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _own_names(node):
    """Return the names that a piece of code binds in its own scope."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, SCOPES):
        return set()
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    return set().union(*map(_own_names, ast.iter_child_nodes(node)))


def _only_names(target):
    """Return whether an assignment binds names, and writes into nothing."""
    return all(isinstance(n, ast.Name | ast.Tuple | ast.Store) for n in ast.walk(target))


def _is_iterator(value):
    """Return whether a value is used up by reading it, such as (f(x) for x in xs)."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in USED_UP
    return isinstance(value, ast.GeneratorExp)


def _plainly_bound(target):
    """Return the names that an assignment certainly rebinds, such as x and y in `x, y, z[0] =
    …`.
    """
    match target:
        case ast.Name(id=name):
            return {name}
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return set().union(*map(_plainly_bound, parts))
        case ast.Starred(value=value):
            return _plainly_bound(value)
    return set()


def _parameters(args):
    return {a.arg for a in ast.walk(args) if isinstance(a, ast.arg)}


def _defaults(args):
    given = [*args.defaults, *[d for d in args.kw_defaults if d is not None]]
    return set().union(*map(free, given))
