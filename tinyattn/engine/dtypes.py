"""Which type of numbers an array gets: the rules for what a Tensor is made of."""

import numpy as np

DEFAULT_DTYPE = np.dtype(np.float32)  # of Python numbers and lists; arrays keep theirs
FLOAT64 = np.dtype(np.float64)
COMMON_TYPES = {np.ndarray, int, float, bool, type(None), tuple, str}  # operands, most of the time
LIBRARIES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jaxlib": "JAX", "cupy": "CuPy"}


def reject_foreign_tensor(x):
    """x as it is; TypeError if it is a tensor of another library, whose gradient would be lost."""
    library = LIBRARIES.get(type(x).__module__.partition(".")[0])
    if library is None:
        return x
    raise TypeError(
        f"an operation of tinyattn was given a {library} tensor: each library records its own "
        f"gradients. Turn it into an array first, with .detach().numpy() in PyTorch"
    )


def array_of(data, dtype=None, requires_grad=False):
    """A fresh array. Python floats become float32; so do integers that require a gradient."""
    if data is None:
        raise TypeError(
            "Tensor: expected numbers or booleans, got None; is `return` missing in the function "
            "that made it?"
        )
    try:
        array = np.array(data, dtype=dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            "Tensor: expected rows of one length, got a list with rows of several; all rows of a "
            "list must have the same length (data.tokenizers.padded fills up tokens)"
        ) from None
    if array.dtype.kind not in "fiubc":
        raise TypeError(
            f"Tensor: expected numbers or booleans, got {array.dtype} from a "
            f"{type(data).__name__}; all rows of a list must have the same length"
        )
    first = data
    while isinstance(first, list | tuple) and first:
        first = first[0]
    from_python = dtype is None and not hasattr(first, "dtype")  # arrays keep their dtype
    if from_python and (array.dtype.kind == "f" or (requires_grad and array.dtype.kind in "iub")):
        array = array.astype(DEFAULT_DTYPE)
    if requires_grad:
        check_differentiable(array.dtype)
    return array


def check_differentiable(dtype):
    """Raise unless numbers of this dtype can have a gradient."""
    if dtype.kind != "f":
        raise TypeError(
            f"Tensor: only floating-point data can require a gradient, got {dtype}; convert it "
            f"first, for example with .astype(np.float32)"
        )


def result_array(op, y, arrays, options):
    """The output of an operation as an array; float64 only if an operand array was.

    NumPy makes float64 of float32 with int64, and of float32 with np.float64(2). Here the arrays
    of floating-point numbers among the operands decide, as they do next to a Python number.
    Whole numbers of few bits or without a sign become int64 where they might not fit.
    """
    if isinstance(y, tuple | list):
        raise TypeError(f"{op.name}: expected one array as the result, got a {type(y).__name__}")
    y = np.asarray(y)
    if y.dtype.kind not in "fiubc":
        raise TypeError(f"{op.name}: expected a result of numbers, got {y.dtype}")
    if op.widened is not None and y.dtype.kind in "iu" and y.dtype != np.int64:
        return np.asarray(op.widened(*arrays, **options))
    if y.dtype is FLOAT64 and not any(
        a is FLOAT64 or (isinstance(a, np.ndarray) and a.dtype is FLOAT64) for a in arrays
    ):
        floats = [a.dtype for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        y = y.astype(np.result_type(*floats) if floats else DEFAULT_DTYPE)
    return y
