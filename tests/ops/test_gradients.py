"""Every derivative rule against central differences, first and second order.

The table of operations and their checks is printed by  pytest tests/ops/test_gradients.py -rA
"""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import tests.cases.captioner
import tests.cases.conv
import tests.cases.graph
import tests.cases.linalg
import tests.cases.models
import tests.cases.points
import tests.cases.recurrent
import tests.cases.rowwise
import tinyattn.functional as F
from tests.cases.layers import CASES, NO_GRADIENT, NOTHING_TO_CHECK
from tests.cases.ops import GETITEM, Case
from tinyattn import Tensor, graph, nn, ops
from tinyattn.check import gradcheck
from tinyattn.engine.autograd import Operation
from tinyattn.engine.convert import NONDIFFERENTIABLE
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS

# each of these files adds its cases to CASES when it is imported
MORE = tests.cases.graph, tests.cases.linalg, tests.cases.models, tests.cases.points
MORE += tests.cases.recurrent, tests.cases.rowwise
EXEMPT = NOTHING_TO_CHECK | NO_GRADIENT | tests.cases.graph.NO_GRADIENT


def name_of(what):
    """np.exp, F.softmax, nn.Linear."""
    for module, short in ((F, "F"), (nn, "nn"), (graph, "graph")):
        if getattr(module, what.__name__, None) is what:
            return f"{short}.{what.__name__}"
    return f"{what.__module__}.{what.__name__}".replace("numpy", "np", 1)


def check_all(cases, record_property):
    wrong, worst, compared = [], 0.0, 0
    for note, f, inputs, order in cases:
        try:
            report = gradcheck(f, *inputs, order=order)
        except Exception as error:
            wrong.append(f"{note}: {type(error).__name__}: {error}")
            continue
        worst, compared = max(worst, report.error), compared + report.compared
        if not report:
            wrong.append(f"{note}: {report}")
    orders = f"1-{max(c[3] for c in cases)}"
    record_property("gradients", (len(cases), orders, int(compared), float(worst)))
    if wrong:
        pytest.fail(f"{len(wrong)} of {len(cases)} cases\n" + "\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("what", list(CASES), ids=name_of)
def test_gradient(what, record_property):
    check_all(CASES[what], record_property)


def indexing_cases():
    return [Case(note, lambda x, i=i: x[i], (x,), 2) for note, (x, i) in GETITEM.items()]


def test_indexing(record_property):
    check_all(indexing_cases(), record_property)


# ---------------------------------------------------------------- nothing is left out


def test_every_numpy_function_is_checked():
    tested = CASES.keys() | NONDIFFERENTIABLE
    missing = [name_of(f) for f in HANDLED_FUNCTIONS if f not in tested]
    assert not missing, (
        f"no gradient check for {', '.join(missing)}: add case(function, input, ...) to "
        f"tests/cases/ops.py"
    )


def test_every_function_and_layer_is_checked():
    public = [getattr(F, name) for name in F.__all__]
    public += [v for v in vars(nn).values() if inspect.isclass(v) and v.__module__.startswith("t")]
    public += [getattr(graph, name) for name in graph.__all__]
    missing = [name_of(f) for f in public if f not in CASES]
    missing = [n for n in missing if n not in map(name_of, EXEMPT)]
    assert not missing, (
        f"no gradient check for {', '.join(missing)}: add case(F.name, input, ...) for a function, "
        f"layer(nn.Name, input, make=nn.Name(...)) for a layer, to tests/cases/layers.py"
    )


@pytest.mark.parametrize("package", [nn, graph], ids=["nn", "graph"])
def test_every_layer_is_exported(package):
    missing = []
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, value in vars(importlib.import_module(info.name)).items():
            here = inspect.isclass(value) and value.__module__ == info.name
            if here and issubclass(value, nn.Module) and not name.startswith("_"):
                exported = name in package.__all__ and hasattr(package, name)
                missing += [] if exported else [f"{info.name}.{name}"]
    assert not missing, (
        f"{', '.join(missing)} cannot be reached as {package.__name__}.Name: add the import and "
        f"the name in __all__ to {package.__name__.replace('.', '/')}/__init__.py, or begin the "
        f"name with _ if it is not for users"
    )


def operations_of_the_library():
    """{operation: name} of all primitives in tinyattn.ops, tinyattn.functional and transforms."""
    found = {}
    for package in (ops, F, nn, graph):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(info.name)).items():
                each = getattr(value, "implementations", {"": value})
                for impl, f in each.items() if isinstance(each, dict) else ():
                    operation = getattr(f, "operation", None)
                    if isinstance(operation, Operation):
                        found[operation] = f"{info.name}.{name} {impl}".rstrip()
    return found


def operations_in(tensors):
    """The operations in the graphs of tensors."""
    found, seen, todo = set(), set(), list(tensors)
    while todo:
        t = todo.pop()
        if isinstance(t, Tensor) and t._operation is not None and t not in seen:
            seen.add(t)
            found.add(t._operation)
            todo += t._inputs
    return found


def operations_of(case):
    """The operations that a case and its gradient really run."""
    floating = [
        isinstance(x, float | np.ndarray) and np.asarray(x).dtype.kind == "f" for x in case.inputs
    ]
    xs = [
        Tensor(x, requires_grad=True) if is_float else x
        for x, is_float in zip(case.inputs, floating, strict=True)
    ]
    y = case.f(*xs)
    ys = [t for t in (y if isinstance(y, tuple | list) else [y]) if isinstance(t, Tensor)]
    for t in ys if case.order > 1 else ():
        if t.requires_grad:
            t.backward(np.ones(t.shape, t.dtype), create_graph=True)
    leaves = [x for x in xs if isinstance(x, Tensor)] + list(getattr(case.f, "parameters", list)())
    found = operations_in(ys + [x.grad for x in leaves])
    for x in leaves:
        x.grad = None
    return found


def test_every_primitive_is_checked():
    seen = set()
    for c in (*(c for cases in CASES.values() for c in cases), *indexing_cases()):
        seen |= operations_of(c)
    library = operations_of_the_library()
    assert len(library) > 50
    missing = [name for operation, name in library.items() if operation not in seen]
    assert not missing, (
        f"no gradient check for {', '.join(missing)}: import it in tests/cases/ops.py and add "
        f"case(operation, input, ...)"
    )
