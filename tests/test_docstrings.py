"""Docstrings of the public modules name every parameter, and have the sections they need."""

import inspect
import re
from importlib import import_module

import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import (
    check,
    course,
    data,
    graph,
    inference,
    io,
    kernels,
    metrics,
    models,
    nn,
    optim,
    plot,
    trace,
    training,
    widgets,
)
from tinyattn.course import objects
from tinyattn.data import tokenizers
from tinyattn.graph import condensation
from tinyattn.models import captioner, captioner_attention, captioner_regions

MODULES = {
    "F": F,
    "captioner": captioner,
    "captioner_attention": captioner_attention,
    "captioner_regions": captioner_regions,
    "check": check,
    "course": course,
    "data": data,
    "graph": graph,
    "condensation": condensation,
    "grids": import_module("tinyattn.data.grids"),  # tinyattn.data.grids is its function
    "inference": inference,
    "io": io,
    "kernels": kernels,
    "metrics": metrics,
    "models": models,
    "nn": nn,
    "objects": objects,
    "optim": optim,
    "plot": plot,
    "ta": ta,
    "overlaps": import_module("tinyattn.data.overlaps"),  # data.overlaps is its function
    "tokenizers": tokenizers,
    "trace": trace,
    "training": training,
    "widgets": widgets,
}
SECTIONS = re.compile(r"^([A-Z]\w+):$", re.MULTILINE)
KNOWN = {"Args", "Shape", "Returns", "Raises", "Note", "Example", "Attributes"}


def public_names(module):
    own = (n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__)
    return getattr(module, "__all__", None) or [n for n in own if not n.startswith("_")]


def callables():
    """(name, object) of all public functions, classes and methods that tinyattn wrote."""
    for short, module in MODULES.items():
        for name in public_names(module):
            found = getattr(module, name)
            home = getattr(found, "__module__", "")
            if not callable(found) or not home.startswith("tinyattn"):
                continue
            yield f"{short}.{name}", found
            if not inspect.isclass(found):
                continue
            for method, f in vars(found).items():
                f = getattr(f, "__func__", f)
                if (
                    inspect.isfunction(f)
                    and not method.startswith("_")
                    and f.__qualname__ == (f"{found.__qualname__}.{method}")
                ):
                    yield f"{short}.{name}.{method}", f


CALLABLES = dict(callables())


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_is_named(name):
    f = CALLABLES[name]
    text = inspect.getdoc(f) or ""
    assert text, f"{name} has no docstring"
    if isinstance(f, type) and issubclass(f, Exception | Warning):
        return  # its arguments are those of Python's own
    parameters = [
        p for p in inspect.signature(f).parameters if p not in ("self", "cls") and p[0] != "_"
    ]
    lost = [p for p in parameters if not re.search(rf"(?<!\w){re.escape(p)}(?!\w)", text)]
    assert not lost, f"{name}: the docstring does not name {', '.join(lost)}"
    if len(parameters) > 2:
        found = "Args:\n" in text or "Attributes:\n" in text or "as in `" in text
        assert found, f"{name}: more than two parameters need a section Args:"


@pytest.mark.parametrize("name", CALLABLES)
def test_the_form_of_a_docstring(name):
    text = inspect.getdoc(CALLABLES[name])
    summary = text.split("\n\n")[0]
    assert summary[0].isupper() or not summary[0].isalpha(), summary
    assert summary.rstrip().endswith((".", ":", "…")), f"{name}: the summary is not a sentence"
    found = SECTIONS.findall(text)
    assert set(found) <= KNOWN, f"{name}: {set(found) - KNOWN} is no section"


def test_the_modules_have_what_they_should():
    assert len(CALLABLES) > 500 and nn.Linear in CALLABLES.values()
