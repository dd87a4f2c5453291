"""Mistakes with figures and films: the error that each must raise."""

from importlib.util import find_spec

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import data, plot, training
from tinyattn.plot import graph_layout as lay

KARATE, CLUB = data.karate_club()
needs_matplotlib = pytest.mark.skipif(find_spec("matplotlib") is None, reason="without figures")


@pytest.fixture(autouse=True)
def no_window():
    if find_spec("matplotlib") is None:
        yield
        return
    import matplotlib

    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@needs_matplotlib
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.loss_curve({}), "histories is empty"),
        (
            lambda: plot.loss_curve([1, 2], smooth=3),
            "smooth <= 2, the number of losses in histories, got smooth=3",
        ),
        (lambda: plot.loss_curve([1, 2], smooth=0), "smooth >= 1, got smooth=0"),
        (
            lambda: plot.curves([1, 2], {"a": [1, 2, 3]}),
            r"x has 2 values, but ys\['a'\] has 3 in its last",
        ),
        (
            lambda: plot.curves([1, 2], [1, 2], log=True),
            '"xy", or "" for none, got True',
        ),
        (lambda: plot.curves(["a"], [1]), "x must be real numbers, got text such as 'a'"),
        (lambda: plot.bars({}), "at least one entry"),
        (lambda: plot.bars({"a": []}), r"values\['a'\], a list of repeats, is empty"),
        (lambda: plot.bars({"a": 1}, {"a": -1}), r"expected errors >= 0, got errors\['a'\]=-1"),
        (lambda: plot.bars({"a": 1}, {"a": "x"}), r"errors\['a'\] must be real numbers, got text"),
        (lambda: plot.bars({"a": 1}, digits=-1), "0 <= digits, got digits=-1"),
        (lambda: plot.bars({"a": 1}, {"b": 1}), "errors must have the same names"),
        (lambda: plot.bars({"a": 1}, highlight="b"), "one of the names .* got 'b'"),
        (lambda: plot.heatmap([1, 2]), r"values must have 2 or 3 axes, got shape \(2,\)"),
        (lambda: plot.heatmap(np.zeros((0, 2))), "there is nothing to draw"),
        (
            lambda: plot.heatmap(np.eye(2), ["a"]),
            r"rows must have 2 entries, one for each row, got 1: \['a'\]",
        ),
        (lambda: plot.heatmap(np.eye(2), columns=3), "columns must be a list with an entry for"),
        (
            lambda: plot.heatmap(np.eye(2), titles=["a", "b"]),
            "titles must have 1 entry, one for each matrix, got 2",
        ),
        (lambda: plot.heatmap([[1, 2], [3]]), "values must form one array, but the parts have"),
        (lambda: plot.heatmap([[[1, 2], [3]]]), r"values\[0\] must form one array"),
        (lambda: plot.heatmap(np.eye(2), vmin=2), r"got vmin=2 and vmax=1 \(the largest"),
        (
            lambda: plot.heatmap(np.eye(2), vmax=-1),
            r"vmin=0 \(the smallest value\) and vmax=-1",
        ),
        (lambda: plot.heatmap(np.eye(2), center=2, vmin=3, vmax=1), "vmin=3 and vmax=1$"),
        (lambda: plot.heatmap(np.eye(2), mask="causal"), "mask must be bool, got text such as"),
        (lambda: plot.heatmap(np.eye(2), digits=-1), "0 <= digits, got digits=-1"),
        (
            lambda: plot.heatmap(np.eye(2), mask=np.ones((3, 2), bool)),
            r"mask must have the shape of the matrix, \(2, 2\), got \(3, 2\)",
        ),
        (
            lambda: plot.heatmap(np.eye(2), mask=np.ones((2, 2, 2), bool)),
            "mask must be one matrix, got 2 matrices",
        ),
        (lambda: plot.heatmap(np.eye(2), mask=np.eye(2)), "mask must be bool"),
        (
            lambda: plot.heatmap([np.eye(2)] * 2, mask=[np.ones((2, 2), bool)]),
            r"each of the 2 matrices, got 1 entry. Pass mask\[0\] to use",
        ),
        (lambda: plot.heatmap({"a": [1, 2]}), r"values\['a'\] must have 2 axes, got shape \(2,\)"),
        (
            lambda: plot.heatmap(np.eye(2), mask=np.ones(2, bool)),
            "mask must have 2 or 3 axes",
        ),
        (lambda: plot.heatmap(np.zeros((2, 2, 2)), ax=plot.figure().ax), "cannot hold 2 matrices"),
        (lambda: plot.attention_map([0.1, 0.9]), "attention_map: weights must have 2 or 3 axes"),
        (lambda: plot.attention_map([]), "attention_map: weights is empty"),
        (
            lambda: plot.attention_map(np.zeros((2, 2, 3, 3))),
            r"got shape \(2, 2, 3, 3\). Choose one example, such as weights\[0\]",
        ),
        (lambda: plot.attention_map(np.eye(2), 2), "tokens must be a list .* each query, got 2"),
        (lambda: plot.attention_map(np.eye(2), None, ["a"]), "keys must have 2 entries, one for"),
        (lambda: plot.attention_map(np.eye(2), mask=np.eye(2)), "attention_map: mask must be bool"),
        (
            lambda: plot.attention_map(np.zeros((2, 2, 2)), ax=plot.figure().ax),
            "cannot hold 2 heads",
        ),
        (lambda: plot.attention_map(np.eye(2), vmax=-1), "0 <= vmax, got vmax=-1"),
        (
            lambda: plot.attention_lines(np.eye(2), ["a"]),
            r"\(1, 1\), because there are labels of 1 query and 1 key, got shape \(2, 2\)$",
        ),
        (
            lambda: plot.attention_lines(np.zeros((2, 3)), ["a", "b"]),
            r"got shape \(2, 3\). Pass the labels of the 3 keys as keys=",
        ),
        (
            lambda: plot.attention_lines(np.eye(2), ["a", "b"], query=2),
            "a whole number with -2 <= query < 2, got query=2",
        ),
        (
            lambda: plot.attention_lines(np.zeros((1, 2, 2)), ["a", "b"]),
            r"got shape \(1, 2, 2\). Choose one head",
        ),
        (
            lambda: plot.scatter(np.zeros((2, 3))),
            r"points must be \[N, 2\] with N >= 1, got shape \(2, 3\)",
        ),
        (
            lambda: plot.scatter(np.eye(2), [0]),
            r"classes must have shape \(2,\), with one class for each point, got shape \(1,\)",
        ),
        (lambda: plot.scatter(np.eye(2), np.eye(2)), r"Write classes.argmax\(axis=1\)"),
        (lambda: plot.scatter(np.eye(2), ["a", "b"]), "text such as 'a'. Write names, classes ="),
        (lambda: plot.scatter(np.eye(2), names=[]), "an entry for class 0, got 0 entries"),
        (lambda: plot.scatter(np.eye(2), [0, 0.5]), "whole numbers >= 0"),
        (
            lambda: plot.scatter(np.eye(2), [0, 2], names=["a"]),
            "each class from 0 to 2, got 1 entry",
        ),
        (
            lambda: plot.scatter(np.eye(2), [0, 1], names={"a", "b"}),
            "names must be a list with a name for each class, got {'",
        ),
        (lambda: plot.decision_boundary(lambda p: 3.0, np.eye(2), [0, 1]), "it returned shape"),
        (lambda: plot.decision_boundary(lambda p: None, np.eye(2), [0, 1]), "returned NoneType"),
        (lambda: plot.decision_boundary(3, np.eye(2), [0, 1]), "predict must be a function"),
        (
            lambda: plot.decision_boundary(lambda p: np.full(len(p), -1), np.eye(2), [0, 1]),
            "it returned the class -1",
        ),
        (
            lambda: plot.decision_boundary(lambda p: p, [[0, 1], [np.nan, 0]], [0, 1]),
            r"points must be finite, got \[nan, 0.0\] at index 1",
        ),
        (lambda: plot.images(np.zeros((0, 8, 8))), "at least one image"),
        (
            lambda: plot.images(np.zeros((2, 8, 8)), ["a"]),
            "titles must have 2 entries, one for each image, got 1",
        ),
        (
            lambda: plot.images(np.zeros((2, 8, 8)), {"a", "b"}),
            "titles must be a list with an entry for each image, got {'",
        ),
        (lambda: plot.images(np.zeros((2, 8, 8)), columns=-1), "1 <= columns, got columns=-1"),
        (lambda: plot.images(np.zeros((2, 8, 8)), columns=0), "1 <= columns, got columns=0"),
        (lambda: plot.images(np.zeros((2, 8, 8)), columns=1.5), "columns must be a whole number"),
        (lambda: plot.images(np.zeros((8, 8))), r"Write images\[None\] for a single image"),
        (lambda: plot.images(np.zeros((2, 3, 8, 8))), r"images.transpose\(0, 2, 3, 1\)"),
        (lambda: plot.images(np.zeros((2, 1, 8, 8))), r"Write images\[:, 0\] for grey images"),
        (lambda: plot.figure(0), "plot.figure: expected 1 <= rows, got rows=0"),
        (lambda: plot.figure(size=3), r"size must be a pair of numbers \(width, height\)"),
        (lambda: plot.figure(size=(0, 1)), "both above 0"),
        (lambda: plot.figure(size=np.array([3, 0])), "both above 0"),
        (lambda: plot.scatter(np.eye(2), size=0), "size must be a pair .* got size=0"),
        (lambda: plot.layout(3), "plot.layout: graph must be a graph.Graph, got int"),
        (lambda: plot.layout(KARATE, 0), "1 <= dimensions, got dimensions=0"),
        (
            lambda: plot.loss_curve([[1, 2], [3]]),
            "elements of type list. Pass several runs as a dictionary {name: losses}",
        ),
        (lambda: plot.loss_curve(np.ones((2, 3))), r"got shape \(2, 3\). Pass several runs as a"),
        (lambda: plot.loss_curve([training.History()]), "elements of type History. Pass several"),
        (lambda: plot.curves([1], [1, 2]), "x has 1 value, .* last axis. Give both the same"),
        (lambda: plot.computation_graph(ta.tensor(1.0), ["x"]), "names must be a dictionary"),
        (lambda: plot.computation_graph(ta.tensor(1.0), {"x": 3}), "got int for 'x'"),
        (lambda: plot.computation_graph(3.0), "tensor must be a Tensor, got float"),
    ],
)
def test_errors_say_what_came(call, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        call()


def frames(F=3, N=20):
    return np.random.default_rng(0).normal(size=(F, N, 2))


@needs_matplotlib
def test_wrong_clouds():
    with pytest.raises(ValueError, match=r"animate_points: frames must be \[F, N, 2\]"):
        plot.animate_points(np.zeros((2, 5, 3)))
    with pytest.raises(ValueError, match=r"shape \(2, 5\). Write frames.swapaxes\(-1, -2\)"):
        plot.animate_points(np.zeros((2, 5)))
    with pytest.raises(ValueError, match=r"classes must have shape \(20,\), with one class"):
        plot.animate_points(frames(), np.zeros(19, int))
    with pytest.raises(ValueError, match="titles must have 3 entries, one for each frame"):
        plot.animate_points(frames(), titles=["a", "b"])
    with pytest.raises(ValueError, match=r"weights must have shape \(3, 20\)"):
        plot.animate_points(frames(), weights=np.zeros(20))
    with pytest.raises(ValueError, match="whole numbers, got 0.5 at index 0"):
        plot.animate_points(frames(), np.full(20, 0.5))
    with pytest.raises(ValueError, match="cannot hold 3 frames"):
        plot.animate_points(frames(), ax=plot.figure().ax)


@needs_matplotlib
def test_wrong_film(tmp_path):
    with pytest.raises(ValueError, match="end in .gif"):
        plot.film(lambda i, ax: None, 2, tmp_path / "a.png")
    with pytest.raises(ValueError, match="a whole number frames >= 1"):
        plot.film(lambda i, ax: None, 0, tmp_path / "a.gif")
    with pytest.raises(TypeError, match="draw must be a function"):
        plot.film(3, 2, tmp_path / "a.gif")
    with pytest.raises(ValueError, match="0 < per_second, got per_second=0"):
        plot.film(lambda i, ax: None, 2, tmp_path / "a.gif", per_second=0)


def test_a_forgotten_graph_says_how_to_keep_it():
    x = ta.tensor(1.0, requires_grad=True)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match=r"Draw it before backward\(\), or keep it with"):
        plot.computation_graph(y)
    with pytest.raises(RuntimeError, match=r"Draw it before"):
        plot.computation_graph(y + 1)


@needs_matplotlib
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            [np.zeros((3, 2))],
            {},
            r"positions must be \[34, 2\] or \[34, 3\], got shape \(3, 2",
        ),
        ([], {"classes": [0, 1]}, r"classes must have shape \(34,\), with one class for each node"),
        ([], {"classes": -CLUB}, "expected classes >= 0, got -1 at index"),
        ([], {"classes": [[0], [0, 1]]}, "classes must form one array, but the parts have"),
        ([], {"classes": CLUB * 0.5}, "must be whole numbers, got float64"),
        ([], {"labels": ["a"]}, "labels must have 34 entries, one for each node, got 1"),
        ([], {"classes": CLUB, "names": ["a"]}, "an entry for each class from 0 to 1, got 1"),
        ([], {"classes": CLUB, "values": CLUB}, "by classes or by values, not by both"),
        ([], {"widths": [1.0]}, "156 numbers >= 0, one for each edge, got 1 number$"),
        ([], {"values": np.zeros(3)}, "values must have 34 entries, one for each node, got 3"),
        (
            [],
            {"widths": np.full(156, -1.0)},
            "156 numbers >= 0, one for each edge, got -1 at index 0",
        ),
        ([plot.layout(KARATE, 3)], {"arrows": True}, "arrows can only be drawn in two dimensions"),
    ],
)
def test_a_drawing_of_a_graph_explains_what_it_refuses(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plot.graph(KARATE, *arguments, **options)


def test_too_many_nodes_are_counted():
    y = ta.tensor(1.0, requires_grad=True)
    for _ in range(199):
        y = np.sin(y)
    with pytest.raises(ValueError, match=r"more than 200 nodes \(199 operations\), too many"):
        plot.computation_graph(y)


def test_a_graph_is_saved_as_svg(tmp_path):
    x = ta.tensor(1.0, requires_grad=True)
    with pytest.raises(ValueError, match=r"end in .svg, got"):
        plot.computation_graph(x * x).save(tmp_path / "g.png")


def test_edges_of_ranks_lead_forward():
    with pytest.raises(ValueError, match="from a smaller to a larger"):
        lay.ranks(2, [(1, 0, 0)])


@needs_matplotlib
def test_a_figure_is_drawn_into_an_axes():
    with pytest.raises(TypeError, match="ax must be a matplotlib Axes"):
        plot.loss_curve([3, 2], ax=3)
    with pytest.raises(TypeError, match="such as picture.axes.0., got Figure"):
        plot.loss_curve([3, 2], ax=plot.figure().figure)


@needs_matplotlib
def test_quantiles_are_in_order():
    with pytest.raises(ValueError, match="0 <= quantiles.0. <= quantiles.1. <= 1, got"):
        plot.curves([1, 2], {"a": [[0, 1], [1, 2]]}, quantiles=(0.75, 0.25))
