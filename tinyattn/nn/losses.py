"""The losses of `tinyattn.functional` as layers: `loss = nn.MSELoss(); loss(prediction, target)`.

reduction is "mean", "sum" or "none" (the loss of each element).
"""

import numpy as np

import tinyattn.functional as F
from tinyattn.nn.module import Buffer, Module


class _Loss(Module):
    def __init__(self, *, reduction="mean"):
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(
                f'{type(self).__name__}: reduction is "mean", "sum" or "none", got {reduction!r}'
            )
        self.reduction = reduction

    def extra_repr(self):
        return f"reduction={self.reduction!r}"


class MSELoss(_Loss):
    """(x - t)² for each element."""

    def forward(self, input, target):
        """The loss of input [...] and target [...]: one number, or [...] if nothing is reduced."""
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """|x - t| for each element."""

    def forward(self, input, target):
        """The loss of input [...] and target [...]: one number, or [...] if nothing is reduced."""
        return F.l1_loss(input, target, self.reduction)


class HuberLoss(_Loss):
    """(x - t)² / 2 up to |x - t| = δ, then a straight line, for each element; see F.huber_loss."""

    def __init__(self, *, reduction="mean", delta=1.0):
        super().__init__(reduction=reduction)
        if delta <= 0:
            raise ValueError(f"HuberLoss: expected delta > 0, got {delta}")
        self.delta = delta

    def forward(self, input, target):
        """The loss of input [...] and target [...]: one number, or [...] if nothing is reduced."""
        return F.huber_loss(input, target, self.reduction, self.delta)


class BCELoss(_Loss):
    """-(t ln p + (1 - t) ln(1 - p)) for probabilities p; see F.binary_cross_entropy."""

    def __init__(self, weight=None, *, reduction="mean"):
        super().__init__(reduction=reduction)
        self.weight = _buffer(weight)

    def forward(self, input, target):
        """The loss of the probabilities input [...] and target [...] from 0 to 1, of one shape."""
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class CrossEntropyLoss(_Loss):
    """-ln softmax(x)[target], see F.cross_entropy. weight [C]: how much each class counts."""

    def __init__(self, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(reduction=reduction)
        self.weight = _buffer(weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input, target):
        """The loss of the scores input [B, C, ...] and the classes target [B, ...]."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCEWithLogitsLoss(_Loss):
    """-(t ln σ(x) + (1 - t) ln(1 - σ(x))), see F.binary_cross_entropy_with_logits."""

    def __init__(self, weight=None, *, reduction="mean", pos_weight=None):
        super().__init__(reduction=reduction)
        self.weight, self.pos_weight = _buffer(weight), _buffer(pos_weight)

    def forward(self, input, target):
        """The loss of the scores input [...] and target [...] from 0 to 1, of one shape."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, self.reduction, self.pos_weight
        )


def _buffer(weight):
    """Saved with the module, as in PyTorch, but not trained."""
    return None if weight is None else Buffer(np.asarray(getattr(weight, "data", weight)))
