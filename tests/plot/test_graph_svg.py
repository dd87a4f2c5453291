"""Pictures of computation graphs: what their boxes say, and that nothing lies on anything else."""

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn, plot
from tinyattn.plot import graph_layout as lay

SVG = "{http://www.w3.org/2000/svg}"


def drawn(tensor, names=None, **options):
    """Texts of each node, number of arrows, and the parsed picture."""
    root = ElementTree.fromstring(plot.computation_graph(tensor, names, **options)._repr_svg_())
    nodes = [[t.text for t in g.iter(f"{SVG}text")] for g in root.iter(f"{SVG}g")]
    arrows = [p for p in root.iter(f"{SVG}path") if p.get("fill") != "none"]
    return nodes, len(arrows), root


def test_a_graph_shows_names_values_and_operations():
    x, w = ta.tensor(2.0, requires_grad=True), ta.tensor(-3.0, requires_grad=True)
    y = np.tanh(x * w + 5)
    nodes, arrows, _ = drawn(y, {"x": x, "w": w, "y": y})
    assert ["x", "2"] in nodes
    assert ["w", "−3"] in nodes
    assert ["×", "−6"] in nodes
    assert ["5"] in nodes
    assert ["+", "−1"] in nodes
    assert ["tanh"] in nodes
    assert ["y", "−0.7616"] in nodes
    assert arrows == 6


def test_a_graph_shows_gradients_once_there_are_some():
    x = ta.tensor(3.0, requires_grad=True)
    big = ta.tensor(np.ones((2, 8), np.float32), requires_grad=True)
    y = (x * big).sum()
    y.backward(create_graph=True)
    nodes, _, _ = drawn(y, {"x": x, "big": big})
    assert ["x", "3", "grad 16"] in nodes
    assert ["big", "[2, 8]", "grad of length 12"] in nodes
    nodes, _, _ = drawn(y, {"x": x}, values=False)
    assert ["x", "[]"] in nodes


def test_a_graph_shows_shapes_dtypes_and_options():
    x = ta.tensor(np.ones((5, 6)), requires_grad=True)
    y = np.einsum("ij,kj->ik", x, x)[1:, None].sum(axis=-1)
    nodes, arrows, _ = drawn(y)
    assert ["[5, 6] float64"] in nodes
    assert ["einsum", "ij,kj→ik", "[5, 5] float64"] in nodes
    assert ["[ ]", "[1:, None]", "[4, 1, 5] float64"] in nodes
    assert ["sum", "axis −1"] in nodes
    assert arrows == 5


def test_a_named_result_in_the_middle_gets_a_box():
    x = ta.tensor(2.0, requires_grad=True)
    h = x * x
    nodes, arrows, _ = drawn(h + 1, {"h": h})
    assert ["h", "4"] in nodes
    assert ["×"] in nodes
    assert arrows == 2 + 1 + 2 + 1


def test_a_module_gives_the_names_of_its_parameters():
    layer = nn.Linear(3, 2, rng=0)
    nodes, _, _ = drawn(layer(ta.tensor([[1.0, 2.0, 3.0]])).sum(), layer)
    assert {"weight", "bias"} <= {n[0] for n in nodes}


def test_a_single_tensor_is_a_graph_of_one_box():
    nodes, arrows, _ = drawn(ta.tensor(1.0))
    assert nodes == [["1"]]
    assert arrows == 0


def test_names_are_escaped():
    x = ta.tensor(1.0, requires_grad=True)
    nodes, _, _ = drawn(x * 2, {"<x & y>": x})
    assert ["<x & y>", "1"] in nodes


def test_too_many_nodes_are_refused_and_200_are_not():
    x = y = ta.tensor(1.0, requires_grad=True)
    for _ in range(198):
        y = np.sin(y)
    drawn(y)  # with x and the result 200
    with pytest.raises(ValueError, match=r"200 nodes \(199 operations\)"):
        plot.computation_graph(np.sin(y))
    assert x.grad is None


def test_drawing_is_the_same_each_time_and_saved_as_svg(tmp_path):
    x = ta.tensor(np.ones((2, 2)), requires_grad=True)
    y = (x @ x + x).sum()
    picture = plot.computation_graph(y)
    assert picture.svg == plot.computation_graph(y).svg
    assert picture.save(tmp_path / "g.svg").read_text(encoding="utf-8") == picture.svg
    assert repr(picture).startswith("<computation graph: 3 operations, 2 tensors;")


def random_graph(n, seed):
    """Sizes and edges of a graph in which every node but the first reads one to three others."""
    rng = np.random.default_rng(seed)
    edges = [
        (int(u), v, slot)
        for v in range(1, n)
        for slot, u in enumerate(rng.integers(max(0, v - 12), v, rng.integers(0, 4)))
    ]
    return [(int(w), int(h)) for w, h in rng.integers(30, 120, (n, 2))], edges


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 1), (12, 2), (40, 3), (120, 4)])
def test_no_two_nodes_overlap_and_edges_run_to_the_right(n, seed):
    sizes, edges = random_graph(n, seed)
    centres, lines, (width, height) = lay.layout(sizes, edges, free={3, 5})
    boxes = [
        (x - w / 2, x + w / 2, y - h / 2, y + h / 2)
        for (x, y), (w, h) in zip(centres[:n], sizes, strict=True)
    ]
    tiny = 1e-6
    for a, b in itertools.combinations(boxes, 2):
        apart = a[1] <= b[0] + tiny or b[1] <= a[0] + tiny
        assert apart or a[3] <= b[2] + tiny or b[3] <= a[2] + tiny
    for left, right, top, bottom in boxes:
        assert left >= -tiny
        assert right <= width + tiny
        assert top >= -tiny
        assert bottom <= height + tiny
    for (u, v, _), points in zip(edges, lines, strict=True):
        assert points[0] == pytest.approx((boxes[u][1], centres[u][1]))
        assert points[-1][0] == pytest.approx(boxes[v][0])
        assert boxes[v][2] <= points[-1][1] <= boxes[v][3]
        assert [x for x, _ in points] == sorted([x for x, _ in points])


def test_inputs_arrive_in_their_order_where_it_matters():
    edges = [(0, 2, 1), (1, 2, 0), (2, 3, 0)]
    _, lines, _ = lay.layout([(40, 30)] * 4, edges)
    assert lines[1][-1][1] < lines[0][-1][1]  # slot 0 on top


def test_ranks_are_longest_paths_and_leaves_stand_by_their_reader():
    assert lay.ranks(5, [(0, 1, 0), (1, 3, 0), (2, 3, 1), (0, 4, 0), (3, 4, 1)]) == [0, 1, 1, 2, 3]


def test_crossings_are_counted_and_removed():
    links = [(0, 3, 0), (1, 2, 0)]
    assert lay.crossings([[0, 1], [2, 3]], links) == 1
    assert lay.crossings(lay.order([0, 0, 1, 1], links), links) == 0


def test_pushing_apart_is_the_least_squares_solution():
    # two that want the same place share the way; a third that is far away does not move
    assert lay._push_apart([0, 0, 100], [1, 1, 1], [10, 10]) == [-5, 5, 100]
    assert lay._push_apart([0, 0], [3, 1], [8]) == [-2, 6]
