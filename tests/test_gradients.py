"""Every derivative rule against central differences, first and second order.

The table of operations and their checks is printed by  pytest tests/test_gradients.py -rA
"""

import pytest

from tests.gradient_cases import CASES, GETITEM
from tinyattn import Tensor
from tinyattn.autograd import NUMPY
from tinyattn.check import gradcheck
from tinyattn.ops.elementwise import WITHOUT_GRADIENT


def name_of(what):
    module = getattr(what, "__module__", None) or "numpy"
    short = module.replace("tinyattn.functional", "F").replace("numpy", "np")
    short = "nn" if short.startswith("tinyattn.nn") else short.removeprefix("tinyattn.")
    return f"{short}.{what.__name__}"


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
    record_property("gradients", (len(cases), orders, compared, worst))
    if wrong:
        pytest.fail(f"{len(wrong)} of {len(cases)} cases\n" + "\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("what", list(CASES), ids=name_of)
def test_gradient(what, record_property):
    check_all(CASES[what], record_property)


def test_getitem(record_property):
    cases = [(note, lambda x, i=index: x[i], (x,), 2) for note, (x, index) in GETITEM.items()]
    check_all(cases, record_property)


# ---------------------------------------------------------------- nothing is left out


def test_every_numpy_function_is_checked():
    missing = [f for f in NUMPY if f not in CASES and f not in WITHOUT_GRADIENT]
    assert not missing, f"no gradient check in tests/gradient_cases.py for {missing}"


def operations_in(y):
    """The names of all operations in the graph of a result."""
    found, todo = set(), [y] if isinstance(y, Tensor) else list(y)
    while todo:
        node = todo.pop()._node
        if node is not None:
            found.add(node[0])
            todo += [a for a in node[1] if a is not None]
    return found
