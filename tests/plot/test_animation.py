"""Clouds that move: panels side by side, and films."""

import errno

import numpy as np
import pytest

from tinyattn import plot

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def no_window():
    import matplotlib

    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def frames(F=3, N=20):
    return np.random.default_rng(0).normal(size=(F, N, 2))


def test_clouds_share_their_scale():
    classes, weights = np.arange(20) % 3 - 1, np.linspace(0, 1, 60).reshape(3, 20)
    picture = plot.animate_points(
        frames(),
        classes,
        weights=weights,
        titles="abc",
        title="all",
        columns=2,
        xlabel="x",
        ylabel="y",
    )
    shown = [ax for ax in picture.axes if ax.axison]
    assert [ax.get_title() for ax in shown] == ["a", "b", "c"]
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in shown}) == 1
    (left, right), (low, high) = shown[0].get_xlim(), shown[0].get_ylim()
    assert left < frames()[..., 0].min()
    assert right > frames()[..., 0].max()
    assert right - left == pytest.approx(high - low)
    assert picture.figure.get_suptitle() == "all"


def test_one_cloud_in_an_axes_that_exists():
    picture = plot.figure(1, 2)
    plot.animate_points(frames()[0], ax=picture.axes[1], title="here")
    assert picture.axes[1].get_title() == "here"
    assert not picture.axes[0].collections
    plot.animate_points(np.zeros((0, 2)))  # no points, no error
    plot.animate_points(np.zeros((4, 2)))  # all at one place


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_not_finite_are_left_out(value):
    cloud = frames()
    cloud[1, 4, 0] = value
    others = np.delete(cloud.reshape(-1, 2), 24, axis=0)
    picture = plot.animate_points(cloud)
    expected = plot.animate_points(others).ax
    assert {ax.get_xlim() for ax in picture.axes} == {expected.get_xlim()}
    assert {ax.get_ylim() for ax in picture.axes} == {expected.get_ylim()}
    picture.figure.draw_without_rendering()


def test_strong_points_are_large():
    picture = plot.animate_points(frames()[0], weights=np.arange(20) / 19)
    areas = picture.ax.collections[0].get_sizes()
    assert areas.min() == 12
    assert areas.max() == 110


def test_film(tmp_path):
    from PIL import Image

    points = frames(8)

    def draw(i, left, right):
        plot.animate_points(points[i], ax=left)
        right.set_title(str(i))

    made = plot.film(
        draw, 8, tmp_path / "new" / "a.gif", title="eight", columns=2, size=(4, 2), last=0.5
    )
    with Image.open(made.path) as film:
        assert film.n_frames == 8
        assert film.size == (400, 200)
        stays = []
        for i in range(8):
            film.seek(i)
            stays.append(film.info["duration"])
        # milliseconds: it begins slowly, and the last picture stays
        assert stays == [1500, 400, 200, 200, 200, 200, 200, 500]
        assert film.convert("RGB").getpixel((0, 0)) == (255, 255, 255)  # the paper is white
    assert made._repr_html_().startswith(
        '<img class="figure" alt="eight" src="data:image/gif;base64,R0lGOD'
    )
    assert repr(made) == "<film: 8 frames, eight>"


def test_a_film_in_a_folder_that_is_read_only_goes_to_a_temporary_one(
    tmp_path, monkeypatch, capsys
):
    path = tmp_path / "films" / "a.gif"

    def mkdir(self, *args, **options):
        raise PermissionError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(type(path), "mkdir", mkdir)
    made = plot.film(lambda i, panel: panel.plot([0, i]), 4, path, size=(2, 2))
    assert made.path.is_file() and made.path.name == "a.gif" and not path.exists()
    assert f"is read-only, so the film is {made.path}" in capsys.readouterr().out
