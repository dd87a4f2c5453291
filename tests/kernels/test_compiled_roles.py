"""What Python may call: a helper is compiled for other kernels only, and a call would crash."""

import ast

import pytest

from tests import ROOT

FOR_PYTHON = {"jit", "jit_no_fma", "compiled"}  # the last in assumptions.py
FOR_KERNELS = {"helper", "helper_no_fma"}
# plain functions that are compiled inside of an instruction, and so do not run as Python
COMPILED_INSIDE = {
    ("tinyattn/kernels/machine/fork_join.py", "run_as_primary"),
    ("tinyattn/kernels/machine/packing.py", "code"),
}
PACKAGE = "tinyattn.kernels"


def read(folder):
    """{path: source} of all Python files in a folder."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def marks(function):
    """The names of its decorators."""
    calls = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return {ast.unparse(d) for d in calls}


def module_of(path):
    """tinyattn/kernels/fast/knn.py -> tinyattn.kernels.fast.knn"""
    return path.removesuffix(".py").replace("/", ".")


def compiled(sources, decorators):
    """{(file, name)} of the compiled functions that carry one of the decorators."""
    return {
        (module_of(path), node.name)
        for path, source in sources.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and marks(node) & decorators
    }


def named_by_python(path, source):
    """{(file of kernels, name)} of all that code outside of compiled functions speaks of."""
    tree, found = ast.parse(source), set()
    own = module_of(path)
    names, files, folders = {}, {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                if node.module == PACKAGE or node.module.startswith(PACKAGE + "."):
                    names[name.asname or name.name] = node.module, name.name
                    files[name.asname or name.name] = f"{node.module}.{name.name}"
                if f"{node.module}.{name.name}" in (PACKAGE, f"{PACKAGE}.fast"):
                    folders[name.asname or name.name] = f"{node.module}.{name.name}"

    def look(node):
        if isinstance(node, ast.FunctionDef):
            inside = (path, node.name) in COMPILED_INSIDE
            if inside or marks(node) & (FOR_PYTHON | FOR_KERNELS):
                return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(names.get(node.id, (own, node.id)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add((files.get(node.value.id), node.attr))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            folder = node.value.value  # fast.attention.attention
            if isinstance(folder, ast.Name) and folder.id in folders:
                found.add((f"{folders[folder.id]}.{node.value.attr}", node.attr))
        for part in ast.iter_child_nodes(node):
            look(part)

    look(tree)
    return found


def crashes(sources):
    """Helpers that Python speaks of."""
    helpers = compiled(sources, FOR_KERNELS)
    return {
        (path, x)
        for path, source in sources.items()
        for x in named_by_python(path, source) & helpers
    }


def test_no_helper_is_called_from_python():
    assert not crashes(read("tinyattn"))


def test_every_other_kernel_is():
    """What only kernels call is a helper: it is compiled in less time."""
    kernels = read("tinyattn/kernels")
    named = [named_by_python(path, source) for path, source in read("tinyattn").items()]
    named += [named_by_python(path, source) for path, source in read("tests").items()]
    assert not compiled(kernels, FOR_PYTHON) - set().union(*named)


@pytest.mark.parametrize(
    "caller",
    [
        "def f(x):\n    return part(x)",
        "parallel_for(part, 3)",
        "from tinyattn.kernels.a import part as p\ndef f(x):\n    return p(x)",
        "from tinyattn.kernels import a as b\nb.part(1)",
    ],
)
def test_the_check_sees(caller):
    kernel = "@helper\ndef part(x):\n    return x\n"
    apart = "import" in caller
    sources = {"tinyattn/kernels/a.py": kernel + ("" if apart else caller)}
    sources |= {"tinyattn/ops/b.py": caller} if apart else {}
    assert len(crashes(sources)) == 1
    whole = "@jit\ndef whole(x):\n    return part(x)\n"
    assert not crashes({"tinyattn/kernels/a.py": kernel + whole})
