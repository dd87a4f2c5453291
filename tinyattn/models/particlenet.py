"""ParticleNet: a network for jets as clouds of particles, with EdgeConv blocks."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.graph import edge_conv, knn_edges, segment_mean
from tinyattn.graph.validation import check_widths
from tinyattn.nn import BatchNorm1d, Dropout, Linear, Module, ModuleList, ReLU, Sequential
from tinyattn.nn.sets import masked_mean
from tinyattn.nn.validation import check_sizes


class EdgeConvBlock(Module):
    """A block, y_i = ReLU(mean_j nn(x_i ‖ x_j - x_i) + W x_i), over the k nearest neighbours j ≠ i.

    nn consists of one layer for each width (a linear map, batch norm and ReLU), and W is a linear
    map with batch norm. In a jet with at most k particles, each particle has all others as
    neighbours.

    Args:
        in_features   number of features of x_i
        widths        number of features after each layer of nn, of which the last is that of y_i
        k             number of neighbours, without the particle itself
        rng           seed or numpy.random.Generator for the initial values, or None for the default
                      generator
    """

    def __init__(self, in_features, widths, k, rng=None):
        check_widths("EdgeConvBlock", widths=widths)
        check_sizes(self, in_features=in_features, widths=widths, k=k)
        rng, self.k = generator(rng), k
        layers, sizes = [], [2 * in_features, *widths]
        for a, b in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [Linear(a, b, bias=False, rng=rng), BatchNorm1d(b), ReLU()]
        self.nn = Sequential(*layers)
        self.shortcut = Sequential(
            Linear(in_features, widths[-1], bias=False, rng=rng), BatchNorm1d(widths[-1])
        )

    def forward(self, x, places, batch):
        """Apply the block. Shape: x [N, in_features] → [N, widths[-1]].

        Args:
            x        features of the particles [N, in_features]
            places   positions among which neighbours are searched for [N, S]
            batch    index of each particle's jet [N], in ascending order. Neighbours are in the
                     same jet

        Raises:
            ValueError: the shapes do not fit, a position is not finite, or batch is not N whole
                numbers in ascending order
        """
        sender, receiver = knn_edges(to_array(places), self.k, batch)
        own, N = self.shortcut(x), x.shape[0]
        number = np.bincount(receiver, minlength=N)  # number of neighbours
        if number.max(initial=0) == 0:  # no particle has a neighbour, so only the shortcut remains
            return np.maximum(own, 0)
        if np.all(number == number[0]):
            mean = edge_conv(self.nn, x, sender.reshape(N, number[0]), "mean")
        else:
            mine = x[receiver]
            messages = self.nn(np.concatenate([mine, x[sender] - mine], axis=-1))  # [E, F']
            mean = segment_mean(messages, receiver, N)
        return np.maximum(mean + own, 0)


class ParticleNet(Module):
    """A classifier of jets, from points [B, P, 2], features [B, P, C] and mask [B, P] to scores.

    The first block searches for the nearest neighbours of each particle in the plane (η, φ), and
    each later block in the space of its input features. Padding is removed first, so it is never a
    neighbour of a particle and does not enter the statistics of batch norm. For ParticleNet-Lite of
    the paper, use k=7, widths=((32,) * 3, (64,) * 3) and hidden=128.

    Args:
        features   number of features C of a particle
        classes    number of classes
        k          number of neighbours, without the particle itself. In a jet with at most k
                   particles, all others are neighbours
        widths     tuple of tuples, one for each block, with the number of features after each layer
        hidden     number of features of the hidden layer of the head
        dropout    probability with which a hidden feature of the head becomes 0 in training
        rng        seed or numpy.random.Generator for the initial values and the dropout, or None
                   for the default generator

    Raises:
        ValueError: a size is not a whole number >= 1, or dropout is not from 0 to 1
        TypeError: widths is not a tuple or list of non-empty tuples or lists, or dropout is not a
            number

    Source: Qu, Gouskos 2019, arXiv:1902.08570, slide K45.
    """

    def __init__(
        self,
        features,
        classes=2,
        k=16,
        widths=((64,) * 3, (128,) * 3, (256,) * 3),
        hidden=256,
        dropout=0.1,
        rng=None,
    ):
        check_sizes(self, single=True, features=features, classes=classes, k=k, hidden=hidden)
        check_range("ParticleNet", 0, 1, dropout=dropout)
        if not isinstance(widths, tuple | list) or not all(
            isinstance(w, tuple | list) and w for w in widths
        ):
            raise TypeError(
                "ParticleNet: widths must contain a tuple for each block, with the number of "
                f"features of each layer, such as ((32, 32), (64, 64)), got {widths!r}"
            )
        for block in widths:
            check_sizes(self, widths=block)
        rng = generator(rng)
        self.norm = BatchNorm1d(features)
        sizes = [features, *(w[-1] for w in widths)]
        self.blocks = ModuleList(
            [EdgeConvBlock(a, w, k, rng) for a, w in zip(sizes[:-1], widths, strict=True)]
        )
        self.head = Sequential(
            Linear(sizes[-1], hidden, rng=rng),
            ReLU(),
            Dropout(dropout, rng=rng),
            Linear(hidden, classes, rng=rng),
        )

    def forward(self, points, features, mask=None):
        """Return the scores of the classes, [B, classes].

        Args:
            points     (η, φ) of the particles [B, P, 2]
            features   features of the particles [B, P, C]
            mask       bool [B, P], True for particles, False for padding. If None, all are
                       particles

        Raises:
            ValueError: points are not [B, P, 2], features are not [B, P, C], or mask is not bool
                [B, P]
            ValueError: a coordinate or feature of a particle is not finite, a jet has no particle,
                or a batch in training has only one particle in all, because batch norm needs at
                least two
            TypeError: points or features are not an array of numbers
        """
        mask = _check_jets(points, features, mask, self.norm.num_features)
        B, P = mask.shape
        rows = np.flatnonzero(mask)  # rows of the particles, jet by jet
        places = to_array(points).reshape(B * P, -1)[rows]
        x = self.norm(features.reshape(B * P, -1)[rows])
        for i, block in enumerate(self.blocks):
            x = block(x, places if i == 0 else x, rows // P)
        number = np.zeros(B * P, np.intp)
        number[rows] = np.arange(len(rows))
        return self.head(masked_mean(x[number.reshape(B, P)], mask))


def _check_jets(points, features, mask, C):
    """Return the mask as a bool array [B, P], after a check of the arguments of `ParticleNet`."""
    for name, given in (("points", points), ("features", features)):
        if not hasattr(given, "shape"):
            raise TypeError(
                f"ParticleNet: {name} must be an array or Tensor, got {type(given).__name__}. "
                f"Write np.array({name})"
            )
        if given.dtype.kind not in "fiub":
            raise TypeError(
                f"ParticleNet: {name} must be numbers, got {given.dtype}. Write "
                f"{name}.astype(float)"
            )
    fits = points.ndim == 3 and features.ndim == 3 and points.shape[:2] == features.shape[:2]
    if not fits or points.shape[2] != 2 or features.shape[2] != C:
        raise ValueError(
            f"ParticleNet: expected points [B, P, 2] and features [B, P, {C}], got shapes "
            f"{points.shape} and {features.shape}"
        )
    mask = np.ones(points.shape[:2], bool) if mask is None else np.asarray(to_array(mask))
    if mask.dtype != bool or mask.shape != points.shape[:2]:
        raise ValueError(
            f"ParticleNet: mask must be bool of shape {points.shape[:2]} with True for particles, "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    empty = np.flatnonzero(~mask.any(axis=1))
    if not mask.size:
        raise ValueError(
            f"ParticleNet: there are no particles, because points have the shape {points.shape}. "
            "Pass at least one"
        )
    if not mask.any():
        raise ValueError("ParticleNet: the mask is False everywhere. Pass at least one particle")
    if len(empty):
        raise ValueError(
            "ParticleNet: each jet needs at least one particle, but the mask is False everywhere "
            f"in {len(empty)} of {len(mask)} jets, first in jet {empty[0]}. Leave out empty jets"
        )
    check_particles("ParticleNet", mask, points=points, features=features)
    return mask


def check_particles(name, mask, **given):
    """Raise ValueError if an array [B, N, …] is NaN or infinite where `mask` is True."""
    for argument, values in given.items():
        bad = np.argwhere(mask & ~np.isfinite(to_array(values)).all(axis=2))
        if len(bad):
            raise ValueError(
                f"{name}: {argument} are NaN or infinite in {len(bad)} of {mask.sum()} particles, "
                f"first in particle {bad[0][1]} of jet {bad[0][0]}. Pass a mask that is False for "
                f"{'this particle' if len(bad) == 1 else 'all of them'}"
            )
