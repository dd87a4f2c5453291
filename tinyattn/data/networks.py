"""Two small real networks: the members of a karate club, and the characters of a novel."""

from functools import cache
from pathlib import Path

import numpy as np

from tinyattn.graph import Graph


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
