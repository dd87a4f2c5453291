"""Mistakes with figures and films: the error that each must raise."""

from importlib.util import find_spec

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import data, plot
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
            "smooth <= 2, the number of values, got smooth=3",
        ),
        (lambda: plot.loss_curve([1, 2], smooth=0), "smooth >= 1, got smooth=0"),
        (lambda: plot.curves([1, 2], {"a": [1, 2, 3]}), r"x has 2 values, but ys\['a'\] has 3"),
        (
            lambda: plot.curves([1, 2], [1, 2], log=True),
            '"xy", or "" for none, got True',
        ),
        (lambda: plot.curves(["a"], [1]), "expected real numbers, got <U1"),
        (lambda: plot.bars({}), "at least one entry"),
        (lambda: plot.bars({"a": []}), "repeats for 'a' is empty"),
        (lambda: plot.bars({"a": 1}, {"b": 1}), "errors must have the same names"),
        (lambda: plot.bars({"a": 1}, highlight="b"), "one of the names .* got 'b'"),
        (lambda: plot.heatmap([1, 2]), r"expected an array with 2 or 3 axes, got shape \(2,\)"),
        (lambda: plot.heatmap(np.zeros((0, 2))), "there is nothing to draw"),
        (lambda: plot.heatmap(np.eye(2), ["a"]), r"2 rows need 2 names, got 1: \['a'\]"),
        (lambda: plot.heatmap(np.eye(2), titles=["a", "b"]), "each of the 1 matrices, got 2"),
        (lambda: plot.heatmap(np.eye(2), mask=np.eye(2)), "mask must be bool"),
        (
            lambda: plot.heatmap(np.eye(2), mask=np.ones(2, bool)),
            "expected an array with 2 or 3 axes",
        ),
        (lambda: plot.heatmap(np.zeros((2, 2, 2)), ax=plot.figure().ax), "cannot hold 2 matrices"),
        (lambda: plot.attention_lines(np.eye(2), ["a"]), r"\(1, 1\), got \(2, 2\)"),
        (
            lambda: plot.attention_lines(np.eye(2), ["a", "b"], query=2),
            "query must be an index of the 2 queries",
        ),
        (
            lambda: plot.scatter(np.zeros((2, 3))),
            r"points must be \[N, 2\] with N >= 1, got shape \(2, 3\)",
        ),
        (lambda: plot.scatter(np.eye(2), [0]), "each of the 2 points, got 1"),
        (lambda: plot.scatter(np.eye(2), [0, 0.5]), "whole numbers >= 0"),
        (
            lambda: plot.scatter(np.eye(2), [0, 2], names=["a"]),
            "each class up to 2, got 1",
        ),
        (lambda: plot.decision_boundary(lambda p: 3.0, np.eye(2), [0, 1]), "it returned shape"),
        (lambda: plot.images(np.zeros((0, 8, 8))), "at least one image"),
        (lambda: plot.images(np.zeros((2, 8, 8)), ["a"]), "each of the 2 images, got 1"),
        (lambda: plot.images(np.zeros((2, 8, 8)), columns=-1), "at least 1, got -1"),
        (lambda: plot.images(np.zeros((2, 8, 8)), columns=0), "at least 1, got 0"),
        (lambda: plot.computation_graph(3.0), "expected a Tensor, got float"),
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
    with pytest.raises(ValueError, match=r"need classes \[20\] and weights \[3, 20\]"):
        plot.animate_points(frames(), np.zeros(19, int))
    with pytest.raises(ValueError, match="each of the 3 frames, got 2"):
        plot.animate_points(frames(), titles=["a", "b"])
    with pytest.raises(ValueError, match="cannot hold 3 frames"):
        plot.animate_points(frames(), ax=plot.figure().ax)


@needs_matplotlib
def test_wrong_film(tmp_path):
    with pytest.raises(ValueError, match="end in .gif"):
        plot.film(lambda i, ax: None, 2, tmp_path / "a.png")
    with pytest.raises(ValueError, match="expected frames >= 1"):
        plot.film(lambda i, ax: None, 0, tmp_path / "a.gif")


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
        ([], {"classes": [0, 1]}, "whole numbers >= 0, one for each of the 34 nodes"),
        ([], {"labels": ["a"]}, "labels must have 34 entries, got 1"),
        ([], {"classes": CLUB, "names": ["a"]}, "an entry for each class up to 1, got 1"),
        ([], {"classes": CLUB, "values": CLUB}, "by classes or by values, not by both"),
        ([], {"values": np.zeros(3)}, r"values must have 34 entries, got shape \(3,\)"),
        ([], {"widths": np.full(156, -1.0)}, "one for each of the 156 edges, got -1"),
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


@needs_matplotlib
def test_quantiles_are_in_order():
    with pytest.raises(ValueError, match="0 <= quantiles.0. <= quantiles.1. <= 1, got"):
        plot.curves([1, 2], {"a": [[0, 1], [1, 2]]}, quantiles=(0.75, 0.25))
