"""Images of real handwritten digits, 8 by 8 pixels."""

from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("digits.npz")


def digits():
    """Load 1,797 digits that 13 people wrote: images [1797, 8, 8] float32, labels [1797] int64.

    A label is the digit, 0 to 9. A pixel is the fraction of ink in a block of 4 by 4 pixels of the
    scan, in steps of 1/16 from 0 (paper) to 1 (ink). Source and licence: tinyattn/data/SOURCES.md.
    """
    with np.load(FILE) as stored:
        return stored["ink"].astype(np.float32) / 16, stored["label"].astype(np.int64)
