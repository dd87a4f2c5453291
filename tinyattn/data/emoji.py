"""Images of one or two emoji, with their Unicode names as captions."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tinyattn.engine.random import generator

FILE = Path(__file__).with_name("emoji.npz")
SIZE, WIDTH = 24, 52  # pixels of an emoji and of a scene


def emoji():
    """Load N = 1,362 emoji: images [N, 24, 24, 3] float32 in 0..1 (RGB), and a list of N captions.

    A caption is the Unicode name in lower case, without hyphens: "smiling cat face with open
    mouth". The emoji are sorted by their character codes, so neighbours are often similar.
    Therefore, shuffle them before you hold out test images, as data.split does. Source and licence:
    tinyattn/data/SOURCES.md.
    """
    with np.load(FILE) as stored:
        return stored["pixels"].astype(np.float32) / 31, str(stored["captions"]).split("\n")


@dataclass(frozen=True)
class Scenes:
    """N images of one or two emoji each. The first axis of all arrays is the image.

    Attributes:
        images   RGB images with values from 0 to 1 [N, 24, 52, 3] float32
        which    [N, 2] int64: indices of the emoji from left to right, -1 if there is no second
                 emoji
        left     [N, 2] int64: first column of pixels of each emoji, -1 if there is no second emoji
    """

    images: np.ndarray
    which: np.ndarray
    left: np.ndarray

    def __len__(self):
        return len(self.which)

    def captions(self, names):
        """Return the captions, which name the emoji from left to right, as in "taxi and red apple".

        Args:
            names   list with the caption of each emoji, the second result of `emoji`

        Returns:
            a list of N texts
        """
        return [" and ".join(names[i] for i in pair if i >= 0) for pair in self.which]


def scenes(pictures, which, rng=None):
    """Generate images of one or two complete emoji side by side at random positions.

    Args:
        pictures   images of emoji to choose from [M, 24, 24, 3], such as the first result of
                   `emoji`
        which      indices [N, 2] int of the emoji from left to right, -1 if there is no second
                   emoji
        rng        seed or numpy.random.Generator, or None for the default generator

    Returns:
        `Scenes`

    Raises:
        ValueError: pictures are not [M, 24, 24, 3], which is not [N, 2] int, or an index is out of
            range
    """
    pictures, which, rng = np.asarray(pictures), np.asarray(which), generator(rng)
    if pictures.shape[1:] != (SIZE, SIZE, 3):
        raise ValueError(
            f"scenes: pictures must be [M, {SIZE}, {SIZE}, 3], got shape {pictures.shape}"
        )
    if which.ndim != 2 or which.shape[1] != 2 or which.dtype.kind not in "iu":
        raise ValueError(
            "scenes: which must be whole numbers [N, 2], the two emoji of each image, got "
            f"dtype {which.dtype} and shape {which.shape}"
        )
    lowest, highest = np.array([0, -1]), len(pictures) - 1
    wrong = ((which < lowest) | (which > highest)).any(axis=1)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"scenes: which must contain indices from 0 to {highest}, or -1 for the second emoji "
            f"of an image that has only one, got {which[i].tolist()} in row {i}"
        )
    two = which[:, 1] >= 0
    first = rng.integers(0, WIDTH - SIZE * (1 + two) + 1)
    second = rng.integers(first + SIZE, np.where(two, WIDTH - SIZE, first + SIZE) + 1)
    left = np.stack([first, np.where(two, second, -1)], axis=1)
    images = np.ones((len(which), SIZE, WIDTH, 3), np.float32)
    for image, pair, columns in zip(images, which, left, strict=True):
        for i, x in zip(pair, columns, strict=True):
            if i >= 0:
                image[:, x : x + SIZE] = pictures[i]
    return Scenes(images, which.astype(np.int64), left)
