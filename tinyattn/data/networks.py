"""Two small real networks, a karate club and the characters of a novel; and generated ones."""

from functools import cache
from pathlib import Path

import numpy as np

from tinyattn.graph import Graph
from tinyattn.random import generator


def karate_club():
    """34 members of a karate club, 78 ties, and the half each went to when the club split.

    Gives (graph, club): every tie is two edges; club [34] int, 0 for those who stayed with the
    instructor (node 0), 1 for those who left with the officer (node 33). No node features.
    Source: Zachary 1977.
    """
    arrays = _arrays()
    return _both_ways(34, arrays["karate"]), arrays["club"].astype(np.int64)


def les_miserables():
    """77 characters of Les Misérables, 254 pairs that meet in a chapter.

    Gives (graph, names): every pair is two edges; `graph.edge_attr` [508] float32 is the number of
    chapters in which the two meet; names is the list of the characters. Source: Knuth 1993.
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


def blocks(sizes=(20, 20, 20), inside=0.3, between=0.03, rng=None):
    """A random graph of groups that keep to themselves (stochastic block model), generated.

    Two nodes of one group are tied with probability `inside`, of two groups with `between`; a tie
    is two edges. Gives (graph, group), group [N] int. Source: Holland et al. 1983.
    """
    for name, p in (("inside", inside), ("between", between)):
        if not 0 <= p <= 1:
            raise ValueError(f"blocks: {name} must be a probability, got {p}")
    rng, group = generator(rng), np.repeat(np.arange(len(sizes)), sizes)
    N = len(group)
    p = np.where(group[:, None] == group, inside, between)
    a, b = np.nonzero(np.triu(rng.random((N, N)) < p, 1))
    return _both_ways(N, np.stack([a, b], axis=1)), group


def distractors(num_nodes=200, neighbours=8, told=2, classes=3, noise=0.3, rng=None):
    """Every node must find out its class from `told` of its neighbours; the others only disturb.

    Generated. A node that tells carries the receiver's class and a sign that says so; a distractor
    carries a class at random, and no sign. Gives (graph, y): graph.x [N, classes + 1] float32 are
    the classes of the senders as one-hot rows with noise, and the sign; y [num_nodes] int the
    class of each receiver. Receivers come first, their own rows are all noise; then the senders,
    `neighbours` for each receiver. Weights that depend on the sender alone solve it, equal ones
    do not.
    """
    if not 0 <= told <= neighbours:
        raise ValueError(f"distractors: told must be 0 to {neighbours} neighbours, got {told}")
    rng = generator(rng)
    y = rng.integers(0, classes, num_nodes)
    tells = np.arange(neighbours) < told  # [K]
    carried = np.where(tells, y[:, None], rng.integers(0, classes, (num_nodes, neighbours)))
    x = np.zeros((num_nodes * (1 + neighbours), classes + 1))
    x[num_nodes:, :classes] = np.eye(classes)[carried.ravel()]
    x[num_nodes:, classes] = np.tile(tells, num_nodes)
    x[:, :classes] += noise * rng.normal(size=(len(x), classes))
    src = np.arange(num_nodes, len(x))
    dst = np.repeat(np.arange(num_nodes), neighbours)
    return Graph(src, dst, len(x), x=x.astype(np.float32)), y
