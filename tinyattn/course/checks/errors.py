"""The most frequent meanings of NumPy's error messages in homework."""

import builtins
import re

from tinyattn.engine.torch_hints import FUNCTIONS, KEYWORDS, METHODS

PRODUCT = re.compile(r"matmul: Input operand 1 .*\(size (\d+) is different from (\d+)\)")
BROADCAST = re.compile(r"could not be broadcast together with shapes (\([\d,]*\)) (\([\d,]*\))")
OVERWRITTEN = "a name was given another value"
OTHERS = (
    (
        "setting an array element with a sequence",
        "something with a shape is put into one place of an array",
        "One place of an array holds one plain number. A Tensor has no place in an array, either: "
        "collect Tensors in a list and np.stack it, or compute all places at once.",
    ),
    (
        "read-only",
        "an input is written into",
        "It writes into what it was given, which others need as it is; a gradient that is changed "
        "in place is wrong everywhere else. Write x = x * 2 in place of x *= 2, np.where in place "
        "of x[...] = 0, or work on a copy, x.copy().",
    ),
    (
        "arrays used as indices must be of integer",
        "an index that is no whole number",
        "What stands in [ ] has to be whole numbers (or True and False): is it the array you mean?",
    ),
)


def meaning(message, line=""):
    """Return (a short name, a sentence) that explain an error in this line, or ("", "")."""
    if found := PRODUCT.search(message):
        return "the shapes of a product @ do not fit", _product(*found.groups(), line)
    if found := BROADCAST.search(message):
        return "shapes do not fit beside each other", _broadcast(*map(_shape, found.groups()))
    if "einsum" in line and re.search("remapped shapes|too many subscripts|dimensions", message):
        return "the letters of an einsum do not fit", (
            "einsum: each operand needs one letter for each axis, and a letter stands for axes of "
            "one length only."
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
    """Return our name for a PyTorch attribute that a plain array or NumPy does not have."""
    if found := re.search(r"'numpy\.ndarray' object has no attribute '(\w+)'", message):
        return str(METHODS[found[1]]) if found[1] in METHODS else ""
    if re.search(r"module 'numpy' has no attribute '(\w+)'", message):
        name = re.search(r"no attribute '(\w+)'", message)[1]
        found = FUNCTIONS.get(name) or METHODS.get(name)
        return str(found) if found else ""
    if "name 'torch' is not defined" in message:
        asked = re.search(r"torch\.(\w+)", line)
        found = asked and (FUNCTIONS.get(asked[1]) or METHODS.get(asked[1]))
        return str(found) if found else "NumPy's functions (np.exp, np.sum, ...) are used here."
    if found := re.search(r"unexpected keyword argument '(\w+)'", message):
        return str(KEYWORDS[found[1]]) if found[1] in KEYWORDS else ""
    return ""


def _overwritten(message, line):
    """Return what to do about a line in which `sum`, `np` or the like is something else by now."""
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
        "Is one of them to be transposed, or is one too much? And `.T` turns all axes around: "
        "where there are more than two, np.swapaxes(x, -1, -2) turns the last two."
        if ".T" in line
        else "Is one of them to be transposed, or are the two in the wrong order?"
    )
    return (
        "a @ b sums over the last axis of a and the last but one of b (the only one of a vector): "
        f"here they have the lengths {left} and {right}. {advice}"
    )


def _broadcast(a, b):
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    if len(long) == len(short) + 1 and short in [
        long[:i] + long[i + 1 :] for i in range(len(long))
    ]:
        return (
            f"{short} is {long} without one axis. A sum, mean or maximum along an axis throws that "
            "axis away: keepdims=True keeps it with length 1, and x[:, None] puts one in."
        )
    return (
        "Shapes are compared from their last axis on: lengths that stand one under the other have "
        "to be equal, or one of them is 1."
    )


def _shape(text):
    return tuple(int(n) for n in re.findall(r"\d+", text))
