"""The public names of the package, with their source and the lecture that first uses each of
them.
"""

import ast
import inspect
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

from coursekit.build.text import read_notebook, slide_heading, slides

# The modules of the reference, in order: (module, its name in lectures, its description).
PLACES = [
    ("tinyattn", "ta", "arrays with gradients, and what differentiates"),
    ("tinyattn.functional", "F", "functions of networks without weights of their own"),
    ("tinyattn.nn", "nn", "layers"),
    ("tinyattn.nn.init", "nn.init", "initial values"),
    ("tinyattn.optim", "optim", "optimizers and schedules"),
    ("tinyattn.training", "training", "loops that train and measure"),
    ("tinyattn.graph", "graph", "graphs and point clouds"),
    ("tinyattn.models", "models", "the models of the course"),
    ("tinyattn.models.pretrained", "pretrained", "models with weights of others"),
    ("tinyattn.models.storyteller", "storyteller", "a small GPT that tells stories"),
    ("tinyattn.data", "data", "data sets and batches"),
    ("tinyattn.data.tokenizers", "tokenizers", "text to integers and back"),
    ("tinyattn.check", "check", "tests of gradients, symmetries, masks, training"),
    ("tinyattn.metrics", "metrics", "measures of classifiers"),
    ("tinyattn.inference", "inference", "compiled models"),
    ("tinyattn.io", "io", "files of weights"),
    ("tinyattn.plot", "plot", "pictures"),
    ("tinyattn.trace", "trace", "a computation number by number"),
    ("tinyattn.widgets", "widgets", "explorers for slides"),
    ("tinyattn.course", "course", "what the cells of a lecture call"),
]
# a slide does not introduce names that draw, or that belong to the cells of the course
UNSAID = {"plot", "widgets", "course", "trace"}


@dataclass(frozen=True)
class Name:
    """A public name: the object, and the module and words with which users access it."""

    module: str
    prefix: str
    name: str
    also: tuple = ()  # other modules that export the same object

    @cached_property
    def object(self):
        return getattr(import_module(self.module), self.name)

    @property
    def written(self):
        """Return the name as lectures write it: F.softmax."""
        return f"{self.prefix}.{self.name}"

    @property
    def section(self):
        """Return the name of its module in the reference, such as functional or nn.init."""
        return section(self.module)

    @property
    def key(self):
        """Return the name with its module, as in the examples: nn.init/zeros_."""
        return f"{self.section}/{self.name}"

    @property
    def page(self):
        """Return the address of its page, without extension.

        If names of the module differ only in case, the page of a class ends in _class, because some
        disks ignore case.
        """
        others = [name for name in exported(self.module) if name.lower() == self.name.lower()]
        return f"reference/{self.key}" + ("_class" if len(others) > 1 and self.is_class else "")

    @property
    def is_class(self):
        return isinstance(self.object, type)

    @property
    def is_callable(self):
        return callable(self.object) and not inspect.ismodule(self.object)


def section(module):
    return module.removeprefix("tinyattn.")


def public_names():
    """Return all public names, each once, in the first of its modules."""
    found = {}
    for module, prefix, _ in PLACES:
        for name in exported(module):
            thing = getattr(import_module(module), name)
            if inspect.ismodule(thing):
                continue  # a module is not a name of its own; PLACES lists the modules with pages
            known = found.get(id(thing))
            if known is None:
                found[id(thing)] = Name(module, prefix, name)
            elif f"{prefix}.{name}" != known.written:
                also = (*known.also, f"{prefix}.{name}")
                found[id(thing)] = Name(known.module, known.prefix, known.name, also)
    return list(found.values())


def exported(module):
    """Return the public names of a module: its `__all__`, or its own definitions."""
    there = import_module(module)
    listed = getattr(there, "__all__", None)
    if listed is not None:
        return sorted(listed, key=str.lower)
    of_here = lambda thing: getattr(thing, "__module__", "").startswith(module)
    own = [n for n, thing in vars(there).items() if not n.startswith("_") and of_here(thing)]
    if module.endswith("tokenizers"):
        own += ["padded"]
    return sorted(set(own), key=str.lower)


def place(thing):
    """Return (path from the project's folder, line) of the definition of a function or class."""
    thing = inspect.unwrap(getattr(thing, "f", thing)) if not isinstance(thing, type) else thing
    try:
        path = Path(inspect.getsourcefile(thing))
        line = inspect.getsourcelines(thing)[1]
    except (TypeError, OSError):
        return None
    root = Path(__file__).resolve().parents[2]
    return (path.relative_to(root).as_posix(), line) if root in path.parents else None


# ---------------------------------------------------------------- lectures


def first_uses(documents, names):
    """Return {public name: (lecture, slide)} of the first slide whose code uses it."""
    wanted = {id(name.object): name for name in names}
    found = {}
    for document in documents:
        imported = {}
        for slide in slides(read_notebook(document)):
            for cell in slide.cells:
                if cell["cell_type"] != "code":
                    continue
                for thing in things_used(cell["source"], imported):
                    name = wanted.get(id(thing))
                    if name is not None and slide_heading(slide.cells[0]):
                        found.setdefault(name, (document, slide))
    return found


def new_names(documents):
    """Return {lecture number: {first cell of a slide: names that this slide uses first}}.

    These are functions, layers, models and data sets, but not names that draw or that belong to the
    course.
    """
    found = {document.number: {} for document in documents}
    names = [n for n in public_names() if n.is_callable and n.prefix not in UNSAID]
    for name, (document, slide) in first_uses(documents, names).items():
        found[document.number].setdefault(slide.cells[0]["id"], []).append(name)
    return found


def summary(name):
    """Return the first sentence of an object's docstring, on one line."""
    return " ".join((inspect.getdoc(name.object) or "").partition("\n\n")[0].split())


def things_used(source, imported):
    """Return the objects of tinyattn that a cell uses, and add imported names to `imported`."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imported.update(_imports(node))
    for node in ast.walk(tree):
        chain = _chain(node)
        if chain and chain[0] in imported:
            thing = imported[chain[0]]
            for attribute in chain[1:]:
                thing = getattr(thing, attribute, None)
            if thing is not None:
                yield thing


def _imports(node):
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == "tinyattn":
                whole = import_module(alias.name if alias.asname else "tinyattn")
                yield alias.asname or "tinyattn", whole
    elif (node.module or "").split(".")[0] == "tinyattn" and not node.level:
        for alias in node.names:
            try:
                thing = getattr(import_module(node.module), alias.name)
            except AttributeError:
                thing = import_module(f"{node.module}.{alias.name}")
            yield alias.asname or alias.name, thing


def _chain(node):
    """Return ["nn", "init", "zeros_"] for an expression nn.init.zeros_, and [] for any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []
