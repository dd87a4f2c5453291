"""Loss functions, which measure how far predictions are from their targets.

In the formulas, x is `input` and t is `target`. `reduction` is "mean" or "sum", which return a
single number, or "none", which returns all losses. All functions raise ValueError if the shapes of
input and target do not match, or if reduction has any other value.
"""

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.boxes import one_box
from tinyattn.engine.convert import as_float, as_tensor, to_array
from tinyattn.engine.ranges import check_range
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.functional.activations import log_softmax
from tinyattn.functional.linear import check_indices, first_index, ids_of
from tinyattn.ops import losses as ops
from tinyattn.ops.activations import softplus
from tinyattn.ops.index import take_along_axis


def _reduce(name, losses, reduction, count=None, also=""):
    if reduction == "none":
        return losses
    if reduction == "sum":
        return np.sum(losses)
    if reduction == "mean":
        return np.mean(losses) if count is None else np.sum(losses) / count
    raise ValueError(f'{name}: reduction must be "mean", "sum"{also} or "none", got {reduction!r}')


def _same_shape(name, input, target):
    input, target = as_tensor(input), as_tensor(target)
    if input.shape != target.shape:
        how = "Give both the same shape (broadcasting one of them is nearly always a mistake here)"
        if [n for n in input.shape if n != 1] == [n for n in target.shape if n != 1]:
            how = f"Write np.reshape(target, {input.shape})"
        raise ValueError(
            f"{name}: input has shape {input.shape}, but target has {target.shape}. {how}"
        )
    return input, target


@with_torch_hints
@one_box
def mse_loss(input, target, reduction="mean"):
    """Return the squared error, (x - t)² for each element, or its mean or sum.

    Args:
        input       x [...]
        target      t, in the shape of x
        reduction   "mean" or "sum" of the losses, or "none" for the loss of each element

    Raises:
        ValueError: the shapes differ, or reduction is unknown
    """
    input, target = _same_shape("mse_loss", input, target)
    difference = np.subtract(input, target)
    return _reduce("mse_loss", difference * difference, reduction)


@with_torch_hints
@one_box
def l1_loss(input, target, reduction="mean"):
    """Return the absolute error, |x - t| for each element, or its mean or sum.

    Args:
        input       x [...]
        target      t, in the shape of x
        reduction   "mean" or "sum" of the losses, or "none" for the loss of each element

    Raises:
        ValueError: the shapes differ, or reduction is unknown
    """
    input, target = _same_shape("l1_loss", input, target)
    return _reduce("l1_loss", np.absolute(np.subtract(input, target)), reduction)


@with_torch_hints
@one_box
def huber_loss(input, target, reduction="mean", delta=1.0):
    """Return the Huber loss, a parabola for small errors and a straight line for large ones.

    The loss of an element is (x - t)² / 2 if |x - t| ≤ δ, and δ (|x - t| - δ/2) otherwise.

    Args:
        input       x [...]
        target      t, in the shape of x
        reduction   "mean" or "sum" of the losses, or "none" for the loss of each element
        delta       δ > 0, the error at which the straight line begins

    Raises:
        ValueError: the shapes differ, delta is not positive, or reduction is unknown
        TypeError: delta is not a number
    """
    input, target = _same_shape("huber_loss", input, target)
    check_range("huber_loss", above=0, delta=delta)
    difference = np.subtract(input, target)
    distance = np.absolute(difference)
    near = np.less_equal(to_array(distance), delta)
    losses = np.where(near, 0.5 * difference * difference, delta * (distance - 0.5 * delta))
    return _reduce("huber_loss", losses, reduction)


def _log_at_least_minus_100(p):
    # log 0 is -inf. It is clipped, as in PyTorch, so that one confident mistake does not give nan.
    tiny = np.less(to_array(p), np.exp(-100.0))
    return np.where(tiny, -100.0, np.log(np.where(tiny, 1, p)))


def _check_not_negative(name, what, weight):
    """Raise for nan and for negative weights, which would make a loss unbounded below."""
    if weight is None:
        return
    w = np.asarray(to_array(weight))
    if w.dtype.kind not in "fiub":
        raise TypeError(f"{name}: {what} must consist of real numbers, got {w.dtype}")
    if not np.all(w >= 0):
        wrong = ~(w >= 0)
        got = w[wrong].flat[0]
        why = ". A negative weight would reward mistakes" if got < 0 else ""
        raise ValueError(f"{name}: expected {what} >= 0, got {got:g}{first_index(wrong)}{why}")


def _check_broadcast(name, what, weight, shape):
    """Raise ValueError unless the weight broadcasts to the shape of the losses."""
    own = np.shape(to_array(weight)) if weight is not None else ()
    if len(own) > len(shape) or any(
        n not in (1, m) for n, m in zip(own[::-1], shape[::-1], strict=False)
    ):
        rows = len(own) == 1 and len(shape) == 2 and own == shape[:1]
        how = f". For one {what} per row, pass {what}[:, None]" if rows else ""
        raise ValueError(
            f"{name}: {what} must broadcast to the shape {shape} of the input, got shape {own}{how}"
        )


def _check_unit_interval(name, target):
    """Raise for targets outside of [0, 1], whose loss has no meaning and may be negative."""
    t = to_array(target)
    if t.size and not (t.min() >= 0 and t.max() <= 1):
        wrong = ~((t >= 0) & (t <= 1))
        got = t[wrong].flat[0]
        how = ". For labels -1 and +1, pass (target + 1) / 2" if got == -1 else ""
        at = first_index(wrong)
        raise ValueError(f"{name}: expected 0 <= target <= 1, got {got:g}{at}{how}")


@with_torch_hints
@one_box
def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """Return the binary cross-entropy of probabilities p, -(t ln p + (1 - t) ln(1 - p)).

    A logarithm below -100 is replaced by -100, so the loss stays finite for p = 0 and p = 1.

    Args:
        input       p [...], between 0 and 1
        target      t, in the shape of p, between 0 and 1
        weight      factors >= 0 of the losses, broadcast to p, or None for 1. "mean" still divides
                    by the number of elements
        reduction   "mean" or "sum" of the losses, or "none" for the loss of each element

    Raises:
        ValueError: the shapes differ, a probability or target is not between 0 and 1, or only the
            target requires a gradient
        ValueError: weight is negative or does not broadcast, or reduction is unknown
        TypeError: weight does not consist of real numbers
    """
    input, target = _same_shape("binary_cross_entropy", input, target)
    _check_order("binary_cross_entropy", input, target)
    p = to_array(input)
    if np.size(p) and not (np.min(p) >= 0 and np.max(p) <= 1):
        wrong = ~((p >= 0) & (p <= 1))
        got = p[wrong].flat[0]
        how = "For scores, use binary_cross_entropy_with_logits"
        if np.isnan(got):
            how = "Look for NaN in the data, or in the weights after a training that diverged"
        raise ValueError(
            "binary_cross_entropy: input must consist of probabilities between 0 and 1, got "
            f"{got:g}{first_index(wrong)}. {how}"
        )
    _check_unit_interval("binary_cross_entropy", target)
    _check_not_negative("binary_cross_entropy", "weight", weight)
    _check_broadcast("binary_cross_entropy", "weight", weight, input.shape)
    losses = -(
        np.multiply(target, _log_at_least_minus_100(input))
        + np.subtract(1, target) * _log_at_least_minus_100(np.subtract(1, input))
    )
    losses = losses if weight is None else losses * weight
    return _reduce("binary_cross_entropy", losses, reduction)


@with_torch_hints
@one_box
def binary_cross_entropy_with_logits(input, target, weight=None, reduction="mean", pos_weight=None):
    """Return the binary cross-entropy of scores x, w t softplus(-x) + (1 - t) softplus(x).

    For w = 1, this is the binary cross-entropy of p = σ(x), computed without overflow.

    Args:
        input        scores x [...]
        target       t, in the shape of x, between 0 and 1
        weight       factors >= 0 of the losses, broadcast to x, or None for 1. "mean" still divides
                     by the number of elements
        reduction    "mean" or "sum" of the losses, or "none" for the loss of each element
        pos_weight   factor w >= 0 of the positive examples, broadcast to x, or None for 1

    Raises:
        ValueError: the shapes differ, a target is not between 0 and 1, or only the target requires
            a gradient
        ValueError: weight or pos_weight is negative or does not broadcast, or reduction is unknown
        TypeError: weight or pos_weight does not consist of real numbers
    """
    input, target = _same_shape("binary_cross_entropy_with_logits", input, target)
    _check_order("binary_cross_entropy_with_logits", input, target)
    _check_unit_interval("binary_cross_entropy_with_logits", target)
    for what, w in (("weight", weight), ("pos_weight", pos_weight)):
        _check_not_negative("binary_cross_entropy_with_logits", what, w)
        _check_broadcast("binary_cross_entropy_with_logits", what, w, input.shape)
    positive = np.multiply(target, softplus(np.negative(input)))
    if pos_weight is not None:
        positive = positive * pos_weight
    losses = positive + np.subtract(1, target) * softplus(input)
    losses = losses if weight is None else losses * weight
    return _reduce("binary_cross_entropy_with_logits", losses, reduction)


@with_torch_hints
@one_box
def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """Return the negative log-likelihood of the targets, -x[target] for log-probabilities x.

    Args:
        input          x [N, C, ...] for C classes, or [C] for a single example
        target         index of the right class of each example [N, ...], whole numbers in [0, C),
                       or a single number for x [C]
        weight         weight >= 0 of each class [C], by which the losses are multiplied, or None
                       for 1. "mean" divides by the sum of the weights of all targets
        ignore_index   targets with this value have the loss 0 and do not count in the mean, which
                       is NaN if all have it. None: all targets count
        reduction      "mean" or "sum" of the losses, or "none" for the loss of each example

    Raises:
        ValueError: input is a single number, target or weight does not have the shape above, a
            weight is negative, or reduction is unknown
        TypeError: the targets or ignore_index are not whole numbers, or weight does not consist of
            real numbers
        IndexError: a target is neither in [0, C) nor ignore_index
    """
    input = as_tensor(input)
    _check_classes("nll_loss", input, target, ignore_index)
    return _nll_loss("nll_loss", input, target, weight, ignore_index, reduction)


def _check_classes(name, input, target, ignore_index):
    """Raise for a single number as input, rows of different lengths, or a wrong ignore_index."""
    if not hasattr(target, "shape"):
        ids_of(name, target, "target")
    check_range(name, whole=True, optional=("ignore_index",), ignore_index=ignore_index)
    if input.ndim == 0:
        raise ValueError(f"{name}: input must be [N, C, ...] or [C], got a single number")


def _nll_loss(name, input, target, weight, ignore_index, reduction):
    axis = 0 if input.ndim == 1 else 1

    def picked(ids):
        return -np.squeeze(take_along_axis(input, np.expand_dims(ids, axis), axis), axis)

    return _of_classes(name, input, target, weight, ignore_index, reduction, axis, picked)


def _of_classes(name, input, target, weight, ignore_index, reduction, axis, loss_of):
    """Compute nll_loss or cross_entropy, which share their checks, weights and ignored classes.

    loss_of(ids) returns the loss of each example for the classes `ids`, without weights.
    """
    expected = input.shape[:axis] + input.shape[axis + 1 :]
    if np.shape(target) != expected:
        form = f"have shape {expected}" if expected else "be a single number"
        raise ValueError(
            f"{name}: input has shape {input.shape} with the classes on axis {axis}, so target "
            f"must {form}, got shape {np.shape(target)}{_advice_on_target(name, input, target)}"
        )
    try:
        ids = check_indices(name, target, input.shape[axis], ignore_index, "target")
    except IndexError as error:
        raise IndexError(f"{error}{_advice_on_classes(target, input.shape[axis])}") from None
    weight = _class_weights(name, weight, input.shape[axis], input.dtype)
    counted = ids != ignore_index
    if weight is None and counted.all():
        return _reduce(name, loss_of(ids), reduction, count=ids.size)
    ids = np.where(counted, ids, 0)
    w = counted.astype(input.dtype)
    if weight is not None:
        w = w * weight[ids]
    return _reduce(name, np.where(counted, loss_of(ids) * w, 0), reduction, count=w.sum())


def _advice_on_classes(target, C):
    """Return advice for frequent mistakes with classes outside of 0 to C - 1."""
    t = np.asarray(to_array(target))
    if C == 1:
        return (
            ". For yes or no, use binary_cross_entropy_with_logits(scores[:, 0], labels), or give "
            "the model two outputs"
        )
    if t.min() == 1 and t.max() == C:
        return ". If the classes are numbered from 1, subtract 1 from each target"
    return ". To ignore the targets -1, pass ignore_index=-1" if t.min() == -1 else ""


def _advice_on_target(name, input, target):
    """Return advice for frequent mistakes in the shapes of scores and classes."""
    shape = np.shape(target)
    if input.ndim > 2 and shape == input.shape[:-1]:
        C = input.shape[-1]
        return f". If the classes are last, pass input.reshape(-1, {C}) and target.ravel()"
    if shape == input.shape and input.ndim > 1:
        soft = ", and for probabilities target.astype(np.float32)" * (name == "cross_entropy")
        return f". For one-hot labels pass target.argmax(1){soft}"
    if input.dtype.kind in "iub" and len(shape) == input.ndim + 1:
        return f". Are they swapped? Write {name}(scores, labels)"
    if len(shape) == 2 and shape == (input.shape[0], 1):
        return ". For labels [N, 1] pass target[:, 0]"
    return ""


def _check_order(name, input, target):
    """Raise if only the target has a gradient, because prediction and labels are then swapped."""
    if isinstance(target, Tensor) and target.requires_grad and not input.requires_grad:
        raise ValueError(
            f"{name}: target requires a gradient, but input does not. Are they swapped? Write "
            f"{name}(prediction, labels)"
        )


def _class_weights(name, weight, C, dtype):
    """Return the weights of the classes as an array [C], or None."""
    _check_not_negative(name, "weight", weight)
    if weight is None:
        return None
    weight = np.asarray(to_array(weight), dtype)
    if weight.shape != (C,):
        raise ValueError(
            f"{name}: weight must be [{C}], a number for each class, got shape {weight.shape}"
        )
    return weight


@with_torch_hints
@one_box
def cross_entropy(
    input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """Return the cross-entropy of the targets, -ln softmax(x)[target] for scores x.

    Args:
        input             scores x [N, C, ...] for C classes, or [C] for a single example
        target            index of the right class of each example [N, ...], whole numbers in [0,
                          C), or a single number for x [C]. Or the probabilities of all classes in
                          the shape of x, for which the loss is -Σ target ln softmax(x)
        weight            weight >= 0 of each class [C], by which the losses are multiplied, or None
                          for 1. "mean" divides by the sum of the weights of all targets or, for
                          probabilities, by the number of examples
        ignore_index      targets with this value have the loss 0 and do not count in the mean,
                          which is NaN if all have it. None: all targets count. It has no effect on
                          probabilities
        reduction         "mean" or "sum" of the losses, or "none" for the loss of each example
        label_smoothing   ε, 0 <= ε <= 1. The probabilities of the target (1 for the right class)
                          become (1 - ε) target + ε / C

    Raises:
        ValueError: input is a single number, target or weight does not have the shape above, a
            probability is not from 0 to 1, or only the target requires a gradient
        ValueError: a weight is negative, label_smoothing is out of its range, or reduction is
            unknown
        TypeError: the targets are neither whole numbers nor probabilities, ignore_index is not a
            whole number, weight does not consist of real numbers, or label_smoothing is not a
            number
        IndexError: a target is neither in [0, C) nor ignore_index
    """
    check_range("cross_entropy", 0, 1, label_smoothing=label_smoothing)
    input = as_tensor(input)
    _check_classes("cross_entropy", input, target, ignore_index)
    if input.dtype.kind in "iub" and len(np.shape(target)) == input.ndim + 1:
        raise ValueError(
            f"cross_entropy: input has shape {input.shape} and dtype {input.dtype}, and target has "
            f"shape {np.shape(target)}. Are they swapped? Write cross_entropy(scores, labels)"
        )
    _check_order("cross_entropy", input, target)
    input = as_float(input)
    axis = 0 if input.ndim == 1 else 1
    soft = np.shape(target) == input.shape and np.asarray(to_array(target)).dtype.kind == "f"
    if input.ndim == 2 and not soft and label_smoothing == 0:  # the usual case

        def of_classes(ids):
            return ops.cross_entropy(input, ids)

        return _of_classes(
            "cross_entropy", input, target, weight, ignore_index, reduction, axis, of_classes
        )
    log_p = log_softmax(input, axis)
    weight = _class_weights("cross_entropy", weight, input.shape[axis], log_p.dtype)
    if soft:
        return _soft_targets(log_p, target, weight, reduction, label_smoothing, axis)
    hard = _nll_loss("cross_entropy", log_p, target, weight, ignore_index, reduction)
    if label_smoothing == 0:
        return hard
    ids = np.asarray(to_array(target))
    counted = ids != ignore_index
    w = counted.astype(input.dtype)
    if weight is not None:
        w_class = _along(weight, axis, input.ndim)
        w = w * weight[np.where(counted, ids, 0)]
    else:
        w_class = 1
    everywhere = -np.sum(log_p * w_class, axis=axis) / input.shape[axis]
    everywhere = np.where(counted, everywhere, 0)
    uniform = _reduce("cross_entropy", everywhere, reduction, count=w.sum())
    return (1 - label_smoothing) * hard + label_smoothing * uniform


def _soft_targets(log_p, target, weight, reduction, label_smoothing, axis):
    n_classes, target = log_p.shape[axis], as_tensor(target)
    t = target.data
    if t.size and not (t.min() >= -1e-3 and t.max() <= 1 + 1e-3):  # rounding is not a mistake
        wrong = ~((t >= -1e-3) & (t <= 1 + 1e-3))
        raise ValueError(
            "cross_entropy: expected probabilities 0 <= target <= 1, got "
            f"{t[wrong].flat[0]:g}{first_index(wrong)}"
        )
    target = (1 - label_smoothing) * target + label_smoothing / n_classes
    losses = -log_p * target
    if weight is not None:
        losses = losses * _along(weight, axis, log_p.ndim)
    losses = np.sum(losses, axis=axis)
    return _reduce("cross_entropy", losses, reduction)


def _along(weight, axis, ndim):
    return weight.reshape([-1 if i == axis else 1 for i in range(ndim)])


@with_torch_hints
@one_box
def kl_div(input, target, reduction="mean", log_target=False):
    """Return the Kullback-Leibler divergence, t (ln t - x) for each element.

    Args:
        input        logarithms x of the predicted probabilities [...]
        target       probabilities t, in the shape of x. An element with t = 0 has the loss 0
        reduction    "mean" or "sum" over all elements, "none" for each element, or "batchmean" for
                     the sum divided by the length of the first axis, which is the mean divergence
                     of the examples
        log_target   True: the target is ln t, which must be finite

    Raises:
        ValueError: the shapes differ, a probability t is negative, reduction is unknown, or it is
            "batchmean" and the input is a single number
    """
    input, target = _same_shape("kl_div", input, target)
    if log_target:
        losses = np.exp(target) * (target - input)
    else:
        t = to_array(target)
        if np.any(t < 0):
            raise ValueError(
                f"kl_div: expected probabilities target >= 0, got {t[t < 0].flat[0]:g}"
                f"{first_index(t < 0)}. For logarithms, pass log_target=True"
            )
        positive = np.greater(t, 0)
        log_t = np.log(np.where(positive, target, 1))  # 0 ln 0 counts as 0
        losses = target * (log_t - input)
    if reduction == "batchmean":
        if losses.ndim == 0:
            raise ValueError(
                'kl_div: reduction="batchmean" needs input [N, ...], got a single number'
            )
        return np.sum(losses) / losses.shape[0]
    return _reduce("kl_div", losses, reduction, also=', "batchmean"')
