"""Pictures with captions: emoji and their Unicode names."""

from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("emoji.npz")


def emoji():
    """1362 emoji: images [N, 24, 24, 3] float32 in 0..1 (RGB), and captions, a list of N texts.

    A caption is the Unicode name in lower case, without hyphens: "smiling cat face with open
    mouth". The order is that of the character codes: neighbours are often alike, so shuffle before
    you hold out (data.split does). Source and licence: SOURCES.md beside this file.
    """
    with np.load(FILE) as stored:
        return stored["pixels"].astype(np.float32) / 31, str(stored["captions"]).split("\n")
