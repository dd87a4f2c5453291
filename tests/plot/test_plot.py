"""Pictures: what they show; the layout and the SVG of computation graphs."""

import itertools
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def rows_sum_to_one(*shape, seed=0):
    scores = np.exp(np.random.default_rng(seed).standard_normal(shape))
    return scores / scores.sum(axis=-1, keepdims=True)


def texts(ax):
    """What stands in the picture; names and numbers get their size when it is drawn."""
    ax.figure.draw_without_rendering()
    return [t.get_text() for t in ax.texts if t.get_visible()]


def names(axis):
    return [t.get_text() for t in axis.get_ticklabels()]


# ---------------------------------------------------------------- style and Picture


def test_style_is_taken_back():
    before = dict(plt.rcParams)
    with pytest.raises(ZeroDivisionError), plot.style():
        assert plt.rcParams["font.size"] >= 12
        raise ZeroDivisionError
    plot.curves([1, 2], [3, 4])
    assert dict(plt.rcParams) == before


def test_the_style_can_stay_on():
    with plot.style():
        wanted = plt.rcParams["font.size"]
    with plt.rc_context():
        plot.use_style()
        assert plt.rcParams["font.size"] == wanted


def test_a_picture_is_saved_and_does_not_show_itself_twice(tmp_path):
    picture = plot.curves([1, 2], [3, 4], title="up")
    assert picture._ipython_display_() is None
    assert repr(picture) == "<picture: up>"
    assert picture.save(tmp_path / "up.png") == tmp_path / "up.png"
    assert (tmp_path / "up.png").read_bytes().startswith(b"\x89PNG")
    assert picture.save(f"{tmp_path}/a") == f"{tmp_path}/a.png"
    assert picture.save(tmp_path / "b") == tmp_path / "b.png" and (tmp_path / "b.png").is_file()
    assert picture.ax is picture.axes[0]


def test_into_an_axes_that_exists():
    picture = plot.figure(1, 2)
    for ax in (picture.axes[0], plot.figure()):
        where = ax.ax if isinstance(ax, plot.Picture) else ax
        assert plot.loss_curve([3, 2, 1], ax=ax).ax is where
        assert len(where.lines) == 1


def test_a_size_may_be_an_array():
    size = np.array([3.0, 2.0])
    for picture in (
        plot.figure(size=size),
        plot.scatter(np.eye(2), size=size),
        plot.images(np.ones((2, 3, 3)), size=size),
        plot.heatmap({"a": np.eye(2), "b": np.eye(2)}, size=size),
        plot.bars({"a": 1, "b": 2}, horizontal=True, size=size),
        plot.attention_lines(np.eye(2), ["a", "b"], size=size),
    ):
        assert picture.figure.get_size_inches().tolist() == [3, 2]


def test_letters_are_legible_and_backgrounds_white():
    picture = plot.curves([1, 2], {"a": [3, 4]}, xlabel="x", ylabel="y", title="t")
    ax = picture.ax
    labels = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()]
    labels += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    assert min(t.get_fontsize() for t in labels) >= 12
    assert matplotlib.colors.to_hex(picture.figure.get_facecolor()) == "#ffffff"


def test_colours_are_the_palette_of_okabe_and_ito():
    assert sorted(plot.COLORS) == sorted(
        "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #F0E442 #000000".split()
    )


def test_without_matplotlib_the_error_says_how_to_get_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.pyplot'] = None\n"
        "import tinyattn as ta; from tinyattn import plot\n"
        "x = ta.tensor(2.0, requires_grad=True)\n"
        "assert '<svg' in plot.computation_graph(x * x).svg\n"
        "try: plot.curves([1], [2])\n"
        "except ImportError as e: print(e)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Install it with: pip install matplotlib" in ran.stdout


def test_importing_plot_does_not_import_matplotlib():
    code = "import sys; from tinyattn import plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---------------------------------------------------------------- curves and bars


def test_loss_curve_of_a_history_shows_both_losses_and_the_best_epoch():
    history = SimpleNamespace(losses=[3, 2, 1], valid=[3, 2, 2.5], best=2)
    ax = plot.loss_curve(history, title="t").ax
    train, held_out, dot = ax.lines
    np.testing.assert_array_equal(train.get_xydata(), [[1, 3], [2, 2], [3, 1]])
    np.testing.assert_array_equal(held_out.get_ydata(), [3, 2, 2.5])
    np.testing.assert_array_equal(dot.get_xydata(), [[2, 2]])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["training", "held out"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("epoch", "loss")


def test_loss_curves_by_name():
    ax = plot.loss_curve({"SGD": [4, 3], "Adam": ta.tensor([2.0, 1.0])}, log=True).ax
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["SGD", "Adam"]
    assert ax.get_yscale() == "log"


def test_a_smooth_loss_curve_is_a_mean_in_the_middle_of_its_window():
    (line,) = plot.loss_curve([1, 2, 3, 10], smooth=3).ax.lines
    np.testing.assert_allclose(line.get_xydata(), [[2, 2], [3, 5]])


def test_curves_with_repeats_have_a_band():
    ax = plot.curves([1, 2], {"a": [[1, 2], [3, 6]], "b": [0, 1]}, log="x", markers=True).ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 4])
    assert len(ax.collections) == 1
    assert ax.get_xscale() == "log"


def test_curves_show_median_and_quantiles_if_asked():
    repeats = {"a": [[0, 1], [1, 2], [2, 3], [3, 4], [100, 5]]}
    ax = plot.curves([1, 2], repeats, quantiles=(0.25, 0.75)).ax
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 3])
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1, 4)


def test_bars_are_means_with_one_standard_deviation():
    ax = plot.bars({"a": [1.0, 3.0], "b": [5.0, 5.0]}, highlight="b", ylabel="share").ax
    bars, caps = ax.containers[1].patches, ax.containers[0]
    assert [b.get_height() for b in bars] == [2, 5]
    (segments,) = [c.get_segments() for c in caps.lines[2]]
    assert segments[0][:, 1].tolist() == [1, 3]
    assert texts(ax) == ["2.00", "5.00"]
    assert bars[0].get_facecolor() != bars[1].get_facecolor()


def test_long_names_of_bars_are_turned():
    short = plot.bars({"a": 1, "b": -2}).ax
    assert {t.get_rotation() for t in short.get_xticklabels()} == {0}
    assert texts(short) == ["1.00", "−2.00"]
    assert texts(plot.bars({"a": 3049}, digits=0).ax) == ["3,049"]
    long = plot.bars({f"a long name {i}": i for i in range(9)}).ax
    long.figure.draw_without_rendering()
    assert {t.get_rotation() for t in long.get_xticklabels()} == {30}


def test_a_long_legend_stands_beside_the_curves():
    ax = plot.curves([1, 2], {f"curve {i}": [i, i] for i in range(6)}).ax
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1


def test_bars_across_have_the_first_name_on_top():
    ax = plot.bars({"a": 1, "b": 2}, {"a": 0.1, "b": 0.2}, horizontal=True, numbers=False).ax
    assert names(ax.yaxis) == ["a", "b"]
    assert ax.yaxis_inverted()
    assert texts(ax) == []


def test_the_first_bar_is_on_top_of_each_panel_that_shares_the_axis():
    picture = plot.figure(1, 2, sharey=True)
    for ax in picture.axes:
        plot.bars({"a": 1, "b": 2}, horizontal=True, ax=ax)
        assert ax.yaxis_inverted()


# ---------------------------------------------------------------- heat maps and images


def test_heatmap_numbers_and_names():
    picture = plot.heatmap([[1.0, -2.5]], ["row"], ["a", "b"], title="t", row_label="r", center=0)
    ax = picture.ax
    assert texts(ax) == ["1.00", "−2.50"]
    assert names(ax.xaxis) == ["a", "b"]
    assert names(ax.yaxis) == ["row"]
    assert ax.images[0].norm.vmin == -2.5
    assert ax.images[0].norm.vmax == 2.5
    assert texts(plot.heatmap(np.array([[1, -2], [3, 4]])).ax) == ["1", "−2", "3", "4"]
    assert texts(plot.heatmap(np.array([[True, False]])).ax) == ["1", "0"]
    assert texts(plot.heatmap([[-0.001, -0.2]]).ax) == ["0.00", "−0.20"]  # 0 has no sign


def test_heatmap_numbers_are_left_out_where_they_cannot_be_read():
    values = np.random.default_rng(0).standard_normal((40, 40))
    assert texts(plot.heatmap(values).ax) == []
    assert len(texts(plot.heatmap(values[:20, :20], numbers=True).ax)) == 400
    assert texts(plot.heatmap(values[:2, :2], numbers=False).ax) == []


def test_numbers_stand_out_from_their_cells():
    def light(color):
        channels = np.array(matplotlib.colors.to_rgb(color))
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return linear @ [0.2126, 0.7152, 0.0722]

    for center in (None, 0):
        values = np.linspace(-1, 1, 36).reshape(6, 6)
        ax = plot.heatmap(values, center=center).ax
        ax.figure.draw_without_rendering()
        cell_colors = ax.images[0].to_rgba(values).reshape(-1, 4)[:, :3]
        for text, cell in zip(ax.texts, cell_colors, strict=True):
            dark, bright = sorted([light(text.get_color()), light(cell)])
            assert (bright + 0.05) / (dark + 0.05) > 3  # the contrast WCAG asks of large letters


def test_panels_of_one_picture_are_laid_out_together(monkeypatch):
    from tinyattn.plot.figure_layout import ConstrainedLayoutEngine

    layouts = []
    execute = ConstrainedLayoutEngine.execute
    monkeypatch.setattr(
        ConstrainedLayoutEngine, "execute", lambda *a: (layouts.append(1), execute(*a))
    )
    picture = plot.figure(2, 3)
    for ax in picture.axes:
        plot.heatmap([[1.0, 2.0]], ["row"], ["a", "b"], ax=ax)
    assert layouts == []
    picture.figure.draw_without_rendering()
    assert len(layouts) == 3  # for the places, for the names, for the numbers
    assert [texts(ax) for ax in picture.axes] == [["1", "2"]] * 6
    assert len(layouts) == 9  # once each time it is drawn


def test_a_figure_of_the_reader_is_fitted_at_once():
    figure, ax = matplotlib.pyplot.subplots()
    plot.heatmap([[1.0, 2.0]], ax=ax)
    assert [t.get_text() for t in ax.texts] == ["1", "2"]
    matplotlib.pyplot.close(figure)


def test_several_matrices_share_one_scale():
    picture = plot.heatmap({"Q": [[0, 1]], "K": [[5, 2]]}, ["r"], ["a", "b"])
    assert [ax.get_title() for ax in picture.axes] == ["Q", "K"]
    assert [(ax.images[0].norm.vmin, ax.images[0].norm.vmax) for ax in picture.axes] == [(0, 5)] * 2
    assert names(picture.axes[0].yaxis) == ["r"]
    assert "r" not in names(picture.axes[1].yaxis)
    assert len(plot.heatmap(np.zeros((5, 2, 2))).axes) == 5


def test_attention_map_has_receivers_as_rows():
    weights = rows_sum_to_one(3, 2)
    ax = plot.attention_map(ta.tensor(weights), ["x", "y", "z"], ["k", "l"], title="t").ax
    assert names(ax.yaxis) == ["x", "y", "z"]
    assert names(ax.xaxis) == ["k", "l"]
    assert "query" in ax.get_ylabel()
    assert "key" in ax.get_xlabel()
    np.testing.assert_allclose(ax.images[0].get_array(), weights)
    assert ax.images[0].norm.vmin == 0


def test_attention_map_of_heads_and_of_equal_weights():
    picture = plot.attention_map(rows_sum_to_one(2, 3, 3), list("abc"))
    assert [ax.get_title() for ax in picture.axes] == ["head 1", "head 2"]
    even = plot.attention_map({"even": np.full((4, 4), 0.25)}, list("abcd"))
    assert even.ax.images[0].norm.vmax == 0.5


def test_masked_cells_are_hatched_and_without_number():
    keep = np.tril(np.ones((3, 3), bool))
    ax = plot.attention_map(rows_sum_to_one(3, 3), list("abc"), mask=keep).ax
    assert len([p for p in ax.patches if p.get_hatch()]) == 3
    assert len(texts(ax)) == 6
    assert np.isnan(np.ma.filled(ax.images[0].get_array(), np.nan)[0, 1])


def test_attention_lines():
    weights = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    ax = plot.attention_lines(weights, ["a", "b"], ["k", "l", "m"]).ax
    assert len(ax.lines) == 5
    assert {"a", "b", "k", "l", "m"} <= set(texts(ax))
    widths = [line.get_linewidth() for line in ax.lines]
    assert widths[0] == max(widths)
    assert len(plot.attention_lines(weights, ["a", "b"], list("klm"), query=0).ax.lines) == 2


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1), (3, 100), (64, 64)])
def test_heatmaps_of_odd_shapes(shape, tmp_path):
    row_names, column_names = [[f"token {i}" for i in range(n)] for n in shape]
    picture = plot.heatmap(np.zeros(shape), row_names, column_names, title="zeros")
    picture.save(tmp_path / "p.png")


@pytest.mark.parametrize(
    ("words", "n"), [("a", 6), ("animal", 11), ("a long name", 11), ("token", 40)]
)
def test_names_do_not_overlap(words, n):
    labels = [f"{words}{i}" for i in range(n)]
    ax = plot.attention_map(rows_sum_to_one(n, n), labels).ax
    ax.figure.draw_without_rendering()
    for axis in (ax.xaxis, ax.yaxis):
        shown = [t for t in axis.get_ticklabels() if t.get_visible() and t.get_text()]
        assert min(t.get_fontsize() for t in shown) >= 8
        turned = {t.get_rotation() for t in shown} - {0.0}
        boxes = [t.get_window_extent() for t in shown]
        for a, b in itertools.pairwise(boxes):
            if not turned:
                assert not a.overlaps(b)
            else:  # what counts is the distance between the lines of text
                slope = np.sin(np.radians(turned.copy().pop()))
                assert (b.x1 - a.x1) * slope > 0.8 * shown[0].get_fontsize() * ax.figure.dpi / 72


@pytest.mark.parametrize(("width", "shown"), [(14, "two\nlines"), (3, "two lines")])
def test_turned_names_of_columns_are_on_one_line(width, shown):
    ax = plot.heatmap(np.zeros((2, 5)), columns=["two\nlines"] * 5, size=(width, 4)).ax
    ax.figure.draw_without_rendering()
    assert {t.get_text() for t in ax.get_xticklabels()} == {shown}
    assert all((t.get_rotation() > 0) == (width == 3) for t in ax.get_xticklabels())


def test_images():
    picture = plot.images(np.zeros((5, 8, 8)), range(5), columns=3)
    assert [ax.get_title() for ax in picture.axes] == list("01234")
    assert len(picture.axes) == 5
    assert len(plot.images(np.zeros((2, 4, 4, 3))).axes) == 2


# ---------------------------------------------------------------- points


def test_scatter_shows_classes_by_colour_and_shape():
    ax = plot.scatter(np.eye(2), [0, 1], names=["left", "right"]).ax
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["left", "right"]
    first, second = ax.collections
    assert len(first.get_paths()[0]) != len(second.get_paths()[0])
    assert plot.scatter(ta.tensor(np.eye(2))).ax.get_legend() is None


@pytest.mark.parametrize(
    "predict",
    [
        lambda p: np.stack([p[:, 0], -p[:, 0]], axis=1),
        lambda p: -p[:, 0],
        lambda p: -p[:, :1],
        lambda p: (p[:, 0] < 0).astype(int),
        lambda p: ta.tensor(-p[:, 0], requires_grad=True) * 1,
    ],
)
def test_decision_boundary_knows_where_the_class_changes(predict):
    points = np.array([[-1.0, -1.0], [1.0, 1.0]])
    ax = plot.decision_boundary(predict, points, [1, 0]).ax
    background = np.asarray(ax.images[0].get_array())
    blue, vermillion = background[:, -1].mean(axis=0), background[:, 0].mean(axis=0)
    assert blue[2] > blue[0]  # class 0 on the right
    assert vermillion[0] > vermillion[2]
    lines = [c for c in ax.collections if hasattr(c, "levels")]
    vertices = np.concatenate([p.vertices for c in lines for p in c.get_paths()])
    assert np.abs(vertices[:, 0]).max() < 0.02  # the line is at x₁ = 0, up to the grid


# ---------------------------------------------------------------- events and their objects


def test_a_landscape_has_forces_downhill():
    drawn = plot.events.landscape(lambda d: d**2, "bowl", scale=12)
    arrows = next(c for c in drawn.ax.collections if hasattr(c, "U"))
    np.testing.assert_allclose(np.stack([arrows.U, arrows.V]), -2 * arrows.XY.T)  # -grad of d²
    x, y = drawn.axes[1].lines[0].get_data()
    np.testing.assert_allclose(y, x**2)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_an_outline_surrounds_the_pixels_of_its_shape(kind):
    from matplotlib.path import Path

    from tinyattn.data.overlaps import SIDE, _shape

    size, centre = 5.3, (9.2, 10.1)
    corners = plot.events.shape_outline(kind, size, centre)
    at = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2)
    inside = Path(corners).contains_points(at)
    np.testing.assert_array_equal(inside, _shape(kind, size, *centre).ravel())


def test_collected_pixels_are_coloured_by_object():
    found = np.array([[[0, 0], [-1, 3]], [[2, 2], [2, 2]]])
    drawn = plot.events.collected_pixels(
        np.ones((2, 2, 2, 3)), np.zeros((2, 2, 2)), found, [[np.zeros((3, 2))], []]
    )
    assert [len(ax.lines) for ax in drawn.axes] == [1, 0, 0, 0, 0, 0]
    first, second = (np.asarray(ax.images[0].get_array()) for ax in drawn.axes[4:])
    assert np.all(first[1, 0] == plot.events.PAPER)
    assert len(np.unique(first.reshape(-1, 3), axis=0)) == 3
    assert np.all(second == second[0, 0])
    assert not np.all(second == plot.events.PAPER)


def test_drift_circles_have_the_radius_of_the_drift():
    drawn = plot.figure()
    wires, drift = np.array([[0.0, 0.5], [0.3, 0.3]]), np.array([0.02, 0.001])
    plot.events.drift_circles(drawn.ax, wires, drift, [2, -1])
    (hits,) = drawn.ax.collections
    heights = [p.get_extents().height for p in hits.get_paths()]
    np.testing.assert_allclose(heights, [0.04, 0.012])  # the second one at least visible
    colors = [matplotlib.colors.to_hex(c).upper() for c in hits.get_edgecolors()]
    assert colors == [plot.COLORS[2].upper(), plot.events.NOISE]


def test_a_table_writes_numbers_and_leaves_nan_empty():
    drawn = plot.events.table([[0.5, np.nan], [-1.25, 2]], ["a", "b"], ["x", "y"], title="t")
    assert texts(drawn.ax) == ["0.50", "", "−1.25", "2.00"]
    assert names(drawn.ax.xaxis) == ["x", "y"]
    words = plot.events.table([["yes", 0.5]], ["a"], ["x", "y"], shade=[[0, 1]])
    assert texts(words.ax) == ["yes", "0.50"]
