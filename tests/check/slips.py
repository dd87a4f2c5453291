"""What tests of `check.watch` share: data, a training loop, and the warnings that it raises."""

import inspect
import warnings

import numpy as np

import tinyattn.functional as F
from tinyattn import check, nn, optim

rng = np.random.default_rng(0)
X = rng.normal(size=(16, 3)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5], np.float32)  # [16]
CLASS = (Y > 0).astype(int)


def slips(model, loss, optimizer=None, steps=7, loop=None):
    """The texts and lines of all warnings of a training loop."""
    optimizer = optimizer or optim.SGD(model.parameters(), lr=1e-3)

    def usual():
        for _ in range(steps):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with check.watch(model, optimizer):
            (loop or usual)()
    assert all(w.category is check.SlipWarning for w in caught), caught
    return [(str(w.message), w.filename, w.lineno) for w in caught]


def only(found, words, source=None):
    """There is one warning; it has the words and names a line of the test or its loop."""
    assert len(found) == 1, found
    text, file, number = found[0]
    assert text.startswith("check.watch: ") and words in text, text
    test = inspect.currentframe().f_back.f_code.co_filename
    assert file in (test, __file__)  # the usual loop is here
    if source is not None:
        with open(file, encoding="utf-8") as lines:
            assert source in lines.readlines()[number - 1]


def linear(out=1):
    return nn.Linear(3, out, rng=0)


def error_of(model):
    return F.cross_entropy(model(X), CLASS)
