"""Optimizers, which turn gradients into steps of the parameters, and learning-rate schedules.

The update rules, arguments and defaults are the same as in PyTorch. θ is a parameter, g its
gradient, η the learning rate `lr`. A step writes through `p.data`, so the engine detects if the old
values were used in a graph for which `backward` has not been called yet.
"""

from tinyattn.engine import torch_hints
from tinyattn.optim.algorithms import SGD, Adam, AdamW, RMSprop
from tinyattn.optim.clipping import clip_grad_norm
from tinyattn.optim.optimizer import Optimizer
from tinyattn.optim.schedules import (
    CosineLR,
    LambdaLR,
    NoamLR,
    Schedule,
    StepLR,
    WarmupCosineLR,
    WarmupLR,
)

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "CosineLR",
    "LambdaLR",
    "NoamLR",
    "Optimizer",
    "RMSprop",
    "Schedule",
    "StepLR",
    "WarmupCosineLR",
    "WarmupLR",
    "clip_grad_norm",
]


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
