"""GravNetModel: a network with learned neighbourhoods and an output vector for each hit."""

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.graph import GravNetConv, segment_mean
from tinyattn.graph.knn import split_clouds
from tinyattn.graph.validation import check_points
from tinyattn.nn import BatchNorm1d, Linear, Module, ModuleList, ReLU, Sequential, Tanh
from tinyattn.nn.validation import check_sizes


class GravNetBlock(Module):
    """A block of three dense layers, GravNet and batch norm.

    Before the first layer, the mean over the event is appended to the features of each hit.

    Args:
        in_features            number of features of a hit before the block
        width                  number of features of the dense layers
        out_features           number of features of a hit after the block
        space_dimensions       number of dimensions of the learned space
        propagate_dimensions   number of features that a hit receives from each neighbour
        k                      number of neighbours, including the hit itself
        strict                 True: an event with fewer than k hits raises ValueError
        rng                    seed or numpy.random.Generator for the initial values, or None for
                               the default generator
    """

    def __init__(
        self,
        in_features,
        width,
        out_features,
        space_dimensions,
        propagate_dimensions,
        k,
        strict=False,
        rng=None,
    ):
        check_sizes(
            self,
            in_features=in_features,
            width=width,
            out_features=out_features,
            space_dimensions=space_dimensions,
            propagate_dimensions=propagate_dimensions,
            k=k,
        )
        rng = generator(rng)
        layers, sizes = [], [2 * in_features, width, width, width]
        for a, b in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [Linear(a, b, rng=rng), Tanh()]
        self.dense = Sequential(*layers)
        self.gravnet = GravNetConv(
            width, out_features, space_dimensions, propagate_dimensions, k, strict=strict, rng=rng
        )
        self.norm = BatchNorm1d(out_features)

    def forward(self, x, batch, cloud):
        """Return the new features of each hit, [N, out_features].

        Args:
            x       features of the hits [N, in_features]
            batch   event of each hit [N], or None for a single event
            cloud   the same events [N], numbered from 0 without gaps, or None
        """
        x = np.concatenate([x, _mean_of_event(x, cloud)], axis=-1)
        return self.norm(np.tanh(self.gravnet(self.dense(x), batch)))


def _mean_of_event(x, cloud):
    """Return, for each hit, the mean over all hits of its event. [N, F]"""
    if cloud is None:
        return np.broadcast_to(np.mean(x, axis=0), x.shape)
    return segment_mean(x, cloud, int(cloud.max(initial=-1)) + 1)[cloud]


class GravNetModel(Module):
    """A network with learned neighbourhoods that computes outputs for each hit of a detector.

    The outputs of all blocks are concatenated and mapped to the result by two dense layers.

    Args:
        in_features            number of features of a hit
        out_features           number of outputs
        blocks                 number of blocks
        width                  number of features of the dense layers in each block
        block_features         number of features of a hit after each block
        space_dimensions       number of dimensions of the learned space, in which neighbours are
                               near
        propagate_dimensions   number of features that a hit receives from each neighbour
        k                      number of neighbours, including the hit itself. In an event with
                               fewer hits, all hits are neighbours, unless strict is True
        hidden                 number of features of the hidden layer after the blocks
        strict                 True: an event with fewer than k hits raises ValueError
        rng                    seed or numpy.random.Generator for the initial values, or None for
                               the default generator

    Raises:
        ValueError: a size is not a whole number >= 1

    Source: Qasim et al. 2019, arXiv:1902.07987, section 4, slides K48-K50.
    """

    def __init__(
        self,
        in_features,
        out_features,
        blocks=4,
        width=64,
        block_features=48,
        space_dimensions=4,
        propagate_dimensions=22,
        k=40,
        hidden=128,
        strict=False,
        rng=None,
    ):
        check_sizes(
            self,
            single=True,
            in_features=in_features,
            out_features=out_features,
            blocks=blocks,
            width=width,
            block_features=block_features,
            space_dimensions=space_dimensions,
            propagate_dimensions=propagate_dimensions,
            k=k,
            hidden=hidden,
        )
        rng = generator(rng)
        sizes = [in_features] + [block_features] * (blocks - 1)
        self.norm = BatchNorm1d(in_features)
        self.blocks = ModuleList(
            [
                GravNetBlock(
                    size,
                    width,
                    block_features,
                    space_dimensions,
                    propagate_dimensions,
                    k,
                    strict,
                    rng,
                )
                for size in sizes
            ]
        )
        self.head = Sequential(
            Linear(blocks * block_features, hidden, rng=rng),
            ReLU(),
            Linear(hidden, out_features, rng=rng),
        )

    def forward(self, x, batch=None):
        """Return the outputs for each hit, [N, out_features].

        Args:
            x       hits [N, in_features]
            batch   index of each hit's event [N], whole numbers in any order. None: all hits are in
                    one event

        Raises:
            ValueError: x is not [N, in_features] with N >= 1, a number in x is not finite, or batch
                is not N whole numbers
            ValueError: there is only one hit in training, where batch norm needs at least two, or
                an event has fewer than k hits with strict=True
            TypeError: x does not consist of numbers
        """
        x = check_points("GravNetModel", x, self.norm.num_features)
        cloud = None if batch is None else split_clouds(batch, x.shape[0], "GravNetModel")[1]
        x, outputs = self.norm(x), []
        for block in self.blocks:
            x = block(x, batch, cloud)
            outputs.append(x)
        return self.head(np.concatenate(outputs, axis=-1))
