"""Layers on points, and a model of them, that want more neighbours than a small event has."""

import numpy as np

from tinyattn import models, nn
from tinyattn.graph import DynamicEdgeConv, GravNetConv


class Turned(nn.Module):
    """A network of edges that does not begin with a linear layer."""

    def forward(self, x):
        return np.sin(x)


def small_events(strict=False):
    """Layers and a model that want 6 neighbours, for points with 3 features."""
    yield GravNetConv(3, 5, 2, 4, 6, strict=strict, rng=0)
    for aggr in ("max", "mean", "sum"):
        yield DynamicEdgeConv(nn.Linear(6, 4, rng=0), 6, aggr, strict)
        yield DynamicEdgeConv(nn.MLP([6, 8, 4], rng=0), 6, aggr, strict)
        yield DynamicEdgeConv(Turned(), 6, aggr, strict)
    model = models.GravNetModel(3, 2, 2, 8, 8, 3, 4, k=6, hidden=8, strict=strict, rng=0)
    yield model.eval()
