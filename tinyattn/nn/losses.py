"""The losses of `tinyattn.functional` as layers, such as `nn.MSELoss()(prediction, target)`.

In the formulas, x is `input` and t is `target`. The argument `reduction` is "mean", "sum" or
"none", which returns the loss of each element.
"""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.ranges import check_range
from tinyattn.nn.module import Buffer, Module


class _Loss(Module):
    def __init__(self, *, reduction="mean"):
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(
                f'{type(self).__name__}: reduction must be "mean", "sum" or "none", got '
                f"{reduction!r}"
            )
        self.reduction = reduction

    def extra_repr(self):
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """The squared error of input x and target t, (x - t)² for each element.

    Args:
        reduction   "mean" or "sum" of the losses of all elements, or "none" for the loss of each

    Raises:
        ValueError: the reduction is unknown
    """

    def forward(self, input, target):
        """Compute the loss. Shape: input and target [...] → one number.

        With reduction="none", the result is [...].

        Raises:
            ValueError: input and target have different shapes
        """
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """The absolute error of input x and target t, |x - t| for each element.

    Args:
        reduction   "mean" or "sum" of the losses of all elements, or "none" for the loss of each

    Raises:
        ValueError: the reduction is unknown
    """

    def forward(self, input, target):
        """Compute the loss. Shape: input and target [...] → one number.

        With reduction="none", the result is [...].

        Raises:
            ValueError: input and target have different shapes
        """
        return F.l1_loss(input, target, self.reduction)


class HuberLoss(_Loss):
    """The Huber loss of input x and target t, a parabola for small and a line for large errors.

    The loss of an element is (x - t)² / 2 if |x - t| ≤ δ, and δ (|x - t| - δ/2) otherwise.

    Args:
        reduction   "mean" or "sum" of the losses of all elements, or "none" for the loss of each
        delta       δ > 0, the error at which the line begins

    Raises:
        ValueError: delta is not positive, or the reduction is unknown
        TypeError: delta is not a number
    """

    def __init__(self, *, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction)
        check_range("HuberLoss", above=0, delta=delta)
        self.delta = delta

    def forward(self, input, target):
        """Compute the loss. Shape: input and target [...] → one number.

        With reduction="none", the result is [...].

        Raises:
            ValueError: input and target have different shapes
        """
        return F.huber_loss(input, target, self.reduction, self.delta)


class BCELoss(_Loss):
    """The binary cross-entropy of probabilities p and targets t, -(t ln p + (1 - t) ln(1 - p)).

    A logarithm below -100 is replaced by -100, so the loss stays finite for p = 0 and p = 1. For
    scores, use `BCEWithLogitsLoss`.

    Args:
        weight      factor >= 0 of the loss of each element, broadcast to the input, or None for 1.
                    "mean" divides by the number of elements, whatever the weights are
        reduction   "mean" or "sum" of the losses of all elements, or "none" for the loss of each

    Raises:
        ValueError: the reduction is unknown
        TypeError: weight does not contain numbers
    """

    def __init__(self, weight=None, *, reduction="mean"):
        super().__init__(reduction=reduction)
        self.weight = _buffer(self, "weight", weight)

    def forward(self, input, target):
        """Compute the loss. Shape: probabilities input [...], target [...] → one number.

        The targets are numbers from 0 to 1. With reduction="none", the result is [...].

        Raises:
            ValueError: input and target have different shapes, one of their numbers is not from 0
                to 1, or the weight is negative or does not broadcast to the input
        """
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class CrossEntropyLoss(_Loss):
    """The cross-entropy of scores x for C classes, -ln softmax(x)[target].

    Args:
        weight            factor >= 0 for the loss of each class [C], or None for 1. "mean" divides
                          by the sum of the weights of all targets or, for probabilities, by the
                          number of examples
        ignore_index      targets with this value have the loss 0 and do not count in the mean,
                          which is NaN if all have it. It has no effect on probabilities
        reduction         "mean" or "sum" of the losses of all targets, or "none" for the loss of
                          each
        label_smoothing   ε from 0 to 1, with which the probabilities of the target (1 for the right
                          class) become (1 - ε) target + ε / C

    Raises:
        ValueError: the reduction is unknown
        TypeError: weight does not contain numbers
    """

    def __init__(self, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(reduction=reduction)
        self.weight = _buffer(self, "weight", weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input, target):
        """Compute the loss. Shape: scores input [B, C, ...], target [B, ...] → one number.

        The targets are classes, whole numbers from 0 to C - 1, or probabilities of all classes in
        the shape of the input. With reduction="none", the result is [B, ...]. A single example may
        be [C], with one class as target.

        Raises:
            ValueError: the target has a different shape, weight is not [C] or is negative, or a
                probability or label_smoothing is not from 0 to 1
            TypeError: the targets are neither whole numbers nor probabilities, label_smoothing is
                not a number, or ignore_index is not a whole number
            IndexError: a class is outside of [0, C)
        """
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCEWithLogitsLoss(_Loss):
    """The binary cross-entropy of scores x and targets t, -(t ln σ(x) + (1 - t) ln(1 - σ(x))).

    It is computed without overflow, unlike σ(x) followed by `BCELoss`.

    Args:
        weight       factor >= 0 of the loss of each element, broadcast to the input, or None for 1.
                     "mean" divides by the number of elements, whatever the weights are
        reduction    "mean" or "sum" of the losses of all elements, or "none" for the loss of each
        pos_weight   factor >= 0 for the term t ln σ(x) of the positive examples, broadcast to the
                     input, or None for 1

    Raises:
        ValueError: the reduction is unknown
        TypeError: weight or pos_weight does not contain numbers
    """

    def __init__(self, weight=None, *, reduction="mean", pos_weight=None):
        super().__init__(reduction=reduction)
        self.weight = _buffer(self, "weight", weight)
        self.pos_weight = _buffer(self, "pos_weight", pos_weight)

    def forward(self, input, target):
        """Compute the loss. Shape: scores input [...], target [...] → one number.

        The targets are numbers from 0 to 1. With reduction="none", the result is [...].

        Raises:
            ValueError: input and target have different shapes, a target is not from 0 to 1, or
                weight or pos_weight is negative or does not broadcast to the input
        """
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


def _buffer(loss, name, weight):
    """Return a weight as a buffer, which is saved with the module but not trained, or None."""
    if weight is None:
        return None
    values = np.asarray(getattr(weight, "data", weight))
    if values.dtype.kind not in "fiub":
        raise TypeError(
            f"{type(loss).__name__}: {name} must be numbers, got {weight!r}. Other arguments need "
            'their name, for example reduction="sum"'
        )
    return Buffer(values)
