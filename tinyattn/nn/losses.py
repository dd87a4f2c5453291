"""The losses of `tinyattn.functional` as layers, such as `nn.MSELoss()(prediction, target)`.

The argument reduction is "mean", "sum" or "none", which returns the loss of each element.
"""

import numpy as np

import tinyattn.functional as F
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
    """The squared error, (x - t)² for each element, computed by `F.mse_loss`.

    Args:
        reduction   "mean" or "sum" over all elements, or "none"
    """

    def forward(self, input, target):
        """Compute the loss. Shape: input and target [...] → one number, or [...]."""
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """The absolute error, |x - t| for each element, computed by `F.l1_loss`.

    Args:
        reduction   "mean" or "sum" over all elements, or "none"
    """

    def forward(self, input, target):
        """Compute the loss. Shape: input and target [...] → one number, or [...]."""
        return F.l1_loss(input, target, self.reduction)


class HuberLoss(_Loss):
    """The Huber loss, (x - t)² / 2 up to |x - t| = δ and a straight line beyond.

    See `F.huber_loss`.

    Args:
        reduction   "mean" or "sum" over all elements, or "none"
        delta       δ > 0, the error at which the line begins

    Raises:
        ValueError: delta is not positive
    """

    def __init__(self, *, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction)
        if delta <= 0:
            raise ValueError(f"HuberLoss: expected delta > 0, got delta={delta}")
        self.delta = delta

    def forward(self, input, target):
        """Compute the loss. Shape: input and target [...] → one number, or [...]."""
        return F.huber_loss(input, target, self.reduction, self.delta)


class BCELoss(_Loss):
    """The binary cross-entropy of probabilities, -(t ln p + (1 - t) ln(1 - p)).

    For scores use `BCEWithLogitsLoss`. See `F.binary_cross_entropy`.

    Args:
        weight      factor for each element, broadcast to the input, or None for 1
        reduction   "mean" or "sum" over all elements, or "none"
    """

    def __init__(self, weight=None, *, reduction="mean"):
        super().__init__(reduction=reduction)
        self.weight = _buffer(weight)

    def forward(self, input, target):
        """Compute the loss. Shape: probabilities input and target [...] → one number, or [...].

        Raises:
            ValueError: the shapes differ, or a number is not between 0 and 1
        """
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class CrossEntropyLoss(_Loss):
    """The cross-entropy of scores, -ln softmax(x)[target], computed by `F.cross_entropy`.

    Args:
        weight            factor for each class [C], or None for 1
        ignore_index      target value that is ignored
        reduction         "mean" or "sum" over all elements, or "none"
        label_smoothing   ε: the target is mixed with the uniform distribution, (1 - ε) target + ε /
                          C
    """

    def __init__(self, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(reduction=reduction)
        self.weight = _buffer(weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input, target):
        """Compute the loss. Shape: scores input [B, C, ...], target [B, ...] → one number."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCEWithLogitsLoss(_Loss):
    """The binary cross-entropy of scores, -(t ln σ(x) + (1 - t) ln(1 - σ(x))).

    See `F.binary_cross_entropy_with_logits`.

    Args:
        weight       factor for each element, broadcast to the input, or None for 1
        reduction    "mean" or "sum" over all elements, or "none"
        pos_weight   factor for the term t ln σ(x) of the positive examples, broadcast to the input,
                     or None for 1
    """

    def __init__(self, weight=None, *, reduction="mean", pos_weight=None):
        super().__init__(reduction=reduction)
        self.weight, self.pos_weight = _buffer(weight), _buffer(pos_weight)

    def forward(self, input, target):
        """Compute the loss. Shape: scores input and target [...] → one number, or [...].

        Raises:
            ValueError: the shapes differ, or a target is not between 0 and 1
        """
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


def _buffer(weight):
    """Return a buffer, which is saved with the module, as in PyTorch, but not trained."""
    return None if weight is None else Buffer(np.asarray(getattr(weight, "data", weight)))
