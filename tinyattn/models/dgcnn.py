"""DGCNN: a network for point clouds in which each layer finds neighbours in its input features."""

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.graph import DynamicEdgeConv
from tinyattn.graph.knn import split_clouds
from tinyattn.graph.validation import check_points, check_widths
from tinyattn.nn import (
    BatchNorm1d,
    Dropout,
    LeakyReLU,
    Linear,
    Module,
    ModuleList,
    Sequential,
)
from tinyattn.nn.sets import masked_max, masked_mean
from tinyattn.nn.validation import check_sizes


def dense(d_in, d_out, rng):
    """Return a linear layer without bias, followed by batch norm and leaky ReLU (slope 0.2)."""
    return Sequential(Linear(d_in, d_out, bias=False, rng=rng), BatchNorm1d(d_out), LeakyReLU(0.2))


class PointFeatures(Module):
    """A stack of EdgeConv layers. Their outputs are concatenated and mapped to y [N, embedding].

    Args:
        in_features   number of features of a point
        k             number of neighbours, including the point itself
        widths        number of features after each EdgeConv layer
        embedding     number of features of y
        rng           seed or numpy.random.Generator for the initial values
    """

    def __init__(self, in_features, k, widths, embedding, rng):
        check_sizes(self, in_features=in_features, k=k, widths=widths, embedding=embedding)
        self.in_features = in_features
        sizes = [in_features, *widths]
        self.convs = ModuleList(
            [
                DynamicEdgeConv(dense(2 * a, b, rng), k)
                for a, b in zip(sizes[:-1], sizes[1:], strict=True)
            ]
        )
        self.embed = dense(sum(widths), embedding, rng)

    def forward(self, points, batch, places):
        """Return (y [N, embedding], concatenated outputs of all layers [N, Σ widths]).

        Args:
            points   points [N, in_features]
            batch    cloud of each point [N], or None for a single cloud
            places   function (points, x) that returns the positions among which a layer with input
                     x searches for neighbours
        """
        x, outputs = points, []
        for conv in self.convs:
            x = conv(x, batch, places(points, x))
            outputs.append(x)
        together = np.concatenate(outputs, axis=-1)
        return self.embed(together), together


class _OnFeatures(Module):
    """A network in which each layer searches for neighbours among its input features."""

    def places(self, points, x):
        """Return the positions among which a layer with input x [N, F] searches for neighbours.

        `points` is the input of the network. A subclass that returns `points` uses the nearest
        neighbours in space in all layers.
        """
        return x


class DGCNN(_OnFeatures):
    """A classifier of point clouds, from points x [N, in_features] to scores [B, classes].

    In each EdgeConv layer, the neighbours of a point are the k points of its cloud with the most
    similar input features of this layer. In a cloud with fewer than k points, all points are
    neighbours. In a subclass, override `places` to search for neighbours by other features.

    Args:
        in_features   number of features of a point
        classes       number of classes
        k             number of neighbours, including the point itself
        widths        tuple with the number of features after each EdgeConv layer
        embedding     number of features of each point before the maximum and mean over its cloud
        hidden        tuple with the number of features of each hidden layer of the head
        dropout       probability with which a hidden feature of the head becomes 0 in training
        rng           seed or numpy.random.Generator for the initial values and the dropout, or None
                      for the default generator

    Raises:
        ValueError: a size is not a whole number >= 1, widths is empty, or dropout is not from 0 to
            1
        TypeError: widths or hidden is not a tuple or list, or dropout is not a number

    Source: Wang et al. 2018, arXiv:1801.07829, fig. 3 (without the spatial transformer), slide K44.
    """

    def __init__(
        self,
        in_features,
        classes,
        k=20,
        widths=(64, 64, 128, 256),
        embedding=1024,
        hidden=(512, 256),
        dropout=0.5,
        rng=None,
    ):
        check_sizes(
            self,
            single=True,
            in_features=in_features,
            classes=classes,
            k=k,
            embedding=embedding,
        )
        check_widths(type(self).__name__, widths=widths, hidden=hidden)
        check_sizes(self, widths=widths, hidden=hidden)
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        if not widths:
            raise ValueError(
                f"{type(self).__name__}: widths must contain the number of features of at least "
                f"one layer, got {widths!r}"
            )
        rng = generator(rng)
        self.features = PointFeatures(in_features, k, widths, embedding, rng)
        sizes = [2 * embedding, *hidden]
        head = []
        for a, b in zip(sizes[:-1], sizes[1:], strict=True):
            head += [dense(a, b, rng), Dropout(dropout, rng=rng)]
        self.head = Sequential(*head, Linear(sizes[-1], classes, rng=rng))

    def forward(self, x, batch=None):
        """Return the scores of the classes, [B, classes], with the clouds in ascending order.

        Args:
            x       points [N, in_features]
            batch   index of each point's cloud [N], whole numbers in any order. Row b of the scores
                    belongs to the b-th smallest index. None: all points are in one cloud

        Raises:
            ValueError: x is not [N, in_features] with N >= 1, a number in x is not finite, or batch
                is not N whole numbers
            ValueError: there is only one cloud in training, where batch norm needs at least two
            TypeError: x does not consist of numbers
        """
        name = type(self).__name__
        check_points(name, x, self.features.in_features)
        table, _ = split_clouds(batch, len(x), name)
        y, _ = self.features(x, batch, self.places)
        return self.head(_global(y, table))


class DGCNNSegmentation(_OnFeatures):
    """A classifier of single points (segmentation), from x [N, in_features] to scores [N, classes].

    A vector that describes the whole cloud is appended to the features of each point. Neighbours
    are the same as in `DGCNN`.

    Args:
        in_features   number of features of a point
        classes       number of classes
        k             number of neighbours, including the point itself
        widths        tuple with the number of features after each EdgeConv layer
        embedding     number of features of each point before the maximum and mean over its cloud
        hidden        tuple with the number of features of each hidden layer of the head
        dropout       probability with which a hidden feature of the head becomes 0 in training
        rng           seed or numpy.random.Generator for the initial values and the dropout, or None
                      for the default generator

    Raises:
        ValueError: a size is not a whole number >= 1, widths is empty, or dropout is not from 0 to
            1
        TypeError: widths or hidden is not a tuple or list, or dropout is not a number

    Source: Wang et al. 2018, fig. 3, lower branch, slide K44.
    """

    def __init__(
        self,
        in_features,
        classes,
        k=20,
        widths=(64, 64, 64),
        embedding=1024,
        hidden=(256, 128),
        dropout=0.5,
        rng=None,
    ):
        check_sizes(
            self,
            single=True,
            in_features=in_features,
            classes=classes,
            k=k,
            embedding=embedding,
        )
        check_widths(type(self).__name__, widths=widths, hidden=hidden)
        check_sizes(self, widths=widths, hidden=hidden)
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        if not widths:
            raise ValueError(
                f"{type(self).__name__}: widths must contain the number of features of at least "
                f"one layer, got {widths!r}"
            )
        rng = generator(rng)
        self.features = PointFeatures(in_features, k, widths, embedding, rng)
        sizes = [2 * embedding + sum(widths), *hidden]
        head = []
        for a, b in zip(sizes[:-1], sizes[1:], strict=True):
            head += [dense(a, b, rng), Dropout(dropout, rng=rng)]
        self.head = Sequential(*head, Linear(sizes[-1], classes, rng=rng))

    def forward(self, x, batch=None):
        """Return the scores of the classes for each point, [N, classes].

        Args:
            x       points [N, in_features]
            batch   index of each point's cloud [N], whole numbers in any order. None: all points
                    are in one cloud

        Raises:
            ValueError: x is not [N, in_features] with N >= 1, a number in x is not finite, or batch
                is not N whole numbers
            ValueError: there is only one point in training, where batch norm needs at least two
            TypeError: x does not consist of numbers
        """
        name = type(self).__name__
        check_points(name, x, self.features.in_features)
        table, cloud = split_clouds(batch, len(x), name)
        y, points = self.features(x, batch, self.places)
        u = _global(y, table)  # [B, 2 embedding]
        return self.head(np.concatenate([points, u[cloud]], axis=-1))


def _global(y, table):
    """Return the maximum and mean over the points of each cloud, concatenated. [B, 2F]"""
    members = np.maximum(table, 0)
    clouds, mask = y[members], table >= 0  # [B, points, F], padded
    return np.concatenate([masked_max(clouds, mask), masked_mean(clouds, mask)], axis=-1)
