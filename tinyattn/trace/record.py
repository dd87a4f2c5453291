"""Record the names, lines and layers of a computation with Python's own tracing.

Every result carries the time of the engine's clock at which it was computed. So it is enough to
note the clock whenever a line or a function begins. A result then belongs to the calls during which
it was computed, and to the last line that began before it.
"""

import os
import sys
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tinyattn import functional, nn
from tinyattn.engine import autograd
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.boxes import RECENT
from tinyattn.trace.forward import primitives_of
from tinyattn.trace.tape import Tape

HERE = os.path.dirname(os.path.dirname(autograd.__file__)) + os.sep
# Results are computed in these folders, but their lines do not explain the computation ...
ENGINE = tuple(HERE + folder + os.sep for folder in ("engine", "ops", "kernels", "trace"))
# ... except for the array algebra of layers, whose variables are the letters of their formulas. It
# is in the files of ops/ that have the same name as a public file.
ALGEBRA = {
    f"{HERE}ops{os.sep}{name}"
    for folder in ("functional", "graph")
    for name in os.listdir(HERE + folder)
}
OTHERS = tuple(
    {os.path.dirname(os.__file__) + os.sep, os.path.dirname(os.path.dirname(np.__file__))}
)
BACKWARD = autograd.backward_pass.__code__
LOSSES = functional.losses.__file__
MOST_ITEMS = 64  # the elements of a list up to this length get names


class Closed(str):
    """The name of a library function that is shown as one box, which opens on request."""


class Call(NamedTuple):
    """A layer or a public function that ran.

    Attributes:
        begin   time of the engine's clock when the call began
        end     time when it ended
        what    the module, or the name of the function
    """

    begin: int
    end: int
    what: object


class Line(NamedTuple):
    """A line that began, or to which a call returned.

    Attributes:
        time     time of the engine's clock
        file     path of the file
        number   number of the line in the file
    """

    time: int
    file: str
    number: int


class Name(NamedTuple):
    """The name of a variable that holds an array.

    Attributes:
        rank   0 for a variable of the user, 1 for a variable of the library, 2 for the result of a
               user's function. A name of smaller rank replaces one of larger rank
        text   name of the variable
    """

    rank: int
    text: str


class Recorder:
    """A recorder of the calls, lines and names of a computation.

    Attributes:
        calls       the calls of layers and public functions, in the order in which they began
        lines       the lines of the user's code that ran
        inner       the lines of the library's code that ran
        names       {id of a Tensor, array or module: Name}
        functions   {operation: its function}
        roots       the outermost modules that were called
        tape        the tape of the last backward pass that ran during recording, or None
        given       tensors that were made from the arguments of a traced function
        last        the latest Tensor with a single number that was computed, requires a gradient
                    and was assigned to a variable of the user, or None
    """

    def __init__(self):
        self.calls, self.lines, self.inner = [], [], []
        self.names, self.functions, self.roots = {}, {}, []
        self.tape = self.last = None
        self.given = []
        self._kept = {}  # named objects are kept alive, so that their ids stay unique

    @contextmanager
    def on(self, frame=None):
        """Record inside the block.

        Args:
            frame   frame whose further lines are recorded, too. If None, only the lines of
                    functions that are called inside the block are recorded
        """
        before = sys.gettrace(), frame and frame.f_trace
        if frame is not None:
            frame.f_trace = self._follower(frame, library=False, born=self._now())
        sys.settrace(self._begin)
        try:
            yield self
        finally:
            sys.settrace(before[0])
            if frame is not None:
                frame.f_trace = before[1]
                self.look(frame.f_locals, 0, 0)

    def look(self, variables, rank, born):
        """Note the names of the variables, and the operations of the primitives among them.

        In a function of the library, a name counts only for arrays that were computed during that
        call, not for its arguments.

        Args:
            variables   {name: value}
            rank        rank of the names, as in `Name`
            born        time at which the function of the library was called
        """
        for name, value in list(variables.items()):
            if name.startswith("_"):
                continue
            for primitive in primitives_of(value):
                self.functions[primitive.operation] = primitive.__wrapped__
            for text, x in _named(name, value):
                made = isinstance(x, Tensor) and x._operation is not None
                if rank == 0 or (made and x._created >= born):
                    self._note(x, Name(rank, text))

    def find_roots(self, tape):
        """Set `roots` to the outermost named modules whose parameters are used on `tape`."""
        used = {id(x) for step in tape.steps for x in step.inputs if x is not None}
        modules = [
            m
            for m in self._kept.values()
            if isinstance(m, nn.Module) and any(id(p) in used for p in m.parameters())
        ]
        inner = {id(i) for m in modules for i in m.modules() if i is not m}
        self.roots = [m for m in modules if id(m) not in inner]

    def find_boxes(self, tape):
        """Set `calls` to the recent library calls that ended on `tape`, outer ones first."""
        ends = {step.tensor._created for step in tape.steps}
        found = [Call(box.begin, box.end, Closed(box.name)) for box in RECENT if box.end in ends]
        self.calls = sorted(found, key=lambda call: (call.begin, -call.end))

    def _note(self, x, name):
        if isinstance(x, Tensor) and name.rank == 0 and x.requires_grad and x.size == 1:
            if x._operation and (self.last is None or x._created >= self.last._created):
                self.last = x
        old = self.names.get(id(x))
        if old is None or name.rank < old.rank:
            self.names[id(x)], self._kept[id(x)] = name, x

    @staticmethod
    def _now():
        return autograd._clock()

    def _begin(self, frame, event, argument):
        """Return the tracer of a function's lines. Python calls this when the function begins."""
        code, file = frame.f_code, frame.f_code.co_filename
        if code is BACKWARD:
            self._keep_tape(frame.f_locals["root"])
        if file in ALGEBRA:
            return self._follower(frame, True, self._now())
        if file.startswith(ENGINE):
            if code.co_name == "apply":
                self._keep_function(frame.f_locals)
            return None
        library = file.startswith(HERE)
        if not library and (file.startswith((*OTHERS, "<frozen")) or "site-packages" in file):
            return None
        what = self._what(frame)
        at = None
        if what is not None:
            at = len(self.calls)
            self.calls.append(Call(self._now(), sys.maxsize, what))
        return self._follower(frame, library, self._now(), at)

    def _follower(self, frame, library, born, call=None):
        lines, rank = (self.inner, 1) if library else (self.lines, 0)

        def follow(frame, event, argument):
            if event == "line":
                lines.append(Line(self._now(), frame.f_code.co_filename, frame.f_lineno))
                self.look(frame.f_locals, rank, born)
            elif event == "return":
                self.look(frame.f_locals, rank, born)
                if isinstance(argument, Tensor) and library is False:
                    self.look({"result": argument}, 2, born)
                self._come_back(frame.f_back)
                if call is not None:
                    self.calls[call] = self.calls[call]._replace(end=self._now())
            return follow

        return follow

    def _come_back(self, frame):
        """After a call, note again the line of the caller, and the line of the user's code."""
        inside = True
        while frame is not None and frame.f_code.co_filename.startswith(HERE):
            file = frame.f_code.co_filename
            if inside and (file in ALGEBRA or not file.startswith(ENGINE)):
                self.inner.append(Line(self._now(), file, frame.f_lineno))
                inside = False
            frame = frame.f_back
        if frame is not None:
            self.lines.append(Line(self._now(), frame.f_code.co_filename, frame.f_lineno))

    def _what(self, frame):
        """Return the module whose forward begins, or the name of a public function, or None."""
        name, me = frame.f_code.co_name, frame.f_locals.get("self")
        if isinstance(me, nn.Module):
            if name != "forward":
                return None
            if not any(me is m for root in self.roots for m in root.modules()):
                self.roots.append(me)
            return me
        if frame.f_code.co_filename == LOSSES and name in functional.__all__:
            return Closed(name)
        inner = "<locals>" in frame.f_code.co_qualname and frame.f_code.co_filename.startswith(HERE)
        return None if inner or name.startswith(("_", "<")) else name

    def _keep_function(self, variables):
        if "op" in variables and "f" in variables:
            self.functions[variables["op"]] = variables["f"]

    def _keep_tape(self, root):
        """Keep the tape before a backward pass frees it and training continues."""
        if root.size == 1 and root.requires_grad and root._operation is not None:
            self.tape = Tape(root)


def _named(name, value):
    """Yield (text, value) for a Tensor, array or module, and for those in a list or dictionary."""
    if isinstance(value, Tensor | np.ndarray | nn.Module):
        yield name, value
    elif isinstance(value, list | tuple) and len(value) <= MOST_ITEMS:
        for i, v in enumerate(value):
            if isinstance(v, Tensor | np.ndarray | nn.Module):
                yield f"{name}[{i}]", v
    elif isinstance(value, dict) and len(value) <= MOST_ITEMS:
        for key, v in value.items():
            if isinstance(v, Tensor | np.ndarray) and isinstance(key, str):
                yield f'{name}["{key}"]', v
