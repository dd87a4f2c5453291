"""Pictures with captions: the generated grids, the emoji, and scenes of emoji."""

import numpy as np
import pytest

from tinyattn import data
from tinyattn.data.emoji import FILE, SIZE, WIDTH, scenes
from tinyattn.data.grids import CELL, COLORS, END, PAD, SHAPES, START, VOCABULARY, masks, words

# ---------------------------------------------------------------- grids


def seen(image):
    """The caption, read from the pixels: a colour and a stencil for each cell that is not white."""
    found = []
    for cell in image.reshape(3, CELL, 3, CELL, 3).swapaxes(1, 2).reshape(9, CELL, CELL, 3):
        ink = (cell < 1).any(axis=-1)
        if ink.any():
            color = cell[ink][0]
            assert (cell[ink] == color).all()
            c = [np.allclose(color, rgb, atol=1e-6) for rgb in COLORS.values()].index(True)
            s = [(ink == stencil).all() for stencil in masks()].index(True)
            found += [list(COLORS)[c], SHAPES[s]]
    return " ".join(found)


@pytest.mark.parametrize("repeated", [False, True])
def test_the_captions_say_what_the_pixels_show(repeated):
    g = data.grids(60, repeated=repeated, rng=1)
    assert g.images.dtype == np.float32
    assert g.images.shape == (60, 18, 18, 3)
    for image, caption, n in zip(g.images, g.captions(), g.objects, strict=True):
        assert seen(image) == caption
        assert len(caption.split()) == 2 * n
        if repeated:
            assert len(set(caption.split()) & set(SHAPES)) == 1


def test_tokens_begin_and_end_and_cells_are_in_reading_order():
    g = data.grids(60, rng=2)
    assert (g.tokens[:, 0] == START).all()
    for tokens, cells, n in zip(g.tokens, g.cells, g.objects, strict=True):
        assert tokens[2 * n + 1] == END
        assert (tokens[2 * n + 2 :] == PAD).all()
        assert (cells[2 * n :] == -1).all()
        named = cells[: 2 * n].reshape(n, 2)
        assert (named[:, 0] == named[:, 1]).all()
        assert (np.diff(named[:, 0]) > 0).all()
    assert words([START, VOCABULARY.index("red"), END, 3]) == "red"


def test_grids_are_seeded_and_all_numbers_of_objects_occur():
    a, b = data.grids(40, rng=3), data.grids(40, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(a.images, b.images)
    assert set(a.objects) == {1, 2, 3, 4}
    assert set(data.grids(5, objects=[9], rng=0).objects) == {9}


# ---------------------------------------------------------------- emoji


def test_emoji():
    pictures, captions = data.emoji()
    assert pictures.shape == (1362, SIZE, SIZE, 3)
    assert pictures.dtype == np.float32
    assert len(captions) == 1362
    assert pictures.min() == 0
    assert pictures.max() == 1
    assert FILE.stat().st_size < 500_000
    red, _, blue = pictures[captions.index("large red circle"), 12, 12]
    assert red > 2 * blue
    assert all(word.isalnum() and word == word.lower() for c in captions for word in c.split())


def test_scenes_show_the_emoji_where_they_say():
    pictures, captions = data.emoji()
    rng = np.random.default_rng(4)
    which = rng.integers(0, 1362, (300, 2))
    which[::3, 1] = -1
    s = scenes(pictures, which, rng=5)
    assert s.images.shape == (300, SIZE, WIDTH, 3)
    for image, pair, left, text in zip(s.images, which, s.left, s.captions(captions), strict=True):
        rest = np.ones(WIDTH, bool)
        for i, x in zip(pair, left, strict=True):
            if i >= 0:
                np.testing.assert_array_equal(image[:, x : x + SIZE], pictures[i])
                rest[x : x + SIZE] = False
        assert (image[:, rest] == 1).all()
        assert rest.sum() == WIDTH - SIZE * (pair >= 0).sum()  # they do not overlap
        assert text == " and ".join(captions[i] for i in pair if i >= 0)
    alone = s.left[which[:, 1] < 0, 0]
    assert alone.min() == 0
    assert alone.max() == WIDTH - SIZE
    np.testing.assert_array_equal(s.images, scenes(pictures, which, rng=5).images)
