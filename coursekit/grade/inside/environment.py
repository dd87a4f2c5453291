"""The environment of a student's code in the sandbox: a list of names, and nothing else.

A student's cell runs with the builtins of `builtins_of`. Its imports return stand-ins for modules
that show only listed names: NumPy's, some of Python's own library, and those of tinyattn that the
task names. `constructs.refused` has checked the code before, so no attribute leads further.
"""

import ast
import builtins
import dataclasses
import importlib
import numbers
import types

import numpy as np
from constructs import BUILTINS, is_refused, refused


class Forbidden(Exception):
    """The error for code that the task does not allow, such as a name that it does not list."""


# --- the listed names

NUMPY_REFUSED = {
    "DataSource",
    "bmat",
    "fromfile",
    "fromregex",
    "genfromtxt",
    "get_include",
    "info",
    "load",
    "loadtxt",
    "memmap",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
    "setbufsize",
    "seterr",
    "seterrcall",
    "show_config",
    "show_runtime",
    "test",
}
NUMPY = [name for name in np.__all__ if name not in NUMPY_REFUSED]
MODULES = {  # A student's code can import these names of Python and NumPy. None: all public ones
    "numpy": [n for n in NUMPY if not isinstance(getattr(np, n), types.ModuleType)],
    "numpy.linalg": np.linalg.__all__,
    "numpy.fft": np.fft.__all__,
    "numpy.random": np.random.__all__,
    "numpy.lib": [],
    "numpy.lib.stride_tricks": ["as_strided", "sliding_window_view", "broadcast_to"],
    "numpy.testing": ["assert_allclose", "assert_array_equal", "assert_almost_equal"],
    "numpy.typing": ["ArrayLike", "DTypeLike", "NDArray"],
    "abc": ["ABC", "abstractmethod"],
    "bisect": None,
    "collections": None,
    "collections.abc": None,
    "contextlib": ["contextmanager", "nullcontext", "suppress"],
    "copy": ["copy", "deepcopy"],
    "dataclasses": ["dataclass", "field", "astuple", "asdict"],
    "decimal": ["Decimal"],
    "fractions": ["Fraction"],
    "functools": ["cache", "cached_property", "lru_cache", "partial", "reduce", "wraps"],
    "heapq": None,
    "itertools": None,
    "math": None,
    "numbers": ["Integral", "Number", "Real"],
    "operator": None,
    "random": None,
    "re": None,
    "statistics": None,
    "string": ["ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "punctuation"],
    "time": ["monotonic", "perf_counter", "process_time", "time"],
    "typing": """Any Callable Dict Generator Iterable Iterator List Literal Mapping Optional
        Sequence Set Tuple TypeVar Union""".split(),
}
NOT_OF = {"operator": {"attrgetter", "call", "methodcaller"}, "collections": {"UserString"}}
# Modules that draw, print or measure. Grading reads none of their results, so they do nothing.
SILENT = {
    "IPython",
    "PIL",
    "matplotlib",
    "mpl_toolkits",
    "plotly",
    "pprint",
    "seaborn",
    "tinyattn.course",
    "tinyattn.plot",
    "tinyattn.widgets",
    "tqdm",
    "warnings",
}
# attributes of a Tensor that NumPy's arrays do not have
TENSOR = set(
    """backward bmm bool cat chunk clamp clone contiguous cpu data detach device dim double eq
    expand expand_as flatten float grad gt half int is_leaf item long lt mT masked_fill mm
    mul mv ndimension neg nelement numel numpy permute requires_grad requires_grad_ reshape_as
    retain_grad size sub div pow t to type type_as unbind unsqueeze view""".split()
)
DERIVED = "exp exp2 expm1 log log2 log10 log1p sinh cosh tanh sin cos tan arcsinh arccosh arctanh"
COUNTED = [*DERIVED.split(), "arcsin", "arccos", "arctan", "power", "pow", "float_power", "sqrt"]
COUNTED += ["logaddexp", "logaddexp2", "ldexp", "sinc", "i0", "cbrt"]
COUNTED += ["acos", "acosh", "asin", "asinh", "atan", "atanh", "erf", "erfc", "gamma", "lgamma"]
# with these modules, code could compute an exp that is not counted, such as cmath.exp, Decimal.exp
# or the density of a distribution
NOT_BY_HAND = {"cmath", "decimal", "fractions", "numpy.fft", "numpy.random", "random", "statistics"}
NO_WAY_ROUND = {"geomspace", "logspace", "vectorize", "frompyfunc", "emath", "kaiser"}
# these make complex numbers, or take them apart
NO_WAY_ROUND |= {"angle", "imag", "iscomplex", "real", "real_if_close", "roots", "vander"}
# differences of complex numbers, or of numbers with more digits, are as exact as derivatives
WIDE = {"longdouble", "clongdouble", "cdouble", "csingle", "object_"}


# these attributes of a Tensor belong to the engine, which tasks by hand must not use
ENGINE = {"backward", "grad", "grad_fn", "requires_grad", "requires_grad_"}
# the library's names that give access to the engine, or that compute derivatives with it
OF_ENGINE = {"Tensor", "tensor", "no_grad", "grad", "gradients", "value_and_grad", "jacobian"}
OF_ENGINE |= {"hessian", "backward_pass"}
BY_HAND = "although the derivative must be derived by hand"
# these take a complex number apart, or avoid an operator, because operators are checked
PARTS = {"conj", "conjugate", "imag", "real", "view", "as_integer_ratio"}
PARTS |= {
    f"__{way}{name}__"
    for name in "add and divmod floordiv matmul mod mul or pow sub truediv xor".split()
    for way in ("", "r", "i")
}
# attributes of the engine's objects that students may set
SETTABLE = {"data", "grad", "requires_grad"}


class Count:
    """A counter of the numbers that passed through exp, tanh and similar functions."""

    numbers = 0


def silent(name="it"):
    """Return an object that accepts every call, attribute and loop, and does nothing."""

    class Nothing:
        __slots__ = ()

        def __getattribute__(self, attribute):
            if is_refused(attribute):
                raise AttributeError(f"'{name}' has no attribute '{attribute}' here")
            return self

        def __call__(self, *given, **options):
            if len(given) == 1 and callable(given[0]):
                return given[0]  # the call is a decorator
            if given and hasattr(type(given[0]), "__iter__") and name == "tqdm":
                return given[0]
            return self

        def __iter__(self):
            return iter((self, self))  # fig, ax = plt.subplots()

        def __getitem__(self, key):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

        def __repr__(self):
            return f"<{name}>"

    return Nothing()


def refusing(what):
    """Return an object that raises Forbidden with the text `what` when it is used."""

    def stop(*given, **options):
        raise Forbidden(what)

    class Refusing:
        __slots__ = ()
        __getattribute__ = __call__ = __iter__ = __getitem__ = __enter__ = stop
        __add__ = __radd__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = stop
        __bool__ = __len__ = __array__ = __mro_entries__ = stop

    return Refusing()


def shown(full):
    """Return a full name in the form that students write."""
    return (
        full.replace("tinyattn.functional", "F", 1)
        if full.startswith("tinyattn.functional.")
        else full.removeprefix("tinyattn.")
    )


class Environment:
    """The names that one task may use."""

    def __init__(self, allowed=(), by_hand=False):
        self.by_hand = by_hand
        self.allowed = [resolve(name) for name in allowed]
        self.made = {}
        self.builtins = self._builtins()

    def lists(self, value):
        """Return whether the task lists an object of the library."""
        return any(value is one for one in self.allowed)

    def refuse(self, value):
        """Return a replacement for an object of the library that the task does not list."""
        full = shown(f"{value.__module__}.{getattr(value, '__name__', type(value).__name__)}")
        return refusing(self._not_listed(full))

    def _not_listed(self, full):
        """Return why a task that does not list an object of the library must not use it."""
        if self.by_hand and full.rpartition(".")[2] in OF_ENGINE:
            return f"you use {full}, {BY_HAND}"
        return f"you use {full}, which this task asks you to write yourself"

    # --- modules

    def module(self, name):
        """Return the stand-in for a module, which shows only listed names."""
        if name not in self.made:
            self.made[name] = self._stand_in(name)
        return self.made[name]

    def _stand_in(self, name):
        top = name.split(".")[0]
        for quiet in (name, top, ".".join(name.split(".")[:2])):
            if quiet in SILENT:
                return silent(top)
        if self.by_hand and name in NOT_BY_HAND:
            return refusing(f"you use {name}, {BY_HAND}")
        if name in MODULES:
            return self._listed(name, MODULES[name])
        if top == "tinyattn":
            return self._library(name)
        return refusing(f"you use {name}, which is not available in graded code. Use NumPy instead")

    def _listed(self, name, names):
        real = importlib.import_module(name)
        names = names if names is not None else public(real)
        values = {n: getattr(real, n) for n in names if hasattr(real, n)}
        for hidden in NOT_OF.get(name, ()):
            values.pop(hidden, None)
        for inner in MODULES:
            package, _, last = inner.rpartition(".")
            if package == name:
                values[last] = inner
        if name == "numpy":
            values |= {"__version__": np.__version__, "seterr": lambda **options: {}}
        if name == "time":
            values["sleep"] = nothing
        values |= {n: MADE_SAFE[n] for n in values if n in MADE_SAFE and name in SAFE_OF}
        if self.by_hand and name in ("numpy", "numpy.linalg", "math", "operator"):
            self._count(values)
        return self._names(name, values)

    def _count(self, values):
        for name in [n for n in values if "complex" in n or n in NO_WAY_ROUND | WIDE]:
            del values[name]
        for name, value in values.items():
            if name.strip("_") in COUNTED or name == "ipow":
                values[name] = counted(value)
            elif callable(value) and not isinstance(value, type):
                values[name] = plain_numbers(value)

    def _names(self, name, values):
        def look(attribute):
            if type(attribute) is not str:
                raise TypeError("attribute name must be string")
            if attribute == "__all__":
                return [n for n in values if not n.startswith("_")]
            if attribute in values:
                value = values[attribute]
                inner = f"{name}.{attribute}"
                return self.module(inner) if value == inner and type(value) is str else value
            raise AttributeError(f"module '{name}' has no attribute '{attribute}' here") from None

        return stand_in(name, look)

    def _library(self, name):
        real = vars(importlib.import_module(name))

        def look(attribute):
            if type(attribute) is not str:
                raise TypeError("attribute name must be string")
            value = real.get(attribute)
            if isinstance(value, types.ModuleType) and value.__name__.startswith("tinyattn"):
                return self.module(value.__name__)
            if value is not None and self.lists(value):
                return value
            if attribute.startswith("__"):
                raise AttributeError(
                    f"module '{name}' has no attribute '{attribute}' here"
                ) from None
            full = shown(f"{name}.{attribute}")
            if attribute not in real:
                raise Forbidden(f"you use {full}, which does not exist. Check its spelling")
            raise Forbidden(self._not_listed(full))

        return stand_in(name, look)

    def refuses(self, attribute):
        """Return whether an attribute is forbidden for the student's code."""
        return is_refused(attribute) or (self.by_hand and attribute in ENGINE | PARTS)

    # --- builtins

    def _builtins(self):
        names = {
            name: value
            for name, value in vars(builtins).items()
            if name not in BUILTINS and (not name.startswith("_") or name == "__build_class__")
        }
        for name in ("exit", "quit", "copyright", "credits", "license", "aiter", "anext"):
            names.pop(name, None)
        if self.by_hand:
            names.pop("complex")
            names |= {"sum": plain_numbers(sum), "divmod": plain_numbers(divmod)}
        return names | {
            "__build_class__": build_class,
            "__import__": self._import,
            "__name__": "__main__",
            "getattr": safe(getattr, self.refuses),
            "hasattr": safe(hasattr, self.refuses),
            "setattr": safe(lambda value, *rest: setattr(own(value, rest[0]), *rest), self.refuses),
            "type": kind_of,
            "print": nothing,
            "display": nothing,
            "input": lambda *_: "",
            "pow": lambda a, b, m=None: self.power(a, b) if m is None else pow(a, b, m),
            "*power": self.power,
            "*format": formatter,
            "*kind": kind_of,
            "*own": own,
            "*plain": plain_number,
            "*cast": lambda value: plain_numbers(value.astype),
        }

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        if level:
            raise ImportError(
                "relative imports need a package, and a notebook is not in one. Write import name"
            )
        if not fromlist:
            top = name.split(".")[0]
            if top != name:
                self.module(name)
            return self.module(top)
        return _from(self, name)

    def power(self, a, b):
        """Return a ** b."""
        result = a**b
        if self.by_hand:
            plain = (0.5, -0.5, 2.0, -1.0, -2.0)
            whole = isinstance(b, int) or (isinstance(b, float) and b in plain)
            if not whole:
                Count.numbers += np.size(result)
            plain_number(result)
        return result

    # --- running

    def run(self, tree, where, names):
        """Run statements of a student (an ast.Module) with these builtins."""
        if found := refused(tree):
            raise Forbidden(f"you use {found}, which is not allowed in graded code")
        for node in ast.walk(tree) if self.by_hand else ():
            if _complex_literal(node):
                raise Forbidden(
                    "you use complex numbers, but the derivative must be derived by hand. Compute "
                    "with real numbers"
                )
            if isinstance(node, ast.Attribute) and node.attr in ENGINE:
                raise Forbidden(
                    f"you use .{node.attr}, {BY_HAND}. Write its formula with + - * / and NumPy's "
                    "functions"
                )
            if isinstance(node, ast.Attribute) and node.attr in PARTS:
                raise Forbidden(
                    f"you use .{node.attr}, which could compute the derivative without deriving "
                    "it, so it is not allowed here. Write the formula of the derivative with "
                    "+ - * / and NumPy's functions"
                )
        names["__builtins__"] = self.builtins
        tree = ast.fix_missing_locations(Rewrite(self.by_hand).visit(tree))
        exec(compile(tree, where, "exec"), names)


def _from(environment, name):
    """Return the object that `from module import names` reads. Refused names raise when used."""
    module = environment.module(name)

    def look(attribute):
        try:
            return getattr(module, attribute)
        except Forbidden as error:
            return refusing(str(error))
        except AttributeError:
            if attribute.startswith("__") or name in MODULES:
                raise
            return refusing(f"there is no {name}.{attribute}")

    return stand_in(name, look)


def _complex_literal(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, complex)


class Rewrite(ast.NodeTransformer):
    """A transformer that replaces powers, str.format and the like by functions of the grader.

    No student can write the names of these functions. In a task by hand, the result of every
    operator is checked too.
    """

    def __init__(self, by_hand=False):
        self.by_hand = by_hand

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow):
            return _call(node, "*power", node.left, node.right)
        return _call(node, "*plain", node) if self.by_hand else node

    def visit_AugAssign(self, node):
        if not isinstance(node.op, ast.Pow):
            self.generic_visit(node)
            if self.by_hand:
                node.value = _call(node.value, "*plain", node.value)
            return node
        text = ast.unparse(node.target)
        self.generic_visit(node)
        read = self.visit(ast.parse(text, mode="eval").body)
        value = _call(node, "*power", read, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Store | ast.Del):
            node.value = _call(node, "*own", node.value, ast.Constant(node.attr))
        elif node.attr == "__class__":
            return _call(node, "*kind", node.value)
        elif node.attr in ("format", "format_map"):
            return _call(node, "*format", node.value, ast.Constant(node.attr))
        elif node.attr == "astype" and self.by_hand:
            return _call(node, "*cast", node.value)
        return node


def _call(at, name, *arguments):
    call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
    for node in ast.walk(call):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, at)
    return call


def stand_in(name, look):
    """Return an object whose attributes are the results of look(attribute)."""

    class Module:
        __slots__ = ()

        def __getattribute__(self, attribute):
            return look(attribute)

        def __repr__(self):
            return f"<module '{name}'>"

    return Module()


def public(module):
    """Return the public names of a module, except names of modules."""
    names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    return [n for n in names if not isinstance(getattr(module, n, None), types.ModuleType)]


def resolve(full):
    """Return the library's object with this full name."""
    parts = full.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
        except AttributeError:
            break
        return found
    raise ValueError(
        f"Homework.allow: {full!r} is not the full name of something in the library. Write it like "
        "tinyattn.nn.Linear"
    )


def safe(function, refuses):
    """Return a version of getattr or a similar function that only sees permitted attributes."""

    def same(value, name, *rest):
        if type(name) is not str:
            raise TypeError("attribute name must be string")
        if refuses(name):
            raise Forbidden(f"you use the name {name}, which is not allowed in graded code")
        if name in ("format", "format_map") and function is getattr:
            return formatter(value, name)
        return function(value, name, *rest)

    return same


def kind_of(value):
    """Return type(value), but refuse the type of a class, which could make other classes."""
    if isinstance(value, type):
        raise Forbidden(
            f"you call type({value.__name__}) of a class, which is not allowed in graded code. "
            "Use the class itself, or type(x) of an object x"
        )
    return type(value)


def formatter(value, name):
    """Return a bound `format` whose fields cannot be attributes."""
    if value is str or isinstance(value, str):

        def fill(*given, **named):
            text = value
            if value is str:
                text, *given = given
            if name == "format_map":
                (named,), given = given, ()
            if any("." in field or "[" in field for field in _fields(str(text))):
                raise Forbidden(
                    "you use a field with an attribute or an index in a text, such as {x.shape}, "
                    'which is not allowed in graded code. Write f"{x.shape}" instead'
                )
            return str.format(str(text), *given, **dict(named))

        return fill
    return getattr(value, name)


def _fields(text):
    import string

    for _, field, spec, _ in string.Formatter().parse(text):
        if field is not None:
            yield field
            yield from _fields(spec or "")


def nothing(*given, **options):
    """Accept the arguments of print(), without printing."""


def counted(function):
    """Return the function, with the numbers that pass through it counted."""

    def same(*given, **options):
        result = function(*given, **options)
        Count.numbers += np.size(result)
        return plain_number(result)

    same.__name__ = getattr(function, "__name__", "function")
    return same


def plain_numbers(function):
    """Return the function, which raises Forbidden if a result is not made of plain numbers."""

    def same(*given, **options):
        return plain_number(function(*given, **options))

    same.__name__ = getattr(function, "__name__", "function")
    for way in ("accumulate", "at", "outer", "reduce", "reduceat"):
        if isinstance(function, np.ufunc):
            setattr(same, way, plain_numbers(getattr(function, way)))
    return same


def plain_number(result):
    """Return a result, unless it is complex or has more digits than a float.

    Such numbers turn differences into derivatives that are as exact as a formula.
    """
    kind = getattr(getattr(result, "dtype", None), "kind", "")
    exact = isinstance(result, numbers.Number) and not isinstance(result, float | np.generic)
    if kind == "c" or (exact and isinstance(result, complex)):
        raise Forbidden(
            "you use complex numbers, but the derivative must be derived by hand. Compute with "
            "real numbers"
        )
    large = exact and (not isinstance(result, int) or result.bit_length() > 64)
    if kind == "O" or large or getattr(result, "dtype", None) == WIDEST != np.float64:
        raise Forbidden(
            "you use numbers with more digits than a float has, but the derivative must be derived "
            "by hand. Compute with floats"
        )
    return result


WIDEST = np.dtype(np.longdouble)


# --- objects of the library stay as they are


def own(value, attribute):
    """Return a value whose attribute a student's code sets, unless it belongs to the library."""
    kind = value if isinstance(value, type) else type(value)
    module = str(getattr(kind, "__module__", "")).split(".")
    if kind in (types.FunctionType, types.BuiltinFunctionType):
        module = str(getattr(value, "__module__", "")).split(".")
    part_of_engine = module[:2] == ["tinyattn", "engine"] and attribute not in SETTABLE
    library = isinstance(value, type) or kind is types.FunctionType
    if part_of_engine or (library and module[0] in ("environment", "numpy", "tinyattn")):
        raise Forbidden(
            f"you set .{attribute} of something that belongs to the library. Set only attributes "
            "of your own objects"
        )
    return value


def build_class(body, name, *bases, **options):
    """Make a class of the student. Raises Forbidden for a class derived from Tensor."""
    from tinyattn import Tensor

    if any(isinstance(base, type) and issubclass(base, Tensor) for base in bases):
        raise Forbidden(
            "you derive a class from Tensor, which is not allowed in graded code. Use Tensor itself"
        )
    return builtins.__build_class__(body, name, *bases, **options)


def wraps(wrapped, **options):
    """Return functools.wraps(wrapped), which copies the name and the docstring only."""

    def give(function):
        for name in ("__name__", "__doc__"):
            if hasattr(wrapped, name):
                setattr(own(function, name), name, getattr(wrapped, name))
        return function

    return give


def dataclass(kind=None, /, **options):
    """Return dataclasses.dataclass for a class of the student's own."""
    if kind is None:
        return lambda kind: dataclass(kind, **options)
    return dataclasses.dataclass(own(kind, "__init__"), **options)


def as_strided(x, shape=None, strides=None, **options):
    """Return NumPy's as_strided view. Raises ValueError if the view reads beyond the array."""
    x = np.asarray(x)
    view = np.lib.stride_tricks.as_strided(x, shape, strides, **options)
    (low, high), (first, last) = map(np.lib.array_utils.byte_bounds, (x, view))
    if first < low or last > high:
        raise ValueError(
            f"as_strided: the view must stay inside the array, but shape={shape} and "
            f"strides={strides} read beyond its ends. Strides are in bytes"
        )
    return view


MADE_SAFE = {"wraps": wraps, "dataclass": dataclass, "as_strided": as_strided}
SAFE_OF = {"functools", "dataclasses", "numpy.lib.stride_tricks"}


def close_tensor():
    """Remove from Tensor all methods that NumPy's arrays do not have and that no task lists."""
    from tinyattn import Tensor

    for name in dir(Tensor):
        if name.startswith("_") or name in TENSOR or hasattr(np.ndarray, name):
            continue
        if hasattr(np, name.rstrip("_")) or name.rstrip("_") in TENSOR:
            continue

        def stop(self, *given, name=name, **options):
            raise Forbidden(f"you use .{name}, which this task asks you to write yourself")

        setattr(Tensor, name, stop)
