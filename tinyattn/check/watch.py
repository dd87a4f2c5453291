"""`watch`, which finds mistakes in a training loop that raise no error, within a few steps.

Training with such a mistake often runs to its end. The loss falls a little, and nothing shows that,
for example, each prediction was compared with every label. `watch` checks the first steps, the
graph of the loss and the actions of the optimizer, and warns once about each mistake, with its
line.
"""

import math
import warnings
from contextlib import contextmanager

import numpy as np

from tinyattn.check.direction import direction
from tinyattn.check.flow import FlowChecks, nan_in_data
from tinyattn.check.operations import COMPARED, OperationChecks, is_parameter, outside
from tinyattn.check.recording import observe, stop_observing
from tinyattn.check.report import wrapped
from tinyattn.engine import autograd
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import to_array
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS
from tinyattn.engine.read_only import comparing

STEPS = 5  # first steps of the optimizer that are checked in full; later ones get few checks
LOSSES = 100  # a loss that grows over this many steps means that the learning rate is too high
GROWN = 20  # a loss has grown if it is this many times as large as the first one ...
LASTING = 5  # ... in this many steps in a row, because single batches of a good training reach it
WHOLE_NUMBERS = (np.floor, np.ceil, np.trunc, np.rint, np.fix, np.round, np.around)
STEPPED = (*WHOLE_NUMBERS, np.heaviside, np.less, np.less_equal, np.greater, np.greater_equal)
STEPPED += (np.floor_divide, np.argmax, np.argmin, np.astype)
SMOOTH = "Use a function with a slope instead, such as F.sigmoid for a step or F.softmax for argmax"


class _InShortLines:
    """A warning that Python prints in lines that are short enough for the page of a notebook."""

    def __format__(self, spec):
        return "\n" + wrapped(str(self))


class SlipWarning(_InShortLines, UserWarning):
    """A warning of `watch` about a line of a training loop that probably contains a mistake."""


# NumPy's kind of warning, under its name
_NumberWarning = type("RuntimeWarning", (_InShortLines, RuntimeWarning), {})


@contextmanager
def watch(model, optimizer):
    """Warn about mistakes in a training loop that would run without an error.

        with check.watch(model, optimizer):
            for x, y in data.batches(train, 32):
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()

    The first 5 steps are checked completely, and the loss is checked during the first 100
    steps. Later steps cost practically nothing. Each mistake causes one `SlipWarning` that
    names the line and explains how to fix it. Examples are labels [N] with predictions [N, 1],
    a softmax, sigmoid or ReLU before the cross-entropy, a negated loss, inputs of 1e6, a mask
    that hides the wrong keys, a missing `zero_grad()`, an optimizer of another model,
    parameters that no gradient reaches, a learning rate that is too high, gradients clipped
    after the step, a schedule that ends before the training, and NaN in the data. NumPy's own
    warning about overflow, division by zero or NaN appears once instead of at every step. Only the
    current thread is checked.

    A loop that uses the same batch in each step is not found, because training with all data looks
    the same. Inputs that were shuffled without their labels are not found either, because noisy
    labels look the same. To test this, shuffle the labels on purpose: if the loss falls as much as
    before, the labels did not belong to the inputs.

    Args:
        model      the module that is trained
        optimizer  its optimizer

    Raises:
        TypeError: `model` has no parameters(), or `optimizer` is not an optimizer
    """
    for name, value, needed, kind in (
        ("model", model, "parameters", "a module"),
        ("optimizer", optimizer, "param_groups", "an optimizer such as optim.Adam(...)"),
    ):
        if not hasattr(value, needed):
            raise TypeError(
                f"check.watch: {name} must be {kind}, got {type(value).__name__}. Write "
                "check.watch(model, optimizer)"
            )
    watcher = _Watcher(model, optimizer)
    watcher.start()
    try:
        with np.errstate(
            **dict.fromkeys(("divide", "over", "invalid"), "call"), call=watcher.noise
        ):
            yield
    except Exception as error:
        watcher.explain(error)
        raise
    else:
        watcher.finish()
    finally:
        watcher.stop()


class _Watcher:
    """The state of one block: its observations so far, and the warnings already given."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.told = set()
        self.steps = self.backwards = 0
        self.losses = []
        self.looking = False
        self.operations = OperationChecks(model, self.say)
        self.flow = FlowChecks(self.say, self.operations.lines)
        self.ended = 0  # steps in a row with the learning rate 0, after other steps
        self.turned = None  # (text, line) if training makes an error larger
        self.old = {}  # parameter -> the gradient that the last step used
        # parameters that the last backward pass reached but that belong to no module
        self.unknown = set()
        self.users = {}  # identity of a parameter -> the line that used it in this step
        self.training = True  # the mode of the model in the last step
        self.rates = []  # the largest learning rate of each step
        self.reached, self.moving = set(), set()  # names with a gradient, with one that is not 0

    # ---- starting and stopping to observe

    def start(self):
        """Observe the optimizer, the backward pass and the operations."""
        optimizer, self.caller = self.optimizer, outside()
        self.step, self.zero_grad = optimizer.step, optimizer.zero_grad
        optimizer.step, optimizer.zero_grad = self._step, self._zero_grad
        self.backward_pass = autograd.backward_pass
        self.mine = lambda *a, **k: self._backward_pass(*a, **k)
        autograd.backward_pass = self.mine
        self.looking = True
        observe(self.operations.look)
        observe(self.flow.look)
        self.flow.start()
        self.comparing = comparing()  # finds rules of users that write into their arguments
        self.comparing.__enter__()
        self.table = {f: HANDLED_FUNCTIONS[f] for f in (*STEPPED, *COMPARED)}
        self.stepped = {f: self.operations.noted(f, run) for f, run in self.table.items()}
        HANDLED_FUNCTIONS.update(self.stepped)
        self._check_parameters()
        self.operations.look_at_forward()

    def stop(self):
        """Restore the state before `start`."""
        self._stop_looking()
        self._restore(COMPARED)
        for name in ("step", "zero_grad"):
            vars(self.optimizer).pop(name, None)
        if autograd.backward_pass is self.mine:  # otherwise, a block inside this one is still open
            autograd.backward_pass = self.backward_pass

    def _stop_looking(self):
        if self.looking:
            self.looking = False
            stop_observing(self.operations.look)
            stop_observing(self.flow.look)
            self.flow.stop()
            self.comparing.__exit__(None, None, None)
            self._restore(STEPPED)  # COMPARED stay, because an accuracy is often computed later
            self.operations.clear()
            self.operations.noting = False

    def _restore(self, functions):
        for f in functions:
            if HANDLED_FUNCTIONS[f] is self.stepped[f]:
                HANDLED_FUNCTIONS[f] = self.table[f]

    def _step(self, *args, **options):
        self._check_mode()
        if self.steps >= STEPS:  # most steps need only this
            self.old = {}
            found = self.step(*args, **options)
            self.steps += 1
            self._check_end_of_schedule()
            return found
        self._before_step()
        self.old = {id(p): (p, p.grad) for p in self._optimized() if p.grad is not None}
        last = self.steps == STEPS - 1
        before = [(p, p.data.copy()) for p, _ in self.old.values()] if last else []
        found = self.step(*args, **options)
        self.steps += 1
        self._check_end_of_schedule()
        self.operations.clear()
        self.flow.clear()
        if last:
            self._check_motion(before)
            self._check_gradients()
            self._check_rates()
            self._stop_looking()
        return found

    def _zero_grad(self, *args, **options):
        if self.steps <= STEPS:
            self._check_clipped()
        self.old = {}
        return self.zero_grad(*args, **options)

    def _backward_pass(self, root, *args, **options):
        self.backwards += 1
        if self.steps < STEPS:
            self._before_backward(root)
        if self.steps < LOSSES and root.size == 1 and not math.isfinite(root.item()):
            self._check_data(root)
        grads = self.backward_pass(root, *args, **options)
        if self.steps < STEPS:
            self._check_leaves(grads)
        if self.steps < LOSSES and root.size == 1:
            self._check_loss(root.item())
        return grads

    # ---- warnings

    def say(self, topic, text, line=None):
        """Warn once about a mistake at a line (file, number), or at the user's current line."""
        if topic in self.told:
            return
        self.told.add(topic)
        file, number = line or outside() or self.caller or ("<unknown>", 1)
        warnings.warn_explicit(f"check.watch: {text}", SlipWarning, file, number, registry={})

    def noise(self, kind, flag):
        """Report NumPy's first overflow, division by zero or NaN, because others follow from it."""
        if "noise" in self.told or outside() is None:
            return
        self.told.add("noise")
        file, number = outside()
        warnings.warn_explicit(
            f"{kind} encountered (NumPy's later warnings in this block are left out). The usual "
            f"causes are a learning rate that is too high, a logarithm or a division of 0, or nan "
            f"in the data. Inside `with ta.detect_anomaly():`, the operation that made the first "
            f"nan is named",
            _NumberWarning,
            file,
            number,
            registry={},
        )

    def explain(self, error):
        """Add a note to an error of the block if an operation with slope 0 may be its cause."""
        if self.operations.cuts and isinstance(error, RuntimeError) and "gradient" in str(error):
            name, (_, number), _ = self.operations.cuts[-1]
            error.add_note(
                f"check.watch: {name} in line {number} has the slope 0 everywhere. {SMOOTH}"
            )

    def finish(self):
        """Give the warnings that are only possible at the end."""
        if self.backwards and not self.steps:
            self.say(
                "never stepped",
                "gradients were computed, but step() of this optimizer was never called, so no "
                "parameter moved. Call optimizer.step() after loss.backward(), and make the "
                "optimizer once, before the loop",
                self.caller,
            )
        elif self.steps and not self.backwards and "no gradient at all" not in self.told:
            self.say(
                "never backward",
                "the loss was never differentiated. Call loss.backward() before optimizer.step()",
                self.caller,
            )

    # ---- parameters and the optimizer

    def _optimized(self):
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _check_parameters(self):
        """Check that the optimizer holds the parameters of the model."""
        wanted = {id(p): name for name, p in _named_parameters(self.model) if p.requires_grad}
        held = {id(p) for p in self._optimized()}
        if not held & set(wanted):
            self.say(
                "other model",
                "the optimizer holds no parameter of this model, so training does not change the "
                "model. Make the optimizer from model.parameters() of the model that is trained, "
                "after the last change of the model",
            )
        elif held - set(wanted) and set(wanted) - held:
            frozen = {id(p) for p in self.model.parameters()}
            if held - frozen:
                names = [wanted[i] for i in set(wanted) - held]
                self.say(
                    "exchanged",
                    f"{_names(names)} of the model {'were' if names[1:] else 'was'} made after the "
                    f"optimizer, which still holds the old ones. Make the optimizer after the last "
                    f"change of the model",
                )
        for module in self.model.modules() if hasattr(self.model, "modules") else ():
            kind = type(module)
            if kind.__name__ in ("Sequential", "ModuleList"):
                self._check_repeated(module)
            for name in (n for c in kind.__mro__ for n in vars(c)):
                if isinstance(vars(kind).get(name), Tensor) and vars(kind)[name].requires_grad:
                    self.say(
                        f"class attribute {kind.__name__}.{name}",
                        f"{kind.__name__}.{name} is an attribute of the class, so it is not among "
                        f"model.parameters() and is not trained. Set self.{name} in __init__",
                    )

    def _check_repeated(self, modules):
        """Find one layer several times in a list, as [layer] * 4 makes it."""
        parts = list(modules)
        for i, part in enumerate(parts):
            times = sum(other is part for other in parts)
            if times > 1 and next(iter(part.parameters()), None) is not None:
                self.say(
                    "one layer several times",
                    f"entry {i} of {type(modules).__name__} is in it {times} times, so these "
                    f"layers have one and the same weight. [layer] * {times} does not copy: write "
                    f"[make_layer() for _ in range({times})]",
                )

    def _before_step(self):
        self.rates.append(max([group["lr"] for group in self.optimizer.param_groups], default=0))
        self._check_parameters()
        if "other model" not in self.told and all(p.grad is None for p in self._optimized()):
            cause = "call loss.backward() first"
            if self.backwards:
                cause = (
                    "the loss does not depend on these parameters, or zero_grad() was called "
                    "between backward() and step()"
                )
            self.say(
                "no gradient at all",
                f"step() changes nothing, because no parameter has a gradient: {cause}",
            )
        for name, p in _named_parameters(self.model):
            if p.grad is not None:
                self.reached.add(name)
                if np.any(to_array(p.grad)):
                    self.moving.add(name)
                    self._check_symmetry(name, p)

    def _check_mode(self):
        """Find a step in evaluation mode, also one that follows a first evaluation."""
        training = getattr(self.model, "training", True)
        if self.training and not training and hasattr(self.model, "modules"):
            names = {type(m).__name__ for m in self.model.modules() if _differs_in_training(m)}
            if names:
                when = f"from step {self.steps + 1} on" if self.steps else "from the first step on"
                self.say(
                    "eval",
                    f"the model is trained in evaluation mode {when}, which changes what "
                    f"{' and '.join(sorted(names))} compute{'' if len(names) > 1 else 's'}. Call "
                    f"model.train() before the loop, and after each evaluation",
                )
        self.training = training

    def _check_symmetry(self, name, p):
        w, g = p.data, to_array(p.grad)
        if (
            w.ndim == 2
            and min(w.shape) > 1
            and not np.ptp(w, axis=0).any()
            and not np.ptp(g, axis=0).any()
        ):
            self.say(
                f"equal rows {name}",
                f"all rows of {name} {list(w.shape)} are equal and get the same gradient, so its "
                f"units stay equal for ever. Initialize it with random numbers",
            )

    def _check_gradients(self):
        """Check, after some steps, which parameters no gradient has reached."""
        held = {id(p) for p in self._optimized()}
        names = [n for n, p in _named_parameters(self.model) if p.requires_grad and id(p) in held]
        never = [n for n in names if n not in self.reached]
        still = [n for n in names if n in self.reached and n not in self.moving]
        if len(still) < len(names):
            self._check_still(still)
        parameters = dict(_named_parameters(self.model))
        without = {id(p) for n, p in parameters.items() if n not in self.reached}
        unmoved = {id(p) for n, p in parameters.items() if n not in self.moving}
        if never and self.reached:
            cut = self.operations.cut_before(without)
            line = self.flow.cut_before({id(parameters[n]) for n in never})
            if cut is not None:
                self.say(
                    "unreached",
                    f"no gradient reached {_names(never)} in {STEPS} steps, because {cut[0]} in "
                    f"this line has the slope 0 everywhere. {SMOOTH}",
                    cut[1],
                )
            elif line is not None:
                self.say(
                    "unreached",
                    f"no gradient reached {_names(never)} in {STEPS} steps, because .numpy() in "
                    f"this line cuts the graph between them and the loss. Leave it out, or "
                    f"write .detach() if they are meant to stay fixed",
                    line,
                )
            elif len(never) == len(names):
                self.say(
                    "unreached",
                    f"no gradient reached {_names(never)} in {STEPS} steps. Something between them "
                    f"and the loss cuts the graph (.data, .numpy(), .detach(), a comparison, "
                    f"rounding), or forward does not use them",
                    self.caller,
                )
        elif still:
            cut = self.operations.cut_before(unmoved)
            if cut is not None:
                self.say(
                    "all zero",
                    f"the gradient of {_names(still)} was exactly 0 in {STEPS} steps, because "
                    f"{cut[0]} in this line has the slope 0 everywhere. {SMOOTH}",
                    cut[1],
                )
            elif len(still) == len(names) and "one class" not in self.told:
                self.say(
                    "all zero",
                    f"the gradient of {_names(still)} was exactly 0 in {STEPS} steps, so they do "
                    f"not move. A step function, a ReLU whose inputs are all negative, a factor 0, "
                    f"or a loss that does not depend on them may be the cause",
                    self.caller,
                )

    def _check_rates(self):
        if not any(self.rates):
            self.say(
                "rate 0",
                f"the learning rate was 0 in {STEPS} steps, so no parameter moved. Is lr=0, or "
                f"does a schedule end before the training?",
                self.caller,
            )

    def _check_end_of_schedule(self):
        """Find a schedule that has ended although the training continues."""
        rate = max([group["lr"] for group in self.optimizer.param_groups], default=0)
        again = rate and self.ended
        if not rate and any(self.rates):
            self.ended += 1
        if again or self.ended == LASTING:
            first = self.steps - self.ended + (not again)
            self.say(
                "schedule ended",
                f"the learning rate fell to 0 in step {first}"
                f"{' and rises again' if again else ', and the training goes on'}. Give the "
                f"schedule the number of its steps: epochs times batches, if its step() is called "
                f"after each batch",
            )
        if rate:
            self.ended = 0

    def _check_motion(self, before):
        """Find a learning rate that is too small for the numbers of the parameters."""
        pulled = [(p, old, to_array(p.grad) != 0) for p, old in before]
        moved = sum(np.count_nonzero((p.data != old) & g) for p, old, g in pulled)
        if self.rates[-1] and moved < 0.1 * sum(np.count_nonzero(g) for _, _, g in pulled):
            self.say(
                "rate too small",
                f"step() changed hardly any parameter, although there are gradients: with the "
                f"learning rate {self.rates[-1]:g}, the changes are rounded away. Try 0.001",
            )

    def _check_clipped(self):
        """Find gradients that were clipped after the step that used them."""
        for p, g in self.old.values():
            if p.grad is not None and p.grad is not g:
                self.say(
                    "clipped too late",
                    "the gradients were changed between step() and zero_grad(), which has no "
                    "effect. Call clip_grad_norm after backward() and before step()",
                )
                return

    def _check_still(self, still):
        """Find weights that have equal initial values and always get equal gradients."""
        for name, p in _named_parameters(self.model):
            w = p.data
            if name in still and w.ndim == 2 and min(w.shape) > 1 and not np.ptp(w, axis=0).any():
                self.say(
                    f"equal rows {name.rpartition('.')[0]}",
                    f"all rows of {name} {list(w.shape)} are equal and their gradient was 0 in "
                    f"{STEPS} steps, so its units stay equal for ever. Initialize it with random "
                    f"numbers",
                    self.caller,
                )
                return

    # ---- the loss and the backward pass

    def _before_backward(self, root):
        now = {id(p): p.grad for p in self._optimized()}
        if any(now.get(i) is not None and now[i] is g for i, (_, g) in self.old.items()):
            self.say(
                "zero_grad",
                "the gradients of the previous step are still there, and this backward pass adds "
                "to them. Call optimizer.zero_grad() before each backward pass",
            )
            self.old = {}
        for slip in self.operations.compared_in(root):
            self.say(*slip)
        self.flow.before_backward(root)
        self.users = self.operations.users_in(root)
        sign, name, age = direction(root, self.operations.errors)
        self.turned = None
        if sign < 0:
            self.turned = (
                f"training makes the loss smaller, but this loss is smaller where {name} is "
                f"larger, so the model learns to be wrong. Is a minus sign missing, or one too "
                f"many?",
                self.operations.lines.get(age),
            )

    def _check_leaves(self, grads):
        """Find a negated loss, and parameters that are created again in each step."""
        known = {id(p) for p in self.model.parameters()} | {id(p) for p in self._optimized()}
        strange = {id(p): p for p in grads if is_parameter(p) and id(p) not in known}
        held = {id(p) for p in self._optimized()}
        # an adversary makes the error of another network larger on purpose
        if self.turned and not any(is_parameter(p) and id(p) not in held for p in grads):
            self.say("negated loss", *self.turned)
        if strange and self.unknown and not self.unknown & set(strange):
            shapes = ", ".join(str(list(p.shape)) for p in list(strange.values())[:3])
            self.say(
                "layer in forward",
                f"parameters of shape {shapes} are new in each step, so they are never trained: a "
                f"layer is made inside forward or inside the loop. Make it once, in __init__",
                next((self.users[i] for i in strange if i in self.users), None),
            )
        # keep them alive, because a new object might get the identity of an old one
        self.kept = list(strange.values())
        self.unknown = set(strange)

    def _check_data(self, root):
        """Find NaN in the data, before the parameters are NaN, too."""
        if any(np.isnan(p.data).any() for p in self._optimized()):
            return
        name = nan_in_data(root)
        if name is not None:
            self.say(
                "nan in the data",
                f"the data contain nan, which {name} passes on, so the loss is {root.item():.4g} "
                f"and every parameter becomes nan. Look for it with np.isnan(x).any() before the "
                f"training",
            )
            self.told.add("learning rate")

    def _check_loss(self, value):
        first = self.losses[0] if self.losses else value
        self.losses.append(value)
        rate = getattr(self.optimizer, "lr", None)
        told = f"learning rate {rate:g}" if isinstance(rate, int | float) else "learning rate"
        last = self.losses[-LASTING:]
        grown = len(last) == LASTING and min(last) > GROWN * abs(first) + 1e-6
        if self.steps and math.isfinite(first) and (grown or not math.isfinite(value)):
            steps = f"{self.steps} steps" if self.steps > 1 else "one step"
            self.say(
                "learning rate",
                f"the loss went from {first:.4g} to {value:.4g} in {steps}: the {told} is probably "
                f"too high. Try a tenth of it",
            )


# ---------------------------------------------------------------- what is recognized


def _named_parameters(model):
    """Return (name, parameter) of a module, or of any object that has parameters()."""
    if hasattr(model, "named_parameters"):
        return list(model.named_parameters())
    return [(f"parameter {i}", p) for i, p in enumerate(model.parameters())]


def _differs_in_training(module):
    if type(module).__name__.startswith("BatchNorm"):
        return True
    return type(module).__name__.startswith("Dropout") and getattr(module, "p", 0) > 0


def _names(names, most=4):
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(sorted(names)[:most]) + more
