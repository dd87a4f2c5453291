"""The most frequent meanings of NumPy's error messages in homework."""

import builtins
import re

from tinyattn.engine.torch_hints import FUNCTIONS, KEYWORDS, METHODS

PRODUCT = re.compile(r"matmul: Input operand 1 .*\(size (\d+) is different from (\d+)\)")
BROADCAST = re.compile(r"could not be broadcast together with shapes (\([\d,]*\)) (\([\d,]*\))")
GUESS = "Perhaps this helps: "  # before a hint that was written for the task, not for the error
OVERWRITTEN = "a name was given another value"
WRITTEN = "an input is written into"
OTHERS = (
    (
        "setting an array element with a sequence",
        "an array is assigned to a single element of an array",
        "One element of an array holds one plain number, so neither an array nor a Tensor fits "
        "there. Collect Tensors in a list and call np.stack on it, or compute all elements at "
        "once.",
    ),
    (
        "read-only",
        WRITTEN,
        "Your code writes into one of its inputs, which other code still needs unchanged. A "
        "gradient that is changed in place is wrong everywhere else. Write x = x * 2 instead of "
        "x *= 2, use np.where instead of x[...] = 0, or work on a copy, x.copy().",
    ),
    (
        "arrays used as indices must be of integer",
        "an index that is not an integer",
        "An index in [ ] must consist of integers (or of True and False). Did you use the array "
        "that you meant?",
    ),
)


def meaning(message, line=""):
    """Return (short name, sentence) that explain an error, or ("", "") for an unknown one.

    Args:
        message   message of the error
        line      line of the student's code that raised it
    """
    if found := PRODUCT.search(message):
        return "the shapes of a product @ do not fit", _product(*found.groups(), line)
    if found := BROADCAST.search(message):
        return "the shapes cannot be combined", _broadcast(*map(_shape, found.groups()))
    if "einsum" in line and re.search("remapped shapes|too many subscripts|dimensions", message):
        return "the letters of an einsum do not match its arrays", (
            "In an einsum, each array needs one letter for each axis, and axes with the same "
            "letter must have the same length."
        )
    if told := _of_pytorch(message, line):
        return "a name of PyTorch's", told
    if told := _overwritten(message, line):
        return OVERWRITTEN, told
    for pattern, short, sentence in OTHERS:
        if re.search(pattern, message):
            return short, sentence
    return "", ""


def _of_pytorch(message, line):
    """Return what to write instead of a name that only PyTorch has, or "" for other errors."""
    if found := re.search(r"'numpy\.ndarray' object has no attribute '(\w+)'", message):
        return str(METHODS[found[1]]) if found[1] in METHODS else ""
    if re.search(r"module 'numpy' has no attribute '(\w+)'", message):
        name = re.search(r"no attribute '(\w+)'", message)[1]
        found = FUNCTIONS.get(name) or METHODS.get(name)
        return str(found) if found else ""
    if "name 'torch' is not defined" in message:
        asked = re.search(r"torch\.(\w+)", line)
        found = str((asked and (FUNCTIONS.get(asked[1]) or METHODS.get(asked[1]))) or "")
        # most tasks do not allow the library's own functions
        known = found and not re.search(r"\b(F|nn)\.", found.partition(" is ")[2])
        return found if known else "NumPy's functions (np.exp, np.sum, ...) are used here."
    if found := re.search(r"unexpected keyword argument '(\w+)'", message):
        return str(KEYWORDS[found[1]]) if found[1] in KEYWORDS else ""
    return ""


def _overwritten(message, line):
    """Return what to do if `sum`, `np` or a similar name in `line` has a new value, or ""."""
    if re.search(r"object is not callable", message):
        names = [n for n in re.findall(r"(?<![\w.])(\w+)\(", line) if hasattr(builtins, n)]
    elif found := re.search(r"'\w+' object has no attribute '(\w+)'", message):
        names = re.findall(rf"\b(np|ta|nn|F|optim)\.{found[1]}\b", line)
    else:
        names = []
    if not names:
        return ""
    name = " or ".join(f"`{name}`" for name in dict.fromkeys(names))
    return (
        f"Another cell gave {name} a new value, as in `{names[0]} = 0`. Choose another name there, "
        f"restart the kernel, and run the cells again."
    )


def _product(right, left, line):
    advice = (
        "Should one of them be transposed, or is there one transpose too many? Note that `.T` "
        "reverses the order of all axes. If there are more than two, np.swapaxes(x, -1, -2) "
        "swaps only the last two."
        if ".T" in line
        else "Should one of them be transposed, or are the two in the wrong order?"
    )
    return (
        "a @ b sums over the last axis of a and the second-to-last axis of b (or the only axis, "
        f"if b is a vector). Here, these axes have the lengths {left} and {right}. {advice}"
    )


def _broadcast(a, b):
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    if len(long) == len(short) + 1 and short in [
        long[:i] + long[i + 1 :] for i in range(len(long))
    ]:
        return (
            f"{short} is {long} without one axis. A sum, mean or maximum along an axis removes "
            "that axis. With keepdims=True it stays, with length 1, and x[:, None] inserts a new "
            "one."
        )
    return (
        "Shapes are compared axis by axis, beginning with the last. The two lengths must be "
        "equal, or one of them must be 1."
    )


def _shape(text):
    return tuple(int(n) for n in re.findall(r"\d+", text))
