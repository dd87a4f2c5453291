"""Two small real networks (a karate club and the characters of a novel), and generated graphs."""

import math
from functools import cache
from pathlib import Path

import numpy as np

from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_interval, check_range
from tinyattn.graph import Graph


def karate_club():
    """Load a graph of the 78 ties between 34 members of a karate club, which later split in two.

    Returns:
        (graph, club). Every tie is stored as two edges, and there are no node features. club [34]
        int64 is 0 for members who stayed with the instructor (node 0) and 1 for those who left with
        the officer (node 33)

    Source: Zachary 1977.
    """
    arrays = _arrays()
    return _both_ways(34, arrays["karate"]), arrays["club"].astype(np.int64)


def les_miserables():
    """Load a graph of the 77 characters of Les Misérables.

    Two characters are tied if they meet in at least one chapter.

    Returns:
        (graph, names). Each of the 254 ties is stored as two edges, and `graph.edge_attr` [508]
        float32 is the number of chapters in which the two characters meet. There are no node
        features. names is the list of the characters' names, in the order of the nodes

    Source: Knuth 1993.
    """
    arrays = _arrays()
    pairs = arrays["novel"]
    return _both_ways(77, pairs[:, :2], pairs[:, 2]), arrays["names"].tolist()


def _both_ways(num_nodes, pairs, weights=None):
    a, b = pairs.T.astype(np.int64)
    if weights is not None:
        weights = np.tile(weights.astype(np.float32), 2)
    return Graph(np.concatenate([a, b]), np.concatenate([b, a]), num_nodes, edge_attr=weights)


@cache
def _arrays():
    with np.load(Path(__file__).with_name("networks.npz")) as file:
        return dict(file)


# ---------------------------------------------------------------- generated


def stochastic_block_model(sizes=(20, 20, 20), inside=0.3, between=0.03, rng=None):
    """Generate a random graph in which ties depend on whether two nodes are in the same group.

    Every tie between two nodes is stored as two edges. No node has a tie to itself.

    Args:
        sizes     list with the number of nodes in each group
        inside    probability of a tie between two nodes of the same group
        between   probability of a tie between two nodes of different groups
        rng       seed or numpy.random.Generator, or None for the default generator

    Returns:
        (graph, group), where group [N] int64 is the index of each node's group, in ascending order

    Raises:
        TypeError: a probability is not a number
        ValueError: a probability is not between 0 and 1, or sizes is not a list of one or more
            whole numbers >= 0

    Source: Holland et al. 1983.
    """
    check_range("stochastic_block_model", 0, 1, inside=inside, between=between)
    numbers = np.asarray(sizes)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or (numbers < 0).any():
        raise ValueError(
            "stochastic_block_model: sizes must be a list of one or more whole numbers >= 0, the "
            f"number of nodes in each group, got {sizes!r}"
        )
    rng, group = generator(rng), np.repeat(np.arange(len(sizes)), sizes)
    N = len(group)
    p = np.where(group[:, None] == group, inside, between)
    a, b = np.nonzero(np.triu(rng.random((N, N)) < p, 1))
    return _both_ways(N, np.stack([a, b], axis=1)), group


def distractors(num_nodes=200, neighbours=(4, 12), informed=2, classes=3, noise=0.3, rng=None):
    """Generate a graph in which a few neighbours of each node show its class.

    The other neighbours are distractors. About a third of the nodes are flagged: their features
    contain their own class, and their flag is 1. The features of all other nodes contain a random
    class, and their flag is 0. Each node receives messages from at least neighbours[0] and at most
    neighbours[1] nodes. Of these nodes, `informed` are flagged and have the class of the receiver,
    and the rest are not flagged. Weights that depend only on the sender solve the task, but weights
    that depend on the degrees do not.

    Args:
        num_nodes    number of nodes
        neighbours   (smallest, largest) number of nodes from which a node receives messages
        informed     number of these nodes that are flagged and have the class of the receiver
        classes      number of classes
        noise        standard deviation of the noise added to the features, except the flag
        rng          seed or numpy.random.Generator, or None for the default generator

    Returns:
        (graph, y, asked). graph.x [N, classes + 1] float32 contains the node's own class or a
        random one as a one-hot row with noise, and then the flag. y [N] int64 contains the true
        classes, and asked [N] bool is True for the nodes to classify, which are not flagged

    Raises:
        TypeError: num_nodes, informed or classes is not a whole number, neighbours is not a pair
            of whole numbers, or noise is not a number
        ValueError: not 0 <= informed <= neighbours[0] <= neighbours[1], classes is below 1, noise
            is negative, infinite or NaN, or num_nodes is too small for these classes and neighbours
    """
    check_range("distractors", 0, whole=True, num_nodes=num_nodes, informed=informed)
    check_range("distractors", 1, whole=True, classes=classes)
    check_range("distractors", 0, below=math.inf, noise=noise)
    check_interval("distractors", "neighbours", neighbours, 0, whole=True)
    if informed > neighbours[0]:
        raise ValueError(
            f"distractors: expected informed <= neighbours[0], got "
            f"informed={informed}, neighbours={neighbours}"
        )
    # with this many nodes, there are enough different senders
    least = classes * max(3 * informed + 3, neighbours[1] - informed + 2)
    if num_nodes < least:
        raise ValueError(
            f"distractors: expected num_nodes >= {least} for classes={classes}, "
            f"informed={informed} and neighbours={neighbours}, got num_nodes={num_nodes}"
        )
    rng, node = generator(rng), np.arange(num_nodes)
    y, knows = rng.permutation(node % classes), np.zeros(num_nodes, bool)
    for c in range(classes):
        members = np.flatnonzero(y == c)
        knows[rng.choice(members, len(members) // 3, replace=False)] = True
    carried = np.where(knows, y, rng.integers(0, classes, num_nodes))
    x = np.concatenate([np.eye(classes)[carried], knows[:, None]], axis=1)
    x[:, :classes] += noise * rng.normal(size=(num_nodes, classes))
    degree, src = rng.integers(neighbours[0], neighbours[1] + 1, num_nodes), []
    for j in range(num_nodes):
        tell = rng.choice(
            np.flatnonzero(knows & (y == y[j]) & (node != j)), informed, replace=False
        )
        others = np.flatnonzero(~knows & (node != j))
        src += [tell, rng.choice(others, degree[j] - informed, replace=False)]
    dst = np.repeat(node, degree.astype(np.intp))  # the browser counts with 32 bits
    return Graph(np.concatenate(src), dst, num_nodes, x=x.astype(np.float32)), y, ~knows
