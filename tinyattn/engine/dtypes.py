"""Rules for the dtype of a Tensor."""

import numpy as np

if not hasattr(np, "dtype"):
    raise ImportError(
        f"`import numpy` found {np.__file__}, which is not NumPy. Rename this file, because a file "
        "of your own hides every module of the same name"
    )

from tinyattn.engine.torch_hints import dtype_of_numbers

DEFAULT_DTYPE = np.dtype(np.float32)  # dtype of Python numbers and lists. Arrays keep their dtype
FLOAT64 = np.dtype(np.float64)
COMMON_TYPES = {np.ndarray, int, float, bool, type(None), tuple, str}  # the types of most operands
LIBRARIES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jaxlib": "JAX", "cupy": "CuPy"}


def reject_foreign_tensor(x):
    """Return x unchanged, or raise TypeError if it is another library's tensor.

    Its gradient would be lost.
    """
    library = LIBRARIES.get(type(x).__module__.partition(".")[0])
    if library is None:
        return x
    raise TypeError(
        f"an operation of tinyattn received a {library} tensor, but each library records only its "
        "own gradients. Convert it to an array first, in PyTorch with .detach().numpy()"
    )


def array_of(data, dtype=None, requires_grad=False):
    """Return a new array with the numbers of data, as `tensor` stores them.

    If dtype is None, Python floats become float32, and so do Python integers and booleans if
    requires_grad is True. Arrays keep their dtype. Raises TypeError if data does not consist of
    numbers or cannot have a gradient, and ValueError for rows of different lengths.
    """
    if data is None:
        raise TypeError(
            "Tensor: expected numbers or booleans, got None. Did you forget the `return` of the "
            "function that computed it?"
        )
    try:
        array = np.array(data, dtype=None if dtype is None else dtype_of_numbers(dtype))
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(
            "Tensor: the rows of the list have different lengths. Make all rows equally long "
            "(data.tokenizers.padded pads tokens)"
        ) from None
    if array.dtype.kind not in "fiubc":
        raise TypeError(
            f"Tensor: expected numbers or booleans, got data of type {type(data).__name__} and "
            f"dtype {array.dtype}. Pass a list or an array of numbers"
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
    """Raise TypeError unless the dtype is floating point, because no other has a gradient."""
    if dtype.kind != "f":
        raise TypeError(
            f"Tensor: only floating-point data can require a gradient, got {dtype}. Convert whole "
            "numbers first, with .astype(np.float32) or dtype=np.float32"
        )


def result_array(op, y, arrays, options):
    """Return the output of an operation as an array, which is float64 only if an operand array was.

    NumPy makes float64 of float32 with int64, and of float32 with np.float64(2). Here, the
    floating-point arrays among the operands decide, as they do next to a Python number. Whole
    numbers with few bits or without a sign become int64 where they might not fit.

    Args:
        op        the `Operation`
        y         what its function returned
        arrays    the arguments of the function, with plain arrays instead of Tensors
        options   its keyword arguments, as a dict

    Raises:
        TypeError: y is not one array of numbers
    """
    if isinstance(y, tuple | list):
        raise TypeError(f"{op.name}: the function must return one array, got {type(y).__name__}")
    y = np.asarray(y)
    if y.dtype.kind not in "fiubc":
        got = "None. Did you forget its `return`?" if y.shape == () and y[()] is None else y.dtype
        raise TypeError(f"{op.name}: the function must return numbers, got {got}")
    if op.widened is not None and y.dtype.kind in "iu" and y.dtype != np.int64:
        return np.asarray(op.widened(*arrays, **options))
    if y.dtype is FLOAT64 and not any(
        a is FLOAT64 or (isinstance(a, np.ndarray) and a.dtype is FLOAT64) for a in arrays
    ):
        floats = [a.dtype for a in arrays if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        y = y.astype(np.result_type(*floats) if floats else DEFAULT_DTYPE)
    return y
