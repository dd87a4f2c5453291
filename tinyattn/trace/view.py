"""The function `trace`, and its result, which a notebook displays and which can be saved."""

import html
import sys
from inspect import signature
from pathlib import Path

import numpy as np

from tinyattn import nn
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.ranges import is_number
from tinyattn.ops.backends import array_algebra
from tinyattn.trace.build import built
from tinyattn.trace.forward import function_of, measured_through
from tinyattn.trace.page import page
from tinyattn.trace.record import Recorder
from tinyattn.trace.tape import Tape
from tinyattn.widgets.iframe import iframe

HEIGHT = 720  # pixels of the frame in a notebook


def trace(what=None, *args, model=None, title=None, labels=()):
    """Step through the computation of one number, forward and backward, number by number.

        ta.trace(loss)            shows a computation afterwards. If a variable holds the model, the
                                  weights are named as in the model. Otherwise, write
                                  ta.trace(loss, model). Each loss, norm and attention is one box
                                  with its formula
        ta.trace(f, x, y)         runs f(x, y) with gradients of floating-point arrays
        with ta.trace() as t:     records the lines of the block, and traces its last scalar
            loss = ...

    During recording, operations use array algebra instead of compiled kernels, so there are more
    and smaller steps to look at.

    Args:
        what     the result of a computation (a Tensor), a function to run, or None for a block
        args     after a Tensor, the model that computed it. After a function, its arguments, of
                 which floating-point numbers and arrays become Tensors that require a gradient
        model    Module whose parameters are named. If None, it is found among your variables or
                 the Modules that ran
        title    title of the page. If None, the name of the function, "trace" for a block, and
                 "Where does this number come from?" for a Tensor
        labels   labels of rows, such as the tokens of a text, or none by default. They are shown at
                 all arrays that have as many rows as there are labels

    Returns:
        a `Trace`, or for a block a `Block`, which becomes a trace when the block ends

    Raises:
        TypeError: `what` is neither a Tensor nor a function, or the function returns no Tensor
        TypeError: a Tensor is followed by something other than its model, `model` is not a Module,
            or `labels` is not a list
        ValueError: the result is not a single number, or the computation is too large
        RuntimeError: the result depends on nothing that requires a gradient, its graph was freed,
            or no variable of a block holds such a number (raised when the block ends)
    """
    if model is not None and not isinstance(model, nn.Module):
        raise TypeError(f"trace: model must be a Module, got {type(model).__name__}")
    if not hasattr(labels, "__iter__"):
        raise TypeError(f"trace: labels must be a list of texts, got {labels!r}")
    frame = sys._getframe(1)
    if frame.f_code.co_name == "__call__" and frame.f_globals.get("__name__") == __package__:
        frame = frame.f_back
    if what is None:
        return Block(frame, model, title, labels)
    recorder = Recorder()
    if isinstance(what, Tensor):
        if args and model is None and isinstance(args[0], nn.Module):
            model, args = args[0], args[1:]
        if args:
            raise TypeError(
                "trace: after a Tensor, the only other argument can be its model. Write "
                "ta.trace(loss, model)"
            )
        recorder.look({**frame.f_globals, **frame.f_locals}, 0, 0)
        title = title or "Where does this number come from?"
        tape = Tape(what)
        recorder.find_roots(tape)
        recorder.find_boxes(tape)
        return Trace(tape, recorder, model, title, labels)
    if not callable(what):
        advice = ". Pass the loss itself, without .item() or float()" if is_number(what) else ""
        raise TypeError(
            f"trace: expected a Tensor or a function, got {type(what).__name__}{advice}"
        )
    recorder.look({**frame.f_globals, **frame.f_locals}, 0, 0)
    loss = _run(what, args, recorder)
    if loss is None and recorder.tape is None:
        raise TypeError(
            "trace: the function must return a Tensor, but it returned None. Did you forget its "
            "`return`?"
        )
    _check_arguments(loss, args)
    name = getattr(what, "__name__", type(what).__name__)
    return Trace(_tape_of(loss, recorder), recorder, model, title or name, labels)


def _run(f, args, recorder):
    inputs = [_with_gradient(x) for x in args]
    recorder.given = [t for t, x in zip(inputs, args, strict=True) if t is not x]
    for name, x in zip(_argument_names(f, len(inputs)), inputs, strict=True):
        recorder.look({name: x}, 0, 0)
    with array_algebra(), recorder.on():
        return f(*inputs)


def _check_arguments(loss, args):
    """Raise RuntimeError if a result has no gradient because an argument is not floating-point."""
    whole = [i for i, x in enumerate(args) if _is_whole(x)]
    if isinstance(loss, Tensor):
        without = not loss.requires_grad
    else:
        without = isinstance(loss, int | float | np.number | np.ndarray) and len(whole) == len(args)
    if without and whole:
        x = args[whole[0]]
        came, advice = f"the whole number {x}", f"{x}.0"
        if isinstance(x, np.ndarray):
            came = f"an array of {x.dtype}"
            advice = "floating-point numbers, such as x.astype(float)"
        raise RuntimeError(
            "trace: the result does not depend on anything that requires a gradient, but argument "
            f"{whole[0]} of the function is {came}. Pass it as {advice}"
        )


def _is_whole(x):
    array = isinstance(x, np.ndarray) and x.dtype.kind in "iub"
    return array or is_number(x, whole=True)


def _with_gradient(x):
    is_float = isinstance(x, np.ndarray | float) and np.asarray(x).dtype.kind == "f"
    return Tensor(x, requires_grad=True) if is_float else x


def _argument_names(f, n):
    try:
        declared = list(signature(f).parameters)
    except (TypeError, ValueError):
        declared = []
    return [*declared[:n], *[f"x{i}" for i in range(len(declared), n)]][:n]


def _tape_of(loss, recorder):
    """Return the tape of a loss, even if a backward pass has freed it in the meantime."""
    if recorder.tape is not None and (loss is None or recorder.tape.root is loss):
        return recorder.tape
    if loss is None:
        raise RuntimeError(
            "trace: no variable of the block holds a single number that depends on anything that "
            "requires a gradient. Assign the loss to a variable inside the block"
        )
    return Tape(loss)


class Trace:
    """A computation to step through.

    A notebook displays it, and `save` writes one HTML file. `data` is the content of the page: the
    arrays, their gradients and the rows of their Jacobians.

    Args:
        tape       the steps, and all gradients in `tape.gradients`: {tensor: dL/d(tensor)}
        recorder   the recorded names, lines and layers
        model      module whose parameters are named, or None
        title      title of the page
        labels     labels for rows, as in `trace`
    """

    def __init__(self, tape, recorder, model=None, title="trace", labels=()):
        self.tape, self._recorder = tape, recorder
        self.data, self._node_indices = built(tape, recorder, model, title)
        self.data["labels"] = [str(word) for word in labels]

    def walk(self, name, index=()):
        """Return this trace, whose page now opens with a guided walk to the gradient of one number.

        Args:
            name    name of a parameter or another array, as the page shows it. If several arrays
                    have this name, the first
            index   index of one of its elements, a whole number or a tuple of them, at least 0. For
                    a single number, ()

        Raises:
            TypeError: `index` is neither a whole number nor a tuple of whole numbers
            ValueError: there is no array with this name or no element with this index, or the array
                has no gradient
        """
        number, element = self._place(name, index)
        self._need_gradient(number, "walk to it")
        self.data["walk"] = [number, element, self._measured(number, element)]
        return self

    def start(self, name, index=(), gradient=False):
        """Return this trace, whose page now opens at one number.

        Args:
            name       name of a parameter or another array, as the page shows it. If several arrays
                       have this name, the first
            index      index of one of its elements, a whole number or a tuple of them, at least 0.
                       For a single number, ()
            gradient   True: open at the computation of the number's gradient. False: open at the
                       computation of the number itself

        Raises:
            TypeError: `index` is neither a whole number nor a tuple of whole numbers
            ValueError: there is no array with this name or no element with this index, the array
                has no gradient (gradient=True), or was given, not computed (gradient=False)
        """
        number, element = self._place(name, index)
        if gradient:
            self._need_gradient(number, "way back to it")
        elif self.data["nodes"][number]["kind"] != "result":
            has_gradient = self.data["nodes"][number]["grad"] is not None
            advice = (
                "Use gradient=True to show its gradient"
                if has_gradient
                else "Choose an array that was computed"
            )
            raise ValueError(f"trace: {name} was not computed in the forward pass. {advice}")
        self.data["start"] = [number, element, bool(gradient)]
        return self

    def _place(self, name, index):
        """Return the index of an array with this name, and of one of its elements."""
        names = [n["name"] for n in self.data["nodes"]]
        if name not in names:
            there = ", ".join([repr(n) for n in dict.fromkeys(names)])
            raise ValueError(f"trace: there is no array {name!r}. Choose one of {there}")
        shape = self.data["nodes"][names.index(name)]["shape"]
        index = index if isinstance(index, tuple) else (index,)
        if not all(is_number(i, whole=True) for i in index):
            raise TypeError(
                "trace: index must be a whole number or a tuple of whole numbers, got "
                f"{(index[0] if len(index) == 1 else index)!r}"
            )
        try:
            return names.index(name), int(np.ravel_multi_index(index, shape))
        except ValueError:
            single = f"Leave out the index, because {name} is a single number"
            each = "Give one index for each axis, at least 0 and less than its length"
            why = f"it has no element {list(index)}" if index else "an index is needed"
            raise ValueError(
                f"trace: {name} has shape {tuple(shape)}, so {why}. {each if shape else single}"
            ) from None

    def _need_gradient(self, number, what):
        node = self.data["nodes"][number]
        if node["grad"] is None:
            raise ValueError(
                f"trace: {node['name']} has no gradient, so there is no {what}. Choose an array "
                "that requires a gradient or depends on one that does"
            )

    def _measured(self, number, element):
        """Return dL/d(element), measured by running everything again, or None if not a leaf."""
        leaves = {id(x): x for s in self.tape.steps for x in s.inputs if x is not None}
        tensor = next(
            (
                leaves[key]
                for key, n in self._node_indices.items()
                if n == number and key in leaves and leaves[key]._operation is None
            ),
            None,
        )
        functions = {
            s.operation: function_of(s.operation, self._recorder.functions) for s in self.tape.steps
        }
        return None if tensor is None else measured_through(self.tape, functions, tensor, element)

    def html(self):
        """Return the whole page as HTML text.

        Raises ValueError if the page would have more than ten million characters.
        """
        return page(self.data)

    def save(self, path):
        """Write the page to the file `path`, and return the path as a `Path`.

        The file needs no network. A leading ~ in `path` means your home folder.

        Raises:
            FileNotFoundError: the folder does not exist
            ValueError: the page would have more than ten million characters
        """
        path = Path(path).expanduser()
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"trace: {path.name} cannot be written, because there is no folder {path.parent}. "
                f"Make it first: Path({str(path.parent)!r}).mkdir(parents=True)"
            )
        path.write_text(self.html(), encoding="utf-8")
        return path

    def _repr_html_(self):
        title, said = html.escape(self.data["title"]), html.escape(repr(self))
        frame = iframe(self.html(), repr(self), HEIGHT, f"<p><b>{title}</b></p>")
        return f'{frame}<div class="said" style="opacity:.7">{said}</div>'

    def __repr__(self):
        loss = self.data["nodes"][self.data["loss"]]
        return (
            f"trace of {loss['name']} = {loss['data'][0]:.4g}: {len(self.tape.steps)} steps, "
            f'{sum(len(n["data"]) for n in self.data["nodes"])} elements; .save("trace.html")'
        )


class Block:
    """The object t of `with ta.trace() as t:`, which becomes a trace when the block ends.

    It then has the attributes and methods of `Trace`.

    Args:
        frame    frame of the block's code
        model    as in `trace`
        title    as in `trace`
        labels   as in `trace`
    """

    def __init__(self, frame, model, title, labels):
        self._frame, self._model, self._title, self._labels = frame, model, title, labels
        self._recorder, self._trace, self._inside = Recorder(), None, None

    def __enter__(self):
        self._recorder.look({**self._frame.f_globals, **self._frame.f_locals}, 0, 0)
        self._recorder.last = None  # forget results from before the block
        self._inside = [array_algebra(), self._recorder.on(self._frame)]
        for manager in self._inside:
            manager.__enter__()
        return self

    def __exit__(self, kind, error, traceback):
        for manager in reversed(self._inside):
            manager.__exit__(None, None, None)
        self._frame = None
        if kind is None:
            root = self._recorder.tape.root if self._recorder.tape else self._recorder.last
            tape = _tape_of(root, self._recorder)
            self._trace = Trace(
                tape, self._recorder, self._model, self._title or "trace", self._labels
            )

    def __getattr__(self, name):
        if name.startswith("__") or self._trace is None:
            if "_inside" not in self.__dict__ or self._inside is None:
                advice = "Write with ta.trace() as t: before the lines of the computation"
            elif self._frame is None:
                advice = "Correct the error in the block, and run it again"
            else:
                advice = "Use it after the block"
            raise AttributeError(
                f"trace: .{name} exists only after the with block has ended without an error. "
                f"{advice}"
            )
        return getattr(self._trace, name)

    def __repr__(self):
        return "trace: recording" if self._trace is None else repr(self._trace)

    def _repr_html_(self):
        return None if self._trace is None else self._trace._repr_html_()
