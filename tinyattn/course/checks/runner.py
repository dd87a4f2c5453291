"""The part of a check that runs next to the student's code, and turns its results into plain data.

This file needs only the standard library and NumPy, and is copied into the sandbox unchanged. It
never contains an expected result.
"""

import base64
import collections
import gc
import math
import re
import traceback
import types
import warnings

import numpy as np

DTYPES = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))} | {
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
}
LONGEST_TEXT = 2000
# file names of a cell in `tinyattn build` (<cell 3>), in grading (<own cell 3>) and in Jupyter
# (/tmp/ipykernel_12/345.py)
CELL = re.compile(r"^<(\w+ )?cell |^<ipython-input|\bipykernel_\d+")
DEEPEST = 20


class View:
    """The names of a notebook as attributes."""

    def __init__(self, names):
        self._names = names

    def __getattr__(self, name):
        if name not in self._names:
            raise NameError(f"there is no `{name}`. Did you run the cell that defines it?")
        return self._names[name]


def answer(function, names, inputs):
    """Call function(the notebook's names, *inputs) and return the outcome as a dictionary.

    Args:
        function   function of a `View` and the inputs
        names      {name: value} of the notebook
        inputs     plain data, which becomes read-only

    Returns:
        {"value": plain data}, or {"error", "message", "line"}, where line is that of the student's
        code
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return {"value": plain(function(View(names), *read_only(inputs)))}
    except BaseException as error:  # a student's sys.exit() must not end the check either
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise
        return failure(error)


def kept_bytes(function):
    """Return about how many bytes of data a student's function can reach besides its inputs.

    These are arrays, texts and collections in names of the notebook that it uses, in closures,
    default values, attributes and caches. They count where a task limits what may be stored.
    """
    seen, waiting, total = set(), [function], 0
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, np.ndarray):
            total += x.nbytes if x.base is None else 0
            waiting += [x.base, *(x.ravel().tolist() if x.dtype.kind == "O" else ())]
        elif isinstance(x, str | bytes | bytearray):
            total += len(x)
        elif isinstance(x, list | tuple | set | frozenset | collections.deque):
            total += 8 * len(x)
            waiting += list(x)
        elif isinstance(x, dict):
            total += 16 * len(x)
            waiting += [*x.keys(), *x.values()]
        else:
            waiting += _parts_of(x)
    return total


def _parts_of(x):
    """Return the objects in which a student's function, class or object can keep data."""
    owner = x if isinstance(x, type | types.FunctionType) else type(x)
    if isinstance(x, types.FunctionType) and owner.__module__ == "__main__":
        names = [n for code in _codes(x.__code__) for n in code.co_names]
        kept = [x.__globals__[n] for n in names if n in x.__globals__]
        kept += [x.__defaults__, x.__kwdefaults__, vars(x)]
        for cell in x.__closure__ or ():
            try:
                kept.append(cell.cell_contents)
            except ValueError:  # a name that has no value yet
                continue
        return kept
    if isinstance(x, type):
        return list(vars(x).values()) if owner.__module__ == "__main__" else []
    if owner.__module__ in ("__main__", "collections", "functools", "itertools"):
        return gc.get_referents(x)
    if isinstance(
        x, types.GeneratorType | types.MethodType | staticmethod | classmethod | property
    ):
        return [y for y in gc.get_referents(x) if not isinstance(y, dict)]
    return []


def _codes(code):
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def read_only(value):
    """Make all arrays in `value` read-only, and return `value`."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, list | tuple):
        for v in value:
            read_only(v)
    elif isinstance(value, dict):
        read_only(list(value.values()))
    return value


def failure(error):
    """Return an exception as plain data, with the student's line that raised it."""
    # the lines of a sample solution are not known, so none is shown
    line = next(_lines(error), "")
    try:
        message = str(error)
    except Exception:  # an exception class that a student wrote may fail here
        message = ""
    return {
        "error": type(error).__name__[:100],
        "message": message[:LONGEST_TEXT],
        "line": line[:200],
    }


def _lines(error):
    """Yield the lines of a notebook's cells that led to an error, the innermost first.

    The lines of an error's cause come first: those of a rule that writes into its arguments come
    before the line of backward().
    """
    errors = [error]
    while errors[-1].__cause__ is not None and len(errors) < DEEPEST:
        errors.append(errors[-1].__cause__)
    for e in reversed(errors):
        for frame in reversed(traceback.extract_tb(e.__traceback__)):
            # the names of cells in the sandbox, in JupyterLab and in a browser
            if frame.line and CELL.search(frame.filename):
                yield frame.line


def plain(value, depth=0):
    """Copy arrays, numbers, texts, and lists, tuples and dictionaries of these.

    A Tensor becomes its array, and any other object a namespace that contains only its type.

    Args:
        value   any object
        depth   number of lists, tuples and dictionaries around it
    """
    if depth > DEEPEST:
        return types.SimpleNamespace(type="something nested very deeply")
    if value is None or type(value) in (bool, int, float, str):
        return value[:LONGEST_TEXT] if type(value) is str else value
    if isinstance(value, np.ndarray | np.generic) and value.dtype.name in DTYPES:
        return np.array(value)
    if type(value) in (list, tuple):
        return type(value)(plain(v, depth + 1) for v in value)
    if type(value) is dict:
        return {str(k)[:LONGEST_TEXT]: plain(v, depth + 1) for k, v in value.items()}
    if type(value).__name__ in ("Tensor", "Parameter") and isinstance(value.data, np.ndarray):
        return plain(value.data, depth)
    return types.SimpleNamespace(type=type(value).__name__)


def encode(value):
    """Return plain data in a form that JSON can represent."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": [value.dtype.name, list(value.shape), data]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encode(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[k, encode(v)] for k, v in value.items()]}
    if isinstance(value, types.SimpleNamespace):
        return {"other": value.type}
    return value


def decode(value, depth=0):
    """Return the plain data that `encode` wrote.

    Args:
        value   result of `encode`
        depth   number of lists, tuples and dictionaries around it

    Raises:
        ValueError: `encode` does not write such a value
    """
    if depth > DEEPEST + 5:
        raise ValueError(f"decode: plain data is nested in more than {DEEPEST + 5} levels")
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is not dict or len(value) != 1:
        raise ValueError(
            "decode: expected plain data as `encode` writes it, got an entry of type "
            f"{type(value).__name__}"
        )
    ((kind, content),) = value.items()
    if kind == "array":
        return _array(*content)
    if kind in ("list", "tuple") and type(content) is list:
        items = [decode(v, depth + 1) for v in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {str(k): decode(v, depth + 1) for k, v in content}
    if kind == "other":
        return types.SimpleNamespace(type=str(content)[:100])
    raise ValueError(
        f"decode: expected plain data as `encode` writes it, got the kind {str(kind)[:100]!r}"
    )


def _array(dtype, shape, data):
    if dtype not in DTYPES or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(
            f"decode: expected an array of numbers, got dtype {str(dtype)[:100]} and shape "
            f"{str(shape)[:100]}"
        )
    content = base64.b64decode(data, validate=True)
    expected = math.prod(shape) * np.dtype(dtype).itemsize
    if len(content) != expected:
        raise ValueError(
            f"decode: expected {expected} bytes for {dtype} of shape {str(shape)[:100]}, got "
            f"{len(content)}"
        )
    return np.frombuffer(content, dtype).reshape(shape).copy()
