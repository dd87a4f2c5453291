"""Checks of a loss's graph for `watch`: cuts, unused losses, changed arrays and NaN in data."""

import zlib

import numpy as np

from tinyattn.check.operations import PRODUCTS, below, outside
from tinyattn.engine.autograd import Tensor

NEEDED = PRODUCTS | {"multiply", "divide", "true_divide"}  # their rules use the inputs' values
LEFT_OUT = 2  # if backward() leaves out this many losses of one line, this is reported
MOST = 100  # calls of .numpy() that are noted
LARGEST = 10**6  # size of the largest array whose checksum is kept

_noting = []  # the checks of the open blocks
_numpy = Tensor.numpy


def _noted_numpy(x):
    """Return x as an array like `Tensor.numpy`, after the open checks have noted the call."""
    for checks in _noting:
        checks.note(x)
    return _numpy(x)


class FlowChecks:
    """The checks of how results flow into the loss, during one step.

    Args:
        say     function (topic, text, line) that warns once about each topic
        lines   {age of a result: the line that computed it}, kept by `OperationChecks`

    Attributes:
        cuts    (identities of the parameters before it, line) of each call of .numpy() on a result
    """

    def __init__(self, say, lines):
        self.say, self.lines = say, lines
        self.cuts, self.losses, self.arrays = [], {}, []

    def start(self):
        """Note each call of .numpy(), which ends the graph (.detach() does so on purpose)."""
        _noting.append(self)
        Tensor.numpy = _noted_numpy

    def stop(self):
        """Stop noting."""
        _noting.remove(self)
        if not _noting:  # otherwise, another block is still open
            Tensor.numpy = _numpy
        self.clear()

    def note(self, x):
        """Note that x becomes a plain array."""
        if x.requires_grad and x._operation is not None and x._inputs and x.size > 1:
            line = outside()
            if line is not None and len(self.cuts) < MOST:
                parameters = {id(t) for t in below(x) if t._operation is None}
                self.cuts.append((parameters, line))

    def clear(self):
        """Forget the results of this step."""
        self.losses.clear()
        self.arrays.clear()

    def look(self, t, op, values, inputs):
        """Note a recorded operation with the result t."""
        line = self.lines.get(t._created) if t.requires_grad else None
        if line is None:
            return
        if t.size == 1:
            self.losses[t._created] = (op.name, line)
        if op.name in NEEDED or op.name.startswith("conv"):
            for v, x in zip(values, inputs, strict=False):
                constant = not isinstance(x, Tensor) or (
                    x._operation is None and not x.requires_grad
                )
                if constant and isinstance(v, np.ndarray) and 0 < v.size <= LARGEST:
                    self.arrays.append((v, _checksum(v), op.name, line))

    def before_backward(self, root):
        """Check the graph of the loss `root` before its backward pass."""
        for v, before, name, line in self.arrays:
            if _checksum(v) != before:
                self.say(
                    "array written to",
                    f"an array {list(v.shape)} was written to after this {name} used it and before "
                    f"backward(), so the gradient is computed with the wrong numbers. Use a new "
                    f"array each time, for example np.copy(array)",
                    line,
                )
                break
        self.arrays.clear()
        own = self.losses.get(root._created)
        earlier = {t._created for t in below(root) if t._operation is not None}
        left = [age for age, found in self.losses.items() if found == own and age not in earlier]
        if own and len(left) >= LEFT_OUT:
            self.say(
                "losses left out",
                f"{len(left) + 1} losses were computed in line {own[1][1]}, but only one of them "
                f"is differentiated, so the other batches change nothing. Is backward() indented "
                f"too little? It belongs in the loop over the batches",
            )
        for age in earlier:
            self.losses.pop(age, None)

    def cut_before(self, never):
        """Return the (file, line) that cuts some parameters off from the loss, or None.

        Args:
            never   identities of the parameters that no gradient reached
        """
        for parameters, line in self.cuts:
            if parameters and parameters <= never:
                return line
        return None


def nan_in_data(root):
    """Return the name of the operation below root that received NaN as data, or None."""
    for t in below(root):
        for v, x in zip(t._values or (), t._inputs or (), strict=False):
            learned = isinstance(x, Tensor) and x.requires_grad
            if not learned and isinstance(v, np.ndarray) and v.dtype.kind == "f":
                if np.isnan(v).any():
                    return t._operation.name
    return None


def _checksum(v):
    return zlib.crc32(np.ascontiguousarray(v).view(np.uint8).ravel() if v.ndim else v.tobytes())
