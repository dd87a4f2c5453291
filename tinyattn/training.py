"""The training loop `fit`, which passes through the data repeatedly and lowers the loss.

    train, held_out = data.split(*data.digits(), rng=0)
    history = training.fit(model, loss, optim.Adam(model.parameters()), train, held_out, rng=0)

The loss is a function of the model and a batch, so you can define it next to the model:

    def loss(model, x, y):
        return F.cross_entropy(model(x), y)
"""

import math
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from tinyattn import check
from tinyattn.data import batches
from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor, no_grad
from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import check_range
from tinyattn.nn.module import Module, eval_mode
from tinyattn.optim import AdamW, clip_grad_norm
from tinyattn.progress import moving_line

HELD_OUT = 256  # number of held-out examples in a batch


def fit(
    model,
    loss,
    optimizer,
    train,
    valid=None,
    *,
    epochs=10,
    batch_size=32,
    metric=None,
    patience=None,
    clip=None,
    schedule=None,
    rng=None,
    label="training",
    quiet=False,
    watch=True,
):
    """Train a model for several epochs, and return the history of its losses.

    Afterwards, the model is in training mode, so call model.eval() before you use its predictions.

    Args:
        model        the first argument of the loss, usually an `nn.Module`. It needs
                     `parameters()`, and with patience `state_dict()` and `load_state_dict()`. If it
                     has `train()` and `eval()`, they switch its mode
        loss         function loss(model, *batch) that returns the mean loss of a batch as a Tensor
                     with a single number
        optimizer    an optimizer of the model's parameters, such as an `optim.Adam`
        train        tuple of arrays (x, y, ...) with the examples on the first axis, a single
                     array, or an iterable over batches (x, y, ...), such as a list or the result
                     of `data.batches`
        valid        held-out data in one of the same forms, on which the loss is measured in
                     evaluation mode after each epoch. None: no held-out data
        epochs       number of passes over the training data, at least 1
        batch_size   number of examples in a batch, if `train` contains arrays
        metric       function metric(model, *batch) that returns a number, the mean over the batch,
                     such as training.accuracy. It is measured on `valid` in evaluation mode after
                     each epoch. None: no metric
        patience     number of epochs without a lower held-out loss after which training stops.
                     At the end, the weights of the best epoch are restored. None: train for all
                     epochs, and keep the last weights
        clip         largest norm of all gradients together. Larger gradients are scaled down to
                     this norm. None: they are not scaled
        schedule     learning-rate schedule, whose `step()` is called after each step of the
                     optimizer, or None
        rng          seed or numpy.random.Generator for the order of the examples if `train`
                     contains arrays, or None for the default generator, which `ta.seed` sets
        label        text at the beginning of the printed line
        quiet        True: print nothing
        watch        True: warn about mistakes that do not raise an error, as `check.watch` does

    Returns:
        a `History`

    Raises:
        FloatingPointError: the loss, or the held-out loss, is not finite
        ValueError: an argument is outside its range, there are no batches, or arrays have different
            numbers of examples
        ValueError: `patience` or `metric` is given without `valid`, the optimizer has none of the
            model's parameters, or the schedule belongs to another optimizer
        TypeError: the loss is not a function of (model, *batch) that returns a Tensor with a single
            number, or another argument is of the wrong type, such as a class
        RuntimeError: the loss does not depend on any parameter
    """
    check_range("fit", 1, epochs=epochs, patience=patience, optional=("patience",), whole=True)
    check_range("fit", above=0, clip=clip, optional=("clip",))
    _check_model("fit", model)
    _check_kinds(optimizer, schedule, metric)
    _check_pair(train, valid)
    _belongs(model, optimizer, schedule)
    if valid is None and (patience is not None or metric is not None):
        raise ValueError(
            "fit: patience and metric need held-out data, but valid is None. Pass valid=(x, y)"
        )
    train = _batches("fit: train", train, batch_size=batch_size, rng=rng)
    if valid is not None:
        valid = _batches("fit: valid", valid, batch_size=HELD_OUT, shuffle=False)
    _check_loss_and_optimizer(loss, optimizer)
    history, best = History(metric_name=_name(metric)), _Best()
    watching = check.watch(model, optimizer) if watch else nullcontext()
    with moving_line(quiet, final=lambda: f"{label}: {history.summary(epochs)}") as show, watching:
        for epoch in range(1, epochs + 1):
            _mode(model, "train")
            done = _Mean()
            for i, batch in enumerate(train):
                value = _step("fit", model, loss, optimizer, batch, clip, history)
                if schedule is not None:
                    schedule.step()
                done.add(value, _length(batch))
                history.steps.append(value)
                show(f"{label}: epoch {epoch} of {epochs}, batch {i + 1}, loss {value:.4g}")
            history.losses.append(done.mean(f"fit: train gave no batch in epoch {epoch}"))
            empty = f"fit: valid gave no batch after epoch {epoch}"
            if valid is not None:
                history.valid.append(_measure(model, loss, valid, empty))
                _finite(history.valid[-1], epoch)
            if metric is not None:
                history.metric.append(_measure(model, metric, valid, empty))
            if patience is not None and best.waited(model, history.valid) >= patience:
                history.stopped_early = epoch < epochs
                break
        history.best = best.restore(model)
    return history


def fit_steps(model, loss, steps, *, lr=3e-3, warmup=0, weight_decay=0.0, clip=1.0):
    """Train for a number of steps on batches that the loss creates, and return all losses.

    Use this function for data that is generated during training, without epochs:

        rng = np.random.default_rng(0)
        def loss(model):
            x, y = batch(32, rng)
            return F.cross_entropy(model(x), y)
        losses = training.fit_steps(model, loss, 1000)

    The optimizer is AdamW. Its learning rate at step t = 0, 1, 2, … grows linearly at the
    beginning, and falls along half a cosine towards 0:

        η = lr · min(1, (t + 1) / (warmup + 1)) · (1 + cos(π t / steps)) / 2

    Mistakes that do not raise an error give warnings, as with `check.watch`. Afterwards, the model
    is in training mode.

    Args:
        model          the module that is trained
        loss           function loss(model) that returns a Tensor with a single number
        steps          number of steps, at least 1
        lr             learning rate before it is multiplied by the two factors
        warmup         number of steps in which the learning rate grows
        weight_decay   weight decay λ of AdamW
        clip           largest norm of all gradients together. Larger gradients are scaled down to
                       this norm. None: they are not scaled

    Returns:
        a list of floats, the loss of each step before the weights change in this step

    Raises:
        TypeError: the loss is not a function of the model that returns a Tensor with a single
            number, or another argument is of the wrong type
        FloatingPointError: the loss is not finite
        ValueError: an argument is outside its range, or the model has no parameters
        RuntimeError: the loss does not depend on any parameter
    """
    check_range("fit_steps", 1, steps=steps, whole=True)
    check_range("fit_steps", 0, below=math.inf, lr=lr, warmup=warmup)
    check_range("fit_steps", above=0, clip=clip, optional=("clip",))
    _check_model("fit_steps", model)
    place = getattr(loss, "__module__", "") or ""
    if not callable(loss) or place.startswith(("tinyattn.functional", "tinyattn.nn.losses")):
        found = getattr(loss, "__name__", type(loss).__name__)
        raise TypeError(
            f"fit_steps: loss must be a function of the model alone, got {found}. Pass, for "
            "example, lambda model: F.mse_loss(model(x), y)"
        )
    _mode(model, "train")
    optimizer, history = AdamW(model.parameters(), lr=lr, weight_decay=weight_decay), History()
    with check.watch(model, optimizer):
        for step in range(steps):
            grows = min(1.0, (step + 1) / (warmup + 1))
            optimizer.lr = lr * grows * (1 + math.cos(math.pi * step / steps)) / 2
            history.steps.append(_step("fit_steps", model, loss, optimizer, (), clip, history))
    return history.steps


def _step(name, model, loss, optimizer, batch, clip, history):
    """Take one step of the optimizer on one batch, and return the loss before the step."""
    optimizer.zero_grad()
    value = loss(model, *batch)
    if not isinstance(value, Tensor) or value.size != 1:
        shape = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
        shape = "None" if value is None else shape
        advice = "Take its mean over the batch"
        if not isinstance(value, Tensor):
            advice = "Do not use .item(), .numpy() or float()"
        if isinstance(value, tuple | list | dict):
            advice = "Return only the loss, without other results"
        if value is None:
            advice = "Did you forget its `return`?"
        call = "loss(model, *batch)" if name == "fit" else "loss(model)"
        raise TypeError(
            f"{name}: {call} must return a Tensor with a single number, got {shape}. {advice}"
        )
    if not math.isfinite(value.item()):
        epoch = f" (epoch {len(history.losses) + 1})" if name == "fit" else ""
        clipping = ", or pass clip=1.0" if clip is None else ""
        raise FloatingPointError(
            f"{name}: the loss is {value.item()} in step {len(history.steps) + 1}{epoch}. Look for "
            f"a learning rate that is too large (lower it{clipping}), a logarithm of 0, a division "
            "by 0, or NaN in the data"
        )
    value.backward()
    if clip is not None:
        clip_grad_norm(model.parameters(), clip)
    optimizer.step()
    return value.item()


def _check_loss_and_optimizer(loss, optimizer):
    """Raise TypeError unless `loss` is a function of (model, x, y) and `optimizer` can step."""
    _check_function("fit", "loss", loss, "lambda model, x, y: F.cross_entropy(model(x), y)")
    if not hasattr(optimizer, "step"):
        raise TypeError(
            f"fit: expected an optimizer, got {type(optimizer).__name__}. "
            "Pass, for example, optim.Adam(model.parameters())"
        )


def _check_function(name, argument, f, example):
    """Raise TypeError unless `f` can be a function of (model, x, y), such as a loss."""
    place = getattr(f, "__module__", "") or ""
    if place.startswith("tinyattn.functional") or place == "tinyattn.nn.losses":
        own = getattr(f, "__name__", type(f).__name__)
        is_layer = isinstance(f, type) or not hasattr(f, "__name__")
        written = f"f(model(x), y) with f = nn.{own}()" if is_layer else f"F.{own}(model(x), y)"
        raise TypeError(
            f"{name}: {argument} is called as {argument}(model, x, y), but {own} takes predictions "
            f"and targets. Pass lambda model, x, y: {written}"
        )
    if not callable(f):
        raise TypeError(
            f"{name}: {argument} must be a function of (model, x, y), got {type(f).__name__}. "
            f"Pass, for example, {example}"
        )


def _check_model(name, model):
    """Raise TypeError for a class instead of a model, or for an object without parameters."""
    if isinstance(model, type):
        raise TypeError(
            f"{name}: model is the class {model.__name__}. Make an object of it first, as in "
            "nn.Linear(3, 2)"
        )
    if not hasattr(model, "parameters"):
        raise TypeError(
            f"{name}: model must have parameters(), like an nn.Module, got {type(model).__name__}"
        )


def _check_kinds(optimizer, schedule, metric):
    """Raise TypeError for a class instead of an object of it, or for a wrong schedule or metric."""
    for name, value, example in (
        ("optimizer", optimizer, "optim.Adam(model.parameters())"),
        ("schedule", schedule, "optim.CosineLR(optimizer, T_max)"),
    ):
        if isinstance(value, type):
            raise TypeError(
                f"fit: {name} is the class {value.__name__}. Make an object of it first, as in "
                f"{example}"
            )
    if schedule is not None and not hasattr(schedule, "step"):
        raise TypeError(
            f"fit: expected a schedule, got {type(schedule).__name__}. Pass, for example, "
            "optim.LambdaLR(optimizer, factor) for a function factor(step)"
        )
    if metric is not None:
        _check_function("fit", "metric", metric, "training.accuracy")


def _check_pair(train, valid):
    """Raise TypeError for fit(..., x, y) instead of fit(..., (x, y))."""
    arrays = [isinstance(a, np.ndarray | Tensor) for a in (train, valid)]
    if all(arrays) and train.shape[:1] == valid.shape[:1] and train.shape != valid.shape:
        raise TypeError(
            f"fit: train has shape {train.shape} and valid has shape {valid.shape}, like inputs "
            "and labels. Pass inputs and labels together, train=(x, y)"
        )


def _belongs(model, optimizer, schedule):
    """Raise ValueError if the optimizer is not the model's, or the schedule not the optimizer's."""
    groups = getattr(optimizer, "param_groups", [])
    held = {id(p) for group in groups for p in group["params"]}
    if held and not any([id(p) in held for p in model.parameters()]):
        raise ValueError(
            "fit: the optimizer holds none of the model's parameters, so nothing would be trained. "
            "Make it from this model: optim.Adam(model.parameters())"
        )
    if getattr(schedule, "optimizer", optimizer) is not optimizer:
        raise ValueError(
            "fit: the schedule changes the learning rate of another optimizer. Make it from the "
            "optimizer that you pass: optim.CosineLR(optimizer, ...)"
        )


def _finite(value, epoch):
    """Raise FloatingPointError for a held-out loss that is not finite and so cannot be compared."""
    if not math.isfinite(value):
        raise FloatingPointError(
            f"fit: the held-out loss is {value} after epoch {epoch}, although the training loss is "
            "finite. Look for NaN in the held-out data (np.isnan(x).any()), a logarithm of 0, or a "
            "layer that behaves differently in evaluation, such as a batch norm"
        )


class _Best:
    """The weights of the epoch with the lowest held-out loss, for early stopping."""

    def __init__(self):
        self.loss, self.epoch, self.weights = math.inf, None, None

    def waited(self, model, losses):
        """Return the epochs since the lowest of the held-out losses, and keep the best weights."""
        if losses[-1] < self.loss:
            self.loss, self.epoch = losses[-1], len(losses)
            self.weights = {name: np.array(to_array(w)) for name, w in model.state_dict().items()}
        return len(losses) - (self.epoch or 0)

    def restore(self, model):
        """Restore the weights of the best epoch, and return its number."""
        if self.weights is not None:
            model.load_state_dict(self.weights)
        return self.epoch


@dataclass
class History:
    """The losses of a training run, the result of `fit`.

    Attributes:
        losses          list of the mean training loss of each epoch, measured during the epoch,
                        while the weights change
        valid           list of the held-out loss after each epoch, empty without held-out data
        metric          list of the held-out metric after each epoch, empty without a metric
        steps           list of the loss of every step
        best            epoch whose weights were restored, counted from 1, or None without patience
        stopped_early   True if the training ended before the last requested epoch because of
                        patience
        metric_name     name of the metric, for the text of `summary`
    """

    losses: list = field(default_factory=list)
    valid: list = field(default_factory=list)
    metric: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    best: int | None = None
    stopped_early: bool = False
    metric_name: str = "metric"

    def summary(self, epochs=None):
        """Return one line with the number of epochs, and the last losses and metric.

        If the weights of the best epoch were restored, the losses and the metric are those of this
        epoch.

        Args:
            epochs   number of epochs that were requested, or None to omit it
        """
        n = len(self.losses)
        text = str(n) if epochs is None else f"{n} of {epochs}"
        text += " epoch" if (n if epochs is None else epochs) == 1 else " epochs"
        if self.best is not None:
            stopped = "stopped early, " if self.stopped_early else ""
            text += f" ({stopped}back to epoch {self.best})"
        at = (self.best or 0) - 1  # index of the best epoch, or of the last
        for name, values in (("loss", self.losses), ("held-out loss", self.valid)):
            text += f", {name} {values[at]:.4g}" if values else ""
        return text + (f", {self.metric_name} {self.metric[at]:.4f}" if self.metric else "")

    def plot(self, **options):
        """Plot the training loss, and the held-out loss if there is one, over the epochs.

        Args:
            options   keyword arguments of `plot.loss_curve`

        Returns:
            the result of `plot.loss_curve`

        Raises:
            ValueError: the history is empty, or `plot.loss_curve` refuses the value of an option
            TypeError: `plot.loss_curve` does not have an argument of this name
        """
        from tinyattn import plot

        return plot.loss_curve(self, **options)

    def __repr__(self):
        return f"History({self.summary()})"


# ---------------------------------------------------------------- measuring


def evaluate(model, f, held_out, batch_size=HELD_OUT):
    """Return the mean of f(model, *batch) over all examples, in evaluation mode without gradients.

    Args:
        model        the model. Afterwards, all of its modules are in the same mode as before
        f            loss or metric, a function f(model, *batch) that returns the mean over the
                     batch, such as training.accuracy
        held_out     tuple of arrays (x, y, ...) with the examples on the first axis, a single
                     array, or an iterable over batches (x, y, ...)
        batch_size   number of examples in a batch, if `held_out` contains arrays

    Returns:
        a float, in which each batch counts by its number of examples

    Raises:
        ValueError: there are no batches, arrays have different numbers of examples, or batch_size
            is not a whole number >= 1
        TypeError: model is a class, `held_out` contains neither arrays nor batches, or f is not a
            function that returns a single number
    """
    if isinstance(model, type):
        _check_model("evaluate", model)
    _check_function("evaluate", "f", f, "training.accuracy")
    if isinstance(batch_size, np.ndarray | Tensor):
        raise TypeError(
            f"evaluate: batch_size must be a number, got an array of shape {batch_size.shape}. "
            "Pass inputs and labels together, held_out=(x, y)"
        )
    held_out = _batches("evaluate: held_out", held_out, batch_size=batch_size, shuffle=False)
    return _measure(model, f, held_out, "evaluate: held_out gave no batch")


def _measure(model, f, held_out, empty):
    """Return the mean of f over held-out batches. `empty` begins the message if there are none."""
    done = _Mean()
    with _evaluating(model), no_grad():
        for batch in held_out:
            done.add(_single_number(empty, f(model, *batch)), _length(batch))
    return done.mean(empty)


@contextmanager
def _evaluating(model):
    """Put a model into evaluation mode inside the block, also one that is not an nn.Module."""
    if isinstance(model, Module):
        with eval_mode(model):
            yield
        return
    was_training = getattr(model, "training", True)
    _mode(model, "eval")
    try:
        yield
    finally:
        if was_training:
            _mode(model, "train")


def _single_number(message, value):
    """Return a loss or metric as a float. An error begins like `message`, with the function."""
    array = np.asarray(to_array(value))
    if array.size != 1 or array.dtype.kind not in "fiub":
        found, advice = type(value).__name__, "Return a float"
        if array.size != 1:
            found, advice = f"{found} of shape {array.shape}", "Take its mean over the batch"
        if value is None:
            found, advice = "None", "Did you forget the `return` of your function?"
        raise TypeError(
            f"{message.partition(':')[0]}: the loss or metric of a batch must be a single number, "
            f"got {found}. {advice}"
        )
    return float(array.item())


def accuracy(model, x, y):
    """Return the fraction of examples for which the correct class has the largest score.

    You can pass this function to `fit` as `metric=`. `fit` and `evaluate` switch the model to
    evaluation mode. If you call this function yourself, call model.eval() first.

    Args:
        model   a model that returns the scores of C >= 2 classes, [B, C] or [B, T, C]
        x       inputs [B, ...]
        y       correct classes [B] or [B, T], whole numbers from 0 to C - 1

    Returns:
        a float from 0 to 1

    Raises:
        ValueError: y does not have the shape of the scores without their last axis, there is only
            one class, there are no examples, or a class in y is not a whole number from 0 to C - 1
        TypeError: y does not contain numbers, or model cannot be called
    """
    if not callable(model):
        raise TypeError(
            f"accuracy: model must be a model or function, got {type(model).__name__}. Pass the "
            "model itself instead of its scores"
        )
    scores, y = np.asarray(to_array(model(x))), np.asarray(to_array(y))
    if scores.ndim < 2 or scores.shape[-1] == 1:
        wanted = "model(x)[..., 0]" if scores.shape[-1:] == (1,) else "model(x)"
        wanted = "model(x)" if y.shape == scores.shape else wanted
        raise ValueError(
            "accuracy: model(x) must be scores [B, C] or [B, T, C] of C >= 2 classes, got shape "
            f"{scores.shape}. For yes or no, pass metric=lambda model, x, y: "
            f"np.mean(({wanted} > 0) == y)"
        )
    if scores.shape[:-1] != y.shape:
        advice = ". Write y.argmax(axis=-1) for one-hot rows" if y.shape == scores.shape else ""
        raise ValueError(
            f"accuracy: model(x) has scores of shape {scores.shape}, so y must be classes of shape "
            f"{scores.shape[:-1]}, got shape {y.shape}{advice}"
        )
    if y.size == 0:
        raise ValueError(
            f"accuracy: there are no examples, because y has shape {y.shape}. Pass at least one"
        )
    if y.dtype.kind not in "iufb":
        raise TypeError(
            f"accuracy: y must be whole numbers, got {y.dtype}. To number classes "
            "that have names, write names, y = np.unique(y, return_inverse=True) once for all data"
        )
    wrong = y[(y < 0) | (y >= scores.shape[-1]) | (y != np.floor(y))]
    if wrong.size:
        raise ValueError(
            f"accuracy: y must be whole numbers from 0 to {scores.shape[-1] - 1}, because model(x) "
            f"has {scores.shape[-1]} scores for each example, got {wrong[0]}"
        )
    return float(np.mean(scores.argmax(axis=-1) == y))


class _Mean:
    """A mean over all examples, computed from the means over batches."""

    def __init__(self):
        self.total, self.n = 0.0, 0

    def add(self, value, n):
        self.total, self.n = self.total + value * n, self.n + n

    def mean(self, problem):
        if self.n == 0:
            raise ValueError(
                f"{problem}. It is empty, or a generator that is used up after one pass. Pass "
                "arrays, a list of batches, or data.batches(...)"
            )
        return self.total / self.n


def _batches(name, examples, **options):
    """Turn arrays into batches. An iterable over batches is returned unchanged."""
    if isinstance(examples, np.ndarray | Tensor):
        examples = (examples,)
    if isinstance(examples, tuple) and all([hasattr(a, "shape") for a in examples]):
        return batches(*examples, **options)
    if not hasattr(examples, "__iter__") or isinstance(examples, str | dict):
        raise TypeError(
            f"{name} must be arrays (x, y, ...) or batches, got {type(examples).__name__}. Pass a "
            "tuple of arrays, or data.batches(x, y)"
        )
    # the rows of an array would become the arguments of the loss
    if isinstance(examples, tuple | list):
        if isinstance(examples, tuple) and any(isinstance(b, list) for b in examples):
            raise TypeError(
                f"{name} must be a tuple of arrays (x, y, ...), got a tuple with a list. Write "
                "(np.asarray(x), ...)"
            )
        if not all(isinstance(b, tuple | list) for b in examples):
            kinds = " and ".join(sorted({type(b).__name__ for b in examples}))
            advice = "Write (np.asarray(x), ...)"
            if isinstance(examples, list) and all(hasattr(b, "shape") for b in examples):
                advice = "Write (x, y) instead of [x, y]"
            elif any([b is None for b in examples]):
                advice = "Leave None out"
            raise TypeError(
                f"{name} must be a tuple of arrays (x, y, ...), or an iterable over batches (x, y, "
                f"...), got a {type(examples).__name__} of {kinds}. {advice}"
            )
    return examples


def _length(batch):
    shape = np.shape(to_array(batch[0]))
    return shape[0] if shape else 1


def _mode(model, mode):
    getattr(model, mode, lambda: None)()  # a model without train() and eval() needs no switch


def _name(metric):
    name = getattr(metric, "__name__", "metric")
    return "metric" if name == "<lambda>" else name


torch_hints.hint_functions(globals(), torch_hints.public_names(sys.modules[__name__]))


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
