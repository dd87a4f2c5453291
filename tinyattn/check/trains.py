"""Check that a model learns: all parameters must change, and it must memorize a small batch."""

import linecache
import math
from copy import deepcopy

import numpy as np

from tinyattn.check.operations import OperationChecks
from tinyattn.check.recording import observe, stop_observing
from tinyattn.check.report import Report, name_of, number
from tinyattn.engine.autograd import Tensor, no_grad
from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import check_range, type_with_article
from tinyattn.ops.index import take_along_axis
from tinyattn.ops.softmax import log_softmax

RATES = (1e-2, 1e-3)  # learning rates, of which the second is used if the first fails
FEWEST = 10  # steps after which every parameter should have changed
LEARNED = 0.1  # fraction of the first loss below which the batch counts as learned


def trains(module, batch, loss=None, steps=300, learned=LEARNED):
    """Check that every parameter gets a gradient and changes, and that one batch can be memorized.

    The check passes if all parameters that are not frozen have changed and the loss has fallen far
    enough. Pass few examples, such as 4 to 16, because a good model must be able to memorize them.
    Equal examples with different targets cannot be learned.

    Args:
        module    the module, of which a copy is trained with Adam and without dropout
        batch     the arguments of the loss after the module: (x, target), or (x, mask, target), …
        loss      function (module, *batch) -> a Tensor with a single number. If None, the result of
                  module(*inputs) is compared with the target, the last entry of the batch: by
                  cross-entropy if it contains integers (with the classes on the last axis of the
                  result, or on axis 1), and by squared error otherwise
        steps     largest number of steps, for each of the learning rates 0.01 and 0.001
        learned   fraction of the first loss below which the batch counts as learned

    Returns:
        a `Report`

    Raises:
        TypeError: module is not a module, steps is not a whole number, learned is not a number, or
            loss is not a function (module, *batch) that returns a Tensor with a single number.
            Without `loss`, also: the module does not return a Tensor, or the target does not
            consist of numbers
        ValueError: no parameter requires a gradient, steps < 1, or learned < 0. Without `loss`,
            also: the batch has no target, or one that does not fit the result
    """
    if not hasattr(module, "named_parameters") or isinstance(module, type):
        of_class = isinstance(module, type)
        found = f"the class {module.__name__}" if of_class else type_with_article(module)
        raise TypeError(
            f"trains: module must be an nn.Module, got {found}. Write trains(module, (x, target))"
        )
    check_range("trains", 1, whole=True, steps=steps)
    check_range("trains", 0, learned=learned)
    home = getattr(loss, "__module__", None) or ""
    of_results = home.startswith(("tinyattn.functional", "tinyattn.nn"))  # it takes no module
    if loss is not None and (of_results or not callable(loss)):
        raise TypeError(
            f"trains: loss must be a function (module, *batch), got {name_of(loss)}. For a loss "
            "function f, write loss=lambda module, x, target: f(module(x), target)"
        )
    batch = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
    loss = _usual_loss if loss is None else loss
    trained = {name for name, p in module.named_parameters() if p.requires_grad}
    if not trained:
        raise ValueError(
            "trains: the module has no parameters that require a gradient. Pass a "
            "module with trainable parameters, or call requires_grad_()"
        )
    for rate in RATES:
        run = _Run(module, loss, batch, trained)
        run.train(steps, rate, learned)
        if run.losses[-1] <= learned * run.losses[0] or run.lost(trained):
            break
    return _report(module, run, trained, batch, learned)


class _Run:
    """The training of a copy, and its effect on each parameter.

    Attributes:
        losses      the loss before each step, and after the last one
        arrived     names of the parameters that received a gradient at least once
        nonzero     names of the parameters that received a gradient other than 0
        moved       names of the parameters that have changed
        connected   whether the loss depends on any parameter
        slips       {topic: what `watch` would say about the loss}
    """

    def __init__(self, module, loss, batch, trained):
        self.module, self.loss, self.batch = _without_dropout(deepcopy(module)), loss, batch
        self.parameters = {n: p for n, p in self.module.named_parameters() if n in trained}
        self.losses, self.arrived, self.nonzero, self.connected = [], set(), set(), True
        self.slips = {}

    def train(self, steps, rate, learned):
        """Train until the loss is low enough, for at most `steps` steps."""
        before = {n: p.data.copy() for n, p in self.parameters.items()}
        moments = {n: (np.zeros_like(a), np.zeros_like(a)) for n, a in before.items()}
        for t in range(1, steps + 1):
            value = self.value() if self.losses else self.first_value()
            self.losses.append(value.item())
            self.connected = value.requires_grad
            if not math.isfinite(self.losses[-1]) or not self.connected:
                break
            if t > FEWEST and self.losses[-1] <= learned * self.losses[0]:
                break
            for p in self.parameters.values():
                p.grad = None
            value.backward()
            for n, p in self.parameters.items():
                if p.grad is not None:
                    self.arrived.add(n)
                    if np.any(p.grad):
                        self.nonzero.add(n)
                        p.data = _adam(p.data, np.asarray(to_array(p.grad)), moments[n], t, rate)
        else:
            self.losses.append(self.value().item())
        self.moved = {
            n for n, p in self.parameters.items() if not np.array_equal(p.data, before[n])
        }

    def first_value(self):
        """Return the loss of the batch, and note the mistakes in it."""
        operations = OperationChecks(self.module, self.note)
        observe(operations.look)
        try:
            value = self.value()
        finally:
            stop_observing(operations.look)
        if value._operation is not None:
            for slip in operations.compared_in(value):
                self.note(*slip)
        return value

    def note(self, topic, text, line):
        """Note a mistake in a line (file, number)."""
        source = linecache.getline(*line).strip()
        self.slips.setdefault(topic, f"line {line[1]}, `{source}`: {text}")

    def value(self):
        """Return the loss of the batch, a Tensor with a single number."""
        value = self.loss(self.module, *self.batch)
        if not isinstance(value, Tensor) or value.size != 1:
            kind = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
            raise TypeError(
                "trains: loss(module, *batch) must return a Tensor with a single number, got "
                f"{kind}"
            )
        return value

    def lost(self, trained):
        """Return whether a parameter did not move, or the loss depends on none of them."""
        return not self.connected or trained - self.moved


def _adam(theta, g, moments, t, rate):
    m, v = moments
    m += 0.1 * (g - m)
    v += 0.001 * (g * g - v)
    step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return (theta - rate * step).astype(theta.dtype)


def _without_dropout(module):
    for part in module.modules():
        for name in ("p", "dropout"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)
    return module


def _usual_loss(module, *batch):
    if len(batch) < 2:
        raise ValueError(
            f"trains: expected batch = (x, target), got a batch of length {len(batch)}. Pass loss= "
            "if the module needs no target"
        )
    *inputs, target = batch
    y, target = module(*inputs), np.asarray(to_array(target))
    if not isinstance(y, Tensor):
        raise TypeError(
            f"trains: the module must return a Tensor, got {type(y).__name__}. Pass loss=, a "
            "function of the module and the batch that returns a single number"
        )
    if target.dtype.kind not in "fiub":
        raise TypeError(
            f"trains: the target must consist of numbers, got {target.dtype}. Write names of "
            "classes as indices from 0 to C - 1"
        )
    if target.dtype.kind in "iu":
        for axis in (-1, 1):
            if y.ndim > 1 and (*y.shape[:axis], *y.shape[axis:][1:]) == target.shape:
                outside = target[(target < 0) | (target >= y.shape[axis])]
                if outside.size:
                    raise ValueError(
                        f"trains: axis {axis % y.ndim} of the result {y.shape} has the scores of "
                        f"the classes, so expected 0 <= target < {y.shape[axis]}, got "
                        f"{outside[0]}. Number the classes from 0, or return a score for each"
                    )
                scores = take_along_axis(log_softmax(y, axis), np.expand_dims(target, axis), axis)
                return -np.mean(scores)
        shapes = f"{y.shape[:-1]} (classes on the last axis)"
        if y.ndim > 2:
            shapes += f" or {(y.shape[0], *y.shape[2:])} (classes on axis 1)"
    elif y.shape == target.shape:
        return np.mean(np.square(y - target))
    else:
        shapes = f"{y.shape}"
    of_classes = target.shape == y.shape[:-1] and not np.any(target % 1)
    classes = "Write classes with .astype(int), or p" if of_classes else "P"
    raise ValueError(
        f"trains: the module returns shape {y.shape}, so a target of {target.dtype} must have "
        f"shape {shapes}, got {target.shape}. {classes}ass loss= for any other target"
    )


# ---------------------------------------------------------------- what it says


def _report(module, run, trained, batch, learned):
    title, first, last = f"trains: {name_of(module)}", run.losses[0], run.losses[-1]
    n, size = len(trained), sum(p.size for p in run.parameters.values())
    course = f"loss {number(first)} → {number(last)} in {len(run.losses) - 1} steps on one batch"
    faults, causes = _faults(run, trained), list(run.slips.values())
    if run.connected and not last <= learned * first:
        faults.append(
            f"the batch is not memorized: expected a loss below {number(learned * first)}"
        )
        causes = causes or _why_not_learned(run, batch)
    frozen = [name for name, p in module.named_parameters() if name not in trained]
    frozen = f", {len(frozen)} frozen" if frozen else ""
    what = f"{n} parameters{frozen}, {course}"
    error = abs(last / first) if first else float(last != 0)
    if not faults:
        return Report(True, f"{title}: yes ({what}, all moved)", error, size)
    lines = [f"{title}: NO ({what})", *(f"  {f}" for f in faults)]
    lines += [f"  perhaps: {cause}" for cause in causes]
    return Report(False, "\n".join(lines), error, size, tuple(causes))


def _faults(run, trained):
    if not run.connected:
        return [
            "the loss is connected to no parameter: the graph is cut (.data, .numpy(), "
            ".detach(), no_grad, an array that was written into)"
        ]
    faults = []
    for names, what in (
        (
            trained - run.arrived,
            "got no gradient (not used in forward, or cut off by .data, .numpy() or .detach())",
        ),
        (
            run.arrived - run.nonzero,
            "got a gradient of zeros only (a dead ReLU, a factor 0, or something that cancels)",
        ),
        (
            run.nonzero - run.moved,
            "got a gradient but did not move (so large that a step is "
            "below its rounding, or replaced in forward)",
        ),
    ):
        if names:
            faults.append(f"{_list(names)} {what}")
    return faults


def _list(names, most=8):
    names = sorted(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _why_not_learned(run, batch):
    """Return possible causes, the likeliest first."""
    first, last, best = run.losses[0], run.losses[-1], np.nanmin(run.losses)
    if not math.isfinite(last):
        return [
            f"the loss became {last} in step {len(run.losses)}: a logarithm of 0, a division "
            f"by 0, or an overflow"
        ]
    if len(batch) > 1 and _contradicts(batch):
        return ["two examples are equal but have different targets: no model can learn both"]
    if _same_answers(run, batch):
        return [
            "all examples get the same answer: x does not reach the result, or something is "
            "taken over the axis of the batch"
        ]
    if best > 0.99 * first:
        return [
            "the loss never fell: a gradient with the wrong sign, or a loss that does not "
            "depend on what is trained"
        ]
    if last > 2 * best:
        return ["the loss fell and rose again: unstable, without a norm, or too deep"]
    return [
        "the loss falls, but slowly: too few parameters for this many examples, a squashing "
        "function after the last layer, targets of another scale, or too few steps"
    ]


def _contradicts(batch):
    x, target = np.asarray(to_array(batch[0])), np.asarray(to_array(batch[-1]))
    if x.ndim == 0 or target.ndim == 0 or len(x) != len(target) or not len(x):
        return False
    _, of = np.unique(x.reshape(len(x), -1), axis=0, return_inverse=True)
    pairs = np.column_stack([of.ravel(), target.reshape(len(target), -1)])
    return len(np.unique(pairs, axis=0)) > len(np.unique(of))


def _same_answers(run, batch):
    if run.loss is not _usual_loss:
        return False
    with no_grad():
        y = to_array(run.module(*batch[:-1]))
    size = np.abs(y).max(initial=0)
    return y.ndim > 0 and len(y) > 1 and np.abs(y - y[:1]).max(initial=0) <= 1e-5 * size
