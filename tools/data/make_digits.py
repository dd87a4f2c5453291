"""Make digits.npz from the copy of the data set that scikit-learn brings along.

pip install scikit-learn && python -m tools.data.make_digits
"""

from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "tinyattn" / "data"


def make(path):
    from sklearn.datasets import load_digits

    found = load_digits()
    ink, label = found.images, found.target
    if ink.shape != (1797, 8, 8) or ink.min() != 0 or ink.max() != 16:
        raise ValueError(f"expected 1797 images of 8 by 8 with values 0..16, got {ink.shape}")
    if not np.array_equal(np.unique(label), np.arange(10)):
        raise ValueError(f"expected labels 0 to 9, got {np.unique(label)}")
    np.savez_compressed(path, ink=ink.astype(np.uint8), label=label.astype(np.uint8))


if __name__ == "__main__":
    make(DATA / "digits.npz")
