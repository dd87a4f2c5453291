"""The table from NumPy's functions to their versions for Tensors.

`np.tanh(x)` and `x + y` of Tensors look up the operation here (NEP 13 and NEP 18). The files of
`ops/` fill the table with `implements`.
"""

from tinyattn.engine import messages


class _Functions(dict):
    def __missing__(self, function):
        raise messages.no_numpy_rule(function)


# NumPy's function -> its version for Tensors. Other functions raise TypeError
HANDLED_FUNCTIONS = _Functions()
PYTHON_METHODS = {}  # "getitem" -> the version of x[i], for which NumPy has no function


def implements(*functions):
    """Return a decorator for the function that runs when NumPy's `functions` receive a Tensor."""

    def register(f):
        HANDLED_FUNCTIONS.update(dict.fromkeys(functions, f))
        return f

    return register


def implements_method(name):
    """Return a decorator for the function that runs for one of Python's methods of a Tensor.

    The name is a key of PYTHON_METHODS, such as "getitem" for x[i].
    """

    def register(f):
        PYTHON_METHODS[name] = f
        return f

    return register
