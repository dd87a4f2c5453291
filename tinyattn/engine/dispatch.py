"""The table from NumPy's functions to what a Tensor does instead.

`np.tanh(x)` and `x + y` of Tensors look up here which operation runs (NEP 13 and NEP 18). The
files of `ops/` fill the table with `implements`.
"""

from tinyattn.engine import messages


class _Functions(dict):
    def __missing__(self, function):
        raise messages.no_numpy_rule(function)


HANDLED_FUNCTIONS = _Functions()  # NumPy's function -> what runs for a Tensor, else TypeError
PYTHON_METHODS = {}  # "getitem" -> what runs for x[i], which NumPy has no function for


def implements(*functions):
    """Let NumPy's `functions`, called on a Tensor, run the decorated function instead."""

    def register(f):
        HANDLED_FUNCTIONS.update(dict.fromkeys(functions, f))
        return f

    return register


def implements_method(name):
    """Let the decorated function be what a Tensor does for a method of Python, such as x[i]."""

    def register(f):
        PYTHON_METHODS[name] = f
        return f

    return register
