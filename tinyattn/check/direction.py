"""Find out from the graph of a loss whether an error grows or falls with the loss.

The age of a Tensor is its time of creation, `_created`.
"""

import numpy as np

PATH = 12  # a comparison counts if at most this many operations lead from it to the loss
PROBABILITIES = {"softmax", "sigmoid"}
SELECTED = {"getitem", "take_along_axis"}  # these select one number in each row, at its label
SELECTIONS = {*SELECTED, "reshape", "squeeze", "ravel", "astype", "transpose"}
SAME_ORDER = {*SELECTIONS, "mean", "sum"}  # the results of these grow if all inputs grow
OFFSETS = {"clip", "maximum", "add"}  # these protect against the logarithm of 0


def direction(t, errors, depth=PATH):
    """Return whether a result grows or falls with the error that it contains.

    The error may be the result of a loss function. It may also be written by hand, as the square or
    absolute value of a difference from constants, or (with the sign -1) as log-probabilities that
    labels select.

    Args:
        t        the result, a Tensor
        errors   {age of a result of a loss function: the name of the function}
        depth    largest number of operations between t and the error

    Returns:
        (sign, name of the error, age of the operation that decides the sign), where the sign is +1
        if t grows with the error and -1 if t falls. (0, "", 0) if no error was recognized, or if t
        also depends on other results
    """
    unknown = 0, "", 0
    if t is None or t._operation is None or not depth:
        return unknown
    if t._created in errors:
        return 1, errors[t._created], t._created
    op, inputs, values = t._operation.name, t._inputs, t._values or ()
    open_ = [i for i, x in enumerate(inputs) if x is not None and x.requires_grad]
    if not open_:
        return unknown
    x = inputs[open_[0]]
    constants = [np.asarray(v) for i, v in enumerate(values) if i not in open_ and i < 2]
    if _is_distance(op, inputs, constants) and _is_difference(x):
        return 1, "the error of the predictions", t._created
    if _is_selected_log_probability(t):
        return -1, "the probability of wrong classes", t._created
    if op in SAME_ORDER:
        return direction(x, errors, depth - 1)
    if len(open_) == 2:
        return _direction_of_two(t, errors, depth)
    sign = {"negative": -1, "subtract": 1 - 2 * open_[0], "add": 1}.get(op, 0)
    if op == "multiply" or (op in ("divide", "true_divide") and open_ == [0]):
        signs = {float(s) for c in constants for s in np.unique(np.sign(c)) if s}
        sign = signs.pop() if len(signs) == 1 else 0
    below, name, age = direction(x, errors, depth - 1) if sign else unknown
    # a message names the line that turned the sign
    return int(sign * below), name, t._created if sign < 0 else age


def _direction_of_two(t, errors, depth):
    """Return the `direction` of a sum or difference, whose two parts must agree."""
    turn = {"add": 1, "subtract": -1}.get(t._operation.name, 0)
    one, two = (direction(x, errors, depth - 1) for x in t._inputs[:2])
    signs = [one[0], turn * two[0]]
    if sorted(signs) == [-1, 0] and turn == 1:  # y log p + (1 - y) log (1 - p)
        other = t._inputs[signs.index(0)]
        if _is_selected_log_probability(other, OFFSETS | {"subtract"}):
            signs = [-1, -1]
    agree = turn and signs[0] == signs[1]
    return (signs[0], (one[1] or two[1]), max(one[2], two[2])) if agree else (0, "", 0)


def _is_distance(op, inputs, constants):
    """Return whether the operation is a square or an absolute value."""
    if op == "multiply":
        return len(inputs) == 2 and inputs[0] is inputs[1]
    if op == "power":
        return bool(constants) and constants[0].ndim == 0 and constants[0] == 2
    return op in ("square", "abs", "absolute")


def _is_difference(x):
    """Return whether x is predictions minus constants, or constants minus predictions."""
    if x._operation is None or x._operation.name != "subtract" or x.size < 2:
        return False
    constants = [
        v for v, y in zip(x._values, x._inputs, strict=False) if y is None or not y.requires_grad
    ]
    return len(constants) == 1 and np.size(constants[0]) == x.size


def _is_selected_log_probability(t, offsets=OFFSETS):
    """Return whether t is the logarithm of a softmax or sigmoid, selected by labels.

    Labels select by an index or as a factor.
    """
    op, selected = t._operation.name, t._operation.name in SELECTED
    if op == "multiply":
        constants = [np.asarray(v) for v, x in zip(t._values, t._inputs, strict=False) if x is None]
        selected = len(constants) == 1 and constants[0].size > 1 and (constants[0] >= 0).all()
    inner = _before(t, SELECTIONS | {"multiply"})
    if inner._operation is not None and inner._operation.name == "log":
        inside = _before(inner._inputs[0], offsets)
        if op == "log" and inside._operation is not None:
            selected = inside._operation.name in SELECTED
        inner = _before(inside, SELECTIONS | offsets)
        return bool(selected) and made_by(inner, PROBABILITIES)
    return bool(selected) and made_by(inner, {"log_softmax"})


def made_by(t, names):
    """Return whether t is the result of an operation with one of these `names`."""
    return t is not None and t._operation is not None and t._operation.name in names


def _before(t, through):
    """Return the Tensor from which operations with names in `through` computed t."""
    while made_by(t, through):
        before = [x for x in t._inputs if x is not None and x.requires_grad]
        if len(before) != 1:
            break
        t = before[0]
    return t
