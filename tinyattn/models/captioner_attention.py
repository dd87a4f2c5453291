"""Attention of a captioner's state to the regions of an image.

`Attend` computes one context vector from all regions. It consists of a score, `AdditiveScore` or
`DotScore`, and of a function that turns scores into weights, `Softmax` or `SigmoidGate`. Read
`Attend` first, then `AdditiveScore`.

Letters: B images, R regions with D features each, H features of the LSTM's state, K features of a
hidden layer or of a key.

Source: Bahdanau et al. 2014, Xu et al. 2015, Vaswani et al. 2017, slides KB09, KB10, KB13.
"""

import math

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.random import generator
from tinyattn.models.gpt import described
from tinyattn.nn.validation import check_sizes


class AdditiveScore(nn.Module):
    """The additive attention score, e_j = tanh(h W + b + z_j U) · v.

    Args:
        state      number H of features of the state h
        features   number D of features of a region z_j
        size       width K of the hidden layer
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: state, features or size is not a whole number >= 1

    Source: Bahdanau et al. 2014, Xu et al. 2015, slide KB10.
    """

    def __init__(self, state, features, size, rng=None):
        check_sizes(self, single=True, state=state, features=features, size=size)
        rng = generator(rng)
        self.from_state = nn.Linear(state, size, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)
        self.v = nn.Linear(size, 1, bias=False, rng=rng)

    def keys(self, z):
        """Return the part of the scores that does not depend on the state, z_j U [B, R, K].

        U [D, K] is the transposed weight of `from_region`. Computed once for each image, the result
        can be passed to `forward` for every word.

        Args:
            z   features z_j of the regions [B, R, D]

        Raises:
            ValueError: z does not have D features
        """
        return self.from_region(z)

    def forward(self, h, z, keys=None):
        """Return the score of every region for the given state.

        Args:
            h      state of the LSTM [B, H]
            z      features of the regions [B, R, D]
            keys   result of `keys(z)` [B, R, K], which replaces z. If None, the keys are computed
                   from z in this call

        Returns:
            e [B, R], the scores

        Raises:
            ValueError: h is not [B, H], z is not [B, R, D], or keys are not [B, R, K]
        """
        q, k = self.from_state(h), self.keys(z) if keys is None else keys
        _check_scores("AdditiveScore", q, k)
        return self.v(np.tanh(q[:, None] + k))[:, :, 0]


class DotScore(nn.Module):
    """The scaled dot-product attention score, e_j = (h W) · (z_j U) / √K.

    Args:
        state      number H of features of the state h
        features   number D of features of a region z_j
        size       number K of features of query and key
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: state, features or size is not a whole number >= 1

    Source: Vaswani et al. 2017, slide KB10.
    """

    def __init__(self, state, features, size, rng=None):
        check_sizes(self, single=True, state=state, features=features, size=size)
        rng = generator(rng)
        self.size = size
        self.from_state = nn.Linear(state, size, bias=False, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)

    def keys(self, z):
        """Return the part of the scores that does not depend on the state, z_j U [B, R, K].

        U [D, K] is the transposed weight of `from_region`. Computed once for each image, the result
        can be passed to `forward` for every word.

        Args:
            z   features z_j of the regions [B, R, D]

        Raises:
            ValueError: z does not have D features
        """
        return self.from_region(z)

    def forward(self, h, z, keys=None):
        """Return the score of every region for the given state.

        Args:
            h      state of the LSTM [B, H]
            z      features of the regions [B, R, D]
            keys   result of `keys(z)` [B, R, K], which replaces z. If None, the keys are computed
                   from z in this call

        Returns:
            e [B, R], the scores

        Raises:
            ValueError: h is not [B, H], z is not [B, R, D], or keys are not [B, R, K]
        """
        q, k = self.from_state(h), self.keys(z) if keys is None else keys
        _check_scores("DotScore", q, k)
        return np.einsum("bd,brd->br", q, k) / math.sqrt(self.size)


def _check_scores(name, q, k):
    """Raise ValueError unless q is [B, K] and k [B, R, K], the linear map of h and the keys."""
    (*B, K), keys = q.shape, np.shape(k)
    if (
        len(B) != 1
        or len(keys) != 3
        or keys[2] != K
        or (keys[0] != B[0] and 1 not in (keys[0], *B))
    ):
        raise ValueError(
            f"{name}: expected h [B, H], z [B, R, D] and keys [B, R, {K}] with the same B, but the "
            f"linear map of h has shape {q.shape}, and the keys of z have shape {keys}"
        )


class SigmoidGate(nn.Module):
    """A sigmoid of each score, a_j = σ(e_j), so the weights need not sum to 1.

    Source: slide KB10.
    """

    def forward(self, scores):
        """Turn scores into weights: scores [B, R] → a [B, R]."""
        return F.sigmoid(scores)


class Softmax(nn.Module):
    """A softmax over the regions, a = softmax(e), so the weights sum to 1."""

    def forward(self, scores):
        """Turn scores into weights: scores [B, R] → a [B, R]."""
        return F.softmax(scores, axis=-1)


def check_module(argument, module, example):
    """Raise TypeError unless `module`, the value of an argument, can be called.

    Args:
        argument   name of the argument, for the error
        module     its value
        example    a correct value, for the error

    Raises:
        TypeError: module is a class, or cannot be called
    """
    if isinstance(module, type) or not callable(module):
        raise TypeError(
            f"{argument} must be a module or function, got {described(module)}. Pass, for example, "
            f"{example}"
        )


class Attend(nn.Module):
    """Attention of a state to regions, e_j = score(h, z_j), a = weights(e), c = Σ_j a_j z_j.

    If the regions are permuted, the weights are permuted in the same way and the context does not
    change.

    Args:
        score     a module (h [B, H], z [B, R, D]) → e [B, R], such as `AdditiveScore`. If the
                  module has a method `keys(z)`, the result of `keys` can be computed once and
                  passed to the module as the third argument
        weights   a module e [B, R] → a [B, R], such as `SigmoidGate`. If None, it is a `Softmax`

    Raises:
        TypeError: score or weights is a class, or cannot be called

    Source: Bahdanau et al. 2014, Xu et al. 2015, slides KB09, KB10, KB13.
    """

    def __init__(self, score, weights=None):
        check_module("Attend: score", score, "DotScore(state, features, size)")
        if weights is not None:
            check_module("Attend: weights", weights, "SigmoidGate()")
        self.score, self.weights = score, weights or Softmax()

    def keys(self, z):
        """Return the part of the scores that does not depend on the state, for `forward`.

        The result is `score.keys(z)`, or None if `score` has no method `keys`.

        Args:
            z   features of the regions [B, R, D]

        Raises:
            ValueError: `score.keys` does not accept the shape of z
        """
        return self.score.keys(z) if hasattr(self.score, "keys") else None

    def forward(self, h, z, keys=None):
        """Return the context, which is the weighted sum of the regions, and the weights.

        Args:
            h      state of the LSTM before the word [B, H]
            z      features of the regions [B, R, D]
            keys   `keys(z)`, if already computed. If None, they are computed in this call

        Returns:
            (context c [B, D], weights a [B, R])

        Raises:
            ValueError: `score` does not accept the shapes of h, z and keys
        """
        e = self.score(h, z) if keys is None else self.score(h, z, keys)  # [B, R]
        a = self.weights(e)
        return np.einsum("br,brd->bd", a, z), a
