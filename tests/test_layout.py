"""The floors of both packages: a file imports from below only; and the folders of the tests."""

import ast
import re
import subprocess
import sys

import pytest

from tests import ROOT

PACKAGE = ROOT / "tinyattn"
WORKSHOP = ROOT / "coursekit"  # makes the course; it imports the library, never the reverse

# every file and folder of the package is on one floor
FLOORS = {
    "engine": 0,
    "kernels": 1,
    "ops": 2,
    "functional": 3,
    "check": 3,
    "nn": 4,
    "optim": 4,
    "io": 4,
    "graph": 5,
    "models": 6,
    "inference": 6,
    "data": 6,
    "progress": 6,
    "metrics": 6,
    "training": 6,
    "plot": 6,
    "trace": 6,
    "widgets": 6,
    "warm": 6,
    "course": 7,
    "doctor": 8,
}
# the same for coursekit
WORKSHOP_FLOORS = {
    "build": 0,
    "drawing": 0,
    "pytest_plugin": 0,
    "deck": 1,
    "grade": 2,
    "student": 3,
    "site": 4,
    "make": 4,
    "bundle": 4,
    "cli": 5,
}
# on one floor only these look at each other: (who, at whom)
SIBLINGS = {
    ("training", "data"),
    ("training", "plot"),
    ("training", "progress"),
    ("models", "data"),
    ("models", "inference"),
    ("trace", "widgets"),
}
# who may use which package of others, NumPy apart; a folder inside of a place has its own line
PACKAGES = {
    "kernels/machine": {"numba", "llvmlite"},
    "plot": {"matplotlib", "PIL", "mpl_toolkits", "cycler", "matplotlib_inline"},
    "progress": {"IPython"},
    "doctor": {"llvmlite", "threadpoolctl"},
    "course/two_processes": {"mpi4py"},
}
# of these folders beside the package the table of CONTRIBUTING.md names the inner ones too
FOLDERS_OF = {"coursekit", "lectures", "docs", "tools"}
# folders of tests beside those of tinyattn's modules
OTHER_TESTS = {"coursekit", "mistakes", "parity", "scripts"}
# files of tests/mistakes that are about more than one module
OF_ALL_MODULES = {"wrong_kinds", "hints", "mistakes", "other_names", "reports"}
# in tests of behaviour, the words that an error must contain only tell which error it is
MOST_WORDS = 3
# what `import tinyattn` must not load: it shall stay as quick as NumPy
HEAVY = ["numba", "llvmlite", "matplotlib", "IPython", "jupytext", "nbformat", "torch", "scipy"]


def nodes_that_run(tree):
    """All nodes of a syntax tree but those below `if TYPE_CHECKING:`, which only editors read."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from nodes_that_run(other)
        else:
            yield from nodes_that_run(child)


def imports(source, module):
    """(line, imported module, imported names) for each import; `module` resolves the dots."""
    for node in nodes_that_run(ast.parse(source)):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name, []
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            imported = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, imported, [name.name for name in node.names]


def targets(imported, names):
    """The files and folders of the package that an import reaches."""
    parts = imported.split(".")
    if len(parts) > 1:
        return [parts[1]]
    return [name for name in names if name in FLOORS] or ([] if names else ["__init__"])


def broken_rules(source, module):
    """What the imports of one file break, as (line, rule)."""
    unit = module.split(".")[1]
    packages = PACKAGES.get(unit, PACKAGES.get("/".join(module.split(".")[1:3]), ()))
    if unit not in FLOORS:
        return [(1, f"tinyattn/{unit} stands on no floor; the design's table has no such place")]
    found = []
    for line, imported, names in imports(source, module):
        top = imported.split(".")[0]
        if "*" in names:
            found.append((line, f"a star import from {imported}"))
        if top != "tinyattn":
            if top not in {"numpy", *sys.stdlib_module_names, *packages}:
                found.append((line, f"{unit} must not import {top}"))
            continue
        for target in targets(imported, names):
            if target == unit or (unit, target) in SIBLINGS or target == "__init__":
                continue
            if FLOORS.get(target, 99) >= FLOORS[unit]:
                found.append(
                    (
                        line,
                        f"{unit} (floor {FLOORS[unit]}) imports {target} "
                        f"(floor {FLOORS.get(target, 'none')})",
                    )
                )
    return found


def files():
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_file_imports_from_below_only(path):
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    broken = broken_rules(path.read_text(encoding="utf-8"), module)
    assert not broken, "\n".join(
        f"{path.relative_to(PACKAGE.parent)}:{line}: {rule}" for line, rule in broken
    )


@pytest.mark.parametrize(
    ("source", "module", "rule"),
    [
        ("from tinyattn.nn import X", "tinyattn.ops.a", "ops (floor 2) imports nn (floor 4)"),
        ("from tinyattn import plot", "tinyattn.nn.a", "nn (floor 4) imports plot (floor 6)"),
        ("import tinyattn.io", "tinyattn.optim", "optim (floor 4) imports io (floor 4)"),
        ("from ..nn import X", "tinyattn.ops.a", "ops (floor 2) imports nn (floor 4)"),
        ("import matplotlib.pyplot as plt", "tinyattn.nn.linear", "nn must not import matplotlib"),
        ("import numba", "tinyattn.ops.index", "ops must not import numba"),
        ("import llvmlite.ir", "tinyattn.kernels.fast.knn", "kernels must not import llvmlite"),
        ("from numba import types", "tinyattn.kernels.knn", "kernels must not import numba"),
        ("from numpy import *", "tinyattn.ops.index", "a star import from numpy"),
        (
            "if TYPE_CHECKING:\n    pass\nelse:\n    from tinyattn import nn",
            "tinyattn.ops.a",
            "ops (floor 2) imports nn (floor 4)",
        ),
        ("", "tinyattn.utils", "tinyattn/utils stands on no floor"),
        ("from coursekit import grade", "tinyattn.course.a", "course must not import coursekit"),
    ],
)
def test_the_check_sees(source, module, rule):
    assert [rule in found for _, found in broken_rules(source, module)] == [True]


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from tinyattn.engine.autograd import Tensor", "tinyattn.ops.index"),
        ("from tinyattn.ops import shape", "tinyattn.ops.index"),
        ("import tinyattn as ta", "tinyattn.course.claims"),
        ("import json, numpy as np", "tinyattn.io"),
        ("from llvmlite import ir", "tinyattn.kernels.machine.llvm"),
        ("if TYPE_CHECKING:\n    from tinyattn.ops.index import X", "tinyattn.engine.autograd"),
    ],
)
def test_the_check_allows(source, module):
    assert broken_rules(source, module) == []


def used_siblings_and_packages():
    """The (who, at whom) of one floor and the (who, package) that the files really import."""
    siblings, packages = set(), set()
    for path in files():
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        unit, inner = module.split(".")[1], "/".join(module.split(".")[1:3])
        for _, imported, names in imports(path.read_text(encoding="utf-8"), module):
            packages |= {(place, imported.split(".")[0]) for place in (unit, inner)}
            if imported.split(".")[0] == "tinyattn":
                siblings |= {(unit, target) for target in targets(imported, names)}
    return siblings, packages


def test_every_exception_is_needed():
    siblings, packages = used_siblings_and_packages()
    assert SIBLINGS - siblings == set()
    assert {(who, what) for who, all_ in PACKAGES.items() for what in all_} - packages == set()


def upward_in_the_workshop(source, module):
    """What one file of coursekit imports from its own floor or from above, as (line, rule)."""
    unit = module.split(".")[1]
    for line, imported, names in imports(source, module):
        parts = imported.split(".")
        for target in parts[1:2] or names if parts[0] == "coursekit" else []:
            if target != unit and WORKSHOP_FLOORS[target] >= WORKSHOP_FLOORS[unit]:
                yield line, f"{unit} imports {target}"


@pytest.mark.parametrize(
    "path",
    sorted(p for p in WORKSHOP.rglob("*.py") if p != WORKSHOP / "__init__.py"),
    ids=lambda path: path.relative_to(WORKSHOP).as_posix(),
)
def test_a_file_of_the_workshop_imports_from_below_only(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    assert list(upward_in_the_workshop(path.read_text(encoding="utf-8"), module)) == []


@pytest.mark.parametrize(
    ("source", "module", "rules"),
    [
        ("from coursekit.deck import render", "coursekit.build.text", ["build imports deck"]),
        ("from coursekit import grade", "coursekit.deck.render", ["deck imports grade"]),
        ("def f():\n    import coursekit.cli", "coursekit.site.build", ["site imports cli"]),
        ("from coursekit.build import text", "coursekit.deck.render", []),
        ("from coursekit.build import text", "coursekit.build.pages", []),
    ],
)
def test_an_import_upward_in_the_workshop_is_seen(source, module, rules):
    assert [rule for _, rule in upward_in_the_workshop(source, module)] == rules


def module_files():
    """{dotted name: file} of both packages; the name of a package is that of its folder."""
    found = {}
    for folder in (PACKAGE, WORKSHOP):
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def import_graph(sources):
    """{module: modules it imports} of {module: source}, imports inside functions included.

    `from a.b import c` is an import of a.b.c if that is a module, else of a.b. A package imports
    its own parts to offer their names, so importing a part does not count as importing the package.
    """
    graph = {}
    for module, (source, is_package) in sources.items():
        inside = f"{module}.__init__" if is_package else module
        graph[module] = set()
        for _, imported, names in imports(source, inside):
            parts = {f"{imported}.{name}" for name in names} & sources.keys()
            others = [name for name in names if f"{imported}.{name}" not in sources]
            graph[module] |= parts | ({imported} & sources.keys() if others or not names else set())
        graph[module].discard(module)
    return graph


def cycles(graph):
    """The groups of modules that reach each other, each as a sorted list (Tarjan 1972)."""
    order, low, stack, found = {}, {}, [], []

    def visit(module):
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in graph[module]:
            if other not in order:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return found


def test_no_files_import_each_other_in_a_circle():
    files = module_files()
    graph = import_graph(
        {m: (p.read_text(encoding="utf-8"), p.name == "__init__.py") for m, p in files.items()}
    )
    found = cycles(graph)
    assert not found, "\n".join(
        " <-> ".join(files[m].relative_to(ROOT).as_posix() for m in group) for group in found
    )


@pytest.mark.parametrize(
    ("a", "b", "circle"),
    [
        ("from tinyattn import b", "def f():\n    from tinyattn.a import x", True),
        ("import tinyattn.b", "from tinyattn.a import x", True),
        ("from .b import x", "from . import a", True),
        ("from tinyattn.b import x", "if TYPE_CHECKING:\n    from tinyattn.a import x", False),
        ("from tinyattn.b import x", "import numpy", False),
    ],
)
def test_a_circle_is_seen(a, b, circle):
    sources = {"tinyattn": ("", True), "tinyattn.a": (a, False), "tinyattn.b": (b, False)}
    assert cycles(import_graph(sources)) == ([["tinyattn.a", "tinyattn.b"]] if circle else [])


def local_imports_of_kernels(source):
    """The lines inside of functions that import kernels."""
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    return sorted(
        node.lineno
        for node in {node for f in functions for node in ast.walk(f)}
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tinyattn.kernels")
    )


OWN_COMPILER = {"warm.py", "doctor.py"}  # they look at how kernels are compiled, if they can be


@pytest.mark.parametrize(
    "path",
    [p for p in files() if "kernels" not in p.parts and p.name not in OWN_COMPILER],
    ids=lambda path: path.relative_to(PACKAGE).as_posix(),
)
def test_kernels_are_reached_through_their_package(path):
    """`from tinyattn.kernels import fast` at the top: `fast.X` is imported when it is used."""
    assert local_imports_of_kernels(path.read_text(encoding="utf-8")) == []


def test_a_local_import_of_kernels_is_seen():
    source = "def f():\n    from tinyattn.kernels.fast import knn\n    return knn"
    assert local_imports_of_kernels(source) == [2]


def test_the_table_of_places_names_every_floor():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| ")]
    named = {
        (place, int(floor))
        for floor, places in rows
        if floor.strip().isdigit()
        for place in re.findall(r"`(\w+)`", places)
    }
    assert named == set(FLOORS.items())


def test_the_table_of_folders_names_every_folder():
    """Every top-level folder but the package, and every folder inside those of FOLDERS_OF."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout, so it is not known which folders belong to the project")
    folders = set()
    for path in listed.stdout.splitlines():
        top, *inner = path.split("/")[:-1] or [""]
        folders |= {top} if top else set()
        folders |= {f"{top}/{inner[0]}"} if inner and top in FOLDERS_OF else set()
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {folder for row in rows for folder in re.findall(r"`([\w./]+)/`", row)}
    assert folders - {"tinyattn"} - named == set()
    assert [folder for folder in named if not (ROOT / folder).is_dir()] == []


def test_the_package_itself_only_names():
    """`tinyattn/__init__.py` imports, and says what is imported later; it computes nothing."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    functions = {"__getattr__", "__dir__", "set_threads"}  # they import what is not loaded at once
    for node in tree.body:
        only_names = isinstance(node, allowed) or getattr(node, "name", None) in functions
        for_editors = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        assert only_names or for_editors, f"line {node.lineno}: __init__.py has logic"
    stars = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]
    assert not stars


def room_of(module):
    """The part of kernels/ that a module belongs to: machine, fast, or the loops."""
    parts = module.split(".")[2:]
    return parts[0] if parts[:1] in (["machine"], ["fast"]) else "loops" if parts else "package"


@pytest.mark.parametrize("path", [p for p in files() if "kernels" in p.parts], ids=lambda p: p.name)
def test_loops_stand_alone_and_machine_knows_no_kernel(path):
    """The loops use `jit` and each other; machine/ itself only; fast/ both."""
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = module.removesuffix(".__init__")
    allowed = {
        "package": {"machine"},
        "loops": {"package", "loops"},
        "machine": {"machine"},
        "fast": {"loops", "machine", "fast"},
    }
    for line, imported, names in imports(path.read_text(encoding="utf-8"), module):
        if imported.startswith("tinyattn.kernels"):
            inside = [f"{imported}.{name}" for name in names if name.islower()]
            is_module = [(PACKAGE.parent / (x.replace(".", "/") + ".py")).exists() for x in inside]
            for target in inside if any(is_module) else [imported]:
                assert room_of(target) in allowed[room_of(module)], f"{path}:{line}: {target}"


def loaded_by(statement):
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "statement", ["import tinyattn", "import coursekit.cli; coursekit.cli.parser()"]
)
def test_importing_is_light(statement):
    assert loaded_by(statement).isdisjoint(HEAVY)


SUBMODULES = [
    "check",
    "data",
    "functional",
    "graph",
    "inference",
    "widgets",
    "metrics",
    "models",
    "nn",
    "optim",
    "plot",
    "trace",
    "training",
]


def test_submodules_are_reached_after_one_import():
    loaded = loaded_by(
        "import tinyattn as ta; before = set(sys.modules); "
        f"late = [n for n in {SUBMODULES} if 'tinyattn.' + n not in before]; "
        f"assert set({SUBMODULES}) <= set(dir(ta)); "
        f"assert all(getattr(ta, n).__name__ == 'tinyattn.' + n for n in {SUBMODULES}); "
        "assert {'nn', 'graph', 'models', 'plot'} <= set(late), late; "
        "ta.nn.Linear(2, 3); ta.optim.SGD"
    )
    assert "tinyattn" in loaded


# ---------------------------------------------------------------- the tests themselves

TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


def test_folders_of_tests_are_those_of_the_package():
    """The folders, and the files of tests/mistakes, which have a module's name each."""
    folders = {p.parent.name for p in TESTS if p.parent.name != "tests"}
    assert folders <= {*FLOORS, *OTHER_TESTS}
    mistakes = {p.stem.removeprefix("test_") for p in TESTS if p.parent.name == "mistakes"}
    assert mistakes - OF_ALL_MODULES <= {*FLOORS}


def required_words(source):
    """(line, pattern) of what a file requires of the words of errors.

    These are the patterns of `pytest.raises(..., match=pattern)`, and the texts of assertions about
    `str(caught.value)`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("raises"):
            yield from ((node.lineno, k.value) for k in node.keywords if k.arg == "match")
        elif isinstance(node, ast.Assert) and re.search(r"str\(\w+\.value\)", ast.unparse(node)):
            texts = (n for n in ast.walk(node) if isinstance(n, ast.Constant))
            yield from ((node.lineno, n) for n in texts if isinstance(n.value, str))


def number_of_words(pattern):
    """How many words a pattern has, without values; a variable may be any sentence."""
    if isinstance(pattern, ast.Name | ast.Subscript):
        return MOST_WORDS + 1
    texts = (n.value for n in ast.walk(pattern) if isinstance(n, ast.Constant))
    text = "".join(text for text in texts if isinstance(text, str))
    return sum(bool(re.search("[A-Za-z]{2}", word)) for word in re.split(r"[\s*]+", text))


def sentences(source):
    """The lines of a file that require more than MOST_WORDS words of an error."""
    found = required_words(source)
    return sorted(line for line, pattern in found if number_of_words(pattern) > MOST_WORDS)


def test_sentences_of_errors_are_tested_with_the_mistakes():
    """Elsewhere a name or a value tells which error it is; tests/README.md explains the rule."""
    found = []
    for path in TESTS:
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("tests/mistakes/", "tests/coursekit/")):
            found += [f"{name}:{line}" for line in sentences(path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("with pytest.raises(ValueError, match='k must be a whole number'): f()", [1]),
        ("with pytest.raises(ValueError, match=rf'{f}: expected k > 0, but got a list'): f()", [1]),
        ("with pytest.raises(ValueError, match='one.*of.*auto.*sums'): f()", [1]),
        ("with pytest.raises(ValueError, match=message): f()", [1]),
        ("with pytest.raises(ValueError, match=WRONG[name]): f()", [1]),
        ("f()\nassert 'the loss is None' in str(error.value)", [2]),
        ("with pytest.raises(ValueError, match='0 <= k < 3, got k=5'): f()", []),
        ("with pytest.raises(ValueError, match=f'{name}: (exp|sum) was written'): f()", []),
        ("with pytest.raises(ValueError, match=cls.__name__): f()", []),
        ("with pytest.raises(ValueError): f()", []),
        ("assert path in str(error.value)", []),
        ("assert 'the loss is None' in report.text", []),
    ],
)
def test_a_sentence_is_seen(source, lines):
    assert sentences(source) == lines
