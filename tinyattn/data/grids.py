"""Generated images of one to nine coloured shapes in a 3 by 3 grid of cells, with captions.

The caption names the objects in reading order (rows from the top, left to right):

    red circle blue square red circle

For every word, the data set contains the cell to which the word refers.
"""

from dataclasses import dataclass

import numpy as np

from tinyattn.data.tokenizers.simple import checked
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range

COLORS = {
    "red": (0.84, 0.15, 0.16),
    "green": (0.1, 0.6, 0.2),
    "blue": (0.12, 0.35, 0.8),
    "yellow": (0.95, 0.8, 0.1),
}
SHAPES = ("circle", "square", "triangle", "cross")
PAD, START, END = 0, 1, 2
VOCABULARY = ("<pad>", "<start>", "<end>", *COLORS, *SHAPES)
WORD = {word: i for i, word in enumerate(VOCABULARY)}
CELL = 6  # pixels


@dataclass(frozen=True)
class Grids:
    """N generated images of 3 by 3 cells, with captions. The first axis of all arrays is the image.

    Attributes:
        images    RGB images with values from 0 to 1 [N, 18, 18, 3] float32
        tokens    [N, T + 1] int64: START, the words of the caption, END, then PAD, as indices into
                  VOCABULARY (`from tinyattn.data.grids import VOCABULARY`). T is 1 plus twice the
                  largest number of objects that was allowed
        cells     [N, T] int64: the cell to which each of tokens[:, 1:] refers, from 0 to 8 in
                  reading order, -1 for END and PAD
        objects   [N] int64: number of objects in the image
    """

    images: np.ndarray
    tokens: np.ndarray
    cells: np.ndarray
    objects: np.ndarray

    def __len__(self):
        return len(self.objects)

    def captions(self):
        """Return the captions as a list of N texts, such as "red circle blue square"."""
        return [words(row) for row in self.tokens]


def words(tokens):
    """Return the text of one row of the tokens of `Grids`, up to END, without START and PAD.

    Args:
        tokens   token ids [T], indices into VOCABULARY of this module

    Returns:
        the words, separated by spaces

    Raises:
        ValueError: tokens are not whole numbers [T] from 0 to 10
    """
    text = []
    for token in checked("words", tokens, len(VOCABULARY)):
        if token == END:
            break
        if token not in (PAD, START):
            text.append(VOCABULARY[token])
    return " ".join(text)


def masks():
    """Return the pixels of four shapes in a cell of 6 by 6 pixels, [4, 6, 6] bool.

    The shapes are circle, square, triangle and cross, in this order. The last row and column of the
    cell are empty, so shapes in neighbouring cells do not touch.
    """
    y, x = np.mgrid[:CELL, :CELL] - 2  # -2 to 3
    inside = np.maximum(abs(y), abs(x)) < 3
    inside[-1], inside[:, -1] = False, False
    circle = (x**2 + y**2 < 6) & inside
    triangle = (2 * abs(x) <= y + 2) & inside
    cross = (abs(x) == abs(y)) & inside
    return np.stack([circle, inside, triangle, cross])


def grids(n=1000, objects=(1, 2, 3, 4), repeated=False, rng=None):
    """Generate images of coloured shapes in a grid of 3 by 3 cells, with captions.

    The number of objects, their cells, colours and shapes are drawn independently and uniformly,
    with at most one object in each cell. The caption names the colour and shape of each object, in
    reading order.

    Args:
        n          number of images
        objects    possible numbers of objects in an image, a list of whole numbers from 1 to 9
        repeated   True: all objects of an image have the same shape, in independent colours
        rng        seed or numpy.random.Generator, or None for the default generator. The same seed
                   gives the same images

    Returns:
        `Grids`

    Raises:
        TypeError: n is not a whole number
        ValueError: n is negative, or objects is not a list of whole numbers from 1 to 9
    """
    rng = generator(rng)
    check_range("grids", 0, whole=True, n=n)
    given, objects = objects, np.asarray(objects)
    numbers = objects.ndim == 1 and len(objects) and objects.dtype.kind in "iu"
    if not numbers or objects.min() < 1 or objects.max() > 9:
        raise ValueError(
            "grids: objects must be a list of whole numbers from 1 to 9, which are the possible "
            f"numbers of objects in an image, got {given!r}"
        )
    count = rng.choice(objects, n)
    filled = rng.permuted(np.tile(np.arange(9), (n, 1)), axis=1) < count[:, None]  # [n, cells]
    colors = rng.integers(len(COLORS), size=(n, 9))
    shapes = rng.integers(len(SHAPES), size=(n, 1 if repeated else 9)) + np.zeros_like(colors)
    tiles = np.where(filled, 1 + len(SHAPES) * colors + shapes, 0)
    images = _tiles()[tiles].reshape(n, 3, 3, CELL, CELL, 3)  # row, column, y, x, RGB
    images = images.swapaxes(2, 3).reshape(n, 3 * CELL, 3 * CELL, 3)

    longest = 2 * objects.max() + 1
    tokens = np.full((n, longest + 1), PAD)
    cells = np.full((n, longest), -1)
    i, cell = np.nonzero(filled)  # the cells of an image in reading order
    k = (np.cumsum(filled, axis=1) - 1)[i, cell]  # the k-th object of image i is in this cell
    tokens[:, 0] = START
    tokens[i, 2 * k + 1] = WORD["red"] + colors[i, cell]
    tokens[i, 2 * k + 2] = WORD["circle"] + shapes[i, cell]
    tokens[np.arange(n), 2 * count + 1] = END
    cells[i, 2 * k] = cells[i, 2 * k + 1] = cell
    return Grids(images, tokens, cells, count)


def _tiles():
    """Return the images of an empty cell and of all coloured shapes, [17, CELL, CELL, RGB]."""
    tiles = np.ones((1 + len(COLORS) * len(SHAPES), CELL, CELL, 3), np.float32)
    stencils = masks()
    for i, color in enumerate(COLORS.values()):
        for j, stencil in enumerate(stencils):
            tiles[1 + len(SHAPES) * i + j][stencil] = color
    return tiles
