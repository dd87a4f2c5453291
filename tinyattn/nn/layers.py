"""Layers with weights that act on one position at a time: Linear, Embedding, MLP.

Weights start as in PyTorch: uniform in ±1/√(fan-in) for Linear, standard normal for Embedding.
"""

from itertools import pairwise

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.random import generator
from tinyattn.nn.activations import ReLU
from tinyattn.nn.containers import Sequential
from tinyattn.nn.init import normal_parameter, uniform_parameter
from tinyattn.nn.module import Module
from tinyattn.nn.validation import check_sizes


class Linear(Module):
    """y = x Wᵀ + b;   x [..., in_features], W [out_features, in_features]."""

    def __init__(self, in_features, out_features, bias=True, rng=None):
        check_sizes(self, in_features=in_features, out_features=out_features)
        rng = generator(rng)
        bound = 1 / np.sqrt(max(in_features, 1))
        self.in_features, self.out_features = in_features, out_features
        self.weight = uniform_parameter((out_features, in_features), bound, rng)
        self.bias = uniform_parameter((out_features,), bound, rng) if bias else None

    def forward(self, x):
        """y [..., out_features];   x [..., in_features]. Raises ValueError for other features."""
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self):
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.in_features}, {self.out_features}{bias}"


class Embedding(Module):
    """y = W[ids];   ids [...] integers, W [num_embeddings, embedding_dim], y [..., embedding_dim].

    The row `padding_idx` starts at zero and gets no gradient.
    """

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, rng=None):
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self.weight = normal_parameter((num_embeddings, embedding_dim), 1, rng)
        if padding_idx is not None:
            weight = np.array(self.weight.data)
            weight[padding_idx] = 0
            self.weight.data = weight

    def forward(self, ids):
        """y [..., embedding_dim];   ids [...]. TypeError if they are no integers, IndexError if one
        is negative or has no row.
        """
        return F.embedding(ids, self.weight, self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class MLP(Module):
    """Linear layers with a non-linearity between them: MLP([64, 32, 10]) is 64 → 32 → 10.

    The layers are in `layers` ("layers.0", "layers.2", …); nothing follows the last one.
    """

    def __init__(self, sizes, activation=ReLU, bias=True, rng=None):
        check_sizes(self, sizes=sizes)
        if len(sizes) < 2:
            raise ValueError(f"MLP: expected at least an input and an output size, got {sizes}")
        rng = generator(rng)
        parts = []
        for d_in, d_out in pairwise(sizes):
            parts += [Linear(d_in, d_out, bias, rng), activation()]
        self.layers = Sequential(*parts[:-1])

    def forward(self, x):
        """y [..., sizes[-1]];   x [..., sizes[0]]. Raises ValueError for other features."""
        return self.layers(x)


class Flatten(Module):
    """All axes from start_dim to end_dim as one."""

    def __init__(self, start_dim=1, end_dim=-1):
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        """y [B, n] with the default axes;   x [B, ...]."""
        x = as_tensor(x)
        start, end = self.start_dim % x.ndim, self.end_dim % x.ndim
        length = int(np.prod(x.shape[start : end + 1], dtype=np.int64))
        return x.reshape((*x.shape[:start], length, *x.shape[end + 1 :]))


class Dropout(Module):
    """In training each number is zeroed with probability p, the others are divided by 1 - p."""

    def __init__(self, p=0.5, rng=None):
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: expected a probability between 0 and 1, got {p}")
        self.p, self.rng = p, None if rng is None else generator(rng)

    def forward(self, x):
        """y, in the shape of x; x itself in evaluation mode."""
        return F.dropout(x, self.p, self.training, self.rng)

    def extra_repr(self):
        return f"p={self.p}"
