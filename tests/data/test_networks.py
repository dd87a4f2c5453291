"""The networks that are shipped, and their drawing."""

import numpy as np
import pytest

from tinyattn import data, graph
from tools.data.make_networks import make


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


def test_blocks_keep_to_themselves():
    g, group = data.stochastic_block_model((30, 20), 0.5, 0.05, rng=0)
    assert g.num_nodes == 50 and group.tolist() == [0] * 30 + [1] * 20
    same = group[g.src] == group[g.dst]
    pairs = np.array([30 * 29 + 20 * 19, 2 * 30 * 20])
    np.testing.assert_allclose([same.sum(), (~same).sum()] / pairs, [0.5, 0.05], atol=0.05)
    again = data.stochastic_block_model((30, 20), 0.5, 0.05, rng=0)[0]
    assert np.array_equal(g.adjacency(), again.adjacency())


def test_distractors_hide_the_class_from_weights_of_the_degrees():
    g, y, asked = data.distractors(600, noise=0.0, rng=0)
    assert g.x.shape == (600, 4) and set(g.in_degree) == set(range(4, 13))
    assert (g.src != g.dst).all()
    assert np.array_equal(asked, g.x[:, 3] == 0) and np.bincount(y).tolist() == [200] * 3
    assert np.array_equal(g.x[~asked, :3].argmax(axis=1), y[~asked])

    def accuracy(weight):
        total = graph.propagate(g.x, g, lambda x_j, x_i: weight(x_i) * x_i[:, :3]).numpy()
        return np.mean((total.argmax(axis=1) == y)[asked])

    assert accuracy(lambda x_i: x_i[:, 3:]) == 1
    assert accuracy(lambda x_i: 1) < 0.8
    assert accuracy(lambda x_i: 1 / np.sqrt(g.in_degree[g.src])[:, None]) < 0.8
    again = data.distractors(600, noise=0.0, rng=0)[0]
    assert np.array_equal(g.src, again.src)
    for informed in (0, 4, 8):
        few = 3 * max(3 * informed + 3, 10 - informed)
        g, _, _ = data.distractors(few, (8, 8), informed, rng=0)
        assert len(np.unique(np.stack([g.src, g.dst]), axis=1).T) == 8 * few


def test_layout_keeps_friends_close():
    pytest.importorskip("matplotlib")
    from tinyattn import plot

    g, _ = data.karate_club()
    for dimensions in (2, 3):
        x = plot.layout(g, dimensions)
        assert np.array_equal(x, plot.layout(g, dimensions)) and np.isfinite(x).all()
        d = np.linalg.norm(x[:, None] - x[None], axis=-1)
        assert d[g.src, g.dst].mean() < 0.7 * d.mean()
    assert plot.layout(graph.Graph([], [], 0)).shape == (0, 2)


def test_drawing():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from tinyattn import plot

    g, club = data.karate_club()
    flat = plot.graph(g, classes=club, names=["stayed", "left"], title="the club")
    deep = plot.graph(g, plot.layout(g, 3), labels=[""] * 33 + ["officer"])
    assert len(flat.ax.collections[0].get_segments()) == 78
    assert flat.ax.get_title() == "the club" and deep.ax.name == "3d"
    plot.graph(graph.Graph([0], [0], 2))  # nothing but a loop and a node alone
    plot.graph(graph.Graph([], [], 0))
    arrows = plot.graph(graph.Graph([0, 1, 1], [1, 0, 2], 3), arrows=True, widths=[1, 2, 0])
    assert len(arrows.ax.patches) == 3
    novel, _ = data.les_miserables()
    shaded = plot.graph(
        novel, values=novel.in_degree, widths=novel.edge_attr, value_label="friends"
    )
    widths = shaded.ax.collections[0].get_linewidths()
    assert len(widths) == 254 and max(widths) == 6 and min(widths) == pytest.approx(0.3 + 5.7 / 31)
    near = np.linspace(0, 1, 34)[:, None] * [1, 0.1]
    names = plot.graph(g, near, labels=[""] * 15 + ["Thenardier", "Javert"] + [""] * 17)
    for picture in (flat, deep, arrows, shaded, names):
        picture.figure.canvas.draw()
    one, other = (text.get_window_extent() for text in names.ax.texts)
    assert not one.overlaps(other)
    matplotlib.pyplot.close("all")
    matplotlib.pyplot.close("all")
