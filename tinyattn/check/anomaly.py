"""Find the origin of the first NaN or infinity: the operation, the line, and its inputs."""

import linecache
import os
from contextlib import contextmanager

import numpy as np

from tinyattn.check.recording import library_frames, observe, stop_observing
from tinyattn.engine.autograd import Operation
from tinyattn.engine.convert import to_array
from tinyattn.engine.invalid import where_none_arrives


@contextmanager
def detect_anomaly():
    """Raise an error at the first NaN or infinity in a block, and explain its origin.

        with ta.detect_anomaly():
            loss = np.mean(np.log(model(x)))     # FloatingPointError: log gave nan ...
            loss.backward()                      # or sqrt gave an infinite gradient ...

    The result of every operation inside the block is checked, and so are the gradients that pass
    through those operations, even if `backward` is called later. An infinity that the code inserts
    on purpose, as in np.where(mask, scores, -np.inf), is not an anomaly, but an operation that
    turns it into NaN is. Only the current thread is checked, and code outside the block does not
    become slower.

    Raises:
        FloatingPointError: a NaN or an infinity arose, or an operation received a NaN that was made
            outside the block. The error names the operation, the line that called it, the layers
            around it, its inputs, and their values at the first affected element
    """
    observe(_look)
    try:
        with np.errstate(all="ignore"):  # the error contains more than NumPy's warnings
            yield
    finally:
        stop_observing(_look)


def _look(t, op, values, inputs):
    """Check the result t of an operation, and make its rules check the gradients they return."""
    origin = _Origin(op, values)
    came = [_kind(v) for v in values]
    kind = _kind(t.data)
    if kind > max(came, default=FINITE):
        origin.complain(f"{op.name} gave {kind_name(kind)}", t.data)
    if kind == NAN:  # an input was already NaN, so the NaN was made outside the block
        origin.complain(f"{op.name} was given nan", t.data)
    if t._operation is not None:
        t._operation = _with_a_look(op, origin)


def _with_a_look(op, origin):
    """Return `op` with rules that check the gradients they return, and name their `origin`."""

    def look(rule):
        def looked_at(g, y, *inputs, **options):
            # a sum of gradients overflowed, or the first gradient was not finite
            if _kind(g) != FINITE:
                origin.complain(f"the gradient that arrives at {op.name} is {_named(g)}", g)
            found = where_none_arrives(op, g, rule(g, y, *inputs, **options))
            for g_x in found if isinstance(found, tuple | list) else (found,):
                if g_x is not None and _kind(g_x) != FINITE:
                    origin.complain(f"the gradient of {op.name} is {_named(g_x)}", g_x)
            return found

        return looked_at

    watched = Operation(op.name)
    watched.parameters, watched.elementwise = op.parameters, op.elementwise
    watched.rules = tuple([rule and look(rule) for rule in op.rules])
    watched.joint = op.joint and look(op.joint)
    return watched


# ---------------------------------------------------------------- what is looked at

FINITE, INFINITE, NAN = range(3)


def _kind(x):
    """Return FINITE, INFINITE or NAN for the worst number in x."""
    x = to_array(x)
    if isinstance(x, float):
        x = np.asarray(x)
    if isinstance(x, tuple | list):
        return max(map(_kind, x), default=FINITE)
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc" or np.isfinite(x).all():
        return FINITE
    return NAN if np.isnan(x).any() else INFINITE


def kind_name(kind):
    """Return the name of a kind (FINITE, INFINITE or NAN) for messages."""
    return {FINITE: "finite numbers", INFINITE: "infinity", NAN: "nan"}[kind]


def _named(x):
    return kind_name(_kind(x))


class _Origin:
    """An operation, the line and the layers that called it, and its inputs."""

    def __init__(self, op, values):
        self.values, self.layers = values, []
        self.names = [p.name for p in op.parameters or ()]
        inside, frame = library_frames(2)
        for f in inside:
            self._note_layer(f)
        self.file = self.line = None
        if frame is not None:
            self.file, self.line = frame.f_code.co_filename, frame.f_lineno
        while frame is not None:
            self._note_layer(frame)
            frame = frame.f_back

    def _note_layer(self, frame):
        """Note the layer whose `forward` this frame runs, if it runs one."""
        if frame.f_code.co_name == "forward" and "self" in frame.f_locals:
            self.layers.insert(0, type(frame.f_locals["self"]).__name__)

    def complain(self, what, x):
        """Raise FloatingPointError with `what`, the first bad position in x, and the inputs."""
        x = np.asarray(to_array(x))
        bad = np.isnan(x) if np.isnan(x).any() else ~np.isfinite(x)
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        lines = [f"{what} ({int(bad.sum())} of {x.size} values, the first at {list(first)})"]
        if self.file is not None:
            source = linecache.getline(self.file, self.line).strip()
            lines.append(f"line {self.line} of {os.path.basename(self.file)}: {source}")
        if self.layers:
            lines.append("inside " + " > ".join(self.layers))
        for i, v in enumerate(self.values):
            lines += [f"input {self._name(i)}: {text}" for text in _described(v, x.shape, first)]
        raise FloatingPointError("detect_anomaly: " + "\n  ".join(lines))

    def _name(self, i):
        return self.names[i] if i < len(self.names) else str(i)


def _described(v, shape, first):
    """Yield a line about the input v if it contains numbers, with v[first] if v has this shape."""
    if isinstance(v, int | float) and not isinstance(v, bool):
        yield str(v)
    if not isinstance(v, np.ndarray) or v.dtype.kind not in "fiu" or not v.size:
        return
    finite = v[np.isfinite(v)]
    span = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "no finite number"
    odd = [
        f"{n} {w}" for n, w in ((np.isnan(v).sum(), "nan"), (np.isinf(v).sum(), "infinite")) if n
    ]
    there = f", there {v[first]:.6g}" if v.shape == shape else ""
    yield f"{list(v.shape)} {v.dtype}, {', '.join([span, *odd])}{there}"
