"""The networks that are shipped, and their drawing."""

import numpy as np
import pytest

from tinyattn import data, graph
from tinyattn.data.make_networks import make


def test_karate_club():
    g, club = data.karate_club()
    assert (g.num_nodes, g.num_edges) == (34, 156)
    assert club.sum() == 17 and club[0] == 0 and club[33] == 1
    A = g.adjacency()
    assert np.array_equal(A, A.T) and not np.diag(A).any()
    assert g.in_degree[[0, 33]].tolist() == [16, 17]


def test_les_miserables():
    g, names = data.les_miserables()
    assert (g.num_nodes, g.num_edges, len(names)) == (77, 508, 77)
    together = g.edge_attr[(g.src == names.index("Cosette")) & (g.dst == names.index("Valjean"))]
    assert together.tolist() == [31]
    assert names[np.argmax(g.in_degree)] == "Valjean"


def test_they_are_those_of_networkx(tmp_path):
    networkx = pytest.importorskip("networkx")
    make(tmp_path / "networks.npz")
    g, _ = data.karate_club()
    theirs = graph.from_networkx(networkx.karate_club_graph()).adjacency()
    assert np.array_equal(g.adjacency(), theirs)
